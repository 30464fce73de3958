import type { Config } from '../../config/config.ts'
import { providerOfHost } from './conventions.ts'

/** The address of an upstream, with the names that OpenTelemetry's conventions use. */
type ServerAttributes = { address: string; port: number; provider: string }

/** Facts about upstreams in the present configuration. A fact is undefined if the upstream is no longer configured. */
export type ServerNames = {
  upstream(name: string): ServerAttributes | undefined
  /** Returns the upstream's own name for the model. */
  modelName(model: string, upstream: string): string | undefined
}

export function createPlaces(current: () => Config): ServerNames {
  let config: Config | undefined
  let known = new Map<string, ServerAttributes | undefined>()
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

function placeOf(name: string, { upstreams }: Config): ServerAttributes | undefined {
  const base = upstreams.get(name)?.baseUrl
  if (base === undefined) return undefined
  const { hostname, port, protocol } = new URL(base)
  const [, provider = name] = providerOfHost.find(([host]) => host.test(hostname)) ?? []
  return { address: hostname, port: port === '' ? (protocol === 'https:' ? 443 : 80) : Number(port), provider }
}
