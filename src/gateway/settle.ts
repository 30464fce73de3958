import { type ApiKey, keyIdOf } from '../accounts/account.ts'
import { countCalls } from '../accounts/calls.ts'
import type { Debit, DetailedDebit, RequestOutcome } from '../accounts/ledger.ts'
import { readService } from '../catalog/base-service.ts'
import { type Model, type PriceList, type PriceSet, priceNanos, type Serving } from '../catalog/model.ts'
import { setAt } from '../catalog/price-list.ts'
import { compile } from '../catalog/routing-fields.ts'
import {
  type Calls,
  type Usage,
  type UsageReport,
  type UsageSource,
  weighCalls,
  weighUsage,
} from '../inference/usage.ts'
import type { Target } from '../upstream/target.ts'
import type { Exchange } from './exchange.ts'
import type { CallRecord } from './record.ts'

/** The known facts about an answer after its end, however it ended (ruling C3). */
export type Evidence = {
  report: UsageReport
  /** Whether the model ended the answer itself. The usage report is then final. */
  isComplete: boolean
  /** Estimates the tokens of all output (see `UsageEvidence`). */
  estimateOutput: (enough?: number) => number
  /** Estimates the reasoning tokens that were not shown. Set if the answer ended early for its client (ruling C12). */
  estimateHidden?: () => number
  outcome: RequestOutcome
  /** The operator does not charge for the answer, so its ledger entry has the amount 0 (ruling C4). */
  isWaived: boolean
}

/** Picks the two members of an answer that the bill needs. The answer can be incomplete. */
export function evidenceOf(
  answer: Pick<Evidence, 'report' | 'estimateOutput'>,
): Pick<Evidence, 'report' | 'estimateOutput'> {
  return { report: answer.report, estimateOutput: (enough?: number) => answer.estimateOutput(enough) }
}

/** The evidence for the bill if no part of an answer has come. */
export const nothingYet: Pick<Evidence, 'report' | 'estimateOutput'> = { report: {}, estimateOutput: () => 0 }

/** The cost of an answer, and the figures that it is computed from. */
type Bill = {
  usage: Usage
  usageSource: UsageSource
  /** The calls of hosted tools that have a price, at the gateway or at the provider (ruling C11). */
  calls: Calls | undefined
  amountNanos: bigint
  /** The prices that the amount was computed from. */
  set: PriceSet
  /** The provider's charge by its price list, and the prices used. Undefined if no such list is configured. */
  cost: { set: PriceSet; nanos: bigint } | undefined
  /** The provider's own bill, as its answer reports it. */
  costReported: string | undefined
  outcome: RequestOutcome
  /**
   * Flags for the log: implausible figures (ruling C6), an answer of another model (Y13), a tier without a price (Y17).
   */
  flags: readonly string[]
}

type AnsweringAttempt = { target: Pick<Target, 'model'>; tier?: string | undefined }

/**
 * Computes the bill from the evidence (rulings C1, C3, C6).
 * @param answered the target that answered, and the tier in the head of its answer. This tier takes precedence over a
 *   tier in the body (Y17). The target also has the upstream's name for the model (ruling Y13)
 * @param at the moment that chooses among the prices of a list, in Unix milliseconds (ruling C11)
 */
export function weigh(
  evidence: Evidence,
  exchange: Exchange,
  model: Model,
  answered: AnsweringAttempt,
  at: number,
): Bill {
  const { report, isComplete, estimateOutput, estimateHidden, outcome, isWaived } = evidence
  const { usage, source, flags } = weighUsage({
    report,
    isComplete,
    estimateInput: () => exchange.inputTokensEstimate,
    estimateOutput,
    estimateHidden,
    outputTokensCap: exchange.outputTokensCap,
    bounds: exchange.bounds,
  })
  const said = answered.tier === undefined ? report.service : { ...report.service, service_tier: answered.tier }
  const served = said || exchange.service ? readService(said, exchange.service, model, at) : undefined
  const set = setAt(model.prices, { ...served, at })
  const { cost: list } = answered.target.model
  const costSet = list && costSetOf(list)
  // The provider may charge for calls that the gateway gives away.
  const [prices, costs] = [set.prices, costSet?.prices]
  const isPriced = (kind: string) => [prices, costs].some((one) => one?.calls && Object.hasOwn(one.calls, kind))
  const called = (prices.calls ?? costs?.calls) && weighCalls(report, isComplete, isPriced)
  if (called) flags.push(...called.flags)
  if (report.models?.some((name) => !isAnsweredBy(name, answered.target.model))) flags.push('model_differs')
  if (served?.isUnpriced) flags.push('tier_unpriced')
  return {
    usage,
    usageSource: isWaived ? 'waived' : source,
    calls: called?.calls,
    amountNanos: isWaived ? 0n : priceNanos(prices, usage, called?.calls),
    set,
    cost: costSet && { set: costSet, nanos: priceNanos(costSet.prices, usage, called?.calls) },
    costReported: report.costReported,
    outcome,
    flags,
  }

  /** Finds the provider's prices. The provider's list may price other tiers than ours, so the tier is read again. */
  function costSetOf(prices: PriceList): PriceSet {
    const facts = said || exchange.service ? readService(said, exchange.service, { ...model, prices }, at) : undefined
    return setAt(prices, { ...facts, at })
  }
}

/** The facts of a debit: the key and the model of the request, the target that answered, and the bill. */
type Billed = Pick<Debit, 'requestId' | 'clientWire' | 'createdMs'> & {
  key: ApiKey
  model: Model
  target: Target
  bill: Bill
  /** The person and the labels of the request (ruling Y21), and the entries of a chain that it went through. */
  who: Pick<CallRecord, 'personId' | 'labels' | 'alias' | 'hops' | 'fellBack' | 'moved'>
  /** The configured form of entries (docs/ledger.md). Undefined: an entry gets form 3 only if its facts require it. */
  form: 3 | undefined
}

/** Makes the debit for a bill. If it is posted again, its request id prevents a second entry (ruling R5). */
export function debitOf({ requestId, key, clientWire, model, target, bill, createdMs, who, form }: Billed): Debit {
  const { usage, usageSource, calls, amountNanos, set, outcome } = bill
  return {
    requestId,
    keyId: keyIdOf(key),
    clientWire,
    model: model.entryId,
    modelWire: model.wire,
    upstream: target.upstream.name,
    upstreamAccount: target.account?.name,
    amountNanos,
    usage,
    usageSource,
    pricedCalls: calls === undefined ? 0 : countCalls(calls),
    calls,
    priceVersion: set.version,
    prices: set.prices,
    outcome,
    createdMs,
    accountId: key.account.id,
    ...detailsOf(model.prices.kept, bill, who, form),
  }
}

/**
 * Returns the details that only an entry of form 3 (the newest layout) has. Undefined if the entry needs no such
 * details.
 */
function detailsOf(
  kept: Model['prices']['kept'],
  { set: { band, tier, geo }, cost, costReported }: Bill,
  { personId: person, labels, alias, hops, fellBack, moved }: Billed['who'],
  form: 3 | undefined,
): DetailedDebit | undefined {
  const isDetailed = kept !== undefined || cost !== undefined || (person ?? labels ?? hops) !== undefined
  // A reported cost or a moved conversation alone gives the entry form 3 only if the operator has chosen this form.
  if (!isDetailed && (form === undefined || (costReported ?? moved) === undefined)) return undefined
  const chosen = kept && { list: kept.digest, band: band ?? undefined, tier: tier ?? undefined, geo: geo ?? undefined }
  const costs = cost && { costVersion: cost.set.version, costNanos: cost.nanos }
  return {
    details: { ...chosen, person, labels, ...costs, costReported, moved, ...(hops && chainOf(alias, fellBack)) },
    listText: kept?.text,
    costPrices: cost?.set.prices,
  }
}

/** Returns the chain that the request named, the entry of this chain that was passed over, and the cause. */
function chainOf(alias: string | undefined, fellBack: CallRecord['fellBack']) {
  return { alias, fellBackFrom: fellBack?.from, fellBackCause: fellBack?.cause }
}

/** Copies a bill into the record of its request. The debit of the bill is not in the ledger yet. */
export function noteBill(record: CallRecord, bill: Bill): void {
  const { usage, usageSource, calls, amountNanos, set, outcome, flags } = bill
  record.usage = usage
  record.usageSource = usageSource
  record.costNanos = amountNanos
  record.prices = set.prices
  record.priceVersion = set.version
  record.settled = 'waiting'
  record.outcome = outcome
  if (calls) record.calls = calls
  if (flags.length > 0) record.flags = flags
}

/**
 * A date or number of a model's edition: `-2024-08-06`, `@20250929`, `-0613`, `-250615`, `-08-2024`, `-05-06`, `-002`.
 */
const edition = /[-@](?:\d{4}-\d\d-\d\d|\d\d-\d{4}|\d\d-\d\d|\d{8}|\d{6}|\d{4}|\d{3})$/
/**
 * Suffixes of model names. A host adds `revision` (`-v1:0`) after the edition. `undated` (`-latest`, `:free`) comes in
 * place of an edition.
 */
const revision = /-v\d+:\d+$/
const undated = /(?:-latest|-0|:[a-z]+)$/

/**
 * Whether an answer with this model name comes from the requested model (ruling Y13). The name must equal the
 * upstream's name for the model, in any case. Either name may have a vendor or a path before it. One of them may lack
 * the edition, but two different editions are two models. Names that the profile lists are accepted too.
 */
export function isAnsweredBy(name: string, served: Pick<Serving, 'upstreamModel' | 'profile'>): boolean {
  if (name === served.upstreamModel) return true
  const [told = '', asked = ''] = [name, served.upstreamModel].map((one) => one.toLowerCase().replace(revision, ''))
  const { answerNames } = served.profile
  return isForm(told, asked) || isForm(told, asked.replace(undated, '')) || compile(answerNames).test(name)
}

function isForm(told: string, asked: string): boolean {
  return isTail(told, asked) || isTail(told.replace(edition, ''), asked) || isTail(told, asked.replace(edition, ''))
}

/**
 * Whether the names are equal, or one is the end of the other after a path, a vendor with its dot, or both
 * (`inference-profile/us-gov.anthropic.claude-…`).
 */
function isTail(one: string, other: string): boolean {
  const [long, short] = one.length < other.length ? [other, one] : [one, other]
  if (!long.endsWith(short) || short === '') return false
  const before = long.slice(0, long.length - short.length)
  return /(?:^|\/)(?:[a-z-]+\.)*$/.test(before)
}
