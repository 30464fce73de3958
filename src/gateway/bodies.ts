import { Tally } from './tally.ts'

/** One account holds no more of what there is for all than this share of it: nobody fills the house alone. */
const shareOfAccount = 0.25

/**
 * The bytes of request bodies that the process holds: those that are still being read, and those that may have to be sent
 * once more (ruling R18). Without a bound slow senders could fill the memory with bodies that never end.
 */
export type Bodies = {
  /** In bytes, of all requests. */
  readonly held: number
  /** For one request of an account. */
  enter(accountId: string): BodyShare
}

/** The bytes of one request's body. Given back at the end of its scope, unless it was handed on. */
export type BodyShare = Disposable & {
  /** @returns false where there is no room for so many more. */
  take(bytes: number): boolean
  /** The body is let go. Again it does nothing. */
  release(): void
  /** Whoever gets it gives it back: the scope no longer does. */
  handOn(): BodyShare
}

export function createBodies(bytesMax: number): Bodies {
  let held = 0
  const ofAccount = new Tally()
  return {
    get held() {
      return held
    },
    enter(accountId) {
      let taken = 0
      let isHandedOn = false
      const share: BodyShare = {
        take(bytes) {
          const own = ofAccount.of(accountId) + bytes
          if (held + bytes > bytesMax || own > bytesMax * shareOfAccount) return false
          taken += bytes
          held += bytes
          ofAccount.add(accountId, bytes)
          return true
        },
        release() {
          held -= taken
          ofAccount.add(accountId, -taken)
          taken = 0
        },
        handOn() {
          isHandedOn = true
          return share
        },
        [Symbol.dispose]() {
          if (!isHandedOn) share.release()
        },
      }
      return share
    },
  }
}
