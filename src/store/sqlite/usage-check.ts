import type { DatabaseSync } from 'node:sqlite'
import { createCalendar, quarterMs } from '../../accounts/calendar.ts'
import { findDifferences, findKeyDifferences } from '../../accounts/usage/check.ts'
import { type SumRow, sumColumns, type UsageTable, usageTables } from '../../accounts/usage/rollup.ts'
import { selectSummed } from '../sql/usage.ts'
import { preparing } from './preparing.ts'
import { readUsageState } from './usage.ts'

/**
 * Compares the figures for reports with the entries below their accounts' marks (ruling C9): day by day all that is kept, and
 * account by account what keys have cost since they were made. In the caller's snapshot.
 */
export function* findUsageDifferences(db: DatabaseSync): Iterable<string> {
  const state = readUsageState(preparing(db))
  const calendar = createCalendar(state)
  const words = new Map(
    db
      .prepare('SELECT id, word FROM usage_words')
      .all()
      .map(({ id, word }) => [id as bigint, word as string]),
  )
  const marked = 'entries e JOIN usage_marks m ON m.account_id = e.account_id AND e.seq <= m.seq'
  const ofDay = db.prepare(selectSummed(marked, 'e.posted_ms >= ? * 900000 AND e.posted_ms < ? * 900000'))
  const next = db.prepare(
    `SELECT min(at) AS at FROM (SELECT min(quarter) AS at FROM usage_q WHERE quarter >= ?1
     UNION ALL SELECT min(day) FROM usage_t WHERE day >= ?1
     UNION ALL SELECT min(posted_ms) / 900000 FROM entries WHERE posted_ms >= ?1 * 900000)`,
  )
  for (let from = state.keptFrom; ; ) {
    const at = next.get(from)!['at'] as bigint | null
    if (at === null) break
    const { startMs, endMs } = calendar.periodOf(Number(at) * quarterMs, 'day')
    const [first, behind] = [Math.max(from, startMs / quarterMs), endMs / quarterMs]
    const rows = {
      usage_q: readRows('usage_q', 'WHERE quarter >= ? AND quarter < ?', [first, behind]),
      usage_d: readRows('usage_d', 'WHERE day >= ? AND day < ?', [first, behind]),
      usage_t: readRows('usage_t', 'WHERE day >= ? AND day < ?', [first, behind]),
    }
    yield* findDifferences({ from: first, to: behind, entries: ofDay.all(first, behind), rows }, calendar)
    from = behind
  }
  yield* findWrongKeys()

  function* findWrongKeys(): Iterable<string> {
    const ofAccount = db.prepare(selectSummed(marked, 'e.account_id = ?', false))
    const accounts = db.prepare(
      `SELECT a.id, a.seq, ifnull(m.seq, 0) AS mark, w.id AS number FROM accounts a
       LEFT JOIN usage_marks m ON m.account_id = a.id LEFT JOIN usage_words w ON w.kind = 'account' AND w.word = a.id`,
    )
    for (const { id, seq, mark, number } of accounts.all()) {
      const rows = number === null ? [] : readRows('usage_k', 'WHERE account = ?', [number as bigint])
      yield* findKeyDifferences(id as string, ofAccount.all(id as string), rows, {
        mark: mark as bigint,
        seq: seq as bigint,
      })
    }
  }

  function readRows(table: UsageTable, where: string, values: (number | bigint)[]): SumRow[] {
    return db
      .prepare(`SELECT * FROM ${table} ${where}`)
      .all(...values)
      .map((row) => ({
        place: Object.fromEntries(
          usageTables[table].map((column) => {
            const isTime = column === 'quarter' || column === 'day'
            return [column, isTime ? Number(row[column]) : (words.get(row[column] as bigint) ?? '')]
          }),
        ),
        sums: sumColumns.map((column) => row[column] as bigint),
      }))
  }
}
