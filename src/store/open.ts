import type { AccountRow, NewerContent } from '../accounts/book-rows.ts'
import type { Introduction, ServerStore, ServingOptions } from '../accounts/server-store.ts'
import type { Config, StorePlace } from '../config/config.ts'
import { refuseNoRoom } from './files/place.ts'
import { StoreError } from './files/store-error.ts'
import type { ReplicaRow } from './postgres/replicas.ts'

export type OpenStoreOptions = ServingOptions & {
  /** For spool and lock, where the store is no file beside which they stand. */
  stateDir: string
  /** Spools below it that no server has are posted at the start too (ruling X13). Default: `stateDir`. */
  spoolsDir?: string | undefined
  /** Asked where other servers may have the same store. */
  introduce: () => Introduction
}

/**
 * A server's side of its store, whichever its engine. What an engine needs is loaded with it: who has a file needs no
 * driver of a database (ruling X6).
 * @returns what opens it: all that it can do without waiting is done when that returns. It throws a StoreError where the
 * store cannot be used, or another server has it.
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

/** The servers that share a store. @throws StoreError for a file, which one server has alone (ruling X7). */
export async function readReplicas(store: StorePlace): Promise<ReplicaRow[]> {
  if (store.engine === 'sqlite')
    throw new StoreError(
      `${store.shown} is a SQLite file, which one server serves alone: replicas share a store in PostgreSQL (docs/scaling.md)`,
    )
  const { listReplicas } = await import('./postgres/replicas.ts')
  return listReplicas(store.url.reveal(), store.shown)
}

/**
 * A reason why a server would not start on the store, in words, with the key; undefined if it would start. The database is
 * not asked, only the server's folder.
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

/** The accounts that have another plan than these, a few of them, before a start. @throws the error of a database that does not answer */
export async function lookForPlanless(store: StorePlace, plans: readonly string[]): Promise<AccountRow[]> {
  if (store.engine === 'sqlite') return (await import('./sqlite/look-at.ts')).lookForPlanless(store.path, plans)
  return (await import('./postgres/look-at.ts')).lookForPlanless(store.url.reveal(), plans)
}

/** Counts rows of a store that the second release does not know. Undefined: it is older, or missing. @throws as `lookForPlanless` */
export async function lookForNewer(store: StorePlace): Promise<NewerContent | undefined> {
  if (store.engine === 'sqlite') return (await import('./sqlite/look-at.ts')).lookForNewer(store.path)
  return (await import('./postgres/look-at.ts')).lookForNewer(store.url.reveal())
}
