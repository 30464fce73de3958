/** A request whose rest is thrown away. */
export type Unwanted = { pause(): void; resume(): void }

/** Bytes of all requests together that are thrown away in one turn of the event loop. */
const bytesPerTurn = 524_288
/** Requests that are resumed in one turn. Each may bring one more piece after it is paused, so these fill about one turn. */
const requestsPerTurn = 8
/** Pause between two turns, in ms, for other work. It still allows a quarter of a gigabyte a second. */
const pauseMs = 2

/**
 * Throws away the rest of refused requests, with a limit for each turn of the event loop. Reading 5 MB is little work for one
 * request. Hundreds at the same time would keep the event loop from paid requests (B6, B21).
 */
export class Leftovers {
  readonly #later: (run: () => void, pauseMs: number) => void
  readonly #waiting = new Set<Unwanted>()
  #left = bytesPerTurn
  #isScheduled = false

  constructor(later: (run: () => void, pauseMs: number) => void = setTimeout) {
    this.#later = later
  }

  /** Begins to read the rest of a request, now or in a later turn. */
  start(request: Unwanted): void {
    if (this.#left > 0) request.resume()
    else this.#wait(request)
  }

  /** A number of bytes of the request was thrown away. */
  note(request: Unwanted, bytes: number): void {
    this.#left -= bytes
    if (this.#left <= 0) this.#wait(request)
    else this.#schedule()
  }

  /** The request is over, or its rest is not awaited any more. */
  stop(request: Unwanted): void {
    this.#waiting.delete(request)
  }

  #wait(request: Unwanted): void {
    request.pause()
    this.#waiting.add(request)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#later(() => this.#nextTurn(), pauseMs)
  }

  /** Resumes the requests that have waited longest. Each gets one piece, and then waits for another turn. */
  #nextTurn(): void {
    this.#isScheduled = false
    this.#left = bytesPerTurn
    let places = requestsPerTurn
    for (const request of this.#waiting) {
      if (places-- === 0) break
      this.#waiting.delete(request)
      request.resume()
    }
    if (this.#waiting.size > 0) this.#schedule()
  }
}
