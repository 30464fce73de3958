import type { DatabaseSync } from 'node:sqlite'
import type { NewCredit } from '../../accounts/book-rules.ts'
import type { Calendar } from '../../accounts/calendar.ts'
import { isSame, returnReference } from '../../accounts/entries.ts'
import { creditRow, debitRow, isWellTyped, readEntry, returnRow } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { Posting } from '../../accounts/poster.ts'
import { resultCode } from '../files/store-error.ts'
import { repeatOf } from '../sql/archives.ts'
import { type AppendBatch, createAppender } from './append.ts'

export type Entries = ReturnType<typeof createEntries>

/**
 * The append-only ledger. An entry, its place in the chain of its account (ruling C15) and the balance it leads to are
 * written in one transaction.
 */
export function createEntries(db: DatabaseSync, nowMs: () => number, calendar: Calendar, onBegun = () => {}) {
  const appender = createAppender(db, nowMs, calendar, onBegun)
  const { inTransaction, inBatch, append, notePrices, lastBalance, readSpends, forget } = appender
  const byReference = db.prepare('SELECT * FROM entries WHERE reference = ?')
  const byRequestId = db.prepare('SELECT * FROM entries WHERE request_id = ?')
  const archivedDebit = db.prepare("SELECT * FROM archived WHERE id = ? AND kind = 'debit'")
  const archivedCredit = db.prepare("SELECT kind FROM archived WHERE id = ? AND kind <> 'debit'")
  const userVersion = db.prepare('PRAGMA user_version')
  const balanceOf = db.prepare('SELECT balance FROM accounts WHERE id = ?')
  const misfits = db.prepare(
    `SELECT a.id FROM accounts a LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq
     WHERE a.balance <> ifnull(e.balance_after, 0) OR (e.id IS NULL AND a.seq <> 0)`,
  )
  return {
    ...{ postCredits, postDebits, postReturns, giveBack, isBooked, findMisfits },
    ...{ readBalances, balancesBehind, readSpends, forget },
  }

  /** Inside the caller's transaction, which has looked for the references and knows that the balances can hold them. */
  function postCredits(credits: readonly NewCredit[]): void {
    inBatch((batch) => {
      for (const { accountId, amountNanos, reference, createdMs, effectiveMs } of credits) {
        const row = creditRow(amountNanos, reference, createdMs ?? batch.nowMs, effectiveMs)
        append(batch, accountId, row, amountNanos)
      }
    })
  }

  /** All of them in one transaction, durable when it returns. Each request id is posted once, ever. */
  function postDebits(debits: readonly Debit[]): Posting[] {
    return inTransaction((batch) => debits.map((debit) => postDebit(batch, debit)))
  }

  function postDebit(batch: AppendBatch, debit: Debit): Posting {
    try {
      notePrices(batch, debit)
      const row = debitRow(debit)
      if (isWellTyped(row) && append(batch, debit.accountId, row, -debit.amountNanos)) return 'posted'
    } catch (error) {
      if (!isAboutTheDebit(error)) throw error
    }
    const earlier = byRequestId.get(debit.requestId)
    if (!earlier) return repeatOf(debit, archivedDebit.get(debit.requestId))
    return isSame(readEntry(earlier), debit) ? 'exists' : 'conflict'
  }

  /**
   * Gives back debits whose clients were refused (ruling C13), each once, ever.
   * @returns `absent` if there is no such debit.
   */
  function postReturns(requestIds: readonly string[]): ('posted' | 'exists' | 'absent')[] {
    return inTransaction((batch) => requestIds.map((requestId) => postReturn(batch, requestId)))
  }

  /**
   * The same, for requests that have a debit. The commit writes to the disk even if no request has one: it shows that the store
   * can be written again. Nothing that an earlier commit has left half done in the log survives it.
   * @returns the requests whose debit is in the ledger.
   */
  function giveBack(requestIds: readonly string[]): string[] {
    return inTransaction((batch) => {
      // SQLite writes the page of this number without a look at what it was; equal values of a row it leaves alone.
      db.exec(`PRAGMA user_version = ${userVersion.get()!.user_version}`)
      return requestIds.filter((requestId) => postReturn(batch, requestId) !== 'absent')
    })
  }

  function isBooked(requestId: string): boolean {
    return (byRequestId.get(requestId) ?? archivedDebit.get(requestId)) !== undefined
  }

  function postReturn(batch: AppendBatch, requestId: string): 'posted' | 'exists' | 'absent' {
    const debit = byRequestId.get(requestId) ?? archivedDebit.get(requestId)
    if (!debit) return 'absent'
    for (let number = 1; ; number++) {
      const reference = returnReference(requestId, number)
      const taken = byReference.get(reference)
      const archived = archivedCredit.get(reference)
      if (archived?.['kind'] === 'return' || (taken && readEntry(taken).returned)) return 'exists'
      if (taken || archived) continue
      append(batch, debit.account_id as string, returnRow(debit, reference, batch.nowMs), debit.amount as bigint)
      return 'posted'
    }
  }

  function readBalances(accountIds: Iterable<string>): [accountId: string, balanceNanos: bigint][] {
    return [...accountIds].flatMap((id) => {
      const row = balanceOf.get(id)
      return row ? [[id, row.balance as bigint]] : []
    })
  }

  /**
   * The same right after a transaction of this connection. Balances that it has moved are known. To read one would take four
   * locks of the file (8 µs of the 100 that a debit alone costs).
   */
  function balancesBehind(accountIds: Iterable<string>): [accountId: string, balanceNanos: bigint][] {
    return [...accountIds].flatMap((id) => {
      const balanceNanos = lastBalance(id)
      return balanceNanos === undefined ? readBalances([id]) : [[id, balanceNanos]]
    })
  }

  /** Accounts whose balance is not that of their last entry: what is checked at every start. */
  function findMisfits(): string[] {
    return misfits.all().map((row) => row.id as string)
  }
}

/** A broken constraint (19) or a value that SQLite has no type for is the debit's own trouble; the rest of the batch is sound. */
function isAboutTheDebit(error: unknown): boolean {
  const { code = '' } = error as { code?: string }
  return resultCode(error) === 19 || code === 'ERR_INVALID_ARG_VALUE' || code === 'ERR_INVALID_ARG_TYPE'
}
