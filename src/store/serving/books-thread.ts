import { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import { BookError, type BookErrorCode } from '../../accounts/book-error.ts'
import type { Books } from '../../accounts/books.ts'
import type { Zone } from '../../accounts/calendar.ts'
import type { Act } from '../../accounts/trail.ts'
import { storeThreadLimits } from './thread.ts'

const reports = ['readUsage', 'rankSpent', 'sumEntries', 'sumSpend', 'sumMonth', 'makeHead'] as const

/**
 * Methods of the books that may take seconds. They run in a separate thread, so that signing in or creating a key never
 * waits for a report. A list whose filter matches few entries reads the whole ledger of an account. PostgreSQL reads it
 * in short statements, so that others can run between them.
 */
export const slowMethods = {
  sqlite: [...reports, 'listEntries'],
  postgres: reports,
} as const satisfies Record<BooksPlace['engine'], readonly (keyof Books)[]>

/** The place of the store, in the form that a books thread receives. @property shown the URL without its password */
export type BooksPlace =
  | { engine: 'sqlite'; path: string; zone: Zone | undefined }
  | { engine: 'postgres'; url: string; shown: string }

export type BooksCall = { id: number; method: string; args: readonly unknown[]; act: Act; nowMs: number }

export type Answered =
  | { id: number; result: unknown }
  | { id: number; rule: BookErrorCode; subject: string; line?: number | undefined }
  /** The store failed, because another process has locked it, or because it is full, damaged or missing. */
  | { id: number; trouble: string }

/** The most rows that `sumEntries` may return. More rows would make one text so large that it blocks other requests. */
export const sumsMax = 10_000

export function toAnswer({ id, method }: Pick<BooksCall, 'id' | 'method'>, result: unknown): Answered {
  const isTooMany = method === 'sumEntries' && (result as readonly unknown[]).length > sumsMax
  return isTooMany ? { id, rule: 'too_many_rows', subject: `${sumsMax}` } : { id, result }
}

export type BooksThread = { books(act: Act, nowMs: () => number): Books; close(): Promise<void> }

/** How long the server waits for running calls when it ends, in ms. */
const closeMs = 1_000

/**
 * Opens books in a thread of their own, which starts with the first call. If the thread dies, for example because a
 * report uses up its memory, only its running calls fail. The next call starts a new thread. All methods work except
 * `as`, `eachEntry`, `verify` and `audit`.
 * @param url the file that the thread runs
 */
export function openBooksThread(url: URL, name: string, workerData: unknown): BooksThread {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  let isClosed = false
  let started: { worker: Worker; ended: Promise<void> } | undefined
  return { books, close }

  function books(act: Act, nowMs: () => number): Books {
    return new Proxy({} as Books, {
      get(_, method) {
        // `await` asks for the property `then`, to check whether the books are a promise.
        if (typeof method !== 'string' || method === 'then') return undefined
        return (...args: readonly unknown[]) => ask({ method, args, act, nowMs: nowMs() })
      },
    })
  }

  function ask(asked: Omit<BooksCall, 'id'>): Promise<unknown> {
    if (isClosed) return Promise.reject(new StoreSilent('the books are closed'))
    started ??= start()
    const id = ++last
    const answer = Promise.withResolvers<unknown>()
    waiting.set(id, answer)
    started.worker.postMessage({ id, ...asked } satisfies BooksCall)
    return answer.promise
  }

  function start(): { worker: Worker; ended: Promise<void> } {
    const worker = new Worker(url, { workerData, name, resourceLimits: storeThreadLimits })
    worker.on('message', (answered: Answered) => {
      const one = waiting.get(answered.id)!
      waiting.delete(answered.id)
      if ('result' in answered) one.resolve(answered.result)
      else if ('rule' in answered) one.reject(new BookError(answered.rule, answered.subject, answered.line))
      else one.reject(new StoreSilent(answered.trouble))
    })
    let cause = new Error('the thread of the books has ended')
    worker.on('error', (error) => {
      cause = error as Error
    })
    const ended = new Promise<void>((resolve) =>
      worker.on('exit', () => {
        // Only one thread runs at a time, so all waiting calls were sent to this thread.
        started = undefined
        for (const { reject } of waiting.values()) reject(new StoreSilent(cause.message, { cause }))
        waiting.clear()
        resolve()
      }),
    )
    // A running thread of the books does not keep the process from ending.
    worker.unref()
    return { worker, ended }
  }

  async function close(): Promise<void> {
    isClosed = true
    if (!started) return
    const { worker, ended } = started
    worker.postMessage('close')
    const late = setTimeout(() => void worker.terminate(), closeMs)
    await ended
    clearTimeout(late)
  }
}
