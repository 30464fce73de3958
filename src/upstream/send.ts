import type { Upstream } from '../config/config.ts'
import { HttpWay } from './http-way.ts'
import { headersOf } from './request-headers.ts'
import { pathFor } from './target.ts'
import { Unpacking } from './unpacking.ts'
import type { ConnectionLimits, ConnectionWatch, Upstreams } from './upstreams.ts'

/**
 * The connections of one configuration, none of them opened yet: by HTTP/1.1 of our own, directly or through a proxy
 * (docs/decisions/0059-own-client.md). Redirects are not followed. An answer that is compressed unasked is decompressed (ruling Y1). The
 * listener sets the deadlines: it sees every byte and has the clock.
 * @param watch receives reports, and may have another clock than the process's
 */
export function createUpstreams(
  config: ReadonlyMap<string, Upstream>,
  limits: ConnectionLimits,
  watch: Partial<ConnectionWatch> = {},
): Upstreams {
  const terms = { clockMs: () => performance.now(), reportBug() {}, onUnasked() {}, ...watch, ...limits }
  const ways = new Map(Array.from(config, ([name, upstream]) => [name, new HttpWay(placeOf(upstream), terms)]))
  return {
    send(target, request, listener) {
      const way = ways.get(target.upstream.name)
      if (way === undefined) throw new Error(`${target.upstream.name} is no upstream of this configuration`)
      const { body, isFresh = false } = request
      const unpacking = new Unpacking(listener)
      const sent = { path: pathFor(target, request), headers: headersOf(target, request), body, isFresh }
      return unpacking.over(way.send({ method: 'POST', ...sent }, unpacking))
    },
    async retire() {
      // A connection that is cut while it retires is closed too.
      await Promise.allSettled([...ways.values()].map((way) => way.retire()))
    },
    async close() {
      await Promise.all([...ways.values()].map((way) => way.close()))
    },
  }
}

function placeOf({ name, baseUrl, ca, proxy, reuses }: Upstream) {
  return { name, url: new URL(baseUrl), route: { ca, proxy: proxy && new URL(proxy.url.reveal()) }, reuses }
}
