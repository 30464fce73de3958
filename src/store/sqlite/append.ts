import type { DatabaseSync } from 'node:sqlite'
import type { Calendar } from '../../accounts/calendar.ts'
import { digestValues, postedMs } from '../../accounts/chain.ts'
import { createInsert, priceRow, type UnplacedRow } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { Posted } from '../../accounts/poster.ts'
import { registers } from '../../accounts/registers.ts'
import { type NewWarning, type Watched, warnOfCredit } from '../../accounts/warnings.ts'
import { readWatched, selectWatched, untoldMs } from '../sql/warnings.ts'
import { beginDetails, transact } from './open.ts'
import { createSpends, type KnownSpends, nothingSpent, type SpendingEntry, toBudgeted } from './spends.ts'

/** The end of an account's chain: its last entry, and its balance. */
type Tail = {
  seq: bigint
  balanceNanos: bigint
  postedMs: number
  digest: string | null
  warn: string | null
  /** Whether a person of the account has a budget. */
  boundsPeople: boolean
}

/** The known state of the store. It is valid until another connection writes to the store. */
type LockedStore = KnownSpends & {
  readonly tails: Map<string, Tail | undefined>
  /** Versions of prices that are stored. */
  readonly versions: Set<string>
  /** Digests of the price lists that the store has. */
  readonly lists: Set<string>
  /** The warnings that servers want. Read from the store when first needed. */
  watched: Watched | undefined
}

export type AppendBatch = LockedStore & {
  readonly nowMs: number
  readonly headMs: number
  readonly moved: Set<string>
  /** Scopes of budgets whose spend has changed. */
  readonly spent: Set<string>
  /** Balances that accounts had before the batch, by account id. Filled only if a low balance can cause a warning. */
  readonly before: Map<string, bigint>
  readonly warnings: NewWarning[]
}

/** SQL: the earliest time for the entry that follows `e` in an account. See also `floorMsOf` in corrections.ts. */
const floorMs = `CASE WHEN e.kind = 'credit' AND e.effective IS NOT NULL THEN e.created_ms ELSE e.posted_ms END`

/**
 * Returns the earliest time of the account's next entry, like the SQL of `floorMs`. A correction may be dated later
 * than the entries that follow it, so the time of its creation is used.
 */
function floorMsOfRow({ kind, effective, created_ms, posted_ms }: UnplacedRow): number {
  return Number(kind === 'credit' && effective !== null ? created_ms : posted_ms)
}

/** The most accounts whose last entry is remembered. Each entry takes about 200 bytes. */
const knownMax = 10_000

/**
 * Creates the appender. It adds entries to the chains of their accounts (ruling C15), with the new balances.
 * @param onBegun called when the ledger gets its first entry of form 3, a layout that older versions cannot read
 */
export function createAppender(db: DatabaseSync, nowMs: () => number, calendar: Calendar, onBegun: () => void) {
  const spends = createSpends(db, calendar)
  const warnings = createOutbox(db)
  const insertEntry = createInsert((sql) => db.prepare(sql))
  const notePrices = createPrices(db)
  const readHead = db.prepare('SELECT moment_ms FROM head')
  const tailOf = createTails(db)
  const move = db.prepare('UPDATE accounts SET seq = ?, balance = ? WHERE id = ?')
  const dataVersion = db.prepare('PRAGMA data_version')
  /**
   * The state of the store after the last commit of this connection. Valid until a commit of another connection changes
   * `data_version`. Undefined after a rollback.
   */
  let last: { known: LockedStore; version: unknown } | undefined
  /** Whether the ledger has entries of form 3, a newer layout. `begins`: this transaction adds the first one. */
  let formThree: 'unknown' | 'begins' | 'begun' = 'unknown'
  return { inTransaction, inBatch, append, notePrices, lastBalance, readSpends, forget }

  /** Runs `work` in a transaction, which is durable when this returns. */
  function inTransaction<T>(work: (batch: AppendBatch) => T): T {
    let version: unknown
    let known: LockedStore | undefined
    if (formThree === 'begins') formThree = 'unknown'
    const result = transact(db, () => {
      version = dataVersion.get()!.data_version
      known = last?.version === version && last!.known.tails.size < knownMax ? last!.known : nothingKnown()
      last = undefined
      return run(known, work)
    })
    last = { known: known!, version }
    // TypeScript does not see that `work` may have changed `formThree`.
    if ((formThree as string) === 'begins') {
      formThree = 'begun'
      onBegun()
    }
    return result
  }

  /**
   * Runs `work` in the caller's transaction. The caller can still roll back, so the figures of this batch are not
   * remembered.
   */
  function inBatch<T>(work: (batch: AppendBatch) => T): T {
    last = undefined
    return run(nothingKnown(), work)
  }

  /** Runs `work`, then updates the row of each changed account once. */
  function run<T>(known: LockedStore, work: (batch: AppendBatch) => T): T {
    known.watched ??= warnings.readWatched()
    const { tails, watched } = known
    // New entries are dated after the moment of the last head (a digest of all entries), if the store has this moment.
    const headMs = Number(readHead.get()?.moment_ms ?? 0)
    const none = { moved: new Set<string>(), spent: new Set<string>(), before: new Map(), warnings: [] }
    const batch: AppendBatch = { ...known, nowMs: nowMs(), headMs, ...none }
    const result = work(batch)
    for (const accountId of batch.moved) {
      const { seq, balanceNanos, warn } = tails.get(accountId)!
      move.run(seq, balanceNanos, accountId)
      const beforeNanos = batch.before.get(accountId)
      if (beforeNanos !== undefined)
        batch.warnings.push(...warnOfCredit(watched, warn, { accountId, seq, beforeNanos, afterNanos: balanceNanos }))
    }
    spends.write(known, batch.spent)
    warnings.put(batch.warnings, batch.nowMs)
    return result
  }

  /**
   * Appends an entry to an account.
   * @returns false if the account does not exist, or the request id was posted already
   */
  function append(batch: AppendBatch, accountId: string, row: UnplacedRow, changeNanos: bigint): boolean {
    const tail = tailOf(batch, accountId)
    if (!tail) return false
    row.account_id = accountId
    row.seq = tail.seq + 1n
    row.balance_after = tail.balanceNanos + changeNanos
    row.posted_ms = postedMs(batch.nowMs, tail.postedMs, batch.headMs)
    const values = Object.values(row)
    const digest = digestValues(values, tail.digest)
    if (!insertEntry(values, digest)) return false
    if (formThree === 'unknown' && digest.startsWith('3')) formThree = beginDetails(db) ? 'begins' : 'begun'
    if ((batch.watched!.lowNanos.length > 0 || tail.warn !== null) && !batch.before.has(accountId))
      batch.before.set(accountId, tail.balanceNanos)
    tail.seq = row.seq
    tail.balanceNanos = row.balance_after
    tail.postedMs = floorMsOfRow(row)
    tail.digest = digest
    batch.moved.add(accountId)
    const spent = { accountId, postedMs: row.posted_ms, changeNanos }
    if (row.key_id !== null) noteSpend(batch, { spender: row.key_id as string, seq: null, ...spent })
    if (tail.boundsPeople && row.person !== null)
      noteSpend(batch, { spender: row.person as string, seq: null, ...spent })
    // Only debits and the credits that reverse them have a usage source. Only these entries count as spend.
    if (row.usage_source !== null) noteSpend(batch, { spender: accountId, seq: row.seq, ...spent })
    return true
  }

  function noteSpend(batch: AppendBatch, entry: SpendingEntry): void {
    const noted = spends.note(batch, entry, batch.watched!.budgets)
    if (!noted) return
    batch.spent.add(noted.scope)
    batch.warnings.push(...noted.warnings)
  }

  /**
   * Returns the balance of the account after the last commit of this connection. Later commits of other connections are
   * not included. Undefined if memory does not have the balance.
   */
  function lastBalance(accountId: string): bigint | undefined {
    return last?.known.tails.get(accountId)?.balanceNanos
  }

  /** Returns the spend of every given account, person or key that has a budget, from memory or from the store. */
  function readSpends(spenders: Iterable<string | undefined>): NonNullable<Posted['spends']> {
    return spends.read(last?.known ?? nothingSpent(), spenders)
  }

  /**
   * Forgets the state after the last commit. Called when a change of the books may have changed budgets or warning
   * levels.
   */
  function forget(): void {
    last = undefined
  }
}

/** Creates a function that reads the end of an account's chain, and the budget of the account. */
function createTails(db: DatabaseSync) {
  const readTail = db.prepare(
    `SELECT a.seq, a.balance, a.id AS account_id, a.id AS scope, a.budget, a.budget_per, a.warn, ${floorMs} AS posted_ms, e.digest,
       EXISTS (SELECT 1 FROM persons p WHERE p.account_id = a.id AND p.budget IS NOT NULL) AS bounds_people
     FROM accounts a
     LEFT JOIN entries e ON e.account_id = a.id AND e.seq = a.seq WHERE a.id = ?`,
  )
  return ({ tails, budgets }: LockedStore, accountId: string): Tail | undefined => {
    const known = tails.get(accountId)
    if (known) return known
    const row = readTail.get(accountId)
    const tail = row && toTail(row)
    tails.set(accountId, tail)
    budgets.set(accountId, toBudgeted(row))
    return tail
  }
}

const priceColumns = Object.keys(registers.prices) as (keyof typeof registers.prices)[]

function createPrices(db: DatabaseSync) {
  const insertPrices = db.prepare(
    `INSERT INTO prices (${priceColumns.join(', ')}) VALUES (${priceColumns.map(() => '?')}) ON CONFLICT (version) DO NOTHING`,
  )
  const insertList = db.prepare('INSERT INTO lists (digest, text) VALUES (?, ?) ON CONFLICT (digest) DO NOTHING')
  return notePrices

  /** Writes the prices of a version and the text of a price list, unless they are known to be stored. */
  function notePrices(
    { versions, lists }: AppendBatch,
    { priceVersion, prices, details, listText, costPrices }: Debit,
  ): void {
    if (details?.list !== undefined && listText !== undefined && !lists.has(details.list)) {
      insertList.run(details.list, listText)
      lists.add(details.list)
    }
    notePrice(versions, priceVersion, prices)
    if (details?.costVersion !== undefined && costPrices) notePrice(versions, details.costVersion, costPrices)
  }

  function notePrice(versions: Set<string>, version: string, prices: Debit['prices']): void {
    if (versions.has(version)) return
    const row = priceRow(version, prices)
    insertPrices.run(...priceColumns.map((column) => row[column]))
    versions.add(version)
  }
}

function toTail({ seq, balance, posted_ms, digest, warn, bounds_people }: Record<string, unknown>): Tail {
  return {
    seq: seq as bigint,
    balanceNanos: balance as bigint,
    postedMs: Number(posted_ms ?? 0),
    digest: digest as string | null,
    warn: warn as string | null,
    boundsPeople: bounds_people === 1n,
  }
}

function nothingKnown(): LockedStore {
  const sets = { tails: new Map(), versions: new Set<string>(), lists: new Set<string>() }
  return { ...sets, watched: undefined, ...nothingSpent() }
}

/** Creates the functions for the outbox, the table of warnings that a server will send. */
function createOutbox(db: DatabaseSync) {
  const watched = db.prepare(selectWatched('main'))
  const insert = db.prepare(
    'INSERT INTO outbox (id, event, data, at_ms, next_ms) VALUES (?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING',
  )
  const removeOld = db.prepare('DELETE FROM outbox WHERE at_ms < ?')
  return { readWatched: () => readWatched(watched.all()), put }

  /** Writes warnings, in the transaction of the entries that cause them. */
  function put(warnings: readonly NewWarning[], atMs: number): void {
    if (warnings.length === 0) return
    // Deletes warnings that no server sends any more, so that they do not accumulate.
    removeOld.run(atMs - untoldMs)
    for (const { id, event, data } of warnings) insert.run(id, event, JSON.stringify(data), atMs, atMs)
  }
}
