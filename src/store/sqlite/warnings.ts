import type { DatabaseSync } from 'node:sqlite'
import type { NewWarning } from '../../accounts/warnings.ts'
import { readWatched, selectWatched, untoldMs } from '../sql/warnings.ts'

/** Writes warnings that wait to be sent. */
export function createOutbox(db: DatabaseSync) {
  const watched = db.prepare(selectWatched('main'))
  const insert = db.prepare(
    'INSERT INTO outbox (id, event, data, at_ms, next_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
  )
  const removeOld = db.prepare('DELETE FROM outbox WHERE at_ms < ?')
  return { readWatched: () => readWatched(watched.all()), put }

  /** In the transaction of the entries that they are about. */
  function put(warnings: readonly NewWarning[], atMs: number): void {
    if (warnings.length === 0) return
    // Warnings that nobody tells any more do not pile up.
    removeOld.run(atMs - untoldMs)
    for (const { id, event, data } of warnings) insert.run(id, event, JSON.stringify(data), atMs, atMs)
  }
}
