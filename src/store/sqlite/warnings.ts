import type { DatabaseSync } from 'node:sqlite'
import type { NewWarning, StoredWarning, Watched } from '../../accounts/warnings.ts'
import type { Statement } from '../sql/dialect.ts'
import {
  readWarning,
  readWatched,
  selectWatched,
  settleWarning,
  takeWarnings,
  untoldMs,
  watchStatements,
} from '../sql/warnings.ts'
import { dialect } from './listing.ts'
import { transact } from './open.ts'

/** Warnings that wait to be told. */
export function createWarnings(db: DatabaseSync, nowMs: () => number) {
  const watched = db.prepare(selectWatched('main'))
  const insert = db.prepare(
    'INSERT INTO outbox (id, event, data, at_ms, next_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
  )
  const removeOld = db.prepare('DELETE FROM outbox WHERE at_ms < ?')
  const isDue = db.prepare('SELECT 1 FROM outbox WHERE next_ms <= ? LIMIT 1')
  return { readWatched: () => readWatched(watched.all()), put, watch, takeWarnings: take, settleWarning: settle }

  /** In the transaction of the entries that they are about. */
  function put(warnings: readonly NewWarning[], atMs: number): void {
    if (warnings.length === 0) return
    // Where nobody tells them any more they do not pile up.
    removeOld.run(atMs - untoldMs)
    for (const { id, event, data } of warnings) insert.run(id, event, JSON.stringify(data), atMs, atMs)
  }

  function watch(what: Watched): void {
    transact(db, () => {
      for (const one of watchStatements(dialect, what)) run(one)
    })
  }

  /** Without a write where there is nothing: it is asked often. */
  function take(leaseMs: number, limit: number): StoredWarning[] {
    const now = nowMs()
    if (!isDue.get(now)) return []
    const { text, values } = takeWarnings(dialect, `${now}`, leaseMs, limit)
    return transact(db, () =>
      db
        .prepare(text)
        .all(...values)
        .map(readWarning),
    )
  }

  function settle(id: string, next: { tries: string; afterMs: number } | undefined): void {
    run(settleWarning(dialect, `${nowMs()}`, id, next))
  }

  function run({ text, values }: Statement): void {
    db.prepare(text).run(...values)
  }
}
