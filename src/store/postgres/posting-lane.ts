import type { Debit } from '../../accounts/ledger.ts'
import type { Posting } from '../../accounts/poster.ts'
import type { Database } from './database.ts'
import type { Pace } from './pace.ts'
import { postDebits } from './post.ts'
import type { SpendWindows } from './spend-windows.ts'
import { isConflict, isUnknown } from './trouble.ts'

/** A debit on its way into the ledger. */
export type Pending = {
  row: Debit
  /** A call that had it ended without an answer: it may be in the ledger, now or a little later. */
  isDoubtful: boolean
  /** This debit must not be tried any more (ruling C13). */
  isWithdrawn: boolean
  /** This debit was posted only with debits of its own account: no other account waits for the answer. */
  isApart: boolean
  /** Called once. */
  settle(posting: Posting, balanceNanos: bigint | undefined): void
}

/** More in one call would hold their accounts for long. */
const rowsMax = 500

/** Between two tries, in ms. */
const [pauseMs, pauseMaxMs] = [25, 250]

type LaneOptions = {
  database: Database
  windows: SpendWindows
  pace: Pace
  /** A call waited for somebody's lock in vain. It may look who it was, on the lane's connection, before the lane goes on. */
  onConflict: (accountIds: ReadonlySet<string>) => Promise<void>
  /** The debits that this gets are tried again. */
  giveBack: (pending: readonly Pending[], error: unknown) => void
  /** @param rows those that the ledger has */
  onPosted: (rows: readonly Debit[], accountIds: ReadonlySet<string>) => void
  onBegun: () => void
  /** The lane can take more. */
  onFree: () => void
}

/** One call at a time; what comes meanwhile is gathered for the next. That is what makes few calls of many debits. */
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

  /** Whether its call has debits of this account, which is then locked. */
  isOn(accountId: string): boolean {
    return this.#accounts.has(accountId)
  }

  has(pending: Pending): boolean {
    return this.#underWay.includes(pending)
  }

  /** Of its call, whatever came of it. */
  get ended(): Promise<void> {
    return this.#ended
  }

  /** Takes of the waiting those of these accounts, in their order. @returns what is left. */
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
      const answered = pace.begin()
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
