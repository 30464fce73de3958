import { asObject } from '../bytes/json.ts'
import { list } from './check.ts'

type SampleSchema = Record<string, unknown>

/** From this depth on, the simplest variant is chosen. From half this depth on, only required properties are set. */
const depthMax = 6

/**
 * Returns a small valid value of a JSON schema. It is a constant, an enum value or a default if the schema has one, or
 * else a minimal value. The same schema always gives the same value. For patterns, the forms in `patternCandidates` are
 * tried.
 */
export function sampleSchema(schema: unknown, name = 'value'): unknown {
  return sample(asObject(schema) ?? {}, { root: asObject(schema) ?? {}, name, depth: 0 })
}

type SamplePlace = { root: SampleSchema; name: string; depth: number }

function sample(schema: SampleSchema, place: SamplePlace): unknown {
  const ref = schema['$ref']
  if (typeof ref === 'string') return sample(resolve(ref, place.root), { ...place, depth: place.depth + 1 })
  if ('const' in schema) return schema['const']
  if (Array.isArray(schema['enum']) && schema['enum'].length > 0) return schema['enum'][0]
  if ('default' in schema) return schema['default']
  const all = list(schema['allOf'])
  if (all.length > 0) return sample(merge(schema, all, place.root), place)
  const variants = [...list(schema['anyOf']), ...list(schema['oneOf'])]
  if (variants.length > 0) return sample(pick(schema, variants, place), { ...place, depth: place.depth + 1 })
  switch (typeOf(schema)) {
    case 'object':
      return sampleObject(schema, place)
    case 'array':
      return sampleArray(schema, place)
    case 'integer':
      return sampleNumber(schema, 1)
    case 'number':
      return sampleNumber(schema, 0)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return sampleString(schema, place.name)
  }
}

/**
 * Picks a variant of `anyOf` or `oneOf`, and merges it with the other keywords of the schema. From `depthMax` on, a
 * simple variant is preferred.
 */
function pick(schema: SampleSchema, variants: SampleSchema[], place: SamplePlace): SampleSchema {
  const { anyOf: _anyOf, oneOf: _oneOf, ...rest } = schema
  const simple = variants.find((variant) => !('$ref' in variant) && !['object', 'array'].includes(typeOf(variant)))
  const chosen = place.depth >= depthMax ? (simple ?? variants[0]!) : variants[0]!
  return Object.keys(rest).length === 0 ? chosen : merge(rest, [chosen], place.root)
}

function merge(schema: SampleSchema, parts: SampleSchema[], root: SampleSchema): SampleSchema {
  const { allOf: _allOf, ...merged } = schema
  for (const part of parts) {
    const { $ref, ...own } = part
    const whole = typeof $ref === 'string' ? { ...resolve($ref, root), ...own } : own
    const properties = { ...asObject(merged['properties']), ...asObject(whole['properties']) }
    const required = [...strings(merged['required']), ...strings(whole['required'])]
    Object.assign(merged, whole)
    if (Object.keys(properties).length > 0) merged['properties'] = properties
    if (required.length > 0) merged['required'] = required
  }
  return merged
}

function sampleObject(schema: SampleSchema, place: SamplePlace): unknown {
  const properties = asObject(schema['properties']) ?? {}
  const required = strings(schema['required'])
  // If no property is required, all properties are filled in, because an empty object would show nothing.
  const names = required.length > 0 || place.depth >= depthMax / 2 ? required : Object.keys(properties)
  const value: SampleSchema = {}
  for (const name of names) {
    value[name] = sample(asObject(properties[name]) ?? {}, { root: place.root, name, depth: place.depth + 1 })
  }
  return value
}

function sampleArray(schema: SampleSchema, place: SamplePlace): unknown[] {
  const first = list(schema['prefixItems'])
  const least = number(schema['minItems']) ?? (place.depth >= depthMax ? 0 : 1)
  const most = number(schema['maxItems']) ?? Number.POSITIVE_INFINITY
  const size = Math.min(Math.max(least, first.length), most)
  const items = asObject(schema['items']) ?? {}
  const isUnique = schema['uniqueItems'] === true
  return Array.from({ length: size }, (_, index) => {
    const item = first[index] ?? items
    const choices = Array.isArray(item['enum']) ? item['enum'] : []
    if (isUnique && choices.length > index) return choices[index]
    const value = sample(item, { ...place, depth: place.depth + 1 })
    if (!isUnique || index === 0) return value
    if (typeof value === 'number') return value + index
    return typeof value === 'string' ? `${value} ${index + 1}` : value
  })
}

function sampleNumber(schema: SampleSchema, fallback: number): number {
  const step = number(schema['multipleOf']) ?? (typeOf(schema) === 'integer' ? 1 : 0)
  const above = number(schema['exclusiveMinimum'])
  const below = number(schema['exclusiveMaximum'])
  const least = Math.max(number(schema['minimum']) ?? Number.NEGATIVE_INFINITY, above ?? Number.NEGATIVE_INFINITY)
  const most = Math.min(number(schema['maximum']) ?? Number.POSITIVE_INFINITY, below ?? Number.POSITIVE_INFINITY)
  let value = Math.min(Math.max(fallback, least), most)
  if (step > 0) {
    value = Math.ceil(value / step) * step
    if (value > most) value = Math.floor(most / step) * step
  }
  if (value === above)
    value = step > 0 ? value + step : most < Number.POSITIVE_INFINITY ? (value + most) / 2 : value + 1
  if (value === below)
    value = step > 0 ? value - step : least > Number.NEGATIVE_INFINITY ? (value + least) / 2 : value - 1
  return value
}

const formats: Record<string, string> = {
  date: '2026-01-31',
  'date-time': '2026-01-31T12:00:00Z',
  time: '12:00:00Z',
  duration: 'PT1H',
  email: 'sample@example.com',
  uri: 'https://example.com/',
  url: 'https://example.com/',
  hostname: 'example.com',
  ipv4: '192.0.2.1',
  ipv6: '2001:db8::1',
  uuid: '00000000-0000-4000-8000-000000000000',
}

// biome-ignore format: a list of words
const patternCandidates = [
  'sample', 'Sample', 'SAMPLE', 'a', 'A', '1', '12', '123', '1234', '12345', '123456', '12345678', 'a1', 'A1', 'AB',
  'ABC', 'en', 'en-US', 'a-b', 'a_b', 'a.b', 'A-1', 'AB-123', 'ABC-123', '1.0', '1.0.0', '#112233', '/', '/sample',
  './sample', 'sample.txt', 'a@b.co', '+12025550100', ...Object.values(formats),
]

function sampleString(schema: SampleSchema, name: string): string {
  const least = number(schema['minLength']) ?? 0
  const most = number(schema['maxLength']) ?? Number.POSITIVE_INFINITY
  const format = formats[String(schema['format'])]
  const text = format ?? `sample ${name}`
  if (typeof schema['pattern'] === 'string') {
    const found = [text, ...patternCandidates].find(
      (word) => word.length >= least && word.length <= most && matches(word, schema['pattern'] as string),
    )
    if (found !== undefined) return found
  }
  return text.padEnd(least, ' sample').slice(0, most)
}

function matches(text: string, pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u').test(text)
  } catch {
    return false
  }
}

function typeOf(schema: SampleSchema): string {
  const type = schema['type']
  if (typeof type === 'string') return type
  if (Array.isArray(type)) return String(type.find((one) => one !== 'null') ?? 'null')
  if ('properties' in schema || 'required' in schema) return 'object'
  if ('items' in schema || 'prefixItems' in schema) return 'array'
  return 'minimum' in schema || 'maximum' in schema ? 'number' : 'string'
}

/** Returns the target of a reference within the document. An unknown reference gives an empty schema. */
function resolve(ref: string, root: SampleSchema): SampleSchema {
  if (!ref.startsWith('#')) return {}
  let at: unknown = root
  for (const step of ref.split('/').slice(1)) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~')
    at = Array.isArray(at) ? at[Number(key)] : asObject(at)?.[key]
  }
  return asObject(at) ?? {}
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined
}
