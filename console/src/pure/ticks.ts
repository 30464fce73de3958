import { dayIn, isDay, partsIn, tellDay, tellMonth, two } from './calendar.ts'
import type { Bucket } from './range.ts'

/** Zones for the labels of buckets: hours are in the viewer's zone, days and longer in the reporting zone. */
export type Zones = { viewer: string; reporting: string }

const spans: Record<Bucket, number> = {
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 30 * 86_400_000,
}

/** Formats the label of one bucket: `Sat 22 Nov, 14:00 to 15:00`. */
export function tellBucket(start: string, bucket: Bucket, zones: Zones): string {
  if (bucket === 'hour') {
    const ms = Date.parse(start)
    const { weekday, hour, minute } = partsIn(zones.viewer, ms)
    const end = partsIn(zones.viewer, ms + spans[bucket])
    const day = tellDay(dayIn(zones.viewer, ms))
    return `${weekday} ${day}, ${two(hour)}:${two(minute)} to ${two(end.hour)}:${two(end.minute)}`
  }
  const day = dayOf(start, zones.reporting)
  if (bucket === 'month') return tellMonth(day)
  const weekday = partsIn('UTC', Date.parse(`${day}T00:00:00Z`)).weekday
  return bucket === 'week' ? `week of ${weekday} ${tellDay(day)}` : `${weekday} ${tellDay(day)}`
}

/**
 * Formats the span of buckets, from the start of the first to the end of the last: `Sat 21 Nov, 04:00 – Sat 28 Nov,
 * 04:00`.
 */
export function tellSpan(buckets: readonly string[], bucket: Bucket, zones: Zones, between = ' – '): string {
  const [first, last] = [buckets[0]!, buckets.at(-1)!]
  if (bucket !== 'hour') return [first, last].map((at) => tellBucket(at, bucket, zones)).join(between)
  const endMs = Date.parse(last) + spans[bucket]
  return [Date.parse(first), endMs]
    .map((ms) => tellBucket(new Date(ms).toISOString(), bucket, zones).replace(/ to .*/, ''))
    .join(between)
}

/**
 * Chooses the labels of an axis of buckets: at round hours or at beginnings of days, so far apart that they fit.
 * @returns indexes in `buckets`, with their texts
 */
export function axisTicks(
  buckets: readonly string[],
  bucket: Bucket,
  zones: Zones,
  widthPx: number,
  labelPx = 68,
): { at: number; text: string }[] {
  const most = Math.max(2, Math.floor(widthPx / labelPx))
  const marks = bucket === 'hour' ? hourMarks(buckets, zones.viewer) : dayMarks(buckets, bucket, zones)
  for (const step of marks.steps) {
    const ticks = marks.all.filter(({ rank }) => rank % step === 0)
    if (ticks.length <= most) return ticks.map(({ at, text }) => ({ at, text }))
  }
  // No round step is long enough, so marks are taken at an even distance.
  const every = Math.ceil(marks.all.length / most)
  return marks.all.filter((_, at) => at % every === 0).map(({ at, text }) => ({ at, text }))
}

/** The greatest width of a letter in a label of an axis, in px. Labels have a font size of 11 px. */
const letterPx = 7

/** Leaves out labels that the right edge would cut. @param roomPx the space to the right of the plot */
export function whollySeen<Tick extends { at: number; text: string }>(
  ticks: readonly Tick[],
  buckets: number,
  widthPx: number,
  roomPx: number,
): Tick[] {
  const endOf = ({ at, text }: Tick) => ((at + 0.5) / buckets) * widthPx + (text.length * letterPx) / 2
  return ticks.filter((tick) => endOf(tick) <= widthPx + roomPx)
}

type Mark = { at: number; rank: number; text: string }

/** Makes the marks of hours, counted from midnight. @property rank hours since the first midnight */
function hourMarks(buckets: readonly string[], zone: string): { all: Mark[]; steps: number[] } {
  let midnights = 0
  let last = ''
  const all = buckets.map((start, at) => {
    const ms = Date.parse(start)
    const { hour, minute, weekday, day } = partsIn(zone, ms)
    const date = dayIn(zone, ms)
    if (date !== last && last !== '') midnights++
    last = date
    // Minutes are ignored: in zones with a half-hour offset, no bucket begins at midnight itself.
    return { at, rank: midnights * 24 + hour, text: hour === 0 ? `${weekday} ${day}` : `${two(hour)}:${two(minute)}` }
  })
  return { all, steps: [1, 2, 3, 6, 12, 24, 48, 72, 168] }
}

function dayMarks(buckets: readonly string[], bucket: Bucket, { reporting }: Zones): { all: Mark[]; steps: number[] } {
  const all = buckets.map((start, at) => {
    const day = dayOf(start, reporting)
    return { at, rank: at, text: bucket === 'month' ? tellMonth(day) : tellDay(day) }
  })
  return { all, steps: [1, 2, 7, 14, 28] }
}

/** Finds the index of the first bucket that is not complete; `buckets.length` if all are. */
export function firstOpen(buckets: readonly string[], completeUntil: string | null | undefined, zone: string): number {
  if (!completeUntil) return buckets.length
  const doneMs = Date.parse(completeUntil)
  const doneDay = dayIn(zone, doneMs)
  // A bucket ends when the next one begins. The end of the last one is not known, so it counts as open.
  const isOver = (start: string | undefined) =>
    start !== undefined && (isDay(start) ? start <= doneDay : Date.parse(start) <= doneMs)
  const open = buckets.findIndex((_, at) => !isOver(buckets[at + 1]))
  return open < 0 ? buckets.length : open
}

function dayOf(start: string, zone: string): string {
  return isDay(start) ? start : dayIn(zone, Date.parse(start))
}
