import { atEnd } from './at-end.ts'

/**
 * How long a test waits for an expected event before it fails, in ms. It is long, because a busy machine may be slow,
 * and only a failing test waits that long.
 */
export const patienceMs = Number(process.env['TRIWIRE_TEST_PATIENCE_MS'] ?? 30_000)

const lookMs = 4

/** A long wait checks less often, because a check may be a request. It ends late by at most this share of it. */
const lateShare = 1 / 20

/** Waits until `isSo` returns a truthy value. @throws Error with `what` after `patienceMs` */
export async function until(isSo: () => unknown, what = `${isSo}`): Promise<void> {
  await lookUntil(isSo, what, (waitedMs) => Math.max(lookMs, waitedMs * lateShare))
}

/**
 * Moves a gateway's clock until `isSo` returns true. One step is not enough: when a peer has stopped reading, the
 * kernel may still accept a few bytes later, when it probes. Then the gateway's wait begins again.
 * @throws Error that names the condition
 */
export async function passUntil(gateway: { advance(ms: number): void }, isSo: () => unknown): Promise<void> {
  const pass = async () => {
    if (await isSo()) return true
    gateway.advance(1_000)
    return false
  }
  await lookUntil(pass, `${isSo}`, () => lookMs)
}

/** Waits until a number has begun to grow and then stays the same, for example when a buffer is full. */
export async function untilStill(count: () => number): Promise<void> {
  let before = 0
  let looks = 0
  const isStill = () => {
    const now = count()
    looks = now > 0 && now === before ? looks + 1 : 0
    before = now
    return looks === 50
  }
  await lookUntil(isStill, 'nothing moves any more', () => lookMs)
}

/** Returns the value of a promise. @throws Error with `what` after `patienceMs` */
export async function within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not happen: ${what}`)), patienceMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Calls `act` repeatedly, until it is stopped or the test ends. */
export function repeat(act: () => void): { stop(): void } {
  const timer = setInterval(act, lookMs)
  const stop = () => clearInterval(timer)
  atEnd(stop)
  return { stop }
}

/** Waits one turn of the event loop, so that promises settle and pending input is handled. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Checks a condition repeatedly. Between checks, other parts of the process and other processes run. */
async function lookUntil(isSo: () => unknown, what: string, pauseMs: (waitedMs: number) => number): Promise<void> {
  const beganMs = performance.now()
  while (!(await isSo())) {
    const waitedMs = performance.now() - beganMs
    if (waitedMs > patienceMs) throw new Error(`it did not happen: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs(waitedMs)))
  }
}
