import type { Config, Upstream } from '../config/config.ts'
import { fixedKey, type KeyFinder } from './keyring.ts'

/** Shorter words are no secret worth a whole text, and would meet ordinary ones (ruling U11). */
const charactersMin = 6

/**
 * The words of the configuration that no client may read, as they are (ruling U11): the keys, header values and hosts of an
 * upstream, and what it calls its models, where no client may name them so.
 */
export function hostingWords(
  { catalog }: Pick<Config, 'catalog'>,
  upstream: Upstream,
  keyOf: KeyFinder = fixedKey,
): readonly string[] {
  const { models, entries } = catalog
  const routes = entries.flatMap((model) => model.routes).filter((route) => route.upstream === upstream.name)
  const names = routes.map(({ serving }) => serving.upstreamModel).filter((name) => !models.has(name))
  const keys = upstream.accounts.flatMap((account) => keyOf(account).known)
  const headers = [upstream, ...routes].flatMap((one) => [...one.headers.values()])
  const values = headers.flatMap((value) => [value, value.slice(value.lastIndexOf(' ') + 1)])
  const hosts = [hostsOf(upstream.baseUrl), pathWords(upstream), proxyWords(upstream)].flat()
  return [...keys, ...values, ...hosts, ...names].filter(({ length }) => length >= charactersMin)
}

/** A host, and its first label where that is no ordinary word: machines call each other so. */
function hostsOf(url: string): string[] {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const [label = ''] = host.split('.')
  return isTelling(label) ? [host, label] : [host]
}

/** Of paths the parts that are no ordinary words (a project, a deployment), and what a fixed query says. */
function pathWords({ endpoints }: Upstream): string[] {
  return Object.values(endpoints).flatMap((endpoint) => {
    const { pathname, searchParams } = new URL(endpoint, 'http://host')
    return [...pathname.split('/').filter(isTelling), ...searchParams.values()]
  })
}

/** Its host, and what it is told as credentials, as they are written and as they are sent. */
function proxyWords({ proxy }: Upstream): string[] {
  if (!proxy) return []
  const { href, username, password } = new URL(proxy.url.reveal())
  const [user, word] = [decodeURIComponent(username), decodeURIComponent(password)]
  const sent = user && Buffer.from(`${user}:${word}`).toString('base64')
  return [...hostsOf(href), username, password, user, word, sent]
}

function isTelling(word: string): boolean {
  return /\d|-/.test(word)
}
