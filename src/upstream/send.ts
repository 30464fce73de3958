import type { Upstream } from '../config/config.ts'
import { DirectRoute } from './direct-route.ts'
import { openProxied } from './proxied.ts'
import type { ConnectionLimits, Route, Upstreams } from './upstreams.ts'

/**
 * The connections of one configuration, none of them opened yet: by HTTP/1.1 of our own (docs/decisions/0059-own-client.md), and through a
 * proxy by undici. Redirects are not followed, nothing is decompressed. Deadlines are the listener's: it sees every byte and has the clock.
 */
export function createUpstreams(config: ReadonlyMap<string, Upstream>, limits: ConnectionLimits): Upstreams {
  const open = (upstream: Upstream) =>
    upstream.proxy === undefined ? new DirectRoute(upstream, limits) : openProxied(upstream, upstream.proxy, limits)
  const routes = new Map<string, Route>([...config].map(([name, upstream]) => [name, open(upstream)]))
  return {
    send(target, request, listener) {
      const route = routes.get(target.upstream.name)
      if (route === undefined) throw new Error(`${target.upstream.name} is no upstream of this configuration`)
      return route.send(target, request, listener)
    },
    async retire() {
      // What is cut while it retires is closed too.
      await Promise.allSettled([...routes.values()].map((route) => route.retire()))
    },
    async close() {
      await Promise.all([...routes.values()].map((route) => route.close()))
    },
  }
}
