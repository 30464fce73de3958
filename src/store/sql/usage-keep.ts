import { createCalendar, isSameZone, quarterMs, spellZone, type Zone } from '../../accounts/calendar.ts'
import { isRecorded, type UsageState } from '../../accounts/usage/question.ts'
import { firstKept, type NewZone, type Reporting, rezoned, sayOtherZone } from '../../accounts/usage/reporting.ts'
import { tableNames } from '../../accounts/usage/rollup.ts'
import { countedColumns, joinCells, type TrafficCell, trafficTables } from '../../accounts/usage/traffic.ts'
import { refuseAway } from './archives.ts'
import { type Dialect, insertAll, type SqlValue } from './dialect.ts'
import { readNowMs } from './moments.ts'
import { ask, askOne, execute, inTransaction, type Row, runAll, type StoreStep } from './step.ts'

/*
 * Figures for reports as time goes on, and the zone whose days they are kept by.
 */

const quartersOfDay = 96

/** @param lock until the end of the transaction, so that nobody makes the days anew meanwhile */
export function* readUsageState(dialect: Dialect, lock?: 'SHARE' | 'UPDATE'): StoreStep<UsageState> {
  const text = `SELECT time_zone, week_starts, kept_from FROM ${dialect.schema}.usage_state`
  const row = yield* askOne(dialect, () => (dialect.isShared && lock ? `${text} FOR ${lock}` : text))
  return {
    timeZone: spellZone((row?.['time_zone'] ?? 'UTC') as string),
    weekStarts: (row?.['week_starts'] ?? 'monday') as Zone['weekStarts'],
    keptFrom: Number(row?.['kept_from'] ?? 0),
  }
}

/**
 * Records the zone if no server has recorded one, and keeps figures for as long as `keepMonths` says. A recorded zone stays
 * (ruling X12).
 * @param nowMs Unix milliseconds; without it, the time of the store. A server whose clock is ahead would remove what others keep.
 */
export function* adoptReporting(dialect: Dialect, reporting: Reporting, nowMs?: number): StoreStep<void> {
  const atMs = nowMs ?? (yield* readNowMs(dialect))
  if (adopted(yield* readUsageState(dialect), reporting, atMs)) yield* inTransaction(adopt(dialect, reporting, atMs))
}

function* adopt(dialect: Dialect, reporting: Reporting, atMs: number): StoreStep<void> {
  const before = yield* readUsageState(dialect, 'UPDATE')
  const state = adopted(before, reporting, atMs)
  if (!state) return
  yield* record(dialect, state)
  // Earlier figures are by the days of a zone that nobody chose.
  if (state.timeZone !== before.timeZone) yield* foldAnew(dialect, state)
}

/** @returns undefined if nothing changes. */
function adopted(before: UsageState, { timeZone, weekStarts, keepMonths }: Reporting, atMs: number) {
  const zone = { timeZone: isRecorded(before) ? before.timeZone : spellZone(timeZone), weekStarts }
  const kept = firstKept(createCalendar(zone), keepMonths, atMs)
  if (isRecorded(before) && kept <= before.keptFrom && before.weekStarts === weekStarts) return undefined
  // Figures that were removed do not come back.
  return { ...zone, keptFrom: Math.max(kept, before.keptFrom) }
}

/**
 * In PostgreSQL it waits for a zone that is being changed.
 * @param shown the store, as it may be shown. @returns the refusal if another zone is recorded (ruling X12).
 */
export function* findOtherZone(dialect: Dialect, said: string, shown: string): StoreStep<string | undefined> {
  const state = yield* readUsageState(dialect, 'SHARE')
  const isOther = isRecorded(state) && !isSameZone(state.timeZone, said)
  return isOther ? sayOtherZone(shown, state.timeZone, said) : undefined
}

/**
 * Records another zone, inside the caller's transaction, and lets go of what is folded by the hours of the one before. Its
 * weeks begin as before unless it says otherwise.
 */
export function* rezone(dialect: Dialect, wished: NewZone): StoreStep<void> {
  const { calendar, keptFrom } = rezoned(yield* readUsageState(dialect), wished)
  yield* record(dialect, { ...calendar, keptFrom })
  yield* foldAnew(dialect, calendar)
}

function record(dialect: Dialect, { timeZone, weekStarts, keptFrom }: UsageState): StoreStep<void> {
  return execute(
    dialect,
    (put) => `UPDATE ${dialect.schema}.usage_state SET time_zone = ${put(timeZone)}, week_starts = ${put(weekStarts)},
      kept_from = ${put(keptFrom)}`,
  )
}

/** Lets go of what is folded: the entries are folded anew by other hours. Counters of what costs nothing keep theirs. */
export function* foldAnew(dialect: Dialect, zone: Zone): StoreStep<void> {
  const { schema, isShared } = dialect
  yield* refuseAway(dialect)
  for (const name of [...tableNames, 'sums_marks', 'traffic_d', 'traffic_t'])
    yield* ask(dialect, () => `DELETE FROM ${schema}.${name}`)
  if (!isShared) yield* ask(dialect, () => `UPDATE ${schema}.sums_state SET folded_id = 0`)
  const calendar = createCalendar(zone)
  const hours = yield* ask(dialect, () => `SELECT DISTINCT quarter FROM ${schema}.traffic_q ORDER BY 1`)
  let end = 0
  // Day by day, since an index has the hours of each together.
  for (const { quarter } of hours) {
    if (Number(quarter) < end) continue
    const { startMs, endMs } = calendar.periodOf(Number(quarter) * quarterMs, 'day')
    end = endMs / quarterMs
    yield* remakeDay(dialect, startMs / quarterMs, end)
  }
}

function* remakeDay(dialect: Dialect, day: number, end: number): StoreStep<void> {
  const found = yield* ask(
    dialect,
    (put) => `SELECT * FROM ${dialect.schema}.traffic_q WHERE quarter >= ${put(day)} AND quarter < ${put(end)}`,
  )
  const cells = found.map((row) => readCell(row, day))
  for (const name of ['traffic_d', 'traffic_t'] as const) {
    const columns = trafficTables[name]
    const rows = joinCells(cells, columns).map(({ place, ...counts }) => [
      ...columns.map((column) => place[column] as SqlValue),
      ...countedColumns.map((column) => counts[column]),
    ])
    yield* runAll(insertAll(dialect, name, [...columns, ...countedColumns], rows))
  }
}

function readCell(row: Row, day: number): TrafficCell {
  const places = trafficTables.traffic_q.map((column) => [column, Number(row[column])])
  const { first_byte, total } = row as Pick<TrafficCell, 'first_byte' | 'total'>
  const [requests, moved] = [Number(row['requests']), Number(row['moved'])]
  return { place: { ...Object.fromEntries(places), day }, requests, moved, first_byte, total }
}

/** Removes a day of what is not kept any more from each table. @returns whether there was any */
export function* pruneSome(dialect: Dialect): StoreStep<boolean> {
  const { keptFrom } = yield* readUsageState(dialect)
  let isMore = false
  for (const table of [...tableNames, ...Object.keys(trafficTables)])
    if (table !== 'sums_k' && (yield* inTransaction(pruneTable(dialect, table, keptFrom)))) isMore = true
  return isMore
}

function* pruneTable(dialect: Dialect, table: string, keptFrom: number): StoreStep<boolean> {
  const time = { sums_h: 'hour', traffic_q: 'quarter' }[table] ?? 'day'
  const from = `FROM ${dialect.schema}.${table}`
  const oldest = (yield* askOne(dialect, () => `SELECT min(${time}) AS oldest ${from}`))!['oldest']
  if (oldest === null || Number(oldest) >= keptFrom) return false
  const end = Math.min(keptFrom, Number(oldest) + quartersOfDay)
  yield* ask(dialect, (put) => `DELETE ${from} WHERE ${time} < ${put(end)}`)
  return true
}
