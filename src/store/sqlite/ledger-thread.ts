import { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import type { DebitRow, GivenBack, Posted, Poster, Withdrawn } from '../../accounts/poster.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import { StoreError } from '../files/store-error.ts'
import type { FromLedgerThread, ToLedgerThread, WorkerOptions } from './thread-messages.ts'

type Ready = Extract<FromLedgerThread, { type: 'ready' }>

/** The messages that the thread sends by itself. */
export type ThreadNews = Exclude<
  FromLedgerThread,
  { type: 'ready' | 'refused' | 'posted' | 'withdrawn' | 'givenBack' | 'looked' | 'found' | 'counted' }
>

/**
 * The time in which the thread must post its debits and close the file; a database that others hold takes for ever (B14).
 */
const closeMs = 2_000

/** So many may ask for a debit at once: an operator or two, however long the store is silent. */
const findsMax = 20

/** The serving thread's end of the ledger's thread: what was asked, and who waits for the answer. */
export class LedgerThread implements Poster {
  /** @throws StoreError in the operator's words when the store cannot be used. */
  readonly ready: Promise<Ready>
  readonly death: Promise<Error>
  readonly #worker: Worker
  readonly #ended: Promise<void>
  // Answers come in the order of the questions.
  #posts: PromiseWithResolvers<Posted>[] = []
  #withdrawals: PromiseWithResolvers<Withdrawn>[] = []
  #gifts: PromiseWithResolvers<GivenBack>[] = []
  #looks: PromiseWithResolvers<void>[] = []
  #finds: PromiseWithResolvers<FoundDebit | undefined>[] = []
  #counts: PromiseWithResolvers<boolean>[] = []
  #failure: Error | undefined
  #isClosing = false
  #isOver = false

  constructor(options: WorkerOptions, tell: (told: ThreadNews) => void) {
    const [ready, death, ended] = [
      Promise.withResolvers<Ready>(),
      Promise.withResolvers<Error>(),
      Promise.withResolvers<void>(),
    ]
    this.ready = ready.promise
    this.death = death.promise
    this.#ended = ended.promise
    this.#worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: options, name: 'ledger' })
    this.#worker.on('message', (message: FromLedgerThread) => {
      if (message.type === 'ready') ready.resolve(message)
      else if (message.type === 'refused') this.#failure = new StoreError(message.error.message)
      else if (message.type === 'posted') this.#answerPosts(message)
      else if (message.type === 'withdrawn') this.#withdrawals.shift()!.resolve(message)
      else if (message.type === 'givenBack') this.#answerGifts(message)
      else if (message.type === 'looked') this.#answerLook(message.isRead)
      else if (message.type === 'found') this.#answerFind(message)
      else if (message.type === 'counted') this.#counts.shift()!.resolve(message.isWritten)
      else tell(message)
    })
    this.#worker.on('error', (error) => {
      this.#failure = error as Error
    })
    this.#worker.on('exit', () => {
      const error = this.#failure ?? new Error('the ledger thread ended')
      this.#abandon(error)
      ready.reject(error)
      if (!this.#isClosing) death.resolve(error)
      ended.resolve()
    })
  }

  post(debits: readonly DebitRow[]): Promise<Posted> {
    return this.#ask(this.#posts, { type: 'post', debits })
  }

  withdraw(debits: readonly DebitRow[]): Promise<Withdrawn> {
    return this.#ask(this.#withdrawals, { type: 'withdraw', debits })
  }

  giveBack(requestIds: readonly string[]): Promise<GivenBack> {
    return this.#ask(this.#gifts, { type: 'giveBack', requestIds })
  }

  /**
   * Reads the changes of other processes; they are reported when this resolves. @throws StoreSilent when it cannot be read
   */
  look(): Promise<void> {
    return this.#ask(this.#looks, { type: 'look' })
  }

  /** The debit of a request. @throws StoreSilent when the ledger cannot be read, or too many ask. */
  find(requestId: string): Promise<FoundDebit | undefined> {
    if (this.#finds.length >= findsMax) return Promise.reject(new StoreSilent('too many wait for the store'))
    return this.#ask(this.#finds, { type: 'find', requestId })
  }

  noteUses(uses: [keyId: string, usedMs: number][]): void {
    if (uses.length > 0) this.#send({ type: 'uses', uses })
  }

  /** @returns whether they are written. @throws StoreSilent when the thread has ended. */
  noteTraffic(cells: readonly TrafficCell[]): Promise<boolean> {
    return this.#ask(this.#counts, { type: 'traffic', cells })
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.#send({ type: 'close' })
    const late = setTimeout(() => void this.#worker.terminate(), closeMs)
    await this.#ended
    clearTimeout(late)
  }

  #ask<T>(waiting: PromiseWithResolvers<T>[], message: ToLedgerThread): Promise<T> {
    const answer = Promise.withResolvers<T>()
    if (this.#isOver) answer.reject(new StoreSilent('the ledger thread has ended'))
    else {
      waiting.push(answer)
      this.#send(message)
    }
    return answer.promise
  }

  #send(message: ToLedgerThread): void {
    this.#worker.postMessage(message)
  }

  #answerPosts({ batches, balances, spends }: Extract<FromLedgerThread, { type: 'posted' }>): void {
    for (const postings of batches) this.#posts.shift()!.resolve({ postings, balances, spends })
  }

  #answerGifts({ batches, balances, spends }: Extract<FromLedgerThread, { type: 'givenBack' }>): void {
    for (const returned of batches) this.#gifts.shift()!.resolve({ returned, balances, spends })
  }

  #answerLook(isRead: boolean): void {
    const look = this.#looks.shift()!
    if (isRead) look.resolve()
    else look.reject(new StoreSilent('the store cannot be read'))
  }

  #answerFind({ isRead, debit }: Extract<FromLedgerThread, { type: 'found' }>): void {
    const find = this.#finds.shift()!
    if (isRead) find.resolve(debit)
    else find.reject(new StoreSilent('the store cannot be read'))
  }

  #abandon(cause: Error): void {
    this.#isOver = true
    for (const { reject } of [...this.#posts, ...this.#withdrawals, ...this.#gifts]) reject(cause)
    for (const { reject } of [...this.#looks, ...this.#finds, ...this.#counts])
      reject(new StoreSilent('the ledger thread has ended', { cause }))
    this.#posts = []
    this.#withdrawals = []
    this.#gifts = []
    this.#looks = []
    this.#finds = []
    this.#counts = []
  }
}
