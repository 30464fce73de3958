import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { HttpExchange } from '../../src/http/http-exchange.ts'
import { type Asked, checkAnswer, modelNamed } from '../schemas/check-answer.ts'

/** Watches everything that a server sends to any client, such as an SDK, an agent or a raw socket. */
export type Tap = {
  /** Returns the violations so far, each once. */
  takeViolations(): string[]
  /** The answers so far, if they are kept. */
  answers: readonly TappedAnswer[]
  /** The number of requests that the server has begun to read. */
  begun(): number
  /** The number of unfinished requests: the answer is not complete, or the client has not read all of it. */
  unended(): number
  close(): void
}

export type TappedAnswer = { id: string; asked: Asked; status: number; contentType: string; body: string }

/** Matches paths that are not those of models, whose answers have other forms (ruling Y19). */
const besideModels = /^\/(?:console|oauth|\.well-known|managed|api|v1\/(?:logs|metrics|traces))(?:[/?]|$)/

const started = 'triwire:http:exchange'

/**
 * Checks every JSON body and every stream event that leaves the gateway against the schemas of its wire.
 * @param wireOf returns the wire of a model, or undefined if the catalog does not have it
 * @param keepsAnswers keeps all answers in `answers`; they are never freed, so it is for tests with few of them
 */
export function openTap(port: number, wireOf: (model: string) => ClientWire | undefined, keepsAnswers = false): Tap {
  const answers: TappedAnswer[] = []
  const violations: string[] = []
  /** A function for each running answer that checks it. */
  const open = new Set<() => void>()
  let begun = 0
  let unended = 0
  subscribe(started, listen)
  return {
    answers,
    begun: () => begun,
    unended: () => unended,
    takeViolations() {
      // The end of a connection that was just closed is reported a moment later, so open answers are checked now.
      for (const look of open) look()
      return violations.splice(0)
    },
    close: () => unsubscribe(started, listen),
  }

  function listen(message: unknown) {
    const exchange = message as HttpExchange
    if (exchange.socket.localPort !== port || besideModels.test(exchange.target)) return
    begun++
    unended++
    const said = keepSaid(exchange)
    const look = () => {
      if (!open.delete(look)) return
      const { id, contentType, status } = said
      const body = Buffer.concat(said.pieces).toString()
      if (keepsAnswers) answers.push({ id, asked: askedFor(exchange), status, contentType, body })
      violations.push(...violationsOf(exchange, said, body, wireOf))
    }
    open.add(look)
    for (const name of ['taken', 'gone'] as const)
      hear(exchange, name, () => {
        unended--
        look()
      })
  }
}

type Said = { id: string; contentType: string; status: number; pieces: Buffer[] }

/** Records everything that is written to a client from now on. */
function keepSaid(exchange: HttpExchange): Said {
  const said: Said = { id: '', contentType: '', status: 0, pieces: [] }
  const keep = (piece: string | Uint8Array, encoding: BufferEncoding = 'utf8') =>
    said.pieces.push(typeof piece === 'string' ? Buffer.from(piece, encoding) : Buffer.from(piece))
  const keepHead = (status: number, lines: string) => {
    const header = (name: string) => new RegExp(`^${name}: (.*)\\r$`, 'm').exec(lines)?.[1] ?? ''
    Object.assign(said, { status, id: header('x-request-id'), contentType: header('content-type') })
  }
  for (const name of ['answer', 'answerOpen'] as const)
    hear(exchange, name, (status, lines, body = '') => {
      keepHead(status, lines)
      if (exchange.method !== 'HEAD') keep(body)
    })
  hear(exchange, 'begin', keepHead)
  for (const name of ['write', 'end'] as const) hear(exchange, name, keep)
  return said
}

type Heard = 'answer' | 'answerOpen' | 'begin' | 'write' | 'end' | 'taken' | 'gone'

/** Calls `listen` before each call of one of the exchange's methods, with the same arguments. */
function hear<N extends Heard>(
  exchange: HttpExchange,
  name: N,
  listen: (...args: Parameters<HttpExchange[N]>) => void,
) {
  const original = exchange[name].bind(exchange) as (...args: Parameters<HttpExchange[N]>) => unknown
  const heard = (...args: Parameters<HttpExchange[N]>) => {
    listen(...args)
    return original(...args)
  }
  exchange[name] = heard as HttpExchange[N]
}

function violationsOf(
  exchange: HttpExchange,
  { contentType, status }: Said,
  body: string,
  wireOf: (model: string) => ClientWire | undefined,
): string[] {
  const isStream = contentType.startsWith('text/event-stream')
  // An incomplete JSON body is not checked. Of an incomplete stream, the complete events are.
  if (body === '' || (!isStream && !exchange.isEnded)) return []
  const asked = askedFor(exchange)
  const model = status < 400 ? modelNamed(contentType, body) : undefined
  const wire = model === undefined ? undefined : wireOf(model)
  const violations = checkAnswer(asked, wire === asked ? 'native' : 'translated', contentType, body, status)
  if (model !== undefined && wire === undefined) violations.push(`a model that is not in the catalog: ${model}`)
  return violations.map((text) => `${exchange.method} ${exchange.target} ${status} ${text}`)
}

const paths: Record<string, Asked> = {
  '/v1/messages': 'messages',
  '/v1/messages/count_tokens': 'count_tokens',
  '/v1/responses': 'responses',
}

/** Returns the wire of an answer. For a wrong method or an unknown path it is chat (spec 4.6, ruling R3). */
function askedFor({ method, target }: HttpExchange): Asked {
  const path = target.split('?')[0]!
  if (path === '/v1/models' && method !== 'POST') return 'models'
  return (method === 'POST' && paths[path]) || 'chat'
}
