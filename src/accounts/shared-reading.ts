import { StoreSilent } from './account.ts'

type SharedReadingOptions = {
  /** Reads new data from the store. When it resolves, everything that was committed before the call is in memory. */
  read(): Promise<void>
  /** A monotonic clock in ms. */
  clockMs: () => number
  /** How long a caller waits, in ms. */
  patienceMs?: number
  /**
   * The shortest time between the starts of two readings, in ms. Without this time, requests with invented keys could
   * keep the store busy (ruling R16).
   */
  apartMs?: number
}

/** How long a caller waits for a shared reading by default, in ms. */
export const readingPatienceMs = 1_000

/**
 * Lets callers share readings of the store. At most one reading runs. A caller that arrives during a reading waits for
 * the next reading, because this caller may need newer data.
 * @returns a function that requests a reading; it throws StoreSilent if none completes in time
 */
export function shareReadings({ read, clockMs, patienceMs = readingPatienceMs, apartMs = 5 }: SharedReadingOptions) {
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
