import type { Config, Upstream } from '../config/config.ts'
import { fixedKey } from './keyring.ts'
import type { KeyFinder } from './live-key.ts'

/** The fewest characters of a word that clients must not see. A shorter word would match ordinary text (ruling U11). */
const charactersMin = 6

/** The words of `hostingWords` except the keys. They are computed once, because every failed request needs them. */
const fixedWords = new WeakMap<Config['catalog'], WeakMap<Upstream, readonly string[]>>()

/**
 * Lists the words of the configuration that no client may read (ruling U11). They are the upstream's keys, header
 * values, hosts, paths and proxy. The upstream's names of models are listed too, except names that clients also use.
 * Only a key can be in the list twice.
 */
export function hostingWords(
  { catalog }: Pick<Config, 'catalog'>,
  upstream: Upstream,
  keyOf: KeyFinder = fixedKey,
): readonly string[] {
  const ofUpstreams = fixedWords.getOrInsertComputed(catalog, () => new WeakMap())
  const fixed = ofUpstreams.getOrInsertComputed(upstream, () => findFixed(catalog, upstream))
  // The keys are read each time, because a key may be renewed under the same configuration.
  const keys = upstream.accounts.flatMap((account) => keyOf(account).known)
  return [...keys.filter(isLong), ...fixed]
}

function findFixed({ models, entries }: Config['catalog'], upstream: Upstream): readonly string[] {
  const routes = entries.flatMap((model) => model.routes).filter((route) => route.upstream === upstream.name)
  const names = routes.map(({ serving }) => serving.upstreamModel).filter((name) => !models.has(name))
  const headers = [upstream, ...routes].flatMap((one) => [...one.headers.values()])
  const values = headers.flatMap((value) => [value, value.slice(value.lastIndexOf(' ') + 1)])
  const hosts = [hostsOf(upstream.baseUrl), pathWords(upstream), proxyWords(upstream)].flat()
  return [...new Set([...values, ...hosts, ...names])].filter(isLong)
}

const isLong = ({ length }: string) => length >= charactersMin

/**
 * Returns the host of a URL, and the first label of the host unless the label is an ordinary word. Local machines are
 * known by this label alone.
 */
function hostsOf(url: string): string[] {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, '')
  const [label = ''] = host.split('.')
  return isTelling(label) ? [host, label] : [host]
}

/** Returns the parts of configured paths that can be names (a project, a deployment). Also returns query values. */
function pathWords({ endpoints }: Upstream): string[] {
  return Object.values(endpoints)
    .flat()
    .flatMap((endpoint) => {
      const { pathname, searchParams } = new URL(endpoint, 'http://host')
      return [...pathname.split('/').filter(isTelling), ...searchParams.values()]
    })
}

/** The proxy's host and its credentials, both as written and as sent. */
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
