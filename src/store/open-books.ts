import type { Books } from '../accounts/books.ts'
import type { StorePlace } from '../config/config.ts'
import { StoreError } from './files/store-error.ts'

/** The books of a store, until they are closed. */
export type OpenBooks = { books: Books; close(): Promise<void> }

export type OpenBooksOptions = {
  /** SQLite: how long a statement waits for another process, in ms. */
  busyMs?: number
  /** SQLite: false where a missing file is an error. */
  create?: boolean
}

/**
 * The books of a store, whichever its engine. What an engine needs is loaded with it: who has a file needs no driver of a
 * database (ruling X6).
 * @throws StoreError
 */
export async function openBooks(store: StorePlace, options: OpenBooksOptions = {}): Promise<OpenBooks> {
  if (store.engine === 'postgres') throw new StoreError(`${store.shown}: PostgreSQL cannot be used yet`)
  const { createBooks } = await import('../accounts/books.ts')
  const { openStore } = await import('./sqlite/store.ts')
  const opened = openStore(store.path, options)
  return { books: createBooks(opened, Date.now), close: async () => opened.close() }
}

/**
 * The same for a server, which nothing may block: SQLite works in a thread of its own.
 * @param nowMs Unix milliseconds
 */
export async function openServingBooks(store: StorePlace, nowMs: () => number): Promise<OpenBooks> {
  if (store.engine === 'postgres') return openBooks(store)
  const { openBooksThread } = await import('./sqlite/books-thread.ts')
  return openBooksThread(store.path, nowMs)
}
