import type { ClientWire } from '../src/catalog/wire-names.ts'
import { wires } from '../src/wires/wires.ts'

/** The answers of the benchmark's upstream. A path or a model's name begins with the name of its answer. */
export const answerNames = [
  ...(['short', 'long', 'stream-1', 'stream-8', 'stream-short', 'stream-slow', 'mixed'] as const),
  ...(['stream-1-openai', 'stream-1-xai', 'stream-1-gemini'] as const),
  ...(['stream-8-openai', 'stream-8-xai', 'stream-8-gemini'] as const),
] as const
export type AnswerName = (typeof answerNames)[number]

/**
 * A mark that is in each word of an answer, and nowhere else in the traffic: a client that counts it has read the answer.
 * No id has a `~`. A mark `-zq` was also in ids such as `chatcmpl-zq…`, one in 3,844, so good answers looked wrong.
 */
export const mark = '~zq'

/** Deltas of a stream, with one word in each; the events that begin and end it are extra. */
export const eventsPerStream = 200

/** The words of answers, and the output tokens that the model reports, if they are not those of most streams. */
const others: Partial<Record<AnswerName, { words: number; tokens: number }>> = {
  short: { words: 10, tokens: 25 },
  long: { words: 160, tokens: 400 },
  // The short answer, for a peer that always asks its model for a stream.
  'stream-short': { words: 10, tokens: 25 },
  // Requests that ask for a stream get one, with an event for each token. All others get one body.
  mixed: { words: 64, tokens: 64 },
}

function sizeOf(answer: AnswerName): Size {
  return others[answer] ?? { words: eventsPerStream, tokens: 400 }
}

/** Events of a stream that are sent together, and the ms between two such pieces. */
type Pace = { events: number; ms: number }

/**
 * Returns the pace of an answer. It is slow enough that no server under test joins pieces, and that a hundred streams
 * stay below the gateway's limits (B10). Without a pace, all words are sent in one piece.
 */
function paceOf(answer: AnswerName): Pace | undefined {
  // A stream that stays open and sends little.
  if (answer === 'stream-slow') return { events: 1, ms: 2_000 }
  if (answer === 'mixed') return { events: 1, ms: 5 }
  if (answer.startsWith('stream-1')) return { events: 1, ms: 10 }
  return answer.startsWith('stream-8') ? { events: 8, ms: 40 } : undefined
}

const inputTokens = 20

/** Prices of all models, in credits for a million tokens. */
export const prices = { input: '3', cache_read: '0.3', cache_write: '3.75', output: '15' }

/** The price of each answer of this name, in nano-credits. */
export function billNanos(answer: AnswerName): bigint {
  return BigInt(inputTokens * 3 + sizeOf(answer).tokens * 15) * 1_000n
}

/** How often an answer contains the mark, as a client of this wire receives it. */
export function marksOf(answer: AnswerName, wire: ClientWire): number {
  // The events that end a stream of responses repeat all of its text four times.
  return sizeOf(answer).words * (wire === 'responses' && isStream(answer) ? 5 : 1)
}

/** The number of pieces in which the words of an answer are sent. */
export function piecesOf(answer: AnswerName): number {
  return isStream(answer) ? Math.ceil(sizeOf(answer).words / (paceOf(answer)?.events ?? sizeOf(answer).words)) : 1
}

export function isStream(answer: AnswerName): boolean {
  return answer.startsWith('stream')
}

/** Whether some of the requests for this answer get a stream. */
export function hasStreams(answer: AnswerName): boolean {
  return isStream(answer) || answer === 'mixed'
}

/** The first piece is sent at once, the others at intervals of `paceMs`. */
export type PreparedAnswer = { pieces: Buffer[]; paceMs: number }

/** The prepared answers, by the path of the request. */
export function prepareAnswers(): Map<string, PreparedAnswer> {
  const prepared = new Map<string, PreparedAnswer>()
  for (const wire of ['messages', 'chat', 'responses'] as const)
    for (const answer of answerNames) {
      const [size, pace] = [sizeOf(answer), paceOf(answer)]
      const streamed = () => ({
        pieces: streamPieces(wire, size, pace?.events ?? size.words, vendorOf(answer)),
        paceMs: pace?.ms ?? 1,
      })
      const { path } = wires[wire].client
      // A base URL with a path replaces `/v1`; releases before 0.2.0 appended the whole path.
      for (const asked of [path, path.replace(/^\/v1/, '')]) {
        const at = `/${answer}${asked}`
        prepared.set(at, isStream(answer) ? streamed() : { pieces: [whole(wire, answer)], paceMs: 1 })
        if (answer === 'mixed') prepared.set(`${at}:stream`, streamed())
      }
    }
  return prepared
}

type Size = { words: number; tokens: number }

const someWords = 'The quick brown fox jumps over the lazy dog and runs through the dark forest'.split(' ')

function wordsOf({ words }: Size): string[] {
  return Array.from({ length: words }, (_, i) => ` ${someWords[i % someWords.length]}${mark}`)
}

/** A whole JSON answer as its model sends it. */
export function wholeBody(wire: ClientWire, answer: AnswerName): string {
  const size = sizeOf(answer)
  return JSON.stringify(answerBody[wire](wordsOf(size).join(''), size.tokens))
}

function whole(wire: ClientWire, answer: AnswerName): Buffer {
  const body = wholeBody(wire, answer)
  const head = ['HTTP/1.1 200 OK', 'content-type: application/json', `content-length: ${Buffer.byteLength(body)}`]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

/** The events of a stream: its beginning, one for each word, and its end. */
export function streamEvents(wire: ClientWire, size: Size = sizeOf('stream-1'), vendor?: VendorName) {
  const words = wordsOf(size)
  const { begin, delta, end } = events[wire](words.join(''), size.tokens)
  // Only the chat wire has members that each vendor adds to each chunk.
  if (vendor === undefined || wire !== 'chat') return { begin, deltas: words.map(delta), end }
  return { begin, deltas: words.map((word, i) => `data: ${JSON.stringify(vendorChunks[vendor](word, i))}\n\n`), end }
}

function streamPieces(wire: ClientWire, size: Size, together: number, vendor?: VendorName): Buffer[] {
  const { begin, deltas, end } = streamEvents(wire, size, vendor)
  const pieces = [begin]
  for (let i = 0; i < deltas.length; i += together) pieces.push(deltas.slice(i, i + together).join(''))
  pieces.push(end)
  const head = ['HTTP/1.1 200 OK', 'content-type: text/event-stream', 'transfer-encoding: chunked']
  return pieces.map((piece, i) => {
    const before = i === 0 ? `${head.join('\r\n')}\r\n\r\n` : ''
    const behind = i === pieces.length - 1 ? '0\r\n\r\n' : ''
    return Buffer.from(`${before}${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n${behind}`)
  })
}

const usageOf = {
  messages: (output_tokens: number) => ({
    input_tokens: inputTokens,
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: 0,
    output_tokens,
  }),
  chat: (completion_tokens: number) => ({
    prompt_tokens: inputTokens,
    completion_tokens,
    total_tokens: inputTokens + completion_tokens,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  }),
  responses: (output_tokens: number) => ({
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + output_tokens,
  }),
}

const message = { id: 'msg_01AbCdEfGhIjKlMnOpQrStUv', type: 'message', role: 'assistant', model: 'upstream-model' }
const completion = {
  id: 'chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012',
  created: 1_700_000_000,
  model: 'upstream-model',
  system_fingerprint: 'fp_0123456789',
}
const response = {
  id: 'resp_01AbCdEfGhIjKlMnOpQrStUv',
  object: 'response',
  created_at: 1_700_000_000,
  model: 'upstream-model',
  store: false,
}

function outputItem(text: string) {
  const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }]
  return { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content }
}

const answerBody: Record<ClientWire, (text: string, tokens: number) => object> = {
  messages: (text, tokens) => ({
    ...message,
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: usageOf.messages(tokens),
  }),
  chat: (text, tokens) => ({
    ...completion,
    object: 'chat.completion',
    choices: [
      { index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: 'stop' },
    ],
    usage: usageOf.chat(tokens),
  }),
  responses: (text, tokens) => ({
    ...response,
    status: 'completed',
    output: [outputItem(text)],
    usage: usageOf.responses(tokens),
  }),
}

/**
 * Chunks with the members, and in the order, in which vendors send them: OpenAI pads each to one length, xAI has the build of its
 * server last, and Gemini's chat endpoint has the choices first and counters in each.
 */
export const vendorChunks = {
  openai: (content: string, i: number) => ({
    ...{ id: completion.id, object: 'chat.completion.chunk', created: completion.created, model: completion.model },
    ...{ service_tier: 'default', system_fingerprint: completion.system_fingerprint },
    choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }],
    usage: null,
    obfuscation: 'aBcDeFgHiJkLmNoPqRs'.slice(i % 13),
  }),
  xai: (content: string) => ({
    ...{ id: completion.id, object: 'chat.completion.chunk', created: completion.created, model: completion.model },
    choices: [{ index: 0, delta: { content, role: 'assistant' }, finish_reason: null }],
    system_fingerprint: completion.system_fingerprint,
  }),
  gemini: (content: string, i: number) => ({
    choices: [{ delta: { content, role: 'assistant' }, index: 0 }],
    ...{ created: completion.created, id: completion.id, model: completion.model, object: 'chat.completion.chunk' },
    usage: { completion_tokens: i, prompt_tokens: inputTokens, total_tokens: inputTokens + i },
  }),
} satisfies Record<string, (content: string, i: number) => object>
export type VendorName = keyof typeof vendorChunks

function vendorOf(answer: AnswerName): VendorName | undefined {
  return answer.split('-')[2] as VendorName | undefined
}

type Events = { begin: string; delta: (text: string, i: number) => string; end: string }

const events: Record<ClientWire, (text: string, tokens: number) => Events> = {
  messages: (_, tokens) => {
    const started = { ...message, content: [], stop_reason: null, stop_sequence: null, usage: usageOf.messages(1) }
    return {
      begin:
        named('message_start', { message: started }) +
        named('content_block_start', { index: 0, content_block: { type: 'text', text: '' } }),
      delta: (text) => named('content_block_delta', { index: 0, delta: { type: 'text_delta', text } }),
      end:
        named('content_block_stop', { index: 0 }) +
        named('message_delta', {
          delta: { stop_reason: 'end_turn', stop_sequence: null },
          usage: usageOf.messages(tokens),
        }) +
        named('message_stop', {}),
    }
  },
  chat: (_, tokens) => ({
    begin: chunk([{ index: 0, delta: { role: 'assistant', content: '' }, finish_reason: null }]),
    delta: (content) => chunk([{ index: 0, delta: { content }, finish_reason: null }]),
    end: `${chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])}${chunk([], usageOf.chat(tokens))}data: [DONE]\n\n`,
  }),
  responses: (text, tokens) => {
    const place = { item_id: 'msg_1', output_index: 0, content_index: 0 }
    const item = outputItem(text)
    const open = { ...item, status: 'in_progress', content: [] }
    const numbered = (from: number, list: [type: string, more: object][]) =>
      list.map(([type, more], i) => named(type, { sequence_number: from + i, ...more })).join('')
    return {
      begin: numbered(0, [
        ['response.created', { response: { ...response, status: 'in_progress', output: [] } }],
        ['response.output_item.added', { output_index: 0, item: open }],
        ['response.content_part.added', { ...place, part: { ...item.content[0], text: '' } }],
      ]),
      delta: (delta, i) => numbered(3 + i, [['response.output_text.delta', { ...place, delta, logprobs: [] }]]),
      end: numbered(3 + eventsPerStream, [
        ['response.output_text.done', { ...place, text, logprobs: [] }],
        ['response.content_part.done', { ...place, part: item.content[0]! }],
        ['response.output_item.done', { output_index: 0, item }],
        ['response.completed', { response: answerBody.responses(text, tokens) }],
      ]),
    }
  },
}

function named(type: string, more: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
}

function chunk(choices: object[], usage: object | null = null): string {
  return `data: ${JSON.stringify({ ...completion, object: 'chat.completion.chunk', choices, usage })}\n\n`
}
