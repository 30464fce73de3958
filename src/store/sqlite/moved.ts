import type { DatabaseSync } from 'node:sqlite'
import { type Moved, sayMoved } from '../files/moved.ts'
import { StoreError } from '../files/store-error.ts'

export function readMoved(db: DatabaseSync): Moved | undefined {
  const row = db.prepare('SELECT to_store, moved_ms FROM moved').get()
  return row && { to: row.to_store as string, movedMs: Number(row.moved_ms) }
}

/** @throws StoreError for a store whose content is elsewhere, or not whole yet. */
export function refuseMoved(db: DatabaseSync): void {
  const moved = readMoved(db)
  if (moved) throw new StoreError(sayMoved(db.location() ?? 'the store', moved))
}

/** The same for whoever only reads: what stands there is of another day, or not all. */
export function noteMoved(db: DatabaseSync, note: (text: string) => void): void {
  const moved = readMoved(db)
  if (moved) note(sayMoved(db.location() ?? 'the store', moved))
}
