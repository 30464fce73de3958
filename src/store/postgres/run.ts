import { countsBreakHex } from '../../accounts/usage/histogram.ts'
import { newRequestId, sha256Hex } from '../../ids.ts'
import { type Dialect, isText, type Statement } from '../sql/dialect.ts'
import type { SliceSizes } from '../sql/listing.ts'
import type { Row, StoreStep } from '../sql/step.ts'
import { tableOf, timeColumn, type UsageDialect } from '../sql/usage.ts'
import type { Database, Transaction } from './database.ts'
import { locks } from './migrate.ts'
import { livingReplicas } from './replicas.ts'

export const dialect: Dialect = {
  schema: 'triwire',
  isShared: true,
  parameter: (n) => `$${n}`,
  accounts: (accounts = 'triwire.accounts') => `SELECT a.*, b.balance, s.from_ms, s.until_ms, s.spent
    FROM ${accounts} a JOIN triwire.balances b ON b.account_id = a.id LEFT JOIN triwire.spends s ON s.scope = a.id`,
  ends: 'triwire.balances',
  credits: 'triwire.credits',
  archivedCredit: 'triwire.credits c JOIN triwire.archived a ON a.id = c.entry_id WHERE c.reference',
  creditEntry: 'triwire.credits c JOIN triwire.entries e ON e.id = c.entry_id WHERE c.reference',
  isOfRequest: (put, requestId) => `e.id = ${put(entryIdOf(requestId))}`,
  archivedId: entryIdOf,
  now: () => 'triwire.now_ms()',
  rowsMax: 200,
  headLock: {
    shared: `SELECT pg_advisory_xact_lock_shared(${locks.head})`,
    alone: `SELECT pg_advisory_xact_lock(${locks.head})`,
  },
  livingReplicas,
}

/** The most entries in one slice, for each use of slices. Reading a slice takes a few hundredths of a second. */
export const sliceSizes: SliceSizes = { readMax: 2_000, sumMax: 50_000, verifyMax: 5_000 }

/**
 * The connections on which a step runs. If `transact` is missing, a transaction is open already, and `query` is part of
 * it.
 * @property lane for statements outside the transaction; it has a free connection even while transactions run
 */
type Connections = Pick<Transaction, 'query'> & Partial<Pick<Database, 'transact'>> & { lane?: Transaction | undefined }

/** Runs a step on PostgreSQL. @throws what the driver or the step throws */
export async function run<T>(connections: Connections, step: StoreStep<T>): Promise<T> {
  let turn = step.next()
  while (!turn.done) {
    const asked = turn.value
    const answer = 'text' in asked ? ask(connections, asked) : together(connections, asked.step, asked.isWriting)
    turn = step.next(await answer)
  }
  return turn.value
}

/**
 * Runs one statement. A SELECT is not sent if one of its values is a string that PostgreSQL cannot store. Such a SELECT
 * finds no row.
 */
async function ask({ query, lane }: Connections, { text, values, isApart }: Statement): Promise<Row[]> {
  if (isApart && lane) return lane.query(text, values)
  const isAskable = values.every((value) => typeof value !== 'string' || isText(value))
  return isAskable || !text.startsWith('SELECT') ? query(text, values) : []
}

async function together<T>(connections: Connections, step: StoreStep<T>, isWriting: boolean): Promise<T> {
  if (!connections.transact) return run(connections, step)
  return connections.transact(async (transaction) => {
    if (!isWriting) await transaction.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
    return run({ query: transaction.query, lane: connections.lane }, step)
  })
}

export const usageDialect: UsageDialect = {
  // Entries that are not summed yet. Each account takes one index lookup, even if the planner has no statistics.
  tail: {
    from: `(SELECT b.account_id, coalesce(m.seq, 0) AS mark, b.seq FROM triwire.balances b
        LEFT JOIN triwire.sums_marks m ON m.account_id = b.account_id WHERE b.seq > coalesce(m.seq, 0)) p
      CROSS JOIN LATERAL (SELECT * FROM triwire.entries e WHERE e.account_id = p.account_id AND e.seq > p.mark AND e.seq <= p.seq
        ORDER BY e.seq LIMIT p.seq - p.mark) e`,
    where: 'true',
  },
  // Two separate sums take a third of the time of a join, because the join makes a row for every account.
  progress: `SELECT (SELECT coalesce(sum(seq), 0) FROM triwire.sums_marks) AS folded,
    (SELECT coalesce(sum(seq), 0) FROM triwire.balances) AS entries`,
  bucketing: (reading) => ({
    from: `triwire.${tableOf(reading)} u`,
    bucket: `width_bucket(u.${timeColumn(reading)}, $1::int[]) - 1`,
    values: [`{${reading.bounds.join()}}`],
    isRanged: false,
    isInOrder: false,
  }),
  // The database joins all counts of a bucket and group, so that it sends one row for them.
  joined: (column) => `string_agg(${column}, '\\x${countsBreakHex}'::bytea)`,
}

/**
 * The id of a request's debit in the ledger. This id is the UUID in the request id, which contains the month. A request
 * id of another format gets a UUID that begins with `f`. This UUID stands for a time after the year 10,000, so it
 * belongs to no month.
 */
export function entryIdOf(requestId: string): string {
  const [, hex] = /^req_([0-9a-f]{32})$/.exec(requestId) ?? []
  return hex ?? `f${sha256Hex(requestId).slice(1, 32)}`
}

/** Makes the id of an entry that belongs to no request. */
export function newEntryId(): string {
  return newRequestId().slice('req_'.length)
}
