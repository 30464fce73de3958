import type { StoreRow } from '../../accounts/book-rows.ts'
import {
  type StoredEvent,
  type StoredWarning,
  storedEvents,
  type Watched,
  warningKeptMs,
  warningPauseMs,
} from '../../accounts/warnings.ts'
import { selectBudgeted } from './budgeted.ts'
import { type Dialect, insert, type Put } from './dialect.ts'
import { ask, askOne, execute, inTransaction, runAll, type StoreStep } from './step.ts'

/* Warnings to be sent, and the limits that cause them (`Watched`). */

/** The age at which a warning is deleted, in ms. Servers stop trying to send a warning at half of this age. */
export const untoldMs = 2 * warningKeptMs

/**
 * SQL: whether a warning is due. A time that is further ahead than any pause was set while the clock was ahead, so it is
 * due too.
 */
function isDue(put: Put, now: string): string {
  return `(next_ms <= ${now} OR next_ms > ${now} + ${put(warningPauseMs)})`
}

/** Creates the queries of warnings to be sent. Each warning is given to one server at a time. */
export function createWarnings(dialect: Dialect) {
  const { schema, isShared } = dialect
  return { watch, takeWarnings, settleWarning }

  function watch({ lowNanos, ownLows, budgets }: Watched): StoreStep<void> {
    const rows = [
      // No configured level is 0. The row with 0 stands for the levels that accounts set for themselves.
      ...[...(ownLows ? [0n] : []), ...lowNanos].map((below) => ({ event: 'credit_low', below })),
      ...(budgets ? [{ event: 'key_budget', below: 0n }] : []),
    ]
    // If two servers start at the same time, they write their rows one after the other.
    const lock = isShared ? ['LOCK TABLE triwire.watched IN SHARE ROW EXCLUSIVE MODE'] : []
    const cleared = [...lock, `DELETE FROM ${schema}.watched`].map((text) => ({ text, values: [] }))
    return inTransaction(runAll([...cleared, ...rows.map((row) => insert(dialect, 'watched', row))]))
  }

  /** Takes the oldest due warnings. Servers ask often, so nothing is written if no warning is due. */
  function* takeWarnings(leaseMs: number, limit: number): StoreStep<StoredWarning[]> {
    const due = (put: Put) => `SELECT 1 FROM ${schema}.outbox WHERE ${isDue(put, dialect.now(put))} LIMIT 1`
    return (yield* askOne(dialect, due)) ? yield* inTransaction(take(leaseMs, limit)) : []
  }

  function* take(leaseMs: number, limit: number): StoreStep<StoredWarning[]> {
    // In SQLite old warnings are deleted when new ones are written.
    if (isShared)
      yield* ask(
        dialect,
        (put) => `DELETE FROM triwire.outbox WHERE at_ms < triwire.now_ms() - ${put(untoldMs)}::bigint`,
      )
    const taken = (put: Put) => {
      const now = dialect.now(put)
      return `UPDATE ${schema}.outbox SET next_ms = ${now} + ${put(leaseMs)} WHERE id IN (
          SELECT id FROM ${schema}.outbox WHERE ${isDue(put, now)} ORDER BY at_ms, id LIMIT ${put(limit)}
          ${isShared ? 'FOR UPDATE SKIP LOCKED' : ''})
        RETURNING id, event, data, at_ms, tries`
    }
    return (yield* ask(dialect, taken)).map(readWarning)
  }

  /** Ends a try to send a warning. @param next when to try again; undefined to delete the warning */
  function settleWarning(id: string, next: { tries: string; afterMs: number } | undefined): StoreStep<void> {
    return execute(dialect, (put) =>
      next === undefined
        ? `DELETE FROM ${schema}.outbox WHERE id = ${put(id)}`
        : `UPDATE ${schema}.outbox SET tries = ${put(next.tries)}, next_ms = ${dialect.now(put)} + ${put(next.afterMs)}
           WHERE id = ${put(id)}`,
    )
  }
}

export function selectWatched(schema: string): string {
  return `SELECT event, below FROM ${schema}.watched ORDER BY below`
}

export function readWatched(rows: readonly StoreRow[]): Watched {
  const lows = rows.filter(({ event }) => event === 'credit_low').map(({ below }) => below as bigint)
  return {
    lowNanos: lows.filter((below) => below > 0n),
    ownLows: lows.includes(0n),
    budgets: rows.some(({ event }) => event === 'key_budget'),
  }
}

/**
 * Sets the level of the last warning (`warned`) after a change of the budget. The new level is the highest level that
 * the spend has already passed, so passed levels cause no warning (ruling X15).
 */
export function rearm(dialect: Dialect, scope: string): StoreStep<void> {
  const { schema } = dialect
  return execute(
    dialect,
    (put) => `UPDATE ${schema}.spends SET warned = coalesce((
        SELECT CASE WHEN spends.spent >= b.budget THEN 100 WHEN spends.spent >= b.budget - b.budget / 5 THEN 80 ELSE 0 END
        FROM (${selectBudgeted(schema)}) b WHERE b.scope = spends.scope LIMIT 1), 0)
      WHERE scope = ${put(scope)}`,
  )
}

function readWarning(row: StoreRow): StoredWarning {
  const event = storedEvents.find((one) => one === row['event']) as StoredEvent
  return {
    id: row['id'] as string,
    event,
    data: JSON.parse(row['data'] as string),
    atMs: Number(row['at_ms']),
    tries: (row['tries'] as string | null) ?? undefined,
  }
}
