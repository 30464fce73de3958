import { counters } from '../inference/usage.ts'
import { formatCalls } from './calls.ts'
import type { Head } from './chain.ts'
import type { Debit, DetailedDebit, EntryDetails, Origin } from './ledger.ts'

/** An entry of the ledger. A credit has a reference, a debit a bill. Amounts in nano-credits, times in Unix milliseconds. */
export type Entry = {
  accountId: string
  seq: number
  kind: 'credit' | 'debit'
  amountNanos: bigint
  balanceAfterNanos: bigint
  createdMs: number
  /** The store's time, never before the account's previous entry. This time decides the day of the entry (ruling C15). */
  postedMs: number
  digest: string
  reference: string | undefined
  /** Undefined for a credit. */
  bill: Omit<Debit, 'accountId' | 'amountNanos' | 'createdMs' | 'prices' | keyof DetailedDebit> | undefined
  /** The origin of the debit that a credit gives back because its client was refused (ruling C13). */
  returned: (Origin & { requestId: string }) | undefined
  /** Undefined in entries of forms 1 and 2. */
  details: EntryDetails | undefined
}

/** An entry with the names of its account and key; undefined if they no longer exist, or never had a name. */
export type ListedEntry = Entry & {
  accountName: string | undefined
  keyPrefix: string | undefined
  keyLabel: string | undefined
}

/** A debit with all that its amount follows from, and whether it was given back. */
export type FoundDebit = {
  entry: ListedEntry & { bill: NonNullable<Entry['bill']> }
  /** The prices of its version; undefined in a ledger that was tampered with. */
  prices: Debit['prices'] | undefined
  /** Whether it was given back (ruling C13). */
  isReturned: boolean
}

/** Selects the entries that match all of the given fields. */
export type EntryFilter = {
  accountId?: string | undefined
  /** Entries of any of these keys. */
  keyIds?: readonly string[] | undefined
  model?: string | undefined
  /** Posted at this time or later. */
  sinceMs?: number | undefined
  /** Posted before this time. */
  untilMs?: number | undefined
}

/** The last entry of a page. */
export type EntryPlace = { postedMs: number; accountId: string; seq: number }

/** A page of entries after a place; the newest first by default. */
export type EntryPage = EntryFilter & {
  limit: number
  first?: 'oldest' | 'newest' | undefined
  beyond?: EntryPlace | undefined
}

export const groupings = ['day', 'model', 'account', 'key', 'upstream'] as const

export type Grouping = (typeof groupings)[number]

/** The sums of one group of entries. */
export type Total = {
  /** First millisecond of the day in UTC on which the entries were posted. */
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
  /** The sum of debits, less what was given back of them (ruling C13). */
  billedNanos: bigint
  /** The sum of top-ups and corrections. */
  creditedNanos: bigint
  /** The charge of providers by the costs in the entries, returns or not. */
  costNanos: bigint
  /** Debits whose cost is not known. */
  withoutCost: number
} & Record<Counter, number>

/** A line of an access log about a request that was billed, or that ended by an error of ours. The other fields may be missing. */
export type LogLine = {
  requestId: string
  outcome: string
  /** Our cause of a failure; a debit is given back after `ledger_unsettled` alone (ruling C13). */
  cause?: string | undefined
  /** Undefined if nothing was billed. */
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
  /** The price of tokens and calls, in nano-credits. */
  priceNanos: (prices: Debit['prices'], usage: Debit['usage'], calls: Debit['calls']) => bigint
  /**
   * Reads a price list that the ledger keeps: which versions of prices it has for an answer. Without it, entries that name a list
   * are findings. @throws if the text is not the one of the digest
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
  /** Requests of the access log, if it is to be compared: the log must reach as far back as the ledger. */
  log?: Iterable<LogLine> | undefined
  /** The head that an earlier audit of the same store printed: all that it covered must still be there (ruling C15). */
  against?: Head | undefined
  /** Is shown from time to time how far the verification is, in words. */
  progress?: ((words: string) => void) | undefined
}

/**
 * @property head of the entries that were read; undefined if something was found, since it would cover the forgery.
 * @property notes facts that are no forgery and should be known.
 */
export type Audited = { findings: string[]; head: string | undefined; notes?: string[] }

const returnPrefix = 'return:'

/**
 * The reference of the entry that gives a debit back (ruling C13).
 * @param number 2 or more if a top-up of the first release, which took any reference, has the one before (ruling C8).
 */
export function returnReference(requestId: string, number = 1): string {
  return number === 1 ? returnPrefix + requestId : `${returnPrefix}${requestId}/${number}`
}

/** The request whose debit is given back; undefined for a reference of another form. */
export function readReturnReference(reference: string): string | undefined {
  return reference.startsWith(returnPrefix) ? reference.slice(returnPrefix.length).replace(/\/\d+$/, '') : undefined
}

/** The entries of an account that are posted ahead of the clock of the store, and that no correction names. They stand together. */
export type AheadAccount = {
  accountId: string
  accountName: string | undefined
  fromSeq: number
  toSeq: number
  /** When the first and the last of those were created that were created ahead too; undefined if none was. */
  moved: { firstMs: number; lastMs: number } | undefined
  /** When the last of the others was created. */
  keptMs: number | undefined
  /** The time that the first one may not precede: of the entry before it, or when its account was made. */
  afterMs: number
  /** Whether a monthly grant is among them. */
  hasGrant: boolean
}

/** One of them. @property effectiveMs the time at which it counts, once a correction names it */
export type AheadEntry = {
  seq: number
  createdMs: number
  postedMs: number
  effectiveMs: number | undefined
  /** The request of a debit, or the reference of a credit. */
  name: string
}

/** Entries of an account after a number, up to and with another. */
export type AheadPage = { accountId: string; afterSeq: number; toSeq: number; limit: number }

/** Begins the references of corrections, which are the ledger's own. */
export const correctionPrefix = 'effective:'

/** Whether a reference is one of a correction. */
export function isCorrectionReference(reference: string): boolean {
  return reference.startsWith(correctionPrefix)
}

/** The reference of the entry that names the entries of an account with these numbers. */
export function correctionReference(accountId: string, fromSeq: number, toSeq: number): string {
  return `${correctionPrefix}${accountId}/${fromSeq}-${toSeq}`
}

/**
 * Whether the entry is of this debit. All is compared except the creation time, since a retry may have made the debit
 * anew. A spool line of the first release lacks the origin, and missing parts are not compared.
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

/** The field of a total for each grouping. */
const places = {
  day: 'dayMs',
  model: 'model',
  account: 'accountId',
  key: 'keyId',
  upstream: 'upstream',
} as const satisfies Record<Grouping, keyof Total>

/** Adds totals of parts of the entries, sorted by the groupings: undefined comes first, texts in the order of their bytes. */
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
