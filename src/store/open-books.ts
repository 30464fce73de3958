import { StoreSilent } from '../accounts/account.ts'
import type { Books } from '../accounts/books.ts'
import type { StorePlace } from '../config/config.ts'
import { StoreError } from './files/store-error.ts'

/** The books of a store, until they are closed. */
export type OpenBooks = { books: Books; close(): Promise<void> }

export type OpenBooksOptions = {
  /** SQLite: how long a statement waits for another process, in ms. */
  busyMs?: number
  /** False where it is an error that there is no store yet. */
  create?: boolean
}

/**
 * The books of a store, whichever its engine. What an engine needs is loaded with it: who has a file needs no driver of a
 * database (ruling X6).
 * @throws StoreError
 */
export async function openBooks(store: StorePlace, options: OpenBooksOptions = {}): Promise<OpenBooks> {
  if (store.engine === 'postgres') return openDatabaseBooks(store, options)
  const { createBooks } = await import('../accounts/books.ts')
  const { openStore } = await import('./sqlite/store.ts')
  const opened = openStore(store.path, options)
  return { books: createBooks(opened, Date.now), close: async () => opened.close() }
}

/**
 * The same for a server, which nothing may block: SQLite works in a thread of its own. What cannot be asked is `StoreSilent`.
 * @param nowMs Unix milliseconds; the database's clock is its own
 */
export async function openServingBooks(store: StorePlace, nowMs: () => number): Promise<OpenBooks> {
  if (store.engine === 'sqlite') {
    const { openBooksThread } = await import('./sqlite/books-thread.ts')
    return openBooksThread(store.path, nowMs)
  }
  const silence = (error: unknown) =>
    error instanceof StoreError ? new StoreSilent(error.message, { cause: error }) : error
  try {
    const { books, close } = await openDatabaseBooks(store, { create: false }, nowMs)
    return { books: explained(books, silence), close }
  } catch (error) {
    throw silence(error)
  }
}

async function openDatabaseBooks(
  { url, shown }: Extract<StorePlace, { engine: 'postgres' }>,
  { create = true }: OpenBooksOptions,
  nowMs: () => number = Date.now,
): Promise<OpenBooks> {
  const { createBooks } = await import('../accounts/books.ts')
  const { openPostgresBooks } = await import('./postgres/books.ts')
  const { explainDatabase } = await import('./postgres/explain.ts')
  const opened = await openPostgresBooks(url.reveal(), { shown, create })
  const books = explained(createBooks(opened, nowMs), (error) => explainDatabase(error, shown))
  return { books, close: () => opened.close() }
}

/** The same books, whose failures are explained, however deep below them the words for it are. */
function explained(books: Books, explain: (error: unknown) => unknown): Books {
  const methods = Object.entries(books).map(([name, method]) => [
    name,
    name === 'eachEntry' ? explainEach(method) : explainOnce(method),
  ])
  return { ...(Object.fromEntries(methods) as Books), as: (act) => explained(books.as(act), explain) }

  function explainOnce(method: (...args: never[]) => Promise<unknown>) {
    return async (...args: never[]) => {
      try {
        return await method(...args)
      } catch (error) {
        throw explain(error)
      }
    }
  }

  function explainEach(method: (...args: never[]) => AsyncIterable<unknown>) {
    return async function* (...args: never[]) {
      try {
        yield* method(...args)
      } catch (error) {
        throw explain(error)
      }
    }
  }
}
