/* The address of a page is all of its state: what is shown, of when, and by what it is filtered. */

export const pages = [
  'overview',
  'requests',
  'accounts',
  'keys',
  'models',
  'upstreams',
  'playground',
  'translate',
  'setup',
  'webhooks',
  'audit',
  'operators',
] as const

export type Page = (typeof pages)[number]

/** @property page undefined where the address names none */
export type Place = { page: Page | undefined; id: string | undefined; query: Query }

export type Query = Readonly<Record<string, string>>

/**
 * @param path below the console's own, such as `accounts/acct_1`; empty is the overview
 * @param search with or without its question mark
 */
export function readPlace(path: string, search: string): Place {
  const [first = '', second, ...rest] = path.replace(/^\/+|\/+$/g, '').split('/')
  const named = first === '' ? 'overview' : pages.find((page) => page === first)
  const page = rest.length > 0 ? undefined : named
  const query = Object.fromEntries([...new URLSearchParams(search)].filter(([, value]) => value !== ''))
  return { page, id: second === undefined || second === '' ? undefined : decode(second), query }
}

/** The address below the console's own. What is empty is left out. */
export function formatPlace({ page = 'overview', id, query = {} }: Partial<Place>): string {
  const said = Object.entries(query).filter(([, value]) => value !== '')
  const search = new URLSearchParams(said).toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  const path = id === undefined ? page : `${page}/${encodeURIComponent(id)}`
  return `${path === 'overview' ? '' : path}${search === '' ? '' : `?${search}`}`
}

/** A query with some fields changed; undefined takes one away. */
export function changeQuery(query: Query, changes: Readonly<Record<string, string | undefined>>): Query {
  const all = Object.entries({ ...query, ...changes })
  return Object.fromEntries(all.filter((entry): entry is [string, string] => Boolean(entry[1])))
}

/** A field that has several values, in the order in which they were named. */
export function readList(text: string | undefined): string[] {
  return [...new Set((text ?? '').split(',').filter(Boolean))]
}

/** What may stand in an address: of a key or token that somebody has pasted the first characters (ruling U5). */
export function withoutSecrets(text: string): string {
  return text.replace(/(sk-tri-[0-9A-Za-z]{8}|tri-op-[0-9A-Za-z]{6})[0-9A-Za-z]+/g, '$1')
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
