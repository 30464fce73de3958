import type { KeptKeys } from '../../bytes/scan.ts'
import type { InferenceRequest, OperatorTurn, ReasoningWish } from '../../inference/request.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { readFormat, readToolChoice } from '../requests/decode-tools.ts'
import { applyFieldTable, createLosses, type Losses } from '../requests/losses.ts'
import {
  Body,
  isAbsent,
  type Json,
  optional,
  optionalText,
  readArray,
  readBoolean,
  readLevel,
  readObject,
  readString,
} from '../requests/read-value.ts'
import { wrongType } from '../requests/refusals.ts'
import { readScalars } from '../requests/scalars.ts'
import type { DecodeContext } from '../wire.ts'
import { readTools } from './decode-tools.ts'
import { readTurns } from './decode-turns.ts'
import { echoOf } from './echo.ts'
import { responsesFields } from './fields.ts'

/** The JSON keys whose values are kept as source text: schemas, arguments of calls, and texts. */
export const keptKeys: KeptKeys = {
  containers: ['parameters', 'schema', 'arguments'],
  texts: ['text', 'content', 'instructions', 'input', 'output', 'description', 'arguments'],
}

/** Decodes a client's responses request to the form that all wires share (translation 2.6, 2.7). */
export function decodeRequest(asked: ClientBody, context: DecodeContext): InferenceRequest {
  const body = new Body(asked, keptKeys)
  const { fields } = body
  const losses = createLosses()
  applyFieldTable(fields, responsesFields, losses)
  const echo = body.write(echoOf(fields)).slice(1, -1)
  const conversation = readTurns(body, context, losses)
  const text = optional(readObject, fields['text'], 'text') ?? {}
  return {
    conversationField: 'input',
    stream: fields['stream'] === true,
    preamble: [...readInstructions(body), ...conversation.preamble],
    tellsLevels: true,
    turns: conversation.turns,
    tools: [...(isAbsent(fields['tools']) ? [] : readTools(fields['tools'], 'tools', body)), ...conversation.tools],
    toolChoice: {
      ...readToolChoice(fields['tool_choice'], 'beside'),
      parallel: optional(readBoolean, fields['parallel_tool_calls'], 'parallel_tool_calls'),
    },
    format: readFormat(text['format'], 'text.format', body, 'beside'),
    outputTokensMax: (fields['max_output_tokens'] as number | null) ?? undefined,
    stops: [],
    scalars: readScalars(fields, responsesFields),
    reasoning: readReasoning(fields, losses),
    identity: {
      user: optional(readString, fields['user'], 'user'),
      safetyId: optional(readString, fields['safety_identifier'], 'safety_identifier'),
    },
    cacheKey: context.cacheKey,
    echo,
    losses: losses.list,
  }
}

function readInstructions(body: Body): OperatorTurn[] {
  const text = optionalText(body, body.fields['instructions'], 'instructions')
  return text ? [{ by: 'operator', level: 'system', texts: [{ text }] }] : []
}

const summaryWords: readonly unknown[] = ['auto', 'concise', 'detailed']

/** The members of `reasoning` that no other wire has, with the value that asks for nothing. */
const ownReasoning = { mode: 'standard', context: 'auto' }

function readReasoning(fields: Json, losses: Losses): ReasoningWish {
  const reasoning = optional(readObject, fields['reasoning'], 'reasoning') ?? {}
  for (const [name, usual] of Object.entries(ownReasoning))
    if (!isAbsent(reasoning[name]) && reasoning[name] !== usual)
      losses.add(`reasoning.${name}`, 'dropped', 'no other wire has it')
  const summary = reasoning['summary'] ?? reasoning['generate_summary']
  if (!isAbsent(summary) && !summaryWords.includes(summary)) {
    throw wrongType('reasoning.summary', 'one of auto, concise, detailed')
  }
  const isShown = !isAbsent(summary)
  const include = optional(readArray, fields['include'], 'include') ?? []
  return {
    level: optional(readLevel, reasoning['effort'], 'reasoning.effort'),
    isShown,
    isAsked: isShown,
    wantsSealed: isShown && include.includes('reasoning.encrypted_content'),
  }
}
