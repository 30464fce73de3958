import type { RawJson } from '../bytes/json.ts'

/*
 * JSON Schemas are carried as text and only looked into (ruling T16). Looking is iterative: how deep a schema
 * goes is the client's choice.
 */

type Schema = Record<string, unknown>

const schemaKeys = ['items', 'additionalItems', 'contains', 'not', 'if', 'then', 'else', 'propertyNames'] as const
const listKeys = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
const mapKeys = ['properties', '$defs', 'definitions', 'patternProperties', 'dependentSchemas'] as const

/** Whether every object in it is closed and requires all its properties, as strict output wants (R-JSON). */
export function isFullyStrict(raw: RawJson): boolean {
  const waiting: unknown[] = [JSON.parse(raw.source)]
  while (waiting.length > 0) {
    const schema = objectOf(waiting.pop())
    if (!schema) continue
    if (!isStrictHere(schema)) return false
    for (const key of schemaKeys) waiting.push(schema[key])
    for (const key of listKeys) if (Array.isArray(schema[key])) for (const inner of schema[key]) waiting.push(inner)
    for (const key of mapKeys) for (const inner of Object.values(objectOf(schema[key]) ?? {})) waiting.push(inner)
  }
  return true
}

function isStrictHere(schema: Schema): boolean {
  const properties = objectOf(schema['properties'])
  const isObject = schema['type'] === 'object' || (Array.isArray(schema['type']) && schema['type'].includes('object'))
  if (!properties && !isObject) return true
  if (schema['additionalProperties'] !== false) return false
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : [])
  return Object.keys(properties ?? {}).every((name) => required.has(name))
}

/** A tool's schema with `"type": "object"` at its root; what the client wrote stays as it is (R-JSON, R-SCHEMA). */
export function withObjectType(raw: RawJson): RawJson {
  if (/^\{\s*"type"\s*:/.test(raw.source)) return raw
  const schema = objectOf(JSON.parse(raw.source)) ?? {}
  if (Object.hasOwn(schema, 'type')) return raw
  const rest = raw.source.slice(1).trimStart()
  return { source: `{"type":"object"${rest.startsWith('}') ? '' : ','}${rest}` }
}

/**
 * A schema whose root is a choice or a sum, as one plain object: all properties of all branches, required only where
 * every branch requires it. Looser than what the client wrote (R-SCHEMA). Undefined where the root is plain already.
 */
export function withoutRootBranches(raw: RawJson): RawJson | undefined {
  const schema = objectOf(JSON.parse(raw.source)) ?? {}
  const branches = ['anyOf', 'oneOf', 'allOf'].flatMap((key) => (Array.isArray(schema[key]) ? schema[key] : []))
  if (!['anyOf', 'oneOf', 'allOf'].some((key) => Object.hasOwn(schema, key))) return undefined
  const properties = new Map<string, unknown>(Object.entries(objectOf(schema['properties']) ?? {}))
  let common: Set<unknown> | undefined
  for (const branch of branches) {
    const { properties: own, required } = objectOf(branch) ?? {}
    for (const [name, value] of Object.entries(objectOf(own) ?? {}))
      if (!properties.has(name)) properties.set(name, value)
    const names = new Set<unknown>(Array.isArray(required) ? required : [])
    common = common ? common.intersection(names) : names
  }
  const required = new Set<unknown>([
    ...(Array.isArray(schema['required']) ? schema['required'] : []),
    ...(common ?? []),
  ])
  const { anyOf: _, oneOf: __, allOf: ___, ...rest } = schema
  // fromEntries defines its members: a property called __proto__ stays a property.
  const merged = { ...rest, type: 'object', properties: Object.fromEntries(properties), required: [...required] }
  return { source: JSON.stringify(merged) }
}

function objectOf(value: unknown): Schema | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : undefined
}
