import { addDays, dayIn, daysBetween, isDay } from './calendar.ts'
import type { Query } from './place.ts'

/** Periods by which figures are requested. For shorter periods, the gateway does not count requests without a bill. */
export type Bucket = 'hour' | 'day' | 'week' | 'month'

/** The span and buckets of a query of figures. @property endsNow whether new requests fall into the span */
export type Range = { name: string; label: string; from: string; to: string; bucket: Bucket; endsNow: boolean }

type Named = { label: string; short: string; bucket: Bucket; hours?: number; days?: number }

export const ranges = {
  '24h': { label: 'Last 24 hours', short: '24 h', bucket: 'hour', hours: 24 },
  '7d': { label: 'Last 7 days', short: '7 d', bucket: 'hour', hours: 168 },
  '30d': { label: 'Last 30 days', short: '30 d', bucket: 'day', days: 30 },
  '90d': { label: 'Last 90 days', short: '90 d', bucket: 'day', days: 90 },
  '13m': { label: 'Last 13 months', short: '13 m', bucket: 'week', days: 396 },
} as const satisfies Record<string, Named>

export type RangeName = keyof typeof ranges

const hourMs = 3_600_000

/** Reads the range from an address. @param zone the zone in which days begin */
export function readRange(query: Query, nowMs: number, zone: string, usual: RangeName = '7d'): Range {
  const { from, to } = query
  if (from && to && isDay(from) && isDay(to) && from < to) return ownDays(from, to, nowMs, zone)
  if (from && to && Date.parse(from) < Date.parse(to)) return ownTimes(Date.parse(from), Date.parse(to), nowMs)
  const name = query['range'] && Object.hasOwn(ranges, query['range']) ? (query['range'] as RangeName) : usual
  const named: Named = ranges[name]
  const { label, bucket } = named
  if (named.hours !== undefined) {
    const endMs = Math.ceil((nowMs + 1) / hourMs) * hourMs
    const fromMs = endMs - named.hours * hourMs
    return { name, label, from: iso(fromMs), to: iso(endMs), bucket, endsNow: true }
  }
  const end = addDays(dayIn(zone, nowMs), 1)
  return { name, label, from: addDays(end, -named.days!), to: end, bucket, endsNow: true }
}

function ownDays(from: string, to: string, nowMs: number, zone: string): Range {
  const endsNow = to > dayIn(zone, nowMs)
  const label = addDays(from, 1) === to ? from : `${from} to ${addDays(to, -1)}`
  return { name: 'own', label, from, to, bucket: bucketFor(daysBetween(from, to)), endsNow }
}

function ownTimes(fromMs: number, toMs: number, nowMs: number): Range {
  const bucket = bucketFor((toMs - fromMs) / 86_400_000)
  return { name: 'own', label: 'A time', from: iso(fromMs), to: iso(toMs), bucket, endsNow: toMs > nowMs }
}

function bucketFor(days: number): Bucket {
  return days <= 16 ? 'hour' : days <= 200 ? 'day' : 'week'
}

/** Returns the period of the same length before a range. */
export function periodBefore({ from, to }: Pick<Range, 'from' | 'to'>): { from: string; to: string } {
  if (isDay(from)) return { from: addDays(from, -daysBetween(from, to)), to: from }
  const fromMs = Date.parse(from)
  return { from: iso(fromMs - (Date.parse(to) - fromMs)), to: from }
}

/** Returns the span of a bucket as a range. The last bucket ends with the whole range, at `to`. */
export function spanOfBucket(buckets: readonly string[], at: number, to: string): { from: string; to: string } {
  return { from: buckets[at]!, to: buckets[at + 1] ?? to }
}

/** Returns the first and the last day of a range, for the fields in which it is edited. The last day is included. */
export function daysOf({ from, to }: Pick<Range, 'from' | 'to'>, zone: string): { first: string; last: string } {
  const first = isDay(from) ? from : dayIn(zone, Date.parse(from))
  const last = isDay(to) ? addDays(to, -1) : dayIn(zone, Date.parse(to) - 1)
  return { first, last }
}

function iso(ms: number): string {
  return new Date(ms).toISOString().replace('.000Z', 'Z')
}
