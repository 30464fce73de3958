import { z } from 'zod'
import { formatCalls } from '../accounts/calls.ts'
import { formatCredits } from '../accounts/credit.ts'
import type { ListedEntry } from '../accounts/entries.ts'
import { formatCsvTable } from './csv.ts'
import { amount, formatTime, named, when } from './fields.ts'
import { noTokens, toTokens } from './rows.ts'
import { maybeTokens, usage } from './shapes.ts'

const text = z.string().nullable()
const count = z.number().nullable()

const originShape = {
  key_id: text,
  key_prefix: text,
  key_label: text,
  client_wire: text,
  model: text,
  model_wire: text,
  upstream: text,
  upstream_account: text,
}

const cost = 'only operators with the role finance or admin see it; others get null'

/** Fields that only entries of form 3 have (docs/ledger.md). An unused field is null. */
const detailShape = {
  list: text.describe('the digest of the price list, if it has bands, tiers or geographies'),
  band: text,
  tier: text,
  geo: text,
  person: text.describe('the id of the person'),
  labels: text,
  cost_version: text.describe(cost),
  cost: amount.nullable().describe(`what the provider charges by its price list: ${cost}`),
  cost_reported: text.describe(`what the provider reports in its answer: ${cost}`),
  alias: text,
  fell_back_from: text,
  fell_back_cause: text,
  moved: text,
  effective: when.nullable().describe('for a correction of times: the time at which the corrected entries count'),
}

/** The debit of a request. */
export const debitShape = named('Debit', {
  request_id: z.string(),
  account: z.string(),
  account_name: text,
  ...originShape,
  amount,
  usage: usage.omit({ calls: true }),
  priced_calls: z.number(),
  calls: z.record(z.string(), z.number()).optional(),
  usage_source: z.string(),
  outcome: z.string(),
  created: when,
  posted: when,
  ...detailShape,
})

/** A ledger entry of any kind as flat fields, in the order of the columns of an export. */
export const lineShape = named('LedgerEntry', {
  account: z.string(),
  account_name: text,
  seq: z.number(),
  kind: z.enum(['credit', 'debit']),
  amount: amount.describe('credits: a credit adds them to the balance, a debit takes them away'),
  balance_after: amount,
  reference: text,
  request_id: text,
  ...originShape,
  ...maybeTokens,
  priced_calls: count,
  usage_source: text,
  price_version: text,
  outcome: text,
  created: when,
  posted: when,
  digest: z.string(),
  calls: text,
  ...detailShape,
})

/** Converts the entry of a debit to a `Debit`. @param seesCosts whether the reader may see costs (ruling Y22) */
export function toDebit(entry: ListedEntry, seesCosts: boolean): z.output<typeof debitShape> {
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
    created: formatTime(entry.createdMs)!,
    posted: formatTime(entry.postedMs)!,
    ...toDetails(entry, seesCosts),
  }
}

/** Converts an entry of any kind to flat fields. Fields of other kinds are null. @param seesCosts see `toDebit` */
export function toLine(entry: ListedEntry, seesCosts: boolean): EntryLine {
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
    created: formatTime(entry.createdMs)!,
    posted: formatTime(entry.postedMs)!,
    digest: entry.digest,
    calls: formatCalls(bill?.calls) ?? null,
    ...toDetails(entry, seesCosts),
  }
}

function toDetails({ details = {} }: ListedEntry, seesCosts: boolean) {
  const { costVersion, costNanos, costReported } = seesCosts ? details : {}
  return {
    list: details.list ?? null,
    band: details.band ?? null,
    tier: details.tier ?? null,
    geo: details.geo ?? null,
    person: details.person ?? null,
    labels: details.labels ?? null,
    cost_version: costVersion ?? null,
    cost: costNanos === undefined ? null : formatCredits(costNanos),
    cost_reported: costReported ?? null,
    alias: details.alias ?? null,
    fell_back_from: details.fellBackFrom ?? null,
    fell_back_cause: details.fellBackCause ?? null,
    moved: details.moved ?? null,
    effective: details.effectiveMs === undefined ? null : formatTime(details.effectiveMs)!,
  }
}

export type EntryLine = z.output<typeof lineShape>

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

/** Formats entries as comma-separated values. The columns are the fields of `lineShape`. */
export function formatCsv(entries: AsyncIterable<ListedEntry>, seesCosts: boolean): AsyncIterable<string> {
  return formatCsvTable(
    Object.keys(lineShape.shape) as (keyof EntryLine)[],
    ['amount', 'balance_after', 'cost'],
    eachLine(entries, seesCosts),
  )
}

/** Converts entries to lines, one at a time. */
export async function* eachLine(entries: AsyncIterable<ListedEntry>, seesCosts: boolean): AsyncIterable<EntryLine> {
  for await (const entry of entries) yield toLine(entry, seesCosts)
}
