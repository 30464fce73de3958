/* The address has the whole state of a page: its name, the range of time, and the filters. */

export const pages = [
  'overview',
  'finance',
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
  'people',
  'sessions',
] as const

export type Page = (typeof pages)[number]

/** @property page undefined if the address names no page */
export type Place = { page: Page | undefined; id: string | undefined; query: Query }

export type Query = Readonly<Record<string, string>>

/**
 * Reads an address.
 * @param path below that of the console, such as `accounts/acct_1`; empty for the overview
 * @param search with or without its question mark
 */
export function readPlace(path: string, search: string): Place {
  const [first = '', second, ...rest] = path.replace(/^\/+|\/+$/g, '').split('/')
  const named = first === '' ? 'overview' : pages.find((page) => page === first)
  const page = rest.length > 0 ? undefined : named
  const query = Object.fromEntries([...new URLSearchParams(search)].filter(([, value]) => value !== ''))
  return { page, id: second === undefined || second === '' ? undefined : decode(second), query }
}

/** Formats the address of a page, below that of the console. Empty fields of the query are left out. */
export function formatPlace({ page = 'overview', id, query = {} }: Partial<Place>): string {
  const said = Object.entries(query).filter(([, value]) => value !== '')
  const search = new URLSearchParams(said).toString().replaceAll('%2C', ',').replaceAll('%3A', ':')
  const path = id === undefined ? page : `${page}/${encodeURIComponent(id)}`
  return `${path === 'overview' ? '' : path}${search === '' ? '' : `?${search}`}`
}

/** Changes fields of a query; undefined removes one. */
export function changeQuery(query: Query, changes: Readonly<Record<string, string | undefined>>): Query {
  const all = Object.entries({ ...query, ...changes })
  return Object.fromEntries(all.filter((entry): entry is [string, string] => Boolean(entry[1])))
}

/** Reads a field with several values, in their order in the address. */
export function readList(text: string | undefined): string[] {
  return [...new Set((text ?? '').split(',').filter(Boolean))]
}

/** Makes a text fit for an address: pasted keys and tokens are cut to their first characters (ruling U5). */
export function withoutSecrets(text: string): string {
  return text.replace(/(sk-tri-[0-9A-Za-z]{8}|tri-(?:op|at|rt)-[0-9A-Za-z]{6})[0-9A-Za-z]+/g, '$1')
}

/** Returns the search that a typed text asks for. */
export function searchOf(typed: string): string {
  return withoutSecrets(typed.trim())
}

/**
 * Returns the text of a search field when its search is in the address. A typed text that asks for this search stays,
 * so that a blank before the next word is not lost.
 */
export function searchText(typed: string, said: string): string {
  return searchOf(typed) === said && withoutSecrets(typed) === typed ? typed : said
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
