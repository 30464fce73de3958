import { formatCalls } from '../accounts/calls.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { ListedEntry, Total } from '../accounts/entries.ts'
import { formatCsvRow, formatTable, formatTime } from './print.ts'

/** The binding shape of a debit for programs. */
export function toDebit(entry: ListedEntry) {
  const { requestId, usage, usageSource, outcome } = entry.bill!
  return {
    request_id: requestId,
    account: entry.accountId,
    account_name: entry.accountName ?? null,
    ...toOrigin(entry),
    amount: formatCredits(entry.amountNanos),
    usage: toTokens(usage),
    priced_calls: entry.bill!.pricedCalls,
    ...(entry.bill!.calls && { calls: entry.bill!.calls }),
    usage_source: usageSource,
    outcome,
    created: formatTime(entry.createdMs),
    posted: formatTime(entry.postedMs),
  }
}

/** Any entry, flat. What the other kind has is null. */
export function toLine(entry: ListedEntry) {
  const { bill, returned } = entry
  return {
    account: entry.accountId,
    account_name: entry.accountName ?? null,
    seq: entry.seq,
    kind: entry.kind,
    amount: formatCredits(entry.amountNanos),
    balance_after: formatCredits(entry.balanceAfterNanos),
    reference: entry.reference ?? null,
    request_id: bill?.requestId ?? null,
    ...toOrigin(entry),
    ...(bill ? toTokens(bill.usage) : noTokens),
    priced_calls: bill?.pricedCalls ?? null,
    usage_source: bill?.usageSource ?? (returned ? 'waived' : null),
    price_version: bill?.priceVersion ?? null,
    outcome: bill?.outcome ?? null,
    created: formatTime(entry.createdMs),
    posted: formatTime(entry.postedMs),
    digest: entry.digest,
    calls: formatCalls(bill?.calls) ?? null,
  }
}

type Line = ReturnType<typeof toLine>

function toOrigin({ bill, returned, keyPrefix, keyLabel }: ListedEntry) {
  const origin = bill ?? returned
  return {
    key_id: origin?.keyId ?? null,
    key_prefix: keyPrefix ?? null,
    key_label: keyLabel ?? null,
    client_wire: origin?.clientWire ?? null,
    model: origin?.model ?? null,
    model_wire: origin?.modelWire ?? null,
    upstream: origin?.upstream ?? null,
    upstream_account: origin?.upstreamAccount ?? null,
  }
}

type Tokens = Omit<NonNullable<ListedEntry['bill']>['usage'], 'estimated'>

function toTokens(tokens: Tokens) {
  return {
    input_tokens: tokens.inputTokens,
    cache_read_tokens: tokens.cacheReadTokens,
    cache_write_tokens: tokens.cacheWriteTokens,
    cache_write_1h_tokens: tokens.cacheWrite1hTokens,
    output_tokens: tokens.outputTokens,
    reasoning_tokens: tokens.reasoningTokens,
  }
}

const noTokens = {
  input_tokens: null,
  cache_read_tokens: null,
  cache_write_tokens: null,
  cache_write_1h_tokens: null,
  output_tokens: null,
  reasoning_tokens: null,
}

export function formatLines(rows: readonly Line[]): string {
  const columns = ['posted', 'account', 'kind', 'amount', 'balance_after', 'request', 'key', 'model', 'outcome']
  const cells = rows.map((row) => [
    row.posted ?? '',
    row.account_name ?? row.account,
    row.kind,
    row.amount,
    row.balance_after,
    row.request_id ?? row.reference ?? '',
    row.key_label ?? row.key_prefix ?? '',
    row.model ?? '',
    row.outcome ?? '',
  ])
  return formatTable(columns, cells)
}

/** The columns of the export, in its order; amounts and counts are numbers there. */
const csvColumns = {
  account: 'text',
  account_name: 'text',
  seq: 'number',
  kind: 'text',
  amount: 'number',
  balance_after: 'number',
  reference: 'text',
  request_id: 'text',
  key_id: 'text',
  key_prefix: 'text',
  key_label: 'text',
  client_wire: 'text',
  model: 'text',
  model_wire: 'text',
  upstream: 'text',
  upstream_account: 'text',
  input_tokens: 'number',
  cache_read_tokens: 'number',
  cache_write_tokens: 'number',
  cache_write_1h_tokens: 'number',
  output_tokens: 'number',
  reasoning_tokens: 'number',
  priced_calls: 'number',
  usage_source: 'text',
  price_version: 'text',
  outcome: 'text',
  created: 'text',
  posted: 'text',
  digest: 'text',
  calls: 'text',
} as const satisfies Record<keyof Line, 'text' | 'number'>

export async function* formatCsv(entries: AsyncIterable<ListedEntry>): AsyncIterable<string> {
  const columns = Object.entries(csvColumns) as [keyof Line, 'text' | 'number'][]
  yield formatCsvRow(columns.map(([name]) => ({ value: name, isNumber: false })))
  for await (const entry of entries) {
    const line = toLine(entry)
    yield formatCsvRow(columns.map(([name, type]) => ({ value: line[name], isNumber: type === 'number' })))
  }
}

/** One row of `ledger totals`: what it is grouped by, then its sums. */
export function toTotal(total: Total) {
  return {
    ...('dayMs' in total && { day: new Date(total.dayMs!).toISOString().slice(0, 10) }),
    ...('model' in total && { model: total.model ?? null }),
    ...('accountId' in total && { account: total.accountId!, account_name: total.accountName ?? null }),
    ...('keyId' in total && {
      key_id: total.keyId ?? null,
      key_prefix: total.keyPrefix ?? null,
      key_label: total.keyLabel ?? null,
    }),
    requests: total.requests,
    billed: formatCredits(total.billedNanos),
    credited: formatCredits(total.creditedNanos),
    ...toTokens(total),
  }
}

export function formatTotals(rows: readonly ReturnType<typeof toTotal>[]): string {
  const names = Object.keys(rows[0] ?? { requests: 0, billed: 0, credited: 0 })
  return formatTable(
    names,
    rows.map((row) => names.map((name) => String((row as Record<string, unknown>)[name] ?? '-'))),
  )
}
