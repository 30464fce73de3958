import { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import { BookError, type BookErrorCode } from '../../accounts/book-error.ts'
import type { Books } from '../../accounts/books.ts'
import type { Zone } from '../../accounts/calendar.ts'
import type { Act } from '../../accounts/trail.ts'
import { storeThreadLimits } from './thread.ts'

/**
 * Readings of the books that may take seconds. They have a thread, so that signing in or making a key never waits for a
 * report.
 */
export const slowMethods = [
  'readUsage',
  'rankSpent',
  'sumEntries',
  'sumSpend',
] as const satisfies readonly (keyof Books)[]

/** The store whose books a thread has, as it can be sent to it. @property shown the URL without its password */
export type BooksPlace =
  | { engine: 'sqlite'; path: string; zone: Zone | undefined }
  | { engine: 'postgres'; url: string; shown: string }

export type BooksCall = { id: number; method: string; args: readonly unknown[]; act: Act; nowMs: number }

export type Answered =
  | { id: number; result: unknown }
  | { id: number; rule: BookErrorCode; subject: string }
  /** The store could not do it: it is held by others, full, damaged or gone. */
  | { id: number; trouble: string }

/** More rows of sums nobody is handed: who asked would put them into one text, and all others would wait for that. */
export const sumsMax = 10_000

export function toAnswer({ id, method }: Pick<BooksCall, 'id' | 'method'>, result: unknown): Answered {
  const isTooMany = method === 'sumEntries' && (result as readonly unknown[]).length > sumsMax
  return isTooMany ? { id, rule: 'too_many_rows', subject: `${sumsMax}` } : { id, result }
}

export type BooksThread = { books(act: Act, nowMs: () => number): Books; close(): Promise<void> }

/** A call that takes longer than this does not keep the server from ending, in ms. */
const closeMs = 1_000

/**
 * Books in a thread of their own, which starts with the first call. If the thread dies (of a report that takes all the
 * memory it may have), only the calls that it had fail. The next call starts another. Everything but `as`, `eachEntry`,
 * `verify` and `audit` works there.
 * @param url of the file that is the thread
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
        // An `await` of the books asks whether they are a promise.
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
      else if ('rule' in answered) one.reject(new BookError(answered.rule, answered.subject))
      else one.reject(new StoreSilent(answered.trouble))
    })
    let cause = new Error('the thread of the books has ended')
    worker.on('error', (error) => {
      cause = error as Error
    })
    const ended = new Promise<void>((resolve) =>
      worker.on('exit', () => {
        // There is one at a time: who waits has asked it.
        started = undefined
        for (const { reject } of waiting.values()) reject(new StoreSilent(cause.message, { cause }))
        waiting.clear()
        resolve()
      }),
    )
    // A server that drains need not wait for an operator.
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
