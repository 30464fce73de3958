import type { Tool, ToolChoice } from '../../inference/request.ts'
import type { Losses } from '../requests/losses.ts'
import {
  type Body,
  isAbsent,
  type Json,
  optional,
  optionalEach,
  optionalRawObject,
  optionalText,
  readBoolean,
  readObject,
  readString,
} from '../requests/read-value.ts'
import { refusals, refuse, wrongType } from '../requests/refusals.ts'
import { findClientTool } from './client-tools.ts'
import type { ToolChange } from './decode-turns.ts'

/**
 * The name of a tool that an agent declares so that its list of tools is not empty. The model may never call it
 * (ruling T20).
 */
const placeholderName = 'DeferredToolPlaceholder'

/**
 * Reads the declared functions (ruling T14). Deferred tools come after the others, and placeholders are left out. A
 * tool that the conversation defines is declared with the deferred tools, and replaces a removed tool of the same name.
 * Removed tools are left out (ruling T20).
 */
export function readTools(body: Body, changes: readonly ToolChange[], losses: Losses): Tool[] {
  const tools: Tool[] = []
  // Deferred tools may appear in the middle of the list. Placed last, they do not change the cached prefix.
  const deferred: Tool[] = []
  // For each name that was removed and defined again: the place in `deferred` from which the new definition counts.
  const sinceOf = new Map<string, number>()
  optionalEach(body.fields['tools'], 'tools', (entry, at) => readEntry(entry, at, false))
  const removed = new Set<string>()
  for (const change of changes) {
    if (change.kind === 'defined') define(change)
    else if (change.kind === 'removed') removed.add(change.name)
    else removed.delete(change.name)
  }
  if (deferred.length === 0 && removed.size === 0) return tools
  return [
    ...tools.filter(({ name }) => !sinceOf.has(name)),
    ...deferred.filter(({ name }, place) => place >= (sinceOf.get(name) ?? 0)),
  ].filter(({ name }) => !removed.has(name))

  function define({ tool, at }: { tool: unknown; at: string }): void {
    const place = deferred.length
    const name = readEntry(tool, at, true)
    if (removed.delete(name)) sinceOf.set(name, place)
  }

  /** @returns the tool's name */
  function readEntry(entry: unknown, at: string, isLate: boolean): string {
    const words = readObject(entry, at)
    // Known tools are recognised by type, never by name: a client's own function may be called web_search (R-HOSTED).
    const known = findClientTool(words['type'])
    if (!known && isOfAnotherWire(words)) refuse(at, refusals.messagesTool)
    if (!known && !isAbsent(words['type']) && words['type'] !== 'custom') refuse(at, refusals.hostedTool)
    const isDeferred = isLate || optional(readBoolean, words['defer_loading'], `${at}.defer_loading`) === true
    const schema = known?.schema ?? optionalRawObject(body, words['input_schema'], `${at}.input_schema`)
    if (!isAbsent(words['input_examples'])) losses.add('tools.input_examples', 'dropped', 'no other wire has it')
    const read = readTool(body, words, schema, at)
    const tool = known ? { ...read, name: known.name, description: known.description } : read
    if (!isDeferred) tools.push(tool)
    else if (schema && tool.name !== placeholderName) deferred.push(tool)
    else losses.add('tools.defer_loading', 'dropped', 'a placeholder')
    return tool.name
  }
}

function isOfAnotherWire({ type, parameters, function: nested, input_schema: schema }: Json): boolean {
  if (!isAbsent(type)) return type === 'function'
  return isAbsent(schema) && (!isAbsent(parameters) || !isAbsent(nested))
}

function readTool(body: Body, words: Json, schema: Tool['schema'], at: string): Tool {
  return {
    at,
    name: readString(words['name'], `${at}.name`),
    description: optionalText(body, words['description'], `${at}.description`),
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
  if (typeof value === 'string') refuse('tool_choice', refusals.messagesChoice)
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
