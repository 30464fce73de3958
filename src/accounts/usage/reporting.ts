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

/** Whose days figures are kept by, and how many whole months of them before the current one. */
export type Reporting = Zone & { keepMonths: number }

export const usualReporting: Reporting = { timeZone: 'UTC', weekStarts: 'monday', keepMonths: 13 }

/**
 * Why a server does not start on a store whose days are another zone's (ruling X12), and the cure.
 * @param shown the store, as it may be shown @param recorded its zone @param said by the configuration
 */
export function sayOtherZone(shown: string, recorded: string, said: string): string {
  return `the days of ${shown} are those of ${recorded}, and reporting.time_zone says ${said}: set it to ${recorded}, or stop all servers of the store and run triwire reporting rezone ${said}`
}

/** Another zone for a store. Its weeks begin as they did where nothing is said of them. */
export type NewZone = Pick<Zone, 'timeZone'> & Partial<Pick<Zone, 'weekStarts'>>

/** Entries that are folded in one commit, and how long some wait for others at most, in ms. */
export const [foldedMax, foldEveryMs] = [500, 5_000]

/** The first quarter hour that is kept. */
export function firstKept(calendar: Calendar, keepMonths: number, nowMs: number): number {
  let { startMs } = calendar.periodOf(nowMs, 'month')
  for (let month = 0; month < keepMonths; month++) ({ startMs } = calendar.periodOf(startMs - 1, 'month'))
  // Of a store in which no server has said anything it is 0.
  return Math.max(1, startMs / quarterMs)
}

/** The record of a store from when its days are those of another zone. @param before what is recorded now */
export function rezoned(
  before: { weekStarts: WeekStart; keptFrom: number },
  { timeZone, weekStarts = before.weekStarts }: NewZone,
): { calendar: Calendar; keptFrom: number } {
  const calendar = createCalendar({ timeZone, weekStarts })
  return { calendar, keptFrom: firstKeptWhole(calendar, Math.max(before.keptFrom, 1)) }
}

/**
 * The first quarter hour that is kept after days of another zone are counted. It begins the first of those days whose
 * quarters
 * are all kept. The day before it would be kept in part only.
 * @param calendar of the new zone @param keptFrom by the old one
 */
function firstKeptWhole(calendar: Calendar, keptFrom: number): number {
  const { startMs, endMs } = calendar.periodOf(keptFrom * quarterMs, 'day')
  return (startMs === keptFrom * quarterMs ? startMs : endMs) / quarterMs
}

/** @property before undefined if no server had recorded one */
export type ZoneChange = { before: string | undefined; after: string }

/**
 * Changes the zone by whose days reports and budgets are counted (ruling X12). No server may use the store meanwhile,
 * since each counts by the zone that it was started with.
 * @param named an IANA name, or an offset such as `+05:30`.
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
