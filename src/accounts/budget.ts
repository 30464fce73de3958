import type { Calendar, PeriodName } from './calendar.ts'
import { formatCredits, parseCredits } from './credit.ts'

/** The periods after which a budget renews: the day, the week or the month of the reporting zone. */
export const budgetPeriods = ['day', 'week', 'month'] as const satisfies readonly PeriodName[]

export type BudgetPeriod = (typeof budgetPeriods)[number]

/**
 * The limit of what an account, a key or a person may spend (ruling R15), in nano-credits. It applies to each period,
 * or to the total if `per` is undefined.
 */
export type Budget = { nanos: bigint; per: BudgetPeriod | undefined }

/** A span of time, in Unix milliseconds: `untilMs` is the first moment after it. */
export type TimeSpan = { fromMs: number; untilMs: number }

/**
 * The amount spent from one budget in one window, by the ledger's entries. A key and its rotations share one budget.
 * The last entry decides which window is current. The first entry in a later window starts a new amount.
 */
export type Spend = TimeSpan & { spentNanos: bigint }

/** The last moment that a Date can hold. It stands for the end of a window that never ends. */
export const neverMs = 8_640_000_000_000_000

/**
 * Parses a budget as people write it: `5/day`, `12.5/month`. A budget without a period, such as `5`, is a total that
 * never renews.
 * @throws RangeError with a message for the person who wrote it
 */
export function parseBudget(text: string): Budget {
  const [, amount, per] = /^\s*([^/\s]+?)(?:\s*\/\s*(day|week|month))?\s*$/.exec(text) ?? []
  if (amount === undefined) throw new RangeError('Write it like 5/day, 20/week, 100/month, or 50 for good.')
  const nanos = parseCredits(amount)
  if (nanos <= 0n) throw new RangeError('A budget is more than 0 credits: to end a key, revoke it.')
  return { nanos, per: per as BudgetPeriod | undefined }
}

/** Formats a budget. The inverse of `parseBudget`. */
export function formatBudget({ nanos, per }: Budget): string {
  return formatCredits(nanos) + (per === undefined ? '' : `/${per}`)
}

/** Returns the window of a budget that contains a moment. */
export function spanOf(calendar: Calendar, per: BudgetPeriod | undefined, atMs: number): TimeSpan {
  if (per === undefined) return { fromMs: 0, untilMs: neverMs }
  const { startMs, endMs } = calendar.periodOf(atMs, per)
  return { fromMs: startMs, untilMs: endMs }
}

/** Returns how much of a budget is spent at a moment. This is 0 once the window of `spend` is over. */
export function spentAt(spend: Spend | undefined, nowMs: number): bigint {
  return spend !== undefined && nowMs < spend.untilMs ? spend.spentNanos : 0n
}

/** Returns when a budget renews, in Unix milliseconds; undefined if it never renews. */
export function renewsAt(calendar: Calendar, { per }: Budget, spend: Spend | undefined, nowMs: number) {
  if (per === undefined) return undefined
  return spend !== undefined && nowMs < spend.untilMs ? spend.untilMs : spanOf(calendar, per, nowMs).untilMs
}

/**
 * Adds a ledger entry to the spending. If the window of `spend` is over, the entry's own window replaces it. The new
 * window never begins before the old one ended. No entry therefore counts twice, even if the reporting zone changes.
 * @param postedMs the time of the entry, never before the key's previous entry
 * @param changeNanos the amount that the entry adds to its account; negative for a debit
 */
export function spendMore(
  spend: Spend | undefined,
  per: BudgetPeriod | undefined,
  calendar: Calendar,
  postedMs: number,
  changeNanos: bigint,
): Spend {
  if (spend !== undefined && postedMs < spend.untilMs) {
    // If a clock was set back, an entry may be dated before the window. Such an entry counts in no window.
    if (postedMs < spend.fromMs) return spend
    return { ...spend, spentNanos: spend.spentNanos - changeNanos }
  }
  const { fromMs, untilMs } = spanOf(calendar, per, postedMs)
  return { fromMs: Math.max(fromMs, spend?.untilMs ?? fromMs), untilMs, spentNanos: -changeNanos }
}
