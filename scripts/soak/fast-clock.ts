/*
 * Makes the clocks of a process and of its threads run faster, before any other module reads one (`--import`). Timers
 * of a second and more are shortened by the same factor. Shorter timers stay, as their callbacks only look at a clock.
 * SOAK_SPEED is the factor. SOAK_FROM_MS is the Unix time at which the fast clocks start, in all threads.
 */
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'

const [speed, fromMs] = [Number(process.env['SOAK_SPEED']), Number(process.env['SOAK_FROM_MS'])]
const timerMin = 1_000

const steadyMs = performance.now.bind(performance)
const upFromMs = os.uptime() * 1_000 - passedMs()
const [runLater, runOften] = [setTimeout, setInterval]

/** The real monotonic time, in ms. The process itself does not work faster. */
export const trueMs = steadyMs

Date.now = () => Math.floor(fromMs + passedMs() * speed)
performance.now = () => steadyMs() * speed
os.uptime = () => (upFromMs + passedMs() * speed) / 1_000
globalThis.setTimeout = shorten(runLater)
globalThis.setInterval = shorten(runOften)
syncBuiltinESMExports()

/** Returns the real time since the fast clocks started, in ms. */
function passedMs(): number {
  return performance.timeOrigin + steadyMs() - fromMs
}

function shorten<T extends typeof setTimeout | typeof setInterval>(start: T): T {
  const shortened = (run: () => void, ms = 0, ...rest: []) => start(run, ms < timerMin ? ms : ms / speed, ...rest)
  return Object.assign(shortened, start) as unknown as T
}
