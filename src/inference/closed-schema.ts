import { asObject, parseExactly, type RawJson } from '../bytes/json.ts'
import { innerSchemas, readStep, type Schema, targetOf } from './schema.ts'

/*
 * The subset of JSON Schema that upstreams with `shape: closed` enforce (R-JSON). In this subset all objects are
 * closed. Constraints on numbers, lengths and lists do not exist. Sources:
 * https://platform.claude.com/docs/en/build-with-claude/structured-outputs, and the schema conversion in the vendor's
 * SDK (@anthropic-ai/sdk 1.12). The walk is iterative, as in `schema.ts`.
 */

/** Keywords that are kept whatever their value is. `isKept` keeps others; the rest move into the description. */
const kept = new Set(['type', 'enum', 'const', '$defs', 'definitions', 'properties', 'required', 'items'])
const besideRef = new Set(['$ref', '$defs', 'definitions'])
/** Keywords that constrain nothing. */
const idle = new Set(['$schema', '$id', '$comment'])
const formats = new Set(['date-time', 'time', 'date', 'duration', 'email', 'hostname', 'uri', 'ipv4', 'ipv6', 'uuid'])
const defKeys = ['$defs', 'definitions'] as const
const choiceKeys = ['anyOf', 'oneOf', 'allOf'] as const

/**
 * Converts a schema to the closed subset. The result forbids all that the given schema forbids, apart from rules that
 * move into descriptions. A schema that is in the subset already is returned as the same object.
 * @returns undefined if the subset cannot express the schema. The subset has no maps, no schemas that allow any value,
 * and no recursive schemas
 */
export function closeSchema(raw: RawJson): RawJson | undefined {
  const root = asObject(parseExactly(raw.source))
  if (root === undefined || refersToItself(root)) return undefined
  let isChanged = false
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const schema = asObject(waiting.pop())
    if (schema === undefined || !canClose(schema, root)) return undefined
    if (closeHere(schema)) isChanged = true
    for (const inner of innerSchemas(schema)) waiting.push(inner)
  }
  return isChanged ? { source: JSON.stringify(root) } : raw
}

/** Whether the subset can express this schema. `closeSchema` checks the inner schemas. */
function canClose(schema: Schema, root: Schema): boolean {
  const { properties, additionalProperties, patternProperties, items, $ref } = schema
  if ($ref !== undefined) return typeof $ref === 'string' && isDefinition($ref, root)
  const choices = choiceKeys.filter((key) => schema[key] !== undefined)
  if (choices.length > 0)
    return choices.length === 1 && properties === undefined && isChoice(schema[choices[0]!], choices[0]!)
  const literals = [schema['const'], ...[schema['enum']].flat()]
  if (literals.some((value) => typeof value === 'object' && value !== null)) return false
  if (schema['enum'] !== undefined || schema['const'] !== undefined) return true
  const types = [schema['type']].flat()
  if (types.length === 0 || types.some((type) => typeof type !== 'string')) return false
  if (Array.isArray(items)) return false
  if (!types.includes('object')) return properties === undefined
  const isClosed = additionalProperties === false
  const isOpen = additionalProperties !== undefined && !isClosed
  return !isOpen && patternProperties === undefined && (isClosed || Object.keys(asObject(properties) ?? {}).length > 0)
}

/**
 * Whether the branches can become an `anyOf`. Several branches of `allOf` cannot: all must match, but each closed
 * branch would forbid the properties of the others.
 */
function isChoice(branches: unknown, key: (typeof choiceKeys)[number]): boolean {
  return Array.isArray(branches) && branches.length > 0 && (key !== 'allOf' || branches.length === 1)
}

/** Converts one schema, but not the schemas inside it. @returns whether the schema had to be changed */
function closeHere(schema: Schema): boolean {
  if (schema['$ref'] !== undefined) return standAlone(schema, schema['$ref'])
  const choice = choiceKeys.find((key) => schema[key] !== undefined)
  const mustClose = choice === undefined && isObjectType(schema) && schema['additionalProperties'] !== false
  if (mustClose) schema['additionalProperties'] = false
  const branches = choice && schema[choice]
  const out = Object.entries(schema).filter(([key, value]) => !isKept(key, value, choice !== undefined))
  for (const [key] of out) delete schema[key]
  if (branches !== undefined) schema['anyOf'] = branches
  // The type beside the branches is left out of the description, because each branch has its own type.
  say(
    schema,
    out.filter(([key]) => key !== choice && !(choice && key === 'type')),
  )
  return mustClose || out.length > 0
}

/** Moves a `$ref` into an `anyOf` with one branch if keywords stand beside it, because `$ref` must have no siblings. */
function standAlone(schema: Schema, $ref: unknown): boolean {
  const beside = Object.entries(schema).filter(([key]) => !besideRef.has(key))
  for (const [key] of beside) delete schema[key]
  const names = beside.filter(([key, value]) => isName(key, value))
  Object.assign(schema, Object.fromEntries(names))
  const rest = beside.filter(([key, value]) => !isName(key, value))
  if (say(schema, rest) || names.length > 0) {
    delete schema['$ref']
    schema['anyOf'] = [{ $ref }]
  }
  return beside.length > 0
}

/**
 * Adds keywords to the schema's description as JSON, because the closed form lacks them.
 * @returns whether a keyword was added
 */
function say(schema: Schema, words: readonly (readonly [string, unknown])[]): boolean {
  const said = words.filter(([key]) => !idle.has(key))
  if (said.length === 0) return false
  const { description } = schema
  const json = JSON.stringify(Object.fromEntries(said))
  schema['description'] = description === undefined ? json : `${description}\n${json}`
  return true
}

function isKept(key: string, value: unknown, isChoice: boolean): boolean {
  if (key === 'description' || key === 'title') return isName(key, value)
  if (isChoice) return key === 'anyOf' || key === '$defs' || key === 'definitions'
  if (key === 'additionalProperties') return value === false
  if (key === 'format') return formats.has(value as string)
  if (key === 'minItems') return value === 0 || value === 1
  return kept.has(key)
}

function isName(key: string, value: unknown): boolean {
  return (key === 'description' || key === 'title') && typeof value === 'string'
}

function isObjectType({ type }: Schema): boolean {
  return [type].flat().includes('object')
}

function isDefinition(reference: string, root: Schema): boolean {
  return /^#\/(?:\$defs|definitions)\/[^/]+$/.test(reference) && targetOf(reference, root) !== undefined
}

/** Whether a definition contains itself. Each reference is visited once, so the time stays linear. */
function refersToItself(root: Schema): boolean {
  /**
   * `left` has the definitions that may be recursive, each with the number of its references to such definitions.
   * `usersOf` has, for each definition, the definitions that refer to it. A definition without references in `left` is
   * not recursive and is removed from `left`.
   */
  const left = new Map<string, number>()
  const usersOf = new Map<string, string[]>()
  const definitions = defKeys.flatMap((key) =>
    Object.entries(asObject(root[key]) ?? {}).map(([name, schema]) => [`${key}/${name}`, schema] as const),
  )
  for (const [name] of definitions) usersOf.set(name, [])
  for (const [name, schema] of definitions) {
    // Only references to definitions count here. `canClose` judges all other references.
    const refs = [...findRefs(schema)].filter((ref) => usersOf.has(ref))
    left.set(name, refs.length)
    for (const ref of refs) usersOf.get(ref)!.push(name)
  }
  const ending = [...left].filter(([, count]) => count === 0).map(([name]) => name)
  for (let name = ending.pop(); name !== undefined; name = ending.pop()) {
    left.delete(name)
    for (const user of usersOf.get(name)!) {
      const count = left.get(user)! - 1
      left.set(user, count)
      if (count === 0) ending.push(user)
    }
  }
  return left.size > 0
}

function findRefs(schema: unknown): Set<string> {
  const refs = new Set<string>()
  const waiting = [schema]
  while (waiting.length > 0) {
    const at = waiting.pop()
    if (typeof at !== 'object' || at === null) continue
    for (const [key, value] of Object.entries(at)) {
      if (key === '$ref' && typeof value === 'string') refs.add(readStep(value.slice(2)))
      waiting.push(value)
    }
  }
  return refs
}
