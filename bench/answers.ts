import type { WireName } from '../src/catalog/model.ts'

/** What the benchmark's upstream can be asked for; the first part of the path. */
export const answerNames = ['json', 'stream-1', 'stream-8'] as const
export type AnswerName = (typeof answerNames)[number]

/** Words that a stream's events carry: real text has a few characters in each. */
const words = 'The quick brown fox jumps over the lazy dog and runs through the dark forest until morning comes'.split(
  ' ',
)

/** Delta events in a stream, beside those that begin and end it. */
export const eventsPerStream = 200

const usage = {
  messages: { input_tokens: 20, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 200 },
  chat: {
    prompt_tokens: 20,
    completion_tokens: 200,
    total_tokens: 220,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  },
  responses: {
    input_tokens: 20,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: 200,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 220,
  },
}

const response = {
  id: 'resp_01AbCdEfGhIjKlMnOpQrStUv',
  object: 'response',
  created_at: 1_700_000_000,
  model: 'upstream-model',
  output: [],
  store: false,
}

const text = words.join(' ').repeat(3)

/** A whole answer of about 600 bytes. */
export const wholeAnswers: Partial<Record<WireName, string>> = {
  messages: JSON.stringify({
    id: 'msg_01AbCdEfGhIjKlMnOpQrStUv',
    type: 'message',
    role: 'assistant',
    model: 'upstream-model',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: usage.messages,
  }),
  chat: JSON.stringify({
    id: 'chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012',
    object: 'chat.completion',
    created: 1_700_000_000,
    model: 'upstream-model',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: usage.chat,
  }),
}

/** The events of a stream: its beginning, `eventsPerStream` deltas, its end. */
export const streamEvents: Partial<Record<WireName, { begin: string; deltas: string[]; end: string }>> = {
  messages: {
    begin:
      namedEvent('message_start', {
        message: {
          id: 'msg_01AbCdEfGhIjKlMnOpQrStUv',
          type: 'message',
          role: 'assistant',
          model: 'upstream-model',
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...usage.messages, output_tokens: 1 },
        },
      }) + namedEvent('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
    deltas: deltaTexts().map((piece) =>
      namedEvent('content_block_delta', { index: 0, delta: { type: 'text_delta', text: piece } }),
    ),
    end:
      namedEvent('content_block_stop', { index: 0 }) +
      namedEvent('message_delta', {
        delta: { stop_reason: 'end_turn', stop_sequence: null },
        usage: usage.messages,
      }) +
      namedEvent('message_stop', {}),
  },
  chat: {
    begin: chatChunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
    deltas: deltaTexts().map((content) => chatChunk([{ index: 0, delta: { content }, finish_reason: null }])),
    end: `${chatChunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chatChunk([], usage.chat)}data: [DONE]\n\n`,
  },
  responses: {
    begin:
      namedEvent('response.created', { sequence_number: 0, response: { ...response, status: 'in_progress' } }) +
      namedEvent('response.output_item.added', {
        sequence_number: 1,
        output_index: 0,
        item: { id: 'msg_1', type: 'message', status: 'in_progress', role: 'assistant', content: [] },
      }),
    deltas: deltaTexts().map((delta, i) =>
      namedEvent('response.output_text.delta', {
        sequence_number: i + 2,
        item_id: 'msg_1',
        output_index: 0,
        content_index: 0,
        delta,
        logprobs: [],
      }),
    ),
    end: namedEvent('response.completed', {
      sequence_number: eventsPerStream + 2,
      response: { ...response, status: 'completed', usage: usage.responses },
    }),
  },
}

function deltaTexts(): string[] {
  return Array.from({ length: eventsPerStream }, (_, i) => ` ${words[i % words.length]}`)
}

function namedEvent(type: string, more: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
}

function chatChunk(choices: object[], counters: object | null = null): string {
  const chunk = {
    id: 'chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012',
    object: 'chat.completion.chunk',
    created: 1_700_000_000,
    model: 'upstream-model',
    system_fingerprint: 'fp_0123456789',
    choices,
    usage: counters,
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}
