import { findWrongMoment } from '../../accounts/chain.ts'
import { type ClockFacts, confirmOperation, datedMax, isClockRight } from '../../accounts/clock.ts'
import type { Moved } from '../files/store-error.ts'
import { type Dialect, insert } from './dialect.ts'
import { ask, askOne, execute, rowsOf, type StoreStep } from './step.ts'

/** Reads where the store was moved to. Returns undefined if it was not moved. */
export function* readMoved(dialect: Dialect): StoreStep<Moved | undefined> {
  const row = yield* askOne(dialect, () => `SELECT to_store, moved_ms FROM ${dialect.schema}.moved`)
  return row && { to: row['to_store'] as string, movedMs: Number(row['moved_ms']) }
}

/** Checks the moment of the last head (a digest of all entries). @param place the ledger's name @returns findings */
export function* checkMoment(dialect: Dialect, place: string): StoreStep<string[]> {
  const { moment, now } = yield* readMoment(dialect)
  return [...findWrongMoment(place, moment ?? undefined, Number(now))]
}

/**
 * Fixes the moment of a head (a digest of all entries), and returns it. Every later entry is dated after this moment
 * (ruling C15). The moment is now, or the time of the newest entry if that is earlier, because the clock may be wrong
 * (ruling Y15). The caller holds the lock that keeps posts out.
 */
export function* fixMoment(dialect: Dialect): StoreStep<number> {
  const { now } = yield* readMoment(dialect)
  const { newest } = (yield* askOne(dialect, () => `SELECT ${selectNewest(dialect)} AS newest`))!
  return yield* raiseMoment(dialect, Math.min(Number(now), Number(newest ?? 0)))
}

/** Like `fixMoment`, but a moved store keeps the moment of its last head. Later entries are in another store. */
export function* takeMoment(dialect: Dialect): StoreStep<number> {
  if (!(yield* readMoved(dialect))) return yield* fixMoment(dialect)
  return Number((yield* readMoment(dialect)).moment ?? 0)
}

/**
 * SQL: the posting time of the newest entry. If a correction names the entry with the highest time, that time is wrong,
 * and millions of others may be wrong too. Then only the last entry of each account is compared. If it is a correction,
 * the time of its creation is used.
 */
function selectNewest({ schema, ends }: Dialect): string {
  return `coalesce((SELECT e.posted_ms FROM (SELECT * FROM ${schema}.entries ORDER BY posted_ms DESC LIMIT 1) e WHERE NOT EXISTS (
      SELECT 1 FROM ${schema}.shifted s WHERE s.account_id = e.account_id AND s.seq = e.seq)),
    (SELECT max(CASE WHEN e.kind = 'credit' AND e.effective IS NOT NULL THEN e.created_ms ELSE e.posted_ms END)
      FROM ${ends} a JOIN ${schema}.entries e ON e.account_id = a.account_id AND e.seq = a.seq))`
}

/** Moves the moment of the last head (a digest of all entries) back to `ms`, if the moment is later than `ms`. */
export function lowerMoment(dialect: Dialect, ms: number): StoreStep<void> {
  const { schema } = dialect
  return execute(dialect, (put) => `UPDATE ${schema}.head SET moment_ms = ${put(ms)} WHERE moment_ms > ${put(ms)}`)
}

/**
 * Closes a month that is over: moves the last head (a digest of all entries) to the month's last moment. So all later
 * entries are dated after the month, even if a clock is set back. While the clock is in doubt, the month is closed only
 * if an entry has a later time. Otherwise a fast clock could date the entries of all accounts ahead.
 * @param untilMs the first moment after the month
 * @param expectedMs the time that the store's clock should show; see `isClockRight`
 * @returns whether the month is closed
 */
export function* closeMonth(dialect: Dialect, untilMs: number, expectedMs?: number): StoreStep<boolean> {
  const { headLock } = dialect
  const clock = yield* readClock(dialect)
  if (!isClockRight(clock, expectedMs) && (clock.newestMs ?? 0) < untilMs) return false
  // Nothing is posted in a moved store.
  if (yield* readMoved(dialect)) return true
  if (headLock) yield* ask(dialect, () => headLock.alone)
  yield* raiseMoment(dialect, untilMs - 1)
  return true
}

/** If the moment of the last head (a digest of all entries) is before `ms`, moves it to `ms`. @returns the moment */
export function* raiseMoment(dialect: Dialect, ms: number): StoreStep<number> {
  const { moment } = yield* readMoment(dialect)
  if (moment !== null && moment >= BigInt(ms)) return Number(moment)
  if (moment === null) yield* rowsOf(insert(dialect, 'head', { moment_ms: ms }))
  else yield* ask(dialect, (put) => `UPDATE ${dialect.schema}.head SET moment_ms = ${put(ms)}`)
  return ms
}

function* readMoment(dialect: Dialect) {
  const row = yield* askOne(
    dialect,
    (put) => `SELECT ${dialect.now(put)} AS now, (SELECT moment_ms FROM ${dialect.schema}.head) AS moment`,
  )
  return row as { now: bigint | number; moment: bigint | null }
}

/** Reads the store's time, in Unix milliseconds. */
export function* readNowMs(dialect: Dialect): StoreStep<number> {
  return Number((yield* askOne(dialect, (put) => `SELECT ${dialect.now(put)} AS now`))!['now'])
}

/** Reads the store's time, the newest entry's posting time, and the operator's last confirmation of the clock (Y15). */
export function* readClock(dialect: Dialect, isWithConfirmed = true): StoreStep<ClockFacts> {
  const confirmed = `SELECT seq || ' ' || "after" FROM ${dialect.schema}.audit WHERE operation = '${confirmOperation}'
    ORDER BY seq DESC LIMIT 1`
  const facts = yield* askOne(
    dialect,
    (put) =>
      `SELECT ${dialect.now(put)} AS now, ${selectNewest(dialect)} AS newest${isWithConfirmed ? `, (${confirmed})` : ', NULL'} AS confirmed`,
  )
  const { now, newest } = facts!
  const newestMs = newest === null ? undefined : Math.min(Number(newest), datedMax)
  const [, seq, time = ''] = /^(\d+) .*"time":"([^"]+)"/.exec(`${facts!['confirmed']}`) ?? []
  const last = seq === undefined ? undefined : { seq: Number(seq), atMs: Date.parse(time) }
  return { nowMs: Number(now), newestMs, confirmed: last }
}
