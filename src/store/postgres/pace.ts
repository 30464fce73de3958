/** The shortest time between the starts of two calls, in ms. Requests of one turn of the event loop share a call. */
const apartMinMs = 1

/** Two calls start `durations` times their duration apart, but at most `apartMaxMs`, which clients do not notice. */
const [durations, apartMaxMs] = [8, 7]

/**
 * If calls take up to this time, in ms, they run one at a time, because the database is slow. If a call takes longer,
 * the network may be slow, so other calls start before it ends.
 */
const aloneMs = 25

/** The weight of the newest call in the average duration. */
const newestShare = 0.1

/**
 * Delays the calls of a desk (a part of the store's thread), so that requests share them. A call costs the database
 * four times as much as each request in it (docs/scaling.md). The time between calls follows their duration, so it
 * grows if the database lacks processor time. A request is not delayed if no call was made lately.
 */
export class Pace {
  readonly #clockMs: () => number
  #beganMs = Number.NEGATIVE_INFINITY
  #tookMs = 0

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** The time until the next call may begin, in ms; 0: now. */
  get waitMs(): number {
    return Math.max(0, this.#beganMs + this.spaceMs - this.#clockMs())
  }

  /** The current time between the starts of two calls, in ms. */
  get spaceMs(): number {
    const tookMs = this.#tookMs
    return Math.max(apartMinMs, Math.min(apartMaxMs, durations * tookMs), Math.min(aloneMs, tookMs))
  }

  /** Notes the start of a call. @returns a function to call when the answer comes, but not after a failure */
  begin(): () => void {
    const beganMs = this.#clockMs()
    this.#beganMs = beganMs
    return () => {
      // The call may have waited for a lock of one account. Calls of other accounts must not be delayed long for that.
      const tookMs = Math.min(aloneMs, this.#clockMs() - beganMs)
      this.#tookMs += newestShare * (tookMs - this.#tookMs)
    }
  }
}
