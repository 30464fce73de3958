import type { Family, Sample } from '../instruments.ts'
import { doubles } from './conventions.ts'

/** Attribute values in OTLP's JSON. Whole numbers are written as text, because they may have 64 bits. */
type AttributeValue =
  | { stringValue: string }
  | { intValue: string }
  | { doubleValue: number }
  | { boolValue: boolean }
  | { arrayValue: { values: AttributeValue[] } }

export type Attribute = { key: string; value: AttributeValue }

/** Makes an attribute. A number is written as an integer unless its name is listed in `doubles`. */
export function attribute(key: string, value: string | number | boolean | AttributeValue): Attribute {
  return { key, value: typeof value === 'object' ? value : encodeValue(key, value) }
}

export function arrayOf(texts: readonly string[]): AttributeValue {
  return { arrayValue: { values: texts.map((text) => ({ stringValue: text })) } }
}

function encodeValue(key: string, value: string | number | boolean): AttributeValue {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return doubles.has(key) ? { doubleValue: value } : { intValue: String(value) }
}

/** OTLP's number for counters that count from the start of the process, not from the last export. */
const cumulative = 2

type MetricTimes = { startNanos: string; nowNanos: string }

/** Converts the label values of a series to attributes. */
export type AttributesOf = (family: Family, sample: Sample) => Attribute[]

/** Encodes a family as OTLP's JSON. A family without series is left out. */
export function encodeFamily(family: Family, times: MetricTimes, attributesOf: AttributesOf): object[] {
  const { name, type, help, unit, bounds } = family.facts
  const points = Array.from(family.samples(), (sample) => {
    const { startNanos: startTimeUnixNano, nowNanos: timeUnixNano } = times
    const point = { attributes: attributesOf(family, sample), startTimeUnixNano, timeUnixNano }
    if (sample.counts === undefined) return { ...point, asDouble: sample.value }
    const { counts, sum, value } = sample
    return { ...point, count: String(value), sum, bucketCounts: counts.map(String), explicitBounds: bounds }
  })
  if (points.length === 0) return []
  const metric = { name: nameOf(name), description: help, ...(unit !== undefined && { unit }) }
  if (type === 'gauge') return [{ ...metric, gauge: { dataPoints: points } }]
  if (type === 'histogram')
    return [{ ...metric, histogram: { dataPoints: points, aggregationTemporality: cumulative } }]
  return [{ ...metric, sum: { dataPoints: points, aggregationTemporality: cumulative, isMonotonic: true } }]
}

/** Removes the suffix `_total`. A collector adds it again when it writes for Prometheus. */
function nameOf(name: string): string {
  return name.endsWith('_total') ? name.slice(0, -'_total'.length) : name
}

/** Converts labels to attributes of the same names and values. */
export function plainAttributes({ facts }: Family, { values }: Sample): Attribute[] {
  return facts.labels.map((label, index) => attribute(label, values[index] ?? ''))
}
