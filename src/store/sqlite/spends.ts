import type { DatabaseSync } from 'node:sqlite'
import { type Budget, type BudgetPeriod, type Spend, spendMore } from '../../accounts/budget.ts'
import type { Calendar } from '../../accounts/calendar.ts'
import { clampNanos } from '../../accounts/credit.ts'
import { warningLevel, warnOfBudget } from '../../accounts/warnings.ts'

/** Keys that have a budget: whose it is, and how often it is new. Null: it has none. */
type Budgeted = { scope: string; budget: Budget } | null

/** Facts about budgets that hold while nobody else writes. */
export type KnownSpends = {
  readonly budgets: Map<string, Budgeted>
  readonly spends: Map<string, Counted | undefined>
}

/** @property warned the level that was warned of in this window */
type Counted = Spend & { warned: number }

export function nothingSpent(): KnownSpends {
  return { budgets: new Map(), spends: new Map() }
}

/** Spending of keys with budgets (ruling R15), in the caller's transaction. */
export function createSpends(db: DatabaseSync, calendar: Calendar) {
  const findBudget = db.prepare(
    'SELECT coalesce(scope, id) AS scope, budget, budget_per FROM keys WHERE id = ? AND budget IS NOT NULL',
  )
  const find = db.prepare('SELECT from_ms, until_ms, spent, warned FROM spends WHERE scope = ?')
  const put = db.prepare(
    `INSERT INTO spends (scope, from_ms, until_ms, spent, warned) VALUES (?, ?, ?, ?, ?) ON CONFLICT (scope)
     DO UPDATE SET from_ms = excluded.from_ms, until_ms = excluded.until_ms, spent = excluded.spent, warned = excluded.warned`,
  )
  return { note, write, read }

  /**
   * Of an entry that was just appended.
   * @param warns whether anybody is to be warned of budgets
   * @returns the scope whose spending has moved, and what is to be warned of
   */
  function note(known: KnownSpends, keyId: string, postedMs: number, changeNanos: bigint, warns: boolean) {
    const budgeted = budgetOf(known, keyId)
    if (!budgeted) return undefined
    const { scope, budget } = budgeted
    const before = spendOf(known, scope)
    const spend = spendMore(before, budget.per, calendar, postedMs, changeNanos)
    const warned = before?.fromMs === spend.fromMs ? before.warned : 0
    const level = warns ? Math.max(warned, warningLevel(spend.spentNanos, budget.nanos)) : warned
    known.spends.set(scope, { ...spend, warned: level })
    return { scope, warnings: level > warned ? warnOfBudget({ scope, budget, warned, level, ...spend }) : [] }
  }

  function write(known: KnownSpends, scopes: Iterable<string>): void {
    for (const scope of scopes) {
      const { fromMs, untilMs, spentNanos, warned } = known.spends.get(scope)!
      put.run(scope, fromMs, untilMs, clampNanos(spentNanos), warned)
    }
  }

  /** Spending by now of the keys among these that have a budget. */
  function read(known: KnownSpends, keyIds: Iterable<string | undefined>): [scope: string, spend: Spend][] {
    const found = new Map<string, Spend>()
    for (const keyId of keyIds) {
      const budgeted = keyId === undefined ? null : budgetOf(known, keyId)
      const spend = budgeted && spendOf(known, budgeted.scope)
      if (!spend) continue
      const { warned: _, ...told } = spend
      found.set(budgeted.scope, told)
    }
    return [...found]
  }

  function budgetOf({ budgets }: KnownSpends, keyId: string): Budgeted {
    const known = budgets.get(keyId)
    if (known !== undefined) return known
    const row = findBudget.get(keyId)
    const budgeted = row
      ? {
          scope: row.scope as string,
          budget: { nanos: row.budget as bigint, per: (row.budget_per as BudgetPeriod | null) ?? undefined },
        }
      : null
    budgets.set(keyId, budgeted)
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
    }
    spends.set(scope, spend)
    return spend
  }
}
