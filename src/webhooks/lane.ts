/** The most messages that wait for a receiver, the one being sent included. So none waits longer than a lease lasts. */
const waitingMax = 10

/** Messages that find the receiver's lane full are offered again after this time, in ms. */
const behindMs = 5_000

/**
 * Sends messages to one receiver, one after the other, in the order of their arrival. A slow receiver delays only its own
 * messages. Few of them wait here; the others stay in the store or in the queue.
 */
export class Lane {
  readonly #clockMs: () => number
  #last: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #behindUntilMs = Number.NEGATIVE_INFINITY

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** @returns the result of sending the message; if too many wait, the time after which to offer it again, in ms */
  enter<T>(tell: () => Promise<T>): Promise<T> | { comeInMs: number } {
    const nowMs = this.#clockMs()
    const leftMs = this.#behindUntilMs - nowMs
    // After one message is turned away, later ones are too, so that they return together, the oldest first.
    if (leftMs > 0) return { comeInMs: leftMs }
    if (this.#waiting >= waitingMax) {
      this.#behindUntilMs = nowMs + behindMs
      return { comeInMs: behindMs }
    }
    this.#waiting++
    const telling = this.#last.then(tell).finally(() => this.#waiting--)
    this.#last = telling.catch(() => {})
    return telling
  }
}
