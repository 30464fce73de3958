import { setTimeout as sleep } from 'node:timers/promises'
import { ClockWatch } from '../../accounts/clock.ts'
import { StoreError } from '../files/store-error.ts'
import type { Say, ThreadPart } from '../serving/thread.ts'
import { readClock, readNowMs } from '../sql/moments.ts'
import { type DatabaseSession, openSession, type Transaction } from './database.ts'
import { dialect, run } from './run.ts'
import { codeOf, explainDatabase, refusalOf, sayPooler } from './trouble.ts'

type ControlOptions = {
  url: string
  /** The URL without its password. */
  shown: string
  /** The longest time that a statement may take, in ms. */
  patienceMs: number
  beatMs: number
  desks: readonly Desk[]
  /** Prepares the schema of the database, which the desks need. A desk is a part of this thread. */
  prepare(): Promise<void>
  say: Say
}

/**
 * The pauses between two tries to reach the database, in ms. `lockedMs` follows a migration that could not lock an
 * object in time. It is longer, because other statements on the object wait while a migration waits for the lock.
 */
const [retryMs, lockedMs] = [100, 5_000]

/** The number of heartbeats after which the database is prepared again, to create the ledger's next partitions. */
const preparedBeats = 10_000

/**
 * The connection that shows whether the database can be reached. It receives notifications (LISTEN) for the desks. A
 * desk is a part of the store's thread that uses the database. The connection also sends a statement every `beatMs`, so
 * a loss is noticed even if no request needs the database.
 */
export class Control {
  /**
   * Resolves to true when the database is reached, or to false if that takes longer than `patienceMs`.
   * @throws StoreError if the operator must change something first
   */
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

  /** Opens a connection and uses it until it ends. @returns the reason why it ended */
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

  /** Waits `ms` milliseconds, or until the session ends. @returns whether the session still lives */
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
    // While the database stays lost, only a refusal with a new message is reported.
    if (wasReached === false && (!refusal || refusal.message === this.#refused)) return
    this.#refused = refusal?.message
    this.#options.say('reach', { isReached: false, error: (explainDatabase(error, shown) as Error).message })
  }
}

/** Throws if a pooler is between server and database. A pooler announces a process id that is not the session's. */
async function refusePooler(session: DatabaseSession, shown: string): Promise<void> {
  const [row] = await session.query('SELECT pg_backend_pid() AS pid')
  if (row!.pid !== session.pid) throw new StoreError(sayPooler(shown))
}

/** A part of the store's thread that uses the database. It implements only the callbacks it needs. */
export type Desk = ThreadPart & {
  /** The channels that the desk listens to, each with its handler. */
  channels?: Readonly<Record<string, (payload: string) => void>>
  /**
   * Called each time the database becomes reachable, after the desk's channels are listened to. The store counts as
   * reached only after this resolves. If this throws, the error is reported and the connection is opened again.
   */
  onReached?(session: DatabaseSession): Promise<void>
  /** Called every `beatMs` on the control's connection. An error that it throws counts as a loss of the connection. */
  onBeat?(session: Transaction): Promise<void>
  /** Called after the database has answered the statements of `onBeat`. */
  onAnswered?(): void
  /** Called when the database cannot be reached any more. */
  onLost?(): void
  /** Ends the desk, in bounded time even if the database does not answer. */
  close?(): Promise<void>
}

/** A server that has just reached the database checks a clock in doubt again after each pause of this length, in ms. */
const clockLookMs = 1_000

/**
 * Compares the database's clock with this machine's steady clock (ruling Y15). While the clock is in doubt, `post`
 * refuses. When a server reaches the database, the later desks in the list start only after the doubt is over.
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
    const nowMs = await run(session, readNowMs(dialect))
    if (!this.watch.isDue(nowMs)) return
    // The audit trail tells whether an operator has confirmed the clock. It is read only if the clock seems wrong,
    // because the read would wait for a lock on the trail.
    const isWithConfirmed = !this.watch.believes(nowMs)
    const askedMs = Date.now()
    const facts = await run(session, readClock(dialect, isWithConfirmed))
    if (!isWithConfirmed && !this.watch.believes(facts.nowMs)) return this.onBeat(session)
    // The database read its clock between `askedMs` and now. So `aheadMs` is 0 if the database's time lies between
    // them.
    const aheadMs = Math.max(0, askedMs - facts.nowMs) + Math.min(0, Date.now() - facts.nowMs)
    this.#say('clock', { ...this.watch.judge(facts), aheadMs })
  }
}
