/** Upstreams that are read on at once for answers that are over for their clients: in all, and of one account (ruling C12). */
const readersMax = 200
const readersOfAccountMax = 20

/** The places of all that is read on. */
export type Readers = {
  readonly count: number
  /** Takes a place; false where none is free. */
  enter(accountId: string): boolean
  leave(accountId: string): void
}

export function createReaders(): Readers {
  let count = 0
  const ofAccount = new Map<string, number>()
  return {
    get count() {
      return count
    },
    enter(accountId) {
      const own = ofAccount.get(accountId) ?? 0
      if (count >= readersMax || own >= readersOfAccountMax) return false
      count++
      ofAccount.set(accountId, own + 1)
      return true
    },
    leave(accountId) {
      const own = ofAccount.get(accountId)! - 1
      count--
      if (own === 0) ofAccount.delete(accountId)
      else ofAccount.set(accountId, own)
    },
  }
}
