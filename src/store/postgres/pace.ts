/** The shortest time between the starts of two calls, in ms. Requests of one turn of the event loop share a call. */
const apartMinMs = 1

/**
 * The time between the starts of two calls is `durations` times the duration of a call, but at most `apartMaxMs`, which
 * clients do not notice. If a call takes longer than `apartMaxMs`, the rule of `aloneMs` applies.
 */
const [durations, apartMaxMs] = [8, 7]

/**
 * The next call starts after the usual duration of a call, but at the latest after this time, in ms. So a slow database
 * gets one call at a time. If only the network is slow, calls may overlap.
 */
const aloneMs = 25

/**
 * The delay of a call is the time by which it takes longer than the shortest recent calls. A delay shows that the
 * database is short of processor time. The time between calls is then `busyDelays` times the average delay, but at most
 * `aloneMs`. This applies only if at least `gatheredMin` requests come in that time, since waiting for fewer requests
 * would cost more time than it spares.
 */
const [busyDelays, gatheredMin] = [15, 4]

/** The weight of the newest call in the averages. */
const newestShare = 0.1

/** After a longer call, the remembered shortest duration grows by this share of the difference. */
const longerShare = 0.002

/** A longer time between two calls counts in the average as this time, in ms. */
const pauseMs = 1_000

/**
 * Delays the calls of a desk (a part of the store's thread), so that several requests share one call. A call costs the
 * database ten times as much as a request in it (docs/scaling.md). Longer calls are further apart, so a database that
 * lacks processor time gets fewer. A request is not delayed if no call was made lately.
 */
export class Pace {
  readonly #clockMs: () => number
  #beganMs = Number.NEGATIVE_INFINITY
  #tookMs = 0
  #shortestMs = Number.POSITIVE_INFINITY
  /** The average number of requests in a call, and the average time between the starts of two calls, in ms. */
  readonly #came = { requests: 0, apartMs: pauseMs }

  /** Creates the pace. @param clockMs returns a monotonic time in ms */
  constructor(clockMs: () => number) {
    this.#clockMs = clockMs
  }

  /** The time until the next call may begin, in ms; 0 if it may begin now. */
  get waitMs(): number {
    return Math.max(0, this.#beganMs + this.spaceMs - this.#clockMs())
  }

  /** The current time between the starts of two calls, in ms. */
  get spaceMs(): number {
    const tookMs = this.#tookMs
    const { requests, apartMs } = this.#came
    const busyMs = Math.min(aloneMs, busyDelays * Math.max(0, tookMs - this.#shortestMs))
    const isBusy = busyMs * requests >= gatheredMin * apartMs
    return Math.max(apartMinMs, Math.min(apartMaxMs, durations * tookMs), isBusy ? busyMs : Math.min(aloneMs, tookMs))
  }

  /**
   * Notes the start of a call.
   * @param requests the number of requests in the call
   * @returns a function for the end of the call. Call it when the answer comes, but not after a failure.
   */
  begin(requests: number): () => void {
    const beganMs = this.#clockMs()
    const came = this.#came
    came.requests += newestShare * (requests - came.requests)
    came.apartMs += newestShare * (Math.min(pauseMs, beganMs - this.#beganMs) - came.apartMs)
    this.#beganMs = beganMs
    return () => {
      // A call may wait long for the lock of one account. The measured time is limited, so that such a call delays
      // calls of other accounts only a little.
      const tookMs = Math.min(aloneMs, this.#clockMs() - beganMs)
      this.#tookMs += newestShare * (tookMs - this.#tookMs)
      this.#shortestMs = Math.min(tookMs, this.#shortestMs)
      this.#shortestMs += longerShare * (tookMs - this.#shortestMs)
    }
  }
}
