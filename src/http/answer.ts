import type { GatewayError } from '../errors.ts'
import { plainEnvelope } from '../wires/answers/faults.ts'
import type { ClientHalf } from '../wires/wire.ts'
import type { BodyReader } from './framing.ts'
import { errorLines } from './headers.ts'
import type { HttpExchange } from './http-exchange.ts'
import { wireAt } from './paths.ts'

/** The body of an error, in the envelope of its wire. Without a wire, it is in the plain envelope (spec 7.1). */
export function errorBody(error: GatewayError, requestId: string, wire: ClientHalf | undefined): string {
  return wire ? wire.envelope(error, requestId) : plainEnvelope(error)
}

/** Makes the answer to an error: its header lines, and its body. */
export type FormError = (error: GatewayError, path: string, requestId: string) => { lines: string; body: string }

/**
 * Makes the error in the envelope of the path's wire. A URL with a wrong method counts as unknown, so its error gets
 * the plain envelope (ruling R3).
 */
export const formClientError: FormError = (error, path, requestId) => {
  const wire = error.code === 'unknown_url' ? undefined : wireAt(path)
  return { lines: errorLines(requestId, wire, error), body: errorBody(error, requestId, wire) }
}

/**
 * An error with its headers as lines.
 * @property closes whether the connection closes afterwards
 * @property lingerMs see `answerUnread`
 */
type ErrorAnswer = { status: number; lines: string; body: string; closes: boolean; lingerMs: number }

/** Answers with an error, even if the request is still arriving. */
export function sendError(exchange: HttpExchange, { status, lines, body, closes, lingerMs }: ErrorAnswer): void {
  if (closes || !isReadable(exchange)) exchange.keepsAlive = false
  answerUnread(exchange, status, lines, { lingerMs }, body)
}

/** A refused request keeps its connection if its body is declared with at most this length, in bytes. */
const keptBytesMax = 1_048_576
const lingerBytesMax = 33_554_432
/** The longest time that a client may read nothing of an answer that is not billed, in ms (faults F-C9). */
const stallMs = 60_000

/**
 * Limits for a request whose rest is discarded. @property lingerMs how long the rest is read at most
 * @property stallMs how long a client may read nothing of its answer
 */
type UnreadLimits = { lingerMs: number; stallMs?: number }

/**
 * Answers a request whose body is not read. The rest of the body is discarded, up to 32 MiB and for up to `lingerMs`.
 * If the rest were not read, a client that writes its whole request before it reads would report a network fault. If
 * the rest does not end in time, the connection is closed (F-C29).
 */
export function answerUnread(
  exchange: HttpExchange,
  status: number,
  lines: string,
  limits: UnreadLimits,
  body?: string | Uint8Array,
): void {
  if (exchange.body.isComplete) {
    exchange.answer(status, lines, body)
    exchange.watchStall(limits.stallMs ?? stallMs)
  } else {
    if (exchange.header('expect') !== undefined) exchange.keepsAlive = false
    // The client gets the answer now. The end of the answer, and of the connection, waits for the rest of the request.
    exchange.answerOpen(status, lines, body ?? '')
    new Rest(exchange, limits)
  }
}

/** Reads and discards the rest of a request that was answered. */
class Rest implements BodyReader {
  readonly #exchange: HttpExchange
  readonly #timer: NodeJS.Timeout
  readonly #stallMs: number
  #bytes = 0

  constructor(exchange: HttpExchange, limits: UnreadLimits) {
    this.#exchange = exchange
    this.#stallMs = limits.stallMs ?? stallMs
    this.#timer = setTimeout(() => this.#giveUp(), limits.lingerMs)
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

  /** Ends the answer, and with it the connection. The operating system answers later bytes with a reset. */
  #giveUp(): void {
    this.#stop()
    this.#exchange.body.letGo(this)
    this.#exchange.keepsAlive = false
    this.#end()
  }

  #end(): void {
    this.#exchange.end('')
    this.#exchange.watchStall(this.#stallMs)
  }

  #stop(): void {
    clearTimeout(this.#timer)
    this.#exchange.isLingering = false
    leftovers.stop(this.#exchange.body)
  }
}

/** Whether to wait for the rest of the request, so that the connection can be kept. */
function isReadable(exchange: HttpExchange): boolean {
  // A client that waits for `100 Continue` may omit its body once it has our answer. The next bytes could then be a
  // body or a request.
  if (exchange.header('expect') !== undefined) return false
  if (exchange.body.isComplete) return true
  const { declaredBytes } = exchange
  return declaredBytes !== undefined && declaredBytes <= keptBytesMax
}

/** A refused request. The rest of its body is discarded. */
export type Unwanted = { pause(): void; resume(): void }

/** The most bytes that are discarded in one turn of the event loop, for all requests together. */
const bytesPerTurn = 524_288
/**
 * The most requests to resume in one turn. Each brings some 64 KiB until it is paused, so together they fill a turn.
 */
const requestsPerTurn = 8
/** The pause between two turns of discarding, in ms, for other work. Discarding still reaches 0.25 GB per second. */
const pauseMs = 2

/**
 * Discards the rest of refused requests, with a limit for each turn of the event loop. Reading 5 MB is little work for
 * one request. Hundreds at the same time would keep the event loop from paid requests (B6, B21).
 */
export class Leftovers {
  readonly #later: (run: () => void, pauseMs: number) => void
  readonly #waiting = new Set<Unwanted>()
  #left = bytesPerTurn
  #isScheduled = false

  constructor(later: (run: () => void, pauseMs: number) => void = setTimeout) {
    this.#later = later
  }

  start(request: Unwanted): void {
    if (this.#left > 0) request.resume()
    else this.#wait(request)
  }

  note(request: Unwanted, bytes: number): void {
    this.#left -= bytes
    if (this.#left <= 0) this.#wait(request)
    else this.#schedule()
  }

  /** Forgets a request that is over, or whose remaining bytes are not read any more. */
  stop(request: Unwanted): void {
    this.#waiting.delete(request)
  }

  #wait(request: Unwanted): void {
    request.pause()
    this.#waiting.add(request)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#later(() => this.#nextTurn(), pauseMs)
  }

  /** Resumes the requests that have waited longest. Each gets one piece, and then waits for another turn. */
  #nextTurn(): void {
    this.#isScheduled = false
    this.#left = bytesPerTurn
    let places = requestsPerTurn
    for (const request of this.#waiting) {
      if (places-- === 0) break
      this.#waiting.delete(request)
      request.resume()
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}

/** One object for all requests of the process, because they share one event loop. */
const leftovers = new Leftovers()
