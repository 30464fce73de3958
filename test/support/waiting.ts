import { atEnd } from './at-end.ts'

/**
 * How long a test waits for an expected event before it fails, in ms. A machine with other work may be slow, and only a
 * failing test waits to the end.
 */
export const patienceMs = Number(process.env['TRIWIRE_TEST_PATIENCE_MS'] ?? 30_000)

const lookMs = 4

/** A long wait looks less often, because a look may be a request. So it ends later by this part of its time at most. */
const lateShare = 1 / 20

/** Waits until it is so. @throws when it does not become so, naming what was waited for */
export async function until(isSo: () => unknown, what = `${isSo}`): Promise<void> {
  await lookUntil(isSo, what, (waitedMs) => Math.max(lookMs, waitedMs * lateShare))
}

/**
 * Moves a gateway's clock until `isSo` returns true. After a peer has stopped reading, the kernel may take a few bytes
 * more much later, when it probes. Each time the wait begins anew, so one step of the clock is not enough.
 * @throws an error that names what was awaited
 */
export async function passUntil(gateway: { advance(ms: number): void }, isSo: () => unknown): Promise<void> {
  const pass = async () => {
    if (await isSo()) return true
    gateway.advance(1_000)
    return false
  }
  await lookUntil(pass, `${isSo}`, () => lookMs)
}

/** Waits until a number has begun to grow and then stays the same, as when a buffer is full. */
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

/** The value of a promise, if it comes in time. */
export async function within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not happen: ${what}`)), patienceMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Calls `act` again and again, until it is stopped or the test is over. */
export function repeat(act: () => void): { stop(): void } {
  const timer = setInterval(act, lookMs)
  const stop = () => clearInterval(timer)
  atEnd(stop)
  return { stop }
}

/** Lets promises settle and pending input be handled. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Lets the other parts of the process, and other processes, run. */
async function lookUntil(isSo: () => unknown, what: string, pauseMs: (waitedMs: number) => number): Promise<void> {
  const beganMs = performance.now()
  while (!(await isSo())) {
    const waitedMs = performance.now() - beganMs
    if (waitedMs > patienceMs) throw new Error(`it did not happen: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, pauseMs(waitedMs)))
  }
}
