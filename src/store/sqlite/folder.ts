import { foldedMax, type Reporting } from '../../accounts/usage/reporting.ts'
import type { TrafficCell } from '../../accounts/usage/traffic.ts'
import { resultCode } from '../files/store-error.ts'
import { busyCode, type Connection, type ConnectionNews } from './connection.ts'
import type { Store } from './store.ts'

export type FolderOptions = {
  connection: Pick<Connection, 'write'>
  reporting: Reporting
  say: (news: Extract<ConnectionNews, { type: 'trouble' }>) => void
  /** Unix milliseconds. */
  nowMs: () => number
  /** How long entries wait until they are summed into figures, in ms. */
  everyMs: number
}

/** After each piece of work, the thread only serves debits. It does so for three times the duration of the work. */
const idleShare = 3

/** The time between two searches for figures that are no longer kept, in ms. */
const pruneEveryMs = 3_600_000

/** How long the work pauses after a failure whose cause is not the disk, in ms. */
const pauseMs = 60_000

/** The most cells (counts of requests) that wait until the store can be written. Further cells are dropped. */
const cellsMax = 20_000

/**
 * Folds (sums) the ledger into figures for reports. The work runs in the ledger's thread, but never in the commit of a
 * debit. It begins some seconds after an entry, or when enough entries have come. A failure does not affect the ledger.
 */
export class Folder {
  readonly #options: FolderOptions
  #noted = 0
  #timer: NodeJS.Timeout
  #cells: TrafficCell[] = []
  #prunedMs = Number.NEGATIVE_INFINITY
  #isPausing = false
  #isClosed = false

  /** If the zone of reports has changed, this first computes the figures of all days anew, in some seconds. */
  constructor(options: FolderOptions) {
    this.#options = options
    this.#try((store) => {
      store.adoptReporting(options.reporting, options.nowMs())
      return true
    })
    this.#timer = setTimeout(() => this.#work(), options.everyMs)
  }

  /** Notes that `count` debits were sent to the ledger. */
  note(count: number): void {
    this.#noted += count
    if (this.#noted >= foldedMax && !this.#isPausing) this.#schedule(0)
  }

  /** Takes counts of requests. @returns whether they are written; if not, they are kept and written later */
  noteTraffic(cells: readonly TrafficCell[]): boolean {
    if (this.#cells.length + cells.length <= cellsMax) this.#cells.push(...cells)
    return this.#writeTraffic()
  }

  close(): void {
    this.#writeTraffic()
    this.#isClosed = true
    clearTimeout(this.#timer)
  }

  #schedule(ms: number): void {
    clearTimeout(this.#timer)
    if (!this.#isClosed) this.#timer = setTimeout(() => this.#work(), ms)
  }

  /** Folds (sums) some entries, and plans the next work. In between, the thread is free for debits. */
  #work(): void {
    this.#noted = 0
    const startedMs = performance.now()
    const [isLeft, isFailed] = this.#try((store) => this.#foldIn(store))
    const tookMs = performance.now() - startedMs
    this.#isPausing = isFailed
    this.#schedule(isFailed ? pauseMs : isLeft ? Math.ceil(tookMs * idleShare) : this.#options.everyMs)
  }

  /** Folds some entries. @returns whether more entries are to be folded */
  #foldIn(store: Store): boolean {
    const nowMs = this.#options.nowMs()
    if (nowMs - this.#prunedMs >= pruneEveryMs) {
      store.adoptReporting(this.#options.reporting, nowMs)
      if (store.pruneSome()) return true
      this.#prunedMs = nowMs
    }
    return store.fold(foldedMax) === foldedMax
  }

  #writeTraffic(): boolean {
    const cells = this.#cells
    if (cells.length === 0) return true
    const [isDone] = this.#try((store) => {
      store.writeTraffic(cells)
      return true
    })
    if (isDone) this.#cells = []
    return isDone
  }

  #try(work: (store: Store) => boolean): [result: boolean, isFailed: boolean] {
    let [result, isFailed] = [false, false]
    this.#options.connection.write((store) => {
      try {
        result = store.withoutWaiting(() => work(store))
      } catch (error) {
        // Another connection has the lock. The work is tried again soon; until then the thread can look up keys.
        if (resultCode(error) === busyCode) return
        // Errors of the disk or of another process are thrown. The caller reports them and repeats the work.
        if (ofTheDisk.includes(resultCode(error))) throw error
        isFailed = true
        const message = `figures for reports cannot be kept: ${(error as Error).message}`
        this.#options.say({ type: 'trouble', message, code: resultCode(error) })
      }
    })
    return [result, isFailed]
  }
}

/**
 * SQLite's result codes for errors of the disk or of another process. They mean: locked, read-only, out of memory, I/O
 * error, damaged, full, cannot be opened, not a database.
 */
const ofTheDisk = [6, 7, 8, 10, 11, 13, 14, 26]
