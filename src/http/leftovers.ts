/** What is paced: a request whose rest nobody wants. */
export type Unwanted = { pause(): void; resume(): void }

/** Thrown away in one turn of the event loop, of all requests together. */
const bytesPerTurn = 524_288
/** A paused request still gets what was read for it meanwhile: so many pieces make about one turn. */
const requestsPerTurn = 8
/** Between two turns others have the loop; a quarter of a gigabyte a second is left. */
const pauseMs = 2

/**
 * Throws away what refused requests still send, a bounded piece of it in each turn: to read 5 MB is little for one, but
 * hundreds that are refused at once would keep the loop from those who pay (B6, B21).
 */
export class Leftovers {
  readonly #later: (run: () => void, pauseMs: number) => void
  readonly #waiting = new Set<Unwanted>()
  #left = bytesPerTurn
  #isScheduled = false

  constructor(later: (run: () => void, pauseMs: number) => void = setTimeout) {
    this.#later = later
  }

  /** Lets it flow, now or when others have had their turn. */
  start(request: Unwanted): void {
    if (this.#left > 0) request.resume()
    else this.#wait(request)
  }

  /** So many bytes of it were thrown away. */
  note(request: Unwanted, bytes: number): void {
    this.#left -= bytes
    if (this.#left <= 0) this.#wait(request)
    else this.#schedule()
  }

  /** It is over, or nobody waits for its rest any more. */
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

  /** Who has waited longest goes first, and behind all others when it has had its piece. */
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
