import type { Address, Config } from '../config/config.ts'
import { ConfigError } from '../config/problem.ts'
import { formatAddress } from '../config/values.ts'
import { cureOf, explainMaking, StoreError } from '../store/files/store-error.ts'
import { type Demo, demoCure, sayDemo } from './demo.ts'

export type Started = {
  /** The origin (scheme, host and port) for clients. */
  base: string
  admin: string
  config: Config
  /** Whether this start has made the store. */
  isStoreNew: boolean
  /** The demo account. Only the built-in catalog has one. */
  demo: Demo | undefined
  /** Whether requests of the demo account are refused. */
  isDemoBarred: boolean
  /** The address of the console. It contains the token of a sign-in link, if one was made. */
  consoleUrl?: string | undefined
}

/** Returns the origins of a server's listeners: the one for clients, and the one for operators. */
export function originsOf({ tls, adminTls }: Config, listening: { address: Address; adminAddress: Address }) {
  return {
    base: `${tls ? 'https' : 'http'}://${formatAddress(listening.address)}`,
    admin: `${adminTls ? 'https' : 'http'}://${formatAddress(listening.adminAddress)}`,
  }
}

/**
 * Returns the text that stdout gets at the start: addresses, configuration, store, accounts, and what to do first.
 * @param accounts the number of accounts; undefined if the store did not return it
 */
export function sayStart(started: Started, accounts: number | undefined): string {
  const { base, admin, config, isStoreNew, demo, isDemoBarred, consoleUrl } = started
  const facts = [
    `configuration ${config.source ?? 'none'}`,
    `store ${config.store.shown}${isStoreNew ? ' (new)' : ''}`,
    `models ${config.catalog.entries.length}`,
    `accounts ${accounts ?? 'not known while the store cannot be reached'}`,
  ]
  return [
    `triwire listens on ${base} (health and readiness on ${admin})`,
    ...(consoleUrl ? [sayConsole(consoleUrl)] : []),
    facts.join(', '),
    ...(accounts === 0
      ? ['No account yet: triwire account create NAME --credit 10, then triwire key create NAME.']
      : []),
    ...(isDemoBarred ? [demoCure] : []),
    ...(demo ? [sayDemo(demo, base)] : []),
  ].join('\n')
}

function sayConsole(url: string): string {
  return `console ${url}${url.includes('#') ? ' (signs in one browser, once, within 10 minutes)' : ''}`
}

/** Returns the facts of the start for programs, as one line of JSON. */
export function startData(
  { base, admin, config, isStoreNew, demo, consoleUrl }: Started,
  accounts: number | undefined,
): string {
  return JSON.stringify({
    url: base,
    admin_url: admin,
    console_url: consoleUrl ?? null,
    config: config.file ?? null,
    store: config.store.shown,
    store_is_new: isStoreNew,
    models: config.catalog.entries.length,
    accounts: accounts ?? null,
    demo_key: demo?.key ?? null,
  })
}

type SystemError = NodeJS.ErrnoException & { address?: string; port?: number }

/** Says why a listener could not be opened, and what to do. The keys are error codes of the system. */
const listenCures: Readonly<Record<string, (where: string) => string>> = {
  EADDRINUSE: (where) =>
    `address already in use ${where}: stop what listens there, or choose another address with --listen or --admin-listen`,
  EADDRNOTAVAIL: (where) =>
    `${where} is not an address of this machine: choose 127.0.0.1, 0.0.0.0 (all of them) or one of its own with --listen or --admin-listen`,
  EACCES: (where) =>
    `${where} may not be listened on: ports below 1024 are the system's, choose a higher one with --listen`,
}

const noSuchHost = (where: string) =>
  `${where} does not resolve to an address: check --listen and --admin-listen, or write the address itself`

/** Explains to the operator why a start failed. An unknown error is a bug and is shown with its stack. */
export function explainStart(error: unknown): string {
  if (error instanceof StoreError || error instanceof ConfigError) return error.message
  const { code = '', syscall = '', message, stack, address, port } = error as SystemError
  if (/^E(NOTFOUND|AI_)/.test(code)) return noSuchHost((error as { hostname?: string }).hostname ?? message)
  if (syscall === 'listen' || syscall === 'bind') {
    // If the operator asked for any free port, the error names no port.
    const where = `${address?.includes(':') ? `[${address}]` : address}:${port ?? 0}`
    return (
      listenCures[code]?.(where) ?? `${where} cannot be listened on (${code}): choose another address with --listen`
    )
  }
  // Errors of SQLite, and of the disk that it uses, name no file. So the message says "the store".
  const cure = cureOf(error)
  return explainMaking(error) ?? (cure && `the store ${cure} (choose its place with --store)`) ?? stack ?? message
}
