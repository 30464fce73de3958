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
 * Creates the append-only ledger. An entry, its place in the chain of its account (ruling C15) and the new balance are
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
    ...{ postCredits, postDebits, postReturns, giveBack, isBooked, payersOf, findMisfits },
    ...{ readBalances, balancesBehind, readSpends, forget },
  }

  /** Posts credits in the caller's transaction. The caller has checked the references and the range of the balances. */
  function postCredits(credits: readonly NewCredit[]): void {
    inBatch((batch) => {
      for (const { accountId, amountNanos, reference, createdMs, effectiveMs } of credits) {
        const row = creditRow(amountNanos, reference, createdMs ?? batch.nowMs, effectiveMs)
        append(batch, accountId, row, amountNanos)
      }
    })
  }

  /**
   * Posts all debits in one transaction, which is durable when this returns. Each request id is posted at most once.
   */
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
   * Posts the entries that reverse debits whose clients were refused (ruling C13). A debit is reversed at most once.
   * @returns `absent` for a request without a debit
   */
  function postReturns(requestIds: readonly string[]): ('posted' | 'exists' | 'absent')[] {
    return inTransaction((batch) => requestIds.map((requestId) => postReturn(batch, requestId)))
  }

  /**
   * Reverses the debits of these requests. The commit writes to the disk even if there is no debit to reverse. So a
   * success shows that the store can be written again. The commit also overwrites what a failed commit has left in the
   * log.
   * @returns the requests whose debit is in the ledger
   */
  function giveBack(requestIds: readonly string[]): string[] {
    return inTransaction((batch) => {
      // SQLite writes the page of `user_version` even if the value is unchanged. So the commit certainly writes to the
      // disk. An update that leaves a row unchanged would write nothing.
      db.exec(`PRAGMA user_version = ${userVersion.get()!.user_version}`)
      return requestIds.filter((requestId) => postReturn(batch, requestId) !== 'absent')
    })
  }

  function isBooked(requestId: string): boolean {
    return findDebit(requestId) !== undefined
  }

  /** Returns the ids of the account, the key and the person of a debit. Of an archived debit, only its account is here. */
  function payersOf(requestId: string): [accountId: string, ...spenders: (string | undefined)[]] | undefined {
    const debit = findDebit(requestId)
    const text = (column: string) => (debit?.[column] as string | null | undefined) ?? undefined
    return debit && [debit.account_id as string, text('key_id'), text('person')]
  }

  /** Finds a debit in the ledger, or else in the index of archives. */
  function findDebit(requestId: string) {
    return byRequestId.get(requestId) ?? archivedDebit.get(requestId)
  }

  function postReturn(batch: AppendBatch, requestId: string): 'posted' | 'exists' | 'absent' {
    const debit = findDebit(requestId)
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
   * Returns the balances right after a transaction of this connection. Balances that the transaction changed are still
   * in memory. To read a balance from the file would take four locks (8 µs of the 100 µs of a single debit).
   */
  function balancesBehind(accountIds: Iterable<string>): [accountId: string, balanceNanos: bigint][] {
    return [...accountIds].flatMap((id) => {
      const balanceNanos = lastBalance(id)
      return balanceNanos === undefined ? readBalances([id]) : [[id, balanceNanos]]
    })
  }

  /** Finds accounts whose balance differs from the balance in their last entry. Every start checks this. */
  function findMisfits(): string[] {
    return misfits.all().map((row) => row.id as string)
  }
}

/**
 * Whether the error is about this debit only. Such a debit breaks a constraint (19), or has a value that SQLite has no
 * type for. The other debits of the batch are still posted.
 */
function isAboutTheDebit(error: unknown): boolean {
  const { code = '' } = error as { code?: string }
  return resultCode(error) === 19 || code === 'ERR_INVALID_ARG_VALUE' || code === 'ERR_INVALID_ARG_TYPE'
}
