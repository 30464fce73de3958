/**
 * Selects the keys, accounts and people that have a budget, each with the scope by which the spend is counted. Rotated
 * keys share the scope of the first of them (ruling R15). The scope of an account or person is the id. A second
 * identity of a person has the person's scope (ruling Y20).
 */
export function selectBudgeted(schema: string): string {
  return `SELECT k.account_id, k.id AS spender, coalesce(k.scope, k.id) AS scope, k.budget, k.budget_per
      FROM ${schema}.keys k WHERE k.budget IS NOT NULL
    UNION ALL SELECT a.id, a.id, a.id, a.budget, a.budget_per FROM ${schema}.accounts a WHERE a.budget IS NOT NULL
    UNION ALL SELECT p.account_id, p.id, p.id, p.budget, p.budget_per FROM ${schema}.persons p WHERE p.budget IS NOT NULL
    UNION ALL SELECT p.account_id, o.id, p.id, p.budget, p.budget_per
      FROM ${schema}.persons p JOIN ${schema}.persons o ON o.linked_id = p.id WHERE p.budget IS NOT NULL`
}

/**
 * SQL: whether an entry `e` counts in the budget of its account. Debits count, and so do credits that reverse a debit
 * (ruling C13). No other credit has a usage source.
 */
export const isSpending = '(e.usage_source IS NOT NULL)'
