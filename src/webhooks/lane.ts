/** So many messages wait for a receiver, the one that it is being told among them: none waits longer than a lease lasts. */
const waitingMax = 10

/** Who is behind by more is told the others so much later, in ms. */
const behindMs = 5_000

/**
 * What one receiver is told: one message after the other, in the order in which they came. Nobody waits for it but its own
 * messages, and of those few: the others stay where they are kept.
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

  /** @returns what telling it comes to; where too many wait it is not told, and is to come again in so many ms */
  enter<T>(tell: () => Promise<T>): Promise<T> | { comeInMs: number } {
    const nowMs = this.#clockMs()
    const leftMs = this.#behindUntilMs - nowMs
    // Whoever comes behind one that was sent away is sent away too: they come together, the oldest first.
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
