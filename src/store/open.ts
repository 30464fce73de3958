import type { AccountLook } from '../accounts/planless.ts'
import type { Introduction, ServerStore, ServingOptions } from '../accounts/server-store.ts'
import type { Config, StorePlace } from '../config/config.ts'
import { refuseNoRoom } from './files/place.ts'
import { StoreError } from './files/store-error.ts'
import type { ReplicaRow } from './postgres/replicas.ts'

export type OpenStoreOptions = ServingOptions & {
  /** The folder of the spool and the lock, for a store that is not a file. */
  stateDir: string
  /**
   * The folder with the spools to post at the start (ruling X13). A spool has debits that are not posted yet. Spools
   * that a server uses are left alone. Default: `stateDir`.
   */
  spoolsDir?: string | undefined
  /** Returns the facts that this server reports to other servers of the same store. */
  introduce: () => Introduction
}

/**
 * Loads the code of a store's engine. A server with a store in a file needs no database driver (ruling X6).
 * @returns a function that opens the store. The function throws a StoreError if the store cannot be used, or if another
 * server uses it
 */
export async function prepareServerStore(
  store: StorePlace,
): Promise<(options: OpenStoreOptions) => Promise<ServerStore>> {
  if (store.engine === 'sqlite') {
    const { openLedger } = await import('./sqlite/ledger-client.ts')
    return (options) => openLedger({ path: store.path, ...options })
  }
  const { openPostgresStore } = await import('./postgres/open.ts')
  const { url, shown } = store
  return ({ introduce, ...options }) =>
    openPostgresStore({ url: url.reveal(), shown, introduction: introduce(), ...options })
}

/**
 * Lists the servers that share a store.
 * @throws StoreError for a file, because only one server can use it (ruling X7)
 */
export async function readReplicas(store: StorePlace): Promise<ReplicaRow[]> {
  if (store.engine === 'sqlite')
    throw new StoreError(
      `${store.shown} is a SQLite file, which one server serves alone: replicas share a store in PostgreSQL (docs/scaling.md)`,
    )
  const { listReplicas } = await import('./postgres/replicas.ts')
  return listReplicas(store.url.reveal(), store.shown)
}

/**
 * Explains why a server would not start with this store, and names the configuration key that causes this. Undefined if
 * the server would start. For PostgreSQL, only the server's folder is checked.
 */
export async function startMistake({
  store,
  stateDir,
  reporting,
}: Pick<Config, 'store' | 'stateDir' | 'reporting'>): Promise<{ path: string; message: string } | undefined> {
  try {
    if (store.engine === 'sqlite') {
      const { lookAt } = await import('./sqlite/look-at.ts')
      lookAt(store.path, reporting.timeZone)
    } else refuseNoRoom(stateDir, 'state_dir')
    return undefined
  } catch (error) {
    if (error instanceof StoreError)
      return { path: store.engine === 'sqlite' ? 'store' : 'state_dir', message: error.message }
    throw error
  }
}

/**
 * Reads accounts of a store, and writes nothing to it. Undefined for an older or missing store.
 * @throws the error of a database that does not answer
 */
export async function lookAtAccounts<T>(store: StorePlace, look: AccountLook<T>): Promise<T | undefined> {
  if (store.engine === 'sqlite') return (await import('./sqlite/look-at.ts')).lookAtAccounts(store.path, look)
  return (await import('./postgres/look-at.ts')).lookAtAccounts(store.url.reveal(), look)
}

/**
 * Counts rows of kinds that release 0.2 cannot read, because a later release added them. Undefined if the store is
 * missing or not upgraded yet.
 * @throws as `lookAtAccounts`
 */
export async function lookForNewer(store: StorePlace) {
  if (store.engine === 'sqlite') return (await import('./sqlite/look-at.ts')).lookForNewer(store.path)
  return (await import('./postgres/look-at.ts')).lookForNewer(store.url.reveal())
}
