import type { DatabaseSync } from 'node:sqlite'
import type { Entry } from '../../accounts/entries.ts'
import type { DebitRow, Posting } from '../../accounts/poster.ts'
import { resultCode, transact } from './open.ts'

export type Credit = { accountId: string; amountNanos: bigint; reference: string }

export type Entries = ReturnType<typeof createEntries>

/** The append-only ledger. An entry and the balance it leads to are written together, the sum made by the database. */
export function createEntries(db: DatabaseSync, nowMs: () => number) {
  const insertCredit = db.prepare(
    `INSERT INTO entries (account_id, seq, kind, amount, balance_after, reference, created_ms)
     SELECT id, seq + 1, 'credit', ?2, balance + ?2, ?3, ?4 FROM accounts WHERE id = ?1`,
  )
  const insertDebit = db.prepare(
    `INSERT INTO entries (account_id, seq, kind, amount, balance_after, request_id, model, input_tokens, cache_read_tokens,
       cache_write_tokens, cache_write_1h_tokens, output_tokens, reasoning_tokens, usage_source, price_version, outcome, created_ms)
     SELECT id, seq + 1, 'debit', ?2, balance - ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14 FROM accounts WHERE id = ?1
     ON CONFLICT (request_id) DO NOTHING`,
  )
  const insertPrices = db.prepare(
    `INSERT INTO prices (version, input, cache_read, cache_write, cache_write_1h, output)
     VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (version) DO NOTHING`,
  )
  const move = db.prepare('UPDATE accounts SET seq = seq + 1, balance = balance + ?2 WHERE id = ?1')
  const byReference = db.prepare('SELECT * FROM entries WHERE reference = ?')
  const byRequestId = db.prepare('SELECT * FROM entries WHERE request_id = ?')
  const latest = db.prepare('SELECT * FROM entries WHERE ?1 IS NULL OR account_id = ?1 ORDER BY id DESC LIMIT ?2')
  const everything = db.prepare('SELECT * FROM entries ORDER BY id')
  const balanceOf = db.prepare('SELECT balance FROM accounts WHERE id = ?')
  const misfits = db.prepare(
    `SELECT a.id FROM accounts a LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq
     WHERE a.balance <> ifnull(e.balance_after, 0) OR (e.id IS NULL AND a.seq <> 0)`,
  )
  return { findCredit, postCredit, postDebits, readBalances, findEntry, listEntries, eachEntry, findMisfits }

  /** The credit that was booked with this reference, of any account. */
  function findCredit(reference: string): Omit<Credit, 'reference'> | undefined {
    const row = byReference.get(reference)
    return row && { accountId: row.account_id as string, amountNanos: row.amount as bigint }
  }

  /** Inside the caller's transaction, which has looked for the reference and knows that the balance can hold it. */
  function postCredit({ accountId, amountNanos, reference }: Credit): void {
    insertCredit.run(accountId, amountNanos, reference, nowMs())
    move.run(accountId, amountNanos)
  }

  /** All of them in one transaction, durable when it returns. Each request id is posted once, ever. */
  function postDebits(debits: readonly DebitRow[]): Posting[] {
    return transact(db, () => debits.map(postDebit))
  }

  function postDebit(debit: DebitRow): Posting {
    const { usage, prices, priceVersion } = debit
    try {
      insertPrices.run(
        priceVersion,
        prices.inputNanos,
        prices.cacheReadNanos,
        prices.cacheWriteNanos,
        prices.cacheWrite1hNanos,
        prices.outputNanos,
      )
      const { changes } = insertDebit.run(
        debit.accountId,
        debit.amountNanos,
        debit.requestId,
        debit.model,
        usage.inputTokens,
        usage.cacheReadTokens,
        usage.cacheWriteTokens,
        usage.cacheWrite1hTokens,
        usage.outputTokens,
        usage.reasoningTokens,
        debit.usageSource,
        priceVersion,
        debit.outcome,
        debit.createdMs,
      )
      if (changes) {
        move.run(debit.accountId, -debit.amountNanos)
        return 'posted'
      }
    } catch (error) {
      if (isAboutTheDebit(error)) return 'rejected'
      throw error
    }
    const earlier = findEntry(debit.requestId)
    if (!earlier) return 'rejected'
    return isSame(earlier, debit) ? 'exists' : 'conflict'
  }

  function readBalances(accountIds: Iterable<string>): [accountId: string, balanceNanos: bigint][] {
    return [...accountIds].flatMap((id) => {
      const row = balanceOf.get(id)
      return row ? [[id, row.balance as bigint]] : []
    })
  }

  function findEntry(requestId: string): Entry | undefined {
    const row = byRequestId.get(requestId)
    return row && readEntry(row)
  }

  /** The newest first. */
  function listEntries({ accountId, limit }: { accountId?: string; limit: number }): Entry[] {
    return latest.all(accountId ?? null, limit).map(readEntry)
  }

  /** The oldest first, read as they are asked for. */
  function* eachEntry(): Iterable<Entry> {
    for (const row of everything.iterate()) yield readEntry(row)
  }

  /** Accounts whose balance is not that of their last entry: what is checked at every start. */
  function findMisfits(): string[] {
    return misfits.all().map((row) => row.id as string)
  }
}

/** A broken constraint (19) or a value of the wrong type (20, 25) is the debit's own trouble; the rest of the batch is sound. */
function isAboutTheDebit(error: unknown): boolean {
  return [19, 20, 25].includes(resultCode(error)) || (error as { code?: string }).code === 'ERR_INVALID_ARG_VALUE'
}

/** The whole content but the time of making: a retry may have been made anew. */
function isSame(entry: Entry, debit: DebitRow): boolean {
  const { bill } = entry
  return (
    bill !== undefined &&
    entry.accountId === debit.accountId &&
    entry.amountNanos === debit.amountNanos &&
    bill.model === debit.model &&
    bill.priceVersion === debit.priceVersion &&
    bill.usageSource === debit.usageSource &&
    bill.outcome === debit.outcome &&
    bill.usage.inputTokens === debit.usage.inputTokens &&
    bill.usage.cacheReadTokens === debit.usage.cacheReadTokens &&
    bill.usage.cacheWriteTokens === debit.usage.cacheWriteTokens &&
    bill.usage.cacheWrite1hTokens === debit.usage.cacheWrite1hTokens &&
    bill.usage.outputTokens === debit.usage.outputTokens &&
    bill.usage.reasoningTokens === debit.usage.reasoningTokens
  )
}

export function readEntry(row: Record<string, unknown>): Entry {
  return {
    accountId: row.account_id as string,
    seq: Number(row.seq),
    kind: row.kind as Entry['kind'],
    amountNanos: row.amount as bigint,
    balanceAfterNanos: row.balance_after as bigint,
    createdMs: Number(row.created_ms),
    reference: (row.reference as string | null) ?? undefined,
    bill: row.kind === 'debit' ? readBill(row) : undefined,
  }
}

function readBill(row: Record<string, unknown>): Entry['bill'] {
  const usageSource = row.usage_source as DebitRow['usageSource']
  return {
    requestId: row.request_id as string,
    model: row.model as string,
    usage: {
      inputTokens: Number(row.input_tokens),
      cacheReadTokens: Number(row.cache_read_tokens),
      cacheWriteTokens: Number(row.cache_write_tokens),
      cacheWrite1hTokens: Number(row.cache_write_1h_tokens),
      outputTokens: Number(row.output_tokens),
      reasoningTokens: Number(row.reasoning_tokens),
      estimated: usageSource === 'estimated',
    },
    usageSource,
    priceVersion: row.price_version as string,
    outcome: row.outcome as DebitRow['outcome'],
  }
}
