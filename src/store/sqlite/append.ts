import type { DatabaseSync } from 'node:sqlite'
import { digestEntry, postedMs } from '../../accounts/chain.ts'
import { formatTerms, insertEntrySql, type UnplacedRow, valuesOf } from '../../accounts/entry-row.ts'
import type { DebitRow } from '../../accounts/poster.ts'
import { transact } from './open.ts'

/** Where an account's chain ends, and its balance there. */
type Tail = { seq: bigint; balanceNanos: bigint; postedMs: number; digest: string | null }

/** What is known of the store while its write lock keeps everybody else away. */
type Known = {
  readonly tails: Map<string, Tail | undefined>
  /** Of prices. */
  readonly versions: Set<string>
}

export type Batch = Known & {
  readonly nowMs: number
  readonly headMs: number
  readonly moved: Set<string>
}

/** Ends of chains that are remembered at once; each takes some 200 bytes. */
const knownMax = 10_000

/** Puts entries at the ends of the chains of their accounts (ruling C15), with the balances that they lead to. */
export function createAppender(db: DatabaseSync, nowMs: () => number) {
  const insertEntry = db.prepare(insertEntrySql)
  const insertPrices = db.prepare(
    `INSERT INTO prices (version, input, cache_read, cache_write, cache_write_1h, output, terms)
     VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (version) DO NOTHING`,
  )
  const readHead = db.prepare('SELECT moment_ms FROM head')
  const readTail = db.prepare(
    `SELECT a.seq, a.balance, e.posted_ms, e.digest FROM accounts a
     LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq WHERE a.id = ?`,
  )
  const move = db.prepare('UPDATE accounts SET seq = ?, balance = ? WHERE id = ?')
  const dataVersion = db.prepare('PRAGMA data_version')
  /**
   * As this connection last committed it, and the version of the data at that time. It is good for as long as nobody else
   * has committed: what this connection adds goes through here, and what it rolls back is forgotten.
   */
  let last: { known: Known; version: unknown } | undefined
  return { inTransaction, inBatch, append, notePrices }

  /** One transaction of its own, durable when it returns. */
  function inTransaction<T>(work: (batch: Batch) => T): T {
    let version: unknown
    let known: Known | undefined
    const result = transact(db, () => {
      version = dataVersion.get()!.data_version
      known = last?.version === version && last!.known.tails.size < knownMax ? last!.known : nothingKnown()
      last = undefined
      return run(known, work)
    })
    last = { known: known!, version }
    return result
  }

  /** Inside the caller's transaction, of which nobody here hears whether it is committed. */
  function inBatch<T>(work: (batch: Batch) => T): T {
    last = undefined
    return run(nothingKnown(), work)
  }

  /** Accounts move once, behind the last of their entries. */
  function run<T>({ tails, versions }: Known, work: (batch: Batch) => T): T {
    // Who takes the row away loses what later heads are told apart by, not the service.
    const headMs = Number(readHead.get()?.moment_ms ?? 0)
    const batch: Batch = { tails, versions, nowMs: nowMs(), headMs, moved: new Set() }
    const result = work(batch)
    for (const accountId of batch.moved) {
      const { seq, balanceNanos } = tails.get(accountId)!
      move.run(seq, balanceNanos, accountId)
    }
    return result
  }

  /** The next entry of the account. False when there is no such account, or the request id is booked already. */
  function append(batch: Batch, accountId: string, row: UnplacedRow, changeNanos: bigint): boolean {
    const tail = tailOf(batch, accountId)
    if (!tail) return false
    row.account_id = accountId
    row.seq = tail.seq + 1n
    row.balance_after = tail.balanceNanos + changeNanos
    row.posted_ms = postedMs(batch.nowMs, tail.postedMs, batch.headMs)
    const digest = digestEntry(row, tail.digest)
    const { changes } = insertEntry.run(...valuesOf(row, digest))
    if (!changes) return false
    tail.seq = row.seq
    tail.balanceNanos = row.balance_after
    tail.postedMs = row.posted_ms
    tail.digest = digest
    batch.moved.add(accountId)
    return true
  }

  function tailOf({ tails }: Batch, accountId: string): Tail | undefined {
    const known = tails.get(accountId)
    if (known) return known
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

  /** What a price version stands for, once for each. */
  function notePrices({ versions }: Batch, { priceVersion, prices }: DebitRow): void {
    if (versions.has(priceVersion)) return
    insertPrices.run(
      priceVersion,
      prices.inputNanos,
      prices.cacheReadNanos,
      prices.cacheWriteNanos,
      prices.cacheWrite1hNanos,
      prices.outputNanos,
      formatTerms(prices),
    )
    versions.add(priceVersion)
  }
}

function nothingKnown(): Known {
  return { tails: new Map(), versions: new Set() }
}
