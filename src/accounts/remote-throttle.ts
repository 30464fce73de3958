import { createThrottle, type FailedAuth, ipKey, type Throttle, windowMs } from './limits.ts'
import type { ThrottleLimits } from './server-store.ts'

/** The failures of one address in its present window, counted over all servers, and the time until the window ends. */
export type CountedFailures = { count: number; endsInMs: number }

/**
 * Adds failures to the store's counts. Returns the new counts in the order of the failures. @throws if the store does
 * not answer in time
 */
type CountFailures = (failures: readonly (readonly [ipKey: string, count: number])[]) => Promise<CountedFailures[]>

/** The most addresses to remember that have exceeded the limit of failed authentications. */
const knownMax = 100_000

/** The shortest time between two calls to the store, in ms, however many authentications fail. */
const apartMs = 10

/**
 * Counts failed authentications over all servers of a store (ruling R4). One call to the store runs at a time. An
 * address over its limit needs no call until its window ends. While the store is silent, each server counts for itself.
 */
export function createRemoteThrottle(
  countFailures: CountFailures,
  { failedAuthPerMinute, clockMs }: ThrottleLimits,
): Throttle {
  const local = createThrottle({ limit: failedAuthPerMinute, windowMs, clockMs })
  /** The addresses over the limit, in the order in which they were found to be over it. */
  const over = new Map<string, { count: number; endsMs: number }>()
  let waiting = new Map<string, UncountedFailure[]>()
  let isCounting = false
  let isSilent = false
  return { isThrottled, fail }

  function isThrottled(ip: string): boolean {
    return findOver(ipKey(ip)) !== undefined || (isSilent && local.isThrottled(ip))
  }

  async function fail(ip: string): Promise<FailedAuth> {
    const key = ipKey(ip)
    const counted = local.fail(ip)
    const known = findOver(key)
    if (known) return throttled(known.endsMs - clockMs())
    const told = new Promise<FailedAuth>((resolve) => {
      const same = waiting.get(key)
      if (same) same.push({ counted, resolve })
      else waiting.set(key, [{ counted, resolve }])
    })
    if (!isCounting) void countAll()
    // If the last call to the store failed, the count of this server is returned at once, so that no client waits.
    return isSilent ? counted : told
  }

  async function countAll(): Promise<void> {
    isCounting = true
    await new Promise((resolve) => setImmediate(resolve))
    while (waiting.size > 0) {
      const failures = [...waiting].sort(([a], [b]) => (a < b ? -1 : 1))
      waiting = new Map()
      await countFailures(failures.map(([key, { length }]) => [key, length])).then(
        (told) => {
          isSilent = false
          for (const [index, [key, asked]] of failures.entries()) settle(key, asked, told[index]!)
        },
        () => {
          isSilent = true
          for (const [, asked] of failures) for (const { counted, resolve } of asked) resolve(counted)
        },
      )
      await new Promise((resolve) => setTimeout(resolve, apartMs))
    }
    isCounting = false
  }

  function settle(key: string, asked: readonly UncountedFailure[], { count, endsInMs }: CountedFailures): void {
    const limit = failedAuthPerMinute()
    if (count >= limit) remember(key, { count, endsMs: clockMs() + endsInMs })
    for (const [index, { resolve }] of asked.entries()) {
      const number = count - asked.length + index + 1
      resolve(number > limit ? throttled(endsInMs) : { throttled: false, retryAfterSeconds: 0 })
    }
  }

  function findOver(key: string): { endsMs: number } | undefined {
    const known = over.get(key)
    return known && known.count >= failedAuthPerMinute() && clockMs() < known.endsMs ? known : undefined
  }

  function remember(key: string, known: { count: number; endsMs: number }): void {
    over.delete(key)
    for (const [oldest, { endsMs }] of over) {
      if (clockMs() < endsMs && over.size < knownMax) break
      over.delete(oldest)
    }
    over.set(key, known)
  }
}

type UncountedFailure = { counted: FailedAuth; resolve(told: FailedAuth): void }

function throttled(endsInMs: number): FailedAuth {
  return { throttled: true, retryAfterSeconds: Math.max(1, Math.ceil(endsInMs / 1000)) }
}
