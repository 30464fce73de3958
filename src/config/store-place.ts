import { resolve } from 'node:path'
import { Secret, type StorePlace } from './config.ts'

/** Whether a store's name is a database's URL and no file's path. */
export function isDatabaseUrl(store: string): boolean {
  return /^postgres(ql)?:\/\//i.test(store)
}

/** Whether it is a URL, of whatever kind. */
export function hasScheme(store: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(store)
}

/** @param folder what the path of a file is relative to. */
export function readStorePlace(store: string, folder: string): StorePlace {
  if (isDatabaseUrl(store)) return { engine: 'postgres', url: new Secret(store), shown: showUrl(store) }
  const path = resolve(folder, store)
  return { engine: 'sqlite', path, shown: path }
}

const form = 'postgres://user:password@host:5432/database'

const noDatabase = `must name a database behind the host, and nothing else there, such as ${form}`

/** What a URL may say of how the database is reached; how a session behaves is for us to say. */
const parameters = ['host', 'port', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat']

/**
 * What is right where the store's name is wrong, without a word of it: it may hold a password. A password with a `/`, `?`, `#`
 * or `@` in it would end somewhere else than it is meant to, and a part of it would be shown for a host or a database.
 */
export function storeMistake(store: string): string | undefined {
  if (store === '') return 'must be the path of a file, or the URL of a database in PostgreSQL'
  if (!isDatabaseUrl(store)) {
    if (!hasScheme(store)) return undefined
    return `must be the path of a file, or a URL of PostgreSQL such as ${form}`
  }
  if (!/^\w+:\/\/[^/]*\//.test(store)) return noDatabase
  const url = parseUrl(store)
  const isEncoded = /^\w+:\/\/(?:[^@/?#\s\\]*@)?[^@/?#\s\\]*\/[^@#\s\\]*$/.test(store)
  if (!url || !isEncoded)
    return `must be a URL such as ${form}; in a user and a password write @ as %40, / as %2F, ? as %3F, # as %23, % as %25`
  if (!/^\/[^/]+$/.test(url.pathname)) return noDatabase
  const unknown = [...url.searchParams.keys()].find((name) => !parameters.includes(name))
  if (unknown !== undefined) return `must have no parameters behind its \`?\` but ${parameters.join(', ')}`
  return undefined
}

/** A database's URL as it may be shown: without its password (ruling X13), and of its parameters what tells where it is. */
function showUrl(store: string): string {
  const url = parseUrl(store)
  if (!url || storeMistake(store)) return 'postgres://…'
  const told = ['host', 'port', 'sslmode'].flatMap((name) => {
    const value = url.searchParams.get(name)
    return value === null ? [] : [`${name}=${encodeURI(value)}`]
  })
  const user = url.username ? `${url.username}@` : ''
  const host = url.hostname === noHost ? '' : url.host
  return `postgres://${user}${host}${url.pathname}${told.length ? `?${told.join('&')}` : ''}`
}

/** Stands for the host that is left out behind a user: for the database's own variables, or a parameter, to say. */
const noHost = 'no-host.invalid'

function parseUrl(store: string): URL | null {
  const url = URL.parse(store.replace('@/', `@${noHost}/`))
  // A broken escape would only be found by who opens the database.
  for (const part of [url?.username, url?.password, url?.hostname, url?.pathname])
    if (!isDecodable(part ?? '')) return null
  return url
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}
