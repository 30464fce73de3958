/*
 * Makes debits durable, with any store (ruling C3). The module has no database, thread, file or clock of its own.
 *
 * A debit stays here until a poster reports that it is in the ledger. So nothing is lost if a poster dies. The spool
 * protects debits against the death of the process. Every debit ends in one of three ways:
 *
 *     waiting ──posted in time─────────────▶ settled
 *     waiting ──deadline──▶ overdue, spooled ──posted later──▶ settled, and the spool is emptied
 *     waiting ──deadline──▶ overdue, not spooled ──▶ withdrawn: its client is refused (withdrawals.ts)
 *
 * An account with an overdue debit gets no new inference, so that it cannot spend the amount that it owes. After a
 * withdrawal, the account stays blocked until a commit succeeds. Other accounts continue (rulings C5, C13, Y16, faults
 * F-S1). If two accounts have overdue debits and nothing was committed meanwhile, the ledger counts as not ready. All
 * accounts are blocked in three cases:
 *
 *     until a first commit succeeds, because the previous run may have ended without one;
 *     while the spool fails and the store has no recent commit, until the spool or the store accepts a write;
 *     when the ledger is lost, which ends the server.
 */

import { Register } from '../registers.ts'
import type { Backlog, Debit, Ledger, LedgerBlock } from './ledger.ts'
import { type BalanceListener, setFigures } from './live-accounts.ts'
import type { Posted, Poster, Posting, Spool } from './poster.ts'
import { type RefusedDebit, type WaitingDebit, Withdrawals } from './withdrawals.ts'

type SettlementOptions = {
  /** Starts the poster (the writer of debits) at first, and again after the poster has died (faults F-P15). */
  startPoster(isFirst: boolean): Promise<Poster>
  spool: Spool
  balances: BalanceListener
  /**
   * Returns why the clock that dates entries is in doubt (ruling Y15). While the clock is in doubt, new requests are
   * refused and the poster posts nothing.
   */
  whyDoubtful: () => string | undefined
  /** How long a debit waits for the store before it is spooled, in ms. */
  settleDeadlineMs: number
  /** A monotonic clock in ms. */
  clockMs: () => number
  /** Called once when the ledger is lost, because its poster died twice or `lose` was called. */
  onFatal: (error: Error) => void
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
}

/**
 * A store that has committed within this time, in ms, counts as accepting writes. If the settle deadline is shorter,
 * the deadline applies instead. A failed spool is probed at the same interval.
 */
const recentMs = 1_000

/** The most accounts that a log line lists. */
const namedMax = 20

export class Settlement implements Ledger {
  readonly #options: SettlementOptions
  readonly #waiting = new Register<WaitingDebit>()
  readonly #overdue = new Map<string, WaitingDebit>()
  /** The overdue debits that are on disk, in the spool. */
  readonly #spooled = new Set<string>()
  readonly #withdrawals: Withdrawals
  /** For each account with overdue or withdrawn debits: the number of these debits. */
  readonly #owing = new Map<string, number>()
  /** Resolves when all attempts so far to spool overdue debits have ended, successfully or not. */
  #spooling: Promise<unknown> = Promise.resolve()
  #poster: Poster | undefined
  #outbox: Debit[] = []
  #tellDurable: (tookMs: number) => void = () => {}
  #hasRestarted = false
  #isLost = false
  #isClosed = false
  #hasCommitted = false
  #committedMs = Number.NEGATIVE_INFINITY
  /** Whether neither the store nor the spool accepts writes. */
  #isStuck = false
  /** Accounts whose debits became overdue while the store committed nothing. Any commit empties this set. */
  readonly #stalled = new Set<string>()
  #probedMs = Number.NEGATIVE_INFINITY
  #opening: { untilMs: number; proceed(): void; fail(error: Error): void } | undefined
  #closing: { untilMs: number; proceed(): void } | undefined

  constructor(options: SettlementOptions) {
    this.#options = options
    const { spool, balances, clockMs, log } = options
    const [poster, onChange] = [() => this.#poster, () => this.#moveOn()]
    const [onOver, onCommit] = [(accountId: string) => this.#unblock(accountId), () => this.#noteCommit(clockMs())]
    this.#withdrawals = new Withdrawals({ spool, balances, clockMs, log, poster, onChange, onOver, onCommit })
  }

  /**
   * Starts the poster. Call this before the first debit and after `sweepOften`. Resolves when a commit is on the disk,
   * or when the settle deadline passes without a commit. In the second case the store counts as not writable until a
   * commit succeeds.
   * @throws if the first start of the poster fails, or if the ledger is lost
   */
  async open(): Promise<void> {
    const poster = await this.#options.startPoster(true)
    const untilMs = this.#options.clockMs() + this.#options.settleDeadlineMs
    const opened = new Promise<void>((proceed, fail) => {
      this.#opening = { untilMs, proceed, fail }
    })
    this.#use(poster)
    await opened
    this.#opening = undefined
  }

  debit(debit: Debit): Promise<'posted' | 'exists' | 'spooled'> {
    const { clockMs, settleDeadlineMs } = this.#options
    return new Promise((resolve, reject) => {
      if (this.#isUnsettled(debit.requestId)) {
        reject(new Error(`request ${debit.requestId} is being settled already`))
        return
      }
      const sinceMs = clockMs()
      const dueMs = sinceMs + (this.#isLost ? 0 : settleDeadlineMs)
      this.#waiting.set(debit.requestId, { row: debit, sinceMs, dueMs, resolve, reject })
      // The debits of one turn of the event loop are posted together.
      if (this.#outbox.length === 0) setImmediate(() => this.#sendOutbox())
      this.#outbox.push(debit)
    })
  }

  /**
   * Takes over debits that an earlier run left in a spool, and that the store did not accept at the start. Such a debit
   * blocks its account until the store accepts it. @param refused debits that must be reversed, with the same effect
   */
  adopt(rows: readonly Debit[], refused: readonly RefusedDebit[] = []): void {
    const returns = refused.filter(({ requestId }) => !this.#isUnsettled(requestId))
    for (const { accountId } of returns) this.#owing.set(accountId, (this.#owing.get(accountId) ?? 0) + 1)
    if (returns.length > 0) this.#withdrawals.adopt(returns)
    const nowMs = this.#options.clockMs()
    const debits: WaitingDebit[] = []
    for (const row of rows) {
      if (this.#isUnsettled(row.requestId)) continue
      const debit = { row, sinceMs: nowMs, dueMs: nowMs, resolve() {}, reject() {} }
      debits.push(debit)
      this.#block(debit)
    }
    if (debits.length === 0) return
    this.#noteSpooled(debits)
    this.#postApart(debits.map(({ row }) => row))
  }

  whyBlocked(accountId?: string): LedgerBlock | undefined {
    if (this.#isLost) return 'lost'
    if (this.#options.whyDoubtful() !== undefined) return 'clock'
    if (!this.#hasCommitted) return 'uncommitted'
    if (this.#isStuck) return 'stuck'
    if (accountId !== undefined) return this.#owing.has(accountId) ? 'owing' : undefined
    return this.#stalled.size > 1 ? 'stalled' : undefined
  }

  /**
   * The number of debits that are not in the ledger yet. Includes spooled debits, and refused debits that may have to
   * be given back.
   */
  get unsettled(): number {
    return this.#waiting.size + this.#overdue.size + this.#withdrawals.size
  }

  backlog(): Backlog {
    const [waiting, spooled] = [this.#waiting.size + this.#overdue.size - this.#spooled.size, this.#spooled.size]
    const oldest = this.#overdue.values().next().value ?? this.#waiting.values().next().value
    const oldestMs = oldest ? this.#options.clockMs() - oldest.sinceMs : 0
    return { waiting, spooled, oldestMs, blockedAccounts: this.#owing.size }
  }

  onDurable(tell: (tookMs: number) => void): void {
    this.#tellDurable = tell
  }

  #isUnsettled(requestId: string): boolean {
    return this.#waiting.has(requestId) || this.#overdue.has(requestId) || this.#withdrawals.has(requestId)
  }

  #hasCaughtUp(): boolean {
    return this.#overdue.size === 0 && this.#withdrawals.size === 0
  }

  /**
   * Spools debits that have waited too long. A timer calls this. The poster keeps trying to post spooled debits, and
   * posts each of them once.
   */
  sweep(): void {
    const nowMs = this.#options.clockMs()
    if (this.#opening && nowMs >= this.#opening.untilMs) this.#opening.proceed()
    if (this.#closing && nowMs >= this.#closing.untilMs) this.#closing.proceed()
    this.#withdrawals.sweep(nowMs)
    if (this.#isStuck && nowMs - this.#probedMs >= recentMs) {
      this.#probedMs = nowMs
      this.#options.spool.probe().then(this.#endStuck, () => {})
    }
    const late: WaitingDebit[] = []
    for (const debit of this.#waiting.values()) {
      if (debit.dueMs > nowMs && !this.#isLost) break
      late.push(debit)
    }
    for (const { row, sinceMs } of late) if (this.#committedMs < sinceMs) this.#stalled.add(row.accountId)
    if (late.length > 0) this.#spoolLate(late)
  }

  /**
   * Called when this process can never open the ledger again. Waiting debits are spooled now, and no new ones are
   * accepted.
   */
  lose(error: Error): void {
    if (this.#isLost) return
    this.#isLost = true
    if (this.#opening) {
      this.#opening.fail(error)
      return
    }
    this.sweep()
    this.#options.onFatal(error)
  }

  /**
   * Waits at most one settle deadline for debits that are not on disk yet, and spools the rest. A slow store cannot
   * extend the wait (B14). No debit may be added afterwards.
   */
  async close(): Promise<void> {
    if (!this.#isLost && !this.#isSafe()) await this.#settled()
    this.#isClosed = true
    // The poster is closed next. So debits are spooled now, even if their deadline has not come.
    this.#isLost = true
    this.sweep()
    await this.#spooling
    await this.#withdrawals.settled()
    await this.#poster?.close()
    await this.#withdrawals.close()
    await this.#options.spool.close()
  }

  /** Whether the process may exit: every debit is in the ledger or in the spool. */
  #isSafe(): boolean {
    return this.#waiting.size === 0 && this.#spooled.size === this.#overdue.size && this.#withdrawals.isSafe()
  }

  #settled(): Promise<void> {
    const untilMs = this.#options.clockMs() + this.#options.settleDeadlineMs
    return new Promise((proceed) => {
      this.#closing = { untilMs, proceed }
    })
  }

  #sendOutbox(): void {
    const debits = this.#outbox
    this.#outbox = []
    this.#post(debits)
  }

  #post(debits: readonly Debit[]): void {
    if (debits.length === 0) return
    // If the poster dies, its successor posts the debits.
    this.#poster?.post(debits).then(
      (posted) => this.#settle(debits, posted),
      () => {},
    )
  }

  /** Posts the debits of each account separately. Debits that were withdrawn meanwhile are not posted again. */
  #postApart(debits: readonly Debit[]): void {
    const open = debits.filter(({ requestId }) => this.#waiting.has(requestId) || this.#overdue.has(requestId))
    for (const rows of Map.groupBy(open, ({ accountId }) => accountId).values()) this.#post(rows)
  }

  #use(poster: Poster): void {
    if (this.#isClosed) {
      void poster.close()
      return
    }
    this.#poster = poster
    poster.death.then((error) => this.#replacePoster(error))
    // Debits in the outbox are also in `#waiting`, so they are sent twice. Each is still posted only once.
    this.#post(Array.from([...this.#overdue.values(), ...this.#waiting.values()], ({ row }) => row))
    this.#withdrawals.resend()
    if (!this.#hasCommitted || this.#isStuck) this.#tryCommit(poster)
  }

  /**
   * Makes a commit without a debit and syncs it to disk (C13), to check whether the store accepts writes. If the poster
   * dies, its successor tries again.
   */
  #tryCommit(poster: Poster): void {
    poster.giveBack([]).then(
      () => this.#noteCommit(this.#options.clockMs()),
      () => {},
    )
  }

  readonly #endStuck = () => {
    this.#isStuck = false
  }

  #noteCommit(nowMs: number): void {
    this.#committedMs = nowMs
    this.#stalled.clear()
    this.#endStuck()
    if (this.#hasCommitted) return
    this.#hasCommitted = true
    this.#opening?.proceed()
  }

  /** Restarts the poster once. After a second death the ledger counts as lost (faults F-P15). */
  #replacePoster(error: Error): void {
    this.#poster = undefined
    if (this.#isClosed) return
    if (this.#hasRestarted) {
      this.lose(error)
      return
    }
    this.#hasRestarted = true
    this.#options.log('error', 'ledger_worker_restart', { error: error.message })
    this.#options.startPoster(false).then(
      (poster) => this.#use(poster),
      (failure: Error) => this.lose(failure),
    )
  }

  #settle(debits: readonly Debit[], { postings, ...figures }: Posted): void {
    const wasBehind = this.#overdue.size > 0
    const nowMs = this.#options.clockMs()
    // Only a new entry shows that a commit has written to disk. Debits that were already in the ledger show nothing.
    if (postings.includes('posted')) this.#noteCommit(nowMs)
    for (const [index, row] of debits.entries()) this.#settleOne(row, postings[index]!, nowMs)
    // Balances are set after the debits are settled, because the reported balance includes settled debits.
    setFigures(this.#options.balances, figures)
    if (postings.includes('deferred')) this.#postApart(debits)
    if (wasBehind || this.#closing) this.#moveOn()
  }

  #settleOne(row: Debit, posting: Posting, nowMs: number): void {
    const { requestId, accountId, amountNanos, keyId, details } = row
    if (posting === 'withdrawn' || posting === 'deferred') return
    const waiting = this.#waiting.get(requestId)
    const debit = waiting ?? this.#overdue.get(requestId) ?? this.#withdrawals.take(requestId)
    // No client waits for this debit. Either it was settled before, and a second poster has posted it again. Or its
    // client was refused, and the debit is given back.
    if (!debit) return
    this.#waiting.delete(requestId)
    this.#overdue.delete(requestId)
    this.#spooled.delete(requestId)
    if (!waiting) {
      this.#options.balances.owe(accountId, -amountNanos, keyId, details?.person)
      this.#unblock(accountId)
    }
    if (posting === 'conflict' || posting === 'rejected')
      this.#options.log('error', `ledger_${posting}`, { ...row, amountNanos: `${amountNanos}`, prices: undefined })
    if (posting === 'posted' || posting === 'exists') this.#tellDurable(nowMs - debit.sinceMs)
    if (posting === 'rejected') debit.reject(new Error(`the ledger cannot hold the debit of request ${requestId}`))
    else debit.resolve(posting === 'posted' ? 'posted' : 'exists')
  }

  #spoolLate(late: readonly WaitingDebit[]): void {
    for (const debit of late) {
      this.#waiting.delete(debit.row.requestId)
      this.#block(debit)
    }
    const spooling = this.#options.spool.append(late.map(({ row }) => row)).then(
      () => {
        this.#endStuck()
        this.#noteSpooled(late)
      },
      (error: Error) => this.#withdraw(late, error),
    )
    this.#spooling = this.#spooling.then(() => spooling)
  }

  #block(debit: WaitingDebit): void {
    const { requestId, accountId, amountNanos, keyId, details } = debit.row
    this.#overdue.set(requestId, debit)
    this.#owing.set(accountId, (this.#owing.get(accountId) ?? 0) + 1)
    this.#options.balances.owe(accountId, amountNanos, keyId, details?.person)
  }

  #unblock(accountId: string): void {
    const left = this.#owing.get(accountId)! - 1
    if (left > 0) this.#owing.set(accountId, left)
    else {
      this.#owing.delete(accountId)
      this.#stalled.delete(accountId)
    }
  }

  #tellUnsettled(late: readonly WaitingDebit[], fields: Record<string, unknown>): void {
    const accounts = [...new Set(late.map(({ row }) => row.accountId))].slice(0, namedMax)
    const [overdue, blocked_accounts] = [this.#overdue.size, this.#owing.size]
    this.#options.log('error', 'ledger_unsettled', { ...fields, overdue, blocked_accounts, accounts })
  }

  #noteSpooled(late: readonly WaitingDebit[]): void {
    this.#tellUnsettled(late, { spooled: late.length })
    for (const { row, resolve } of late) {
      if (this.#overdue.has(row.requestId)) this.#spooled.add(row.requestId)
      resolve('spooled')
    }
    if (this.#isSafe()) this.#closing?.proceed()
  }

  /** Withdraws debits that were neither posted nor spooled, so that their clients are refused. */
  #withdraw(late: readonly WaitingDebit[], cause: Error): void {
    const open = late.filter(({ row }) => this.#overdue.delete(row.requestId))
    this.#tellUnsettled(late, { unspooled: open.length, error: cause.message })
    if (open.length === 0) return
    this.#probedMs = this.#options.clockMs()
    this.#isStuck ||= this.#probedMs - this.#committedMs >= Math.min(recentMs, this.#options.settleDeadlineMs)
    const unsent = new Set(open.map(({ row }) => row))
    this.#outbox = this.#outbox.filter((row) => !unsent.has(row))
    this.#withdrawals.withdraw(open, new Error('neither database nor spool can be written', { cause }))
  }

  /** Empties the spool when no debit needs it. Lets `close` end when every debit is in the ledger or in the spool. */
  #moveOn(): void {
    if (this.#hasCaughtUp()) this.#clearSpool()
    if (this.#isSafe()) this.#closing?.proceed()
  }

  #clearSpool(): void {
    this.#options.spool
      .clear(() => this.#hasCaughtUp())
      .catch((error: Error) => this.#options.log('error', 'spool_not_cleared', { error: error.message }))
  }
}

/** Calls `sweep` as often as the deadline requires. @returns a function that stops the calls */
export function sweepOften(settlement: Settlement, settleDeadlineMs: number): () => void {
  const sweeps = setInterval(() => settlement.sweep(), Math.max(5, Math.min(100, settleDeadlineMs / 10)))
  return () => clearInterval(sweeps)
}
