import { Tally } from './tally.ts'

/** The most upstreams that are read on at the same time, in all and of one account (ruling C12). */
const readersMax = 200
const readersOfAccountMax = 20

/** The places for upstreams that are read on. */
export type Readers = {
  readonly count: number
  /** Takes a place. @returns false if none is free */
  enter(accountId: string): boolean
  leave(accountId: string): void
}

export function createReaders(): Readers {
  let count = 0
  const ofAccount = new Tally()
  return {
    get count() {
      return count
    },
    enter(accountId) {
      if (count >= readersMax || ofAccount.of(accountId) >= readersOfAccountMax) return false
      count++
      ofAccount.add(accountId, 1)
      return true
    },
    leave(accountId) {
      count--
      ofAccount.add(accountId, -1)
    },
  }
}
