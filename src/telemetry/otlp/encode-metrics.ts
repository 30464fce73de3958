import type { Family, Sample } from '../instruments.ts'
import { type Attribute, attribute } from './attributes.ts'

/** OTLP's number for counters since the start of the process, not since the last export. */
const cumulative = 2

type MetricTimes = { startNanos: string; nowNanos: string }

/** Converts the label values of a series to attributes. */
export type AttributesOf = (family: Family, sample: Sample) => Attribute[]

/** Encodes a family as OTLP's JSON; undefined if it has no series. */
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

/** Removes `_total`, which a collector adds again when it writes for Prometheus. */
function nameOf(name: string): string {
  return name.endsWith('_total') ? name.slice(0, -'_total'.length) : name
}

/** Uses the labels as attributes, unchanged. */
export function plainAttributes({ facts }: Family, { values }: Sample): Attribute[] {
  return facts.labels.map((label, index) => attribute(label, values[index] ?? ''))
}
