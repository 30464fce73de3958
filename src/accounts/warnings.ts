import type { Budget, TimeSpan } from './budget.ts'

/*
 * What operators are warned of (ruling X15). What follows from the ledger is written into the store in the commit that crosses
 * the line, once, and stays there until it is told; what only a process knows is told by that process.
 */

/** Written by the store. */
export const storedEvents = ['credit_low', 'key_budget_80', 'key_budget_spent'] as const
/** Told by the process that sees it. */
export const seenEvents = ['upstream_down', 'ledger_unwritable', 'clock_wrong'] as const

export const webhookEvents = [...storedEvents, ...seenEvents] as const

export type WebhookEvent = (typeof webhookEvents)[number]
export type StoredEvent = (typeof storedEvents)[number]

/** What the store is to warn of. */
export type Watched = {
  /** Of an account whose balance falls below one of these, in nano-credits. */
  lowNanos: readonly bigint[]
  /** Of a key that has spent four fifths of its budget, or all of it. */
  budgets: boolean
}

/** So long a warning is tried and kept, in ms; then nobody wants to know any more. */
export const warningKeptMs = 24 * 3_600_000

/** A warning before it is told. The same crossing has the same id, wherever and however often it is written. */
export type NewWarning = { id: string; event: StoredEvent; data: WarningData }

/** Ids, periods and times, and nano-credits as decimal digits: both stores write the same. */
export type WarningData = Readonly<Record<string, string | number | null>>

/** A warning that waits to be told. @property tries what has become of it so far, as its teller keeps it */
export type StoredWarning = NewWarning & { atMs: number; tries: string | undefined }

/** @param seq of the account's last entry */
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

/** How far a budget is: 0, 80 or 100, each of which is warned of once in a window. */
export function warningLevel(spentNanos: bigint, budgetNanos: bigint): number {
  if (spentNanos >= budgetNanos) return 100
  return spentNanos >= budgetNanos - budgetNanos / 5n ? 80 : 0
}

const levels = [
  [80, 'key_budget_80'],
  [100, 'key_budget_spent'],
] as const

/** @param warned the level that was warned of in this window */
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
