import { StoreSilent } from './account.ts'

export type SharedReadingOptions = {
  /** Reads from the store what is new in it. What was committed before the call is known when it resolves. */
  read(): Promise<void>
  /** Monotonic. */
  clockMs: () => number
  /** How long anybody waits. */
  patienceMs?: number
  /** Readings begin at least so far apart, whoever asks: keys that nobody made must not keep a store busy (ruling R16). */
  apartMs?: number
}

/**
 * One reading of the store for all who need one now. At most one is under way; who comes after it began waits for the next,
 * since what it looks for may be younger than that reading.
 * @returns asks for a reading; it throws StoreSilent when none was had in time.
 */
export function shareReadings({ read, clockMs, patienceMs = 1_000, apartMs = 5 }: SharedReadingOptions) {
  let isReading = false
  let last: Promise<void> = Promise.resolve()
  let beganMs = Number.NEGATIVE_INFINITY
  let next: Promise<void> | undefined
  return (): Promise<void> => waitFor(join(), patienceMs)

  function join(): Promise<void> {
    if (next) return next
    if (!isReading && clockMs() - beganMs >= apartMs) return begin()
    next = last.then(pause).then(begin)
    return next
  }

  function pause(): Promise<void> | undefined {
    const restMs = beganMs + apartMs - clockMs()
    return restMs > 0 ? new Promise((resolve) => setTimeout(resolve, Math.ceil(restMs))) : undefined
  }

  function begin(): Promise<void> {
    next = undefined
    isReading = true
    beganMs = clockMs()
    const reading = read()
    last = reading
      .catch(() => {})
      .then(() => {
        isReading = false
      })
    return reading
  }
}

function waitFor(reading: Promise<void>, patienceMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const timer = setTimeout(() => reject(new StoreSilent('the store does not answer')), patienceMs)
  reading.then(resolve, reject)
  return promise.finally(() => clearTimeout(timer))
}
