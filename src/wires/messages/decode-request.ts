import { beginsWith } from '../../bytes/json-source.ts'
import type { KeptKeys } from '../../bytes/scan.ts'
import { levelOfBudget } from '../../inference/reasoning.ts'
import type {
  InferenceRequest,
  OperatorTurn,
  OutputFormat,
  ReasoningWish,
  Tool,
  ToolChoice,
} from '../../inference/request.ts'
import { isFullyStrict } from '../../inference/schema.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { applyFieldTable, createLosses, type Losses } from '../requests/losses.ts'
import {
  Body,
  isAbsent,
  type Json,
  optional,
  optionalEach,
  optionalRawObject,
  optionalText,
  readBoolean,
  readLevel,
  readObject,
  readPositiveInteger,
  readRawObject,
  readString,
} from '../requests/read-value.ts'
import { refusals, refuse, wrongType } from '../requests/refusals.ts'
import { readScalars } from '../requests/scalars.ts'
import { readStops } from '../requests/stops.ts'
import type { DecodeContext } from '../wire.ts'
import { findClientTool } from './client-tools.ts'
import { readSystemText, readTurns, type ToolChange } from './decode-turns.ts'
import { messagesFields } from './fields.ts'

/** The keys of schemas, arguments of calls, and texts. Their values are kept as source text. */
export const keptKeys: KeptKeys = {
  containers: ['input', 'input_schema', 'schema'],
  texts: ['text', 'content', 'thinking', 'description', 'system'],
}

/** Decodes a client's messages request to the form that all wires share (translation 2.2, 2.3). */
export function decodeRequest(asked: ClientBody, context: DecodeContext): InferenceRequest {
  const body = new Body(asked, keptKeys)
  const { fields } = body
  const losses = createLosses()
  applyFieldTable(fields, messagesFields, losses)
  refuseStored(fields)
  // Cache marks are members of blocks and tools, so the whole body is searched for their name.
  if (asked.holdsString('cache_control')) losses.add('cache_control', 'dropped', 'no other wire has it')
  const conversation = readTurns(body, losses)
  const outputConfig = optional(readObject, fields['output_config'], 'output_config') ?? {}
  const effort = optional(readLevel, outputConfig['effort'], 'output_config.effort')
  if (!isAbsent(outputConfig['task_budget'])) losses.add('output_config.task_budget', 'dropped', 'no other wire has it')
  return {
    conversationField: 'messages',
    stream: fields['stream'] === true,
    preamble: [...readSystem(body, losses), ...conversation.preamble],
    tellsLevels: false,
    turns: conversation.turns,
    tools: readTools(body, conversation.toolChanges, losses),
    toolChoice: readToolChoice(fields['tool_choice']),
    format: isAbsent(outputConfig['format'])
      ? readFormat(body, fields['output_format'], 'output_format')
      : readFormat(body, outputConfig['format'], 'output_config.format'),
    outputTokensMax: fields['max_tokens'] as number,
    stops: optional(readStops, fields['stop_sequences'], 'stop_sequences') ?? [],
    scalars: readScalars(fields, messagesFields),
    reasoning: readReasoning(fields['thinking'], conversation.effort ?? effort),
    identity: { either: readUser(fields) },
    cacheKey: context.cacheKey,
    losses: losses.list,
  }
}

/**
 * Refuses a `container` that names stored data by its id. A container without an id names nothing, and passes (ruling
 * T18).
 */
function refuseStored(fields: Json) {
  const { container } = fields
  const namesContainer =
    typeof container === 'string' || !isAbsent(optional(readObject, container, 'container')?.['id'])
  if (namesContainer) refuse('container', 'nothing is stored here: remove the field.')
}

/**
 * A bookkeeping line of an agent at the beginning of the system prompt. It differs in every conversation, so upstream
 * caches could never share a prefix (R-SYS 7, ruling T14).
 */
const bookkeepingLine = /^x-[a-z0-9-]{1,40}-billing-header:[^\n]*\n?/

function readSystem(body: Body, losses: Losses): OperatorTurn[] {
  const { system } = body.fields
  if (isAbsent(system)) return []
  const texts = readSystemText(body, system, 'system').map(({ text }) => {
    if (!beginsWith(text, 'x-')) return { text }
    const said = text.toString()
    const kept = said.replace(bookkeepingLine, '')
    if (kept !== said) losses.add('system', 'dropped', 'a bookkeeping line of the client')
    return { text: kept }
  })
  return [{ by: 'operator', level: 'system', texts }]
}

function readFormat(body: Body, value: unknown, at: string): OutputFormat {
  if (isAbsent(value)) return { kind: 'text' }
  const format = readObject(value, at)
  if (format['type'] !== 'json_schema') throw wrongType(`${at}.type`, 'json_schema')
  const schema = readRawObject(body, format['schema'], `${at}.schema`)
  // This wire has no `strict`. A schema that satisfies strict output may be sent as strict (R-JSON).
  return isFullyStrict(schema) ? { kind: 'schema', schema, strict: true } : { kind: 'schema', schema }
}

/** Reads which reasoning to request from the model, and which the client may see (R-THINK, ruling T10). */
function readReasoning(value: unknown, effort: ReasoningWish['level']): ReasoningWish {
  const wish = { isShown: false, isAsked: false, wantsSealed: false }
  if (isAbsent(value)) return { ...wish, level: effort }
  const thinking = readObject(value, 'thinking')
  const isShown = thinking['display'] !== 'omitted'
  switch (thinking['type']) {
    case 'disabled':
      return { ...wish, level: 'none' }
    case 'between_tools':
      return { ...wish, level: 'low' }
    case 'adaptive':
      return { ...wish, level: effort ?? 'high', isShown, isAsked: isShown }
    case 'enabled': {
      const budget = readPositiveInteger(thinking['budget_tokens'], 'thinking.budget_tokens')
      return { ...wish, level: effort ?? levelOfBudget(budget), isShown, isAsked: isShown }
    }
  }
  throw wrongType('thinking.type', 'one of enabled, adaptive, disabled, between_tools')
}

function readUser(fields: Json): string | undefined {
  const metadata = optional(readObject, fields['metadata'], 'metadata')
  return optional(readString, fields['user'], 'user') ?? optional(readString, metadata?.['user_id'], 'metadata.user_id')
}

/**
 * The name of a tool that an agent declares so that its list of tools is not empty. The model may never call it
 * (ruling T20).
 */
const placeholderName = 'DeferredToolPlaceholder'

/**
 * Reads the declared functions (ruling T14). Deferred tools come last. Placeholders and removed tools are left out
 * (ruling T20). A tool that the conversation defines counts as deferred. It replaces a removed tool of the same name.
 */
function readTools(body: Body, changes: readonly ToolChange[], losses: Losses): Tool[] {
  const tools: Tool[] = []
  // Deferred tools may appear in the middle of the list. Placed last, they do not change the cached prefix.
  const deferred: Tool[] = []
  // The names of tools that were removed and then defined again. Each has the index of its new definition in
  // `deferred`. Definitions before that index do not count.
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

  /** Reads a declared tool. @returns the tool's name */
  function readEntry(entry: unknown, at: string, isLate: boolean): string {
    const words = readObject(entry, at)
    // Known tools are recognised by type, never by name, because a client's own function may be called web_search
    // (R-HOSTED).
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

function readToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value)) return { mode: 'default' }
  if (typeof value === 'string') refuse('tool_choice', refusals.messagesChoice)
  const choice = readObject(value, 'tool_choice')
  const mode = choiceModes.get(choice['type'])
  if (!mode) throw wrongType('tool_choice.type', 'one of auto, any, none, tool')
  const serial = 'disable_parallel_tool_use'
  return {
    mode,
    tool: mode === 'named' ? { name: readString(choice['name'], 'tool_choice.name') } : undefined,
    parallel: optional(readBoolean, choice[serial], `tool_choice.${serial}`) ? false : undefined,
  }
}
