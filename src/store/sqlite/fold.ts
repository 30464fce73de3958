import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { type Calendar, createCalendar, type Zone } from '../../accounts/calendar.ts'
import {
  rollUp,
  type SumRow,
  sumColumns,
  tableNames,
  type UsageTable,
  usageTables,
} from '../../accounts/usage/rollup.ts'
import {
  joinCounts,
  spreadTraffic,
  type TrafficCell,
  type TrafficTable,
  trafficTables,
} from '../../accounts/usage/traffic.ts'
import { selectSummed } from '../sql/usage.ts'
import { transact } from './open.ts'
import { preparing } from './preparing.ts'
import { readUsageState } from './usage.ts'

/** Words that are remembered at once; each takes some 100 bytes. */
const wordsMax = 200_000

/** The mark decides what is folded, whatever was looked at before. */
const marked = 'entries e LEFT JOIN usage_marks m ON m.account_id = e.account_id'
const isAbove = 'e.id > (SELECT folded_id FROM usage_state) AND e.id <= ? AND e.seq > ifnull(m.seq, 0)'
const selectAbove = selectSummed(marked, isAbove)
const selectMarks = `SELECT e.account_id, max(e.seq) AS seq FROM ${marked} WHERE ${isAbove} GROUP BY e.account_id`
const selectRange = `SELECT max(id) AS last, count(*) AS entries FROM
  (SELECT id FROM entries WHERE id > (SELECT folded_id FROM usage_state) ORDER BY id LIMIT ?)`

/** What folds the ledger into figures for reports. */
export function createFolding(db: DatabaseSync) {
  const prepare = preparing(db)
  let calendar: Calendar | undefined
  /** Numbers of words that are committed, and of those that may not come to be. */
  const known = new Map<string, number | bigint>()
  let named = new Map<string, number | bigint>()
  return {
    fold: (entriesMax: number) => naming(() => fold(entriesMax)),
    writeTraffic: (cells: readonly TrafficCell[]) => naming(() => writeTraffic(cells)),
  }

  /** What is rolled back has named nothing. */
  function naming<T>(work: () => T): T {
    named = new Map()
    const result = work()
    if (known.size > wordsMax) known.clear()
    for (const [key, id] of named) known.set(key, id)
    return result
  }

  /**
   * Folds so many entries at most, in one commit: rows, and the marks of their accounts.
   * @returns how many were looked at.
   */
  function fold(entriesMax: number): number {
    const isBehind = 'SELECT ifnull(max(id), 0) > (SELECT folded_id FROM usage_state) AS is_behind FROM entries'
    if (prepare(isBehind).get()!['is_behind'] === 0n) return 0
    return transact(db, () => {
      const state = readUsageState(prepare)
      const { last, entries } = prepare(selectRange).get(entriesMax) as { last: bigint | null; entries: bigint }
      if (last === null) return 0
      const rollup = rollUp(prepare(selectAbove).iterate(last), calendarOf(state), state.keptFrom)
      const marks = prepare(selectMarks).all(last) as { account_id: string; seq: bigint }[]
      for (const name of tableNames) add(name, rollup[name])
      const mark = prepare('INSERT INTO usage_marks VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq')
      for (const { account_id: accountId, seq } of marks) mark.run(accountId, seq)
      prepare('UPDATE usage_state SET folded_id = ?').run(last)
      return Number(entries)
    })
  }

  function add(name: UsageTable, rows: readonly SumRow[]): void {
    const columns = [...usageTables[name], ...sumColumns]
    const more = sumColumns.map((column) => `${column} = ${column} + excluded.${column}`)
    const insert = prepare(
      `INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})
       ON CONFLICT DO UPDATE SET ${more.join(', ')}`,
    )
    for (const { place, sums } of rows) insert.run(...placeOf(place, usageTables[name]), ...sums)
  }

  /** Adds what was counted, in one commit. */
  function writeTraffic(cells: readonly TrafficCell[]): void {
    transact(db, () => {
      const tables = spreadTraffic(cells, calendarOf(readUsageState(prepare)))
      for (const [name, rows] of Object.entries(tables)) for (const row of rows) addTraffic(name as TrafficTable, row)
    })
  }

  function addTraffic(name: TrafficTable, { place, requests, first_byte, total }: TrafficCell): void {
    const columns = trafficTables[name]
    const values = placeOf(place, columns)
    const where = columns.map((column) => `${column} = ?`).join(' AND ')
    const there = prepare(`SELECT requests, first_byte, total FROM ${name} WHERE ${where}`).get(...values)
    const figures: SQLInputValue[] = there
      ? [
          (there['requests'] as bigint) + BigInt(requests),
          joinCounts(there['first_byte'] as Uint8Array, first_byte),
          joinCounts(there['total'] as Uint8Array, total),
        ]
      : [requests, first_byte, total]
    prepare(
      `INSERT OR REPLACE INTO ${name} (${columns.join(', ')}, requests, first_byte, total)
       VALUES (${columns.map(() => '?').join(', ')}, ?, ?, ?)`,
    ).run(...values, ...figures)
  }

  /** With words as their numbers. */
  function placeOf(place: SumRow['place'], columns: readonly string[]): SQLInputValue[] {
    return columns.map((column) =>
      typeof place[column] === 'number' ? place[column] : numberOf(column, place[column]!),
    )
  }

  /** Of a word that may be new; within a transaction that writes. */
  function numberOf(kind: string, word: string): number | bigint {
    if (word === '') return 0
    const key = `${kind}\n${word}`
    const there = known.get(key) ?? named.get(key)
    if (there !== undefined) return there
    const found = prepare('SELECT id FROM usage_words WHERE kind = ? AND word = ?').get(kind, word)
    const id =
      (found?.['id'] as bigint | undefined) ??
      prepare('INSERT INTO usage_words (kind, word) VALUES (?, ?)').run(kind, word).lastInsertRowid
    named.set(key, id)
    return id
  }

  function calendarOf({ timeZone, weekStarts }: Zone): Calendar {
    if (calendar?.timeZone !== timeZone) calendar = createCalendar({ timeZone, weekStarts })
    return calendar
  }
}
