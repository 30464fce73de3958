import { StoreSilent } from '../../accounts/account.ts'
import { ClockBook } from '../../accounts/clock.ts'
import type { FoundDebit } from '../../accounts/entries.ts'
import {
  type BalanceListener,
  type BoundsBook,
  createDirectory,
  type LiveDirectory,
} from '../../accounts/live-accounts.ts'
import type { Poster } from '../../accounts/poster.ts'
import type { ServerStore, ServingOptions } from '../../accounts/server-store.ts'
import { Settlement, sweepOften } from '../../accounts/settlement.ts'
import { readingPatienceMs, shareReadings } from '../../accounts/shared-reading.ts'
import { createSpool, spoolPath } from '../files/spool.ts'
import { createSteadyClock } from '../files/steady-clock.ts'
import { Line, packDebit, type StoreThread, type ThreadStart } from './thread.ts'

/** The parts of a store's serving side that differ between the engines. */
type ServingEngine = {
  /** The base path of the server's spool and lock. */
  place: string
  balances: BalanceListener
  bounds: BoundsBook
  /** The most accounts to keep in memory. Other accounts are looked up when a request needs them. */
  accountsMax?: number
  /** Describes the thread to start. @param isFirst false if the thread replaces one that died */
  thread(isFirst: boolean): ThreadStart
  onStarted?(thread: StoreThread): void
  onOpened?(answer: { isReached: boolean }): void
  /** Called when a lookup of keys has waited for `forMs` without an answer. */
  onSilence?(forMs: number): void
}

/** The parts of a server's store that every engine has. */
type ServedParts = Pick<ServerStore, 'directory' | 'clock' | 'findDebit' | 'noteTraffic' | 'close'>

/**
 * The maximum number of simultaneous searches for a debit. One or two operators need no more, even while the store does
 * not answer.
 */
const findsMax = 20

/** A server's connection to its store. It links `settlement` and `directory` to the thread that serves the store. */
export class StoreClient {
  readonly line = new Line()
  readonly clock: ClockBook
  readonly directory: LiveDirectory
  readonly settlement: Settlement
  readonly #options: ServingOptions
  readonly #engine: ServingEngine
  #finds = 0

  constructor(options: ServingOptions, engine: ServingEngine) {
    this.#options = options
    this.#engine = engine
    const { settleDeadlineMs, clockMs, onFatal, log } = options
    const { place, balances, bounds, accountsMax } = engine
    this.clock = new ClockBook(log, createSteadyClock())
    this.directory = createDirectory({ balances, bounds, accountsMax, readAgain: this.#shareLookUps() })
    this.settlement = new Settlement({
      startPoster: (isFirst) => this.#startThread(isFirst),
      spool: createSpool(spoolPath(place)),
      balances,
      whyDoubtful: () => this.clock.doubt,
      settleDeadlineMs,
      clockMs,
      onFatal,
      log,
    })
    this.line.hear('log', ({ level, event, fields }) => log(level, event, fields))
    this.line.hear('trouble', ({ event, fields }) => {
      log('error', event, { ...fields, unsettled: this.settlement.unsettled })
    })
    this.line.hear('clock', (news) => this.clock.hear(news))
    this.line.hear('changes', (changes) => {
      if (changes.isAnew) this.directory.clear()
      this.directory.apply(changes)
    })
  }

  /**
   * Opens the store, and serves it until it is closed.
   * @param unlock called at the end, even if the store could not be opened
   * @throws what `open` throws
   */
  async serve(unlock: () => void, open: () => Promise<void>): Promise<ServedParts> {
    const { settlement, directory, clock } = this
    const { settleDeadlineMs, touchMs = 10_000 } = this.#options
    const stopSweeps = sweepOften(settlement, settleDeadlineMs)
    const close = () =>
      settlement.close().finally(() => {
        stopSweeps()
        unlock()
      })
    try {
      await open()
    } catch (error) {
      await close()
      throw error
    }
    const touches = setInterval(() => this.#writeUses(), touchMs)
    return {
      directory,
      clock,
      findDebit: (requestId) => this.#findDebit(requestId),
      noteTraffic: (cells) => this.line.ask('traffic', cells),
      close: async () => {
        clearInterval(touches)
        this.#writeUses()
        await close()
      },
    }
  }

  #writeUses(): void {
    const uses = this.directory.takeUses()
    if (uses.length > 0) this.line.order('uses', uses)
  }

  async #findDebit(requestId: string): Promise<FoundDebit | undefined> {
    if (this.#finds >= findsMax) throw new StoreSilent('too many requests wait for the store')
    this.#finds++
    try {
      return await this.#read(() => this.line.ask('findDebit', requestId))
    } finally {
      this.#finds--
    }
  }

  /** Returns a function that looks up a key. A read answers all lookups that were waiting when the read began. */
  #shareLookUps(): (digest: string) => Promise<void> {
    const { clockMs, lookMs = readingPatienceMs } = this.#options
    let asked = new Set<string>()
    const read = () => {
      const digests = [...asked]
      asked = new Set()
      return this.#read(() => this.line.ask('lookUp', digests))
    }
    const share = shareReadings({ read, clockMs, patienceMs: lookMs })
    return (digest) => {
      asked.add(digest)
      return share().catch((error: unknown) => {
        this.#engine.onSilence?.(lookMs)
        throw error
      })
    }
  }

  async #read<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (cause) {
      throw new StoreSilent('the store cannot be read', { cause })
    }
  }

  async #startThread(isFirst: boolean): Promise<Poster> {
    const { thread: start, onStarted, onOpened } = this.#engine
    const thread = this.line.start(start(isFirst))
    onStarted?.(thread)
    try {
      const answer = await thread.ask('open', undefined)
      onOpened?.(answer)
    } catch (error) {
      await thread.close()
      throw error
    }
    return {
      post: (debits) => thread.ask('post', debits.map(packDebit)),
      withdraw: (debits) => thread.ask('withdraw', debits),
      giveBack: (requestIds) => thread.ask('giveBack', requestIds),
      death: thread.death,
      close: () => thread.close(),
    }
  }
}
