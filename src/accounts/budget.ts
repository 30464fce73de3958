import type { Calendar, PeriodName } from './calendar.ts'
import { formatCredits, parseCredits } from './credit.ts'

/** How often a budget is new: with the day, the week or the month of the reporting zone. */
export const budgetPeriods = ['day', 'week', 'month'] as const satisfies readonly PeriodName[]

export type BudgetPeriod = (typeof budgetPeriods)[number]

/** What a key may spend (ruling R15), in nano-credits: in each window of the calendar, or for ever. */
export type Budget = { nanos: bigint; per: BudgetPeriod | undefined }

/** A span of time, in Unix milliseconds: `untilMs` is the first moment behind it. */
export type TimeSpan = { fromMs: number; untilMs: number }

/**
 * What a key has spent in a window: what the ledger's entries of that span come to which name it, or another of its line.
 * The window is that of its last entry, and over when a later one has begun.
 */
export type Spend = TimeSpan & { spentNanos: bigint }

/** The last moment that has a date: where a window ends that never does. */
export const neverMs = 8_640_000_000_000_000

/**
 * A budget as people write it: `5/day`, `12.5/month`; `5` is for ever.
 * @throws RangeError with a text for the person who wrote it.
 */
export function parseBudget(text: string): Budget {
  const [, amount, per] = /^\s*([^/\s]+?)(?:\s*\/\s*(day|week|month))?\s*$/.exec(text) ?? []
  if (amount === undefined) throw new RangeError('Write it like 5/day, 20/week, 100/month, or 50 for good.')
  const nanos = parseCredits(amount)
  if (nanos <= 0n) throw new RangeError('A budget is more than 0 credits: to end a key, revoke it.')
  return { nanos, per: per as BudgetPeriod | undefined }
}

/** The inverse. */
export function formatBudget({ nanos, per }: Budget): string {
  return formatCredits(nanos) + (per === undefined ? '' : `/${per}`)
}

/** The window of the calendar in which something happens. */
export function spanOf(calendar: Calendar, per: BudgetPeriod | undefined, atMs: number): TimeSpan {
  if (per === undefined) return { fromMs: 0, untilMs: neverMs }
  const { startMs, endMs } = calendar.periodOf(atMs, per)
  return { fromMs: startMs, untilMs: endMs }
}

/** What of a budget is spent at this moment: nothing of a window that has just begun. */
export function spentAt(spend: Spend | undefined, nowMs: number): bigint {
  return spend !== undefined && nowMs < spend.untilMs ? spend.spentNanos : 0n
}

/** When a budget is whole again; undefined of one that never is. */
export function renewsAt(calendar: Calendar, { per }: Budget, spend: Spend | undefined, nowMs: number) {
  if (per === undefined) return undefined
  return spend !== undefined && nowMs < spend.untilMs ? spend.untilMs : spanOf(calendar, per, nowMs).untilMs
}

/**
 * What is spent behind one entry more. A window that is over makes room for the entry's own, which begins at the earliest
 * where that one ended, so that no entry falls into two, whatever became of the reporting zone meanwhile.
 * @param postedMs never before that of the key's entry before. @param changeNanos what the entry adds to its account
 */
export function spendMore(
  spend: Spend | undefined,
  per: BudgetPeriod | undefined,
  calendar: Calendar,
  postedMs: number,
  changeNanos: bigint,
): Spend {
  if (spend !== undefined && postedMs < spend.untilMs) {
    // Of a clock that was set back: it is in no window.
    if (postedMs < spend.fromMs) return spend
    return { ...spend, spentNanos: spend.spentNanos - changeNanos }
  }
  const { fromMs, untilMs } = spanOf(calendar, per, postedMs)
  return { fromMs: Math.max(fromMs, spend?.untilMs ?? fromMs), untilMs, spentNanos: -changeNanos }
}
