import type { Prices } from '../catalog/model.ts'
import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { Calls, Usage, UsageSource } from '../inference/usage.ts'

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
 * The key, wires, model and upstream of an answer (ruling C9). The first release recorded the model only: the rest is
 * undefined in its entries and in the lines of its spool.
 */
export type Origin = {
  keyId: string | undefined
  clientWire: ClientWire | undefined
  /** Catalog id. */
  model: string
  modelWire: ModelWire | undefined
  /** Names in the configuration. */
  upstream: string | undefined
  upstreamAccount: string | undefined
}

/**
 * The part of an entry that only form 3 has (docs/ledger.md). An entry with any of these begins form 3 in its store, which older
 * triwires cannot read from then on. So a server sets them only if its configuration uses such a thing.
 */
export type EntryDetails = {
  /** The digest of the price list that the prices were chosen from, if it has bands, tiers or geographies. */
  list?: string | undefined
  /** The parts of the list that apply; each undefined for the base. */
  band?: string | undefined
  tier?: string | undefined
  geo?: string | undefined
  /** The id of the person who had the key. Never a name (ruling Y21). */
  person?: string | undefined
  /** Declared values by their dimensions, in the order of these: `project=apollo,team=core` (ruling Y21). */
  labels?: string | undefined
  /** The prices of the provider, and what the tokens cost by them, in nano-credits. Never shown to clients. */
  costVersion?: string | undefined
  costNanos?: bigint | undefined
  /** The provider's own bill, as its answer reports it: a decimal text. Never shown to clients (rulings P10, X14). */
  costReported?: string | undefined
  /** The name of the chain that the client asked for. */
  alias?: string | undefined
  /** The first entry of the chain that was passed over, and why. */
  fellBackFrom?: string | undefined
  fellBackCause?: string | undefined
  /** Why a conversation moved to another upstream account. */
  moved?: string | undefined
  /** Of a correction: the time at which the entries that it names count, in Unix milliseconds. */
  effectiveMs?: number | undefined
}

/** The part of a debit that makes an entry of form 3 of it. */
export type DetailedDebit = {
  details?: EntryDetails | undefined
  /** The text of the price list that `details.list` is the digest of. Kept once for each digest. */
  listText?: string | undefined
  /** The prices that `details.costVersion` stands for. */
  costPrices?: Prices | undefined
}

/** The bill of one answer. `requestId` is unique for ever: posting it twice makes one debit (ruling R5). */
export type Debit = Origin &
  DetailedDebit & {
    requestId: string
    amountNanos: bigint
    usage: Usage
    usageSource: UsageSource
    /** Calls of hosted tools that have a price (ruling C9). */
    pricedCalls: number
    /** The same calls by kind (ruling C11); undefined without priced calls. */
    calls: Calls | undefined
    priceVersion: string
    /** The prices that `priceVersion` stands for. Kept once per version, so that every amount can be computed again. */
    prices: Prices
    outcome: RequestOutcome
    createdMs: number
    accountId: string
  }

/**
 * Why new inference is refused, in words for an operator. `owing` blocks one account; each other cause blocks all
 * (rulings C5, C13, Y16). If several apply, the first of this list is reported.
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
   * Resolves when the debit is durable and the account's balance is the ledger's. Never posts twice. If the database
   * does not take the debit within the settle deadline, it is spooled durably and posted later; this resolves too.
   * @throws if neither can be written.
   */
  debit(debit: Debit): Promise<'posted' | 'exists' | 'spooled'>
  /**
   * Why new inference is refused now; undefined while it is accepted. All that admit, probe or report ask this. @param
   * accountId also asks what blocks this account alone: a debit that is overdue, or withdrawn and not over (Y16).
   */
  whyBlocked(accountId?: string): LedgerBlock | undefined
  /** Counts the debits that are not in the ledger yet. */
  backlog(): Backlog
  /** Reports for each debit the time until it was durable in the ledger, in ms. There is one listener; a later one replaces it. */
  onDurable(tell: (tookMs: number) => void): void
}

/** Counts of debits that are not in the ledger yet. */
export type Backlog = {
  /** Those that are only in memory. */
  waiting: number
  /** Those that are in the spool. */
  spooled: number
  /** How long the oldest of both has waited, in ms; 0 if there is none. */
  oldestMs: number
  /** Accounts that are blocked by their own debits (ruling Y16). */
  blockedAccounts: number
}
