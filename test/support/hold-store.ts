import { DatabaseSync } from 'node:sqlite'
import { patienceMs } from './waiting.ts'

/**
 * Locks a store against all writers, as another process might: until ROLLBACK, or until it is closed. A write that is
 * under way ends first.
 */
export function holdStore(path: string): DatabaseSync {
  const holder = new DatabaseSync(path, { timeout: patienceMs })
  holder.exec('BEGIN IMMEDIATE')
  return holder
}
