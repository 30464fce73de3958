import type { Upstream } from '../config/config.ts'
import { DirectWay } from './direct-way.ts'
import { openProxied } from './proxied.ts'
import type { ConnectionLimits, ConnectionWatch, Upstreams, Way } from './upstreams.ts'

/**
 * The connections of one configuration, none of them opened yet: by HTTP/1.1 of our own (docs/decisions/0059-own-client.md), and through a
 * proxy by undici. Redirects are not followed, nothing is decompressed. Deadlines are the listener's: it sees every byte and has the clock.
 * @param watch what is reported, and a clock other than the process's
 */
export function createUpstreams(
  config: ReadonlyMap<string, Upstream>,
  limits: ConnectionLimits,
  watch: Partial<ConnectionWatch> = {},
): Upstreams {
  const terms = { clockMs: () => performance.now(), reportBug() {}, onUnasked() {}, ...watch, ...limits }
  const open = (upstream: Upstream) =>
    upstream.proxy === undefined ? new DirectWay(upstream, terms) : openProxied(upstream, upstream.proxy, terms)
  const ways = new Map<string, Way>([...config].map(([name, upstream]) => [name, open(upstream)]))
  return {
    send(target, request, listener) {
      const way = ways.get(target.upstream.name)
      if (way === undefined) throw new Error(`${target.upstream.name} is no upstream of this configuration`)
      return way.send(target, request, listener)
    },
    async retire() {
      // What is cut while it retires is closed too.
      await Promise.allSettled([...ways.values()].map((way) => way.retire()))
    },
    async close() {
      await Promise.all([...ways.values()].map((way) => way.close()))
    },
  }
}
