import type { DatabaseSync } from 'node:sqlite'
import { createCalendar, isSameZone, quarterMs, spellZone, type Zone } from '../../accounts/calendar.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { firstKept, type NewZone, type Reporting, rezoned, sayOtherZone } from '../../accounts/usage/reporting.ts'
import { sumColumns, usageTables } from '../../accounts/usage/rollup.ts'
import { joinCells, type TrafficCell, trafficTables } from '../../accounts/usage/traffic.ts'
import { StoreError } from '../files/store-error.ts'
import { transact } from './open.ts'
import { preparing } from './preparing.ts'
import { readUsageState } from './usage.ts'

/** By table the column of its time. */
const timeColumns = {
  ...{ usage_q: 'quarter', usage_d: 'day', usage_t: 'day' },
  ...{ traffic_q: 'quarter', traffic_d: 'day', traffic_t: 'day' },
} as const

/** What becomes of figures as time goes on, and whose days they are by. */
export function createUsageKeeping(db: DatabaseSync) {
  const prepare = preparing(db)
  return { adoptReporting, pruneSome, rezone, refuseOtherZone }

  /**
   * Records this zone where no server has recorded one, and keeps figures for as long as `keepMonths` says. A zone that is
   * recorded stays (ruling X12).
   */
  function adoptReporting({ timeZone, weekStarts, keepMonths }: Reporting, nowMs: number): void {
    const before = readUsageState(prepare)
    const zone = isRecorded(before) ? before.timeZone : spellZone(timeZone)
    const kept = firstKept(createCalendar({ timeZone: zone, weekStarts }), keepMonths, nowMs)
    // What was thrown away does not come back.
    if (isRecorded(before) && kept <= before.keptFrom && before.weekStarts === weekStarts) return
    transact(db, () => {
      const set = `INSERT INTO usage_state VALUES (1, ?, ?, ?, 0) ON CONFLICT DO UPDATE
        SET time_zone = excluded.time_zone, week_starts = excluded.week_starts, kept_from = max(kept_from, excluded.kept_from)`
      db.prepare(set).run(zone, weekStarts, kept)
      // What was folded before is by the days of nobody's choice.
      if (zone !== before.timeZone) remakeDays({ timeZone: zone, weekStarts })
    })
  }

  /** @param shown the store, as people know it. @throws StoreError where another zone is recorded (ruling X12). */
  function refuseOtherZone(said: string, shown: string): void {
    const state = readUsageState(prepare)
    if (isRecorded(state) && !isSameZone(state.timeZone, said))
      throw new StoreError(sayOtherZone(shown, state.timeZone, said))
  }

  /**
   * Records another zone, whose weeks begin as they did where it does not say it, and makes the days anew from the quarters, inside the
   * caller's transaction: with 10 million entries it takes some seconds.
   */
  function rezone(wished: NewZone): void {
    const { calendar, keptFrom } = rezoned(readUsageState(prepare), wished)
    const set = prepare('UPDATE usage_state SET time_zone = ?, week_starts = ?, kept_from = ?')
    set.run(calendar.timeZone, calendar.weekStarts, keptFrom)
    remakeDays(calendar)
  }

  function remakeDays(zone: Zone): void {
    const calendar = createCalendar(zone)
    db.exec(
      'CREATE TEMP TABLE IF NOT EXISTS day_of (quarter INTEGER PRIMARY KEY, day INTEGER NOT NULL); DELETE FROM day_of',
    )
    const setDay = db.prepare('INSERT INTO day_of VALUES (?, ?)')
    const quarters = db
      .prepare('SELECT DISTINCT quarter FROM usage_q UNION SELECT DISTINCT quarter FROM traffic_q')
      .all()
    for (const { quarter } of quarters)
      setDay.run(quarter as bigint, calendar.periodOf(Number(quarter) * quarterMs, 'day').startMs / quarterMs)
    const sums = sumColumns.map((column) => `sum(${column})`).join(', ')
    for (const name of ['usage_d', 'usage_t'] as const) {
      const columns = usageTables[name].join(', ')
      db.exec(`DELETE FROM ${name}; INSERT INTO ${name} (${columns}, ${sumColumns.join(', ')})
        SELECT ${columns}, ${sums} FROM usage_q JOIN day_of USING (quarter) GROUP BY ${columns}`)
    }
    for (const name of ['traffic_d', 'traffic_t'] as const) remakeTraffic(name)
    db.exec('DELETE FROM day_of')
  }

  /** Histograms are joined here, those of a row one behind the other. */
  function remakeTraffic(name: 'traffic_d' | 'traffic_t'): void {
    const columns = trafficTables[name]
    db.exec(`DELETE FROM ${name}`)
    const insert = db.prepare(
      `INSERT INTO ${name} (${columns.join(', ')}, requests, first_byte, total) VALUES (${columns.map(() => '?').join(', ')}, ?, ?, ?)`,
    )
    const select = `SELECT ${columns.join(', ')}, requests, first_byte, total FROM traffic_q JOIN day_of USING (quarter)
      ORDER BY ${columns.join(', ')}`
    let alike: TrafficCell[] = []
    for (const row of db.prepare(select).iterate()) {
      const place = Object.fromEntries(columns.map((column) => [column, Number(row[column])]))
      const cell = {
        place,
        requests: Number(row['requests']),
        first_byte: row['first_byte'],
        total: row['total'],
      } as TrafficCell
      if (alike[0] && columns.some((column) => alike[0]!.place[column] !== place[column])) put()
      alike.push(cell)
    }
    put()

    function put(): void {
      for (const { place, requests, first_byte, total } of joinCells(alike, columns))
        insert.run(...columns.map((column) => place[column]!), requests, first_byte, total)
      alike = []
    }
  }

  /** Throws away a day of what is not kept any more, in one commit. @returns whether there was any */
  function pruneSome(): boolean {
    const kept = Number(db.prepare('SELECT kept_from FROM usage_state').get()?.['kept_from'] ?? 0)
    return transact(db, () => {
      const pruned = Object.entries(timeColumns).map(([table, time]) => {
        const oldest = db.prepare(`SELECT min(${time}) AS oldest FROM ${table}`).get()!['oldest'] as bigint | null
        if (oldest === null || oldest >= kept) return false
        db.prepare(`DELETE FROM ${table} WHERE ${time} < ?`).run(Math.min(kept, Number(oldest) + quartersOfDay))
        return true
      })
      return pruned.includes(true)
    })
  }
}

const quartersOfDay = 96
