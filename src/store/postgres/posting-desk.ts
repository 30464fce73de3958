import { setTimeout as sleep } from 'node:timers/promises'
import type { Debit } from '../../accounts/ledger.ts'
import type { GivenBack, Posted, Posting, WithdrawalFate, Withdrawn } from '../../accounts/poster.ts'
import { formThreeBegun, type PackedDebit, type Say, unpackDebit } from '../serving/thread.ts'
import type { Desk } from './control.ts'
import { applicationOf, type Database, type DatabaseOptions, openDatabase } from './database.ts'
import { Pace } from './pace.ts'
import { findLocked, findMissing, giveBack, postDebits, readBalances } from './post.ts'
import { type Pending, PostingLane } from './posting-lane.ts'
import { PostedLately, SlowAccounts } from './posting-memory.ts'
import type { SpendWindows } from './spend-windows.ts'
import { codeOf, isConflict } from './trouble.ts'

type PostingOptions = {
  url: string
  /** The longest wait for one statement, in ms. */
  patienceMs: number
  say: Say
  clockMs: () => number
  /** Whether an earlier thread may have sent debits and crashed before their answers came. */
  isSuccessor: boolean
  windows: SpendWindows
}

/** The pause between two tries of calls outside the lanes (the connections for posting), in ms. */
const retryMs = 100

/**
 * The shortest time between two searches for lost debits, in ms. A search reads the debits of a minute. Without this
 * limit, a ledger that refuses every debit would cause a search after each try.
 */
const looksApartMs = 1_000

/**
 * The share of a call's time limit (`patienceMs`) for which the call may wait for a lock of another session.
 *
 * A waiting call keeps the locks of other accounts, for which calls of other servers may wait in turn. All these waits
 * together must be shorter than the time limit of one call, and much shorter than the time limit of a debit.
 */
const lockShare = 0.25

/** The most debits that one query looks up in the ledger. */
const lookMax = 1_000

const purpose = 'posting'

type Batch = {
  postings: Posting[]
  balances: Map<string, bigint>
  open: number
  /** Whether all debits of the batch belong to one account. Such debits are not deferred if their account is slow. */
  isApart: boolean
  resolve: (posted: Posted) => void
}

/**
 * Posts debits to the ledger despite failures of the database. A debit stays here until an answer of the server
 * confirms it. A call that ended without an answer is repeated, which is harmless because each request id is posted
 * once.
 */
export class PostingDesk implements Desk {
  readonly answers = {
    post: (packed: readonly PackedDebit[]) => this.#postAll(packed.map(unpackDebit)),
    withdraw: (rows: readonly Debit[]) => this.#withdraw(rows),
    giveBack: (requestIds: readonly string[]) => this.#giveBack(requestIds),
  }
  readonly #options: PostingOptions
  readonly #lanes: readonly PostingLane[]
  /** Connections for rare calls, which search for lost debits or reverse debits. */
  readonly #aside: Database
  readonly #databases: Database[] = []
  readonly #posted: PostedLately<Debit>
  readonly #gifts: PostedLately<string>
  #waiting: Pending[] = []
  readonly #pending = new Map<string, Pending>()
  /** Ids of requests with a deferred debit that is perhaps in the ledger, because an earlier call got no answer. */
  readonly #doubts = new Set<string>()
  #isScheduled = false
  readonly #pace: Pace
  readonly #slow = new SlowAccounts()
  /** Resolves once the schema exists, and the debits of earlier runs are posted. */
  readonly #opening = Promise.withResolvers<void>()
  #isOpen = false
  #isClosed = false
  /** Whether recent debits must be looked up again, because the connection was lost and a standby may lack debits. */
  #mustLookAgain = false
  #isLooking = false
  /** Processes of the database that may still run a call whose answer never came. */
  readonly #abandoned = new Set<number>()
  #troubleMs = Number.NEGATIVE_INFINITY

  constructor(options: PostingOptions) {
    this.#options = options
    this.#posted = new PostedLately(options.clockMs)
    this.#pace = new Pace(options.clockMs)
    this.#gifts = new PostedLately(options.clockMs)
    this.#lanes = [this.#openLane(0), this.#openLane(0), this.#openLane(10_000)]
    this.#aside = this.#openDatabase({ max: 2 })
  }

  /** Allows calls to begin, now that the schema exists and spools are posted. */
  async onReached(): Promise<void> {
    this.#isOpen = true
    this.#opening.resolve()
    this.#schedule()
  }

  onLost(): void {
    this.#suspect()
  }

  /** Notes debits and reversals that were posted outside the lanes. They too are looked for after a lost connection. */
  readonly remember = (debits: readonly Debit[], returned: readonly string[]): void => {
    // A search that runs may still fail. The next search then looks for the same debits, so none is forgotten yet.
    const isHolding = this.#mustLookAgain || this.#isLooking
    this.#posted.keep(debits, isHolding)
    this.#gifts.keep(returned, isHolding)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.all(this.#lanes.map(({ ended }) => ended))
    await Promise.all(this.#databases.map((database) => database.close()))
  }

  #openLane(idleMs: number): PostingLane {
    let pid: number | undefined
    const database = this.#openDatabase({ max: 1, idleMs })
    database.onConnect((connected) => (pid = connected))
    return new PostingLane({
      database,
      windows: this.#options.windows,
      pace: this.#pace,
      onConflict: async (accountIds) => {
        const asked = [...accountIds, ...this.#slow.list()]
        this.#slow.accuse(accountIds, await findLocked(database, asked).catch(() => undefined))
      },
      giveBack: (pending, error) => {
        if (pid !== undefined) this.#abandoned.add(pid)
        this.#takeBack(pending, error)
      },
      onPosted: (rows, accountIds) => {
        this.#slow.acquit(accountIds)
        this.remember(rows, [])
      },
      onBegun: () => this.#options.say('log', formThreeBegun),
      onFree: () => this.#schedule(),
    })
  }

  #openDatabase(options: Pick<DatabaseOptions, 'max' | 'idleMs'>): Database {
    const { url, patienceMs } = this.#options
    const settings = { lock_timeout: `${Math.ceil(patienceMs * lockShare)}` }
    const database = openDatabase({ url, patienceMs, purpose, settings, ...options, onLost: () => this.#suspect() })
    this.#databases.push(database)
    return database
  }

  #postAll(rows: readonly Debit[]): Promise<Posted> {
    const { promise, resolve } = Promise.withResolvers<Posted>()
    const isApart = rows.every(({ accountId }) => accountId === rows[0]!.accountId)
    const batch: Batch = { postings: [], balances: new Map(), open: rows.length, isApart, resolve }
    for (const [index, row] of rows.entries()) this.#add(row, batch, index)
    this.#deferSlow()
    this.#schedule()
    return promise
  }

  #add(row: Debit, batch: Batch, index: number): void {
    const pending: Pending = {
      row,
      isApart: batch.isApart,
      isDoubtful: this.#doubts.delete(row.requestId) || this.#options.isSuccessor,
      isWithdrawn: false,
      settle: (posting, balanceNanos) => {
        if (this.#pending.get(row.requestId) === pending) this.#pending.delete(row.requestId)
        batch.postings[index] = posting
        if (balanceNanos !== undefined) batch.balances.set(row.accountId, balanceNanos)
        if (--batch.open === 0) batch.resolve({ postings: batch.postings, balances: [...batch.balances] })
      },
    }
    this.#pending.set(row.requestId, pending)
    this.#waiting.push(pending)
  }

  /** Defers the debits of slow accounts (posting-memory.ts), which would delay the other debits of their batch. */
  #deferSlow(): void {
    if (this.#slow.size === 0) return
    const isDeferred = ({ row, isApart }: Pending) => !isApart && this.#slow.has(row.accountId)
    const deferred = this.#waiting.filter(isDeferred)
    this.#waiting = this.#waiting.filter((pending) => !isDeferred(pending))
    for (const { row, isDoubtful, settle } of deferred) {
      if (isDoubtful) this.#doubts.add(row.requestId)
      settle('deferred', undefined)
    }
  }

  /**
   * Schedules the next calls. They begin after all messages that have arrived are read. A lone debit is not delayed.
   */
  #schedule(): void {
    if (this.#isScheduled || !this.#isOpen) return
    this.#isScheduled = true
    const fill = () => {
      this.#isScheduled = false
      this.#fill()
    }
    const { waitMs } = this.#pace
    if (waitMs > 0) setTimeout(fill, waitMs)
    else setImmediate(fill)
  }

  #fill(): void {
    if (this.#isClosed) return
    if (this.#mustLookAgain) void this.#lookAgain()
    for (const lane of this.#lanes) {
      if (this.#waiting.length === 0) return
      if (!lane.isFree || (lane === this.#lanes.at(-1) && this.#slow.size === 0)) continue
      this.#waiting = lane.take(this.#waiting, this.#choose(lane))
    }
  }

  /**
   * Chooses the accounts of the next call of a lane, which makes one call at a time. No two lanes have the same account
   * at once. Each call of the last lane is for one slow account.
   */
  #choose(lane: PostingLane): (accountId: string) => boolean {
    const isFree = (accountId: string) => !this.#lanes.some((other) => other.isOn(accountId))
    const slow = this.#slow
    if (lane === this.#lanes.at(-1)) {
      const waiting = new Set(this.#waiting.map(({ row }) => row.accountId))
      const next = slow.list().find((accountId) => waiting.has(accountId) && isFree(accountId))
      return (accountId) => accountId === next
    }
    return slow.size === 0 ? isFree : (accountId) => !slow.has(accountId) && isFree(accountId)
  }

  #takeBack(pending: readonly Pending[], error: unknown): void {
    this.#tell(error)
    if (!isConflict(error)) this.#suspect()
    const again = pending.filter(({ isWithdrawn }) => !isWithdrawn)
    this.#waiting = [...again, ...this.#waiting]
    for (const { isWithdrawn, settle } of pending) if (isWithdrawn) settle('withdrawn', undefined)
    this.#deferSlow()
  }

  /** Reports trouble at most once a second, because every try fails while the server is gone. */
  #tell(error: unknown): void {
    const nowMs = this.#options.clockMs()
    if (nowMs - this.#troubleMs < 1_000) return
    this.#troubleMs = nowMs
    const fields = { error: (error as Error).message, code: codeOf(error) }
    this.#options.say('trouble', { event: 'ledger_trouble', fields })
  }

  #suspect(): void {
    this.#mustLookAgain = true
    this.#schedule()
  }

  /** Looks for recently posted debits in the ledger, and posts missing ones again. Also repeats recent reversals. */
  async #lookAgain(): Promise<void> {
    if (this.#isLooking) return
    this.#isLooking = true
    // The flag is cleared before the work, so that a connection lost during the work causes another look.
    this.#mustLookAgain = false
    const rows = this.#posted.list()
    try {
      let missing = 0
      for (let at = 0; at < rows.length; at += lookMax) missing += await this.#postMissing(rows.slice(at, at + lookMax))
      const gifts = this.#gifts.list()
      if (gifts.length > 0) this.remember([], (await giveBack(this.#aside, gifts, this.#options.windows)).returned)
      const level = missing > 0 ? 'error' : 'info'
      if (rows.length > 0)
        this.#options.say('log', { level, event: 'ledger_looked_again', fields: { looked: rows.length, missing } })
      await sleep(looksApartMs, undefined, { ref: false })
    } catch {
      this.#mustLookAgain = true
      await sleep(retryMs, undefined, { ref: false })
    }
    this.#isLooking = false
    if (this.#mustLookAgain) this.#schedule()
  }

  async #postMissing(rows: readonly Debit[]): Promise<number> {
    const missing = await findMissing(this.#aside, rows)
    if (missing.size === 0) return 0
    await postDebits(this.#aside, [...missing], this.#options.windows, {
      onBegun: () => this.#options.say('log', formThreeBegun),
    })
    this.remember([...missing], [])
    return missing.size
  }

  async #withdraw(rows: readonly Debit[]): Promise<Withdrawn> {
    const withdrawn = rows.map(({ requestId }) => this.#pending.get(requestId))
    for (const pending of withdrawn) if (pending) pending.isWithdrawn = true
    const waiting = this.#waiting.filter(({ isWithdrawn }) => isWithdrawn)
    this.#waiting = this.#waiting.filter(({ isWithdrawn }) => !isWithdrawn)
    const underWay = this.#lanes.filter((lane) => withdrawn.some((pending) => pending && lane.has(pending)))
    await Promise.all(underWay.map(({ ended }) => ended))
    const doubts = rows.map(({ requestId }) => this.#doubts.delete(requestId) || this.#options.isSuccessor)
    const unless = (at: number): WithdrawalFate => ((withdrawn[at]?.isDoubtful ?? doubts[at]) ? 'unknown' : 'absent')
    for (const { settle } of waiting) settle('withdrawn', undefined)
    try {
      const missing = await findMissing(this.#aside, rows)
      const fates = rows.map((row, at) => (missing.has(row) ? unless(at) : 'booked'))
      return { fates, balances: await readBalances(this.#aside, [...new Set(rows.map(({ accountId }) => accountId))]) }
    } catch (error) {
      this.#tell(error)
      const posted = new Set(this.#posted.list().map(({ requestId }) => requestId))
      const fates = rows.map(({ requestId }, at): WithdrawalFate => (posted.has(requestId) ? 'booked' : unless(at)))
      return { fates, balances: [] }
    }
  }

  /** Ends every call that might still post one of these debits, and then reverses the debits. */
  async #giveBack(requestIds: readonly string[]): Promise<GivenBack> {
    await this.#opening.promise
    for (;;) {
      try {
        await this.#endAbandoned()
        const given = await giveBack(this.#aside, requestIds, this.#options.windows)
        this.remember([], given.returned)
        return given
      } catch (error) {
        if (!isConflict(error)) this.#suspect()
        this.#tell(error)
        await sleep(retryMs)
      }
    }
  }

  async #endAbandoned(): Promise<void> {
    const pids = [...this.#abandoned]
    if (pids.length === 0) return
    const rows = await this.#aside.query(
      // OFFSET makes the database check all conditions of the inner query before it ends a session.
      `SELECT pid FROM (
         SELECT pid FROM pg_stat_activity WHERE pid = ANY ($1) AND application_name = $2 AND usename = current_user OFFSET 0
       ) ours WHERE NOT pg_terminate_backend(pid, 1000)`,
      [pids, applicationOf(purpose)],
    )
    if (rows.length > 0) throw new Error(`${rows.length} sessions of ours cannot be ended`)
    for (const pid of pids) this.#abandoned.delete(pid)
  }
}
