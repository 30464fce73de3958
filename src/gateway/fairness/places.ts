import { GatewayError } from '../../errors.ts'

/** Keeps a number for each account. A number of 0 takes no memory. */
class Tally {
  readonly #numbers = new Map<string, number>()

  of(accountId: string): number {
    return this.#numbers.get(accountId) ?? 0
  }

  /** Adds `change` to the number that is kept for an account. The sum must not become negative. */
  add(accountId: string, change: number): void {
    const left = this.of(accountId) + change
    if (left === 0) this.#numbers.delete(accountId)
    else this.#numbers.set(accountId, left)
  }
}

/** The most upstreams that are read for their usage figures at one time, for all accounts and for one account (C12). */
const readersMax = 200
const readersOfAccountMax = 20

/** Limits the upstreams that are still read, for their usage figures, after the client's answer is over. */
export class Readers {
  count = 0
  readonly #ofAccount = new Tally()

  /** Takes a place to continue reading an upstream. @returns false if no place is free for this account */
  enter(accountId: string): boolean {
    if (this.count >= readersMax || this.#ofAccount.of(accountId) >= readersOfAccountMax) return false
    this.count++
    this.#ofAccount.add(accountId, 1)
    return true
  }

  leave(accountId: string): void {
    this.count--
    this.#ofAccount.add(accountId, -1)
  }
}

/** The largest number of requests for a token count that one account may run at a time (ruling R18). */
const countsAtOnceMax = 2

/**
 * While paid requests are served, tokens of bodies are counted only within an allowance of bytes. The allowance grows
 * by `bytesPerSecond`. It is never more than `bytesAtOnce`.
 */
const bytesPerSecond = 2 * 1_048_576
const bytesAtOnce = 5 * 1_048_576

export type Counting = ReturnType<typeof createCounting>

/**
 * Decides whether tokens may be counted now. Counting is free for the client, but a body of 5 MB blocks the event loop
 * for tens of milliseconds. So counting gives way to all paid requests (ruling R18, B6).
 * @param clockMs monotonic. @param isServing whether any paid request is being answered
 */
export function createCounting(clockMs: () => number, isServing: () => boolean) {
  const counting = new Tally()
  let left = bytesAtOnce
  let sinceMs = clockMs()
  return {
    /**
     * Takes one of the `countsAtOnceMax` places of the account, until the returned object is disposed of. @returns
     * undefined if no place is free
     */
    enter(accountId: string): Disposable | undefined {
      if (counting.of(accountId) >= countsAtOnceMax) return undefined
      counting.add(accountId, 1)
      return { [Symbol.dispose]: () => counting.add(accountId, -1) }
    },
    /** Whether tokens of a body may be counted now. @returns false if that would slow paid requests down */
    mayCount(bytes: number): boolean {
      const nowMs = clockMs()
      left = Math.min(bytesAtOnce, left + ((nowMs - sinceMs) / 1000) * bytesPerSecond)
      sinceMs = nowMs
      // A body larger than `bytesAtOnce` needs the whole allowance. The allowance is whole only some time after the
      // last count.
      if (left < Math.min(bytes, bytesAtOnce) && isServing()) return false
      left = Math.max(0, left - bytes)
      return true
    },
  }
}

/** The share of the memory for bodies that one account may hold, so that no account can fill it alone. */
const shareOfAccount = 0.25

/**
 * Counts the bytes of request bodies that the process holds, because they are still being read or may have to be sent
 * again (ruling R18). Without a limit, slow clients could fill the memory with bodies that never end.
 */
export class Bodies {
  /** The bytes of the bodies of all requests together. */
  held = 0
  readonly #bytesMax: number
  readonly #ofAccount = new Tally()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  enter(accountId: string): BodyShare {
    return new BodyShare(this, accountId)
  }

  /** Counts bytes of a body. @returns false if all bodies, or those of the account, would take too much memory */
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

  /** Counts bytes of the body. @returns false if the account or the process does not have that much memory left */
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

  /** Hands the share to a new owner, who must release it. The `dispose` of the old owner then does nothing. */
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

/** The most bytes that may arrive for all streams in one turn of the ticker. Four turns a second make 8 MiB. */
const turnBytes = 2 * 1_048_576

/**
 * The request bytes that are searched for echoes in one turn of the ticker, on average. After a larger request, the
 * next turns get less. The search of this many bytes takes 8 ms, which is 3 % of a turn.
 */
const searchedBytes = 524_288

/** Each stream may bring this many bytes in a turn of the ticker. The fastest models write half as much. */
const shareMin = 16_384

/** A stream that is paused because it brought more than its share. */
export interface Held {
  /** Called in each turn during the pause. Resumes the stream if allowed. @returns false if the pause goes on */
  letOn(): boolean
}

/**
 * Shares out the work on streams. A stream that arrives as fast as the network allows would keep the event loop busy
 * and delay all others (B10). So each stream may bring a limited number of bytes (its share) in one turn of the ticker.
 * A stream that brings more waits until enough turns have passed. A model normally writes far less than the share.
 */
export class Flow {
  turn = 0
  /** Bytes that one stream may bring in this turn of the ticker. */
  share = turnBytes
  /** How many more request bytes may be searched in this turn. The search finds parts that an error repeats (CON-4). */
  searchable = searchedBytes
  #held: Held[] = []

  /** Keeps a paused stream. In each turn of the ticker, `tick` asks the stream whether it may go on. */
  hold(stream: Held): void {
    this.#held.push(stream)
  }

  /** Begins the next turn. @param streams the number of streams under way */
  tick(streams: number): void {
    this.turn++
    this.searchable = Math.min(searchedBytes, this.searchable + searchedBytes)
    this.share = Math.max(shareMin, Math.floor(turnBytes / Math.max(1, streams)))
    // A resumed stream can exceed its share again, and then calls `hold` during this loop.
    const before = this.#held
    this.#held = []
    for (const stream of before) if (!stream.letOn()) this.#held.push(stream)
  }
}
