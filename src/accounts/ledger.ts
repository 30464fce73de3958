import type { Prices } from '../catalog/model.ts'
import type { ClientWire, ModelWire } from '../catalog/wire-names.ts'
import type { Calls, Usage, UsageSource } from '../inference/usage.ts'

/** How a request ended: the values of `outcome` in the ledger and in the log. */
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
 * The key, wires, model and upstream of an answer (ruling C9). Entries and spool lines of the first release have only
 * the model. Their other fields are undefined.
 */
export type Origin = {
  keyId: string | undefined
  clientWire: ClientWire | undefined
  /** The model's id in the catalog. */
  model: string
  modelWire: ModelWire | undefined
  /** The name of the upstream in the configuration. */
  upstream: string | undefined
  upstreamAccount: string | undefined
}

/**
 * The part of an entry that needs a digest of form 3 (docs/ledger.md). After the first such entry, older releases of
 * triwire cannot read the store. A server sets these fields only if its configuration uses the feature that needs them.
 */
export type EntryDetails = {
  /** The digest of the price list from which the prices were chosen, if the list has bands, tiers or geographies. */
  list?: string | undefined
  /** The band, tier and geography whose prices apply. Each is undefined if the base price applies instead. */
  band?: string | undefined
  tier?: string | undefined
  geo?: string | undefined
  /** The id of the person to whom the key belonged at the time of the request. This is never a name (ruling Y21). */
  person?: string | undefined
  /** Labels, sorted by dimension: `project=apollo,team=core` (ruling Y21). */
  labels?: string | undefined
  /** The version of the provider's prices, and the cost at these prices in nano-credits. Never shown to clients. */
  costVersion?: string | undefined
  costNanos?: bigint | undefined
  /** The cost that the provider's answer reports, as a decimal text. Never shown to clients (rulings P10, X14). */
  costReported?: string | undefined
  /** The name of the chain of models that the client requested. */
  alias?: string | undefined
  /** The first model that was skipped in the chain named by `alias`, and the reason. */
  fellBackFrom?: string | undefined
  fellBackCause?: string | undefined
  /** Why the conversation moved to another upstream account. */
  moved?: string | undefined
  /** For a correction: the time at which the corrected entries count, in Unix milliseconds. */
  effectiveMs?: number | undefined
}

/** The part of a debit that requires an entry of form 3, a newer layout (docs/ledger.md). */
export type DetailedDebit = {
  details?: EntryDetails | undefined
  /** The text of the price list whose digest is `details.list`. Stored once for each digest. */
  listText?: string | undefined
  /** The prices that `details.costVersion` names. */
  costPrices?: Prices | undefined
}

/**
 * The bill of one answer. `requestId` is unique for ever, so a bill that is posted twice makes one debit (ruling R5).
 */
export type Debit = Origin &
  DetailedDebit & {
    requestId: string
    amountNanos: bigint
    usage: Usage
    usageSource: UsageSource
    /** The number of hosted tool calls that have a price (ruling C9). */
    pricedCalls: number
    /** The hosted tool calls that have a price, counted by kind (ruling C11). Undefined without such calls. */
    calls: Calls | undefined
    priceVersion: string
    /**
     * The prices of the version `priceVersion`. Stored once for each version, so that every amount can be computed
     * again.
     */
    prices: Prices
    outcome: RequestOutcome
    createdMs: number
    accountId: string
  }

/**
 * Why new inference is refused, in words for an operator. `owing` blocks one account. `stalled` means that several
 * accounts have waiting debits, and blocks these accounts. Each other cause blocks all accounts (rulings C5, C13, Y16).
 * If several causes apply, the first in this list is reported.
 */
export const blockTexts = {
  lost: 'the ledger is lost: see ledger_lost in the log',
  unreached: 'the database cannot be reached: see store_unreachable in the log',
  clock: 'the clock is in doubt: see clock_wrong in the log',
  uncommitted: 'the ledger has taken nothing yet: see the log',
  stuck: 'neither the database nor the spool takes debits: see ledger_trouble in the log',
  stalled: 'the ledger takes no debits of any account: see ledger_unsettled and ledger_trouble in the log',
  owing: 'debits of the account are not in the ledger: see ledger_unsettled in the log',
} as const

export type LedgerBlock = keyof typeof blockTexts

/** Whether new inference of all accounts is refused, and not only that of accounts whose debits wait (ruling Y16). */
export function blocksAll(block: LedgerBlock | undefined): boolean {
  return block !== undefined && block !== 'stalled' && block !== 'owing'
}

export interface Ledger {
  /**
   * Resolves when the debit is durable and the account's live balance matches the ledger. Never posts twice. If the
   * database does not accept the debit within the settle deadline, the debit is spooled durably and posted later. The
   * promise then resolves with `spooled`.
   * @throws if neither the database nor the spool can be written
   */
  debit(debit: Debit): Promise<'posted' | 'exists' | 'spooled'>
  /**
   * Returns why new inference is refused now; undefined while it is accepted.
   * @param accountId an account, to include causes that block this account alone. These are an overdue debit, and a
   *   withdrawal that has not ended (Y16)
   */
  whyBlocked(accountId?: string): LedgerBlock | undefined
  /** Counts the debits that are not in the ledger yet. */
  backlog(): Backlog
  /**
   * Sets the function that the ledger calls for each debit that has become durable. It replaces the function of an
   * earlier call.
   * @param tell receives the time that this took, in ms
   */
  onDurable(tell: (tookMs: number) => void): void
}

/** Counts of debits that are not in the ledger yet. */
export type Backlog = {
  /** The number of debits that are only in memory. */
  waiting: number
  /** The number of debits that are in the spool. */
  spooled: number
  /** How long the oldest of these debits has waited, in ms. 0 if no debit waits. */
  oldestMs: number
  /** The number of accounts that are blocked because their own debits cannot be posted (ruling Y16). */
  blockedAccounts: number
}
