import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { WireName } from '../../src/catalog/model.ts'
import type { HttpExchange } from '../../src/http/http-exchange.ts'
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

const started = 'triwire:http:exchange'

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
    const exchange = message as HttpExchange
    if (exchange.socket.localPort !== port) return
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

/** Everything that is written to a client, from now on. */
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

/** Hears what one of its methods is called with, before it is. */
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
  wireOf: (model: string) => WireName | undefined,
): string[] {
  const isStream = contentType.startsWith('text/event-stream')
  // A body that was broken off is none; of a stream the whole events are looked at.
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

/** A wrong method and an unknown path are told as on chat (spec 4.6, ruling R3). */
function askedFor({ method, target }: HttpExchange): Asked {
  const path = target.split('?')[0]!
  if (path === '/v1/models' && method !== 'POST') return 'models'
  return (method === 'POST' && paths[path]) || 'chat'
}
