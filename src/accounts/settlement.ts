/*
 * How debits become durable, whatever the store (ruling C3). It knows no engine, no thread, no file and no clock of its own.
 *
 * A debit stays here, in `waiting` and after its deadline in `overdue`, until a poster says that it is in the ledger: a
 * poster that dies takes nothing with it. The spool is for the death of the process. Every debit ends in one of three ways:
 *
 *     waiting ──posted in time─────────────▶ settled
 *     waiting ──deadline──▶ overdue, spooled ──posted later──▶ settled, and the spool is emptied
 *     waiting ──deadline──▶ overdue, not spooled: its client is refused ──posted later──▶ settled
 *
 * While anything is overdue nothing new is taken, and nobody may spend what is owed (ruling C5, faults F-S1).
 */
import type { Balances } from './balances.ts'
import type { Debit, Ledger } from './ledger.ts'
import type { DebitRow, Posted, Poster, Posting, Spool } from './poster.ts'

export type SettlementOptions = {
  /** Makes the poster: at first, and once more when it has died (faults F-P15). */
  startPoster(isFirst: boolean): Promise<Poster>
  spool: Spool
  balances: Balances
  /** How long a debit waits for the store before it is spooled. */
  settleDeadlineMs: number
  /** Monotonic. */
  clockMs: () => number
  /** The ledger is lost: its poster died twice, or somebody said so. Called once. */
  onFatal: (error: Error) => void
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
}

type Waiting = {
  row: DebitRow
  dueMs: number
  resolve(result: 'posted' | 'exists' | 'spooled'): void
  reject(error: Error): void
}

export class Settlement implements Ledger {
  readonly #options: SettlementOptions
  readonly #waiting = new Map<string, Waiting>()
  readonly #overdue = new Map<string, DebitRow>()
  /** Of the overdue, those that are on the disk in the spool. */
  readonly #spooled = new Set<string>()
  #poster: Poster | undefined
  #outbox: DebitRow[] = []
  #hasRestarted = false
  #isLost = false
  #isClosed = false
  #closing: { untilMs: number; proceed(): void } | undefined

  constructor(options: SettlementOptions) {
    this.#options = options
  }

  /** Before the first debit. @throws what the first start of the poster throws. */
  async open(): Promise<void> {
    this.#use(await this.#options.startPoster(true))
  }

  debit({ account, ...rest }: Debit): Promise<'posted' | 'exists' | 'spooled'> {
    const row: DebitRow = { ...rest, accountId: account.id }
    const { clockMs, settleDeadlineMs } = this.#options
    return new Promise((resolve, reject) => {
      if (this.#waiting.has(row.requestId) || this.#overdue.has(row.requestId)) {
        reject(new Error(`request ${row.requestId} is being settled already`))
        return
      }
      const dueMs = clockMs() + (this.#isLost ? 0 : settleDeadlineMs)
      this.#waiting.set(row.requestId, { row, dueMs, resolve, reject })
      // The debits of one turn of the event loop are posted together.
      if (this.#outbox.length === 0) setImmediate(() => this.#sendOutbox())
      this.#outbox.push(row)
    })
  }

  isWritable(): boolean {
    return !this.#isLost && this.#overdue.size === 0
  }

  /** Debits that are not in the ledger yet, spooled ones included. */
  get unsettled(): number {
    return this.#waiting.size + this.#overdue.size
  }

  /**
   * Spools what has waited too long. To be called several times within the deadline. The poster goes on trying: what it
   * posts later it posts once.
   */
  sweep(): void {
    const nowMs = this.#options.clockMs()
    if (this.#closing && nowMs >= this.#closing.untilMs) this.#closing.proceed()
    const late: Waiting[] = []
    for (const debit of this.#waiting.values()) {
      if (debit.dueMs > nowMs && !this.#isLost) break
      late.push(debit)
    }
    if (late.length > 0) this.#spoolLate(late)
  }

  /** The ledger cannot be had again while this process lives: what waits is spooled now, nothing new is taken. */
  lose(error: Error): void {
    if (this.#isLost) return
    this.#isLost = true
    this.sweep()
    this.#options.onFatal(error)
  }

  /**
   * Waits for what is not on the disk yet, for a deadline at most, and spools the rest. It takes no longer than that,
   * whatever the store does (B14). No debit may come after it.
   */
  async close(): Promise<void> {
    if (!this.#isLost && !this.#isSafe()) await this.#settled()
    this.#isClosed = true
    // What the deadline has not yet spooled is spooled now, before the poster ends that may yet bring it in.
    this.#isLost = true
    this.sweep()
    await this.#poster?.close()
    await this.#options.spool.close()
  }

  /** Whether the process may die: every debit is in the ledger or in the spool. */
  #isSafe(): boolean {
    return this.#waiting.size === 0 && this.#spooled.size === this.#overdue.size
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

  #post(debits: readonly DebitRow[]): void {
    if (debits.length === 0) return
    // A poster that died leaves them to its successor.
    this.#poster?.post(debits).then(
      (posted) => this.#settle(debits, posted),
      () => {},
    )
  }

  #use(poster: Poster): void {
    if (this.#isClosed) {
      void poster.close()
      return
    }
    this.#poster = poster
    poster.death.then((error) => this.#replacePoster(error))
    // The outbox is among the waiting: what is sent twice is posted once.
    this.#post([...this.#overdue.values(), ...Array.from(this.#waiting.values(), ({ row }) => row)])
  }

  /** Once. A second death is no accident (faults F-P15). */
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

  #settle(debits: readonly DebitRow[], { postings, balances }: Posted): void {
    const wasBehind = this.#overdue.size > 0
    for (const [index, row] of debits.entries()) this.#settleOne(row, postings[index]!)
    // Behind the debts: what is owed no longer is part of what the store says now.
    for (const [accountId, storedNanos] of balances) this.#options.balances.set(accountId, storedNanos)
    if (wasBehind && this.#overdue.size === 0) this.#clearSpool()
    if (this.#isSafe()) this.#closing?.proceed()
  }

  #settleOne(row: DebitRow, posting: Posting): void {
    const { requestId, accountId, amountNanos } = row
    const debit = this.#waiting.get(requestId)
    const isOverdue = this.#overdue.delete(requestId)
    // Settled before: it was posted again by a second poster.
    if (!debit && !isOverdue) return
    this.#waiting.delete(requestId)
    this.#spooled.delete(requestId)
    if (isOverdue) this.#options.balances.owe(accountId, -amountNanos)
    if (posting === 'conflict' || posting === 'rejected')
      this.#options.log('error', `ledger_${posting}`, { ...row, amountNanos: `${amountNanos}`, prices: undefined })
    if (posting === 'rejected') debit?.reject(new Error(`the ledger cannot hold the debit of request ${requestId}`))
    else debit?.resolve(posting === 'posted' ? 'posted' : 'exists')
  }

  #spoolLate(late: readonly Waiting[]): void {
    const { spool, balances, log } = this.#options
    const rows = late.map(({ row }) => row)
    for (const row of rows) {
      this.#waiting.delete(row.requestId)
      this.#overdue.set(row.requestId, row)
      balances.owe(row.accountId, row.amountNanos)
    }
    spool.append(rows).then(
      () => {
        log('error', 'ledger_unsettled', { spooled: rows.length, overdue: this.#overdue.size })
        for (const { requestId } of rows) if (this.#overdue.has(requestId)) this.#spooled.add(requestId)
        if (this.#isSafe()) this.#closing?.proceed()
        for (const { resolve } of late) resolve('spooled')
      },
      (error: Error) => {
        const overdue = this.#overdue.size
        log('error', 'ledger_unsettled', { unspooled: rows.length, overdue, error: error.message })
        for (const { reject } of late) reject(new Error('neither database nor spool can be written', { cause: error }))
      },
    )
  }

  #clearSpool(): void {
    this.#options.spool
      .clear(() => this.#overdue.size === 0)
      .catch((error: Error) => this.#options.log('error', 'spool_not_cleared', { error: error.message }))
  }
}
