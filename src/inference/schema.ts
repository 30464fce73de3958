import { asObject, parseExactly, type RawJson } from '../bytes/json.ts'
import { JsonSource } from '../bytes/json-source.ts'

/*
 * JSON Schemas are carried as text and only inspected (ruling T16). The inspection is iterative, because the client
 * decides how deep a schema is.
 */

export type Schema = Record<string, unknown>

const branchKeys = ['anyOf', 'oneOf', 'allOf'] as const

/**
 * A schema without any of these keywords need not be parsed. Their common end, `Of"`, is searched for first. That is
 * fast, because capitals are rare.
 */
const branchWord = /"(?:anyOf|oneOf|allOf)"/
const branchEnd = 'Of"'

/**
 * The JSON Schema keywords that strict output knows, and the string formats that it knows
 * (https://platform.openai.com/docs/guides/structured-outputs).
 */
const strictKeys = new Set([
  ...['$schema', 'title', 'description', 'type', 'enum', 'const', 'anyOf', '$ref', '$defs', 'definitions'],
  ...['properties', 'required', 'additionalProperties', 'items', 'minItems', 'maxItems', 'pattern', 'format'],
  ...['multipleOf', 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'],
])
const strictFormats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'ipv4', 'ipv6', 'uuid'])

/**
 * Whether a schema may be sent as strict (R-JSON). All its objects must be closed and require all their properties. It
 * may have only keywords that strict output knows. With other keywords, the upstream would refuse the request, although
 * it accepts the request without `strict`.
 */
export function isFullyStrict(raw: RawJson): boolean {
  const root = asObject(JSON.parse(raw.source))
  if (root?.['type'] !== 'object' || root['anyOf'] !== undefined) return false
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const schema = asObject(waiting.pop())
    if (!schema || !isStrictHere(schema, root)) return false
    for (const inner of innerSchemas(schema)) waiting.push(inner)
  }
  return true
}

/** Yields the schemas directly inside a schema. Only the keywords that strict output allows are searched. */
export function* innerSchemas({ items, anyOf, properties, $defs, definitions }: Schema): Iterable<unknown> {
  if (Array.isArray(anyOf)) yield* anyOf
  if (items !== undefined) yield items
  for (const map of [properties, $defs, definitions]) yield* Object.values(asObject(map) ?? {})
}

const besideChoice = new Set(['anyOf', 'title', 'description', '$defs', 'definitions'])
const strictTypes = new Set<unknown>(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'])

function isStrictHere(schema: Schema, root: Schema): boolean {
  const { type, anyOf, $ref, pattern, items } = schema
  const keys = Object.keys(schema)
  if (keys.some((key) => !strictKeys.has(key))) return false
  if ($ref !== undefined) return keys.length === 1 && typeof $ref === 'string' && isDefined($ref, root)
  if (anyOf !== undefined) return Array.isArray(anyOf) && anyOf.length > 0 && keys.every((key) => besideChoice.has(key))
  const types = [type].flat()
  if (types.length === 0 || !types.every((one) => strictTypes.has(one))) return false
  // Special groups in a pattern begin with `(?`. Strict output does not support all of them.
  if (typeof pattern === 'string' && pattern.includes('(?')) return false
  if (types.includes('array') && items === undefined) return false
  return isAcceptedHere(schema)
}

/** Keywords that OpenAI refuses in a strict schema, with errors such as "'allOf' is not permitted". */
const refusedKeys = [
  ...['allOf', 'oneOf', 'not', 'if', 'dependentRequired', 'dependentSchemas', 'patternProperties', 'propertyNames'],
  ...['unevaluatedProperties', 'minProperties', 'maxProperties', 'unevaluatedItems', 'contains', 'uniqueItems'],
]
/** OpenAI accepts a strict schema only if it has one of these keywords. */
const limitingKeys = ['type', 'anyOf', '$ref']

/**
 * Whether OpenAI accepts a schema as strict. It accepts more keywords than `isFullyStrict`, for example `default`. Its
 * errors are:
 * - "'additionalProperties' is required to be supplied and to be false"
 * - "'uri' is not a valid format" (cyanheads/git-mcp-server#47)
 * - "$ref cannot have keywords {'description'}" (camel-ai/camel#3001)
 * - "schema must have a 'type' key" (can1357/oh-my-pi#211; with `enum` too: openclaw/clawpatch#60)
 */
export function isAcceptedStrict(raw: RawJson): boolean {
  const root: unknown = JSON.parse(raw.source)
  const waiting = [root]
  while (waiting.length > 0) {
    const schema = asObject(waiting.pop())
    if (schema === undefined) return false
    const has = (key: string) => schema[key] !== undefined
    if (refusedKeys.some(has) || !limitingKeys.some(has) || !isAcceptedHere(schema)) return false
    if (has('$ref') && Object.keys(schema).length > 1 && schema !== root) return false
    for (const inner of innerSchemas(schema)) waiting.push(inner)
  }
  return true
}

/** Whether a schema has a known format, and an object is closed and requires all its properties. */
function isAcceptedHere({ type, format, properties, required, additionalProperties }: Schema): boolean {
  if (format !== undefined && !strictFormats.has(format as string)) return false
  if (properties === undefined && ![type].flat().includes('object')) return true
  const names = Object.keys(asObject(properties) ?? {})
  const wanted = new Set(Array.isArray(required) ? required : [])
  return additionalProperties === false && wanted.size === names.length && names.every((name) => wanted.has(name))
}

function isDefined(reference: string, root: Schema): boolean {
  return (
    reference === '#' || (/^#\/(?:\$defs|definitions)\//.test(reference) && targetOf(reference, root) !== undefined)
  )
}

const beginsWithType = /^\{\s*"type"\s*:/

/** A tool's schema with `"type": "object"` at its root. All text of the client stays as it is (R-JSON, R-SCHEMA). */
export function withObjectType(raw: RawJson): RawJson {
  if (beginsWithType.test(raw instanceof JsonSource ? raw.head(64) : raw.source)) return raw
  const schema = asObject(JSON.parse(raw.source)) ?? {}
  if (Object.hasOwn(schema, 'type')) return raw
  const rest = raw.source.slice(1).trimStart()
  return { source: `{"type":"object"${rest.startsWith('}') ? '' : ','}${rest}` }
}

/**
 * Rewrites a schema with branches at its root (`anyOf`, `oneOf`, `allOf`) as one plain object. The object has all
 * properties of all branches. It requires only the properties that every branch requires. So it is looser than the
 * client's schema and never tighter (R-SCHEMA, ruling T9).
 * @returns undefined if the root has no branches
 */
export function withoutRootBranches(raw: RawJson): RawJson | undefined {
  if (!raw.source.includes(branchEnd) || !branchWord.test(raw.source)) return undefined
  const schema = asObject(parseExactly(raw.source)) ?? {}
  if (!branchKeys.some((key) => Object.hasOwn(schema, key))) return undefined
  const targets = new Map<string, Schema | undefined>()
  const branchesOf = (key: (typeof branchKeys)[number]) => (Array.isArray(schema[key]) ? schema[key] : [])
  // Several branches may refer to the same schema, which counts once.
  const branches = new Set(branchKeys.flatMap(branchesOf).map((branch) => resolved(branch, schema, targets)))
  const own = new Map<string, unknown>(Object.entries(asObject(schema['properties']) ?? {}))
  const inBranches = new Map<string, Map<string, unknown>>()
  let common: Set<unknown> | undefined
  // Branches may refer to one another, so the result has a size limit. Beyond it, properties become `{}` (anything).
  let room = 2 * raw.source.length
  for (const { properties, required } of branches) {
    for (const [name, value] of Object.entries(asObject(properties) ?? {})) {
      const ways = inBranches.get(name) ?? new Map<string, unknown>()
      const text = room < 0 ? '' : JSON.stringify(value)
      room -= text.length
      inBranches.set(name, room < 0 ? ways.set('{}', {}) : ways.set(text, value))
    }
    const names = new Set<unknown>(Array.isArray(required) ? required : [])
    common = common ? common.intersection(names) : names
  }
  const required = new Set<unknown>([
    ...(Array.isArray(schema['required']) ? schema['required'] : []),
    ...(common ?? []),
  ])
  const properties = new Map(own)
  for (const [name, ways] of inBranches)
    if (!own.has(name))
      properties.set(name, ways.size === 1 ? ways.values().next().value : { anyOf: [...ways.values()] })
  const { anyOf: _, oneOf: __, allOf: ___, ...rest } = schema
  // These keywords apply to all properties that the schema does not list. They are removed if the list becomes longer,
  // because that changes their meaning.
  if (properties.size > own.size) for (const key of ['additionalProperties', 'unevaluatedProperties']) delete rest[key]
  // `Object.fromEntries` calls no setter. So a property with the name `__proto__` is kept.
  const merged = { ...rest, type: 'object', properties: Object.fromEntries(properties), required: [...required] }
  return { source: JSON.stringify(merged) }
}

const beginsWithProperties = /^\{\s*"type"\s*:\s*"object"\s*,\s*"properties"\s*:\s*\{/
/** The keywords that OpenAI refuses at the root. */
const refusedAtRoot = ['not', 'enum', 'const']
/**
 * Matches a member that is null, or a keyword of `refusedAtRoot`. Encoders write such members at or near the end of the
 * root, so only that is searched. `:\s*null` and a quote before a group cost twice as much.
 */
const refusedMember = /(?::null|: null|"not"|"enum"|"const")/g
const endLength = 64

/** The keywords that may have the value null. A member of another name that is null says nothing. */
const nullableKeys = new Set(['default', 'const', 'example', 'examples'])
const nullableKey = new RegExp(`"(?:${[...nullableKeys].join('|')})"$`)

/**
 * Whether the end of a schema may have a member that OpenAI refuses. Many tools end with a property that has an `enum`
 * or the default null, and to parse each of them would take long. So a null counts only if its keyword is not one of
 * `nullableKeys`, and another keyword only if nothing but the root closes after it.
 */
function mayEndRefused(source: string): boolean {
  const end = source.slice(-endLength)
  for (const { 0: found, index } of end.matchAll(refusedMember)) {
    if (found.endsWith('null')) {
      if (!nullableKey.test(end.slice(0, index))) return true
      continue
    }
    let depth = 0
    for (let at = index; at < end.length; at++) depth += end[at] === '{' ? 1 : end[at] === '}' ? -1 : 0
    if (depth === -1) return true
  }
  return false
}

/** Matches escapes and groups of ECMAScript that are errors in Python's `re`, if no backslash is escaped. */
const foreignToPython = /\\(?:[ceg-mo-qyzCE-RT-VXY]|u(?![\da-fA-F]{4})|x(?![\da-fA-F]{2}))|\(\?<(?![=!])/
/** Matches character classes that are errors in Python: `[^]`, and a `-` between a class and a character, as in `[\w-.]`. */
const foreignClass = /(?<!\\)\[(?:\^\]|(?:[^\][\\]|\\.)*?\\[dDsSwW]-(?!\]))/

function isForeign(pattern: unknown): boolean {
  if (typeof pattern !== 'string') return false
  const text = pattern.replaceAll('\\\\', '_')
  return foreignToPython.test(text) || foreignClass.test(text)
}

/**
 * Returns a tool's schema in the form that OpenAI accepts. A schema that has this form already is returned as the same
 * object.
 * - The root has `properties`, and all lists have `items`. Added members allow anything. The errors are "object schema
 *   missing properties" and "array schema missing items".
 * - Patterns that Python's `re` cannot compile are removed. The error is "… is not a 'regex'" (BerriAI/litellm#40485).
 * - If such a schema has keywords that are null, they are removed. The error is "None is not of type 'array'".
 * - `not`, `enum` and `const` are removed from the root of such a schema. The error is "schema must have type 'object' and
 *   not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level" (goruck/home-generative-agent#545).
 * @param onLoosened called with what was removed, if the schema then allows more
 */
export function spellOut(raw: RawJson, onLoosened: (removed: string) => void): RawJson {
  const { source } = raw
  // The JSON of a pattern that Python refuses has one of these texts. Some writers escape the `<` of `(?<`.
  const mayBeForeign = source.includes('\\\\') || source.includes('(?') || source.includes('[^]')
  const isPlain = !mayBeForeign && beginsWithProperties.test(source) && !source.includes('"array"')
  if (isPlain && !mayEndRefused(source)) return raw
  const root = asObject(parseExactly(source)) ?? {}
  let isChanged = removeNulls(root)
  for (const key of refusedAtRoot) {
    if (root[key] === undefined) continue
    delete root[key]
    isChanged = true
    onLoosened('a keyword at the root of a schema')
  }
  if (root['properties'] === undefined && root['$ref'] === undefined) {
    root['properties'] = {}
    isChanged = true
  }
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const schema = asObject(waiting.pop())
    if (schema === undefined) continue
    if (removeNulls(schema)) isChanged = true
    if ([schema['type']].flat().includes('array') && schema['items'] === undefined) {
      schema['items'] = {}
      isChanged = true
    }
    if (removeForeign(schema)) {
      isChanged = true
      onLoosened('a pattern')
    }
    for (const inner of innerSchemas(schema)) waiting.push(inner)
    for (const key of ['oneOf', 'allOf', 'prefixItems'])
      if (Array.isArray(schema[key])) for (const inner of schema[key]) waiting.push(inner)
    for (const inner of Object.values(asObject(schema['patternProperties']) ?? {})) waiting.push(inner)
    waiting.push(schema['additionalProperties'], schema['propertyNames'], schema['not'])
  }
  return isChanged ? { source: JSON.stringify(root) } : raw
}

/** Removes the keywords that are null from one schema. @returns whether there were any */
function removeNulls(schema: Schema): boolean {
  let isRemoved = false
  for (const key in schema) {
    if (schema[key] !== null || nullableKeys.has(key)) continue
    delete schema[key]
    isRemoved = true
  }
  return isRemoved
}

/** Removes the patterns that Python cannot compile from one schema. @returns whether there were any */
function removeForeign(schema: Schema): boolean {
  const isRemoved = isForeign(schema['pattern'])
  if (isRemoved) delete schema['pattern']
  const byPattern = asObject(schema['patternProperties']) ?? {}
  const foreign = Object.keys(byPattern).filter(isForeign)
  for (const key of foreign) delete byPattern[key]
  // These keywords would forbid the properties that matched a removed pattern.
  if (foreign.length > 0) for (const key of ['additionalProperties', 'unevaluatedProperties']) delete schema[key]
  return isRemoved || foreign.length > 0
}

/** The longest chain of references that is followed. In schemas of generators, a chain has only one reference. */
const hopsMax = 8

/**
 * Returns a branch of a schema, or the schema to which the branch refers. A reference that leads nowhere becomes `{}`,
 * which allows anything.
 * @param targets the results of earlier lookups, by reference
 */
function resolved(branch: unknown, root: Schema, targets: Map<string, Schema | undefined>): Schema {
  let found = asObject(branch) ?? {}
  for (let hops = 0; hops < hopsMax && typeof found['$ref'] === 'string'; hops++) {
    const reference = found['$ref']
    if (!targets.has(reference)) targets.set(reference, targetOf(reference, root))
    found = targets.get(reference) ?? {}
  }
  return found
}

/**
 * Finds the schema at a reference, which is `#` with a JSON pointer (RFC 6901). @returns undefined if no object is
 * there
 */
export function targetOf(reference: string, root: Schema): Schema | undefined {
  if (!reference.startsWith('#/')) return undefined
  let at: unknown = root
  for (const part of reference.slice(2).split('/')) {
    const key = readStep(part)
    const object = asObject(at)
    at = object && Object.hasOwn(object, key) ? object[key] : undefined
  }
  return asObject(at)
}

/** Decodes one step of a JSON pointer to a member's name. */
export function readStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~')
}
