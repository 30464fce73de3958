import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { countsBreakHex } from '../../accounts/usage/histogram.ts'
import { StoreError, sayMoved } from '../files/store-error.ts'
import type { Dialect, Statement } from '../sql/dialect.ts'
import { readMoved } from '../sql/moments.ts'
import type { Row, StoreStep } from '../sql/step.ts'
import { tableOf, timeColumn, type UsageDialect } from '../sql/usage.ts'
import { readTogether, transact } from './open.ts'

/** The driver of SQLite, which runs a step synchronously. */
export type Run = <T>(step: StoreStep<T>) => T

/**
 * The most prepared statements to keep. At this number, all are discarded. A limit is needed because some SQL texts
 * vary.
 */
const statementsMax = 200

/** Creates the dialect of SQLite. @param nowMs returns Unix milliseconds */
export function createDialect(nowMs: () => number = Date.now): Dialect {
  return {
    schema: 'main',
    isShared: false,
    parameter: (n) => `?${n}`,
    accounts: (accounts = 'main.accounts') =>
      `SELECT a.*, s.from_ms, s.until_ms, s.spent FROM ${accounts} a LEFT JOIN main.spends s ON s.scope = a.id`,
    ends: '(SELECT id AS account_id, balance, seq FROM main.accounts)',
    credits: `(SELECT reference, account_id, amount FROM main.entries WHERE reference IS NOT NULL
      UNION SELECT id, account_id, amount FROM main.archived WHERE kind <> 'debit')`,
    archivedCredit: "main.archived a WHERE a.kind <> 'debit' AND a.id",
    creditEntry: 'main.entries e WHERE e.reference',
    isOfRequest: (put, requestId) => `e.request_id = ${put(requestId)}`,
    archivedId: (requestId) => requestId,
    now: (put) => put(nowMs()),
    // With one row, the text of an INSERT is always the same, so the statement stays prepared.
    rowsMax: 1,
  }
}

export function createRun(db: DatabaseSync): Run {
  const statements = new Map<string, StatementSync>()
  return run

  function run<T>(step: StoreStep<T>): T {
    let turn = step.next()
    while (!turn.done) {
      const asked = turn.value
      turn = step.next('text' in asked ? ask(asked) : together(asked.step, asked.isWriting))
    }
    return turn.value
  }

  function ask({ text, values }: Statement): Row[] {
    return (statements.get(text) ?? prepare(text)).all(...values)
  }

  function prepare(text: string): StatementSync {
    if (statements.size >= statementsMax) statements.clear()
    const statement = db.prepare(text)
    statements.set(text, statement)
    return statement
  }

  function together<T>(step: StoreStep<T>, isWriting: boolean): T {
    if (db.isTransaction) return run(step)
    return (isWriting ? transact : readTogether)(db, () => run(step))
  }
}

export const usageDialect: UsageDialect = {
  // Entries are folded (summed) in the order of their ids. So the entries that are not folded yet have the highest ids.
  tail: {
    from: 'entries e LEFT JOIN sums_marks m ON m.account_id = e.account_id',
    where: 'e.id > (SELECT folded_id FROM sums_state) AND e.seq > ifnull(m.seq, 0)',
  },
  // Ids have no gaps, and all entries up to the id `folded_id` are summed into figures.
  progress: 'SELECT folded_id AS folded, (SELECT ifnull(max(id), 0) FROM entries) AS entries FROM sums_state',
  bucketing(reading) {
    const { bounds } = reading
    const [table, time, pairs] = [
      tableOf(reading),
      timeColumn(reading),
      bounds.slice(1).map((end, at) => [bounds[at], end]),
    ]
    // SQLite reads bucket by bucket if the rows of a bucket are next to each other. In the table of figures by day for
    // each account and key (grain `d`), they are not.
    const isIndexed = reading.grain !== 'd'
    return {
      from: isIndexed
        ? `json_each(?) b CROSS JOIN ${table} u ON u.${time} >= b.value ->> 0 AND u.${time} < b.value ->> 1`
        : `${table} u`,
      bucket: isIndexed ? 'b.key' : undefined,
      values: isIndexed ? [JSON.stringify(pairs)] : [],
      isRanged: isIndexed,
      isInOrder: true,
    }
  },
  joined: (column) => `unhex(group_concat(hex(${column}), '${countsBreakHex}'))`,
}

/** Throws if the store was moved or is an incomplete copy. @throws StoreError */
export function refuseMoved(db: DatabaseSync): void {
  const moved = createRun(db)(readMoved(createDialect()))
  if (moved) throw new StoreError(sayMoved(db.location() ?? 'the store', moved))
}

/** Notes that the store was moved or is an incomplete copy, so that readers do not trust outdated content. */
export function noteMoved(db: DatabaseSync, note: (text: string) => void): void {
  const moved = createRun(db)(readMoved(createDialect()))
  if (moved) note(sayMoved(db.location() ?? 'the store', moved))
}
