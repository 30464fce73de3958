import type { Account } from '../accounts/account.ts'
import type { Outcome } from '../accounts/ledger.ts'
import { type Model, priceNanos } from '../catalog/model.ts'
import { type Usage, type UsageReport, weighUsage } from '../inference/usage.ts'
import type { Exchange } from './exchange.ts'
import type { Gateway } from './gateway.ts'
import type { CallRecord } from './record.ts'

/** What is known of an answer that has ended, one way or another (ruling C3). */
export type Evidence = {
  report: UsageReport
  /** It ended by the model's own word, so that the report is final. */
  isComplete: boolean
  /** Of all that was produced, in tokens. */
  estimateOutput: () => number
  outcome: Outcome
  /** The operator gives it away (ruling C4): an entry of 0. */
  isWaived: boolean
}

/**
 * From evidence to debit: weighed, priced, written down in the record and in the ledger.
 * @returns the counters that were billed, when the debit is durable. @throws when neither database nor spool took it.
 */
export async function settle(
  gateway: Gateway,
  record: CallRecord,
  account: Account,
  model: Model,
  exchange: Exchange,
  evidence: Evidence,
): Promise<Usage> {
  const { report, isComplete, estimateOutput, outcome, isWaived } = evidence
  const { usage, source, flags } = weighUsage({
    report,
    isComplete,
    estimateInput: () => exchange.inputTokensEstimate,
    estimateOutput,
    outputTokensCap: exchange.outputTokensCap,
  })
  const amountNanos = isWaived ? 0n : priceNanos(model.prices, usage)
  const usageSource = isWaived ? 'waived' : source
  record.usage = usage
  record.usageSource = usageSource
  record.costNanos = amountNanos
  record.outcome = outcome
  if (flags.length > 0) record.flags = flags
  await gateway.ledger.debit({
    requestId: record.id,
    account,
    keyId: record.keyId,
    clientWire: record.wire,
    model: model.id,
    modelWire: model.wire,
    upstream: model.upstream,
    upstreamAccount: record.upstream,
    amountNanos,
    usage,
    usageSource,
    pricedCalls: 0,
    priceVersion: model.priceVersion,
    prices: model.prices,
    outcome,
    createdMs: gateway.nowMs(),
  })
  return usage
}
