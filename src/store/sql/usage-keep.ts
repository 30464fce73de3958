import { createCalendar, quarterMs, spellZone, type Zone } from '../../accounts/calendar.ts'
import { isRecorded, type UsageState } from '../../accounts/usage/question.ts'
import { firstKept, type NewZone, type Reporting, rezoned, sayOtherZone } from '../../accounts/usage/reporting.ts'
import { tableNames } from '../../accounts/usage/rollup.ts'
import { countedColumns, joinCells, type TrafficCell, trafficTables } from '../../accounts/usage/traffic.ts'
import { refuseAway } from './archives.ts'
import { type Dialect, insertAll, type SqlValue } from './dialect.ts'
import { readNowMs } from './moments.ts'
import { ask, askOne, execute, inTransaction, type Row, runAll, type StoreStep } from './step.ts'

/* How long the figures for reports are kept, and the time zone in which their days begin. */

const quartersOfDay = 96

/**
 * Reads the time zone of the figures for reports, and since when figures are kept. @param lock delays changes of both
 * until the commit
 */
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
 * Records the zone of reports, unless one is recorded already (ruling X12). Also records the time from which figures
 * are kept, which follows from `keepMonths`.
 * @param nowMs Unix milliseconds; by default the store's time, because a server's clock may be ahead
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
  // The earlier figures were summed by days of the default zone, which nobody chose. So all figures are summed again.
  if (state.timeZone !== before.timeZone) yield* foldAnew(dialect, state)
}

/** Combines the recorded state with the server's settings. Undefined if the recorded state needs no change. */
function adopted(before: UsageState, { timeZone, weekStarts, keepMonths }: Reporting, atMs: number) {
  const zone = { timeZone: isRecorded(before) ? before.timeZone : spellZone(timeZone), weekStarts }
  const kept = firstKept(createCalendar(zone), keepMonths, atMs)
  if (isRecorded(before) && kept <= before.keptFrom && before.weekStarts === weekStarts) return undefined
  // `keptFrom` never moves back, because deleted figures do not come back.
  return { ...zone, keptFrom: Math.max(kept, before.keptFrom) }
}

/**
 * Checks whether a server has the zone that the store records. In PostgreSQL, waits until a running change of the zone
 * ends.
 * @param said the zone of the server
 * @param shown the name of the store for people
 * @returns the refusal if another zone is recorded (ruling X12)
 */
export function* findOtherZone(dialect: Dialect, said: string, shown: string): StoreStep<string | undefined> {
  return sayOtherZone(shown, yield* readUsageState(dialect, 'SHARE'), said)
}

/**
 * Records another zone, and deletes the figures, which were summed by hours of the previous zone. It runs in the
 * caller's transaction. The start of the week changes only if `wished` names another start.
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

/**
 * Deletes the figures that were summed from entries, so that the entries are summed again by the hours of the new zone.
 * Counters of requests that cost nothing are kept.
 */
export function* foldAnew(dialect: Dialect, zone: Zone): StoreStep<void> {
  const { schema, isShared } = dialect
  yield* refuseAway(dialect)
  for (const name of [...tableNames, 'sums_marks', 'traffic_d', 'traffic_t'])
    yield* ask(dialect, () => `DELETE FROM ${schema}.${name}`)
  if (!isShared) yield* ask(dialect, () => `UPDATE ${schema}.sums_state SET folded_id = 0`)
  const calendar = createCalendar(zone)
  const hours = yield* ask(dialect, () => `SELECT DISTINCT quarter FROM ${schema}.traffic_q ORDER BY 1`)
  let end = 0
  // All hours of a day are read by one query, because they are next to each other in an index.
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

/** From each table of figures, deletes the oldest day that is no longer kept. @returns whether there was such a day */
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
