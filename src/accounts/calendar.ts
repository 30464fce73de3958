/*
 * Days, weeks and months as people in one place on earth count them, and the quarter hours that all of them are made of: every
 * zone's midnight falls on one, that of India and of Nepal too.
 */

export const periods = ['quarter', 'hour', 'day', 'week', 'month'] as const

export type PeriodName = (typeof periods)[number]

/** From the first millisecond to the one behind the last. */
export type Period = { startMs: number; endMs: number }

export const weekStarts = ['monday', 'sunday', 'saturday'] as const

export type WeekStart = (typeof weekStarts)[number]

export type Zone = {
  /** By its IANA name, or an offset such as `+05:30`. */
  timeZone: string
  weekStarts: WeekStart
}

export const utc: Zone = { timeZone: 'UTC', weekStarts: 'monday' }

export const quarterMs = 900_000
const [hourMs, dayMs] = [3_600_000, 86_400_000]

export type Calendar = Zone & {
  /**
   * The period that a moment falls into. Those of a kind follow one another without gap: where clocks are put forward over
   * midnight the day begins with the first moment that there is of it, and where they are put back it has begun once.
   * @param ms Unix milliseconds, also below.
   */
  periodOf(ms: number, period: PeriodName): Period
  /** The day a moment falls into, as `2026-11-22`. */
  dateOf(ms: number): string
  /** When a day begins. @param date as `2026-11-22` */
  startOf(date: string): number
}

/** Offsets that are remembered at once: some years of a zone. */
const knownMax = 10_000

/** In less than that no clock is changed twice. */
const chunkMs = 6 * hourMs

/** @throws RangeError where there is no such zone: see `isTimeZone`. */
export function createCalendar({ timeZone: named, weekStarts: weekStart }: Zone): Calendar {
  const timeZone = spellZone(named)
  const readOffset = openZone(timeZone)
  const firstWeekday = { sunday: 0, monday: 1, saturday: 6 }[weekStart]
  const known = new Map<number, number>()
  const last = new Map<PeriodName, Period>()
  return { timeZone, weekStarts: weekStart, periodOf, dateOf, startOf }

  function periodOf(ms: number, period: PeriodName): Period {
    const before = last.get(period)
    if (before && ms >= before.startMs && ms < before.endMs) return before
    const found = findPeriod(ms, period)
    last.set(period, found)
    return found
  }

  function dateOf(ms: number): string {
    return new Date(localOf(periodOf(ms, 'day').endMs - 1)).toISOString().slice(0, 10)
  }

  function startOf(date: string): number {
    return firstAt(Date.parse(`${date}T00:00:00.000Z`))
  }

  function findPeriod(ms: number, period: PeriodName): Period {
    if (period === 'quarter') return { startMs: floorTo(ms, quarterMs), endMs: floorTo(ms, quarterMs) + quarterMs }
    if (period === 'hour') return findHour(ms)
    let date = firstDateOf(localOf(ms), period)
    let [startMs, endMs] = [firstAt(date), firstAt(nextDate(date, period))]
    // A clock that was put back over midnight shows the day before once more.
    while (ms >= endMs) {
      date = nextDate(date, period)
      ;[startMs, endMs] = [endMs, firstAt(nextDate(date, period))]
    }
    return { startMs, endMs }
  }

  /** As the clock has it: where it is changed by half an hour there is one of that length. */
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

  /** Days as if it were their midnight in UTC. */
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

  /** The first moment at which clocks show this, or more of them; they may never show it. */
  function firstAt(shownMs: number): number {
    const offsets = [offsetAt(shownMs - dayMs), offsetAt(shownMs + dayMs)]
    const [early, late] = [shownMs - Math.max(...offsets), shownMs - Math.min(...offsets)]
    if (early === late || localOf(early) >= shownMs) return early
    return firstWhere(early, late, (at) => localOf(at) >= shownMs)
  }

  function localOf(ms: number): number {
    return ms + offsetAt(ms)
  }

  function offsetAt(ms: number): number {
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
 * A zone's name as it is written: `utc` is `UTC`. One of several names of a zone stays the one that people have chosen, since the
 * platform would call Kolkata by its colonial name; `isSameZone` knows them.
 */
export function spellZone(name: string): string {
  const found = canonicalName(name)
  return found.toLowerCase() === name.toLowerCase() ? found : name
}

/** Whether two names are of one zone, as this platform knows them. */
export function isSameZone(one: string, other: string): boolean {
  return one === other || canonicalName(one) === canonicalName(other)
}

/** Of the platform's choice, which another release may change: never recorded. What is no zone is told as it is. */
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

/** Whether there is such a zone, and its days begin on a quarter hour. */
export function isTimeZone(name: string): boolean {
  try {
    return openZone(name)(Date.now()) % quarterMs === 0
  } catch {
    return false
  }
}

type ReadOffset = (ms: number) => number

/** Those that were asked for: the first of each takes some milliseconds. There are 600 zones, and few are asked for. */
const opened = new Map<string, ReadOffset>([['UTC', () => 0]])
const openedMax = 100

const canonical = new Map<string, string>([['UTC', 'UTC']])

/** @returns what clocks there are ahead of UTC, in ms. */
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

/** @param before where it is not so yet @param behind where it is */
function firstWhere(before: number, behind: number, isSo: (ms: number) => boolean): number {
  let [no, yes] = [before, behind]
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (isSo(middle)) yes = middle
    else no = middle
  }
  return yes
}
