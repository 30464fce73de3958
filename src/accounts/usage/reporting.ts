import { BookError } from '../book-error.ts'
import type { BookChange } from '../book-rules.ts'
import {
  type Calendar,
  createCalendar,
  isSameZone,
  isTimeZone,
  quarterMs,
  spellZone,
  type WeekStart,
  type Zone,
} from '../calendar.ts'
import { isRecorded, type UsageState } from './question.ts'

/** The zone of the days in reports. Figures are kept for this month and the `keepMonths` whole months before it. */
export type Reporting = Zone & { keepMonths: number }

export const usualReporting: Reporting = { timeZone: 'UTC', weekStarts: 'monday', keepMonths: 13 }

/**
 * Makes the message for a server that does not start because the store counts days in another zone (ruling X12). The
 * message says how to mend this. Undefined if the store has no other zone.
 * @param shown the store's name, without secrets @param said the zone in the configuration
 */
export function sayOtherZone(shown: string, state: UsageState, said: string): string | undefined {
  const { timeZone: recorded } = state
  if (!isRecorded(state) || isSameZone(recorded, said)) return undefined
  return `the days of ${shown} are those of ${recorded}, and reporting.time_zone says ${said}: set it to ${recorded}, or stop all servers of the store and run triwire reporting rezone ${said}`
}

/** The new zone of a store. Without `weekStarts`, its weeks begin on the same day as before. */
export type NewZone = Pick<Zone, 'timeZone'> & Partial<Pick<Zone, 'weekStarts'>>

/** The most entries that one commit folds into figures, and the pause between two runs of folding, in ms. */
export const [foldedMax, foldEveryMs] = [500, 5_000]

/** Returns the first quarter hour for which figures are kept. */
export function firstKept(calendar: Calendar, keepMonths: number, nowMs: number): number {
  let { startMs } = calendar.periodOf(nowMs, 'month')
  for (let month = 0; month < keepMonths; month++) ({ startMs } = calendar.periodOf(startMs - 1, 'month'))
  // The result is never 0, because 0 stands for a store in which no server has recorded its zone.
  return Math.max(1, startMs / quarterMs)
}

/** Makes the record of a store's new zone. @param before the present record */
export function rezoned(
  before: { weekStarts: WeekStart; keptFrom: number },
  { timeZone, weekStarts = before.weekStarts }: NewZone,
): { calendar: Calendar; keptFrom: number } {
  const calendar = createCalendar({ timeZone, weekStarts })
  return { calendar, keptFrom: firstKeptWhole(calendar, Math.max(before.keptFrom, 1)) }
}

/**
 * Returns the first quarter hour for which figures are kept after a change of the zone. This is the start of the first
 * day of the new zone that has figures for all its quarter hours.
 * @param calendar of the new zone @param keptFrom the first quarter hour that was kept under the old zone
 */
function firstKeptWhole(calendar: Calendar, keptFrom: number): number {
  const { startMs, endMs } = calendar.periodOf(keptFrom * quarterMs, 'day')
  return (startMs === keptFrom * quarterMs ? startMs : endMs) / quarterMs
}

/** A change of a store's zone. @property before undefined if no server had recorded a zone */
export type ZoneChange = { before: string | undefined; after: string }

/**
 * Changes the reporting zone, whose days reports and budgets use (ruling X12). No server may use the store meanwhile,
 * because a server keeps the zone with which it was started.
 * @param named an IANA name, or an offset such as `+05:30`
 */
export function rezone(named: string): BookChange<ZoneChange> {
  const timeZone = spellZone(named)
  return {
    about: { reporting: true },
    decide({ reporting }) {
      if (!isTimeZone(timeZone)) throw new BookError('zone_invalid', timeZone)
      const { isRecorded, servers, timeZone: recorded } = reporting!
      const before = isRecorded ? recorded : undefined
      const result = { before, after: timeZone }
      if (before !== undefined && isSameZone(before, timeZone)) return { writes: [], result: { before, after: before } }
      if (servers.length > 0) throw new BookError('servers_run', servers.join(', '))
      return {
        writes: [{ kind: 'set_zone', timeZone }],
        result,
        trail: {
          operation: 'reporting.rezone',
          object: 'reporting',
          before: before === undefined ? undefined : { time_zone: before },
          after: { time_zone: timeZone },
        },
      }
    },
  }
}
