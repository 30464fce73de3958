const windowMs = 60_000
const shareOfTraffic = 0.1
/** The number of retries that is allowed in a minute even with little traffic. */
const alwaysAllowed = 10

/**
 * Limits the retries to an upstream to a tenth of its requests in a minute. Otherwise a failing upstream would get twice
 * the load (ruling U1). An answered retry does not count, so that a healthy backup can serve all requests that the first
 * upstream fails. The minute slides: the last one counts for the part of it that is less than a minute ago.
 */
export class RetryBudget {
  readonly #clockMs: () => number
  #sinceMs: number
  #sent = 0
  #retried = 0
  #sentBefore = 0
  #retriedBefore = 0

  /** @param clockMs monotonic */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
    this.#sinceMs = clockMs()
  }

  get mayRetry(): boolean {
    return this.left > 0
  }

  /** The number of retries that are allowed now. */
  get left(): number {
    const inSight = 1 - this.#turn() / windowMs
    const sent = this.#sent + this.#sentBefore * inSight
    const retried = this.#retried + this.#retriedBefore * inSight
    return Math.max(0, Math.floor(Math.max(alwaysAllowed, sent * shareOfTraffic) - retried))
  }

  note(isRetry: boolean): void {
    this.#turn()
    this.#sent++
    if (isRetry) this.#retried++
  }

  /** A retry was answered. */
  noteAnswered(): void {
    this.#turn()
    if (this.#retried > 0) this.#retried--
    else if (this.#retriedBefore > 0) this.#retriedBefore--
  }

  /** @returns the time since the window began, in ms */
  #turn(): number {
    const sinceMs = this.#clockMs() - this.#sinceMs
    if (sinceMs < windowMs) return sinceMs
    const isNext = sinceMs < 2 * windowMs
    this.#sentBefore = isNext ? this.#sent : 0
    this.#retriedBefore = isNext ? this.#retried : 0
    this.#sent = 0
    this.#retried = 0
    this.#sinceMs += Math.floor(sinceMs / windowMs) * windowMs
    return this.#clockMs() - this.#sinceMs
  }
}
