import { type ClockFacts, confirmOperation, datedMax } from '../../accounts/clock.ts'
import type { Dialect } from './dialect.ts'
import { askOne, type StoreStep } from './step.ts'

/** Unix milliseconds by the clock of the store. */
export function* readNowMs(dialect: Dialect): StoreStep<number> {
  return Number((yield* askOne(dialect, (put) => `SELECT ${dialect.now(put)} AS now`))!['now'])
}

/** The time of the store, when its newest entry was posted, and what an operator confirmed last (ruling Y15). */
export function* readClock(dialect: Dialect): StoreStep<ClockFacts> {
  const { schema } = dialect
  const facts = yield* askOne(
    dialect,
    (put) => `SELECT ${dialect.now(put)} AS now, (SELECT max(posted_ms) FROM ${schema}.entries) AS newest,
      (SELECT seq || ' ' || "after" FROM ${schema}.audit WHERE operation = '${confirmOperation}'
        ORDER BY seq DESC LIMIT 1) AS confirmed`,
  )
  const { now, newest, confirmed } = facts!
  const newestMs = newest === null ? undefined : Math.min(Number(newest), datedMax)
  const [, seq, time = ''] = /^(\d+) .*"time":"([^"]+)"/.exec(`${confirmed}`) ?? []
  const last = seq === undefined ? undefined : { seq: Number(seq), atMs: Date.parse(time) }
  return { nowMs: Number(now), newestMs, confirmed: last }
}
