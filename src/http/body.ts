import { free } from '../bytes/free.ts'
import { failureTexts, GatewayError } from '../errors.ts'
import { ClientGone } from '../gateway/call.ts'
import { type BodyShare, tooLarge } from '../gateway/fairness/bodies.ts'
import { notHttp, refusal } from './framing.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { BodyReader } from './incoming-body.ts'

/** So many pieces become one: each has an object of its own, which of a body that comes octet by octet takes a hundred times as much. */
const piecesMax = 1_024

export type BodyLimits = { bodyBytesMax: number; bodyMs: number; bodyGapMs: number }

/** The declared length is over the limit: refused before anything else, on any path (spec 8, ruling R1). */
export function isDeclaredTooLarge({ declaredBytes }: HttpExchange, bodyBytesMax: number): boolean {
  return declaredBytes !== undefined && declaredBytes > bodyBytesMax
}

/**
 * The whole body, counted while it is read. Sends `100 Continue` first if the client waits for it.
 * @param share what the request may hold; what is taken from it is its caller's to give back
 * @throws GatewayError 429 where there is no room for it; 413, 408, or 400 for a compressed or malformed body; ClientGone when the client leaves.
 */
export async function readBody(exchange: HttpExchange, limits: BodyLimits, share: BodyShare): Promise<Buffer> {
  // Nothing more will come of it.
  if (exchange.body.isGone) throw new ClientGone()
  const encoding = exchange.header('content-encoding')
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new GatewayError('invalid_body', 'A compressed body is not taken: send it without content-encoding.')
  if (exchange.awaitsContinue) exchange.continue()
  const whole = exchange.body.takeWhole()
  if (whole) {
    count(whole.length, whole.length, limits, share)
    return whole
  }
  return new Promise((resolve, reject) => exchange.body.read(new WholeBody(exchange, limits, share, resolve, reject)))
}

/** @throws GatewayError where a body of so many bytes, of which some are new, is too large, or there is no room for them */
function count(bytes: number, added: number, { bodyBytesMax }: BodyLimits, share: BodyShare): void {
  if (bytes > bodyBytesMax) throw tooLarge(bodyBytesMax)
  if (!share.take(added)) throw new NoRoom()
}

/** A body that comes in pieces. */
class WholeBody implements BodyReader {
  readonly #exchange: HttpExchange
  readonly #limits: BodyLimits
  readonly #share: BodyShare
  readonly #resolve: (body: Buffer) => void
  readonly #reject: (error: Error) => void
  readonly #joined: Buffer[] = []
  /** Those behind them. */
  #pieces: Buffer[] = []
  readonly #deadline: NodeJS.Timeout
  readonly #gap: NodeJS.Timeout
  #bytes = 0

  constructor(
    exchange: HttpExchange,
    limits: BodyLimits,
    share: BodyShare,
    resolve: (body: Buffer) => void,
    reject: (error: Error) => void,
  ) {
    this.#exchange = exchange
    this.#limits = limits
    this.#share = share
    this.#resolve = resolve
    this.#reject = reject
    const late = () => this.#fail(refusal('The request body did not arrive in time: send it at once.', 408))
    this.#deadline = setTimeout(late, limits.bodyMs)
    this.#gap = setTimeout(late, limits.bodyGapMs)
  }

  take(piece: Buffer): void {
    this.#bytes += piece.length
    try {
      count(this.#bytes, piece.length, this.#limits, this.#share)
    } catch (error) {
      this.#fail(error as GatewayError)
      return
    }
    if (this.#pieces.push(piece) === piecesMax) {
      this.#joined.push(join(this.#pieces))
      this.#pieces = []
    }
    this.#gap.refresh()
  }

  whole(): void {
    this.#stop()
    const all = [...this.#joined, ...this.#pieces]
    this.#resolve(all.length === 1 ? all[0]! : join(all))
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
    this.#reject(error)
  }

  #stop(): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#gap)
  }
}

/** Of the pieces nothing is left. */
function join(chunks: readonly Buffer[]): Buffer {
  const whole = Buffer.concat(chunks)
  for (const chunk of chunks) free(chunk)
  return whole
}

/** The process holds as many bytes of bodies as it can (ruling R18). */
export class NoRoom extends GatewayError {
  constructor() {
    super('rate_limit_exceeded', failureTexts.serviceFull, { retryAfterSeconds: 1, reason: 'bodies' })
  }
}
