import type { StorePlace } from '../config/config.ts'
import { StoreError } from './files/store-error.ts'
import type { ReplicaRow } from './postgres/list-replicas.ts'

/** The servers that share a store. @throws StoreError for a file, which one server has alone (ruling X7). */
export async function readReplicas(store: StorePlace): Promise<ReplicaRow[]> {
  if (store.engine === 'sqlite')
    throw new StoreError(
      `${store.shown} is a SQLite file, which one server serves alone: replicas share a store in PostgreSQL (docs/scaling.md)`,
    )
  const { listReplicas } = await import('./postgres/list-replicas.ts')
  return listReplicas(store.url.reveal(), store.shown)
}
