import type { Json } from './case.ts'

/** The schema `true` is read as one without keywords. */
type Schema = { [keyword: string]: unknown }

/**
 * Finds the first violation of a JSON schema, as text that begins with the place. It knows the keywords that case.schema.json
 * uses, and throws at any other.
 */
export function findViolation(value: Json, schema: Schema, root: Schema = schema, at = ''): string | undefined {
  for (const [keyword, rule] of Object.entries(schema)) {
    if (annotations.has(keyword)) continue
    const check = checks[keyword]
    if (!check) throw new Error(`the schema uses the keyword ${keyword}, which this reader does not know`)
    const found = check(value, rule as never, { schema, root, at })
    if (found) return found
  }
  return undefined
}

type Place = { schema: Schema; root: Schema; at: string }

const annotations = new Set(['$schema', '$id', '$defs', 'title', 'description'])

const checks: { [keyword: string]: (value: Json, rule: never, place: Place) => string | undefined } = {
  $ref(value, rule: string, { root, at }) {
    let target: unknown = root
    for (const name of rule.split('/').slice(1)) target = (target as { [name: string]: unknown })[name]
    return findViolation(value, target as Schema, root, at)
  },
  type(value, rule: string, { at }) {
    const is = rule === 'integer' ? Number.isInteger(value) : typeOf(value) === rule
    return is ? undefined : `${at || 'the file'} is no ${rule}`
  },
  enum: (value, rule: Json[], { at }) =>
    rule.includes(value) ? undefined : `${at} is ${JSON.stringify(value)}; it may be ${rule.join(', ')}`,
  pattern: (value, rule: string, { at }) =>
    typeof value !== 'string' || new RegExp(rule).test(value) ? undefined : `${at} does not match ${rule}`,
  minimum: (value, rule: number, { at }) =>
    typeof value !== 'number' || value >= rule ? undefined : `${at} is under ${rule}`,
  maximum: (value, rule: number, { at }) =>
    typeof value !== 'number' || value <= rule ? undefined : `${at} is over ${rule}`,
  minItems: (value, rule: number, { at }) =>
    !Array.isArray(value) || value.length >= rule ? undefined : `${at} has fewer than ${rule} entries`,
  minProperties: (value, rule: number, { at }) =>
    !isObject(value) || Object.keys(value).length >= rule ? undefined : `${at} has fewer than ${rule} members`,
  items(value, rule: Schema, { root, at }) {
    if (!Array.isArray(value)) return undefined
    return firstOf(value.entries(), ([index, entry]) => findViolation(entry, rule, root, `${at}[${index}]`))
  },
  required: (value, rule: string[], { at }) =>
    isObject(value) ? firstOf(rule, (name) => (name in value ? undefined : `${join(at, name)} is missing`)) : undefined,
  properties(value, rule: { [name: string]: Schema }, { root, at }) {
    if (!isObject(value)) return undefined
    return firstOf(Object.entries(value), ([name, member]) =>
      Object.hasOwn(rule, name) ? findViolation(member, rule[name]!, root, join(at, name)) : undefined,
    )
  },
  additionalProperties(value, rule: boolean, { schema, at }) {
    const known = (schema['properties'] ?? {}) as object
    if (rule || !isObject(value)) return undefined
    return firstOf(Object.keys(value), (name) =>
      Object.hasOwn(known, name)
        ? undefined
        : `${join(at, name)} is unknown; known are ${Object.keys(known).join(', ')}`,
    )
  },
  oneOf(value, rule: Schema[], { root, at }) {
    const found = rule.map((one) => findViolation(value, one, root, at))
    return found.every((one) => one) ? `${at} has none of the forms: ${found.join('; or ')}` : undefined
  },
}

function typeOf(value: Json): string {
  return value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value
}

function isObject(value: Json): value is { [name: string]: Json } {
  return typeOf(value) === 'object'
}

function join(at: string, name: string): string {
  return at ? `${at}.${name}` : name
}

function firstOf<T>(values: Iterable<T>, find: (value: T) => string | undefined): string | undefined {
  for (const value of values) {
    const found = find(value)
    if (found) return found
  }
  return undefined
}
