import type { Calendar } from './calendar.ts'

/** From `fromMs` until the next shift, the calendar day of `time` in the zone is that of `time + shiftMs` in UTC. */
export type DayShift = { fromMs: number; shiftMs: number }

const dayMs = 86_400_000

/** No triwire has posted an entry before this moment. */
const firstMs = Date.UTC(2020, 0)

/**
 * Shifts by which a database that knows no zones finds the day of an entry (ruling X12): a few for each year. Before
 * the first shift, the first one holds. @param sinceMs, untilMs the span to cover
 */
export function dayShifts(
  calendar: Pick<Calendar, 'periodOf' | 'dateOf'>,
  { sinceMs = firstMs, untilMs }: { sinceMs?: number | undefined; untilMs: number },
): DayShift[] {
  const shifts: DayShift[] = []
  const put = (fromMs: number, shiftMs: number) => {
    if (shifts.at(-1)?.shiftMs !== shiftMs) shifts.push({ fromMs, shiftMs })
  }
  let day = calendar.periodOf(Math.max(firstMs, sinceMs), 'day')
  for (;;) {
    const dateMs = Date.parse(calendar.dateOf(day.startMs))
    put(day.startMs, dateMs - day.startMs)
    // A day of more than 24 hours would run into the next date, so its last hours have a shift of their own.
    if (day.endMs > day.startMs + dayMs) put(day.startMs + dayMs, dateMs + dayMs - day.endMs)
    if (day.endMs >= untilMs) return shifts
    day = calendar.periodOf(day.endMs, 'day')
  }
}
