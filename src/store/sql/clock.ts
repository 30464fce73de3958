import { type ClockFacts, confirmOperation, datedMax } from '../../accounts/clock.ts'

/** @param schema of the tables. One row: when the newest entry was posted, and what an operator confirmed last (ruling Y15). */
export function selectClock(schema: string): string {
  return `SELECT (SELECT max(posted_ms) FROM ${schema}.entries) AS newest, (SELECT seq || ' ' || "after"
    FROM ${schema}.audit WHERE operation = '${confirmOperation}' ORDER BY seq DESC LIMIT 1) AS confirmed`
}

/** @param nowMs by the clock that dates the entries. */
export function readClock({ newest, confirmed }: Readonly<Record<string, unknown>>, nowMs: number): ClockFacts {
  const newestMs = newest === null ? undefined : Math.min(Number(newest), datedMax)
  const [, seq, time = ''] = /^(\d+) .*"time":"([^"]+)"/.exec(`${confirmed}`) ?? []
  return { nowMs, newestMs, confirmed: seq === undefined ? undefined : { seq: Number(seq), atMs: Date.parse(time) } }
}
