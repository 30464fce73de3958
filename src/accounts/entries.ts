import { counters } from '../inference/usage.ts'
import { formatCalls } from './calls.ts'
import type { Head } from './chain.ts'
import type { Debit, DetailedDebit, EntryDetails, Origin } from './ledger.ts'

/**
 * An entry of the ledger. A credit has a reference, a debit has a bill. Amounts are nano-credits, times are Unix
 * milliseconds.
 */
export type Entry = {
  accountId: string
  seq: number
  kind: 'credit' | 'debit'
  amountNanos: bigint
  balanceAfterNanos: bigint
  createdMs: number
  /**
   * The store's time at posting, never before the account's previous entry. It determines the day of the entry (ruling
   * C15).
   */
  postedMs: number
  digest: string
  reference: string | undefined
  /** The bill of a debit; undefined for a credit. */
  bill: Omit<Debit, 'accountId' | 'amountNanos' | 'createdMs' | 'prices' | keyof DetailedDebit> | undefined
  /** The origin of the debit that this entry gives back, because the client of that debit was refused (ruling C13). */
  returned: (Origin & { requestId: string }) | undefined
  /** The columns that only entries with a digest of form 3 have (chain.ts); undefined in other entries. */
  details: EntryDetails | undefined
}

/**
 * An entry with the names of its account and key. A name is undefined if the account or key no longer exists or never
 * had a name.
 */
export type ListedEntry = Entry & {
  accountName: string | undefined
  keyPrefix: string | undefined
  keyLabel: string | undefined
}

/** A debit with everything that its amount is computed from, and whether it was given back. */
export type FoundDebit = {
  entry: ListedEntry & { bill: NonNullable<Entry['bill']> }
  /** The prices of the debit's price version. Undefined only in a ledger that was tampered with. */
  prices: Debit['prices'] | undefined
  /** Whether the debit was given back (ruling C13). */
  isReturned: boolean
}

/** Selects the entries that match all of the given fields. */
export type EntryFilter = {
  accountId?: string | undefined
  /** Only entries of one of these keys. */
  keyIds?: readonly string[] | undefined
  model?: string | undefined
  /** Only entries posted at this time or later, in Unix milliseconds. */
  sinceMs?: number | undefined
  /** Only entries posted before this time, in Unix milliseconds. */
  untilMs?: number | undefined
}

/** The position of an entry, for example of the last entry of a page. */
export type EntryPlace = { postedMs: number; accountId: string; seq: number }

/** A request for a page of entries after a position. The newest come first by default. */
export type EntryPage = EntryFilter & {
  limit: number
  first?: 'oldest' | 'newest' | undefined
  beyond?: EntryPlace | undefined
}

export const groupings = ['day', 'model', 'account', 'key', 'upstream'] as const

export type Grouping = (typeof groupings)[number]

/** The sums of one group of entries. */
export type Total = {
  /** The first millisecond of the UTC day on which the entries were posted. */
  dayMs?: number
  model?: string | undefined
  accountId?: string
  accountName?: string | undefined
  keyId?: string | undefined
  keyPrefix?: string | undefined
  keyLabel?: string | undefined
  upstream?: string | undefined
  /** The number of debits that were not given back. */
  requests: number
  /** The sum of debits, minus the amounts given back (ruling C13). */
  billedNanos: bigint
  /** The sum of top-ups and corrections. */
  creditedNanos: bigint
  /**
   * The sum of the costs in the entries, which are the amounts that providers charge. Debits that were given back count
   * too.
   */
  costNanos: bigint
  /** The number of debits whose cost is unknown. */
  withoutCost: number
} & Record<Counter, number>

/**
 * A line of an access log, about a request that was billed or that ended by an error of ours. Only the first two fields
 * are always present.
 */
export type LogLine = {
  requestId: string
  outcome: string
  /** The cause of a failure of ours. A debit is given back only if the cause is `ledger_unsettled` (ruling C13). */
  cause?: string | undefined
  /** The billed amount; undefined if nothing was billed. */
  amountNanos?: bigint | undefined
  accountId?: string | undefined
  accountName?: string | undefined
  keyId?: string | undefined
  keyPrefix?: string | undefined
  upstream?: string | undefined
  upstreamAccount?: string | undefined
  usage?: Partial<Debit['usage']> | undefined
}

export type VerifyOptions = {
  /** Computes the price of tokens and calls, in nano-credits. */
  priceNanos: (prices: Debit['prices'], usage: Debit['usage'], calls: Debit['calls']) => bigint
  /**
   * Reads the stored text of a price list. The returned function finds the price versions of the list that fit an
   * answer. If `readList` is missing, each entry that names a list is a finding.
   * @throws if the text does not match the digest
   */
  readList?: (
    digest: string,
    text: string,
  ) => (facts: {
    createdMs: number
    band: string | null
    tier: string | null
    geo: string | null
  }) => ReadonlySet<string>
  /** The requests in the access log, to be compared with the ledger. The log must reach as far back as the ledger. */
  log?: Iterable<LogLine> | undefined
  /**
   * A head (digest of all entries) of an earlier audit of the store. Everything that the head covered must still be in
   * the store (C15).
   */
  against?: Head | undefined
  /** Called from time to time with the progress of the verification, in words. */
  progress?: ((words: string) => void) | undefined
}

/**
 * The result of an audit.
 * @property head the head (digest) of the entries that were read. Undefined if there are findings, because the head
 *   would also cover the forgery.
 * @property notes facts that are not forgeries but should be known
 */
export type Audited = { findings: string[]; head: string | undefined; notes?: string[] }

const returnPrefix = 'return:'

/**
 * Makes the reference of the entry that gives a debit back (ruling C13).
 * @param number 1, or a higher number if top-ups have taken the references with the lower numbers. The first release
 *   accepted any reference for a top-up (ruling C8)
 */
export function returnReference(requestId: string, number = 1): string {
  return number === 1 ? returnPrefix + requestId : `${returnPrefix}${requestId}/${number}`
}

/** Returns the id of the request whose debit the entry gives back. Undefined if the reference has another form. */
export function readReturnReference(reference: string): string | undefined {
  return reference.startsWith(returnPrefix) ? reference.slice(returnPrefix.length).replace(/\/\d+$/, '') : undefined
}

/** Consecutive entries of an account that are posted ahead of the store's clock and not corrected yet. */
export type AheadAccount = {
  accountId: string
  accountName: string | undefined
  fromSeq: number
  toSeq: number
  /** The earliest and the latest creation time that is ahead of the clock. Undefined if no creation time is ahead. */
  moved: { firstMs: number; lastMs: number } | undefined
  /**
   * The latest creation time among entries that were not created ahead of the clock. Undefined if there are no such
   * entries.
   */
  keptMs: number | undefined
  /** The time of the entry before the first one, or else of the account's creation. No entry may be moved before it. */
  afterMs: number
  /** Whether one of the entries is a monthly grant. */
  hasGrant: boolean
}

/**
 * An entry dated ahead of the clock. @property effectiveMs when the entry counts; undefined if it is not corrected yet
 */
export type AheadEntry = {
  seq: number
  createdMs: number
  postedMs: number
  effectiveMs: number | undefined
  /** The request id of a debit, or the reference of a credit. */
  name: string
}

/** A request for the entries of an account with numbers above `afterSeq` up to and including `toSeq`. */
export type AheadPage = { accountId: string; afterSeq: number; toSeq: number; limit: number }

/** The prefix of the references of corrections. Only the ledger itself uses it. */
export const correctionPrefix = 'effective:'

/** Whether a reference is reserved for corrections. */
export function isCorrectionReference(reference: string): boolean {
  return reference.startsWith(correctionPrefix)
}

/**
 * Makes the reference of a correction. It contains the account, and the first and last number of the corrected entries.
 */
export function correctionReference(accountId: string, fromSeq: number, toSeq: number): string {
  return `${correctionPrefix}${accountId}/${fromSeq}-${toSeq}`
}

/**
 * Whether an entry was made from a debit. The creation time is not compared, because a retry makes the debit again at a
 * later time. Missing parts are not compared either, because spool lines of the first release have no origin.
 */
export function isSame({ accountId, amountNanos, bill, details }: Entry, debit: Debit): boolean {
  return (
    bill !== undefined &&
    accountId === debit.accountId &&
    amountNanos === debit.amountNanos &&
    facts.every((fact) => bill[fact] === debit[fact]) &&
    origins.every((name) => debit[name] === undefined || bill[name] === debit[name]) &&
    counters.every((counter) => bill.usage[counter] === debit.usage[counter]) &&
    formatCalls(bill.calls) === formatCalls(debit.calls) &&
    isSameDetails(details, debit.details)
  )
}

function isSameDetails(one: EntryDetails = {}, other: EntryDetails = {}): boolean {
  const names = Object.keys({ ...one, ...other }) as (keyof EntryDetails)[]
  return names.every((name) => one[name] === other[name])
}

const facts = ['model', 'priceVersion', 'usageSource', 'outcome', 'pricedCalls'] as const
const origins = ['keyId', 'clientWire', 'modelWire', 'upstream', 'upstreamAccount'] as const
type Counter = (typeof counters)[number]

/** The field of a `Total` that each grouping uses. */
const places = {
  day: 'dayMs',
  model: 'model',
  account: 'accountId',
  key: 'keyId',
  upstream: 'upstream',
} as const satisfies Record<Grouping, keyof Total>

/**
 * Adds up totals that were computed for separate parts of the entries. The result is sorted by the values of the
 * groupings. An undefined value comes first, then texts in byte order.
 */
export function addTotals(parts: readonly Total[], by: readonly Grouping[]): Total[] {
  const placeOf = (total: Total) => by.map((grouping) => total[places[grouping]])
  const sums = new Map<string, Total>()
  for (const part of parts) {
    const place = JSON.stringify(placeOf(part).map((value) => value ?? null))
    const sum = sums.get(place)
    sums.set(place, sum ? add(sum, part) : part)
  }
  return [...sums.values()].sort((a, b) => compare(placeOf(a), placeOf(b)))
}

function add(a: Total, b: Total): Total {
  const sum: Total = {
    ...b,
    requests: a.requests + b.requests,
    billedNanos: a.billedNanos + b.billedNanos,
    creditedNanos: a.creditedNanos + b.creditedNanos,
    costNanos: a.costNanos + b.costNanos,
    withoutCost: a.withoutCost + b.withoutCost,
  }
  for (const counter of counters) sum[counter] = a[counter] + b[counter]
  return sum
}

type TotalKey = readonly (string | number | undefined)[]

function compare(a: TotalKey, b: TotalKey): number {
  for (const [at, left] of a.entries()) {
    const right = b[at]
    if (left === right) continue
    if (left === undefined || right === undefined) return left === undefined ? -1 : 1
    if (typeof left === 'number') return left - (right as number)
    return Buffer.compare(Buffer.from(left), Buffer.from(right as string))
  }
  return 0
}
