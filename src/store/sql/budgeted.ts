/**
 * Selects keys and accounts with a budget, and the scope that it is counted by. That of a key is its line (ruling R15), that
 * of an account its id.
 */
export function selectBudgeted(schema: string): string {
  return `SELECT k.account_id, k.id AS spender, coalesce(k.scope, k.id) AS scope, k.budget, k.budget_per
      FROM ${schema}.keys k WHERE k.budget IS NOT NULL
    UNION ALL SELECT a.id, a.id, a.id, a.budget, a.budget_per FROM ${schema}.accounts a WHERE a.budget IS NOT NULL`
}

/**
 * The condition that an entry `e` counts in the budget of its account: a debit, or what was given back of one (ruling C13). No
 * other credit has a source of its usage.
 */
export const isSpending = '(e.usage_source IS NOT NULL)'
