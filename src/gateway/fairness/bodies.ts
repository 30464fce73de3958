import { GatewayError } from '../../errors.ts'
import { Tally } from './tally.ts'

/** The share of the memory for bodies that one account may hold, so that no account can fill it alone. */
const shareOfAccount = 0.25

/**
 * Counts the bytes of request bodies that the process holds: those still being read, and those that may have to be sent
 * again (ruling R18). Without a limit, slow clients could fill the memory with bodies that never end.
 */
export class Bodies {
  /** Bytes of all requests together. */
  held = 0
  readonly #bytesMax: number
  readonly #ofAccount = new Tally()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Starts the count of one request of an account. */
  enter(accountId: string): BodyShare {
    return new BodyShare(this, accountId)
  }

  /** @returns false if that is more memory than is left */
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

/** The counted bytes of one request's body. They are given back at the end of the scope unless `handOn` was called. */
export class BodyShare implements Disposable {
  readonly #bodies: Bodies
  readonly #accountId: string
  #taken = 0
  #isHandedOn = false

  constructor(bodies: Bodies, accountId: string) {
    this.#bodies = bodies
    this.#accountId = accountId
  }

  /** @returns false if that is more memory than is left */
  take(bytes: number): boolean {
    const isTaken = this.#bodies.take(this.#accountId, bytes)
    if (isTaken) this.#taken += bytes
    return isTaken
  }

  /** Gives the bytes back. Further calls do nothing. */
  release(): void {
    if (this.#taken > 0) this.#bodies.giveBack(this.#accountId, this.#taken)
    this.#taken = 0
  }

  /** Hands the share to a new owner, who must release it; the end of this scope does not any more. */
  handOn(): BodyShare {
    this.#isHandedOn = true
    return this
  }

  [Symbol.dispose](): void {
    if (!this.#isHandedOn) this.release()
  }
}

/** The error for a body that is larger than allowed (spec 8). */
export function tooLarge(bodyBytesMax: number): GatewayError {
  const megabytes = bodyBytesMax / 1_048_576
  const about = megabytes < 1 ? '' : ` (${Number(megabytes.toFixed(1))} MB)`
  return new GatewayError(
    'request_too_large',
    `The request body is larger than ${bodyBytesMax} bytes${about}: send less, for instance smaller images.`,
  )
}
