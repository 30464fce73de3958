import { formatCredits, formatPrices } from '../accounts/credit.ts'
import type { FoundDebit } from '../accounts/entries.ts'
import { missNanos } from '../catalog/model.ts'
import type { CallRecord, Try } from '../gateway/record.ts'
import type { Calls, Usage } from '../inference/usage.ts'
import type { LimitReason } from '../limit-reasons.ts'
import { loggable } from '../log/loggable.ts'
import type { RequestRow } from '../operations/live-shapes.ts'
import { noTokens, toTokens } from '../operations/rows.ts'
import type { Explanation } from '../operations/shapes.ts'
import type { Recent } from './recents.ts'

export type ExplainedUsage = NonNullable<Explanation['usage']>
type SettlementState = Explanation['settlement']['state']

/**
 * Explains a request that is in memory. The request may still be running.
 * @param clockMs the current monotonic time
 * @param debit the debit in the ledger; undefined if the ledger was not asked or has none
 */
export function explainRecord(record: Omit<Recent, 'overMs'>, clockMs: number, debit?: FoundDebit): Explanation {
  const { usage, prices, priceVersion, costNanos } = record
  return {
    request_id: record.id,
    account: pair(record.accountId, record.account, (id, name) => ({ id, name })),
    key: pair(record.keyId, record.keyPrefix, (id, prefix) => ({ id, prefix })),
    person: record.personId ?? null,
    labels: record.labels ?? null,
    model: record.model ?? null,
    alias: record.alias ?? null,
    fell_back: record.hops ?? null,
    moved: record.moved
      ? { why: record.moved, cost: usage && prices ? formatCredits(missNanos(prices, usage)) : null }
      : null,
    wire: { client: record.wire ?? null, model: record.modelWire ?? null },
    attempts: (record.tries ?? []).map((one) => explainTry(one, record, clockMs)),
    stopped: record.stopped ?? null,
    losses: (record.losses ?? []).slice(0, 50).map(({ field, what, why }) => ({ field: loggable(field), what, why })),
    usage: usage ? explainUsage(usage, record.calls) : null,
    price: prices && priceVersion !== undefined ? { version: priceVersion, ...formatPrices(prices) } : null,
    settlement: {
      state: debit ? (debit.isReturned ? 'returned' : 'in the ledger') : stateOf(record),
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

/**
 * Explains a request by its ledger entry alone. Unknown facts are null. Of the models that a fallback chain skipped,
 * the entry names only the first.
 */
export function explainDebit(debit: FoundDebit): Explanation {
  const { entry, prices } = debit
  const { requestId, clientWire, ...bill } = entry.bill
  const { person: personId, labels, alias, fellBackFrom: from, fellBackCause: cause, moved } = entry.details ?? {}
  const hops = from === undefined || cause === undefined ? [] : [{ from, to: bill.model, cause }]
  const record = {
    ...{ ...bill, id: requestId, wire: clientWire, prices, costNanos: entry.amountNanos },
    ...{ accountId: entry.accountId, account: entry.accountName, keyPrefix: entry.keyPrefix },
    ...{ personId, labels, alias, moved, ...(alias !== undefined && { hops }) },
  } as Omit<Recent, 'overMs'>
  return { ...explainRecord(record, 0, debit), attempts: null, losses: null }
}

/**
 * Reasons for a 429 if the record has no reason. `upstream`: the model had no capacity. `failed_auth`: too many wrong
 * keys.
 */
const reasonOfCode: Readonly<Record<string, LimitReason>> = {
  rate_limit_exceeded: 'upstream',
  too_many_failed_auth: 'failed_auth',
}

function stateOf({ settled, endMs }: Pick<Recent, 'settled' | 'endMs'>): SettlementState {
  if (settled === undefined) return endMs === undefined ? 'pending' : 'none'
  return settled === 'posted' ? 'in the ledger' : settled
}

/**
 * Explains a try, which is a request to one upstream account. The model of a try is shown only if the request used a
 * fallback chain. A try without a model of its own used the model of the record.
 */
function explainTry(tried: Try, record: Pick<CallRecord, 'hops' | 'model'>, clockMs: number) {
  const { upstream, account, why, status, cause, text, startedMs, endMs } = tried
  const ms = Math.round((endMs ?? clockMs) - startedMs)
  return {
    model: tried.model ?? (record.hops && record.model) ?? null,
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
  return { ...toTokens(usage), ...(calls && { calls }) }
}

/** Makes a value from two texts, either of which may be missing; null if both are missing. */
function pair<Made>(
  first: string | undefined,
  second: string | undefined,
  make: (first: string | null, second: string | null) => Made,
): Made | null {
  return first === undefined && second === undefined ? null : make(first ?? null, second ?? null)
}

/** Makes the row of a request that is over. @param record the request's record, or the part of it that is kept */
export function rowOf(record: Omit<Recent, 'tries' | 'losses'>): RequestRow {
  const { usage, accountId, account, keyId, keyPrefix, keyLabel, costNanos } = record
  const { cache_write_1h_tokens: _, ...tokens } = usage ? toTokens(usage) : noTokens
  return {
    request_id: record.id,
    at: new Date(record.overMs).toISOString(),
    account: accountId === undefined ? null : { id: accountId, name: account ?? null },
    key: keyId === undefined ? null : { id: keyId, prefix: keyPrefix ?? null, label: keyLabel ?? null },
    person: record.personId ?? null,
    labels: record.labels ?? null,
    model: record.model ?? null,
    alias: record.alias === undefined ? null : loggable(record.alias),
    client_wire: record.wire ?? null,
    model_wire: record.modelWire ?? null,
    upstream: record.upstream ?? null,
    upstream_account: record.upstreamAccount ?? null,
    outcome: record.outcome ?? 'ok',
    status: record.status ?? null,
    code: record.code ?? null,
    cause: record.cause ?? null,
    credits: costNanos === undefined ? null : formatCredits(costNanos),
    ...tokens,
    first_byte_ms: roundOr(record.firstByteMs),
    total_ms: roundOr(record.endMs),
    attempts: record.attempts ?? null,
    source: 'memory',
  }
}

function roundOr(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms)
}

/** Whether a request is shown to operators. Model lists, token counts and preflights are shown only if they failed. */
export function isTold({ walk, outcome, status = 0 }: Pick<Recent, 'walk' | 'outcome' | 'status'>): boolean {
  return walk === 'infer' || (outcome ?? 'ok') !== 'ok' || status >= 400
}
