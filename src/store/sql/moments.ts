import { findWrongMoment } from '../../accounts/chain.ts'
import { type ClockFacts, confirmOperation, datedMax } from '../../accounts/clock.ts'
import type { Moved } from '../files/store-error.ts'
import { type Dialect, insert } from './dialect.ts'
import { ask, askOne, execute, rowsOf, type StoreStep } from './step.ts'

/** @returns undefined for a store whose content is here. */
export function* readMoved(dialect: Dialect): StoreStep<Moved | undefined> {
  const row = yield* askOne(dialect, () => `SELECT to_store, moved_ms FROM ${dialect.schema}.moved`)
  return row && { to: row['to_store'] as string, movedMs: Number(row['moved_ms']) }
}

/** Findings about the moment of the last head. @param place the ledger's place, in words */
export function* checkMoment(dialect: Dialect, place: string): StoreStep<string[]> {
  const { moment, now } = yield* readMoment(dialect)
  return [...findWrongMoment(place, moment ?? undefined, Number(now))]
}

/**
 * Writes down the moment of a head that is taken now: all that is posted from here on is posted later (ruling C15). The moment is
 * the earlier of now and the newest entry, so no clock moves it ahead of the entries that it covers (ruling Y15). The caller
 * holds the lock by which no post is under way.
 */
export function* fixMoment(dialect: Dialect): StoreStep<number> {
  const { now } = yield* readMoment(dialect)
  const { newest } = (yield* askOne(dialect, () => `SELECT ${selectNewest(dialect)} AS newest`))!
  return yield* raiseMoment(dialect, Math.min(Number(now), Number(newest ?? 0)))
}

/** The same for a head that is made of a store. A store that was moved keeps its last moment, upon which its entries follow elsewhere. */
export function* takeMoment(dialect: Dialect): StoreStep<number> {
  if (!(yield* readMoved(dialect))) return yield* fixMoment(dialect)
  return Number((yield* readMoment(dialect)).moment ?? 0)
}

/**
 * When the newest entry was posted, or the last correction made: entries that it names were dated ahead. In SQL. If such an entry
 * is the newest, the ends of all accounts are read, for there may be millions of those entries.
 */
function selectNewest({ schema, ends }: Dialect): string {
  return `coalesce((SELECT e.posted_ms FROM (SELECT * FROM ${schema}.entries ORDER BY posted_ms DESC LIMIT 1) e WHERE NOT EXISTS (
      SELECT 1 FROM ${schema}.shifted s WHERE s.account_id = e.account_id AND s.seq = e.seq)),
    (SELECT max(CASE WHEN e.kind = 'credit' AND e.effective IS NOT NULL THEN e.created_ms ELSE e.posted_ms END)
      FROM ${ends} a JOIN ${schema}.entries e ON e.account_id = a.account_id AND e.seq = a.seq))`
}

/** The moment of the last head is not ahead of this time any more. */
export function lowerMoment(dialect: Dialect, ms: number): StoreStep<void> {
  const { schema } = dialect
  return execute(dialect, (put) => `UPDATE ${schema}.head SET moment_ms = ${put(ms)} WHERE moment_ms > ${put(ms)}`)
}

/** The moment never goes back. @returns the moment that is written down now. */
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

/** Unix milliseconds by the clock of the store. */
export function* readNowMs(dialect: Dialect): StoreStep<number> {
  return Number((yield* askOne(dialect, (put) => `SELECT ${dialect.now(put)} AS now`))!['now'])
}

/** The time of the store, when its newest entry was posted, and what an operator confirmed last (ruling Y15). */
export function* readClock(dialect: Dialect): StoreStep<ClockFacts> {
  const { schema } = dialect
  const facts = yield* askOne(
    dialect,
    (put) => `SELECT ${dialect.now(put)} AS now, ${selectNewest(dialect)} AS newest,
      (SELECT seq || ' ' || "after" FROM ${schema}.audit WHERE operation = '${confirmOperation}'
        ORDER BY seq DESC LIMIT 1) AS confirmed`,
  )
  const { now, newest, confirmed } = facts!
  const newestMs = newest === null ? undefined : Math.min(Number(newest), datedMax)
  const [, seq, time = ''] = /^(\d+) .*"time":"([^"]+)"/.exec(`${confirmed}`) ?? []
  const last = seq === undefined ? undefined : { seq: Number(seq), atMs: Date.parse(time) }
  return { nowMs: Number(now), newestMs, confirmed: last }
}
