import { beginsWith } from '../../bytes/json-source.ts'
import type { KeptKeys } from '../../bytes/scan.ts'
import { levelOfBudget } from '../../inference/reasoning.ts'
import type { InferenceRequest, OperatorTurn, OutputFormat, ReasoningWish } from '../../inference/request.ts'
import { isFullyStrict } from '../../inference/schema.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { applyFieldTable, createLosses, type Losses } from '../requests/losses.ts'
import {
  Body,
  isAbsent,
  type Json,
  optional,
  readLevel,
  readObject,
  readPositiveInteger,
  readRawObject,
  readString,
} from '../requests/read-value.ts'
import { refuse, wrongType } from '../requests/refusals.ts'
import { readScalars } from '../requests/scalars.ts'
import { readStops } from '../requests/stops.ts'
import type { DecodeContext } from '../wire.ts'
import { readToolChoice, readTools } from './decode-tools.ts'
import { readSystemText, readTurns } from './decode-turns.ts'
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
 * Refuses fields that refer to stored data. A field without such a reference is only bookkeeping and passes (ruling
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

/** The reasoning to request from the model, and the reasoning that the client may see (R-THINK, ruling T10). */
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
