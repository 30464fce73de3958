import { formatCredits } from '../accounts/credit.ts'
import { loggable } from '../log/loggable.ts'
import type { RequestRow } from '../operations/live-shapes.ts'
import { explainUsage } from './explanation.ts'
import type { Recent } from './recents.ts'

/** The row of a request that is over. @param record its own, or the part that is kept */
export function rowOf(record: Omit<Recent, 'tries' | 'losses'>): RequestRow {
  const { usage, calls, accountId, account, keyId, keyPrefix, keyLabel, costNanos } = record
  const tokens = usage ? explainUsage(usage, calls) : undefined
  return {
    request_id: record.id,
    at: new Date(record.overMs).toISOString(),
    account: accountId === undefined ? null : { id: accountId, name: account ?? null },
    key: keyId === undefined ? null : { id: keyId, prefix: keyPrefix ?? null, label: keyLabel ?? null },
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
    input_tokens: tokens?.input_tokens ?? null,
    cache_read_tokens: tokens?.cache_read_tokens ?? null,
    cache_write_tokens: tokens?.cache_write_tokens ?? null,
    output_tokens: tokens?.output_tokens ?? null,
    reasoning_tokens: tokens?.reasoning_tokens ?? null,
    first_byte_ms: roundOr(record.firstByteMs),
    total_ms: roundOr(record.endMs),
    attempts: record.attempts ?? null,
    source: 'memory',
  }
}

function roundOr(ms: number | undefined): number | null {
  return ms === undefined ? null : Math.round(ms)
}

/** Lists of models, counts and preflights that went well are no requests that anybody looks for. */
export function isTold({ walk, outcome, status = 0 }: Pick<Recent, 'walk' | 'outcome' | 'status'>): boolean {
  return walk === 'infer' || (outcome ?? 'ok') !== 'ok' || status >= 400
}
