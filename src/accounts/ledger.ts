import type { Prices, WireName } from '../catalog/model.ts'
import type { Calls, Usage, UsageSource } from '../inference/usage.ts'
import type { Account } from './account.ts'

/** How a request ended. The value of `outcome` in the ledger and in the log. */
export const outcomes = [
  'ok',
  'client_abort',
  'client_stall',
  'client_timeout',
  'upstream_cut',
  'upstream_stall',
  'upstream_error',
  'shutdown',
  'internal_error',
  'refused',
] as const

export type RequestOutcome = (typeof outcomes)[number]

/**
 * Where an answer was asked for, and where it was made (ruling C9). What the first release wrote tells of the model only:
 * the rest is undefined in its entries and in the lines of its spool.
 */
export type Origin = {
  keyId: string | undefined
  clientWire: WireName | undefined
  /** Catalog id. */
  model: string
  modelWire: WireName | undefined
  /** By their names in the configuration. */
  upstream: string | undefined
  upstreamAccount: string | undefined
}

/** One answer's bill. `requestId` is unique for ever: posting it twice is one debit (ruling R5). */
export type Debit = Origin & {
  requestId: string
  account: Account
  amountNanos: bigint
  usage: Usage
  usageSource: UsageSource
  /** Calls of hosted tools that have a price (ruling C9). */
  pricedCalls: number
  /** The same by their kinds (ruling C11); undefined where there is none. */
  calls: Calls | undefined
  priceVersion: string
  /** What `priceVersion` stands for. Kept once per version, so that every amount can be computed again. */
  prices: Prices
  outcome: RequestOutcome
  createdMs: number
}

/**
 * Why new inference is refused, in words for an operator. `owing` blocks one account; each of the others blocks all (rulings
 * C5, C13, Y16), and is told in this order.
 */
export const blockTexts = {
  lost: 'the ledger is lost: see ledger_lost in the log',
  unreached: 'the database cannot be reached: see store_unreachable in the log',
  clock: 'the clock is in doubt: see clock_wrong in the log',
  uncommitted: 'the ledger has taken nothing yet: see the log',
  stuck: 'neither the database nor the spool takes debits: see ledger_trouble in the log',
  owing: 'debits of the account are not in the ledger: see ledger_unsettled in the log',
} as const

export type LedgerBlock = keyof typeof blockTexts

export interface Ledger {
  /**
   * Resolves when the debit is durable, and the account's balance is what the ledger says. Never posts twice. Where the
   * database cannot take it within the settle deadline it is spooled durably and posted later; then it resolves too.
   * @throws when neither can be written.
   */
  debit(debit: Debit): Promise<'posted' | 'exists' | 'spooled'>
  /**
   * Why new inference is refused now; undefined while it is taken. The one question of all who admit, probe or report.
   * @param accountId adds what blocks this account alone: a debit of it is overdue, or withdrawn and not yet over (Y16).
   */
  whyBlocked(accountId?: string): LedgerBlock | undefined
  /** What is not in the ledger yet. */
  backlog(): Backlog
  /** Tells of each debit how long it took to become durable in the ledger, in ms; one listener, a later one in its place. */
  onDurable(tell: (tookMs: number) => void): void
}

/** Debits on their way. */
export type Backlog = {
  /** Those that are nowhere else than in memory. */
  waiting: number
  /** Those that are in the spool. */
  spooled: number
  /** How long the oldest of both has waited; 0 where there is none. */
  oldestMs: number
  /** Accounts that are blocked by debits of theirs (ruling Y16). */
  blockedAccounts: number
}
