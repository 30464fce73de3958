import { type ApiKey, keyIdOf } from '../accounts/account.ts'
import { countCalls } from '../accounts/calls.ts'
import type { Debit, RequestOutcome } from '../accounts/ledger.ts'
import { isAnsweredBy } from '../catalog/answer-names.ts'
import { type Model, priceNanos, type WireName } from '../catalog/model.ts'
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

/** What is known of an answer that has ended, one way or another (ruling C3). */
export type Evidence = {
  report: UsageReport
  /** It ended by the model's own word, so that the report is final. */
  isComplete: boolean
  /** Of all that was produced, in tokens; as of `UsageEvidence`. */
  estimateOutput: (enough?: number) => number
  /** Of reasoning that was not shown, in tokens; for an answer that ended early for its client (ruling C12). */
  estimateHidden?: () => number
  outcome: RequestOutcome
  /** The operator gives it away (ruling C4): an entry of 0. */
  isWaived: boolean
}

/** What an answer that is read, or has been read so far, says of itself. */
export function evidenceOf(
  answer: Pick<Evidence, 'report' | 'estimateOutput'>,
): Pick<Evidence, 'report' | 'estimateOutput'> {
  return { report: answer.report, estimateOutput: (enough?: number) => answer.estimateOutput(enough) }
}

/** Where nothing of an answer has come. */
export const nothingYet: Pick<Evidence, 'report' | 'estimateOutput'> = { report: {}, estimateOutput: () => 0 }

/** What an answer costs, and by which figures. */
export type Bill = {
  usage: Usage
  usageSource: UsageSource
  /** Those of hosted tools that have a price (ruling C11). */
  calls: Calls | undefined
  amountNanos: bigint
  outcome: RequestOutcome
  /** What was wrong with the model's figures (ruling C6), or with who answered (ruling Y13); for the log. */
  flags: readonly string[]
}

/**
 * From evidence to bill (rulings C1, C3, C6).
 * @param target who was asked, and by what name for the model (ruling Y13)
 */
export function weigh(evidence: Evidence, exchange: Exchange, model: Model, target: Pick<Target, 'model'>): Bill {
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
  const { prices } = model
  const called = prices.calls && weighCalls(report, isComplete, (kind) => Object.hasOwn(prices.calls!, kind))
  if (called) flags.push(...called.flags)
  if (report.models?.some((name) => !isAnsweredBy(name, target.model))) flags.push('model_differs')
  return {
    usage,
    usageSource: isWaived ? 'waived' : source,
    calls: called?.calls,
    amountNanos: isWaived ? 0n : priceNanos(prices, usage, called?.calls),
    outcome,
    flags,
  }
}

/** What a debit says beside the bill: who asked for what, and who answered. */
export type Billed = {
  requestId: string
  key: ApiKey
  clientWire: WireName
  model: Model
  target: Target
  bill: Bill
  /** Unix milliseconds. */
  createdMs: number
}

/** From bill to debit. The request id makes it repeatable: however often it is posted, it is one entry (ruling R5). */
export function debitOf({ requestId, key, clientWire, model, target, bill, createdMs }: Billed): Debit {
  const { usage, usageSource, calls, amountNanos, outcome } = bill
  return {
    requestId,
    account: key.account,
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
    priceVersion: model.priceVersion,
    prices: model.prices,
    outcome,
    createdMs,
  }
}

/** What the record says of a bill whose debit is on its way. */
export function noteBill(record: CallRecord, bill: Bill, { prices, priceVersion }: Model): void {
  const { usage, usageSource, calls, amountNanos, outcome, flags } = bill
  record.usage = usage
  record.usageSource = usageSource
  record.costNanos = amountNanos
  record.prices = prices
  record.priceVersion = priceVersion
  record.settled = 'waiting'
  record.outcome = outcome
  if (calls) record.calls = calls
  if (flags.length > 0) record.flags = flags
}
