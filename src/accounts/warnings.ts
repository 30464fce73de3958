import type { Budget, TimeSpan } from './budget.ts'

/*
 * Warnings for operators (ruling X15). A warning that follows from the ledger is stored once, in the commit that
 * crosses the line, until it is sent. A warning that only a process can notice is sent by that process.
 */

/** Events that the store writes. */
export const storedEvents = ['credit_low', 'key_budget_80', 'key_budget_spent'] as const
/** Events that are sent by the process that notices them. */
export const seenEvents = ['upstream_down', 'ledger_unwritable', 'clock_wrong'] as const

export const webhookEvents = [...storedEvents, ...seenEvents] as const

export type WebhookEvent = (typeof webhookEvents)[number]
export type StoredEvent = (typeof storedEvents)[number]

/** The limits that the store is to warn of. */
export type Watched = {
  /** Warns of an account whose balance falls below one of these, in nano-credits. */
  lowNanos: readonly bigint[]
  /** Warns of a key that has spent four fifths of its budget, or all of it. */
  budgets: boolean
}

/** How long a warning is kept and its sending tried, in ms; after that it is of no use. */
export const warningKeptMs = 24 * 3_600_000

/** A warning that is not stored yet. The same crossing has the same id on every store, however often it is written. */
export type NewWarning = { id: string; event: StoredEvent; data: WarningData }

/** Ids, periods and times, and nano-credits as decimal digits, so that both stores write the same. */
type WarningData = Readonly<Record<string, string | number | null>>

/** A warning that waits to be sent. @property tries the result of the tries so far, in a form that only the sender reads */
export type StoredWarning = NewWarning & { atMs: number; tries: string | undefined }

/** @param seq the number of the account's last entry */
export function warnOfCredit(
  { lowNanos }: Watched,
  {
    accountId,
    seq,
    beforeNanos,
    afterNanos,
  }: { accountId: string; seq: bigint; beforeNanos: bigint; afterNanos: bigint },
): NewWarning[] {
  return lowNanos
    .filter((low) => beforeNanos >= low && afterNanos < low)
    .map((low) => ({
      id: `credit_low:${accountId}:${low}:${seq}`,
      event: 'credit_low',
      data: { account: accountId, balance_nanos: `${afterNanos}`, below_nanos: `${low}` },
    }))
}

/** The level that a budget has reached: 0, 80 or 100. 80 and 100 are each warned of once in a window. */
export function warningLevel(spentNanos: bigint, budgetNanos: bigint): number {
  if (spentNanos >= budgetNanos) return 100
  return spentNanos >= budgetNanos - budgetNanos / 5n ? 80 : 0
}

const levels = [
  [80, 'key_budget_80'],
  [100, 'key_budget_spent'],
] as const

/** @param warned the highest level that was warned of in this window */
export function warnOfBudget({
  scope,
  budget,
  warned,
  level,
  spentNanos,
  fromMs,
  untilMs,
}: TimeSpan & {
  scope: string
  budget: Budget
  warned: number
  level: number
  spentNanos: bigint
}): NewWarning[] {
  return levels
    .filter(([at]) => at > warned && at <= level)
    .map(([, event]) => ({
      id: `${event}:${scope}:${fromMs}:${budget.nanos}`,
      event,
      data: {
        key: scope,
        budget_nanos: `${budget.nanos}`,
        per: budget.per ?? null,
        spent_nanos: `${spentNanos}`,
        until_ms: untilMs,
      },
    }))
}
