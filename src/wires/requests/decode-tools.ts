import type { OutputFormat, Tool, ToolChoice, ToolName } from '../../inference/request.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalRawObject,
  optionalText,
  readBoolean,
  readEach,
  readObject,
  readRawObject,
  readString,
} from './read-value.ts'
import { refusals, refuse, wrongType } from './refusals.ts'

/*
 * Function tools, tool choice and output format. Chat and responses have the same members for them. Chat nests these
 * members under a key that repeats the type: `{"type":"function","function":{"name":…}}`. Responses has these members
 * beside `type`.
 */

export type Nesting = 'nested' | 'beside'

/**
 * Clients call the members of this namespace by their bare names. So its members are treated as tools without a
 * namespace (R-GROUP).
 */
export const plainNamespace = 'functions'

/** Returns the object that contains the members of a tool, choice or format, and that object's place in the body. */
function wordsOf(object: Json, kind: string, at: string, nesting: Nesting): [words: Json, at: string] {
  if (nesting === 'beside') return [object, at]
  const place = `${at}.${kind}`
  return [readObject(object[kind], place), place]
}

export function readTool(tool: Json, at: string, body: Body, nesting: Nesting): Tool {
  if (isOfAnotherWire(tool, nesting)) refuse(at, nesting === 'nested' ? refusals.chatTool : refusals.responsesTool)
  // Hosted tools are recognised by type, never by name, because a client's own function may be called web_search
  // (R-HOSTED). The error's `param` is always `tools`, since the client must change its tools (spec 7.3).
  if (!isAbsent(tool['type']) && tool['type'] !== 'function') refuse(at, refusals.hostedTool, 'tools')
  const [words, place] = wordsOf(tool, 'function', at, nesting)
  return {
    at,
    name: readString(words['name'], `${place}.name`),
    description: optionalText(body, words['description'], `${place}.description`),
    schema: optionalRawObject(body, words['parameters'], `${place}.parameters`),
    strict: optional(readBoolean, words['strict'], `${place}.strict`),
  }
}

/**
 * Whether a tool has the form of another wire, which is a common mistake. Only the name of such a tool could be read.
 */
function isOfAnotherWire(
  { type, name, parameters, function: nested, input_schema: schema }: Json,
  nesting: Nesting,
): boolean {
  if (!isAbsent(type) && type !== 'function') return !isAbsent(schema) && type === 'custom'
  if (!isAbsent(schema) && isAbsent(parameters) && isAbsent(nested)) return true
  return nesting === 'nested' ? isAbsent(nested) && !isAbsent(name) : !isAbsent(nested) && isAbsent(name)
}

const choiceWords = new Map<unknown, ToolChoice['mode']>([
  ['auto', 'auto'],
  ['none', 'none'],
  ['required', 'required'],
])

/** The values of `type` in a tool choice of the messages wire. */
const wordsOfMessages: ReadonlySet<unknown> = new Set(['auto', 'any', 'none', 'tool'])

export function readToolChoice(value: unknown, nesting: Nesting): ToolChoice {
  const field = 'tool_choice'
  if (isAbsent(value)) return { mode: 'default' }
  const word = choiceWords.get(value)
  if (word) return { mode: word }
  if (typeof value === 'string') throw wrongType(field, 'auto, none, required or an object')
  const choice = readObject(value, field)
  if (wordsOfMessages.has(choice['type'])) refuse(field, refusals.wordChoice)
  if (choice['type'] !== 'allowed_tools') return { mode: 'named', tool: readName(choice, field) }
  const [words, at] = wordsOf(choice, 'allowed_tools', field, nesting)
  const mode = choiceWords.get(words['mode'] ?? 'auto')
  if (mode !== 'auto' && mode !== 'required') throw wrongType(`${at}.mode`, 'auto or required')
  return { mode, only: readEach(words['tools'], `${at}.tools`, readName) }

  function readName(entry: unknown, place: string): ToolName {
    const named = readObject(entry, place)
    if (named['type'] !== 'function') refuse(place, refusals.hostedChoice)
    const [inner, innerAt] = wordsOf(named, 'function', place, nesting)
    const name = readString(inner['name'], `${innerAt}.name`)
    // Only responses has namespaces.
    const namespace = nesting === 'beside' && optional(readString, inner['namespace'], `${innerAt}.namespace`)
    return namespace && namespace !== plainNamespace ? { name, namespace } : { name }
  }
}

export function readFormat(value: unknown, at: string, body: Body, nesting: Nesting): OutputFormat {
  if (isAbsent(value)) return { kind: 'text' }
  const format = readObject(value, at)
  switch (format['type']) {
    case 'text':
      return { kind: 'text' }
    case 'json_object': {
      // llama.cpp, Fireworks and Together read a schema beside this word.
      const beside = nesting === 'nested' ? body.raw(format['schema']) : undefined
      return beside && /^\{\s*[^\s}]/.test(beside.source) ? { kind: 'schema', schema: beside } : { kind: 'json' }
    }
    case 'json_schema': {
      const [words, place] = wordsOf(format, 'json_schema', at, nesting)
      // A format nested in `json_schema` needs no `schema`. Without a schema, any JSON value fits.
      const isAnything = nesting === 'nested' && isAbsent(words['schema'])
      return {
        kind: 'schema',
        schema: isAnything ? { source: '{}' } : readRawObject(body, words['schema'], `${place}.schema`),
        name: optional(readString, words['name'], `${place}.name`),
        description: optionalText(body, words['description'], `${place}.description`),
        strict: optional(readBoolean, words['strict'], `${place}.strict`),
      }
    }
  }
  throw wrongType(`${at}.type`, 'one of text, json_object, json_schema')
}
