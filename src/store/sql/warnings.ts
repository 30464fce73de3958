import type { StoreRow } from '../../accounts/book-rows.ts'
import {
  type StoredEvent,
  type StoredWarning,
  storedEvents,
  type Watched,
  warningKeptMs,
} from '../../accounts/warnings.ts'
import { type Dialect, insert, type Statement, statement } from './dialect.ts'

/*
 * Warnings that wait to be told, and what the store is to warn of, in statements that both databases understand.
 */

/** A warning that is so old waits for nobody: whoever tells them gives up in half of that. In ms. */
export const untoldMs = 2 * warningKeptMs

export function watchStatements(dialect: Dialect, { lowNanos, budgets }: Watched): Statement[] {
  const rows = [
    ...lowNanos.map((below) => ({ event: 'credit_low', below })),
    ...(budgets ? [{ event: 'key_budget', below: 0n }] : []),
  ]
  const all = statement(dialect, () => `DELETE FROM ${dialect.schema}.watched`)
  return [all, ...rows.map((row) => insert(dialect, 'watched', row))]
}

export function selectWatched(schema: string): string {
  return `SELECT event, below FROM ${schema}.watched ORDER BY below`
}

export function readWatched(rows: readonly StoreRow[]): Watched {
  return {
    lowNanos: rows.filter(({ event }) => event === 'credit_low').map(({ below }) => below as bigint),
    budgets: rows.some(({ event }) => event === 'key_budget'),
  }
}

/** What is due and nobody else has taken, the oldest. @param now in SQL @param among how rows that others hold are left alone, in SQL */
export function takeWarnings(dialect: Dialect, now: string, leaseMs: number, limit: number, among = ''): Statement {
  const { schema } = dialect
  return statement(
    dialect,
    (put) => `UPDATE ${schema}.outbox SET next_ms = ${now} + ${put(leaseMs)} WHERE id IN (
        SELECT id FROM ${schema}.outbox WHERE next_ms <= ${now} ORDER BY at_ms, id LIMIT ${put(limit)} ${among})
      RETURNING id, event, data, at_ms, tries`,
  )
}

/** @param next undefined: it is over */
export function settleWarning(
  dialect: Dialect,
  now: string,
  id: string,
  next: { tries: string; afterMs: number } | undefined,
): Statement {
  const { schema } = dialect
  return statement(dialect, (put) =>
    next === undefined
      ? `DELETE FROM ${schema}.outbox WHERE id = ${put(id)}`
      : `UPDATE ${schema}.outbox SET tries = ${put(next.tries)}, next_ms = ${now} + ${put(next.afterMs)} WHERE id = ${put(id)}`,
  )
}

/** What was warned of in a window is so by another budget too; and the other way round (ruling X15). */
export function rearm(dialect: Dialect, scope: string): Statement {
  const { schema } = dialect
  return statement(
    dialect,
    (put) => `UPDATE ${schema}.spends SET warned = coalesce((
        SELECT CASE WHEN spends.spent >= k.budget THEN 100 WHEN spends.spent >= k.budget - k.budget / 5 THEN 80 ELSE 0 END
        FROM ${schema}.keys k WHERE coalesce(k.scope, k.id) = spends.scope AND k.budget IS NOT NULL LIMIT 1), 0)
      WHERE scope = ${put(scope)}`,
  )
}

export function readWarning(row: StoreRow): StoredWarning {
  const event = storedEvents.find((one) => one === row['event']) as StoredEvent
  return {
    id: row['id'] as string,
    event,
    data: JSON.parse(row['data'] as string),
    atMs: Number(row['at_ms']),
    tries: (row['tries'] as string | null) ?? undefined,
  }
}
