import { free } from '../bytes/memory.ts'
import { Pieces } from '../bytes/pieces.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { ClientGone } from '../gateway/call.ts'
import { type BodyShare, tooLarge } from '../gateway/fairness/places.ts'
import { type BodyReader, notHttp, refusal } from './framing.ts'
import type { HttpExchange } from './http-exchange.ts'

export type BodyLimits = { bodyBytesMax: number; bodyMs: number; bodyGapMs: number }

/** Whether the declared length is too large. This is checked first, on any path (spec 8, ruling R1). */
export function isDeclaredTooLarge({ declaredBytes }: HttpExchange, bodyBytesMax: number): boolean {
  return declaredBytes !== undefined && declaredBytes > bodyBytesMax
}

/** Counts the bytes of one body as a part of the memory for all request bodies. */
export type BodyRoom = Pick<BodyShare, 'take'>

/**
 * Reads and counts the whole body. Sends `100 Continue` first if the client waits for it.
 * @param room takes memory for the bytes; the caller gives this memory back
 * @throws GatewayError 429 if no memory is left; 413, 408, or 400 for a compressed or malformed body
 * @throws ClientGone if the client leaves
 */
export async function readBody(exchange: HttpExchange, limits: BodyLimits, room: BodyRoom): Promise<Buffer> {
  // The connection is closed, so nothing more of the body will come.
  if (exchange.body.isGone) throw new ClientGone()
  const encoding = exchange.header('content-encoding')
  if (encoding && encoding.toLowerCase() !== 'identity')
    throw new GatewayError('invalid_body', 'A compressed body is not accepted: send it without content-encoding.')
  if (isDeclaredTooLarge(exchange, limits.bodyBytesMax)) throw tooLarge(limits.bodyBytesMax)
  if (exchange.awaitsContinue) exchange.continue()
  const whole = exchange.body.takeWhole()
  if (whole) return takeBody(exchange, whole, limits, room)
  const reader = new WholeBody(exchange, limits, room)
  exchange.body.read(reader)
  return reader.promise
}

/** Takes a body that has already arrived completely. @throws as `readBody` */
export function takeBody({ body }: HttpExchange, bytes: Buffer, limits: BodyLimits, room: BodyRoom): Buffer {
  if (body.isGone) throw new ClientGone()
  count(bytes.length, bytes.length, limits, room)
  return bytes
}

/** Counts a body. @throws GatewayError if it is too large, or if no memory is left for its newest `added` bytes */
function count(bytes: number, added: number, { bodyBytesMax }: BodyLimits, room: BodyRoom): void {
  if (bytes > bodyBytesMax) throw tooLarge(bodyBytesMax)
  if (room.take(added)) return
  // The request bodies of this process already fill all the memory that they are allowed to use (ruling R18).
  throw new GatewayError('rate_limit_exceeded', failureTexts.serviceFull, { retryAfterSeconds: 1, reason: 'bodies' })
}

/** Collects a body that arrives in pieces. */
class WholeBody implements BodyReader {
  readonly #exchange: HttpExchange
  readonly #limits: BodyLimits
  readonly #room: BodyRoom
  readonly #whole = Promise.withResolvers<Buffer>()
  readonly #pieces = new Pieces(free)
  readonly #deadline: NodeJS.Timeout
  readonly #gap: NodeJS.Timeout
  #bytes = 0

  constructor(exchange: HttpExchange, limits: BodyLimits, room: BodyRoom) {
    this.#exchange = exchange
    this.#limits = limits
    this.#room = room
    const late = () => this.#fail(refusal('The request body did not arrive in time: send it at once.', 408))
    this.#deadline = setTimeout(late, limits.bodyMs)
    this.#gap = setTimeout(late, limits.bodyGapMs)
  }

  get promise(): Promise<Buffer> {
    return this.#whole.promise
  }

  take(piece: Buffer): void {
    this.#bytes += piece.length
    try {
      count(this.#bytes, piece.length, this.#limits, this.#room)
    } catch (error) {
      this.#fail(error as GatewayError)
      return
    }
    this.#pieces.add(piece)
    this.#gap.refresh()
  }

  whole(): void {
    this.#stop()
    this.#whole.resolve(this.#pieces.join())
  }

  broken(): void {
    this.#fail(notHttp())
  }

  gone(): void {
    this.#fail(new ClientGone())
  }

  #fail(error: Error): void {
    this.#stop()
    this.#exchange.body.letGo(this)
    this.#exchange.body.pause()
    this.#whole.reject(error)
  }

  #stop(): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#gap)
  }
}
