import { doubles } from './conventions.ts'

/** Values as OTLP's JSON has them: whole numbers are text, since they may have 64 bits. */
export type Value =
  | { stringValue: string }
  | { intValue: string }
  | { doubleValue: number }
  | { boolValue: boolean }
  | { arrayValue: { values: Value[] } }

export type Attribute = { key: string; value: Value }

/** A number is a whole one, unless its name is one of `doubles`. */
export function attribute(key: string, value: string | number | boolean | Value): Attribute {
  return { key, value: typeof value === 'object' ? value : encodeValue(key, value) }
}

export function arrayOf(texts: readonly string[]): Value {
  return { arrayValue: { values: texts.map((text) => ({ stringValue: text })) } }
}

function encodeValue(key: string, value: string | number | boolean): Value {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  return doubles.has(key) ? { doubleValue: value } : { intValue: String(value) }
}
