import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDecodable, Secret } from './values.ts'

/** The place of the store with accounts and ledger: a file of one server, or a PostgreSQL database (ruling X7). */
export type StorePlace =
  /** The file's absolute path. */
  | { engine: 'sqlite'; path: string; shown: string }
  /** `shown` is the URL without its password, for messages and the log (ruling X13). */
  | { engine: 'postgres'; url: Secret; shown: string }

/** Whether a setting of the store is the URL of a database and not the path of a file. */
export function isDatabaseUrl(store: string): boolean {
  return /^postgres(ql)?:\/\//i.test(store)
}

/** Whether a setting of the store is a URL of any kind. */
export function hasScheme(store: string): boolean {
  return /^[a-z][a-z0-9+.-]*:\/\//i.test(store)
}

/** Reads a setting of the store. @param folder the base of a relative path */
export function readStorePlace(store: string, folder: string): StorePlace {
  if (isDatabaseUrl(store)) return { engine: 'postgres', url: new Secret(store), shown: showUrl(store) }
  const path = resolve(folder, store)
  return { engine: 'sqlite', path, shown: path }
}

const form = 'postgres://user:password@host:5432/database'

const noDatabase = `must name a database behind the host, and nothing else there, such as ${form}`

/** The parameters that a URL may have. They define the connection; triwire sets the behaviour of sessions itself. */
const parameters = ['host', 'port', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat']

/**
 * Returns what to change in an invalid store, or undefined. It never quotes the text, which may contain a password. A
 * password with `/`, `?`, `#` or `@` is refused, because a part of it would be shown as host or database.
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

/** Formats a database's URL without its password, and with the parameters that locate it (ruling X13). */
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

/**
 * Stands for a missing host, because `URL` requires a host after a user name. The real host is then in the parameter
 * `host` or in an environment variable.
 */
const noHost = 'no-host.invalid'

function parseUrl(store: string): URL | null {
  const url = URL.parse(store.replace('@/', `@${noHost}/`))
  // Without this check, an invalid percent-escape would be noticed only when the database is opened.
  for (const part of [url?.username, url?.password, url?.hostname, url?.pathname])
    if (!isDecodable(part ?? '')) return null
  return url
}

/** @property earlierStore the default store of releases before 0.2.0; set if today's default is another place */
type StoreChoice = { store: StorePlace; earlierStore: string | undefined }

/**
 * Before 0.2.0, the default store was beside the configuration file; now it is in the working folder. If there is a
 * store only at the old place, the operator must name the one to use (ruling X8).
 * @returns a message with both places, or undefined
 */
export function earlierStoreMistake({ store, earlierStore }: StoreChoice): string | undefined {
  if (store.engine !== 'sqlite' || earlierStore === undefined) return undefined
  if (existsSync(store.path) || !existsSync(earlierStore)) return undefined
  return `There is a store at ${earlierStore}, beside the configuration, where triwire kept it before 0.2.0; now the default is ${store.path}, in the working folder, and there is none: name the one that is meant with --store, TRIWIRE_STORE, or \`store\` in the configuration`
}
