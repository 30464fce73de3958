import { type Books, eachEntry } from '../../accounts/books.ts'
import type { Zone } from '../../accounts/calendar.ts'
import type { Act } from '../../accounts/trail.ts'
import { openBooksThread, slowMethods } from '../files/books-thread.ts'

/** How long one waits for another process' lock. */
const busyMs = 2_000

/** The books of a SQLite store in threads of their own, for a server: SQLite works by blocking its thread. */
export function openThreadedBooks(
  path: string,
  nowMs: () => number,
  zone?: Zone,
): { books: Books; close(): Promise<void> } {
  const worker = new URL('./books-worker.ts', import.meta.url)
  const [quick, slow] = ['books', 'reports'].map((name) => openBooksThread(worker, name, { path, busyMs, zone }))
  return { books: booksFor({ actor: 'triwire' }), close }

  function booksFor(act: Act): Books {
    const [books, reports] = [quick!.books(act, nowMs), slow!.books(act, nowMs)]
    const own: Partial<Books> = { as: booksFor, eachEntry: (filter) => eachEntry(books.listEntries, filter) }
    for (const method of slowMethods) own[method] = reports[method] as never
    return new Proxy(own as Books, {
      get: (target, method) => target[method as keyof Books] ?? books[method as keyof Books],
    })
  }

  async function close(): Promise<void> {
    await Promise.all([quick!.close(), slow!.close()])
  }
}
