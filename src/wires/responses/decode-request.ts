import { GatewayError } from '../../errors.ts'
import type {
  InferenceRequest,
  OperatorTurn,
  OutputFormat,
  ReasoningWish,
  ToolChoice,
} from '../../inference/request.ts'
import {
  applyFieldTable,
  type Body,
  createLosses,
  isAbsent,
  type Json,
  optional,
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
import { readItems } from './decode-items.ts'
import { readTools } from './decode-tools.ts'
import { responsesFields } from './fields.ts'

/** A client's responses request as the hub says it (translation 2.6, 2.7). */
export function decodeRequest(bodyText: string, context: DecodeContext): InferenceRequest {
  const body = readBody(bodyText, ['parameters', 'schema', 'arguments'])
  const { fields } = body
  const losses = createLosses()
  refuseStored(fields)
  applyFieldTable(fields, responsesFields, losses)
  const modelId = readString(fields['model'], 'model')
  const conversation = readItems(body, context, losses)
  const text = optional(readObject, fields['text'], 'text') ?? {}
  optional(readString, fields['prompt_cache_key'], 'prompt_cache_key')
  return {
    origin: 'responses',
    modelId,
    stream: optional(readBoolean, fields['stream'], 'stream') ?? false,
    preamble: [...readInstructions(fields), ...conversation.preamble],
    turns: conversation.turns,
    tools: [...readTools(optional(readArray, fields['tools'], 'tools') ?? [], 'tools', body), ...conversation.tools],
    toolChoice: {
      ...readToolChoice(fields['tool_choice']),
      parallel: optional(readBoolean, fields['parallel_tool_calls'], 'parallel_tool_calls'),
    },
    format: readFormat(text, body),
    outputTokensMax: optional(readPositiveInteger, fields['max_output_tokens'], 'max_output_tokens'),
    stops: [],
    sampling: {
      temperature: optional(readNumber, fields['temperature'], 'temperature'),
      topP: optional(readNumber, fields['top_p'], 'top_p'),
    },
    reasoning: readReasoning(fields),
    verbosity: optional(readString, text['verbosity'], 'text', '"verbosity"'),
    identity: {
      user: optional(readString, fields['user'], 'user'),
      safetyId: optional(readString, fields['safety_identifier'], 'safety_identifier'),
    },
    cacheKey: context.cacheKey,
    losses: losses.list,
  }
}

/** The stateless rules (spec 4.4). */
function refuseStored(fields: Json) {
  for (const param of ['previous_response_id', 'conversation']) {
    if (isAbsent(fields[param])) continue
    throw new GatewayError(
      'unsupported_parameter',
      `Nothing is stored here: send the full input instead of "${param}".`,
      {
        param,
      },
    )
  }
  if (optional(readBoolean, fields['background'], 'background')) {
    throw new GatewayError('unsupported_parameter', 'Nothing is stored here: remove "background" and wait or stream.', {
      param: 'background',
    })
  }
}

function readInstructions(fields: Json): OperatorTurn[] {
  const text = optional(readString, fields['instructions'], 'instructions')
  return text ? [{ by: 'operator', level: 'system', texts: [{ text }] }] : []
}

const choiceWords = new Map<unknown, ToolChoice['mode']>([
  ['auto', 'auto'],
  ['none', 'none'],
  ['required', 'required'],
])

function readToolChoice(value: unknown): ToolChoice {
  if (isAbsent(value)) return { mode: 'default' }
  const word = choiceWords.get(value)
  if (word) return { mode: word }
  const choice = readObject(value, 'tool_choice')
  if (choice['type'] === 'allowed_tools') {
    const mode = choiceWords.get(choice['mode'] ?? 'auto')
    if (mode !== 'auto' && mode !== 'required') refuse('tool_choice', '"tool_choice": "mode" must be auto or required.')
    return { mode, only: readArray(choice['tools'], 'tool_choice', '"tools"').map(readChosenName) }
  }
  return { mode: 'named', name: readChosenName(choice) }
}

function readChosenName(entry: unknown): string {
  const choice = readObject(entry, 'tool_choice', 'each tool')
  if (choice['type'] !== 'function') refuse('tool_choice', refusals.hostedChoice)
  return readString(choice['name'], 'tool_choice', '"name"')
}

function readFormat(text: Json, body: Body): OutputFormat {
  const format = optional(readObject, text['format'], 'text', '"format"')
  if (!format) return { kind: 'text' }
  switch (format['type']) {
    case 'text':
      return { kind: 'text' }
    case 'json_object':
      return { kind: 'json' }
    case 'json_schema':
      return {
        kind: 'schema',
        schema: readRawObject(body, format['schema'], 'text', '"schema"'),
        name: optional(readString, format['name'], 'text', '"name"'),
        description: optional(readString, format['description'], 'text', '"description"'),
        strict: optional(readBoolean, format['strict'], 'text', '"strict"'),
      }
  }
  refuse('text', '"text": the "type" of the format must be one of text, json_object, json_schema.')
}

const summaryWords: readonly unknown[] = ['auto', 'concise', 'detailed']

function readReasoning(fields: Json): ReasoningWish {
  const reasoning = optional(readObject, fields['reasoning'], 'reasoning') ?? {}
  const summary = reasoning['summary'] ?? reasoning['generate_summary']
  if (!isAbsent(summary) && !summaryWords.includes(summary)) {
    refuse('reasoning', '"reasoning": "summary" must be one of auto, concise, detailed.')
  }
  const isShown = !isAbsent(summary)
  const include = optional(readArray, fields['include'], 'include') ?? []
  return {
    level: optional(readLevel, reasoning['effort'], 'reasoning', '"effort"'),
    isShown,
    isAsked: isShown,
    wantsSealed: isShown && include.includes('reasoning.encrypted_content'),
  }
}
