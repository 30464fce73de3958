import { datedMax } from '../clock.ts'

/** A clock may have been wrong by hours when a head was taken, in ms. */
const aheadMax = 86_400_000

/**
 * The moment of the last head, after which all later entries are posted (ruling C15). Without it, those entries cannot be
 * separated from the ones that the head covers. With one far ahead, all are dated after it.
 * @param place the ledger's name for people
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
