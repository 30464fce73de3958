/** From the start of one reload to that of the next, at least. */
export const reloadsApartMs = 1_000

type ReloadParts = {
  /** One reload. @param asked how many signals it answers */
  reload(asked: number): void
  /** Monotonic milliseconds. */
  clockMs(): number
  /** Calls back after so many milliseconds. */
  after(ms: number, act: () => void): void
}

/**
 * Answers signals with reloads (B3). The first of a quiet time is answered at once. Those that come within `reloadsApartMs` of
 * the start of a reload get one together, when that time is over. It begins after the last of them, so it reads what the file
 * was when that one was sent. A reload takes tens of milliseconds of everybody's time, so a flood of signals must not mean as
 * many.
 * @returns to be called with each signal
 */
export function createReloads({ reload, clockMs, after }: ReloadParts): () => void {
  let startedMs = Number.NEGATIVE_INFINITY
  /** Signals that wait for a reload; while there are some, one is on its way. */
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
