/** The shortest time between the starts of two reloads, in ms. */
export const reloadsApartMs = 1_000

type ReloadParts = {
  /** Reloads once. @param asked the number of signals that this reload answers */
  reload(asked: number): void
  /** A monotonic clock, in ms. */
  clockMs(): number
  /** Calls a function after this many milliseconds. */
  after(ms: number, act: () => void): void
}

/**
 * Answers signals with reloads (B3). A signal after a quiet time is answered at once. Further signals within
 * `reloadsApartMs` share one more reload, which begins when that time is over. This reload reads the newest file. Each
 * reload blocks all requests for tens of milliseconds.
 * @returns a function to call with each signal
 */
export function createReloads({ reload, clockMs, after }: ReloadParts): () => void {
  let startedMs = Number.NEGATIVE_INFINITY
  /** The number of signals that wait for a reload. While it is above 0, a reload is scheduled. */
  let waiting = 0
  return () => {
    if (++waiting > 1) return
    const leftMs = startedMs + reloadsApartMs - clockMs()
    if (leftMs > 0) after(leftMs, run)
    else run()
  }

  function run(): void {
    startedMs = clockMs()
    const asked = waiting
    waiting = 0
    reload(asked)
  }
}
