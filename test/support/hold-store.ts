import { DatabaseSync } from 'node:sqlite'
import { patienceMs } from './waiting.ts'

/**
 * Another process, as it were, that lets nobody write to a store: until ROLLBACK, or until it is closed. Whoever writes at that
 * moment comes to his end first.
 */
export function holdStore(path: string): DatabaseSync {
  const holder = new DatabaseSync(path, { timeout: patienceMs })
  holder.exec('BEGIN IMMEDIATE')
  return holder
}
