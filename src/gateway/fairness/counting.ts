import { Tally } from './tally.ts'

/** Requests to the token counter at a time of one account (ruling R18). */
const atOnceMax = 2

/** What counting may cost while somebody who pays is served: so many bytes of bodies a second, and a largest one at once. */
const bytesPerSecond = 2 * 1_048_576
const bytesAtOnce = 5 * 1_048_576

/**
 * Who may count tokens now. The counter is free and its work is not: a body of 5 MB holds the loop for tens of
 * milliseconds, so it makes way for all that pays (ruling R18, B6).
 */
export type Counting = {
  /** Takes one of the account's places; undefined where both are taken. To be disposed of at the end. */
  enter(accountId: string): Disposable | undefined
  /** @returns false where a body of so many bytes would slow those who pay. */
  mayCount(bytes: number): boolean
}

/** @param clockMs monotonic; isServing whether anybody who pays is being answered */
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
      // One that is larger than all that counts at once, where the limits allow it, has its turn when nothing else had one.
      if (left < Math.min(bytes, bytesAtOnce) && isServing()) return false
      left = Math.max(0, left - bytes)
      return true
    },
  }
}
