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
import {
  applyFieldTable,
  type Body,
  createLosses,
  isAbsent,
  type Json,
  type Losses,
  optional,
  optionalRawObject,
  readArray,
  readBody,
  readBoolean,
  readLevel,
  readNumber,
  readObject,
  readPositiveInteger,
  readRawObject,
  readString,
  refusals,
  refuse,
} from '../reading.ts'
import type { DecodeContext } from '../wire.ts'
import { cacheMark, readTextBlocks, readTurns } from './decode-turns.ts'
import { messagesFields } from './fields.ts'

/** A client's messages request as the hub says it (translation 2.2, 2.3). */
export function decodeRequest(bodyText: string, context: DecodeContext): InferenceRequest {
  const body = readBody(bodyText, ['input', 'input_schema', 'schema'])
  const { fields } = body
  const losses = createLosses()
  applyFieldTable(fields, messagesFields, losses)
  refuseStored(fields)
  // Marks stand on blocks and tools; one look at the text finds them all.
  if (bodyText.includes('"cache_control"')) losses.add('cache_control', 'dropped', 'no other wire has it')
  const modelId = readString(fields['model'], 'model')
  const outputTokensMax = readPositiveInteger(fields['max_tokens'], 'max_tokens')
  const conversation = readTurns(body, losses)
  const outputConfig = optional(readObject, fields['output_config'], 'output_config') ?? {}
  if (!isAbsent(outputConfig['task_budget'])) losses.add('output_config.task_budget', 'dropped', 'no other wire has it')
  return {
    origin: 'messages',
    modelId,
    stream: optional(readBoolean, fields['stream'], 'stream') ?? false,
    preamble: [...readSystem(fields['system'], losses), ...conversation.preamble],
    turns: conversation.turns,
    tools: readTools(body, losses),
    toolChoice: readToolChoice(fields['tool_choice']),
    format: readFormat(body, outputConfig['format'] ?? fields['output_format']),
    outputTokensMax,
    stops: (optional(readArray, fields['stop_sequences'], 'stop_sequences') ?? []).map((stop) =>
      readString(stop, 'stop_sequences', 'each entry'),
    ),
    sampling: {
      temperature: optional(readNumber, fields['temperature'], 'temperature'),
      topP: optional(readNumber, fields['top_p'], 'top_p'),
      topK: optional(readNumber, fields['top_k'], 'top_k'),
    },
    reasoning: readReasoning(
      fields['thinking'],
      optional(readLevel, outputConfig['effort'], 'output_config', '"effort"'),
    ),
    identity: { user: readUser(fields) },
    cacheKey: context.cacheKey,
    losses: losses.list,
  }
}

/** Fields that are bookkeeping unless they lean on something stored (ruling T18). */
function refuseStored(fields: Json) {
  const { container, thread } = fields
  const namesContainer =
    typeof container === 'string' || !isAbsent(optional(readObject, container, 'container')?.['id'])
  if (namesContainer) refuse('container', 'Nothing is stored here: remove "container".')
  if (optional(readObject, thread, 'thread')?.['type'] === 'continue') {
    refuse(
      'thread',
      'Nothing is stored here: send the whole conversation (in the tool runner of the SDK: thread: false).',
    )
  }
}

/**
 * An agent's bookkeeping line at the head of the system prompt changes with every conversation and would keep upstream
 * caches from ever sharing a prefix (R-SYS 7, ruling T14).
 */
const bookkeepingLine = /^x-[a-z0-9-]{1,40}-billing-header:[^\n]*\n?/

function readSystem(system: unknown, losses: Losses): OperatorTurn[] {
  if (isAbsent(system)) return []
  const texts = readTextBlocks(system, 'system').map((text) => {
    const kept = text.text.replace(bookkeepingLine, '')
    if (kept !== text.text) losses.add('system', 'dropped', 'a bookkeeping line of the client')
    return { ...text, text: kept }
  })
  return [{ by: 'operator', level: 'system', texts }]
}

function readTools(body: Body, losses: Losses): Tool[] {
  const tools: Tool[] = []
  const deferred: Tool[] = []
  for (const entry of optional(readArray, body.fields['tools'], 'tools') ?? []) {
    const tool = readObject(entry, 'tools', 'each entry')
    // By type, never by name: a client's own function may be called web_search (R-HOSTED).
    if (!isAbsent(tool['type']) && tool['type'] !== 'custom') refuse('tools', refusals.hostedTool)
    const isDeferred = optional(readBoolean, tool['defer_loading'], 'tools', '"defer_loading"') === true
    const schema = optionalRawObject(body, tool['input_schema'], 'tools', '"input_schema"')
    if (isDeferred && !schema) {
      losses.add('tools.defer_loading', 'dropped', 'a placeholder without a schema')
      continue
    }
    const read: Tool = {
      name: readString(tool['name'], 'tools', '"name"'),
      description: optional(readString, tool['description'], 'tools', '"description"'),
      schema,
      strict: optional(readBoolean, tool['strict'], 'tools', '"strict"'),
      cacheMark: cacheMark(tool),
    }
    // Deferred tools turn up in the middle of the list; behind the others they leave the prefix alone (ruling T14).
    if (isDeferred) deferred.push(read)
    else tools.push(read)
  }
  return [...tools, ...deferred]
}

const choiceModes = new Map<unknown, ToolChoice['mode']>([
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
  ['tool', 'named'],
])

function readToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value)) return { mode: 'default' }
  const choice = readObject(value, 'tool_choice')
  const mode = choiceModes.get(choice['type'])
  if (!mode) refuse('tool_choice', '"tool_choice": "type" must be one of auto, any, none, tool.')
  const isSerial = optional(
    readBoolean,
    choice['disable_parallel_tool_use'],
    'tool_choice',
    '"disable_parallel_tool_use"',
  )
  return {
    mode,
    name: mode === 'named' ? readString(choice['name'], 'tool_choice', '"name"') : undefined,
    parallel: isSerial ? false : undefined,
  }
}

function readFormat(body: Body, value: unknown): OutputFormat {
  if (isAbsent(value)) return { kind: 'text' }
  const format = readObject(value, 'output_config', '"format"')
  if (format['type'] !== 'json_schema') refuse('output_config', '"output_config": the format must be json_schema.')
  const schema = readRawObject(body, format['schema'], 'output_config', '"schema"')
  // The wire has no `strict`; a schema that is strict already may be sent as such (R-JSON).
  return isFullyStrict(schema) ? { kind: 'schema', schema, strict: true } : { kind: 'schema', schema }
}

/** R-THINK and ruling T10: what is asked of the model, and what the client may see. */
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
      return { ...wish, level: effort ?? 'high', isShown }
    case 'enabled': {
      const budget = readPositiveInteger(thinking['budget_tokens'], 'thinking', '"budget_tokens"')
      return { ...wish, level: effort ?? levelOfBudget(budget), isShown }
    }
  }
  refuse('thinking', '"thinking": "type" must be one of enabled, adaptive, disabled, between_tools.')
}

function readUser(fields: Json): string | undefined {
  const metadata = optional(readObject, fields['metadata'], 'metadata')
  return (
    optional(readString, fields['user'], 'user') ?? optional(readString, metadata?.['user_id'], 'metadata', '"user_id"')
  )
}
