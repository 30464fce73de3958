/** The shortest time between the starts of two reloads, in ms. */
export const reloadsApartMs = 1_000

type ReloadParts = {
  /** Reloads once. @param asked the number of signals that it answers */
  reload(asked: number): void
  /** Monotonic milliseconds. */
  clockMs(): number
  /** Calls back after this many milliseconds. */
  after(ms: number, act: () => void): void
}

/**
 * Answers signals with reloads (B3). A signal after a quiet time is answered at once. Signals within `reloadsApartMs`
 * of the start of a reload share one reload, when that time is over. It begins after the last of them, so it reads the
 * file as it was then. A reload stops all requests for tens of milliseconds, so a flood of signals must not cause as
 * many reloads.
 * @returns a function to call with each signal
 */
export function createReloads({ reload, clockMs, after }: ReloadParts): () => void {
  let startedMs = Number.NEGATIVE_INFINITY
  /** The number of signals that wait for a reload. If there are any, a reload is scheduled. */
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
