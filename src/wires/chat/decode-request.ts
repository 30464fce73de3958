import type { InferenceRequest, OutputFormat, Tool, ToolChoice } from '../../inference/request.ts'
import {
  applyFieldTable,
  type Body,
  createLosses,
  isAbsent,
  type Json,
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
import { readTurns } from './decode-turns.ts'
import { chatFields } from './fields.ts'

/** A client's chat request as the hub says it (translation 2.4, 2.5). */
export function decodeRequest(bodyText: string, context: DecodeContext): InferenceRequest {
  const body = readBody(bodyText, ['parameters', 'schema', 'arguments'])
  const { fields } = body
  const losses = createLosses()
  applyFieldTable(fields, chatFields, losses)
  refuseMore(fields)
  const modelId = readString(fields['model'], 'model')
  const conversation = readTurns(body, losses)
  optional(readString, fields['prompt_cache_key'], 'prompt_cache_key')
  return {
    origin: 'chat',
    modelId,
    stream: optional(readBoolean, fields['stream'], 'stream') ?? false,
    preamble: conversation.preamble,
    turns: conversation.turns,
    tools: (optional(readArray, fields['tools'], 'tools') ?? []).map((entry) => readTool(entry, body)),
    toolChoice: {
      ...readToolChoice(fields['tool_choice']),
      parallel: optional(readBoolean, fields['parallel_tool_calls'], 'parallel_tool_calls'),
    },
    format: readFormat(body),
    outputTokensMax: readCap(fields),
    stops: readStops(fields['stop']),
    sampling: {
      temperature: optional(readNumber, fields['temperature'], 'temperature'),
      topP: optional(readNumber, fields['top_p'], 'top_p'),
      frequencyPenalty: optional(readNumber, fields['frequency_penalty'], 'frequency_penalty'),
      presencePenalty: optional(readNumber, fields['presence_penalty'], 'presence_penalty'),
      seed: optional(readNumber, fields['seed'], 'seed'),
    },
    reasoning: {
      level: optional(readLevel, fields['reasoning_effort'], 'reasoning_effort'),
      // The wire shows reasoning whenever the model gives it (R-THINK).
      isShown: true,
      isAsked: false,
      wantsSealed: false,
    },
    verbosity: optional(readString, fields['verbosity'], 'verbosity'),
    identity: {
      user: optional(readString, fields['user'], 'user'),
      safetyId: optional(readString, fields['safety_identifier'], 'safety_identifier'),
    },
    cacheKey: context.cacheKey,
    losses: losses.list,
  }
}

/** What would change the answer and no other wire can do (R-DROP, ruling T18). */
function refuseMore(fields: Json) {
  if ((optional(readPositiveInteger, fields['n'], 'n') ?? 1) > 1) {
    refuse('n', 'This model gives one answer per request: send "n": 1.')
  }
  const modalities = optional(readArray, fields['modalities'], 'modalities') ?? []
  if (modalities.includes('audio')) refuse('modalities', 'This model has no audio output: remove it from "modalities".')
}

/** Either field caps the output; of both the smaller (spec 2.5, ruling T17). */
function readCap(fields: Json): number | undefined {
  const caps = ['max_tokens', 'max_completion_tokens'].flatMap(
    (field) => optional(readPositiveInteger, fields[field], field) ?? [],
  )
  return caps.length > 0 ? Math.min(...caps) : undefined
}

function readStops(value: unknown): string[] {
  if (isAbsent(value)) return []
  if (typeof value === 'string') return [value]
  return readArray(value, 'stop').map((stop) => readString(stop, 'stop', 'each entry'))
}

function readTool(entry: unknown, body: Body): Tool {
  const tool = readObject(entry, 'tools', 'each entry')
  if (!isAbsent(tool['type']) && tool['type'] !== 'function') refuse('tools', refusals.hostedTool)
  const declared = readObject(tool['function'], 'tools', '"function"')
  return {
    name: readString(declared['name'], 'tools', '"name"'),
    description: optional(readString, declared['description'], 'tools', '"description"'),
    schema: optionalRawObject(body, declared['parameters'], 'tools', '"parameters"'),
    strict: optional(readBoolean, declared['strict'], 'tools', '"strict"'),
  }
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
    const allowed = readObject(choice['allowed_tools'], 'tool_choice', '"allowed_tools"')
    const mode = choiceWords.get(allowed['mode'] ?? 'auto')
    if (mode !== 'auto' && mode !== 'required') refuse('tool_choice', '"tool_choice": "mode" must be auto or required.')
    return { mode, only: readArray(allowed['tools'], 'tool_choice', '"tools"').map(readChosenName) }
  }
  return { mode: 'named', name: readChosenName(choice) }
}

function readChosenName(entry: unknown): string {
  const choice = readObject(entry, 'tool_choice', 'each tool')
  if (choice['type'] !== 'function') refuse('tool_choice', refusals.hostedChoice)
  const { name } = readObject(choice['function'], 'tool_choice', '"function"')
  return readString(name, 'tool_choice', '"name"')
}

function readFormat(body: Body): OutputFormat {
  const format = optional(readObject, body.fields['response_format'], 'response_format')
  if (!format) return { kind: 'text' }
  switch (format['type']) {
    case 'text':
      return { kind: 'text' }
    case 'json_object':
      return { kind: 'json' }
    case 'json_schema': {
      const named = readObject(format['json_schema'], 'response_format', '"json_schema"')
      return {
        kind: 'schema',
        schema: isAbsent(named['schema'])
          ? { source: '{}' }
          : readRawObject(body, named['schema'], 'response_format', '"schema"'),
        name: optional(readString, named['name'], 'response_format', '"name"'),
        description: optional(readString, named['description'], 'response_format', '"description"'),
        strict: optional(readBoolean, named['strict'], 'response_format', '"strict"'),
      }
    }
  }
  refuse('response_format', '"response_format": "type" must be one of text, json_object, json_schema.')
}
