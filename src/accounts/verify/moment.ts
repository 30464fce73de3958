import { datedMax } from '../clock.ts'

/** A clock may have been wrong by hours when a head was taken, in ms. */
const aheadMax = 86_400_000

/**
 * The moment of the last head, behind which all is posted (ruling C15). Without it what is posted is not told apart from
 * what that head covered; with one far ahead all is dated behind that.
 * @param place what people call where the ledger is.
 */
export function* findWrongMoment(place: string, momentMs: bigint | undefined, nowMs: number): Iterable<string> {
  if (momentMs === undefined) {
    yield `${place}: the moment of its last head is missing: what is posted may fall among what that head covered`
    return
  }
  if (momentMs <= nowMs + aheadMax) return
  const told = momentMs <= datedMax ? new Date(Number(momentMs)).toISOString() : `${momentMs} ms`
  yield `${place}: its last head was taken at ${told}, and that is more than a day to come`
}
