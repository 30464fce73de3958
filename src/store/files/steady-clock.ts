import { uptime } from 'node:os'

/**
 * Milliseconds that never run back and count suspension: `os.uptime()`, the same in all threads and processes of a machine.
 * On Linux that reads a file (6 µs). So `performance.now()`, which stands still while the machine sleeps, fills the time
 * between two readings. They are a second apart, or less if the wall clock leaps.
 */
export function createSteadyClock(): () => number {
  let [readMs, baseMs, lagMs] = [Number.NEGATIVE_INFINITY, 0, 0]
  return () => {
    const nowMs = performance.now()
    const wallLagMs = Date.now() - nowMs
    if (nowMs - readMs > 1_000 || Math.abs(wallLagMs - lagMs) > 500)
      [readMs, baseMs, lagMs] = [nowMs, uptime() * 1_000 - nowMs, wallLagMs]
    return baseMs + nowMs
  }
}
