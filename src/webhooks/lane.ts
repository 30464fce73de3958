/** The most messages that wait for a receiver, the one being sent among them. So none waits longer than a lease lasts. */
const waitingMax = 10

/** The other messages of a receiver with more than that come again so much later, in ms. */
const behindMs = 5_000

/**
 * Sends messages to one receiver, one after the other, in the order in which they came. A slow receiver delays only its own
 * messages. Few of them wait here; the others stay where they are kept.
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

  /** @returns the result of sending it. If too many wait, it is not sent, and is to come again in so many ms. */
  enter<T>(tell: () => Promise<T>): Promise<T> | { comeInMs: number } {
    const nowMs = this.#clockMs()
    const leftMs = this.#behindUntilMs - nowMs
    // After one message was sent away, later ones are too, so that they come again together, the oldest first.
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
