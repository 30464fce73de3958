import type { ClientWire } from '../../src/catalog/wire-names.ts'

/* Complete answers on the three wires, as models send them and clients read them, with as few members as possible. */

export const paths: Record<ClientWire, string> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

export type Told = { input: number; output: number }

/** A request with one turn. */
export function bodyOf(wire: ClientWire, model: string, text: string, more: Record<string, unknown> = {}): string {
  const turn = [{ role: 'user', content: text }]
  const conversation = {
    messages: { max_tokens: 4096, messages: turn },
    chat: { messages: turn },
    responses: { input: turn },
  }[wire]
  return JSON.stringify({ model, ...conversation, ...more })
}

const usageOf: Record<ClientWire, (told: Told) => Record<string, unknown>> = {
  messages: ({ input, output }) => ({ input_tokens: input, output_tokens: output }),
  chat: ({ input, output }) => ({ prompt_tokens: input, completion_tokens: output, total_tokens: input + output }),
  responses: ({ input, output }) => ({ input_tokens: input, output_tokens: output, total_tokens: input + output }),
}

/** A whole JSON answer. */
export function wholeOf(wire: ClientWire, text: string, told: Told): Record<string, unknown> {
  const usage = usageOf[wire](told)
  const part = { type: 'output_text', text, annotations: [] }
  const item = { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content: [part] }
  const content = [{ type: 'text', text }]
  const choice = { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: text } }
  return {
    messages: { ...message, content, stop_reason: 'end_turn', stop_sequence: null, usage },
    chat: { ...completion, object: 'chat.completion', choices: [choice], usage },
    responses: { ...response, status: 'completed', output: [item], usage },
  }[wire]
}

const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
const completion = { id: 'chatcmpl-1', created: 1, model: 'm' }
const response = { id: 'resp_1', object: 'response', created_at: 1, model: 'm', store: false, error: null }
const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }

/** The events of a stream in three parts: up to the first word, for each piece of text, and after the last piece. */
export type Frames = { opening: string[]; piece(text: string): string; closing(text: string, told: Told): string[] }

export const framesOf: Record<ClientWire, Frames> = {
  messages: {
    opening: [
      named('message_start', {
        message: { ...message, content: [], stop_reason: null, usage: { input_tokens: 1, output_tokens: 0 } },
      }),
      named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    ],
    piece: (text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
    closing: (_text, told) => [
      named('content_block_stop', { index: 0 }),
      named('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: usageOf.messages(told),
      }),
      named('message_stop', {}),
    ],
  },
  chat: {
    opening: [chunk({ role: 'assistant', content: '' })],
    piece: (text) => chunk({ content: text }),
    closing: (_text, told) => [
      chunk({}, 'stop'),
      data({ ...completion, object: 'chat.completion.chunk', choices: [], usage: usageOf.chat(told) }),
      'data: [DONE]\n\n',
    ],
  },
  responses: {
    opening: [
      named('response.created', { response: { ...response, status: 'in_progress', output: [] } }),
      named('response.output_item.added', {
        output_index: 0,
        item: { id: 'msg_1', type: 'message', status: 'in_progress', role: 'assistant', content: [] },
      }),
      named('response.content_part.added', { ...place, part: { type: 'output_text', text: '', annotations: [] } }),
    ],
    piece: (text) => named('response.output_text.delta', { ...place, delta: text }),
    closing: (text, told) => {
      const whole = wholeOf('responses', text, told)
      const item = (whole['output'] as Record<string, unknown>[])[0]!
      return [
        named('response.output_text.done', { ...place, text }),
        named('response.content_part.done', { ...place, part: (item['content'] as unknown[])[0] }),
        named('response.output_item.done', { output_index: 0, item }),
        named('response.completed', { response: whole }),
      ]
    },
  },
}

/** An error in the form of the wire's vendor: as a body, and as an event of a stream. */
export function errorOf(wire: ClientWire, text: string): { body: string; event: string } {
  const error = { message: text, type: 'invalid_request_error', param: null, code: null }
  if (wire === 'messages') {
    const body = { type: 'error', error: { type: 'invalid_request_error', message: text } }
    return { body: JSON.stringify(body), event: `event: error\n${data(body)}` }
  }
  const failed = { ...response, status: 'failed', output: [], error: { code: 'invalid_prompt', message: text } }
  const event = wire === 'chat' ? data({ error }) : named('response.failed', { response: failed })
  return { body: JSON.stringify({ error }), event }
}

/** The content of an answer, if it came to its end. */
export type Heard = { model: unknown; id: unknown; text: string; told: Told }

/** Reads a JSON answer. @throws if it is not whole, or does not follow the wire */
export function hearWhole(wire: ClientWire, body: string): Heard {
  const { model, id, usage, content, choices, output } = JSON.parse(body)
  const text = {
    messages: () => content[0].text,
    chat: () => choices[0].message.content,
    responses: () => output[0].content[0].text,
  }[wire]()
  return { model, id, text, told: toldOf(usage) }
}

/** Reads the answer of a stream, in the same way. */
export function hearStream(wire: ClientWire, body: string): Heard {
  const ends = { messages: 'message_stop', chat: '[DONE]', responses: 'response.completed' }
  const last = body.trimEnd().split('\n').at(-1) ?? ''
  if (!last.includes(ends[wire])) throw new Error(`no ${ends[wire]} at the end`)
  let heard: Heard = { model: undefined, id: undefined, text: '', told: { input: -1, output: -1 } }
  for (const line of body.split('\n')) {
    if (!line.startsWith('data: {')) continue
    const event = JSON.parse(line.slice(6))
    const of = event.message ?? event.response ?? event
    const usage = of.usage ?? event.usage
    const delta = event.choices?.[0]?.delta?.content ?? event.delta?.text ?? event.delta
    heard = {
      model: heard.model ?? of.model,
      id: heard.id ?? of.id,
      text: heard.text + (typeof delta === 'string' ? delta : ''),
      told: usage ? toldOf(usage) : heard.told,
    }
  }
  return heard
}

function toldOf(usage: Record<string, number>): Told {
  const input = usage['input_tokens'] ?? usage['prompt_tokens'] ?? -1
  return { input, output: usage['output_tokens'] ?? usage['completion_tokens'] ?? -1 }
}

export function data(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`
}

function named(type: string, event: Record<string, unknown>): string {
  return `event: ${type}\n${data({ type, sequence_number: 0, ...event })}`
}

export function chunk(delta: Record<string, unknown>, finish: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }]
  return data({ ...completion, object: 'chat.completion.chunk', choices })
}
