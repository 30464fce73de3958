import { DatabaseSync } from 'node:sqlite'
import { patienceMs } from './waiting.ts'

/**
 * Locks a store against all writers, as another process might, until ROLLBACK or close. It waits for a running write.
 */
export function holdStore(path: string): DatabaseSync {
  const holder = new DatabaseSync(path, { timeout: patienceMs })
  holder.exec('BEGIN IMMEDIATE')
  return holder
}
