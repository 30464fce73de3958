import type { Family, Sample } from '../instruments.ts'
import { type Attribute, attribute } from './attributes.ts'

/** Since the process began, not since the last time. */
const cumulative = 2

export type MetricTimes = { startNanos: string; nowNanos: string }

/** What becomes of the values of a family's labels. */
export type AttributesOf = (family: Family, sample: Sample) => Attribute[]

/** A family as OTLP's JSON has it; undefined where it has no series. */
export function encodeFamily(family: Family, times: MetricTimes, attributesOf: AttributesOf): object | undefined {
  const { name, type, help, unit, bounds } = family.facts
  const points = Array.from(family.samples(), (sample) => {
    const { startNanos: startTimeUnixNano, nowNanos: timeUnixNano } = times
    const point = { attributes: attributesOf(family, sample), startTimeUnixNano, timeUnixNano }
    if (sample.counts === undefined) return { ...point, asDouble: sample.value }
    const { counts, sum, value } = sample
    return { ...point, count: String(value), sum, bucketCounts: counts.map(String), explicitBounds: bounds }
  })
  if (points.length === 0) return undefined
  const metric = { name: nameOf(name), description: help, ...(unit !== undefined && { unit }) }
  if (type === 'gauge') return { ...metric, gauge: { dataPoints: points } }
  if (type === 'histogram') return { ...metric, histogram: { dataPoints: points, aggregationTemporality: cumulative } }
  return { ...metric, sum: { dataPoints: points, aggregationTemporality: cumulative, isMonotonic: true } }
}

/** A collector that writes them for Prometheus puts the end back. */
function nameOf(name: string): string {
  return name.endsWith('_total') ? name.slice(0, -'_total'.length) : name
}

/** The labels as they are. */
export function plainAttributes({ facts }: Family, { values }: Sample): Attribute[] {
  return facts.labels.map((label, index) => attribute(label, values[index] ?? ''))
}
