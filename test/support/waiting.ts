import { atEnd } from './at-end.ts'

/**
 * How long a test waits for what must happen before it fails. On a machine with other work things take long, and only a
 * failing test waits to the end.
 */
export const patienceMs = Number(process.env['TRIWIRE_TEST_PATIENCE_MS'] ?? 30_000)

const lookMs = 4

/** Waits until it is so. @throws when it does not become so, naming what was waited for */
export async function until(isSo: () => unknown, what = `${isSo}`): Promise<void> {
  const deadline = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`it did not happen: ${what}`)
    await moment()
  }
}

/**
 * Lets a gateway's time pass until it is so. Where a peer has stopped reading, the kernel may take a few bytes more for
 * it a good while later, when it probes, and each such time begins the wait anew: one step of the clock is not enough.
 * @throws when it does not become so, naming what was waited for
 */
export async function passUntil(gateway: { advance(ms: number): void }, isSo: () => unknown): Promise<void> {
  await until(async () => {
    if (await isSo()) return true
    gateway.advance(1_000)
    return false
  }, `${isSo}`)
}

/** Waits until a number has begun to grow and stands still: what fills up by itself is full. */
export async function untilStill(count: () => number): Promise<void> {
  let before = 0
  let looks = 0
  await until(() => {
    const now = count()
    looks = now > 0 && now === before ? looks + 1 : 0
    before = now
    return looks === 50
  }, 'nothing moves any more')
}

/** What a promise brings, if it does so in time. */
export async function within<Value>(promise: Promise<Value>, what: string): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not happen: ${what}`)), patienceMs)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** Does something again and again, as a chatty side does, until it is stopped or the test is over. */
export function repeat(act: () => void): { stop(): void } {
  const timer = setInterval(act, lookMs)
  const stop = () => clearInterval(timer)
  atEnd(stop)
  return { stop }
}

/** Lets promises settle, and what has come in be heard. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** Lets the other parts of the process, and other processes, do something. */
function moment(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, lookMs))
}
