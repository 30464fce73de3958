import { isAway } from '../../accounts/archive.ts'
import { createCalendar, quarterMs } from '../../accounts/calendar.ts'
import type { EntryFilter } from '../../accounts/entries.ts'
import { findDifferences, findKeyDifferences } from '../../accounts/usage/check.ts'
import type { UsageState } from '../../accounts/usage/question.ts'
import {
  type SummedEntries,
  type SumRow,
  sumColumns,
  type UsageTable,
  usageTables,
} from '../../accounts/usage/rollup.ts'
import { isHere, readArchives, readAwaySums } from './archives.ts'
import type { Dialect, Put } from './dialect.ts'
import { countsWithin, eachSlice, inSlice } from './entries.ts'
import { ask, askOne, inSnapshot, type StoreStep } from './step.ts'
import { selectSummed } from './usage.ts'
import { readUsageState } from './usage-keep.ts'
import { createWords } from './words.ts'

/**
 * Compares the figures for reports with the entries that they include (ruling C9). Figures that are still kept are
 * compared by day, and the total costs of keys by account.
 * @param pageMax the most entries that a statement reads, so that no statement takes too long
 * @param progress called with a sentence about the current comparison
 * @returns the differences as sentences
 */
export function* findUsageDifferences(
  dialect: Dialect,
  pageMax: number,
  progress?: (words: string) => void,
): StoreStep<string[]> {
  const { schema, ends, isShared } = dialect
  const words = createWords(dialect)
  const state = yield* readUsageState(dialect)
  const calendar = createCalendar(state)
  const findings: string[] = []
  // The findings are pushed one by one, because there may be more of them than a call takes arguments.
  const note = (found: readonly string[]) => {
    for (const finding of found) findings.push(finding)
  }
  // The store lacks the entries of detached archives. So the figures of their days are not checked. An archive of another
  // zone may end within a day.
  const away = (yield* readArchives(dialect))
    .filter(isAway)
    .map(({ untilMs }) => calendar.periodOf(untilMs - 1, 'day').endMs / quarterMs)
  for (let from = Math.max(state.keptFrom, ...away); ; ) {
    const next = (put: Put) => {
      const at = `CAST(${put(from)} AS integer)`
      return `SELECT min(at) AS at FROM (SELECT min(hour) AS at FROM ${schema}.sums_h WHERE hour >= ${at}
        UNION ALL SELECT min(day) FROM ${schema}.sums_t WHERE day >= ${at}
        UNION ALL SELECT min(posted_ms) / 900000 FROM ${schema}.entries WHERE posted_ms >= ${at} * CAST(900000 AS bigint)
        UNION ALL SELECT min(effective_ms) / 900000 FROM ${schema}.shifted WHERE effective_ms >= ${at} * CAST(900000 AS bigint)) next`
    }
    const { at } = (yield* askOne(dialect, next))!
    if (at === null) break
    const { startMs, endMs } = calendar.periodOf(Number(at) * quarterMs, 'day')
    const day = { from: Math.max(from, startMs / quarterMs), to: endMs / quarterMs }
    progress?.(`verifying: the figures of ${calendar.dateOf(startMs)}`)
    note(yield* inSnapshot(checkDay(day, state)))
    from = day.to
  }
  progress?.('verifying: the figures of each account')
  for (let after = ''; ; ) {
    const account = yield* askOne(
      dialect,
      (put) => `SELECT account_id FROM ${ends} e WHERE account_id > ${put(after)} ${isShared ? 'AND seq > 0' : ''}
        ORDER BY account_id LIMIT 1`,
    )
    if (!account) return findings
    after = account['account_id'] as string
    note(yield* inSnapshot(checkKeys(after)))
  }

  function* checkDay({ from, to }: { from: number; to: number }, { timeZone }: UsageState): StoreStep<string[]> {
    // If the zone has changed during this check, days begin at other times. The next run compares the new days.
    if ((yield* readUsageState(dialect)).timeZone !== timeZone) return []
    const marked = `${schema}.entries e JOIN ${schema}.sums_marks m ON m.account_id = e.account_id AND e.seq <= m.seq`
    const within = (column: string) => (put: Put) => `${column} >= ${put(from)} AND ${column} < ${put(to)}`
    const rows = {
      sums_h: yield* readRows('sums_h', within('hour')),
      sums_d: yield* readRows('sums_d', within('day')),
      sums_t: yield* readRows('sums_t', within('day')),
    }
    const period = { sinceMs: from * quarterMs, untilMs: to * quarterMs }
    const counted = (put: Put) => {
      const [since, until] = [period.sinceMs, period.untilMs].map((ms) => `CAST(${put(ms)} AS bigint)`)
      return countsWithin(schema, since, until)
    }
    const entries = yield* sumPages(marked, period, counted)
    return findDifferences({ from, to, entries, rows }, calendar)
  }

  /**
   * Sums the entries that match the filter and the conditions, page by page. Each page has its own row for a group, so
   * a group can have several rows.
   */
  function* sumPages(
    from: string,
    filter: EntryFilter,
    conditions: (put: Put) => readonly string[],
    by?: readonly string[],
  ): StoreStep<SummedEntries[]> {
    const summed: SummedEntries[] = []
    yield* eachSlice(dialect, filter, pageMax, { first: 'oldest' }, function* (slice) {
      const where = (put: Put) => [...conditions(put), ...inSlice(slice, put)].join(' AND ')
      for (const row of yield* ask(dialect, (put) => selectSummed(schema, from, where(put), by))) summed.push(row)
      return true
    })
    return summed
  }

  function* checkKeys(accountId: string): StoreStep<string[]> {
    const end = yield* askOne(
      dialect,
      (put) => `SELECT e.seq, coalesce(m.seq, 0) AS mark, w.id FROM ${ends} e
        LEFT JOIN ${schema}.sums_marks m ON m.account_id = e.account_id
        LEFT JOIN ${schema}.usage_words w ON w.kind = 'account' AND w.word = e.account_id WHERE e.account_id = ${put(accountId)}`,
    )
    const { seq, mark, id } = end as { seq: bigint; mark: bigint; id: number | bigint | null }
    const below = (put: Put) => [
      `e.account_id = ${put(accountId)}`,
      `e.seq <= ${put(mark)}`,
      ...(away.length > 0 ? [isHere(schema)] : []),
    ]
    const entries = yield* sumPages(`${schema}.entries e`, { accountId }, below, [])
    if (away.length > 0) entries.push(...(yield* readAwaySums(dialect, accountId)))
    const rows = id === null ? [] : yield* readRows('sums_k', (put) => `account = ${put(id)}`)
    return findKeyDifferences(accountId, entries, rows, { mark, seq })
  }

  function* readRows(table: UsageTable, where: (put: Put) => string): StoreStep<SumRow[]> {
    const rows = yield* ask(dialect, (put) => `SELECT * FROM ${schema}.${table} WHERE ${where(put)}`)
    const columns = usageTables[table]
    const isTime = (column: string) => column === 'hour' || column === 'day'
    const named = columns.filter((column) => !isTime(column))
    const known = yield* words.readWords(rows.flatMap((row) => named.map((column) => Number(row[column]))))
    const placed = (column: string, value: number) => (isTime(column) ? value : (known.get(value) ?? ''))
    return rows.map((row) => ({
      place: Object.fromEntries(columns.map((column) => [column, placed(column, Number(row[column]))])),
      sums: sumColumns.map((column) => row[column] as bigint),
    }))
  }
}
