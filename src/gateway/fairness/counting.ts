import { Tally } from './tally.ts'

/** The largest number of token counts of one account at a time (ruling R18). */
const atOnceMax = 2

/** The allowance for counting while paid requests are served: bytes of bodies a second, and the most that can be saved up. */
const bytesPerSecond = 2 * 1_048_576
const bytesAtOnce = 5 * 1_048_576

/**
 * Decides whether tokens may be counted now. Counting is free for the client but not for us: a body of 5 MB holds the event
 * loop for tens of milliseconds. So it gives way to all paid requests (ruling R18, B6).
 */
export type Counting = {
  /** Takes one of the account's places, until it is disposed of. @returns undefined if no place is free */
  enter(accountId: string): Disposable | undefined
  /** @returns false if counting a body of this size would slow paid requests down */
  mayCount(bytes: number): boolean
}

/** @param clockMs monotonic. @param isServing whether any paid request is being answered */
export function createCounting(clockMs: () => number, isServing: () => boolean): Counting {
  const counting = new Tally()
  let left = bytesAtOnce
  let sinceMs = clockMs()
  return {
    enter(accountId) {
      if (counting.of(accountId) >= atOnceMax) return undefined
      counting.add(accountId, 1)
      return { [Symbol.dispose]: () => counting.add(accountId, -1) }
    },
    mayCount(bytes) {
      const nowMs = clockMs()
      left = Math.min(bytesAtOnce, left + ((nowMs - sinceMs) / 1000) * bytesPerSecond)
      sinceMs = nowMs
      // A body larger than `bytesAtOnce` may be counted when the whole allowance is left, that is after a quiet time.
      if (left < Math.min(bytes, bytesAtOnce) && isServing()) return false
      left = Math.max(0, left - bytes)
      return true
    },
  }
}
