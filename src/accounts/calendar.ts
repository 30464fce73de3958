/*
 * Days, weeks and months of a time zone, made of quarter hours. Midnight of every zone falls on a quarter hour of UTC,
 * even in India (+05:30) and Nepal (+05:45).
 */

export const periods = ['quarter', 'hour', 'day', 'week', 'month'] as const

export type PeriodName = (typeof periods)[number]

/** `startMs` is the first millisecond of a period. `endMs` is the first millisecond after it. */
type Period = { startMs: number; endMs: number }

export const weekStarts = ['monday', 'sunday', 'saturday'] as const

export type WeekStart = (typeof weekStarts)[number]

export type Zone = {
  /** An IANA name such as `Europe/Paris`, or an offset such as `+05:30`. */
  timeZone: string
  weekStarts: WeekStart
}

export const utc: Zone = { timeZone: 'UTC', weekStarts: 'monday' }

export const quarterMs = 900_000
const [hourMs, dayMs] = [3_600_000, 86_400_000]

/** The most offsets that are remembered: one for each six hours of several years. */
const knownMax = 10_000

/** No zone changes its clocks twice within this time. */
const chunkMs = 6 * hourMs

export type Calendar = ReturnType<typeof createCalendar>

/** Creates the calendar of a zone. Times are Unix milliseconds. @throws RangeError if the zone does not exist */
export function createCalendar({ timeZone: named, weekStarts: weekStart }: Zone) {
  const timeZone = spellZone(named)
  const offsetAt = zoneOffset(timeZone)
  const firstWeekday = { sunday: 0, monday: 1, saturday: 6 }[weekStart]
  const last = new Map<PeriodName, Period>()
  return { timeZone, weekStarts: weekStart, periodOf, dateOf, startOf }

  /**
   * Returns the period that contains a moment. Periods of one kind follow each other without a gap. If clocks go
   * forward over midnight, the day begins with its first existing moment. If clocks go back over midnight, the day
   * still begins only once.
   */
  function periodOf(ms: number, period: PeriodName): Period {
    const before = last.get(period)
    if (before && ms >= before.startMs && ms < before.endMs) return before
    const found = findPeriod(ms, period)
    last.set(period, found)
    return found
  }

  /** Returns the date of a moment, as `2026-11-22`. */
  function dateOf(ms: number): string {
    return new Date(localOf(periodOf(ms, 'day').endMs - 1)).toISOString().slice(0, 10)
  }

  /** Returns the first moment of a day. @param date as `2026-11-22` */
  function startOf(date: string): number {
    return firstAt(Date.parse(`${date}T00:00:00.000Z`))
  }

  function findPeriod(ms: number, period: PeriodName): Period {
    if (period === 'quarter') return { startMs: floorTo(ms, quarterMs), endMs: floorTo(ms, quarterMs) + quarterMs }
    if (period === 'hour') return findHour(ms)
    let date = firstDateOf(localOf(ms), period)
    let [startMs, endMs] = [firstAt(date), firstAt(nextDate(date, period))]
    // When clocks go back over midnight, they show the previous date a second time.
    while (ms >= endMs) {
      date = nextDate(date, period)
      ;[startMs, endMs] = [endMs, firstAt(nextDate(date, period))]
    }
    return { startMs, endMs }
  }

  /**
   * Returns the hour as the zone's clock shows it. If the clock changes by half an hour, one hour lasts half as long.
   */
  function findHour(ms: number): Period {
    const offset = offsetAt(ms)
    const startMs = floorTo(ms + offset, hourMs) - offset
    const endMs = startMs + hourMs
    const isOther = (at: number) => offsetAt(at) !== offset
    return {
      startMs: isOther(startMs) ? firstWhere(startMs, ms, (at) => !isOther(at)) : startMs,
      endMs: isOther(endMs - 1) ? firstWhere(ms, endMs - 1, isOther) : endMs,
    }
  }

  /** Returns the first date of the period. A date is represented by its midnight in UTC. */
  function firstDateOf(localMs: number, period: 'day' | 'week' | 'month'): number {
    const date = floorTo(localMs, dayMs)
    const day = new Date(date)
    if (period === 'week') return date - ((day.getUTCDay() - firstWeekday + 7) % 7) * dayMs
    return period === 'day' ? date : Date.UTC(day.getUTCFullYear(), day.getUTCMonth(), 1)
  }

  function nextDate(date: number, period: 'day' | 'week' | 'month'): number {
    const day = new Date(date)
    if (period === 'month') return Date.UTC(day.getUTCFullYear(), day.getUTCMonth() + 1, 1)
    return date + (period === 'day' ? 1 : 7) * dayMs
  }

  /**
   * Returns the first moment at which the zone's clock shows the given time. If clocks skip that time, returns the
   * moment at which they first show a later time.
   */
  function firstAt(shownMs: number): number {
    const offsets = [offsetAt(shownMs - dayMs), offsetAt(shownMs + dayMs)]
    const [early, late] = [shownMs - Math.max(...offsets), shownMs - Math.min(...offsets)]
    if (early === late || localOf(early) >= shownMs) return early
    return firstWhere(early, late, (at) => localOf(at) >= shownMs)
  }

  function localOf(ms: number): number {
    return ms + offsetAt(ms)
  }
}

/** Returns the month of a moment, such as `2026-12`. */
export function monthOf(calendar: Pick<Calendar, 'dateOf'>, ms: number): string {
  return calendar.dateOf(ms).slice(0, 7)
}

/** Returns the span of a month, which is named as `monthOf` names it. */
export function spanOfMonth(calendar: Pick<Calendar, 'periodOf' | 'startOf'>, month: string): Period {
  return calendar.periodOf(calendar.startOf(`${month}-01`), 'month')
}

/**
 * Returns a function that gives a zone's offset from UTC at a moment, in ms. The offset is positive if the zone's
 * clocks are ahead. The function remembers offsets.
 * @throws RangeError if the zone does not exist: see `isTimeZone`
 */
export function zoneOffset(timeZone: string): (ms: number) => number {
  const readOffset = openZone(timeZone)
  const known = new Map<number, number>()
  return (ms) => {
    const chunk = Math.floor(ms / chunkMs)
    const [first, next] = [offsetOf(chunk), offsetOf(chunk + 1)]
    return first === next ? first : readOffset(ms)
  }

  function offsetOf(chunk: number): number {
    const found = known.get(chunk)
    if (found !== undefined) return found
    if (known.size >= knownMax) known.clear()
    const offset = readOffset(chunk * chunkMs)
    known.set(chunk, offset)
    return offset
  }
}

/**
 * Spells a zone's name in its usual case: `utc` becomes `UTC`. If a zone has several names, the given one stays, even
 * if the platform prefers another (Asia/Calcutta for Asia/Kolkata). `isSameZone` compares such names.
 */
export function spellZone(name: string): string {
  const found = canonicalName(name)
  return found.toLowerCase() === name.toLowerCase() ? found : name
}

/** Whether two names refer to the same zone on this platform. */
export function isSameZone(one: string, other: string): boolean {
  return one === other || canonicalName(one) === canonicalName(other)
}

/**
 * Returns the platform's name of a zone. It is never stored, because the platform's next release may choose another
 * name. An unknown name is returned unchanged.
 */
function canonicalName(name: string): string {
  const found = canonical.get(name)
  if (found !== undefined) return found
  try {
    const { timeZone } = new Intl.DateTimeFormat('en-US', { timeZone: name }).resolvedOptions()
    if (canonical.size < openedMax) canonical.set(name, timeZone)
    return timeZone
  } catch {
    return name
  }
}

/** Whether the zone exists and its days begin on a quarter hour. */
export function isTimeZone(name: string): boolean {
  try {
    return openZone(name)(Date.now()) % quarterMs === 0
  } catch {
    return false
  }
}

type ReadOffset = (ms: number) => number

/** For each zone in use, a function for its offset. The functions are kept, because making one takes some ms. */
const opened = new Map<string, ReadOffset>([['UTC', () => 0]])
const openedMax = 100

const canonical = new Map<string, string>([['UTC', 'UTC']])

/** Returns a function that computes a zone's offset from UTC at a moment, in ms; positive if its clocks are ahead. */
function openZone(timeZone: string): ReadOffset {
  const found = opened.get(timeZone) ?? makeReader(timeZone)
  if (opened.size < openedMax) opened.set(timeZone, found)
  return found
}

function makeReader(timeZone: string): ReadOffset {
  const number = 'numeric'
  const format = new Intl.DateTimeFormat('en-US', {
    ...{ timeZone, hourCycle: 'h23', calendar: 'gregory', numberingSystem: 'latn' },
    ...{ year: number, month: number, day: number, hour: number, minute: number, second: number },
  })
  return (ms) => {
    const [month, day, year, hour, minute, second] = format.format(ms).match(/\d+/g)!.map(Number)
    return Date.UTC(year!, month! - 1, day, hour, minute, second) - floorTo(ms, 1_000)
  }
}

function floorTo(ms: number, unitMs: number): number {
  return Math.floor(ms / unitMs) * unitMs
}

/**
 * Finds the first moment at which `isSo` is true.
 * @param before a moment at which `isSo` is false
 * @param after a later moment at which `isSo` is true
 */
function firstWhere(before: number, after: number, isSo: (ms: number) => boolean): number {
  let [no, yes] = [before, after]
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (isSo(middle)) yes = middle
    else no = middle
  }
  return yes
}

/** Formats a time of the store for people and programs: ISO 8601 in UTC, or null for "never". */
export function formatTime(ms: number | undefined): string | null {
  return ms === undefined ? null : new Date(ms).toISOString()
}
