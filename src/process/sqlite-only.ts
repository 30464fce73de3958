import type { StorePlace } from '../config/config.ts'
import { StoreError } from '../store/files/store-error.ts'

/** The file of a store that a server can serve from. @throws StoreError for a database: that is still to come. */
export function sqlitePath(store: StorePlace): string {
  if (store.engine === 'sqlite') return store.path
  throw new StoreError(`${store.shown}: no server serves from PostgreSQL yet`)
}
