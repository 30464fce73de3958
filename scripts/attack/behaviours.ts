import type { ServerResponse } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { chunk, data, errorOf, framesOf, type Told, wholeOf } from './wires.ts'

export type Asked = { wire: ClientWire; isStream: boolean; asked: string; response: ServerResponse }

/** Returns the answer of a payer's model. Its figures follow from the nonce, so that they can be checked. */
export function figuresOf(nonce: string): { text: string; told: Told } {
  const number = Number(/^nonce-(\d+)/.exec(nonce)?.[1] ?? 0)
  return {
    text: `The word is ${nonce}, and that is all.`,
    told: { input: 20 + (number % 100), output: 20 + (number % 30) },
  }
}

/** The behaviours of upstreams, by the name of the requested model. */
export const behaviours: Record<string, (asked: Asked) => unknown> = {
  /** Repeats the nonce, with figures that follow from it. */
  echo({ wire, isStream, asked, response }) {
    const { text, told } = figuresOf(/nonce-\d+-[0-9a-f]+/.exec(asked)?.[0] ?? 'none')
    if (!isStream) return sendJson(response, 200, JSON.stringify(wholeOf(wire, text, told)))
    const { opening, piece, closing } = framesOf[wire]
    startStream(response)
    const pieces = text.match(/.{1,12}/g) ?? []
    response.end([...opening, ...pieces.map(piece), ...closing(text, told)].join(''))
  },
  /** Refuses, and quotes the client's own text. */
  refuse: ({ wire, asked, response }) => sendJson(response, 400, errorOf(wire, wordsOf(asked)).body),
  'error-body': ({ wire, asked, response }) => sendJson(response, 200, errorOf(wire, wordsOf(asked)).body),
  'error-event'({ wire, asked, response }) {
    startStream(response)
    response.end(errorOf(wire, wordsOf(asked)).event)
  },
  /** Answers each request with a server error. */
  trouble: ({ wire, response }) => sendJson(response, 500, errorOf(wire, 'The server had an error.').body),
  full: ({ wire, response }) => sendJson(response, 429, errorOf(wire, 'Too many requests.').body),
  hang: () => {},
  /** Sends one word, and then nothing. */
  stall({ wire, response }) {
    startStream(response)
    response.write(framesOf[wire].opening.join('') + framesOf[wire].piece('A word. STOP'))
  },
  /** Sends a word every 200 ms for a minute. The usage would come only after that. */
  async tail({ wire, isStream, response }) {
    if (!isStream) {
      await pause(1_000)
      return sendJson(
        response,
        200,
        JSON.stringify(wholeOf(wire, 'A word. STOP And more.', { input: 20, output: 4_000 })),
      )
    }
    startStream(response)
    response.write(framesOf[wire].opening.join('') + framesOf[wire].piece('A word. STOP'))
    for (let i = 0; i < 300 && !response.destroyed; i++) {
      await pause(200)
      response.write(framesOf[wire].piece(' And more.'))
    }
    response.end(framesOf[wire].closing('A word.', { input: 20, output: 4_000 }).join(''))
  },
  /** Sends text without an end, as fast as it is read. */
  endless: ({ wire, response }) =>
    pour(response, framesOf[wire].opening.join(''), framesOf[wire].piece('word '.repeat(400))),
  /** Sends endless events without visible content. */
  silent({ wire, response }) {
    const padding = 'x'.repeat(2_000)
    const nothing = wire === 'chat' ? chunk({ padding }) : data({ type: 'ping', padding })
    return pour(response, framesOf[wire].opening.join(''), nothing)
  },
  /** Sends 2,000 deltas, each of which is searched for stop sequences. */
  long({ wire, response }) {
    const { opening, piece, closing } = framesOf[wire]
    startStream(response)
    const told = { input: 100, output: 4_000 }
    response.end([...opening, ...Array.from({ length: 2_000 }, () => piece('aaaaaaaa')), ...closing('', told)].join(''))
  },
  lie({ wire, isStream, response }) {
    const told = lies[Math.floor(Math.random() * lies.length)] as Told
    if (!isStream) return sendJson(response, 200, JSON.stringify(wholeOf(wire, 'hi', told)))
    const { opening, piece, closing } = framesOf[wire]
    startStream(response)
    response.end([...opening, piece('hi'), ...closing('hi', told)].join(''))
  },
  cut({ wire, response }) {
    startStream(response)
    response.write(framesOf[wire].opening.join('') + framesOf[wire].piece('half a w'), () => response.destroy())
  },
  /** Takes longer than a loop of attackers, as models do. */
  async logprobs({ wire, isStream, response }) {
    await pause(2_000)
    const whole = wholeOf(wire, 'a', { input: 20, output: 2_500 })
    const part = (whole['output'] as { content: Record<string, unknown>[] }[])[0]!.content[0]!
    part['logprobs'] = logprobs
    if (!isStream) return sendJson(response, 200, JSON.stringify(whole))
    startStream(response)
    const closing = framesOf[wire].closing('a', { input: 20, output: 2_500 }).slice(0, -1).join('')
    const end = `event: response.completed\n${data({ type: 'response.completed', sequence_number: 9, response: whole })}`
    response.end(framesOf[wire].opening.join('') + framesOf[wire].piece('a') + closing + end)
  },
  /** Sends one of many kinds of bytes that are no answer. */
  async garbage({ response }) {
    await pause(300)
    const write = garbage[Math.floor(Math.random() * garbage.length)]!
    write(response)
  },
}

const lies = [
  { input: 2 ** 31, output: 2 ** 31 },
  { input: -5, output: -1 },
  { input: 1e300, output: 0 },
  { input: 0.5, output: 1.5 },
  { input: '12', output: null },
  { input: 0, output: 0 },
]

const logprob = { token: 'a', logprob: -0.1, bytes: [97] }
const logprobs = Array.from({ length: 2_500 }, () => ({ ...logprob, top_logprobs: Array(20).fill(logprob) }))

const bomb = gzipSync(Buffer.alloc(20_000_000))
const garbage: ((response: ServerResponse) => void)[] = [
  (response) => response.socket?.end('\u0000\u0001 no HTTP at all\r\n\r\n'),
  (response) => response.socket?.end('HTTP/1.1 200 OK\r\ncontent-length: 50\r\ncontent-length: 9\r\n\r\n{}'),
  (response) => response.socket?.end(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(50_000)}\r\n\r\n`),
  (response) => sendJson(response, 200, `{"x":"${'y'.repeat(34_000_000)}"}`),
  (response) => sendJson(response, 200, '['.repeat(200_000)),
  (response) => sendJson(response, 302, '{}'),
  (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
    response.end(bomb)
  },
  (response) => {
    startStream(response)
    response.end(`data: ${'z'.repeat(8_500_000)}\n\n`)
  },
]

/** Returns the client's text, which is the longest text in the request. */
function wordsOf(asked: string): string {
  return (asked.match(/"(?:[^"\\]|\\.)*"/g) ?? [])
    .reduce((most, text) => (text.length > most.length ? text : most), '""')
    .slice(1, -1)
}

function sendJson(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

function startStream(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
}

/** Writes as fast as the gateway reads, until the connection is closed. */
async function pour(response: ServerResponse, opening: string, piece: string): Promise<void> {
  let wake = () => {}
  response.on('drain', () => wake())
  response.on('close', () => wake())
  startStream(response)
  response.write(opening)
  const many = piece.repeat(16)
  while (!response.destroyed) {
    const drained = new Promise<void>((resolve) => {
      wake = resolve
    })
    if (response.write(many)) await pause(1)
    else await drained
  }
}
