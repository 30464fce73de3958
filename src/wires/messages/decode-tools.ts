import type { Tool, ToolChoice } from '../../inference/request.ts'
import type { Losses } from '../requests/losses.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalEach,
  optionalRawObject,
  readBoolean,
  readObject,
  readString,
} from '../requests/read-value.ts'
import { refusals, refuse, wrongType } from '../requests/refusals.ts'

/** The functions that are declared; deferred ones behind the others, those without a schema not at all (ruling T14). */
export function readTools(body: Body, losses: Losses): Tool[] {
  const tools: Tool[] = []
  // They turn up in the middle of the list; behind the others they leave the prefix alone.
  const deferred: Tool[] = []
  optionalEach(body.fields['tools'], 'tools', (entry, at) => {
    const words = readObject(entry, at)
    // By type, never by name: a client's own function may be called web_search (R-HOSTED).
    if (!isAbsent(words['type']) && words['type'] !== 'custom') refuse(at, refusals.hostedTool)
    const isDeferred = optional(readBoolean, words['defer_loading'], `${at}.defer_loading`) === true
    const schema = optionalRawObject(body, words['input_schema'], `${at}.input_schema`)
    if (!isDeferred) tools.push(readTool(words, schema, at))
    else if (schema) deferred.push(readTool(words, schema, at))
    else losses.add('tools.defer_loading', 'dropped', 'a placeholder without a schema')
  })
  return [...tools, ...deferred]
}

function readTool(words: Json, schema: Tool['schema'], at: string): Tool {
  return {
    at,
    name: readString(words['name'], `${at}.name`),
    description: optional(readString, words['description'], `${at}.description`),
    schema,
    strict: optional(readBoolean, words['strict'], `${at}.strict`),
  }
}

const choiceModes = new Map<unknown, ToolChoice['mode']>([
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
  ['tool', 'named'],
])

export function readToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value)) return { mode: 'default' }
  const choice = readObject(value, 'tool_choice')
  const mode = choiceModes.get(choice['type'])
  if (!mode) throw wrongType('tool_choice.type', 'one of auto, any, none, tool')
  const serial = 'disable_parallel_tool_use'
  return {
    mode,
    name: mode === 'named' ? readString(choice['name'], 'tool_choice.name') : undefined,
    parallel: optional(readBoolean, choice[serial], `tool_choice.${serial}`) ? false : undefined,
  }
}
