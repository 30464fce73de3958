import { type Calendar, createCalendar, isSameZone, quarterMs, spellZone, type Zone } from '../../accounts/calendar.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import { firstKept, type NewZone, type Reporting, rezoned, sayOtherZone } from '../../accounts/usage/reporting.ts'
import { sumColumns, usageTables } from '../../accounts/usage/rollup.ts'
import { joinCells, type TrafficCell, type TrafficTable, trafficTables } from '../../accounts/usage/traffic.ts'
import { StoreError } from '../files/store-error.ts'
import { readNowMs } from './clock.ts'
import type { Database, Transaction } from './database.ts'
import { readUsageState } from './usage.ts'

/** What becomes of figures as time goes on, and whose days they are by. */
export function createUsageKeeping(database: Database) {
  return { adoptReporting, pruneSome }

  /**
   * Records this zone where no server has recorded one, and keeps figures for as long as `keepMonths` says. A zone that is
   * recorded stays (ruling X12). A server whose own clock is ahead would throw away what all others keep.
   */
  async function adoptReporting({ timeZone, weekStarts, keepMonths }: Reporting): Promise<void> {
    await database.transact(async (transaction) => {
      const { calendar: before, keptFrom } = await lockState(transaction, 'UPDATE')
      const zone = { timeZone: isRecorded({ keptFrom }) ? before.timeZone : spellZone(timeZone), weekStarts }
      const kept = firstKept(createCalendar(zone), keepMonths, await readNowMs(transaction))
      if (isRecorded({ keptFrom }) && before.weekStarts === weekStarts && keptFrom >= kept) return
      // What was thrown away does not come back.
      await transaction.query(
        'UPDATE triwire.usage_state SET time_zone = $1, week_starts = $2, kept_from = greatest(kept_from, $3)',
        [zone.timeZone, weekStarts, kept],
      )
      // What was folded before is by the days of nobody's choice.
      if (before.timeZone !== zone.timeZone) await remakeDays(transaction, createCalendar(zone))
    })
  }

  /** Throws away a day of what is not kept any more. @returns whether there was any */
  async function pruneSome(): Promise<boolean> {
    let isMore = false
    for (const name of [...Object.keys(usageTables), ...Object.keys(trafficTables)]) {
      if (name === 'usage_k') continue
      const time = name.endsWith('_q') ? 'quarter' : 'day'
      const gone = await database.query(
        `WITH oldest AS (SELECT min(${time}) AS at FROM triwire.${name}), gone AS (
           DELETE FROM triwire.${name} WHERE ${time} < least((SELECT kept_from FROM triwire.usage_state), (SELECT at FROM oldest) + 96)
           RETURNING 1)
         SELECT count(*) AS n FROM gone`,
      )
      if ((gone[0]!['n'] as bigint) > 0n) isMore = true
    }
    return isMore
  }
}

/**
 * Records another zone, whose weeks begin as they did where it does not say it, and makes the days anew from the quarters, by who has
 * locked the state: with 10 million entries it takes some seconds.
 */
export async function rezone(transaction: Transaction, wished: NewZone): Promise<void> {
  const { calendar, keptFrom } = rezoned(await readUsageState(transaction), wished)
  const set = 'UPDATE triwire.usage_state SET time_zone = $1, week_starts = $2, kept_from = $3'
  await transaction.query(set, [calendar.timeZone, calendar.weekStarts, keptFrom])
  await remakeDays(transaction, calendar)
}

/**
 * Records the zone that a server says, where none is recorded.
 * @param shown the store, as it may be shown. @throws StoreError where another one is (ruling X12).
 */
export async function settleZone(database: Database, reporting: Reporting, shown: string): Promise<void> {
  const isNew = !isRecorded(await readUsageState(database))
  if (isNew) await createUsageKeeping(database).adoptReporting(reporting)
  await refuseOtherZone(database, reporting.timeZone, shown)
}

/**
 * A zone that is being changed is waited for. @param shown the store, as it may be shown.
 * @throws StoreError where another zone is recorded (ruling X12).
 */
export async function refuseOtherZone(database: Database, said: string, shown: string): Promise<void> {
  const { calendar, keptFrom } = await database.transact((transaction) => lockState(transaction, 'SHARE'))
  if (isRecorded({ keptFrom }) && !isSameZone(calendar.timeZone, said))
    throw new StoreError(sayOtherZone(shown, calendar.timeZone, said))
}

async function remakeDays(transaction: Transaction, calendar: Calendar): Promise<void> {
  const { query } = transaction
  const quarters = await query(
    'SELECT DISTINCT quarter FROM triwire.usage_q UNION SELECT DISTINCT quarter FROM triwire.traffic_q',
  )
  const dayOf = new Map(
    quarters.map(({ quarter }) => [
      quarter as number,
      calendar.periodOf((quarter as number) * quarterMs, 'day').startMs / quarterMs,
    ]),
  )
  const sums = sumColumns.map((column) => `sum(${column})`).join(', ')
  for (const name of ['usage_d', 'usage_t'] as const) {
    const columns = usageTables[name].join(', ')
    await query(`DELETE FROM triwire.${name}`)
    await query(
      `INSERT INTO triwire.${name} (${columns}, ${sumColumns.join(', ')}) SELECT ${columns}, ${sums} FROM triwire.usage_q
       JOIN unnest($1::int[], $2::int[]) AS d (quarter, day) USING (quarter) GROUP BY ${columns}`,
      [[...dayOf.keys()], [...dayOf.values()]],
    )
  }
  for (const name of ['traffic_d', 'traffic_t'] as const) await query(`DELETE FROM triwire.${name}`)
  for (const [day, found] of Map.groupBy(dayOf, ([, day]) => day)) {
    const rows = await query('SELECT * FROM triwire.traffic_q WHERE quarter = ANY ($1::int[])', [
      found.map(([quarter]) => quarter),
    ])
    const cells = rows.map((row) => ({
      ...row,
      place: { ...row, day },
      requests: Number(row['requests']),
    })) as unknown as TrafficCell[]
    for (const name of ['traffic_d', 'traffic_t'] as const)
      await insertTraffic(transaction, name, joinCells(cells, trafficTables[name]))
  }
}

async function insertTraffic({ query }: Transaction, name: TrafficTable, rows: readonly TrafficCell[]): Promise<void> {
  const columns = trafficTables[name]
  const json = rows.map(({ place, requests, first_byte, total }) => ({
    ...place,
    requests,
    ...{ first_byte: Buffer.from(first_byte).toString('base64'), total: Buffer.from(total).toString('base64') },
  }))
  await query(
    `INSERT INTO triwire.${name} (${columns.join(', ')}, requests, first_byte, total)
     SELECT ${columns.join(', ')}, requests, decode(first_byte, 'base64'), decode(total, 'base64')
     FROM json_to_recordset($1) AS r(${columns.map((column) => `${column} integer`).join(', ')}, requests bigint, first_byte text, total text)`,
    [JSON.stringify(json)],
  )
}

/** Locked, so that nobody remakes the days meanwhile. */
export async function lockState(
  { query }: Transaction,
  lock: 'SHARE' | 'UPDATE',
): Promise<{ calendar: Calendar; keptFrom: number }> {
  const [row] = await query(`SELECT time_zone, week_starts, kept_from FROM triwire.usage_state FOR ${lock}`)
  const { time_zone, week_starts, kept_from } = row as {
    time_zone: string
    week_starts: Zone['weekStarts']
    kept_from: number
  }
  return { calendar: createCalendar({ timeZone: time_zone, weekStarts: week_starts }), keptFrom: kept_from }
}
