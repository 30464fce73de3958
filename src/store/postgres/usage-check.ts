import { createCalendar, quarterMs } from '../../accounts/calendar.ts'
import { findDifferences, findKeyDifferences } from '../../accounts/usage/check.ts'
import { type SumRow, sumColumns, type UsageTable, usageTables } from '../../accounts/usage/rollup.ts'
import { selectSummed } from '../sql/usage.ts'
import type { Database, Transaction } from './database.ts'
import { readUsageState } from './usage.ts'
import { createWords } from './usage-words.ts'

/**
 * Compares the figures for reports with the entries below their accounts' marks (ruling C9): day by day all that is kept, and
 * account by account what keys have cost since they were made. Each day, and each account, in a snapshot of its own.
 */
export async function* findUsageDifferences(database: Database): AsyncIterable<string> {
  const words = createWords(database)
  const state = await readUsageState(database)
  const calendar = createCalendar(state)
  for (let from = state.keptFrom; ; ) {
    const [next] = await database.query(
      `SELECT min(at) AS at FROM (SELECT min(quarter) AS at FROM triwire.usage_q WHERE quarter >= $1::int
       UNION ALL SELECT min(day) FROM triwire.usage_t WHERE day >= $1::int
       UNION ALL SELECT min(posted_ms) / 900000 FROM triwire.entries WHERE posted_ms >= $1::bigint * 900000) next`,
      [from],
    )
    if (next!['at'] === null) break
    const { startMs, endMs } = calendar.periodOf(Number(next!['at']) * quarterMs, 'day')
    const [first, behind] = [Math.max(from, startMs / quarterMs), endMs / quarterMs]
    yield* await database.transact(async (transaction) => {
      await transaction.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
      // Another zone makes other days: what is compared then is compared by the next run.
      if ((await readUsageState(transaction)).timeZone !== state.timeZone) return []
      const text = selectSummed(
        'triwire.entries e JOIN triwire.usage_marks m ON m.account_id = e.account_id AND e.seq <= m.seq',
        'e.posted_ms >= $1::bigint * 900000 AND e.posted_ms < $2::bigint * 900000',
      )
      const rows = {
        usage_q: await readRows(transaction, 'usage_q', 'quarter >= $1 AND quarter < $2', [first, behind]),
        usage_d: await readRows(transaction, 'usage_d', 'day >= $1 AND day < $2', [first, behind]),
        usage_t: await readRows(transaction, 'usage_t', 'day >= $1 AND day < $2', [first, behind]),
      }
      const entries = await transaction.query(text, [first, behind])
      return findDifferences({ from: first, to: behind, entries, rows }, calendar)
    })
    from = behind
  }
  for (let after = ''; ; ) {
    const [account] = await database.query(
      'SELECT account_id FROM triwire.balances WHERE account_id > $1 AND seq > 0 ORDER BY account_id LIMIT 1',
      [after],
    )
    if (!account) break
    after = account['account_id'] as string
    yield* await findWrongKeys(after)
  }

  async function findWrongKeys(accountId: string): Promise<string[]> {
    return database.transact(async (transaction) => {
      await transaction.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
      const [end] = await transaction.query(
        `SELECT b.seq, coalesce(m.seq, 0) AS mark, w.id FROM triwire.balances b
         LEFT JOIN triwire.usage_marks m ON m.account_id = b.account_id
         LEFT JOIN triwire.usage_words w ON w.kind = 'account' AND w.word = b.account_id WHERE b.account_id = $1`,
        [accountId],
      )
      const { seq, mark, id } = end as { seq: bigint; mark: bigint; id: number | null }
      const text = selectSummed('triwire.entries e', 'e.account_id = $1 AND e.seq <= $2', false)
      const entries = await transaction.query(text, [accountId, mark])
      const rows = id === null ? [] : await readRows(transaction, 'usage_k', 'account = $1', [id])
      return findKeyDifferences(accountId, entries, rows, { mark, seq })
    })
  }

  async function readRows(
    transaction: Transaction,
    table: UsageTable,
    where: string,
    values: number[],
  ): Promise<SumRow[]> {
    const rows = await transaction.query(`SELECT * FROM triwire.${table} WHERE ${where}`, values)
    const columns = usageTables[table]
    const isTime = (column: string) => column === 'quarter' || column === 'day'
    const named = columns.filter((column) => !isTime(column))
    const known = await words.readWords(
      transaction,
      rows.flatMap((row) => named.map((column) => row[column] as number)),
    )
    return rows.map((row) => ({
      place: Object.fromEntries(
        columns.map((column) => [
          column,
          isTime(column) ? (row[column] as number) : (known.get(row[column] as number) ?? ''),
        ]),
      ),
      sums: sumColumns.map((column) => row[column] as bigint),
    }))
  }
}
