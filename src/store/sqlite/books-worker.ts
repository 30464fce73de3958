/*
 * The thread of the books: the readings and changes that operators ask of a running server. It is apart from the ledger's
 * thread, so that no listing and no export delays a debit. It is apart from the serving one, because SQLite works by
 * blocking its thread.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { BookError } from '../../accounts/book-error.ts'
import { type Books, createBooks } from '../../accounts/books.ts'
import { createCalendar, utc } from '../../accounts/calendar.ts'
import { type Answered, type BooksCall, toAnswer } from '../files/books-messages.ts'
import { openStore, type Store } from './store.ts'

const port = parentPort!
const calendar = createCalendar(workerData.zone ?? utc)
let store: Store | undefined
/** Of who asks: one that is tried may have another clock. */
let askedMs = 0

port.on('message', async (asked: BooksCall | 'close') => {
  if (asked === 'close') {
    store?.close()
    port.close()
  } else port.postMessage(await answer(asked))
})

async function answer({ id, method, args, act, nowMs }: BooksCall): Promise<Answered> {
  askedMs = nowMs
  try {
    store ??= openStore(workerData.path, {
      busyMs: workerData.busyMs,
      create: false,
      zone: workerData.zone,
      nowMs: () => askedMs,
    })
    const books = createBooks(store, () => nowMs, act, calendar)
    const run = books[method as keyof Books] as (...args: readonly unknown[]) => Promise<unknown>
    return toAnswer({ id, method }, await run(...args))
  } catch (error) {
    if (error instanceof BookError) return { id, rule: error.code, subject: error.subject }
    // Nobody knows what is wrong with the connection: the next question opens another.
    closeQuietly()
    return { id, trouble: (error as Error).message }
  }
}

function closeQuietly(): void {
  try {
    store?.close()
  } catch {
    // The store is given up either way.
  }
  store = undefined
}
