import type { Debit } from '../../accounts/ledger.ts'
import type { Posting } from '../../accounts/poster.ts'
import type { Database } from './database.ts'
import type { Pace } from './pace.ts'
import { postDebits } from './post.ts'
import type { SpendWindows } from './spend-windows.ts'
import { isConflict, isUnknown } from './trouble.ts'

/** A debit on its way to the ledger. */
export type Pending = {
  row: Debit
  /** Whether a call with this debit ended without an answer. The debit may be in the ledger, or still get there. */
  isDoubtful: boolean
  /** Whether the debit must not be tried again, because its client was refused (ruling C13). */
  isWithdrawn: boolean
  /** Whether the debit came in a batch that belongs to one account. Then no other account waits for the batch. */
  isApart: boolean
  /** Called once, with the result. */
  settle(posting: Posting, balanceNanos: bigint | undefined): void
}

/** The most debits in one call. A larger call would keep the accounts of its debits locked for long. */
const rowsMax = 500

/** The first and the longest pause between two tries, in ms. */
const [pauseMs, pauseMaxMs] = [25, 250]

type LaneOptions = {
  database: Database
  windows: SpendWindows
  pace: Pace
  /**
   * Called if a call did not get a lock in time. The lane makes no further call until the promise resolves, so its
   * connection is free for a query.
   */
  onConflict: (accountIds: ReadonlySet<string>) => Promise<void>
  /** Called with debits that must be tried again. */
  giveBack: (pending: readonly Pending[], error: unknown) => void
  /** Called when debits are posted. @param rows the debits that the ledger now has */
  onPosted: (rows: readonly Debit[], accountIds: ReadonlySet<string>) => void
  onBegun: () => void
  /** Called when the lane can take more debits. */
  onFree: () => void
}

/** Posts debits, one call at a time. Debits that arrive during a call share the next call. */
export class PostingLane {
  readonly #options: LaneOptions
  #underWay: readonly Pending[] = []
  #accounts: ReadonlySet<string> = new Set()
  #ended: Promise<void> = Promise.resolve()
  #failures = 0
  #isPaused = false

  constructor(options: LaneOptions) {
    this.#options = options
  }

  get isFree(): boolean {
    return this.#underWay.length === 0 && !this.#isPaused
  }

  /** Whether the current call has debits of this account. The account stays locked during the call. */
  isOn(accountId: string): boolean {
    return this.#accounts.has(accountId)
  }

  has(pending: Pending): boolean {
    return this.#underWay.includes(pending)
  }

  /** Resolves when the current call has ended, with or without success. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Posts waiting debits of the accounts that `isMeant` accepts. @returns the debits that this call does not post */
  take(waiting: readonly Pending[], isMeant: (accountId: string) => boolean): Pending[] {
    const [taken, left]: [Pending[], Pending[]] = [[], []]
    for (const pending of waiting) {
      const isOurs = taken.length < rowsMax && isMeant(pending.row.accountId)
      ;(isOurs ? taken : left).push(pending)
    }
    if (taken.length > 0) this.#ended = this.#post(taken)
    return left
  }

  async #post(taken: readonly Pending[]): Promise<void> {
    this.#underWay = taken
    this.#accounts = new Set(taken.map(({ row }) => row.accountId))
    const rows = taken.map(({ row }) => row)
    const booked: Debit[] = []
    try {
      const { database, windows, pace, onBegun } = this.#options
      const answered = pace.begin(taken.length)
      const listener = { onBooked: (row: Debit) => void booked.push(row), onBegun }
      const { postings, balances } = await postDebits(database, rows, windows, listener)
      answered()
      this.#failures = 0
      this.#options.onPosted(booked, this.#accounts)
      this.#free()
      const stored = new Map(balances)
      for (const [at, { row, settle }] of taken.entries()) settle(postings[at]!, stored.get(row.accountId))
    } catch (error) {
      if (isConflict(error)) await this.#options.onConflict(this.#accounts)
      this.#free()
      const isOpen = isUnknown(error)
      for (const pending of taken) if (isOpen || booked.includes(pending.row)) pending.isDoubtful = true
      this.#pause()
      this.#options.giveBack(taken, error)
    }
    this.#options.onFree()
  }

  #free(): void {
    this.#underWay = []
    this.#accounts = new Set()
  }

  #pause(): void {
    this.#isPaused = true
    const ms = Math.min(pauseMaxMs, pauseMs * 2 ** this.#failures++)
    setTimeout(() => {
      this.#isPaused = false
      this.#options.onFree()
    }, ms)
  }
}
