import type { AccountRow } from './book-rows.ts'
import type { Books } from './books.ts'

/** The most accounts that a warning names. */
const namedMax = 10

/** The accounts that have another plan than these, by name; one more than a warning names at most. */
export function findPlanless(books: Pick<Books, 'pageAccounts'>, plans: readonly string[]): Promise<AccountRow[]> {
  return books.pageAccounts({ otherPlans: plans, sort: 'name', limit: namedMax + 1 })
}

/** The fields of a warning of accounts that pay the prices of models because the configuration lacks their plan (ruling C11). */
export function sayPlanless(found: readonly AccountRow[]) {
  return {
    accounts: found.slice(0, namedMax).map(({ name, bounds }) => ({ account: name, plan: bounds.plan })),
    ...(found.length > namedMax && { more: true }),
    cure: 'They pay the prices of models: declare their plans in the configuration, under plans, or give them another one with triwire account set NAME --plan PLAN.',
  }
}
