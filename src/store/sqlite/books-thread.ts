import { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import { BookError } from '../../accounts/book-error.ts'
import type { Books } from '../../accounts/books.ts'
import type { EntryPlace } from '../../accounts/entries.ts'
import type { Act } from '../../accounts/trail.ts'
import type { Answered, Asked } from './books-messages.ts'

/** As many entries as an export reads at once: some milliseconds, and then nothing of the log is held back. */
const entriesAtOnce = 500

/** How long one waits for another process' lock. */
const busyMs = 2_000

/** The books of a SQLite store in a thread of their own, for a server. Everything but `verify` and `audit` works there. */
export function openBooksThread(path: string, nowMs: () => number): { books: Books; close(): Promise<void> } {
  const worker = new Worker(new URL('./books-worker.ts', import.meta.url), {
    workerData: { path, busyMs },
    name: 'books',
  })
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let last = 0
  let failure: Error | undefined
  worker.on('message', (answered: Answered) => {
    const one = waiting.get(answered.id)!
    waiting.delete(answered.id)
    if ('result' in answered) one.resolve(answered.result)
    else if ('rule' in answered) one.reject(new BookError(answered.rule, answered.subject))
    else one.reject(new StoreSilent(answered.trouble))
  })
  worker.on('error', (error) => {
    failure = error as Error
  })
  const ended = new Promise<void>((resolve) =>
    worker.on('exit', () => {
      failure ??= new Error('the thread of the books has ended')
      for (const { reject } of waiting.values()) reject(new StoreSilent(failure.message, { cause: failure }))
      waiting.clear()
      resolve()
    }),
  )
  // Who drains need not wait for an operator.
  worker.unref()
  return { books: booksFor({ actor: 'triwire' }), close }

  function booksFor(act: Act): Books {
    const own = { as: booksFor, eachEntry: (filter: object = {}) => eachEntry(booksFor(act), filter) }
    return new Proxy(own as unknown as Books, {
      get(target, method) {
        if (method in target) return target[method as keyof Books]
        // Whoever awaits the books asks whether they are a promise.
        if (typeof method !== 'string' || method === 'then') return undefined
        return (...args: readonly unknown[]) => ask({ method, args, act })
      },
    })
  }

  function ask(asked: Pick<Asked, 'method' | 'args' | 'act'>): Promise<unknown> {
    if (failure) return Promise.reject(new StoreSilent(failure.message, { cause: failure }))
    const id = ++last
    const answer = Promise.withResolvers<unknown>()
    waiting.set(id, answer)
    worker.postMessage({ id, nowMs: nowMs(), ...asked } satisfies Asked)
    return answer.promise
  }

  async function close(): Promise<void> {
    worker.postMessage('close')
    await ended
  }
}

async function* eachEntry(books: Books, filter: object): ReturnType<Books['eachEntry']> {
  let beyond: EntryPlace | undefined
  for (;;) {
    const entries = await books.listEntries({ ...filter, first: 'oldest', limit: entriesAtOnce, beyond })
    yield* entries
    const end = entries.at(-1)
    if (!end || entries.length < entriesAtOnce) return
    beyond = { postedMs: end.postedMs, accountId: end.accountId, seq: end.seq }
  }
}
