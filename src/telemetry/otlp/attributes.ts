import { doubles } from './conventions.ts'

/** Values as in OTLP's JSON: whole numbers are text, because they may have 64 bits. */
type AttributeValue =
  | { stringValue: string }
  | { intValue: string }
  | { doubleValue: number }
  | { boolValue: boolean }
  | { arrayValue: { values: AttributeValue[] } }

export type Attribute = { key: string; value: AttributeValue }

/** Makes an attribute. A number is written as a whole one unless its name is one of `doubles`. */
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
