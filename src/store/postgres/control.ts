import { setTimeout as sleep } from 'node:timers/promises'
import { ClockWatch } from '../../accounts/clock.ts'
import { StoreError } from '../files/store-error.ts'
import type { Say } from '../serving/protocol.ts'
import type { ThreadPart } from '../serving/thread.ts'
import { readClock, readNowMs } from '../sql/moments.ts'
import { type DatabaseSession, openSession, type Transaction } from './database.ts'
import { dialect, run } from './run.ts'
import { codeOf, explainDatabase, refusalOf, sayPooler } from './trouble.ts'

type ControlOptions = {
  url: string
  /** The same without its password. */
  shown: string
  /** How long a statement may take, in ms. */
  patienceMs: number
  beatMs: number
  desks: readonly Desk[]
  /** Brings the database to where the desks need it. */
  prepare(): Promise<void>
  say: Say
}

/**
 * The time between two tries to reach the database, in ms. The second is for locked objects that must change, since all
 * later statements wait as well.
 */
const [retryMs, lockedMs] = [100, 5_000]

/** So many beats apart the database is prepared again: months of the ledger have their partitions ahead. */
const preparedBeats = 10_000

/**
 * The connection that shows whether the database can be reached. It listens for the desks, and asks once a second, so that
 * a loss is noticed even if nothing else asks.
 */
export class Control {
  /** The result of the first tries. @throws StoreError if another try would fail as well. */
  readonly first: Promise<boolean>
  readonly #options: ControlOptions
  readonly #first = Promise.withResolvers<boolean>()
  #session: DatabaseSession | undefined
  #isReached: boolean | undefined
  #refused: string | undefined
  #isClosed = false

  constructor(options: ControlOptions) {
    this.#options = options
    this.first = this.#first.promise
    this.first.catch(() => {})
    setTimeout(() => this.#first.resolve(false), options.patienceMs)
    void this.#run()
  }

  get isReached(): boolean {
    return this.#isReached === true
  }

  close(): void {
    this.#isClosed = true
    this.#session?.close()
  }

  async #run(): Promise<void> {
    while (!this.#isClosed) {
      const error = await this.#use().catch((error: Error) => error)
      this.#session?.close()
      this.#session = undefined
      if (this.#isClosed) return
      this.#lose(error)
      await sleep(codeOf(error) === '55P03' ? lockedMs : retryMs)
    }
  }

  /** From one connection's beginning to its end. @returns why it ended. */
  async #use(): Promise<Error> {
    const { url, patienceMs, beatMs, desks, prepare } = this.#options
    await prepare()
    const session = await openSession({ url, patienceMs, purpose: 'control' })
    this.#session = session
    await refusePooler(session, this.#options.shown)
    await this.#listen(session)
    for (const desk of desks) await desk.onReached?.(session)
    this.#reach()
    for (let beat = 1; await this.#lasts(session, beatMs); beat++) {
      for (const desk of desks) await desk.onBeat?.(session)
      for (const desk of desks) desk.onAnswered?.()
      if (beat % preparedBeats === 0) await prepare()
    }
    return new Error('the connection to the database was lost')
  }

  /** @returns whether it is still there after so many ms; at once when it is not. */
  async #lasts(session: DatabaseSession, ms: number): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => resolve(true), ms)
    session.onEnded = () => resolve(false)
    return session.isEnded ? false : promise.finally(() => clearTimeout(timer))
  }

  async #listen(session: DatabaseSession): Promise<void> {
    const channels = new Map(this.#options.desks.flatMap(({ channels = {} }) => Object.entries(channels)))
    session.onNotified = (channel, payload) => channels.get(channel)?.(payload)
    for (const channel of channels.keys()) await session.query(`LISTEN ${channel}`)
  }

  #reach(): void {
    this.#isReached = true
    this.#options.say('reach', { isReached: true })
    this.#first.resolve(true)
  }

  #lose(error: Error): void {
    const { shown } = this.#options
    const refusal = refusalOf(error, shown)
    if (refusal) this.#first.reject(refusal)
    const wasReached = this.#isReached
    this.#isReached = false
    if (wasReached) for (const desk of this.#options.desks) desk.onLost?.()
    // A refusal that keeps the database from being used at all is reported even if it was never reached before.
    if (wasReached === false && (!refusal || refusal.message === this.#refused)) return
    this.#refused = refusal?.message
    this.#options.say('reach', { isReached: false, error: (explainDatabase(error, shown) as Error).message })
  }
}

/** One that passes on what a session says of itself is known by the number of its process, which is not the server's. */
async function refusePooler(session: DatabaseSession, shown: string): Promise<void> {
  const [row] = await session.query('SELECT pg_backend_pid() AS pid')
  if (row!.pid !== session.pid) throw new StoreError(sayPooler(shown))
}

/** A part of the store's thread that asks the database. What does not concern it it leaves out. */
export type Desk = ThreadPart & {
  /** By their names: channels it listens to. */
  channels?: Readonly<Record<string, (payload: string) => void>>
  /**
   * The database can be reached, at first or again, and its notices are heard already. Before this resolves, the store does
   * not count as reached. An error is reported, and the connection is made anew.
   */
  onReached?(session: DatabaseSession): Promise<void>
  /** Every second while it can be reached, on the same connection. What it throws counts as its loss. */
  onBeat?(session: Transaction): Promise<void>
  /** The database has answered a beat. */
  onAnswered?(): void
  /** The database cannot be reached any more. */
  onLost?(): void
  /** Ends it, in a time that the database cannot make longer. */
  close?(): Promise<void>
}

/** How long a server that has just reached the database waits between two looks at a clock in doubt, in ms. */
const clockLookMs = 1_000

/**
 * Compares the clock of the database with this machine's steady clock (ruling Y15). While it is in doubt, `post` refuses.
 * A database that was just reached is not used then: the desks after this one do not hear of it.
 */
export class ClockDesk implements Desk {
  readonly watch: ClockWatch
  readonly #say: Say

  constructor(say: Say, ...watched: ConstructorParameters<typeof ClockWatch>) {
    this.watch = new ClockWatch(...watched)
    this.#say = say
  }

  async onReached(session: Transaction): Promise<void> {
    for (await this.onBeat(session); !this.watch.isBelieved; await this.onBeat(session)) await sleep(clockLookMs)
  }

  async onBeat(session: Transaction): Promise<void> {
    if (!this.watch.isDue(await run(session, readNowMs(dialect)))) return
    const askedMs = Date.now()
    const facts = await run(session, readClock(dialect))
    // The store read its clock between the question and its answer.
    const aheadMs = Math.max(0, askedMs - facts.nowMs) + Math.min(0, Date.now() - facts.nowMs)
    this.#say('clock', { ...this.watch.judge(facts), aheadMs })
  }
}
