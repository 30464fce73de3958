import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { startTestGateway, type TestGateway, type TestOptions } from './gateway.ts'
import { closeQuietly } from './quiet.ts'
import { type RawUpstream, startRawUpstream } from './raw-upstream.ts'

export const paths: Record<ClientWire, string> = {
  messages: '/v1/messages',
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
}

/** The smallest request of each wire. */
export const asks: Record<ClientWire, Record<string, unknown>> = {
  messages: { model: 'native-messages', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] },
  chat: { model: 'native-chat', messages: [{ role: 'user', content: 'Hi' }] },
  responses: { model: 'native-responses', input: 'Hi' },
}

/** A small answer of an upstream on each wire: 9 input tokens, of which 4 are cached, and 3 output tokens. */
export const answers: Record<ClientWire, Record<string, unknown>> = {
  messages: {
    id: 'msg_up1',
    type: 'message',
    role: 'assistant',
    model: 'up-messages',
    content: [{ type: 'text', text: 'Hé 😀' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 3 },
  },
  chat: {
    id: 'chatcmpl-up1',
    object: 'chat.completion',
    created: 1_795_000_000,
    model: 'up-chat',
    choices: [{ index: 0, message: { role: 'assistant', content: 'Hé 😀' }, finish_reason: 'stop' }],
    usage: {
      prompt_tokens: 9,
      completion_tokens: 3,
      total_tokens: 12,
      prompt_tokens_details: { cached_tokens: 4 },
    },
  },
  responses: {
    id: 'resp_up1',
    object: 'response',
    created_at: 1_795_000_000,
    status: 'completed',
    error: null,
    incomplete_details: null,
    model: 'up-responses',
    output: [
      {
        id: 'msg_up1',
        type: 'message',
        status: 'completed',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hé 😀', annotations: [] }],
      },
    ],
    parallel_tool_calls: true,
    store: false,
    usage: {
      input_tokens: 9,
      input_tokens_details: { cached_tokens: 4 },
      output_tokens: 3,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 12,
    },
  },
}

export function named(event: Record<string, unknown>): string {
  return `event: ${event['type']}\ndata: ${JSON.stringify(event)}\n\n`
}

export function chunk(more: Record<string, unknown>): string {
  const head = { id: 'chatcmpl-up1', object: 'chat.completion.chunk', created: 1_795_000_000, model: 'up-chat' }
  return `data: ${JSON.stringify({ ...head, ...more })}\n\n`
}

const {
  output,
  usage: _,
  ...opened
} = answers.responses as { output: [Record<string, unknown>] } & Record<string, unknown>
const part = { item_id: 'msg_up1', output_index: 0, content_index: 0 }
const text = { type: 'output_text', text: 'Hé 😀', annotations: [] }

/** The same answers as frames. */
export const frames: Record<ClientWire, string[]> = {
  messages: [
    named({
      type: 'message_start',
      message: {
        ...answers.messages,
        content: [],
        stop_reason: null,
        usage: { input_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 0 },
      },
    }),
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hé ' } }),
    named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: '😀' } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({
      type: 'message_delta',
      delta: { stop_reason: 'end_turn', stop_sequence: null },
      usage: { input_tokens: 5, cache_creation_input_tokens: 0, cache_read_input_tokens: 4, output_tokens: 3 },
    }),
    named({ type: 'message_stop' }),
  ],
  chat: [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: { content: 'Hé ' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: { content: '😀' }, finish_reason: null }] }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    chunk({ choices: [], usage: answers.chat['usage'] }),
    'data: [DONE]\n\n',
  ],
  responses: [
    named({ type: 'response.created', sequence_number: 0, response: { ...opened, status: 'in_progress', output: [] } }),
    named({
      type: 'response.output_item.added',
      sequence_number: 1,
      output_index: 0,
      item: { ...output[0], status: 'in_progress', content: [] },
    }),
    named({
      type: 'response.content_part.added',
      sequence_number: 2,
      ...part,
      part: { ...text, text: '' },
    }),
    named({ type: 'response.output_text.delta', sequence_number: 3, ...part, delta: 'Hé ', logprobs: [] }),
    named({ type: 'response.output_text.delta', sequence_number: 4, ...part, delta: '😀', logprobs: [] }),
    named({ type: 'response.output_text.done', sequence_number: 5, ...part, text: 'Hé 😀', logprobs: [] }),
    named({ type: 'response.content_part.done', sequence_number: 6, ...part, part: text }),
    named({ type: 'response.output_item.done', sequence_number: 7, output_index: 0, item: output[0] }),
    named({ type: 'response.completed', sequence_number: 8, response: answers.responses }),
  ],
}

/** The cost of each of these answers with the test models' prices: 5 × 3 + 4 × 0.3 + 3 × 15 micro-credits. */
export const answerNanos = 61_200n

export type Asked = { status: number; headers: Headers; text: string; id: string; isCut: boolean }

export type Native = {
  gateway: TestGateway
  upstream: RawUpstream
  /** Sends the smallest request with further fields, and reads the answer until it ends or is cut. */
  ask(wire: ClientWire, more?: Record<string, unknown>, headers?: Record<string, string>): Promise<Asked>
  close(): Promise<void>
}

/** Starts a gateway whose native models have a scripted upstream. */
export async function startNative(options: TestOptions = {}): Promise<Native> {
  const upstream = await startRawUpstream()
  const gateway = await startTestGateway({
    ...options,
    upstreamUrl: upstream.url,
    config: { limits: { requests_per_minute: 1_000_000 }, ...options.config },
  })
  return {
    gateway,
    upstream,
    async ask(wire, more = {}, headers = {}) {
      const response = await gateway.post(paths[wire], { ...asks[wire], ...more }, headers)
      const { text, isCut } = await readAll(response)
      return {
        status: response.status,
        headers: response.headers,
        text,
        id: response.headers.get('x-request-id')!,
        isCut,
      }
    },
    async close() {
      // The upstream is closed even if the checks of the gateway fail.
      await closeQuietly(gateway).finally(() => upstream.close())
    },
  }
}

/** Reads a body, and calls `onText` for each part. @returns the text, and whether the connection broke early */
export async function readAll(
  response: Response,
  onText = (_text: string) => {},
): Promise<{ text: string; isCut: boolean }> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const piece of response.body!) {
      text += decoder.decode(piece, { stream: true })
      onText(text)
    }
  } catch {
    return { text, isCut: true }
  }
  return { text, isCut: false }
}
