import type { Spend, TimeSpan } from '../../accounts/budget.ts'
import type { SpendRow } from '../../accounts/verify/spends.ts'
import type { Dialect, Statement } from './dialect.ts'

/*
 * What keys with budgets have spent (ruling R15), in statements that both databases understand.
 */

/**
 * In place of the table of keys: each with the name of its account, and with what its line has spent.
 * @param held what running requests hold of its budget, in SQL; null where the store does not know
 */
export function keysWithSpends(schema: string, held = 'NULL'): string {
  return `(SELECT k.*, s.from_ms, s.until_ms, s.spent, ${held} AS held,
      (SELECT a.name FROM ${schema}.accounts a WHERE a.id = k.account_id) AS account_name
    FROM ${schema}.keys k LEFT JOIN ${schema}.spends s ON s.scope = coalesce(k.scope, k.id)) keys`
}

/** Whose beat was not heard for so long holds nothing any more, in ms. */
export const leaseMs = 10_000

/** Of all replicas that live, in PostgreSQL: as `admit` counts it. */
export const heldByReplicas = `(SELECT sum(h.held)::bigint FROM triwire.shares h JOIN triwire.present p ON p.replica = h.replica
  WHERE h.scope = coalesce(k.scope, k.id) AND p.seen_ms > triwire.now_ms() - ${leaseMs})`

/** Entries of an account behind `after`, up to and with `through`. */
export type SpendSlice = { accountId: string; scope: string; after: number; through: number } & TimeSpan

/** Debits less what was given back of them; `first`: the earliest time at which an entry of the slice was posted. */
export function sumSpendSlice({ schema, parameter: put }: Dialect, slice: SpendSlice): Statement {
  const { accountId, scope, after, through, fromMs, untilMs } = slice
  return {
    text: `SELECT CAST(sum(CASE WHEN e.posted_ms < ${put(1)} OR e.posted_ms >= ${put(2)} THEN 0
          WHEN k.id IS NULL THEN 0 WHEN e.kind = 'debit' THEN e.amount ELSE -e.amount END) AS bigint) AS spent,
        min(e.posted_ms) AS first
      FROM ${schema}.entries e LEFT JOIN ${schema}.keys k ON k.id = e.key_id AND coalesce(k.scope, k.id) = ${put(3)}
      WHERE e.account_id = ${put(4)} AND e.seq > ${put(5)} AND e.seq <= ${put(6)}`,
    values: [fromMs, untilMs, scope, accountId, after, through],
  }
}

/** In one statement so many: far less than a second. */
const sliceMax = 20_000

/**
 * The slices of a window from the last entry of an account backwards: none before it is read.
 * @param read of a slice what it comes to, and when the first of its entries was posted; none where it has none
 * @returns what all come to.
 */
export function* walkSpend(
  of: { accountId: string; scope: string } & TimeSpan,
  { after, through }: { after: number; through: number },
): Generator<SpendSlice, bigint, { spentNanos: bigint; firstMs: number | undefined }> {
  let sum = 0n
  for (let end = through; end > after; end -= sliceMax) {
    const { spentNanos, firstMs } = yield { ...of, after: Math.max(after, end - sliceMax), through: end }
    sum += spentNanos
    // No entry was posted before the one before it in its account (ruling C15).
    if (firstMs === undefined || firstMs < of.fromMs) break
  }
  return sum
}

/** What is counted of budgets, each with its account and the keys of its line. */
export function selectSpends(schema: string): string {
  return `SELECT s.scope, s.from_ms, s.until_ms, s.spent, k.id AS key_id, k.account_id
    FROM ${schema}.spends s LEFT JOIN ${schema}.keys k ON coalesce(k.scope, k.id) = s.scope ORDER BY s.scope`
}

/** Scopes of keys that have a budget. */
export function selectBudgeted(schema: string): string {
  return `SELECT DISTINCT coalesce(scope, id) AS scope FROM ${schema}.keys WHERE budget IS NOT NULL`
}

/** @param rows of `selectSpends` */
export function readSpendRows(rows: readonly Record<string, unknown>[]): SpendRow[] {
  const spends = new Map<unknown, SpendRow & { keyIds: string[] }>()
  for (const row of rows) {
    const spend = spends.get(row['scope']) ?? { ...readSpend(row), accountId: undefined, keyIds: [] }
    spends.set(row['scope'], spend)
    if (row['key_id'] === null) continue
    spend.accountId = row['account_id'] as string
    spend.keyIds.push(row['key_id'] as string)
  }
  return [...spends.values()]
}

export function readSpend(row: Record<string, unknown>): Spend & { scope: string } {
  return {
    scope: row['scope'] as string,
    fromMs: Number(row['from_ms']),
    untilMs: Number(row['until_ms']),
    spentNanos: row['spent'] as bigint,
  }
}
