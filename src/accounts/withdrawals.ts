/*
 * Handles debits that neither the database nor the spool could store (ruling C13). Each debit passes through these
 * states:
 *
 *     asked ──the poster finds it in the ledger──────▶ settled: its client gets its answer
 *     asked ──not found, or no answer in time────────▶ refused: its client gets a 500
 *     refused ──a commit has written─────────────────▶ over: the ledger has both the debit and its return, or neither
 *
 * No poster retries such a debit. But a failed commit may have stored it, or its line may still be in the spool. So a
 * note in the spool records the debit. The note is written before the client is refused, or as soon as the spool can be
 * written. With the note, the next start gives the debit back. If the process dies before the note is written, the
 * debit may stay; `ledger verify --log` finds it.
 */

import type { Debit } from './ledger.ts'
import { type BalanceListener, setFigures } from './live-accounts.ts'
import type { GivenBack, Poster, Spool, WithdrawalFate, Withdrawn } from './poster.ts'

/** A refused request whose debit must be reversed if the ledger has it. */
export type RefusedDebit = { requestId: string; accountId: string }

/** A debit, and the request that waits for it. */
export type WaitingDebit = {
  row: Debit
  /** When the wait began, and when it ends at the latest, in ms of the monotonic clock. */
  sinceMs: number
  dueMs: number
  resolve(result: 'posted' | 'exists' | 'spooled'): void
  reject(error: Error): void
}

type WithdrawalOptions = {
  spool: Spool
  balances: BalanceListener
  /** A monotonic clock in ms. */
  clockMs: () => number
  log: (level: 'info' | 'error', event: string, fields: Record<string, unknown>) => void
  /** Returns the open poster, which writes debits to the ledger. Undefined while no poster is open. */
  poster: () => Poster | undefined
  /** Called when a withdrawal was decided, noted in the spool or ended. */
  onChange: () => void
  /** Called when the withdrawal of a debit has ended. The debit no longer blocks its account (ruling Y16). */
  onOver: (accountId: string) => void
  /** Called when the store has written a commit. */
  onCommit: () => void
}

/** The longest wait for an answer of the poster, in ms. It is longer than the poster's wait for a locked file. */
const answerMs = 2_500

/** If the spool cannot take the notes of withdrawals, they are written again after this time, in ms. */
const noteMs = 1_000

type WithdrawalState = 'asked' | 'refused'

type Withdrawal = {
  accountId: string
  /** Undefined if the client was refused by an earlier run. */
  debit: WaitingDebit | undefined
  state: WithdrawalState
  /** Whether the debit may appear in the ledger after this process has died. */
  isDoubtful: boolean
  isNoted: boolean
}

export class Withdrawals {
  readonly #options: WithdrawalOptions
  readonly #withdrawals = new Map<string, Withdrawal>()
  readonly #questions = new Set<{ untilMs: number; giveUp(): void }>()
  readonly #running = new Set<Promise<void>>()
  #notedMs = Number.NEGATIVE_INFINITY
  #noting: Promise<void> | undefined

  constructor(options: WithdrawalOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#withdrawals.size
  }

  has(requestId: string): boolean {
    return this.#withdrawals.has(requestId)
  }

  /**
   * Whether the process may exit: every client has its answer, and every debit that may have to be given back is noted
   * in the spool.
   */
  isSafe(): boolean {
    return [...this.#withdrawals.values()].every(
      ({ state, isDoubtful, isNoted }) => state === 'refused' && (!isDoubtful || isNoted),
    )
  }

  /**
   * Asks the poster to take back debits that block their accounts. If a debit is in the ledger already, the debit's
   * promise resolves. Otherwise it rejects with `error`.
   */
  withdraw(debits: readonly WaitingDebit[], error: Error): void {
    for (const debit of debits)
      this.#withdrawals.set(debit.row.requestId, {
        ...{ accountId: debit.row.accountId, debit, state: 'asked', isDoubtful: false, isNoted: false },
      })
    const running = this.#refuse(debits, error).finally(() => this.#running.delete(running))
    this.#running.add(running)
  }

  /** Takes over refused debits of an earlier run, whose notes are in a spool. They block their accounts. */
  adopt(refused: readonly RefusedDebit[]): void {
    for (const { requestId, accountId } of refused)
      this.#withdrawals.set(requestId, {
        ...{ accountId, debit: undefined, state: 'refused', isDoubtful: true, isNoted: true },
      })
    this.#giveBackApart(refused)
  }

  /**
   * Called when a post reports that a debit is in the ledger. If the debit's client still waits, the withdrawal ends.
   * @returns the debit of the waiting client; undefined if the client is refused already
   */
  take(requestId: string): WaitingDebit | undefined {
    const withdrawal = this.#withdrawals.get(requestId)
    if (withdrawal?.state !== 'asked') return undefined
    this.#withdrawals.delete(requestId)
    return withdrawal.debit
  }

  /** Passes the refused debits to a new poster, which has received none of them yet. */
  resend(): void {
    const refused = [...this.#withdrawals].filter(([, { state }]) => state === 'refused')
    this.#giveBackApart(refused.map(([requestId, { accountId }]) => ({ requestId, accountId })))
  }

  /** Gives up questions without a timely answer, and writes notes that are due. Call this several times a second. */
  sweep(nowMs: number): void {
    for (const { untilMs, giveUp } of this.#questions) if (nowMs >= untilMs) giveUp()
    if (this.size > 0 && !this.#noting && nowMs - this.#notedMs >= noteMs) void this.#note()
  }

  /** Resolves when every client whose debit was withdrawn has its answer. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }

  /** Waits until each client has its answer. Then tries to note in the spool the debits that must still be reversed. */
  async close(): Promise<void> {
    await this.settled()
    if (!this.isSafe()) await this.#note()
  }

  async #refuse(debits: readonly WaitingDebit[], error: Error): Promise<void> {
    const { balances } = this.#options
    const answer = await this.#ask(debits.map(({ row }) => row))
    const refused = debits.filter((debit, index) => this.#decide(debit, answer?.fates[index] ?? 'unknown'))
    if (answer) setFigures(balances, answer)
    if (refused.some(({ row }) => this.#withdrawals.get(row.requestId)?.isDoubtful)) await this.#note()
    for (const { row, reject } of refused) {
      balances.owe(row.accountId, -row.amountNanos, row.keyId, row.details?.person)
      reject(error)
    }
    this.#giveBack(refused.map(({ row }) => row.requestId))
    this.#options.onChange()
  }

  /** Records the fate of a debit, as the poster has reported it. @returns whether the debit's client must be refused */
  #decide(debit: WaitingDebit, fate: WithdrawalFate): boolean {
    const { requestId, accountId, amountNanos, keyId, details } = debit.row
    const withdrawal = this.#withdrawals.get(requestId)
    if (!withdrawal) return false
    if (fate === 'booked') {
      this.#withdrawals.delete(requestId)
      this.#options.balances.owe(accountId, -amountNanos, keyId, details?.person)
      this.#options.onOver(accountId)
      debit.resolve('exists')
      return false
    }
    withdrawal.state = 'refused'
    withdrawal.isDoubtful = fate === 'unknown' || this.#options.spool.isTorn
    return true
  }

  /**
   * Asks the poster to withdraw debits.
   * @returns the result for each debit; undefined if the poster does not answer in time
   */
  #ask(rows: readonly Debit[]): Promise<Withdrawn | undefined> {
    const { poster, clockMs } = this.#options
    const { promise, resolve } = Promise.withResolvers<Withdrawn | undefined>()
    const question = { untilMs: clockMs() + answerMs, giveUp: () => resolve(undefined) }
    const answer = poster()?.withdraw(rows)
    if (answer) {
      this.#questions.add(question)
      answer.then(resolve, question.giveUp)
    } else question.giveUp()
    return promise.finally(() => this.#questions.delete(question))
  }

  /**
   * Writes a note into the spool for each debit that the next start must give back, if the spool can be written. Only
   * one write runs at a time.
   */
  async #note(): Promise<void> {
    while (this.#noting) await this.#noting
    this.#noting = this.#writeNotes().finally(() => {
      this.#noting = undefined
    })
    await this.#noting
  }

  async #writeNotes(): Promise<void> {
    const { spool, clockMs } = this.#options
    const open = [...this.#withdrawals].filter(([, { isDoubtful, isNoted }]) => isDoubtful && !isNoted)
    if (open.length === 0) return
    this.#notedMs = clockMs()
    try {
      await spool.appendReturns(open.map(([requestId]) => requestId))
    } catch {
      // The next sweep tries again. Nothing is logged here, because the failed write of the debits was logged already.
      return
    }
    for (const [, withdrawal] of open) withdrawal.isNoted = true
    this.#options.onChange()
  }

  /**
   * Gives the debits of each account back by themselves. Another session may keep one of the accounts locked for long
   * (ruling Y16).
   */
  #giveBackApart(refused: readonly RefusedDebit[]): void {
    for (const rows of Map.groupBy(refused, ({ accountId }) => accountId).values())
      this.#giveBack(rows.map(({ requestId }) => requestId))
  }

  /** Gives debits back. Without debits, the call only finds out whether the store can be written. */
  #giveBack(requestIds: readonly string[]): void {
    // If the poster dies, its successor gives the debits back.
    this.#options
      .poster()
      ?.giveBack(requestIds)
      .then(
        (given) => this.#end(requestIds, given),
        () => {},
      )
  }

  #end(requestIds: readonly string[], given: GivenBack): void {
    this.#options.onCommit()
    const over = requestIds.flatMap((requestId) => this.#withdrawals.get(requestId) ?? [])
    // The withdrawals may be over already, because another poster has given these debits back.
    if (over.length === 0) return
    for (const requestId of requestIds) this.#withdrawals.delete(requestId)
    for (const { accountId } of over) this.#options.onOver(accountId)
    setFigures(this.#options.balances, given)
    const { returned } = given
    const level = returned.length > 0 ? 'error' : 'info'
    this.#options.log(level, 'ledger_withdrawn', { withdrawn: requestIds.length, returned })
    this.#options.onChange()
  }
}
