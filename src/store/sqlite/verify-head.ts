import type { DatabaseSync } from 'node:sqlite'

/** A clock may have been wrong by hours when a head was taken, in ms. */
const aheadMax = 86_400_000

/** The last moment that has a date. */
const datedMax = 8_640_000_000_000_000

/**
 * The moment of the last head, behind which all is posted (ruling C15). Without it what is posted is not told apart from
 * what that head covered; with one far ahead all is dated behind that.
 */
export function* findWrongMoment(db: DatabaseSync, nowMs: number): Iterable<string> {
  const row = db.prepare('SELECT moment_ms FROM head').get()
  if (!row) {
    yield 'the file: the moment of its last head is missing: what is posted may fall among what that head covered'
    return
  }
  const moment = row.moment_ms as bigint
  if (moment <= nowMs + aheadMax) return
  const told = moment <= datedMax ? new Date(Number(moment)).toISOString() : `${moment} ms`
  yield `the file: its last head was taken at ${told}, and that is more than a day to come`
}
