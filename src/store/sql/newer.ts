import type { Dialect } from './dialect.ts'
import { askOne, type StoreStep } from './step.ts'

/** For each kind of data: the table to count in, and the condition that a counted row meets. */
const counts = {
  foreignKeys: ['keys', 'origin IS NOT NULL AND revoked_ms IS NULL'],
  labelledKeys: ['keys', '(labels IS NOT NULL OR may_choose IS NOT NULL) AND revoked_ms IS NULL'],
  plans: ['accounts', 'plan IS NOT NULL'],
  boundAccounts: ['accounts', 'budget IS NOT NULL OR rpm IS NOT NULL OR warn IS NOT NULL OR monthly_grant IS NOT NULL'],
  persons: ['persons', 'erased_ms IS NULL'],
  sessions: ['sign_ins', 'ended_ms IS NULL'],
  financeOperators: ['operators', "duty = 'finance' AND revoked_ms IS NULL"],
} as const satisfies Record<string, readonly [table: string, where: string]>

/**
 * The number of rows of each kind that the second release of triwire does not know.
 * @property isClosed whether the second release refuses the store, because entries have a digest of form 3 (chain.ts)
 */
export type NewerContent = Record<keyof typeof counts, number> & { isClosed: boolean }

/**
 * Counts the data of each kind that the second release of triwire does not know.
 * @param oldest a SELECT of the lowest schema version whose releases may use the store
 * @param secondRelease the schema version of the second release
 */
export function* readNewer(dialect: Dialect, oldest: string, secondRelease: number): StoreStep<NewerContent> {
  const columns = Object.entries(counts).map(
    ([name, [table, where]]) => `(SELECT count(*) FROM ${dialect.schema}.${table} WHERE ${where}) AS "${name}"`,
  )
  const row = (yield* askOne(dialect, () => `SELECT ${columns.join(', ')}, (${oldest}) AS oldest`))!
  const read = Object.fromEntries(Object.keys(counts).map((name) => [name, Number(row[name])]))
  return { ...(read as Record<keyof typeof counts, number>), isClosed: Number(row['oldest']) > secondRelease }
}
