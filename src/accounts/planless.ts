import type { AccountRow } from './book-rows.ts'
import type { BookStore, Books } from './books.ts'

/** The accounts of a store and its time zone, as checks read them before a server starts. */
export type AccountReader = Pick<BookStore, 'findAccount' | 'pageAccounts' | 'readUsageState'>
export type AccountLook<T> = (accounts: AccountReader) => Promise<T>

/** The most accounts that a warning lists. */
const namedMax = 10

/** Finds accounts whose plan is not in `plans`, sorted by name. Returns at most `namedMax` + 1 accounts. */
export function findPlanless(books: Pick<Books, 'pageAccounts'>, plans: readonly string[]): Promise<AccountRow[]> {
  return books.pageAccounts({ otherPlans: plans, sort: 'name', limit: namedMax + 1 })
}

/**
 * The log fields of a warning about accounts whose plan is missing from the configuration. They pay the prices of the
 * models (ruling C11).
 */
export function sayPlanless(found: readonly AccountRow[]) {
  return {
    accounts: found.slice(0, namedMax).map(({ name, bounds }) => ({ account: name, plan: bounds.plan })),
    ...(found.length > namedMax && { more: true }),
    cure: 'They pay the prices of models: declare their plans in the configuration, under plans, or give them another one with triwire account set NAME --plan PLAN.',
  }
}
