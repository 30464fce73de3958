import { counters } from '../inference/usage.ts'
import { formatCalls } from './calls.ts'
import type { Head } from './chain.ts'
import type { Debit, Origin } from './ledger.ts'
import type { DebitRow } from './poster.ts'

/** A line of the ledger. A credit has a reference, a debit a bill. Amounts in nano-credits, times in Unix milliseconds. */
export type Entry = {
  accountId: string
  seq: number
  kind: 'credit' | 'debit'
  amountNanos: bigint
  balanceAfterNanos: bigint
  createdMs: number
  /** The store's time: never before the account's entry before it. An entry's day is this one's (ruling C15). */
  postedMs: number
  digest: string
  reference: string | undefined
  /** Of a debit. */
  bill: Omit<DebitRow, 'accountId' | 'amountNanos' | 'createdMs' | 'prices'> | undefined
  /** Of a credit that gives a debit back which its client was refused: whose it was (ruling C13). */
  returned: (Origin & { requestId: string }) | undefined
}

/** An entry with what people call those it names; undefined for what is no more, or never had a name. */
export type ListedEntry = Entry & {
  accountName: string | undefined
  keyPrefix: string | undefined
  keyLabel: string | undefined
}

/** A debit with all that its amount follows from, and whether it stands. */
export type FoundDebit = {
  entry: ListedEntry & { bill: NonNullable<Entry['bill']> }
  /** Of its price version; undefined in a ledger that was tampered with. */
  prices: Debit['prices'] | undefined
  /** It was given back (ruling C13). */
  isReturned: boolean
}

/** Which entries are meant: those that fit all of what is given. */
export type EntryFilter = {
  accountId?: string | undefined
  /** Any of these keys. */
  keyIds?: readonly string[] | undefined
  model?: string | undefined
  /** Posted then or later. */
  sinceMs?: number | undefined
  /** Posted before. */
  untilMs?: number | undefined
}

/** Where a page of entries ends. */
export type EntryPlace = { postedMs: number; accountId: string; seq: number }

/** A page of entries, from behind a place on; the newest first unless told otherwise. */
export type EntryPage = EntryFilter & {
  limit: number
  first?: 'oldest' | 'newest' | undefined
  beyond?: EntryPlace | undefined
}

export const groupings = ['day', 'model', 'account', 'key'] as const

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
  /** Debits that were not given back. */
  requests: number
  /** Debits less what was given back of them (ruling C13). */
  billedNanos: bigint
  /** Top-ups and corrections. */
  creditedNanos: bigint
} & Record<Counter, number>

/** What an access log says of one request that was billed, or that ended by an error of ours. A line may lack the rest. */
export type LogLine = {
  requestId: string
  outcome: string
  /** What our side knew of a failure; a debit is given back for `ledger_unsettled` alone (ruling C13). */
  cause?: string | undefined
  /** None where nothing was billed. */
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
  /** What tokens and calls cost. */
  priceNanos: (prices: Debit['prices'], usage: Debit['usage'], calls: Debit['calls']) => bigint
  /** Requests of the access log, where it is to be compared: it must reach as far back as the ledger. */
  log?: Iterable<LogLine> | undefined
  /** What an earlier audit said of the same store: all that it covered must still be there (ruling C15). */
  against?: Head | undefined
}

/**
 * @property head of what was read, none where something was found: it would cover the forgery.
 * @property notes what is no forgery, and should be known.
 */
export type Audited = { findings: string[]; head: string | undefined; notes?: string[] }

const returnPrefix = 'return:'

/**
 * The reference of the entry that gives a debit back (ruling C13).
 * @param number from 2 on where a top-up of the first release, which took any reference, has the one before (ruling C8).
 */
export function returnReference(requestId: string, number = 1): string {
  return number === 1 ? returnPrefix + requestId : `${returnPrefix}${requestId}/${number}`
}

/** The request whose debit is given back; undefined for a reference that no return has. */
export function readReturnReference(reference: string): string | undefined {
  return reference.startsWith(returnPrefix) ? reference.slice(returnPrefix.length).replace(/\/\d+$/, '') : undefined
}

/**
 * Whether the entry is of this debit: the whole content but the time of making, for a retry may have been made anew. A
 * spool line of the first release does not tell the origin; what it does not tell it does not deny.
 */
export function isSame({ accountId, amountNanos, bill }: Entry, debit: DebitRow): boolean {
  return (
    bill !== undefined &&
    accountId === debit.accountId &&
    amountNanos === debit.amountNanos &&
    facts.every((fact) => bill[fact] === debit[fact]) &&
    origins.every((name) => debit[name] === undefined || bill[name] === debit[name]) &&
    counters.every((counter) => bill.usage[counter] === debit.usage[counter]) &&
    formatCalls(bill.calls) === formatCalls(debit.calls)
  )
}

const facts = ['model', 'priceVersion', 'usageSource', 'outcome', 'pricedCalls'] as const
const origins = ['keyId', 'clientWire', 'modelWire', 'upstream', 'upstreamAccount'] as const
type Counter = (typeof counters)[number]
