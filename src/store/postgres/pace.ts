/** The shortest time between the starts of two calls, in ms. Requests of one turn of the event loop share a call. */
const apartMinMs = 1

/**
 * The time between the starts of two calls is `durations` times the duration of a call, but at most `apartMaxMs`.
 * Clients do not notice so short a time. If a call takes longer than `apartMaxMs`, the rule of `aloneMs` applies.
 */
const [durations, apartMaxMs] = [8, 7]

/**
 * Calls of up to this duration, in ms, run one at a time, because a slow database may be the cause of their duration.
 * For longer calls the cause may be a slow network, so the next call starts before such a call ends.
 */
const aloneMs = 25

/**
 * The delay of a call is its duration beyond that of the shortest calls of late. Calls to a distant database are long,
 * but only a database that is short of processor time delays them. If at least `gatheredMin` requests come in
 * `busyDelays` times the average delay, calls are that far apart, but at most `aloneMs`. So a busy gateway makes fewer
 * calls, and each becomes shorter. With fewer requests such a wait would cost more time than it spares.
 */
const [busyDelays, gatheredMin] = [15, 4]

/** The weight of the newest call in the averages. */
const newestShare = 0.1

/** The weight of a longer call in the duration of the shortest calls of late. */
const longerShare = 0.002

/** The longest time between two calls that counts in the average, in ms. */
const pauseMs = 1_000

/**
 * Delays the calls of a desk (a part of the store's thread), so that several requests share one call. A call costs the
 * database ten times as much as each request in the call (docs/scaling.md). The time between calls follows their
 * duration, so it grows if the database lacks processor time. A request is not delayed if no call was made lately.
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
   * Notes the start of a call that carries so many requests.
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
