import type { GatewayError } from '../errors.ts'
import { plainEnvelope } from '../wires/answers/envelope.ts'
import type { Wire } from '../wires/wire.ts'
import { errorLines } from './headers.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { BodyReader } from './incoming-body.ts'
import { Leftovers } from './leftovers.ts'
import { wireAt } from './paths.ts'

/** The body of an error, in the envelope of its wire (spec 7.1), in the plain one where it has none. */
export function errorBody(error: GatewayError, requestId: string, wire: Wire | undefined): string {
  const { status, code, message, param, details } = error
  const facts = { status, code, message, param, details }
  return wire ? wire.envelope(facts, requestId) : plainEnvelope(facts)
}

/** Whose error one on this path is: nobody's for an unknown URL, which a wrong method makes of any path (ruling R3). */
export function wireOfError(error: GatewayError, path: string): Wire | undefined {
  return error.code === 'unknown_url' ? undefined : wireAt(path)
}

type ErrorAnswer = {
  error: GatewayError
  path: string
  requestId: string
  /** The connection is not used again. */
  closes: boolean
  lingerMs: number
  /** What else the headers tell, in lines. */
  more?: string
}

/** Answers with an error, whatever of the request is still on its way. */
export function sendError(
  exchange: HttpExchange,
  { error, path, requestId, closes, lingerMs, more = '' }: ErrorAnswer,
): void {
  const wire = wireOfError(error, path)
  if (closes || !isReadable(exchange)) exchange.keepsAlive = false
  const lines = errorLines(requestId, wire, error) + more
  answerUnread(exchange, error.status, lines, lingerMs, errorBody(error, requestId, wire))
}

/** Of a request that is not wanted: so much is waited for to keep its connection. */
const keptBytesMax = 1_048_576
const lingerBytesMax = 33_554_432
/** How long a client may take for what it is told and did not pay for, in ms (faults F-C9). */
const stallMs = 60_000
/** Of the process: what is shared is its event loop. */
const leftovers = new Leftovers()

/**
 * Answers a request whose body nobody reads: what is still to come is thrown away, up to 32 MiB and for a while, so that
 * a client that writes all of its request first gets to read the answer, where a reset would read as a fault of the network;
 * a connection that is not at its next request by then is closed (F-C29).
 */
export function answerUnread(
  exchange: HttpExchange,
  status: number,
  lines: string,
  lingerMs: number,
  body?: string,
): void {
  if (exchange.body.isComplete) {
    exchange.answer(status, lines, body)
    exchange.watchStall(stallMs)
  } else {
    if (exchange.header('expect') !== undefined) exchange.keepsAlive = false
    // The answer goes out now. Only its end, and with it the connection's, waits for the rest of the request.
    exchange.answerOpen(status, lines, body ?? '')
    new Rest(exchange, lingerMs)
  }
}

/** What is still to come of a request that was answered. */
class Rest implements BodyReader {
  readonly #exchange: HttpExchange
  readonly #timer: NodeJS.Timeout
  #bytes = 0

  constructor(exchange: HttpExchange, lingerMs: number) {
    this.#exchange = exchange
    this.#timer = setTimeout(() => this.#giveUp(), lingerMs)
    exchange.isLingering = true
    exchange.body.read(this)
    if (exchange.isLingering) leftovers.start(exchange.body)
  }

  take(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#bytes > lingerBytesMax) this.#giveUp()
    else leftovers.note(this.#exchange.body, piece.length)
  }

  whole(): void {
    this.#stop()
    this.#end()
  }

  broken(): void {
    this.#giveUp()
  }

  gone(): void {
    this.#stop()
  }

  /** Our side is closed; what they send after that is answered with a reset. */
  #giveUp(): void {
    this.#stop()
    this.#exchange.body.letGo(this)
    this.#exchange.keepsAlive = false
    this.#end()
  }

  #end(): void {
    this.#exchange.end('')
    this.#exchange.watchStall(stallMs)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#exchange.isLingering = false
    leftovers.stop(this.#exchange.body)
  }
}

/** Whether the rest of the request is worth waiting for to keep the connection. */
function isReadable(exchange: HttpExchange): boolean {
  // A client that waits for 100 may leave its body out once it has our answer: what comes next has two meanings.
  if (exchange.header('expect') !== undefined) return false
  if (exchange.body.isComplete) return true
  const { declaredBytes } = exchange
  return declaredBytes !== undefined && declaredBytes <= keptBytesMax
}
