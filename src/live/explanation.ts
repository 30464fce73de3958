import { formatCredits, formatPrices } from '../accounts/credit.ts'
import type { FoundDebit } from '../accounts/entries.ts'
import type { Prices } from '../catalog/model.ts'
import type { Try } from '../gateway/record.ts'
import type { Calls, Usage } from '../inference/usage.ts'
import { loggable } from '../log/loggable.ts'
import type { Explanation } from '../operations/shapes.ts'
import type { Recent } from './recents.ts'

export type ExplainedUsage = NonNullable<Explanation['usage']>
type ExplainedPrice = NonNullable<Explanation['price']>
type SettlementState = Explanation['settlement']['state']

/**
 * Of a request in memory, also one that is under way.
 * @param clockMs monotonic, now
 * @param debit what the ledger says by now, where it was asked
 */
export function explainRecord(record: Omit<Recent, 'overMs'>, clockMs: number, debit?: FoundDebit): Explanation {
  const { usage, prices, priceVersion, costNanos } = record
  return {
    request_id: record.id,
    account: pair(record.accountId, record.account, (id, name) => ({ id, name })),
    key: pair(record.keyId, record.keyPrefix, (id, prefix) => ({ id, prefix })),
    model: record.model ?? null,
    alias: record.alias ?? null,
    wire: { client: record.wire ?? null, model: record.modelWire ?? null },
    attempts: (record.tries ?? []).map((one) => explainTry(one, clockMs)),
    stopped: record.stopped ?? null,
    losses: (record.losses ?? []).slice(0, 50).map(({ field, what, why }) => ({ field: loggable(field), what, why })),
    usage: usage ? explainUsage(usage, record.calls) : null,
    price: prices && priceVersion !== undefined ? explainPrice(prices, priceVersion) : null,
    settlement: {
      state: debit ? stateOfDebit(debit.isReturned) : stateOf(record),
      outcome: record.outcome ?? null,
      status: record.status ?? null,
      code: record.code ?? null,
      reason: record.reason ?? (record.code && reasonOfCode[record.code]) ?? null,
      message: record.message === undefined ? null : loggable(record.message),
      param: record.param ?? null,
      cause: record.cause ?? null,
      usage_source: record.usageSource ?? null,
      amount: costNanos === undefined ? null : formatCredits(costNanos),
      flags: record.flags ?? [],
    },
  }
}

/** Of a request that only the ledger knows: what it has never had, or no more, is null. */
export function explainDebit({ entry, prices, isReturned }: FoundDebit): Explanation {
  const { bill } = entry
  return {
    request_id: bill.requestId,
    account: { id: entry.accountId, name: entry.accountName ?? null },
    key: pair(bill.keyId, entry.keyPrefix, (id, prefix) => ({ id, prefix })),
    model: bill.model,
    alias: null,
    wire: { client: bill.clientWire ?? null, model: bill.modelWire ?? null },
    attempts: null,
    stopped: null,
    losses: null,
    usage: explainUsage(bill.usage, bill.calls),
    price: prices ? explainPrice(prices, bill.priceVersion) : null,
    settlement: {
      state: stateOfDebit(isReturned),
      outcome: bill.outcome,
      status: null,
      code: null,
      reason: null,
      message: null,
      param: null,
      cause: null,
      usage_source: bill.usageSource,
      amount: formatCredits(entry.amountNanos),
      flags: [],
    },
  }
}

/** Reasons of a 429 that have none of their own in the counters: the model's lack of capacity, and a guessed key. */
const reasonOfCode: Readonly<Record<string, string>> = {
  rate_limit_exceeded: 'upstream',
  too_many_failed_auth: 'failed_auth',
}

function stateOf({ settled, endMs }: Pick<Recent, 'settled' | 'endMs'>): SettlementState {
  if (settled === undefined) return endMs === undefined ? 'pending' : 'none'
  return settled === 'posted' ? 'in the ledger' : settled
}

function stateOfDebit(isReturned: boolean): SettlementState {
  return isReturned ? 'returned' : 'in the ledger'
}

function explainTry({ upstream, account, why, status, cause, text, startedMs, endMs }: Try, clockMs: number) {
  const ms = Math.round((endMs ?? clockMs) - startedMs)
  return {
    upstream,
    account: account ?? null,
    why,
    status: status ?? null,
    cause: cause ?? null,
    text: text === undefined ? null : loggable(text),
    ms,
  }
}

export function explainUsage(usage: Omit<Usage, 'estimated'>, calls: Calls | undefined): ExplainedUsage {
  return {
    input_tokens: usage.inputTokens,
    cache_read_tokens: usage.cacheReadTokens,
    cache_write_tokens: usage.cacheWriteTokens,
    cache_write_1h_tokens: usage.cacheWrite1hTokens,
    output_tokens: usage.outputTokens,
    reasoning_tokens: usage.reasoningTokens,
    ...(calls && { calls }),
  }
}

function explainPrice(prices: Prices, version: string): ExplainedPrice {
  return { version, ...formatPrices(prices) }
}

/** Null where there is neither. */
function pair<Made>(
  first: string | undefined,
  second: string | undefined,
  make: (first: string | null, second: string | null) => Made,
): Made | null {
  return first === undefined && second === undefined ? null : make(first ?? null, second ?? null)
}
