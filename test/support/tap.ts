import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { HttpExchange } from '../../src/http/http-exchange.ts'
import { type Asked, checkAnswer, modelNamed } from '../schemas/check-answer.ts'

/** Watches everything that a server on this port sends, to any client: an SDK, an agent, a raw socket. */
export type Tap = {
  /** The violations so far; each is returned once. */
  takeViolations(): string[]
  /** The answers so far, if they are kept. */
  answers: readonly TappedAnswer[]
  /** The number of requests that the server has begun to read. */
  begun(): number
  /** The number of requests without an end: the answer is not whole, or the client has not taken all of it. */
  unended(): number
  close(): void
}

export type TappedAnswer = { id: string; asked: Asked; status: number; contentType: string; body: string }

/** The paths beside those of models, which have answers of their own (ruling Y19). */
const besideModels = /^\/(?:console|oauth|\.well-known|managed|api|v1\/(?:logs|metrics|traces))(?:[/?]|$)/

const started = 'triwire:http:exchange'

/**
 * Checks every JSON body and every stream event that leaves the gateway against the schemas of its wire.
 * @param wireOf the wire of a catalog model, undefined for a model that is not in the catalog
 * @param keepsAnswers keeps all answers in `answers`, for tests with few of them: they are never freed
 */
export function openTap(port: number, wireOf: (model: string) => ClientWire | undefined, keepsAnswers = false): Tap {
  const answers: TappedAnswer[] = []
  const violations: string[] = []
  /** For each answer under way, a function that checks it. */
  const open = new Set<() => void>()
  let begun = 0
  let unended = 0
  subscribe(started, listen)
  return {
    answers,
    begun: () => begun,
    unended: () => unended,
    takeViolations() {
      // The answer of a connection that was just closed is reported only a moment later, so it is checked now.
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

/** Keeps everything that is written to a client from now on. */
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
  // An incomplete JSON body is not checked; of an incomplete stream, the whole events are.
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

/** The answer to a wrong method or an unknown path has the form of chat (spec 4.6, ruling R3). */
function askedFor({ method, target }: HttpExchange): Asked {
  const path = target.split('?')[0]!
  if (path === '/v1/models' && method !== 'POST') return 'models'
  return (method === 'POST' && paths[path]) || 'chat'
}
