/*
 * The thread of reports: what is read of many rows is put together here, and keeps no request waiting. Who asks more is answered
 * by the books on the serving thread, which wait for the database and nothing else.
 */
import { parentPort, workerData } from 'node:worker_threads'
import { BookError } from '../../accounts/book-error.ts'
import { type Books, createBooks } from '../../accounts/books.ts'
import { type Answered, type BooksCall, toAnswer } from '../files/books-messages.ts'
import { openPostgresBooks, type PostgresBooks } from './books.ts'

const port = parentPort!
const { url, shown } = workerData as { url: string; shown: string }
let opened: Promise<PostgresBooks> | undefined

port.on('message', async (asked: BooksCall | 'close') => {
  if (asked === 'close') {
    await (await opened?.catch(() => undefined))?.close()
    port.close()
  } else port.postMessage(await answer(asked))
})

async function answer({ id, method, args, act, nowMs }: BooksCall): Promise<Answered> {
  try {
    opened ??= openPostgresBooks(url, { shown, create: false })
    const books = createBooks(await opened, () => nowMs, act)
    const run = books[method as keyof Books] as (...args: readonly unknown[]) => Promise<unknown>
    return toAnswer({ id, method }, await run(...args))
  } catch (error) {
    if (error instanceof BookError) return { id, rule: error.code, subject: error.subject }
    const failed = opened
    // A database that could not be opened is tried again.
    void failed?.catch(() => (opened = undefined))
    return { id, trouble: (error as Error).message }
  }
}
