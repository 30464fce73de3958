import { StoreSilent } from '../accounts/account.ts'
import type { Books } from '../accounts/books.ts'
import type { Zone } from '../accounts/calendar.ts'
import type { Act } from '../accounts/trail.ts'
import type { StorePlace } from '../config/config.ts'
import { explainCalls, explainError, StoreError, sayMoved } from './files/store-error.ts'
import type { BooksPlace, BooksThread } from './serving/books-thread.ts'

type DatabasePlace = Extract<StorePlace, { engine: 'postgres' }>

/** The books of a store, and how to close them. */
export type OpenBooks = { books: Books; close(): Promise<void> }

type OpenBooksOptions = {
  /** SQLite: how long a statement waits for another process, in ms. */
  busyMs?: number
  /** Whether a missing store may be created. If false, a missing store is an error. */
  create?: boolean
  /** Set for work while no server runs. This locks a store in a file, and gives statements of a database more time. */
  isAlone?: boolean
  /** Set for work that sums all figures for reports anew. This gives statements of a database more time. */
  isLong?: boolean
  /** Receives messages about the store, for example that it was just upgraded, or was moved to another place. */
  note?: ((text: string) => void) | undefined
}

/** The longest time of a statement with `isAlone` or `isLong`, in ms. It may read or delete all figures for reports. */
const longMs = 600_000

/**
 * Opens the books of a store of either engine. The code of an engine is loaded with its store, so a store in a file
 * needs no database driver (ruling X6).
 * @throws StoreError if the store cannot be used; with `isAlone` also if a server uses the file
 */
export async function openBooks(store: StorePlace, options: OpenBooksOptions = {}): Promise<OpenBooks> {
  if (store.engine === 'postgres') return openDatabaseBooks(store, options)
  const { createBooks } = await import('../accounts/books.ts')
  const { openStore } = await import('./sqlite/store.ts')
  const { lockIfThere } = await import('./files/lock.ts')
  const unlock = options.isAlone ? lockIfThere(store.path) : undefined
  try {
    const opened = openStore(store.path, { ...options, isServer: unlock !== undefined })
    return {
      books: createBooks(
        explainCalls(opened, (error) => explainError(store.path, error)),
        Date.now,
      ),
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
 * Opens the books for a server, whose thread must not block. Calls of SQLite run in one thread of their own, and long
 * reports in another one. A call that cannot be answered throws `StoreSilent`.
 * @param nowMs Unix milliseconds; PostgreSQL uses its own clock
 */
export async function openServingBooks(store: StorePlace, nowMs: () => number, zone?: Zone): Promise<OpenBooks> {
  const { eachEntry } = await import('../accounts/books.ts')
  const { openBooksThread, slowMethods } = await import('./serving/books-thread.ts')
  const place: BooksPlace =
    store.engine === 'sqlite'
      ? { engine: 'sqlite', path: store.path, zone }
      : { engine: 'postgres', url: store.url.reveal(), shown: store.shown }
  const openThread = (name: string) => openBooksThread(new URL('./books-worker.ts', import.meta.url), name, place)
  const quick = store.engine === 'sqlite' ? openThread('books') : await openSilentBooks(store, zone, nowMs)
  const slow = openThread('reports')
  return {
    books: booksFor({ actor: 'triwire' }),
    close: async () => void (await Promise.all([quick.close(), slow.close()])),
  }

  function booksFor(act: Act): Books {
    const [books, reports] = [quick.books(act, nowMs), slow.books(act, nowMs)]
    const own: Partial<Books> = { as: booksFor }
    for (const method of slowMethods[store.engine]) own[method] = reports[method] as never
    own.eachEntry = (filter) => eachEntry(own.listEntries ?? books.listEntries, filter)
    return new Proxy(own as Books, {
      get: (target, method) => target[method as keyof Books] ?? books[method as keyof Books],
    })
  }
}

/**
 * Opens the books of a database on the serving thread. The books do not block the thread, because the database does the
 * work.
 */
async function openSilentBooks(
  store: DatabasePlace,
  zone: Zone | undefined,
  nowMs: () => number,
): Promise<BooksThread> {
  const silence = (error: unknown) =>
    error instanceof StoreError ? new StoreSilent(error.message, { cause: error }) : error
  try {
    const { books, close } = await openDatabaseBooks(store, { create: false }, nowMs, silence)
    const { createCalendar } = await import('../accounts/calendar.ts')
    const calendar = zone && createCalendar(zone)
    return { books: (act) => books.as(act, calendar), close }
  } catch (error) {
    throw silence(error)
  }
}

async function openDatabaseBooks(
  { url, shown }: DatabasePlace,
  { create = true, isAlone = false, isLong = false, note }: OpenBooksOptions,
  nowMs: () => number = Date.now,
  explain = (error: unknown) => error,
): Promise<OpenBooks> {
  const { createBooks } = await import('../accounts/books.ts')
  const { openPostgresBooks } = await import('./postgres/books.ts')
  const { explainDatabase } = await import('./postgres/trouble.ts')
  const statementMs = isAlone || isLong ? longMs : undefined
  const opened = await openPostgresBooks(url.reveal(), { shown, create, statementMs })
  const store = explainCalls(opened, (error) => explain(explainDatabase(error, shown)))
  try {
    const moved = note && (await store.readMoved())
    if (moved) note(sayMoved(shown, moved))
  } catch (error) {
    await opened.close().catch(() => {})
    throw error
  }
  return { books: createBooks(store, nowMs), close: opened.close }
}
