import type { Calendar } from './calendar.ts'

/**
 * The shift between UTC and a zone, from `fromMs` until the next shift. The date of a moment in the zone is the UTC
 * date of that moment plus `shiftMs`.
 */
export type DayShift = { fromMs: number; shiftMs: number }

const dayMs = 86_400_000

/** The earliest moment that shifts must cover. No version of triwire has posted an entry before this moment. */
const firstMs = Date.UTC(2020, 0)

/**
 * Makes the shifts with which a database that knows no time zones finds the day of an entry (ruling X12). A zone has a
 * few shifts a year. The first shift also applies to earlier times.
 * @param sinceMs, untilMs the span to cover
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
    // A day of more than 24 hours would run into the next date. Its last hours therefore have their own shift.
    if (day.endMs > day.startMs + dayMs) put(day.startMs + dayMs, dateMs + dayMs - day.endMs)
    if (day.endMs >= untilMs) return shifts
    day = calendar.periodOf(day.endMs, 'day')
  }
}
