import { openDatabase } from './database.ts'
import { explainDatabase } from './explain.ts'
import { migrate, refuseEmpty } from './migrate.ts'

/** A server as the database knows it. Times in Unix milliseconds of the database's clock. */
export type ReplicaRow = {
  id: number
  name: string
  version: string
  config: string
  startedMs: number
  seenMs: number
  /** The moment at which it left, or was taken for gone because nobody had seen it for so long. */
  leftMs: number | undefined
}

const patienceMs = 5_000

/** All that are remembered, the first to start first. @throws StoreError in words for the person at the command line. */
export async function listReplicas(url: string, shown: string): Promise<ReplicaRow[]> {
  const database = openDatabase({ url, max: 1, patienceMs, purpose: 'command' })
  try {
    await refuseEmpty(database, shown)
    await migrate(database, shown, [])
    const rows = await database.query(
      `SELECT r.id, r.name, r.version, r.config_digest, r.started_ms, r.left_ms,
              greatest(r.seen_ms, (SELECT p.seen_ms FROM triwire.present p WHERE p.replica = r.id)) AS seen_ms
       FROM triwire.replicas r ORDER BY r.id`,
    )
    return rows.map((row) => ({
      id: Number(row['id']),
      name: row['name'] as string,
      version: row['version'] as string,
      config: row['config_digest'] as string,
      startedMs: Number(row['started_ms']),
      seenMs: Number(row['seen_ms']),
      leftMs: row['left_ms'] === null ? undefined : Number(row['left_ms']),
    }))
  } catch (error) {
    throw explainDatabase(error, shown)
  } finally {
    await database.close()
  }
}
