import type { Config, Upstream } from '../config/config.ts'

/** Shorter words are no secret worth a whole text, and would meet ordinary ones (ruling U11). */
const charactersMin = 6

/**
 * The words of the configuration that no client may read, as they are (ruling U11): the keys, header values and hosts of an
 * upstream, and what it calls its models, where no client may name them so.
 */
export function hostingWords({ catalog }: Pick<Config, 'catalog'>, upstream: Upstream): readonly string[] {
  const { models, entries } = catalog
  const routes = entries.flatMap((model) => model.routes).filter((route) => route.upstream === upstream.name)
  const names = routes.map(({ serving }) => serving.upstreamModel).filter((name) => !models.has(name))
  const keys = upstream.accounts.map(({ key }) => key.reveal())
  const headers = [upstream, ...routes].flatMap((one) => [...one.headers.values()])
  const values = headers.flatMap((value) => [value, value.slice(value.lastIndexOf(' ') + 1)])
  return [...keys, ...values, ...hostsOf(upstream), ...names].filter(({ length }) => length >= charactersMin)
}

/** A host, and its first label where that is no ordinary word: machines call each other so. */
function hostsOf({ baseUrl }: Upstream): string[] {
  const host = new URL(baseUrl).hostname.replace(/^\[|\]$/g, '')
  const [label = ''] = host.split('.')
  return /\d|-/.test(label) ? [host, label] : [host]
}
