import type { DatabaseSync } from 'node:sqlite'
import { type Calendar, createCalendar, type Zone } from '../../accounts/calendar.ts'
import { rollUp, tableNames } from '../../accounts/usage/rollup.ts'
import { spreadTraffic, type TrafficCell, type TrafficTable } from '../../accounts/usage/traffic.ts'
import type { Dialect } from '../sql/dialect.ts'
import { selectSummed } from '../sql/usage.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { addSums, addTraffic } from '../sql/usage-write.ts'
import { createWords } from '../sql/words.ts'
import { transact } from './open.ts'
import type { Run } from './run.ts'

/** The mark decides what is folded, whatever was looked at before. */
const marked = 'entries e LEFT JOIN usage_marks m ON m.account_id = e.account_id'
const isAbove = 'e.id > (SELECT folded_id FROM usage_state) AND e.id <= ? AND e.seq > ifnull(m.seq, 0)'
const selectRange = `SELECT max(id) AS last, count(*) AS entries FROM
  (SELECT id FROM entries WHERE id > (SELECT folded_id FROM usage_state) ORDER BY id LIMIT ?)`

/** Folds the ledger into figures for reports. */
export function createFolding(db: DatabaseSync, run: Run, dialect: Dialect) {
  const isBehind = db.prepare(
    'SELECT ifnull(max(id), 0) > (SELECT folded_id FROM usage_state) AS is_behind FROM entries',
  )
  const range = db.prepare(selectRange)
  const above = db.prepare(selectSummed(marked, isAbove))
  const marks = db.prepare(
    `SELECT e.account_id, max(e.seq) AS seq FROM ${marked} WHERE ${isAbove} GROUP BY e.account_id`,
  )
  const mark = db.prepare('INSERT INTO usage_marks VALUES (?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq')
  const setFolded = db.prepare('UPDATE usage_state SET folded_id = ?')
  const words = createWords(dialect)
  let calendar: Calendar | undefined
  return { fold, writeTraffic }

  /**
   * Folds so many entries at most, in one commit: rows, and the marks of their accounts.
   * @returns how many were looked at.
   */
  function fold(entriesMax: number): number {
    if (isBehind.get()!['is_behind'] === 0n) return 0
    return numbering(() => {
      const state = run(readUsageState(dialect))
      const { last, entries } = range.get(entriesMax) as { last: bigint | null; entries: bigint }
      if (last === null) return 0
      const rollup = rollUp(above.iterate(last), calendarOf(state), state.keptFrom)
      const moved = marks.all(last) as { account_id: string; seq: bigint }[]
      for (const name of tableNames) run(addSums(dialect, words, name, rollup[name]))
      for (const { account_id: accountId, seq } of moved) mark.run(accountId, seq)
      setFolded.run(last)
      return Number(entries)
    })
  }

  /** Adds what was counted, in one commit. */
  function writeTraffic(cells: readonly TrafficCell[]): void {
    numbering(() => {
      const tables = spreadTraffic(cells, calendarOf(run(readUsageState(dialect))))
      for (const [name, rows] of Object.entries(tables)) run(addTraffic(dialect, words, name as TrafficTable, rows))
    })
  }

  /** In one transaction. */
  function numbering<T>(work: () => T): T {
    try {
      return transact(db, work)
    } catch (error) {
      words.forget()
      throw error
    }
  }

  function calendarOf({ timeZone, weekStarts }: Zone): Calendar {
    if (calendar?.timeZone !== timeZone) calendar = createCalendar({ timeZone, weekStarts })
    return calendar
  }
}
