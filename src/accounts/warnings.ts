import type { Budget, TimeSpan } from './budget.ts'
import { readLevels } from './key-bounds.ts'

/*
 * Warnings for operators (ruling X15). If a warning follows from the ledger, the commit that crosses the limit stores
 * the warning once, and it is sent later. If only a process can notice the problem, that process sends the warning
 * itself.
 */

/** Events about budgets. The store writes these events and the others in `storedEvents`. */
const budgetEvents = [
  ...(['key_budget_80', 'key_budget_spent', 'account_budget_80', 'account_budget_spent'] as const),
  ...(['person_budget_80', 'person_budget_spent'] as const),
] as const
export const storedEvents = ['credit_low', ...budgetEvents, 'needs_changed'] as const
/** Events that are sent by the process that notices them. */
export const seenEvents = ['upstream_down', 'ledger_unwritable', 'clock_wrong'] as const

export const webhookEvents = [...storedEvents, ...seenEvents] as const

/**
 * The default events of a webhook. `needs_changed` must be requested explicitly, because it repeats what other events
 * report.
 */
export const usualEvents = webhookEvents.filter((event) => event !== 'needs_changed')

export type WebhookEvent = (typeof webhookEvents)[number]
export type StoredEvent = (typeof storedEvents)[number]

/** The limits for warnings. The store warns when a balance or a spending passes such a limit. */
export type Watched = {
  /** The balances below which the store warns of an account, in nano-credits. */
  lowNanos: readonly bigint[]
  /** Whether accounts can have thresholds of their own. Such a threshold replaces `lowNanos` for its account. */
  ownLows: boolean
  /** Whether to warn of a key, an account or a person that has spent four fifths of its budget, or all of it. */
  budgets: boolean
}

/** Whether any webhook wants warnings of budgets. */
export function wantsBudgets(events: ReadonlySet<WebhookEvent>): boolean {
  return budgetEvents.some((event) => events.has(event))
}

/** For this time, in ms, a warning is kept, and sent again after failures. Older warnings are of no use. */
export const warningKeptMs = 24 * 3_600_000

/** The longest time until a stored warning is offered again, in ms. It is reached if no server has a receiver for it. */
export const warningPauseMs = warningKeptMs / 8

/**
 * A warning that is not stored yet. The same crossing of a limit always has the same id, so a repeated write stores no
 * second warning.
 */
export type NewWarning = { id: string; event: StoredEvent; data: WarningData }

/** The values in a warning. Amounts are nano-credits as decimal digits. Both stores write the same values. */
type WarningData = Readonly<Record<string, string | number | null>>

/** A need, as a store remembers it. A need is a thing that operators should act on. @property data for webhooks */
export type NoticedNeed = { id: string; data: WarningData }

/**
 * A line of the list of needs is over if no server has found it for this long, in ms. A server that finds it later adds
 * a new line. With a shorter time, some lines would be announced again and again. A figure near its threshold crosses
 * the threshold often, and replicas see different upstreams.
 */
export const needKeptMs = 3_600_000

/**
 * A warning that waits to be sent. @property tries the results of earlier attempts, in a form that only the sender
 * reads
 */
export type StoredWarning = NewWarning & { atMs: number; tries: string | undefined }

/**
 * Returns the warning of low credit. @param ownLows the account's own limits, as in its column `warn` @param seq the
 * number of the account's last entry
 */
export function warnOfCredit(
  { lowNanos, ownLows: areOwnWanted }: Watched,
  ownLows: string | null,
  {
    accountId,
    seq,
    beforeNanos,
    afterNanos,
  }: { accountId: string; seq: bigint; beforeNanos: bigint; afterNanos: bigint },
): NewWarning[] {
  if (ownLows !== null && !areOwnWanted) return []
  return (ownLows === null ? lowNanos : readLevels(ownLows))
    .filter((low) => beforeNanos >= low && afterNanos < low)
    .map((low) => ({
      id: `credit_low:${accountId}:${low}:${seq}`,
      event: 'credit_low',
      data: {
        account: accountId,
        balance_nanos: `${afterNanos}`,
        below_nanos: `${low}`,
        ...(ownLows !== null && { own: 1 }),
      },
    }))
}

/**
 * Returns the threshold that a budget has reached, which is 0, 80 or 100 per cent. The store warns of 80 and of 100
 * once in each window.
 */
export function warningLevel(spentNanos: bigint, budgetNanos: bigint): number {
  if (spentNanos >= budgetNanos) return 100
  return spentNanos >= budgetNanos - budgetNanos / 5n ? 80 : 0
}

const levels = {
  key: [
    [80, 'key_budget_80'],
    [100, 'key_budget_spent'],
  ],
  account: [
    [80, 'account_budget_80'],
    [100, 'account_budget_spent'],
  ],
  person: [
    [80, 'person_budget_80'],
    [100, 'person_budget_spent'],
  ],
} as const

/** Returns whether a scope's budget belongs to a key, an account or a person. */
export function kindOfScope(scope: string): keyof typeof levels {
  if (scope.startsWith('acct_')) return 'account'
  return scope.startsWith('per_') ? 'person' : 'key'
}

/** Returns the due warnings of a budget. @param warned the highest threshold already warned of in this window */
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
  const kind = kindOfScope(scope)
  return levels[kind]
    .filter(([at]) => at > warned && at <= level)
    .map(([, event]) => ({
      id: `${event}:${scope}:${fromMs}:${budget.nanos}`,
      event,
      data: {
        [kind]: scope,
        budget_nanos: `${budget.nanos}`,
        per: budget.per ?? null,
        spent_nanos: `${spentNanos}`,
        until_ms: untilMs,
      },
    }))
}
