import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { adapterNames } from '../../../conformance/src/adapter.ts'
import type { Case } from '../../../conformance/src/case.ts'
import { startModel } from '../../../conformance/src/model.ts'
import type { Result } from '../../../conformance/src/report.ts'
import { runCases, type Subject } from '../../../conformance/src/run.ts'
import { atEnd } from '../../support/at-end.ts'
import { listen } from '../../support/listen.ts'

/** What a stand-in does otherwise than right. Without a member it does that part right. */
export type Badness = {
  /** Changes the body that the model is sent. */
  asks?: (body: string) => string
  /** Changes the path on which the model is asked. */
  path?: (path: string) => string
  /** How often the model is asked. */
  times?: number
  /** Answers without the model. */
  instead?: (response: ServerResponse) => void
  status?: number
  headers?: Record<string, string>
  /** Changes the bytes that the client gets, when they are whole. */
  answers?: (text: string) => string
  /** Ends an answer whose connection broke as if it were whole. */
  hidesCuts?: boolean
  /** Goes on reading the model's answer after the client has gone. */
  keepsAsking?: boolean
  /** Does it for every second request only. */
  isFlaky?: boolean
}

/**
 * Runs cases against a stand-in of a gateway, which passes all on between a client and a model of one wire.
 * @param more changes what is known of it
 */
export async function runStandIn(
  cases: readonly Case[],
  badness: Badness = {},
  more: Partial<Subject> = {},
): Promise<Result[]> {
  const model = await startModel(0)
  atEnd(() => model.close())
  let requests = 0
  const server = createServer((request, response) => {
    const isBad = !badness.isFlaky || requests++ % 2 === 0
    pass(request, response, `http://127.0.0.1:${model.port}`, isBad ? badness : {}).catch(() => response.destroy())
  })
  const origin = `http://127.0.0.1:${await listen(server)}`
  const known = { features: ['prices'], deviations: [], lanes: 2, jobs: 2, names: adapterNames }
  const pairs = ['chat>chat', 'responses>responses', 'messages>messages']
  return runCases(cases, { origin, key: 'canary-client-key', model, pairs, ...known, ...more })
}

async function pass(request: IncomingMessage, response: ServerResponse, model: string, badness: Badness) {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const text = Buffer.concat(chunks).toString()
  if (badness.instead) return badness.instead(response)
  // It checks what the one case checks that asks no model.
  if (request.url === '/v1/messages' && !text.includes('max_tokens') && badness.times === undefined) {
    const error = { type: 'invalid_request_error', message: 'max_tokens: it is required' }
    return response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ type: 'error', error }))
  }
  const path = badness.path?.(request.url!) ?? request.url!
  const body = badness.asks?.(text) ?? text
  const headers = { 'content-type': 'application/json', authorization: 'Bearer canary-upstream-key' }
  const leaving = new AbortController()
  if (!badness.keepsAsking) response.once('close', () => leaving.abort())
  const { signal } = leaving
  const ask = () => fetch(model + path, { method: 'POST', headers, body, signal })
  for (let times = badness.times ?? 1; times > 1; times--) await (await ask()).text()
  const answer = await ask()
  const kept = { 'content-type': answer.headers.get('content-type') ?? '', ...badness.headers }
  response.writeHead(badness.status ?? answer.status, kept)
  let seen = ''
  try {
    for await (const chunk of answer.body!) {
      seen += Buffer.from(chunk).toString('latin1')
      if (!badness.answers) response.write(chunk)
    }
  } catch (error) {
    if (!badness.hidesCuts) throw error
    seen += ends[path] ?? ''
    if (!badness.answers) response.write(ends[path] ?? '')
  }
  const whole = Buffer.from(seen, 'latin1').toString()
  response.end(badness.answers?.(whole))
}

const messagesEnd = [
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 5 } },
  { type: 'message_stop' },
]
const chunk = {
  id: 'chatcmpl-1',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta: {}, finish_reason: 'stop' }],
}

/** The end of a whole stream, by path. */
const ends: Record<string, string> = {
  '/v1/chat/completions': `data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`,
  '/v1/messages': messagesEnd.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''),
}
