import { StoreSilent } from '../accounts/account.ts'
import type { Books } from '../accounts/books.ts'
import type { Zone } from '../accounts/calendar.ts'
import type { Act } from '../accounts/trail.ts'
import type { StorePlace } from '../config/config.ts'
import { sayMoved } from './files/moved.ts'
import { StoreError } from './files/store-error.ts'

/** The books of a store, until they are closed. */
export type OpenBooks = { books: Books; close(): Promise<void> }

type OpenBooksOptions = {
  /** SQLite: how long a statement waits for another process, in ms. */
  busyMs?: number
  /** False where it is an error that there is no store yet. */
  create?: boolean
  /** The reporting zone: in whose days budgets are spent. */
  zone?: Zone | undefined
  /** For what no server may meet: a file is locked against them, and a database asked with patience. */
  isAlone?: boolean
  /**
   * Gets news about the store: it was moved, is no whole copy, or its file was just brought up to date.
   */
  note?: ((text: string) => void) | undefined
}

/** The time that a statement of `isAlone` may take in a database, in ms: it reads all figures. */
const aloneMs = 600_000

/**
 * The books of a store, whichever its engine. What an engine needs is loaded with it: who has a file needs no driver of a
 * database (ruling X6).
 * @throws StoreError where it cannot be used; with `isAlone` also where a server has the file.
 */
export async function openBooks(store: StorePlace, options: OpenBooksOptions = {}): Promise<OpenBooks> {
  if (store.engine === 'postgres') return openDatabaseBooks(store, options)
  const { createBooks } = await import('../accounts/books.ts')
  const { openStore } = await import('./sqlite/store.ts')
  const { createCalendar, utc } = await import('../accounts/calendar.ts')
  const { lockIfThere } = await import('./files/lock.ts')
  const unlock = options.isAlone ? lockIfThere(store.path) : undefined
  try {
    const opened = openStore(store.path, { ...options, isServer: unlock !== undefined })
    const books = createBooks(opened, Date.now, undefined, createCalendar(options.zone ?? utc))
    return {
      books,
      async close() {
        opened.close()
        unlock?.()
      },
    }
  } catch (error) {
    unlock?.()
    throw error
  }
}

/**
 * The same for a server, in which nothing may block. SQLite works in threads of its own, and reports of many rows are made
 * in one. Calls that cannot be answered throw `StoreSilent`.
 * @param nowMs Unix milliseconds; the database's clock is its own
 */
export async function openServingBooks(store: StorePlace, nowMs: () => number, zone?: Zone): Promise<OpenBooks> {
  if (store.engine === 'sqlite') {
    const { openThreadedBooks } = await import('./sqlite/books-thread.ts')
    return openThreadedBooks(store.path, nowMs, zone)
  }
  const silence = (error: unknown) =>
    error instanceof StoreError ? new StoreSilent(error.message, { cause: error }) : error
  try {
    const { books, close } = await openDatabaseBooks(store, { create: false, zone }, nowMs)
    const { openBooksThread, slowMethods } = await import('./files/books-thread.ts')
    const worker = new URL('./postgres/books-worker.ts', import.meta.url)
    const slow = openBooksThread(worker, 'reports', { url: store.url.reveal(), shown: store.shown })
    const withReports = (books: Books, act: Act): Books => {
      const reports = slow.books(act, nowMs)
      const own = Object.fromEntries(slowMethods.map((method) => [method, reports[method]]))
      return { ...books, ...own, as: (act) => withReports(books.as(act), act) }
    }
    return {
      books: withReports(explained(books, silence), { actor: 'triwire' }),
      close: async () => void (await Promise.all([close(), slow.close()])),
    }
  } catch (error) {
    throw silence(error)
  }
}

async function openDatabaseBooks(
  { url, shown }: Extract<StorePlace, { engine: 'postgres' }>,
  { create = true, zone, isAlone = false, note }: OpenBooksOptions,
  nowMs: () => number = Date.now,
): Promise<OpenBooks> {
  const { createBooks } = await import('../accounts/books.ts')
  const { openPostgresBooks } = await import('./postgres/books.ts')
  const { explainDatabase } = await import('./postgres/explain.ts')
  const { createCalendar, utc } = await import('../accounts/calendar.ts')
  const opened = await openPostgresBooks(url.reveal(), { shown, create, statementMs: isAlone ? aloneMs : undefined })
  try {
    const moved = note && (await opened.readMoved())
    if (moved) note(sayMoved(shown, moved))
  } catch (error) {
    await opened.close().catch(() => {})
    throw explainDatabase(error, shown)
  }
  const calendar = createCalendar(zone ?? utc)
  const books = explained(createBooks(opened, nowMs, undefined, calendar), (error) => explainDatabase(error, shown))
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
