import { uptime } from 'node:os'

/**
 * Creates a clock in milliseconds that never runs back, and that runs on during suspension. It follows `os.uptime()`,
 * so all threads and processes of a machine agree on it.
 *
 * On Linux `os.uptime()` reads a file, which takes 6 µs. So it is read at most once a second, and after a leap of the
 * wall clock. In between, `performance.now()` is used, which stops during suspension.
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
