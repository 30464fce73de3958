import type { WireName } from '../catalog/model.ts'
import { asObject } from '../json.ts'
import { isDoneMark, type SseFrame } from '../sse.ts'

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
  isReasoning?: boolean
  /** A long text of the operator under a conversation key, marked for the cache where the wire has marks. */
  cached?: { text: string; key: string }
}

/** What a client makes of an answer. Token counts are undefined where they are missing. */
export type Reply = {
  text: string
  reasoning: string
  /** Arguments of the calls of `report`, as text. */
  calls: string[]
  inputTokens: number | undefined
  outputTokens: number | undefined
  cachedTokens: number | undefined
}

export type Dialect = {
  path: string
  /** Field names in the words of the wire. */
  body(question: Question): Json
  headers(question: Question): Record<string, string>
  /** A whole answer. */
  read(body: Json): Reply
  /** The frames of a stream as the whole answer they add up to; undefined without the end that the wire demands. */
  collect(frames: readonly SseFrame[]): Json | undefined
  /** What is wrong with the body of a refusal, if anything. */
  findMistake(body: Json, status: number): string | undefined
}

export type Json = Record<string, unknown>

const parameters = { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }
const description = 'Report whether all is well.'
const outputTokens = 2_000

const keyHeader = ({ cached }: Question): Record<string, string> => (cached ? { 'x-session-id': cached.key } : {})

const messages: Dialect = {
  path: '/v1/messages',
  body: ({ model, text, stream, isCall, isReasoning, cached }) => ({
    model,
    max_tokens: outputTokens,
    messages: [{ role: 'user', content: text }],
    stream,
    ...(isCall
      ? {
          tools: [{ name: 'report', description, input_schema: parameters }],
          tool_choice: { type: 'tool', name: 'report' },
        }
      : {}),
    ...(isReasoning ? { thinking: { type: 'enabled', budget_tokens: 1_024 } } : {}),
    ...(cached ? { system: [{ type: 'text', text: cached.text, cache_control: { type: 'ephemeral' } }] } : {}),
  }),
  headers: keyHeader,
  read(body) {
    const blocks = list(body['content'])
    const usage = asObject(body['usage']) ?? {}
    return {
      text: join(blocks, 'text'),
      reasoning: join(blocks, 'thinking'),
      calls: blocks
        .filter((block) => block['type'] === 'tool_use' && block['name'] === 'report')
        .map((block) => JSON.stringify(block['input'])),
      inputTokens: count(usage['input_tokens']),
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
          ['partial_json', 'json'],
        ] as const) {
          if (typeof delta[field] === 'string') blocks[at]![into] = `${blocks[at]![into] ?? ''}${delta[field]}`
        }
      } else if (event['type'] === 'message_delta') usage = { ...usage, ...asObject(event['usage']) }
      else if (event['type'] === 'message_stop') {
        const content = blocks.map(({ json, ...block }) => (json ? { ...block, input: parse(String(json)) } : block))
        return { ...whole, content, usage }
      }
    }
    return undefined
  },
  findMistake(body, status) {
    const error = asObject(body['error']) ?? {}
    if (body['type'] !== 'error' || typeof error['message'] !== 'string') return 'it is not {type, error: {…}}'
    const type = status === 404 ? 'not_found_error' : 'authentication_error'
    return error['type'] === type ? undefined : `error.type is ${error['type']} and not ${type}`
  },
}

const chat: Dialect = {
  path: '/v1/chat/completions',
  body: ({ model, text, stream, isCall, isReasoning, cached }) => ({
    model,
    max_completion_tokens: outputTokens,
    messages: [...(cached ? [{ role: 'system', content: cached.text }] : []), { role: 'user', content: text }],
    stream,
    ...(isCall
      ? {
          tools: [{ type: 'function', function: { name: 'report', description, parameters } }],
          tool_choice: { type: 'function', function: { name: 'report' } },
        }
      : {}),
    ...(isReasoning ? { reasoning_effort: 'low' } : {}),
    ...(cached ? { prompt_cache_key: cached.key } : {}),
  }),
  headers: keyHeader,
  read(body) {
    const message = asObject(list(body['choices'])[0]?.['message']) ?? {}
    const usage = asObject(body['usage']) ?? {}
    return {
      text: String(message['content'] ?? ''),
      reasoning: String(message['reasoning_content'] ?? ''),
      calls: list(message['tool_calls'])
        .map((call) => asObject(call['function']) ?? {})
        .filter(({ name }) => name === 'report')
        .map((call) => String(call['arguments'])),
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
        const tool_calls = calls.map((call) => ({ function: call }))
        return { choices: [{ message: { content, reasoning_content: reasoning, tool_calls } }], usage }
      }
      const chunk = parse(data)
      usage = chunk['usage'] ?? usage
      const delta = asObject(list(chunk['choices'])[0]?.['delta']) ?? {}
      content += delta['content'] ?? ''
      reasoning += delta['reasoning_content'] ?? ''
      for (const call of list(delta['tool_calls'])) {
        const at = Number(call['index'])
        const piece = asObject(call['function']) ?? {}
        const before = calls[at] ?? { name: piece['name'], arguments: '' }
        calls[at] = { ...before, arguments: `${before['arguments']}${piece['arguments'] ?? ''}` }
      }
    }
    return undefined
  },
  findMistake: findChatMistake,
}

const responses: Dialect = {
  path: '/v1/responses',
  body: ({ model, text, stream, isCall, isReasoning, cached }) => ({
    model,
    max_output_tokens: outputTokens,
    input: [{ role: 'user', content: text }],
    stream,
    ...(isCall
      ? {
          tools: [{ type: 'function', name: 'report', description, parameters, strict: false }],
          tool_choice: { type: 'function', name: 'report' },
        }
      : {}),
    ...(isReasoning ? { reasoning: { effort: 'low', summary: 'auto' } } : {}),
    ...(cached ? { instructions: cached.text, prompt_cache_key: cached.key } : {}),
  }),
  headers: keyHeader,
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
        .map((item) => String(item['arguments'])),
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

export const dialects: Readonly<Record<WireName, Dialect>> = { messages, chat, responses }

function findChatMistake(body: Json, status: number): string | undefined {
  const error = asObject(body['error'])
  if (!error || typeof error['message'] !== 'string') return 'it is not {error: {…}}'
  const code = status === 404 ? 'model_not_found' : 'invalid_api_key'
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

/** Of what is no JSON object nothing is made: what should have been in it is then missing. */
function parse(text: string): Json {
  try {
    return asObject(JSON.parse(text)) ?? {}
  } catch {
    return {}
  }
}
