import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { WireName } from '../../src/catalog/model.ts'
import { type Asked, checkAnswer, modelNamed } from '../schemas/check-answer.ts'

/** What a server on this port says is listened to, whoever it says it to: an SDK, an agent, a raw socket. */
export type Tap = {
  /** What was said so far and must not have been; told once. */
  takeViolations(): string[]
  /** What was answered so far, where it is kept. */
  answers: readonly TappedAnswer[]
  /** How many requests the server has begun to read. */
  begun(): number
  /** How many of them have no end yet: their answer is not whole, or its client has not taken all of it. */
  unended(): number
  close(): void
}

export type TappedAnswer = { id: string; asked: Asked; status: number; contentType: string; body: string }

const started = 'http.server.request.start'

/**
 * Checks every JSON body and every stream event that leaves the gateway against the schemas of its wire.
 * @param wireOf the wire of a catalog model, undefined for a model that is not in the catalog
 * @param keepsAnswers `answers` has them: for those who look at a few, since none is ever let go
 */
export function openTap(port: number, wireOf: (model: string) => WireName | undefined, keepsAnswers = false): Tap {
  const answers: TappedAnswer[] = []
  const violations: string[] = []
  /** Answers under way, and how each is looked at. */
  const open = new Set<() => void>()
  let begun = 0
  let unended = 0
  subscribe(started, listen)
  return {
    answers,
    begun: () => begun,
    unended: () => unended,
    takeViolations() {
      // A connection that was just closed tells its answer so a moment later.
      for (const look of open) look()
      return violations.splice(0)
    },
    close: () => unsubscribe(started, listen),
  }

  function listen(message: unknown) {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
    if (request.socket.localPort !== port) return
    begun++
    unended++
    response.once('close', () => unended--)
    const said = keepSaid(response)
    const look = () => {
      if (!open.delete(look)) return
      const { id, contentType } = said
      const body = Buffer.concat(said.pieces).toString()
      if (keepsAnswers) answers.push({ id, asked: askedFor(request), status: response.statusCode, contentType, body })
      violations.push(...violationsOf(request, response, contentType, body, wireOf))
    }
    open.add(look)
    response.on('close', look)
  }
}

type Said = { id: string; contentType: string; pieces: Buffer[] }

/** Everything that is written to a response, from now on. */
function keepSaid(response: ServerResponse): Said {
  const said: Said = { id: '', contentType: '', pieces: [] }
  // Headers that are given with the head are kept nowhere else.
  tapMethod(response, 'writeHead', (_status, headers) => {
    const told = headers as Record<string, unknown> | undefined
    said.contentType = `${told?.['content-type'] ?? ''}`
    said.id = `${told?.['x-request-id'] ?? ''}`
  })
  for (const name of ['write', 'end'] as const) {
    tapMethod(response, name, (piece, encoding) => {
      if (typeof piece === 'string') said.pieces.push(Buffer.from(piece, encodingOf(encoding)))
      else if (piece instanceof Uint8Array) said.pieces.push(Buffer.from(piece))
    })
  }
  return said
}

function tapMethod(response: ServerResponse, name: 'writeHead' | 'write' | 'end', hear: (...args: unknown[]) => void) {
  const original = response[name].bind(response) as (...args: unknown[]) => never
  response[name] = (...args: unknown[]) => {
    hear(...args)
    return original(...args)
  }
}

function encodingOf(value: unknown): BufferEncoding {
  return typeof value === 'string' ? (value as BufferEncoding) : 'utf8'
}

function violationsOf(
  request: IncomingMessage,
  response: ServerResponse,
  contentType: string,
  body: string,
  wireOf: (model: string) => WireName | undefined,
): string[] {
  const isStream = contentType.startsWith('text/event-stream')
  // A body that was broken off is none; of a stream the whole events are looked at.
  if (body === '' || (!isStream && !response.writableEnded)) return []
  const { statusCode } = response
  const asked = askedFor(request)
  const model = statusCode < 400 ? modelNamed(contentType, body) : undefined
  const wire = model === undefined ? undefined : wireOf(model)
  const violations = checkAnswer(asked, wire === asked ? 'native' : 'translated', contentType, body, statusCode)
  if (model !== undefined && wire === undefined) violations.push(`a model that is not in the catalog: ${model}`)
  return violations.map((text) => `${request.method} ${request.url} ${statusCode} ${text}`)
}

const paths: Record<string, Asked> = {
  '/v1/messages': 'messages',
  '/v1/messages/count_tokens': 'count_tokens',
  '/v1/responses': 'responses',
}

/** A wrong method and an unknown path are told as on chat (spec 4.6, ruling R3). */
function askedFor({ method, url = '' }: IncomingMessage): Asked {
  const path = url.split('?')[0]!
  if (path === '/v1/models' && method !== 'POST') return 'models'
  return (method === 'POST' && paths[path]) || 'chat'
}
