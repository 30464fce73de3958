import type { Books } from '../accounts/books.ts'
import type { StorePlace } from '../config/config.ts'

/** The books of a store, until they are closed. */
export type OpenBooks = { books: Books; close(): Promise<void> }

export type OpenBooksOptions = {
  /** SQLite: how long a statement waits for another process, in ms. */
  busyMs?: number
  /** False where a store that is not there is an error. */
  create?: boolean
}

/**
 * The books of a store, whichever its engine. What an engine needs is loaded with it: who has a file needs no driver of a
 * database (ruling X6).
 * @throws StoreError
 */
export async function openBooks(store: StorePlace, options: OpenBooksOptions = {}): Promise<OpenBooks> {
  const { createBooks } = await import('../accounts/books.ts')
  if (store.engine === 'postgres') {
    const { openPostgresBooks } = await import('./postgres/books.ts')
    const { create = true } = options
    const opened = await openPostgresBooks(store.url.reveal(), { shown: store.shown, create })
    return { books: createBooks(opened, Date.now), close: opened.close }
  }
  const { openStore } = await import('./sqlite/store.ts')
  const opened = openStore(store.path, options)
  return { books: createBooks(opened, Date.now), close: async () => opened.close() }
}
