import type { Calendar } from './calendar.ts'

/** From `fromMs` on, until the next shift, `time + shiftMs` has in UTC the calendar day that `time` has in the zone. */
export type DayShift = { fromMs: number; shiftMs: number }

const dayMs = 86_400_000

/** No triwire has posted anything before it. */
const firstMs = Date.UTC(2020, 0)

/**
 * By which a database that knows no zones finds the day of an entry (ruling X12): a few for each year, since clocks are changed so often.
 * Before the first one the first holds. @param sinceMs, untilMs what is asked about
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
    // A longer day ends with its date all the same.
    if (day.endMs > day.startMs + dayMs) put(day.startMs + dayMs, dateMs + dayMs - day.endMs)
    if (day.endMs >= untilMs) return shifts
    day = calendar.periodOf(day.endMs, 'day')
  }
}
