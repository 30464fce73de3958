import { GatewayError } from '../../errors.ts'
import { Tally } from './tally.ts'

/** One account holds no more of what there is for all than this share of it: nobody fills the house alone. */
const shareOfAccount = 0.25

/**
 * The bytes of request bodies that the process holds: those that are still being read, and those that may have to be sent
 * once more (ruling R18). Without a bound slow senders could fill the memory with bodies that never end.
 */
export class Bodies {
  /** In bytes, of all requests. */
  held = 0
  readonly #bytesMax: number
  readonly #ofAccount = new Tally()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** For one request of an account. */
  enter(accountId: string): BodyShare {
    return new BodyShare(this, accountId)
  }

  /** @returns false where there is no room for so many more. */
  take(accountId: string, bytes: number): boolean {
    const own = this.#ofAccount.of(accountId) + bytes
    if (this.held + bytes > this.#bytesMax || own > this.#bytesMax * shareOfAccount) return false
    this.held += bytes
    this.#ofAccount.add(accountId, bytes)
    return true
  }

  giveBack(accountId: string, bytes: number): void {
    this.held -= bytes
    this.#ofAccount.add(accountId, -bytes)
  }
}

/** The bytes of one request's body. Given back at the end of its scope, unless it was handed on. */
export class BodyShare implements Disposable {
  readonly #bodies: Bodies
  readonly #accountId: string
  #taken = 0
  #isHandedOn = false

  constructor(bodies: Bodies, accountId: string) {
    this.#bodies = bodies
    this.#accountId = accountId
  }

  /** @returns false where there is no room for so many more. */
  take(bytes: number): boolean {
    const isTaken = this.#bodies.take(this.#accountId, bytes)
    if (isTaken) this.#taken += bytes
    return isTaken
  }

  /** The body is let go. Again it does nothing. */
  release(): void {
    if (this.#taken > 0) this.#bodies.giveBack(this.#accountId, this.#taken)
    this.#taken = 0
  }

  /** Whoever gets it gives it back: the scope no longer does. */
  handOn(): BodyShare {
    this.#isHandedOn = true
    return this
  }

  [Symbol.dispose](): void {
    if (!this.#isHandedOn) this.release()
  }
}

/** A body of more bytes than one may have (spec 8). */
export function tooLarge(bodyBytesMax: number): GatewayError {
  const megabytes = bodyBytesMax / 1_048_576
  const about = megabytes < 1 ? '' : ` (${Number(megabytes.toFixed(1))} MB)`
  return new GatewayError(
    'request_too_large',
    `The request body is larger than ${bodyBytesMax} bytes${about}: send less, for instance smaller images.`,
  )
}
