import type { DatabaseSync } from 'node:sqlite'
import { type Budget, type BudgetPeriod, type Spend, spendMore } from '../../accounts/budget.ts'
import type { Calendar } from '../../accounts/calendar.ts'
import { clampNanos } from '../../accounts/credit.ts'
import { warningLevel, warnOfBudget } from '../../accounts/warnings.ts'
import { selectBudgeted } from '../sql/budgeted.ts'

/**
 * The budget of a key, an account or a person, and the scope whose spend the budget limits; null without a budget.
 * @property accountId the account whose entries count
 */
type Budgeted = { scope: string; accountId: string; budget: Budget } | null

/** The known budgets and their spend. They are valid until another connection writes. */
export type KnownSpends = {
  readonly budgets: Map<string, Budgeted>
  readonly spends: Map<string, Counted | undefined>
}

/**
 * The spend of a key, account or person (scope) in the current period of its budget.
 * @property warned the level of the last warning in this period
 * @property seq the last counted entry if the scope is an account; otherwise null
 */
type Counted = Spend & { warned: number; seq: bigint | null }

/**
 * An entry that possibly counts in a budget.
 * @property spender the id of the entry's key, account or person
 * @property seq the number of the entry if the spender is an account; otherwise null
 */
export type SpendingEntry = {
  spender: string
  accountId: string
  seq: bigint | null
  postedMs: number
  changeNanos: bigint
}

export function nothingSpent(): KnownSpends {
  return { budgets: new Map(), spends: new Map() }
}

/** Reads a row with the columns of a budget and its scope. */
export function toBudgeted(row: Readonly<Record<string, unknown>> | undefined): Budgeted {
  const { scope, account_id: accountId, budget, budget_per: per } = row ?? {}
  if (typeof budget !== 'bigint') return null
  return {
    scope: scope as string,
    accountId: accountId as string,
    budget: { nanos: budget, per: (per as BudgetPeriod | null) ?? undefined },
  }
}

/** Creates functions that count the spend of budgets (rulings R15, Y20), in the caller's transaction. */
export function createSpends(db: DatabaseSync, calendar: Calendar) {
  const findBudget = db.prepare(
    `SELECT account_id, scope, budget, budget_per FROM (${selectBudgeted('main')}) WHERE spender = ?`,
  )
  const find = db.prepare('SELECT from_ms, until_ms, spent, warned, seq FROM spends WHERE scope = ?')
  const put = db.prepare(
    `INSERT INTO spends (scope, from_ms, until_ms, spent, warned, seq) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (scope) DO UPDATE
     SET from_ms = excluded.from_ms, until_ms = excluded.until_ms, spent = excluded.spent, warned = excluded.warned, seq = excluded.seq`,
  )
  return { note, write, read }

  /**
   * Adds an entry that was just appended to the spend of its budget.
   * @param warns whether servers want warnings of budgets
   * @returns the budget's scope, and warnings that are due now; undefined if the entry counts for no budget
   */
  function note(known: KnownSpends, { spender, accountId, seq, postedMs, changeNanos }: SpendingEntry, warns: boolean) {
    const budgeted = budgetOf(known, spender)
    // If the spender is a person, the person can have moved to another account after the request began.
    if (!budgeted || budgeted.accountId !== accountId) return undefined
    const { scope, budget } = budgeted
    const before = spendOf(known, scope)
    const spend = spendMore(before, budget.per, calendar, postedMs, changeNanos)
    const warned = before?.fromMs === spend.fromMs ? before.warned : 0
    const level = warns ? Math.max(warned, warningLevel(spend.spentNanos, budget.nanos)) : warned
    known.spends.set(scope, { ...spend, warned: level, seq })
    return { scope, warnings: level > warned ? warnOfBudget({ scope, budget, warned, level, ...spend }) : [] }
  }

  function write(known: KnownSpends, scopes: Iterable<string>): void {
    for (const scope of scopes) {
      const { fromMs, untilMs, spentNanos, warned, seq } = known.spends.get(scope)!
      put.run(scope, fromMs, untilMs, clampNanos(spentNanos), warned, seq)
    }
  }

  /** Returns the current spend of every given key, account or person that has a budget. */
  function read(known: KnownSpends, spenders: Iterable<string | undefined>): [scope: string, spend: Spend][] {
    const found = new Map<string, Spend>()
    for (const spender of spenders) {
      const budgeted = spender === undefined ? null : budgetOf(known, spender)
      const spend = budgeted && spendOf(known, budgeted.scope)
      if (!spend) continue
      const { warned: _, seq: __, ...told } = spend
      found.set(budgeted.scope, told)
    }
    return [...found]
  }

  function budgetOf({ budgets }: KnownSpends, spender: string): Budgeted {
    const known = budgets.get(spender)
    if (known !== undefined) return known
    const budgeted = toBudgeted(findBudget.get(spender))
    budgets.set(spender, budgeted)
    return budgeted
  }

  function spendOf({ spends }: KnownSpends, scope: string): Counted | undefined {
    if (spends.has(scope)) return spends.get(scope)
    const row = find.get(scope)
    const spend = row && {
      fromMs: Number(row.from_ms),
      untilMs: Number(row.until_ms),
      spentNanos: row.spent as bigint,
      warned: Number(row.warned),
      seq: row.seq as bigint | null,
    }
    spends.set(scope, spend)
    return spend
  }
}
