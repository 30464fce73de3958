/*
 * The program of a thread for the books. With SQLite, the thread runs operators' reads and changes, because SQLite
 * blocks its thread. The ledger has another thread, which posts debits, so a listing delays no debit. With PostgreSQL
 * the thread runs only reports, because adding up many rows would block the serving thread.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { BookError } from '../accounts/book-error.ts'
import { type BookStore, type Books, createBooks } from '../accounts/books.ts'
import { createCalendar, utc } from '../accounts/calendar.ts'
import { createAlternation } from './serving/alternate.ts'
import { type Answered, type BooksCall, type BooksPlace, toAnswer } from './serving/books-thread.ts'

const port = parentPort!
const place = workerData as BooksPlace
const calendar = createCalendar((place.engine === 'sqlite' && place.zone) || utc)
let opened: Promise<BookStore & { close(): unknown }> | undefined
/**
 * How much of the file to keep in memory, in KB. A page of keys may read 4 MB. With SQLite's default of 2 MB, each page
 * would read the file again.
 */
const cacheKb = 16_000
/** When the last call was made, by the caller's clock. In a test this is not the system's clock. */
let askedMs = 0

const alternation = createAlternation()

port.on('message', (asked: BooksCall | 'close') => {
  // A database runs several calls at once, and its locks are fair.
  if (place.engine === 'sqlite') alternation.run(() => serve(asked))
  else void serve(asked)
})

async function serve(asked: BooksCall | 'close'): Promise<void> {
  if (asked === 'close') {
    await closeQuietly()
    port.close()
  } else port.postMessage(await answer(asked))
}

async function answer({ id, method, args, act, nowMs }: BooksCall): Promise<Answered> {
  askedMs = nowMs
  try {
    opened ??= reach()
    const books = createBooks(await opened, () => nowMs, act, calendar)
    const run = books[method as keyof Books] as (...args: readonly unknown[]) => Promise<unknown>
    return toAnswer({ id, method }, await run(...args))
  } catch (error) {
    if (error instanceof BookError) return { id, rule: error.code, subject: error.subject, line: error.line }
    // The connection to the file may be the cause, so the next call opens a new one.
    if (place.engine === 'sqlite') await closeQuietly()
    return { id, trouble: (error as Error).message }
  }
}

function reach(): NonNullable<typeof opened> {
  const opening = open()
  // After a failed opening the next call tries again.
  opening.catch(() => (opened = undefined))
  return opening
}

async function open() {
  if (place.engine === 'postgres') {
    const { openPostgresBooks } = await import('./postgres/books.ts')
    return openPostgresBooks(place.url, { shown: place.shown, create: false })
  }
  const { openStore } = await import('./sqlite/store.ts')
  const store = openStore(place.path, { create: false, cacheKb, zone: place.zone, nowMs: () => askedMs })
  const change: BookStore['change'] = (one) => {
    alternation.noteWrite()
    return store.change(one)
  }
  return { ...store, change }
}

async function closeQuietly(): Promise<void> {
  const closing = opened
  opened = undefined
  try {
    await (await closing)?.close()
  } catch {
    // A failure to close does not matter, because the store is not used again.
  }
}
