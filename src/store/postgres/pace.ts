/** The shortest time between the beginnings of two calls, in ms: whatever one turn of the event loop brings goes together. */
const apartMinMs = 1

/** Calls begin so many times their own duration apart, up to a time in ms in which a request is not delayed noticeably. */
const [durations, apartMaxMs] = [8, 7]

/** A slow database gets one call at a time, up to this time in ms. A call that takes longer may be on a long way, so that others go beside it. */
const aloneMs = 25

/** The part of the newest call in the average. */
const newestShare = 0.1

/**
 * Spaces the calls of a desk, so that requests share them. A call costs the database four times as much as each request in
 * it (docs/scaling.md). The space follows the duration of the calls, so it grows as soon as the database is short of
 * processor. A request that comes when nothing was called lately is not delayed.
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

  /** The present time between the beginnings of two calls, in ms. */
  get spaceMs(): number {
    const tookMs = this.#tookMs
    return Math.max(apartMinMs, Math.min(apartMaxMs, durations * tookMs), Math.min(aloneMs, tookMs))
  }

  /** A call begins. @returns to be called when it was answered; not if it failed */
  begin(): () => void {
    const beganMs = this.#clockMs()
    this.#beganMs = beganMs
    return () => {
      // A call may have waited for a lock of one account, which is no reason to delay those of others for long.
      const tookMs = Math.min(aloneMs, this.#clockMs() - beganMs)
      this.#tookMs += newestShare * (tookMs - this.#tookMs)
    }
  }
}
