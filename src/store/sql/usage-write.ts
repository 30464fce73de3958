import { createCalendar } from '../../accounts/calendar.ts'
import { nanosMax } from '../../accounts/credit.ts'
import type { UsageState } from '../../accounts/usage/question.ts'
import {
  comparePlaces,
  placeColumns,
  rollUp,
  type SumColumn,
  type SummedEntries,
  sumColumns,
  sumRowOf,
  tableNames,
  usageTables,
} from '../../accounts/usage/rollup.ts'
import {
  countedColumns,
  joinCounts,
  spreadTraffic,
  type TrafficCell,
  type TrafficTable,
  trafficTables,
} from '../../accounts/usage/traffic.ts'
import { type Dialect, insertAll } from './dialect.ts'
import { type Row, rowsOf, runAll, type StoreStep } from './step.ts'
import { readUsageState } from './usage-keep.ts'
import { slices, type Words } from './words.ts'

/* Writes rows of figures for reports, in the caller's transaction. */

/**
 * SQL: the sum of the stored cost and a further cost, limited as by `clampNanos`. Without the limit, a key that has spent
 * more than 64 bits can hold would make each further fold fail, for all accounts.
 */
const costSum = `CASE WHEN t.cost > 0 AND excluded.cost > ${nanosMax} - t.cost THEN ${nanosMax}
  WHEN t.cost < 0 AND excluded.cost < -${nanosMax} - t.cost THEN -${nanosMax} ELSE t.cost + excluded.cost END`

/** Adds summed entries to every table of figures (`usageTables`). */
export function* addEntries(
  dialect: Dialect,
  words: Words,
  entries: Iterable<SummedEntries>,
  state: UsageState,
): StoreStep<void> {
  const calendar = createCalendar(state)
  const rows = Array.from(entries, (entry) => sumRowOf(entry, calendar, state.keptFrom))
  const places = yield* words.placesOf(rows, placeColumns)
  const placed = rows.map(({ sums, isKept }, at) => ({ place: places[at]!, sums, isKept }))
  const sumOf = (column: SumColumn) => (column === 'cost' ? costSum : `t.${column} + excluded.${column}`)
  const more = sumColumns.map((column) => `${column} = ${sumOf(column)}`).join(', ')
  for (const name of tableNames) {
    const columns = usageTables[name]
    const onConflict = `ON CONFLICT (${columns.join(', ')}) DO UPDATE SET ${more}`
    yield* runAll(insertAll(dialect, name, [...columns, ...sumColumns], rollUp(placed, name), onConflict))
  }
}

/** Adds counts of requests to each table that keeps such counts (`trafficTables`). */
export function* addTraffic(dialect: Dialect, words: Words, cells: readonly TrafficCell[]): StoreStep<void> {
  const tables = spreadTraffic(cells, createCalendar(yield* readUsageState(dialect, 'SHARE')))
  for (const [name, rows] of Object.entries(tables)) yield* addCells(dialect, words, name as TrafficTable, rows)
}

/** Adds counters to the rows of a table. Rows are sorted, so that all servers lock them in the same order. */
function* addCells(dialect: Dialect, words: Words, name: TrafficTable, cells: readonly TrafficCell[]): StoreStep<void> {
  const columns = trafficTables[name]
  const all = [...columns, ...countedColumns]
  const places = yield* words.placesOf(cells, columns)
  const placed = cells.map((cell, at) => ({ cell, place: places[at]! })).sort((a, b) => comparePlaces(a.place, b.place))
  const none = new Uint8Array()
  // The rows are inserted first, because only an existing row can be locked against other servers.
  const empty = placed.map(({ place }) => [...place, 0, 0, none, none])
  if (dialect.isShared) yield* runAll(insertAll(dialect, name, all, empty, 'ON CONFLICT DO NOTHING'))
  const there = new Map<string, Row>()
  for (const list of slices(placed)) {
    const rows = yield* rowsOf({
      text: `SELECT * FROM ${dialect.schema}.${name} WHERE (${columns.join(', ')}) IN (
        VALUES ${list.map(({ place }) => `(${place.join(', ')})`).join(', ')})
        ORDER BY ${columns.join(', ')} ${dialect.isShared ? 'FOR UPDATE' : ''}`,
      values: [],
    })
    for (const row of rows) there.set(columns.map((column) => row[column]).join(), row)
  }
  const values = placed.map(({ cell, place }) => {
    const row = there.get(place.join()) ?? { requests: 0n, moved: 0n, first_byte: none, total: none }
    const joined = (column: 'first_byte' | 'total') => joinCounts(row[column] as Uint8Array, cell[column])
    const sum = (column: 'requests' | 'moved') => (row[column] as bigint) + BigInt(cell[column])
    return [...place, sum('requests'), sum('moved'), joined('first_byte'), joined('total')]
  })
  const sets = countedColumns.map((column) => `${column} = excluded.${column}`)
  const onConflict = `ON CONFLICT (${columns.join(', ')}) DO UPDATE SET ${sets.join(', ')}`
  yield* runAll(insertAll(dialect, name, all, values, onConflict))
}
