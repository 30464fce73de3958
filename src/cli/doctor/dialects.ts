import { asObject } from '../../bytes/json.ts'
import { isDoneMark, type SseFrame } from '../../bytes/sse.ts'
import type { WireName } from '../../catalog/model.ts'

/*
 * Each wire as a client sees it, for the probes of the doctor. It knows no more of the gateway than a client does, so
 * that it can find fault with it: the decoders of the wires are not used here.
 */

/** What is asked in one probe. */
export type Question = {
  model: string
  text: string
  stream: boolean
  /** Offers one function, `report`, and insists on it. */
  isCall?: boolean
  /** The answer that called it: goes back with the result of every call, and the function is offered again. */
  called?: Reply
  isReasoning?: boolean
  /** A long text of the operator under a conversation key, marked for the cache where the wire has marks. */
  cached?: { text: string; key: string }
}

/** What a client makes of an answer. Token counts are undefined where they are missing. */
export type Reply = {
  text: string
  reasoning: string
  calls: Call[]
  /** The answer as a client sends it back in its next request. */
  turn: Json[]
  /** All of the prompt, cached or not. */
  inputTokens: number | undefined
  outputTokens: number | undefined
  cachedTokens: number | undefined
}

/** A call of `report`; its arguments as text. */
export type Call = { id: string; arguments: string }

export type Dialect = {
  path: string
  /** How the clients of this wire send their key. */
  keyHeaders(key: string): Record<string, string>
  /** Field names in the words of the wire. */
  body(question: Question): Json
  cacheHeaders(question: Question): Record<string, string>
  /** A whole answer. */
  read(body: Json): Reply
  /** The frames of a stream as the whole answer they add up to; undefined without the end that the wire demands. */
  collect(frames: readonly SseFrame[]): Json | undefined
  /** What is wrong with the body of a refusal, if anything. `requestId` is the one of its header. */
  findMistake(body: Json, status: number, requestId: string | null): string | undefined
}

export type Json = Record<string, unknown>

const parameters = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
const description = 'Report whether all is well.'
const result = 'The report has been filed.'

/** What an answer may cost at most: it has room for a model that thinks unasked, and few come near it. */
const outputTokens = 2_000
/** The least that the messages wire takes. */
const thinkingTokens = 1_024

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

const messages: Dialect = {
  path: '/v1/messages',
  keyHeaders: (key) => ({ 'x-api-key': key, 'anthropic-version': '2023-06-01' }),
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_tokens: outputTokens,
    messages: [
      { role: 'user', content: text },
      ...(called
        ? [
            { role: 'assistant', content: called.turn },
            {
              role: 'user',
              content: called.calls.map(({ id }) => ({ type: 'tool_result', tool_use_id: id, content: result })),
            },
          ]
        : []),
    ],
    stream,
    ...(isCall || called ? { tools: [{ name: 'report', description, input_schema: parameters }] } : {}),
    ...(isCall ? { tool_choice: { type: 'tool', name: 'report' } } : {}),
    ...(isReasoning ? { thinking: { type: 'enabled', budget_tokens: thinkingTokens } } : {}),
    ...(cached ? { system: [{ type: 'text', text: cached.text, cache_control: { type: 'ephemeral' } }] } : {}),
  }),
  cacheHeaders: ({ cached }): Record<string, string> => (cached ? { 'x-session-id': cached.key } : {}),
  read(body) {
    const blocks = list(body['content'])
    const usage = asObject(body['usage']) ?? {}
    return {
      text: join(blocks, 'text'),
      reasoning: join(blocks, 'thinking'),
      calls: blocks
        .filter((block) => block['type'] === 'tool_use' && block['name'] === 'report')
        .map((block) => ({ id: String(block['id']), arguments: JSON.stringify(block['input']) })),
      turn: blocks,
      // The counters of this wire are disjoint.
      inputTokens: sum(usage, ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens']),
      outputTokens: count(usage['output_tokens']),
      cachedTokens: count(usage['cache_read_input_tokens']),
    }
  },
  collect(frames) {
    const blocks: Json[] = []
    const whole: Json = {}
    let usage: Json = {}
    for (const { data } of frames) {
      const event = parse(data)
      const at = Number(event['index'])
      const delta = asObject(event['delta']) ?? {}
      if (event['type'] === 'message_start') {
        Object.assign(whole, asObject(event['message']))
        usage = { ...asObject(whole['usage']) }
      } else if (event['type'] === 'content_block_start') blocks[at] = { ...asObject(event['content_block']), json: '' }
      else if (event['type'] === 'content_block_delta') {
        for (const [field, into] of [
          ['text', 'text'],
          ['thinking', 'thinking'],
          ['signature', 'signature'],
          ['partial_json', 'json'],
        ] as const) {
          const block = blocks[at]
          if (block && typeof delta[field] === 'string') block[into] = `${block[into] ?? ''}${delta[field]}`
        }
      } else if (event['type'] === 'message_delta') usage = { ...usage, ...asObject(event['usage']) }
      else if (event['type'] === 'message_stop') {
        const content = blocks.map(({ json, ...block }) => (json ? { ...block, input: parse(String(json)) } : block))
        return { ...whole, content, usage }
      }
    }
    return undefined
  },
  findMistake(body, status, requestId) {
    const error = asObject(body['error']) ?? {}
    if (body['type'] !== 'error' || typeof error['message'] !== 'string') return 'it is not {type, error: {…}}'
    if (body['request_id'] !== requestId) return 'its request_id is not the x-request-id of its header'
    const { type } = refusals[status]!
    return error['type'] === type ? undefined : `error.type is ${error['type']} and not ${type}`
  },
}

const chat: Dialect = {
  path: '/v1/chat/completions',
  keyHeaders: bearer,
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_completion_tokens: outputTokens,
    messages: [
      ...(cached ? [{ role: 'system', content: cached.text }] : []),
      { role: 'user', content: text },
      ...(called ? called.turn : []),
      ...(called ? called.calls.map(({ id }) => ({ role: 'tool', tool_call_id: id, content: result })) : []),
    ],
    stream,
    ...(isCall || called
      ? { tools: [{ type: 'function', function: { name: 'report', description, parameters } }] }
      : {}),
    ...(isCall ? { tool_choice: { type: 'function', function: { name: 'report' } } } : {}),
    ...(isReasoning ? { reasoning_effort: 'low' } : {}),
    ...(cached ? { prompt_cache_key: cached.key } : {}),
  }),
  cacheHeaders: () => ({}),
  read(body) {
    const message = asObject(list(body['choices'])[0]?.['message']) ?? {}
    const usage = asObject(body['usage']) ?? {}
    return {
      text: String(message['content'] ?? ''),
      reasoning: String(message['reasoning_content'] ?? ''),
      calls: list(message['tool_calls'])
        .map((call) => ({ id: String(call['id']), ...asObject(call['function']) }) as Json)
        .filter(({ name }) => name === 'report')
        .map((call) => ({ id: String(call['id']), arguments: String(call['arguments']) })),
      turn: [message],
      inputTokens: count(usage['prompt_tokens']),
      outputTokens: count(usage['completion_tokens']),
      cachedTokens: count(asObject(usage['prompt_tokens_details'])?.['cached_tokens']),
    }
  },
  collect(frames) {
    let [content, reasoning] = ['', '']
    const calls: Json[] = []
    let usage: unknown
    for (const { data } of frames) {
      if (isDoneMark(data)) {
        const tool_calls = calls.map(({ id, ...call }) => ({ id, type: 'function', function: call }))
        const message = {
          role: 'assistant',
          content: content || null,
          ...(reasoning ? { reasoning_content: reasoning } : {}),
          ...(tool_calls.length > 0 ? { tool_calls } : {}),
        }
        return { choices: [{ message }], usage }
      }
      const chunk = parse(data)
      usage = chunk['usage'] ?? usage
      const delta = asObject(list(chunk['choices'])[0]?.['delta']) ?? {}
      content += delta['content'] ?? ''
      reasoning += delta['reasoning_content'] ?? ''
      for (const call of list(delta['tool_calls'])) {
        const at = Number(call['index'])
        const piece = asObject(call['function']) ?? {}
        const before = calls[at] ?? { id: call['id'], name: piece['name'], arguments: '' }
        calls[at] = { ...before, arguments: `${before['arguments']}${piece['arguments'] ?? ''}` }
      }
    }
    return undefined
  },
  findMistake: findChatMistake,
}

const responses: Dialect = {
  path: '/v1/responses',
  keyHeaders: bearer,
  body: ({ model, text, stream, isCall, called, isReasoning, cached }) => ({
    model,
    max_output_tokens: outputTokens,
    input: [
      { role: 'user', content: text },
      ...(called ? called.turn : []),
      ...(called ? called.calls.map(({ id }) => ({ type: 'function_call_output', call_id: id, output: result })) : []),
    ],
    stream,
    store: false,
    ...(isCall || called
      ? { tools: [{ type: 'function', name: 'report', description, parameters, strict: false }] }
      : {}),
    ...(isCall ? { tool_choice: { type: 'function', name: 'report' } } : {}),
    ...(isReasoning ? { reasoning: { effort: 'low', summary: 'auto' } } : {}),
    ...(cached ? { instructions: cached.text, prompt_cache_key: cached.key } : {}),
  }),
  cacheHeaders: () => ({}),
  read(body) {
    const items = list(body['output'])
    const usage = asObject(body['usage']) ?? {}
    const of = (type: string) => items.filter((item) => item['type'] === type)
    return {
      text: of('message')
        .map((item) => join(list(item['content']), 'text'))
        .join(''),
      reasoning: of('reasoning')
        .map((item) => join(list(item['summary']), 'text'))
        .join(''),
      calls: of('function_call')
        .filter((item) => item['name'] === 'report')
        .map((item) => ({ id: String(item['call_id']), arguments: String(item['arguments']) })),
      // Nothing is stored, so an id leads nowhere; and reasoning goes back only where its encrypted form was asked for.
      turn: items.filter((item) => item['type'] !== 'reasoning').map(({ id, ...item }) => item),
      inputTokens: count(usage['input_tokens']),
      outputTokens: count(usage['output_tokens']),
      cachedTokens: count(asObject(usage['input_tokens_details'])?.['cached_tokens']),
    }
  },
  collect(frames) {
    const ends = ['response.completed', 'response.incomplete']
    const last = frames.map(({ data }) => parse(data)).find((event) => ends.includes(String(event['type'])))
    return asObject(last?.['response'])
  },
  findMistake: findChatMistake,
}

/** What the body of a refusal calls itself, by its status: `type` on the messages wire, `code` on the others (spec 7). */
const refusals: Readonly<Record<number, { type: string; code: string }>> = {
  400: { type: 'invalid_request_error', code: 'invalid_body' },
  401: { type: 'authentication_error', code: 'invalid_api_key' },
  404: { type: 'not_found_error', code: 'model_not_found' },
}

export const dialects: Readonly<Record<WireName, Dialect>> = { messages, chat, responses }

function findChatMistake(body: Json, status: number): string | undefined {
  const error = asObject(body['error'])
  if (!error || typeof error['message'] !== 'string') return 'it is not {error: {…}}'
  const missing = ['type', 'param', 'code'].find((field) => error[field] === undefined)
  if (missing) return `error.${missing} is missing`
  const { code } = refusals[status]!
  return error['code'] === code ? undefined : `error.code is ${error['code']} and not ${code}`
}

function join(parts: readonly Json[], field: string): string {
  return parts.map((part) => (typeof part[field] === 'string' ? part[field] : '')).join('')
}

function list(value: unknown): Json[] {
  return Array.isArray(value)
    ? value.flatMap((one): Json[] => {
        const object = asObject(one)
        return object ? [object] : []
      })
    : []
}

function count(value: unknown): number | undefined {
  return Number.isInteger(value) ? (value as number) : undefined
}

/** The sum of counters; undefined without the first, while others may be missing. */
function sum(usage: Json, fields: readonly string[]): number | undefined {
  if (count(usage[fields[0]!]) === undefined) return undefined
  return fields.reduce((total, field) => total + (count(usage[field]) ?? 0), 0)
}

/** Of what is no JSON object nothing is made: what should have been in it is then missing. */
function parse(text: string): Json {
  try {
    return asObject(JSON.parse(text)) ?? {}
  } catch {
    return {}
  }
}
