import fc from 'fast-check'
import { createCalendar, quarterMs } from '../../src/accounts/calendar.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import type { UsageGrouping, UsageQuestion } from '../../src/accounts/usage/question.ts'
import type { Reporting } from '../../src/accounts/usage/reporting.ts'

/*
 * What is posted and asked for where figures for reports are compared with the ledger (ruling C9): in test/store/usage.test.ts a
 * little of it many times, in scripts/usage/equal.ts a million entries once.
 */

export const berlin: Reporting = { timeZone: 'Europe/Berlin', weekStarts: 'monday', keepMonths: 13 }
/** The evening before a day of 25 hours in Berlin. */
export const startMs = Date.parse('2026-10-24T20:00:00Z')
export const hourMs = 3_600_000

export type Post = {
  account: number
  key: number
  model: string
  outcome: Debit['outcome']
  upstream: string
  /** Hours since the post before it. */
  later: number
  isReturned: boolean
}

export const post = fc.record<Post>({
  account: fc.nat(2),
  key: fc.nat(1),
  model: fc.constantFrom('m-large', 'm-small'),
  outcome: fc.constantFrom('ok', 'ok', 'upstream_cut', 'client_abort'),
  upstream: fc.constantFrom('one', 'two'),
  later: fc.constantFrom(0, 0, 0.1, 1, 7, 26),
  isReturned: fc.nat(9).map((n) => n === 0),
})

const by = fc.uniqueArray(fc.constantFrom<UsageGrouping>('account', 'key', 'model', 'wires', 'upstream', 'outcome'), {
  maxLength: 2,
})
export const asking = fc.record({
  by,
  top: fc.integer({ min: 1, max: 4 }),
  period: fc.constantFrom('quarter', 'hour', 'day', 'week', 'month', 'all'),
  zone: fc.constantFrom('Europe/Berlin', 'UTC', 'Asia/Kolkata'),
  model: fc.option(fc.constantFrom('m-large', 'm-none'), { nil: undefined }),
  account: fc.option(fc.nat(2), { nil: undefined }),
})

export type Asking = {
  by: UsageGrouping[]
  top: number
  period: string
  zone: string
  model: string | undefined
  account: number | undefined
}

export function isByDays({ period }: Asking): boolean {
  return ['day', 'week', 'month'].includes(period)
}

export function boundsOf({ period, zone }: Asking, lastMs: number): number[] {
  const calendar = createCalendar({ timeZone: zone, weekStarts: 'monday' })
  if (period === 'all') return [startMs, lastMs + quarterMs]
  const bounds = [calendar.periodOf(startMs, period as 'day').startMs]
  while (bounds.at(-1)! < lastMs) bounds.push(calendar.periodOf(bounds.at(-1)!, period as 'day').endMs)
  return bounds
}

export function question(more: Partial<UsageQuestion> = {}): UsageQuestion {
  const bounds = [Math.floor(startMs / quarterMs) - 96, Math.floor(startMs / quarterMs) + 96 * 400]
  return {
    ...{ bounds, daysOf: undefined, by: [], only: {}, sums: ['requests', 'cost', 'input_tokens'], times: [] },
    ...{ top: 6, sort: 'cost' },
    ...more,
  }
}
