import type { Introduction, ServerStore, ServingOptions } from '../accounts/server-store.ts'
import type { StorePlace } from '../config/config.ts'

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
