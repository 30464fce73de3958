const windowMs = 60_000
const shareOfTraffic = 0.1
/** So many are allowed in a minute however little is sent. */
const alwaysAllowed = 10

/**
 * How many requests of a minute may be second attempts: a tenth of what an upstream is sent, so that a failing one is not
 * asked twice as much for it (ruling U1). What it answers it bears: such an attempt is traffic like any other, or a backup
 * that is well would be kept from those whom the first upstream fails. The minute slides: the last one counts for the part
 * of it that is still in sight.
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

  /** How many more it bears now. */
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

  /** A second attempt was answered. */
  noteAnswered(): void {
    this.#turn()
    if (this.#retried > 0) this.#retried--
    else if (this.#retriedBefore > 0) this.#retriedBefore--
  }

  /** @returns how far into its window it is, in ms */
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
