import type { Budget } from '../accounts/budget.ts'

/*
 * The spending of a person in the form of `GET /api/oauth/usage`, which Claude Code shows. Amounts are in hundredths of
 * the currency.
 */

/**
 * Spending that has a limit.
 * @property per the period of the limit; undefined if the limit is for the total
 * @property resetsMs when the next period begins; undefined if there are no periods
 */
type CappedUse = { limitNanos: bigint; spentNanos: bigint; per: Budget['per']; resetsMs: number | undefined }

/** The amounts that were spent in the current day, week and month, if no limit applies. */
type FreeUse = { dayNanos: bigint; weekNanos: bigint; monthNanos: bigint }

const groups = { day: 'daily', week: 'weekly', month: 'monthly' } as const

export function tellCapped({ limitNanos, spentNanos, per, resetsMs }: CappedUse, currency: string) {
  const percent = percentOf({ limitNanos, spentNanos })
  return {
    extra_usage: {
      ...{ is_enabled: true, monthly_limit: cents(limitNanos), used_credits: cents(spentNanos) },
      ...{ utilization: percent, currency },
    },
    limits: [
      {
        kind: 'spend',
        // If a limit never renews, clients show neither a period nor a reset.
        group: per === undefined ? 'credit' : groups[per],
        percent,
        resets_at: resetsMs === undefined ? null : new Date(resetsMs).toISOString(),
        severity: 'normal',
        is_active: true,
      },
    ],
  }
}

export function tellFree({ dayNanos, weekNanos, monthNanos }: FreeUse, currency: string) {
  return {
    extra_usage: {
      ...{ is_enabled: true, monthly_limit: null, used_credits: cents(monthNanos), utilization: null, currency },
      daily: { limit: null, used_credits: cents(dayNanos) },
      weekly: { limit: null, used_credits: cents(weekNanos) },
    },
    limits: [],
  }
}

/**
 * Converts nano-credits to hundredths of a credit, rounded. A refund could make the amount negative. Clients refuse
 * negative amounts, so the result is at least 0.
 */
function cents(nanos: bigint): number {
  return Math.max(0, Number((nanos + 5_000_000n) / 10_000_000n))
}

/** Returns the spent part of a limit in whole per cent, from 0 to 100. */
function percentOf({ limitNanos, spentNanos }: Pick<CappedUse, 'limitNanos' | 'spentNanos'>): number {
  return limitNanos <= 0n ? 100 : Math.min(100, Math.max(0, Number((spentNanos * 100n) / limitNanos)))
}
