import type { DatabaseSync } from 'node:sqlite'
import { sayMoved } from '../files/moved.ts'
import { StoreError } from '../files/store-error.ts'
import { readMoved } from '../sql/head.ts'
import { createDialect, createRun } from './run.ts'

/** @throws StoreError for a store whose content is elsewhere, or not whole yet. */
export function refuseMoved(db: DatabaseSync): void {
  const moved = createRun(db)(readMoved(createDialect()))
  if (moved) throw new StoreError(sayMoved(db.location() ?? 'the store', moved))
}

/** The same for a caller that only reads: the content is of another day, or not whole. */
export function noteMoved(db: DatabaseSync, note: (text: string) => void): void {
  const moved = createRun(db)(readMoved(createDialect()))
  if (moved) note(sayMoved(db.location() ?? 'the store', moved))
}
