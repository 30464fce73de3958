import type { Config } from '../../config/config.ts'
import { providerOfHost } from './conventions.ts'

/** Where an upstream is, in the words of the conventions. */
export type Place = { address: string; port: number; provider: string }

/** What the configuration in force says of upstreams; of one that it has no more nothing is said. */
export type Places = {
  upstream(name: string): Place | undefined
  /** What the upstream calls the model. */
  modelName(model: string, upstream: string): string | undefined
}

export function createPlaces(current: () => Config): Places {
  let config: Config | undefined
  let known = new Map<string, Place | undefined>()
  return {
    upstream(name) {
      if (config !== current()) {
        config = current()
        known = new Map()
      }
      if (!known.has(name)) known.set(name, placeOf(name, config))
      return known.get(name)
    },
    modelName(model, upstream) {
      const routes = current().catalog.models.get(model)?.routes
      return routes?.find((route) => route.upstream === upstream)?.serving.upstreamModel
    },
  }
}

function placeOf(name: string, { upstreams }: Config): Place | undefined {
  const base = upstreams.get(name)?.baseUrl
  if (base === undefined) return undefined
  const { hostname, port, protocol } = new URL(base)
  const [, provider = name] = providerOfHost.find(([host]) => hostname === host || hostname.endsWith(`.${host}`)) ?? []
  return { address: hostname, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port), provider }
}
