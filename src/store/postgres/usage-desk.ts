import { setTimeout as pause } from 'node:timers/promises'
import type { ClockWatch } from '../../accounts/clock.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { foldEveryMs, type Reporting } from '../../accounts/usage/reporting.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import { StoreError } from '../files/store-error.ts'
import type { Say } from '../serving/thread.ts'
import { adoptReporting, findOtherZone, pruneSome, readUsageState } from '../sql/usage-keep.ts'
import type { Desk } from './control.ts'
import { type Database, openDatabase } from './database.ts'
import { createFolding } from './fold.ts'
import { dialect, run } from './run.ts'
import { codeOf } from './trouble.ts'

type UsageDeskOptions = { url: string; patienceMs: number; reporting: Reporting; say: Say; clock: Believed }

/** Tells whether the database's clock is right. Old figures are deleted only while the clock is right (Y15). */
type Believed = Pick<ClockWatch, 'isBelieved'>

/** The longest time of a statement, in ms. Recomputing the days of a large store takes long. */
const statementMs = 60_000

/** The time between two deletions of figures that are older than `keepMonths` allows, in ms. */
const pruneEveryMs = 3_600_000

/** The most cells (counts of requests) that wait for the database. Further cells are dropped. */
const cellsMax = 20_000

/** A server that reads figures notifies all servers on this channel, so that they write their counts. */
const readChannel = 'triwire_usage_read'

/** The shortest time between two notifications of one server on `readChannel`, in ms. */
const wantEveryMs = 500

/** The most connections: one to sum entries, one for counters that a report waits for, one for new words. */
const lanes = 3

/** Forces the use of an index for a slice, even if the planner has no statistics of the table. */
const byIndex = { enable_seqscan: 'off' }

/** Folds (sums) the ledger into figures for reports, some seconds after the debits. All servers fold concurrently. */
export class UsageDesk implements Desk {
  readonly answers = { traffic: (cells: readonly TrafficCell[]) => this.#takeTraffic(cells) }
  readonly orders = { wantTraffic: () => this.#wantTraffic() }
  readonly channels = { [readChannel]: () => this.#options.say('trafficWanted', undefined) }
  readonly #options: UsageDeskOptions
  readonly #database
  readonly #folding
  #timer: NodeJS.Timeout | undefined
  #cells: TrafficCell[] = []
  #working: Promise<void> = Promise.resolve()
  #writing: Promise<void> = Promise.resolve()
  #wantedMs = Number.NEGATIVE_INFINITY
  #prunedMs = Number.NEGATIVE_INFINITY
  #isClosed = false

  constructor(options: UsageDeskOptions) {
    this.#options = options
    const { url, patienceMs } = options
    this.#database = openDatabase({ url, patienceMs, statementMs, max: lanes, purpose: 'usage', settings: byIndex })
    this.#folding = createFolding(this.#database)
  }

  async onReached(): Promise<void> {
    this.#schedule(foldEveryMs / 10)
  }

  onLost(): void {
    clearTimeout(this.#timer)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearTimeout(this.#timer)
    await this.#working
    await this.#writeTraffic().catch(() => {})
    await this.#database.close()
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => (this.#working = this.#working.then(() => this.#work())), ms)
  }

  async #work(): Promise<void> {
    try {
      await this.#keep()
      await this.#writeTraffic()
      let beganMs = performance.now()
      // After each batch, the thread rests for as long as the batch took. Without rests, the summing of a long ledger
      // needed 312 MB instead of 280.
      while (!this.#isClosed && (await this.#folding.fold())) {
        await pause(performance.now() - beganMs)
        beganMs = performance.now()
      }
    } catch (error) {
      // The next run continues from here. If the database cannot be used, the posting of debits reports that, so only
      // other errors are reported here.
      if (!/^(08|57|40|55)|^E/.test(codeOf(error)) && codeOf(error) !== '')
        this.#say(`figures for reports cannot be kept: ${(error as Error).message}`)
    }
    this.#schedule(foldEveryMs)
  }

  async #keep(): Promise<void> {
    const nowMs = performance.now()
    if (nowMs - this.#prunedMs < pruneEveryMs || !this.#options.clock.isBelieved) return
    // If servers have different settings for the first day of the week, the server that started last decides.
    const isStart = this.#prunedMs === Number.NEGATIVE_INFINITY
    const { reporting } = this.#options
    const zone = isStart ? reporting : await run(this.#database, readUsageState(dialect))
    const kept = { ...zone, keepMonths: reporting.keepMonths }
    await run(this.#database, adoptReporting(dialect, kept))
    while (!this.#isClosed && (await run(this.#database, pruneSome(dialect)))) {}
    this.#prunedMs = nowMs
  }

  #noteTraffic(cells: readonly TrafficCell[]): void {
    if (this.#cells.length + cells.length <= cellsMax) this.#cells.push(...cells)
  }

  async #takeTraffic(cells: readonly TrafficCell[]): Promise<boolean> {
    this.#noteTraffic(cells)
    await this.#writeTraffic()
    return true
  }

  /** Asks all servers to write their counts. The current report does not wait for them; the next report has them. */
  #wantTraffic(): void {
    const nowMs = performance.now()
    if (nowMs - this.#wantedMs < wantEveryMs) return
    this.#wantedMs = nowMs
    this.#database.query('SELECT pg_notify($1, $2)', [readChannel, '']).catch(() => {})
  }

  /**
   * Writes the counts that wait. Calls run one after the other. Even without counts, the promise resolves only after
   * the earlier calls.
   */
  #writeTraffic(): Promise<void> {
    const writing = this.#writing.catch(() => {}).then(() => this.#writeCells())
    this.#writing = writing
    return writing
  }

  async #writeCells(): Promise<void> {
    const cells = this.#cells
    if (cells.length === 0) return
    this.#cells = []
    try {
      await this.#folding.writeTraffic(cells)
    } catch (error) {
      this.#noteTraffic(cells)
      throw error
    }
  }

  #say(message: string): void {
    this.#options.say('log', { level: 'error', event: 'usage_trouble', fields: { error: message } })
  }
}

/**
 * Records the reporting zone of this server if the store has none.
 * @param shown the name of the store for people
 * @throws StoreError if the store has another zone (ruling X12)
 */
export async function settleZone(database: Database, reporting: Reporting, shown: string): Promise<void> {
  if (!isRecorded(await run(database, readUsageState(dialect)))) await run(database, adoptReporting(dialect, reporting))
  await refuseOtherZone(database, reporting.timeZone, shown)
}

/**
 * Checks that the store has this server's reporting zone.
 * @param said the zone of this server
 * @param shown the name of the store for people
 * @throws StoreError if the store has another zone (ruling X12)
 */
export async function refuseOtherZone(database: Database, said: string, shown: string): Promise<void> {
  const refusal = await run(database, findOtherZone(dialect, said, shown))
  if (refusal !== undefined) throw new StoreError(refusal)
}
