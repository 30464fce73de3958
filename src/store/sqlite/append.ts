import type { DatabaseSync } from 'node:sqlite'
import { digestEntry, postedMs } from '../../accounts/chain.ts'
import { fullRow, insertEntrySql, type RowPart, valuesOf } from './entry.ts'

/** Where an account's chain ends, and its balance there. */
type Tail = { seq: bigint; balanceNanos: bigint; postedMs: number; digest: string | null }

/** Ends of chains, read once and kept for one transaction: its write lock keeps everybody else away from them. */
export type Batch = {
  readonly nowMs: number
  readonly headMs: number
  readonly tails: Map<string, Tail | undefined>
  readonly moved: Set<string>
}

/** Puts entries at the ends of the chains of their accounts (ruling C15), with the balances that they lead to. */
export function createAppender(db: DatabaseSync, nowMs: () => number) {
  const insertEntry = db.prepare(insertEntrySql)
  const readHead = db.prepare('SELECT moment_ms FROM head')
  const readTail = db.prepare(
    `SELECT a.seq, a.balance, e.posted_ms, e.digest FROM accounts a
     LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq WHERE a.id = ?`,
  )
  const move = db.prepare('UPDATE accounts SET seq = ?, balance = ? WHERE id = ?')
  return { inBatch, append }

  /** Inside the caller's transaction. Accounts move once, behind the last of their entries. */
  function inBatch<T>(work: (batch: Batch) => T): T {
    const headMs = Number(readHead.get()!.moment_ms)
    const batch: Batch = { nowMs: nowMs(), headMs, tails: new Map(), moved: new Set() }
    const result = work(batch)
    for (const accountId of batch.moved) {
      const { seq, balanceNanos } = batch.tails.get(accountId)!
      move.run(seq, balanceNanos, accountId)
    }
    return result
  }

  /** The next entry of the account. False when there is no such account, or the request id is booked already. */
  function append(batch: Batch, accountId: string, part: RowPart, changeNanos: bigint): boolean {
    const tail = tailOf(batch, accountId)
    if (!tail) return false
    const row = fullRow(part)
    row.account_id = accountId
    row.seq = tail.seq + 1n
    row.balance_after = tail.balanceNanos + changeNanos
    row.posted_ms = postedMs(batch.nowMs, tail.postedMs, batch.headMs)
    const digest = digestEntry(row, tail.digest)
    const { changes } = insertEntry.run(...valuesOf({ ...row, digest }))
    if (!changes) return false
    Object.assign(tail, { seq: row.seq, balanceNanos: row.balance_after, postedMs: row.posted_ms, digest })
    batch.moved.add(accountId)
    return true
  }

  function tailOf({ tails }: Batch, accountId: string): Tail | undefined {
    if (tails.has(accountId)) return tails.get(accountId)
    const row = readTail.get(accountId)
    const tail = row && {
      seq: row.seq as bigint,
      balanceNanos: row.balance as bigint,
      postedMs: Number(row.posted_ms ?? 0),
      digest: row.digest as string | null,
    }
    tails.set(accountId, tail)
    return tail
  }
}
