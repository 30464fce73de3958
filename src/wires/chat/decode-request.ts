import type { KeptKeys } from '../../bytes/scan.ts'
import type { InferenceRequest } from '../../inference/request.ts'
import type { ClientBody } from '../requests/client-body.ts'
import { readFormat, readTool, readToolChoice } from '../requests/decode-tools.ts'
import { applyFieldTable, createLosses } from '../requests/losses.ts'
import {
  Body,
  isAbsent,
  type Json,
  optional,
  optionalEach,
  readArray,
  readBoolean,
  readLevel,
  readObject,
  readPositiveInteger,
  readString,
} from '../requests/read-value.ts'
import { refuse, wrongType } from '../requests/refusals.ts'
import { readScalars } from '../requests/scalars.ts'
import { checkStop, readStops } from '../requests/stops.ts'
import type { DecodeContext } from '../wire.ts'
import { readTurns } from './decode-turns.ts'
import { chatFields } from './fields.ts'

/** The keys whose values are kept as source text: schemas, arguments of calls, and texts. */
export const keptKeys: KeptKeys = {
  containers: ['parameters', 'schema', 'arguments'],
  texts: ['text', 'content', 'reasoning_content', 'reasoning', 'description', 'arguments'],
}

/** Decodes a client's chat request to the form that all wires share (translation 2.4, 2.5). */
export function decodeRequest(asked: ClientBody, context: DecodeContext): InferenceRequest {
  const body = new Body(asked, keptKeys)
  const { fields } = body
  const losses = createLosses()
  applyFieldTable(fields, chatFields, losses)
  refuseMore(fields)
  const conversation = readTurns(body, losses)
  return {
    conversationField: 'messages',
    stream: fields['stream'] === true,
    preamble: conversation.preamble,
    tellsLevels: true,
    turns: conversation.turns,
    tools: optionalEach(fields['tools'], 'tools', (tool, at) => readTool(readObject(tool, at), at, body, 'nested')),
    toolChoice: {
      ...readToolChoice(fields['tool_choice'], 'nested'),
      parallel: optional(readBoolean, fields['parallel_tool_calls'], 'parallel_tool_calls'),
    },
    format: readFormat(fields['response_format'], 'response_format', body, 'nested'),
    outputTokensMax: readCap(fields),
    stops: readStop(fields['stop']),
    scalars: readScalars(fields, chatFields),
    reasoning: {
      level: optional(readLevel, fields['reasoning_effort'], 'reasoning_effort'),
      // This wire shows reasoning whenever the model sends it (R-THINK).
      isShown: true,
      isAsked: false,
      wantsSealed: false,
    },
    identity: {
      user: optional(readString, fields['user'], 'user'),
      safetyId: optional(readString, fields['safety_identifier'], 'safety_identifier'),
    },
    cacheKey: context.cacheKey,
    losses: losses.list,
  }
}

/** Refuses fields that change the answer and exist on no other wire (R-DROP, ruling T18). */
function refuseMore(fields: Json) {
  if ((optional(readPositiveInteger, fields['n'], 'n') ?? 1) > 1) {
    refuse('n', 'this model gives one answer per request: send 1.')
  }
  const modalities = optional(readArray, fields['modalities'], 'modalities') ?? []
  if (modalities.includes('audio')) refuse('modalities', 'this model has no audio output: remove audio.')
}

/** The output cap. If both fields are set, the smaller value counts (spec 2.5, ruling T17). */
function readCap(fields: Json): number | undefined {
  const caps = [fields['max_tokens'], fields['max_completion_tokens']].filter((cap) => !isAbsent(cap))
  return caps.length > 0 ? Math.min(...(caps as number[])) : undefined
}

function readStop(value: unknown): string[] {
  if (isAbsent(value)) return []
  if (typeof value === 'string') return [checkStop(value, 'stop')]
  if (!Array.isArray(value)) throw wrongType('stop', 'a string or an array')
  return readStops(value, 'stop')
}
