import { parentPort, Worker } from 'node:worker_threads'
import { StoreSilent } from '../../accounts/account.ts'
import type { ClockNews } from '../../accounts/clock.ts'
import type { DeskAnswer, DeskOrder } from '../../accounts/desk.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { AccountChanges } from '../../accounts/live-accounts.ts'
import type { GivenBack, Posted, Withdrawn } from '../../accounts/poster.ts'
import type { CountedFailures } from '../../accounts/remote-throttle.ts'
import type { Cooldown, Introduction, OtherReplica } from '../../accounts/server-store.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import type { RefusedDebit } from '../../accounts/withdrawals.ts'
import { StoreError } from '../files/store-error.ts'

/*
 * The messages between the serving thread and the thread of its store. A thread of SQLite does not answer the questions
 * marked "For replicas", because only PostgreSQL has replicas.
 */

/** The questions that the serving thread asks its store. Each is answered once, in any order. */
type Questions = {
  /**
   * Answered when the store is open. If the database cannot be reached in time, the answer says so, and the store opens
   * later.
   * @throws StoreError if the store cannot be used
   */
  open: { asks: undefined; answers: { isReached: boolean } }
  post: { asks: readonly PackedDebit[]; answers: Posted }
  withdraw: { asks: readonly Debit[]; answers: Withdrawn }
  giveBack: { asks: readonly string[]; answers: GivenBack }
  findDebit: { asks: string; answers: FoundDebit | undefined }
  /**
   * Looks up keys by digest. Before it answers, the thread sends the keys as `changes`. SQLite's thread also sends all
   * other new changes.
   */
  lookUp: { asks: readonly string[]; answers: undefined }
  /**
   * Takes counts of requests, for reports. Counts that cannot be written now are kept in the thread, and written later.
   * @returns whether all counts are written. If not, call this again, even without new counts
   * @throws what the database throws; the counts are then kept too
   */
  traffic: { asks: readonly TrafficCell[]; answers: boolean }
  /** For replicas: counts failed authentications by address. */
  countFailures: { asks: readonly (readonly [ipKey: string, count: number])[]; answers: CountedFailures[] }
  /** For replicas: lists the other living replicas. */
  otherReplicas: { asks: undefined; answers: readonly OtherReplica[] }
  close: { asks: undefined; answers: undefined }
}

type QuestionName = keyof Questions

/** Messages from the serving thread that need no answer. Servers without replicas send only `uses`. */
export type Orders = {
  uses: readonly (readonly [keyId: string, usedMs: number])[]
  admission: readonly DeskOrder[]
  cool: Cooldown
  /** The place (an upstream account for a model) whose cooldown ends. */
  lift: string
  steer: { steering: 'disable' | 'enable'; place: string }
  /** An operator requests a report, so all servers must write their counts of requests to the store. */
  wantTraffic: undefined
  /** The name, version or another fact that this server reports to the other servers has changed. */
  introduce: Partial<Introduction>
}

/** Messages that the store's thread sends on its own. */
type News = {
  /** Debits could not be posted. They wait and are tried again. This message is sent at most once a second. */
  trouble: { event: 'ledger_busy' | 'ledger_trouble'; fields: { error: string; code?: string } }
  /** A file of the store was removed or replaced. Later commits would be lost. */
  lost: { message: string }
  /**
   * All debits in the spools of earlier runs are posted now. This is sent at the start, or later if the clock was in
   * doubt.
   */
  drained: undefined
  /**
   * Debits that stay in a spool of earlier runs, because another session has locked their accounts. `refused` must be
   * reversed, all others must be posted.
   */
  held: { debits: readonly Debit[]; refused: readonly RefusedDebit[] }
  /** Says whether the database can be reached. Sent once this is known, and after each change. */
  reach: { isReached: boolean; error?: string }
  /** Accounts and keys that were changed or looked up. `isAnew`: forget everything that came before. */
  changes: AccountChanges & { isAnew: boolean }
  /** The decision whether the clock that dates entries is right. */
  clock: ClockNews
  admission: readonly DeskAnswer[]
  cooled: Cooldown
  lifted: Pick<Cooldown, 'place' | 'cause'>
  /** An operator has requested a report, on this or another server. */
  trafficWanted: undefined
  log: { level: 'info' | 'error'; event: string; fields: Record<string, unknown> }
}

/** Logged with the first entry in form 3, a newer layout of entries that older versions of triwire cannot read. */
export const formThreeBegun: News['log'] = {
  level: 'info',
  event: 'ledger_form_3',
  fields: { means: 'an older triwire cannot use this store any more' },
}

export type Answers = {
  [Name in QuestionName]: (asks: Questions[Name]['asks']) => Promise<Questions[Name]['answers']>
}

type Heeded = { [Name in keyof Orders]: (value: Orders[Name]) => void }

export type Say = <Name extends keyof News>(news: Name, value: News[Name]) => void

export type PackedDebit = ReturnType<typeof packDebit>

/**
 * Packs a debit into an array, to send it between threads. Copying the names of its fields would cost both threads
 * together 1 µs more.
 */
export function packDebit(d: Debit) {
  const { usage: u } = d
  // biome-ignore format: one field per line would fill a page
  return [
    d.requestId, d.accountId, d.amountNanos, d.keyId, d.clientWire, d.model, d.modelWire, d.upstream, d.upstreamAccount,
    u.inputTokens, u.cacheReadTokens, u.cacheWriteTokens, u.cacheWrite1hTokens, u.outputTokens, u.reasoningTokens, u.estimated,
    d.usageSource, d.pricedCalls, d.calls, d.priceVersion, d.prices, d.outcome, d.createdMs, d.details, d.listText, d.costPrices,
  ] as const
}

/**
 * Unpacks a debit. The compiler checks the type of each position, and a test checks that none is missing or swapped.
 */
export function unpackDebit(p: PackedDebit): Debit {
  // biome-ignore format: one field per line would fill a page
  return {
    requestId: p[0], accountId: p[1], amountNanos: p[2], keyId: p[3], clientWire: p[4], model: p[5], modelWire: p[6],
    upstream: p[7], upstreamAccount: p[8],
    usage: {
      inputTokens: p[9], cacheReadTokens: p[10], cacheWriteTokens: p[11], cacheWrite1hTokens: p[12], outputTokens: p[13],
      reasoningTokens: p[14], estimated: p[15],
    },
    usageSource: p[16], pricedCalls: p[17], calls: p[18], priceVersion: p[19], prices: p[20], outcome: p[21], createdMs: p[22],
    details: p[23], listText: p[24], costPrices: p[25],
  }
}

/** An error in a form that threads can send. The receiver makes a different error for each of the three kinds. */
type CarriedError = { message: string; kind: 'silent' | 'refused' | 'other' }

type ToThread =
  | { [Name in QuestionName]: { id: number; question: Name; value: Questions[Name]['asks'] } }[QuestionName]
  | { [Name in keyof Orders]: { order: Name; value: Orders[Name] } }[keyof Orders]

type ThreadMessage =
  | { id: number; value: unknown }
  | { id: number; error: CarriedError }
  | { [Name in keyof News]: { news: Name; value: News[Name] } }[keyof News]

/** How to start and end a thread. The thread must end within `closeMs`, because a store may block forever (B14). */
export type ThreadStart = { file: URL; name: string; workerData: unknown; closeMs: number }

/**
 * The limit of each store thread's memory for new objects, in MB. V8 lets every thread use about 64 MB for them, and
 * most threads never give this memory back. The objects of these threads live only for a batch, so less memory does not
 * slow them down (CON-10).
 */
export const storeThreadLimits = { maxYoungGenerationSizeMb: 12 } as const

/** The object through which the serving thread talks to the store's thread. It keeps the unanswered questions. */
export class StoreThread {
  /** Resolves with the cause if the thread dies, but not after `close`. */
  readonly death: Promise<Error>
  readonly #worker: Worker
  readonly #ended: Promise<void>
  readonly #closeMs: number
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>()
  #lastId = 0
  #failure: Error | undefined
  #isClosing = false
  #isOver = false

  constructor({ file, name, workerData, closeMs }: ThreadStart, hear: Say) {
    const [death, ended] = [Promise.withResolvers<Error>(), Promise.withResolvers<void>()]
    this.death = death.promise
    this.#ended = ended.promise
    this.#closeMs = closeMs
    this.#worker = new Worker(file, { workerData, name, resourceLimits: storeThreadLimits })
    this.#worker.on('message', (messages: readonly ThreadMessage[]) => {
      for (const said of messages) {
        if ('news' in said) hear(said.news, said.value)
        else this.#answer(said)
      }
    })
    this.#worker.on('error', (error) => {
      this.#failure = error as Error
    })
    this.#worker.on('exit', () => {
      const error = this.#failure ?? new Error('the store thread ended')
      this.#isOver = true
      for (const { reject } of this.#waiting.values()) reject(error)
      this.#waiting.clear()
      if (!this.#isClosing) death.resolve(error)
      ended.resolve()
    })
  }

  /** Sends a question to the thread. @throws StoreSilent, StoreError, or the cause of the thread's death */
  ask<Name extends QuestionName>(question: Name, value: Questions[Name]['asks']): Promise<Questions[Name]['answers']> {
    if (this.#isOver) return Promise.reject(new StoreSilent('the store thread has ended'))
    const answer = Promise.withResolvers<unknown>()
    const id = ++this.#lastId
    this.#waiting.set(id, answer)
    this.#send({ id, question, value } as ToThread)
    return answer.promise as Promise<Questions[Name]['answers']>
  }

  order<Name extends keyof Orders>(order: Name, value: Orders[Name]): void {
    this.#send({ order, value } as ToThread)
  }

  async close(): Promise<void> {
    this.#isClosing = true
    this.ask('close', undefined).catch(() => {})
    const late = setTimeout(() => void this.#worker.terminate(), this.#closeMs)
    await this.#ended
    clearTimeout(late)
  }

  #send(message: ToThread): void {
    this.#worker.postMessage(message)
  }

  #answer(message: Exclude<ThreadMessage, { news: unknown }>): void {
    const waiting = this.#waiting.get(message.id)
    this.#waiting.delete(message.id)
    if ('error' in message) waiting?.reject(revive(message.error))
    else waiting?.resolve(message.value)
  }
}

/** A part of the thread, with the questions that it answers and the orders that it executes. */
export type ThreadPart = { answers?: Partial<Answers>; orders?: Partial<Heeded> }

/** Creates the thread's own side of the message channel. It receives no messages before `serve`. */
export function openThreadEnd() {
  const port = parentPort!
  let unsaid: ThreadMessage[] = []
  const say: Say = (news, value) => tell({ news, value } as ThreadMessage)
  return { say, serve, flush }

  function serve(...parts: readonly ThreadPart[]): void {
    const answers: Partial<Answers> = Object.assign({}, ...parts.map((part) => part.answers))
    const heeded: Partial<Heeded> = Object.assign({}, ...parts.map((part) => part.orders))
    port.on('message', (message: ToThread) => {
      if ('order' in message) heeded[message.order]!(message.value as never)
      else {
        const { id, question, value } = message
        answers[question]!(value as never).then(
          (answer) => tell({ id, value: answer }),
          (error) => tell({ id, error: carry(error) }),
        )
      }
    })
  }

  /**
   * Sends all messages of one turn of the event loop together. Receiving a message takes about as long as posting a
   * debit.
   */
  function tell(said: ThreadMessage): void {
    if (unsaid.length === 0) queueMicrotask(flush)
    unsaid.push(said)
  }

  function flush(): void {
    port.postMessage(unsaid)
    unsaid = []
  }
}

function carry(error: unknown): CarriedError {
  const { message } = error as Error
  if (error instanceof StoreSilent) return { message, kind: 'silent' }
  return { message, kind: error instanceof StoreError ? 'refused' : 'other' }
}

function revive({ kind, message }: CarriedError): Error {
  if (kind === 'silent') return new StoreSilent(message)
  return kind === 'refused' ? new StoreError(message) : new Error(message)
}

/** The most messages to keep while nobody listens. A program that only asks for reports never listens. */
const unheardMax = 10_000

type LineNews = { news: keyof News; value: unknown }

/**
 * Sends messages from the serving thread to the current thread of the store. If a thread dies, another one replaces it.
 */
export class Line {
  #thread: StoreThread | undefined
  readonly #hearers = new Map<keyof News, (value: never) => void>()
  /** Messages that have no listener yet, in the order of their arrival. The thread sends each message only once. */
  #unheard: LineNews[] = []
  #isReplaying = false

  /** Listens to one kind of news. Earlier news of this kind that nobody has heard yet are replayed. */
  hear<Name extends keyof News>(news: Name, hear: (value: News[Name]) => void): void {
    this.#hearers.set(news, hear)
    if (this.#isReplaying) return
    this.#isReplaying = true
    // News of one kind may revoke news of another kind. So the replay waits until all listeners of this turn of the
    // event loop are added.
    queueMicrotask(() => this.#replay())
  }

  #replay(): void {
    this.#isReplaying = false
    const told = this.#unheard
    this.#unheard = told.filter(({ news }) => !this.#hearers.has(news))
    for (const { news, value } of told) this.#hearers.get(news)?.(value as never)
  }

  /** Starts a thread. From now on, this is the current thread. */
  start(options: ThreadStart): StoreThread {
    this.#thread = new StoreThread(options, (news, value) => this.#tell(news, value))
    return this.#thread
  }

  #tell(news: keyof News, value: unknown): void {
    const hear = this.#hearers.get(news)
    if (hear && !this.#isReplaying) hear(value as never)
    else this.#unheard.push({ news, value })
    if (this.#unheard.length > unheardMax) this.#unheard.shift()
  }

  /** Sends a question. @throws StoreSilent if there can be no answer, StoreError if the store refuses */
  ask<Name extends QuestionName>(question: Name, value: Questions[Name]['asks']): Promise<Questions[Name]['answers']> {
    return this.#thread?.ask(question, value) ?? Promise.reject(new StoreSilent('the store is not open'))
  }

  order<Name extends keyof Orders>(order: Name, value: Orders[Name]): void {
    this.#thread?.order(order, value)
  }
}
