import type { Dialect } from './dialect.ts'
import { askOne, type StoreStep } from './step.ts'

/** Data that the second release of triwire ignores: the rows to count, and a warning that follows their number. */
const kinds: readonly (readonly [table: string, where: string, warning: string])[] = [
  ['keys', 'origin IS NOT NULL AND revoked_ms IS NULL', 'keys of another gateway get 401 there'],
  ['accounts', 'plan IS NOT NULL', 'accounts with a plan pay the plain prices there'],
  [
    'accounts',
    'budget IS NOT NULL OR rpm IS NOT NULL OR warn IS NOT NULL OR monthly_grant IS NOT NULL',
    'accounts with a budget, a rate, levels or a monthly grant are not bounded, warned of or given it there',
  ],
  [
    'keys',
    '(labels IS NOT NULL OR may_choose IS NOT NULL) AND revoked_ms IS NULL',
    'keys with labels: entries of that time name none',
  ],
  ['persons', 'erased_ms IS NULL', 'persons: entries of that time name none, and their budgets do not count'],
  ['sign_ins', 'ended_ms IS NULL', 'sessions of people who signed in get 401 there'],
  [
    'operators',
    "duty = 'finance' AND revoked_ms IS NULL",
    'operators with the role finance are viewers there, and see accounts, keys and requests',
  ],
]

/**
 * Data in a store that the second release of triwire does not know.
 * @property ignored a warning for each kind of data that it ignores
 * @property isClosed whether it refuses the store, because entries have a digest of form 3 (chain.ts)
 */
export type NewerContent = { ignored: readonly string[]; isClosed: boolean }

/**
 * Looks for data that the second release of triwire does not know.
 * @param oldest a SELECT of the lowest schema version whose releases may use the store
 * @param secondRelease the schema version of the second release
 */
export function* readNewer(dialect: Dialect, oldest: string, secondRelease: number): StoreStep<NewerContent> {
  const counts = kinds.map(
    ([table, where], at) => `(SELECT count(*) FROM ${dialect.schema}.${table} WHERE ${where}) AS kind_${at}`,
  )
  const row = (yield* askOne(dialect, () => `SELECT ${counts.join(', ')}, (${oldest}) AS oldest`))!
  const warnings = kinds.map(([, , warning], at) => [Number(row[`kind_${at}`]), warning] as const)
  return {
    ignored: warnings.filter(([count]) => count > 0).map((parts) => parts.join(' ')),
    isClosed: Number(row['oldest']) > secondRelease,
  }
}
