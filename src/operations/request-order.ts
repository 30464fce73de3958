import type { ListedEntry } from '../accounts/entries.ts'
import type { RequestRow } from './live-shapes.ts'

/* The filter of requests and their order. They stand apart because a server needs them even if no operator lists requests. */

/** Selects requests that match all given fields. Of a list, one value must match. */
export type RequestFilter = {
  accountId?: string | undefined
  keyIds?: readonly string[] | undefined
  models?: readonly string[] | undefined
  upstreams?: readonly string[] | undefined
  outcomes?: readonly string[] | undefined
  statuses?: readonly string[] | undefined
  /** Requests that were over at this time or later. */
  sinceMs?: number | undefined
  /** Requests that were over before this time. */
  untilMs?: number | undefined
}

/** The request after which a page begins. Requests are sorted by both members, the latest first. */
export type RequestPlace = { atMs: number; id: string }

export function fits(row: RequestRow, filter: RequestFilter): boolean {
  const { accountId, keyIds, models, upstreams, outcomes, statuses, sinceMs, untilMs } = filter
  const atMs = Date.parse(row.at)
  return (
    (accountId === undefined || row.account?.id === accountId) &&
    isOne(keyIds, row.key?.id) &&
    isOne(models, row.model) &&
    isOne(upstreams, row.upstream) &&
    isOne(outcomes, row.outcome) &&
    isOne(statuses, row.status === null ? null : `${row.status}`) &&
    (sinceMs === undefined || atMs >= sinceMs) &&
    (untilMs === undefined || atMs < untilMs)
  )
}

function isOne(wanted: readonly string[] | undefined, value: string | null | undefined): boolean {
  return wanted === undefined || (typeof value === 'string' && wanted.includes(value))
}

/** Sorts the latest first. */
export function compareRows(a: RequestRow, b: RequestRow): number {
  return compareText(b.at, a.at) || compareText(b.request_id, a.request_id)
}

/** Whether a row comes after a place. */
export function isBeyond(row: RequestRow, { atMs, id }: RequestPlace): boolean {
  const ms = Date.parse(row.at)
  return ms < atMs || (ms === atMs && row.request_id < id)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The tolerance for a different clock of the store, and for a late debit, in ms. A later debit is listed at another place. */
export const lateMs = 5_000

/** The time when the request was over by the server's clock, limited to what the entry's place in the ledger allows. */
export function atOf({ createdMs, postedMs }: ListedEntry): number {
  return Math.min(Math.max(createdMs, postedMs - lateMs), postedMs + lateMs)
}

/** The sums that running requests hold, in nano-credits, by account id. */
export type Holds = ReadonlyMap<string, bigint>

/** An operator's command for an upstream account: try it now, do not use it, or use it again. */
export const steerings = ['retry', 'disable', 'enable'] as const

export type SteeringWord = (typeof steerings)[number]

/** Selects services of an upstream. A missing member matches all. */
export type UpstreamPlace = { upstream: string; account?: string | undefined; model?: string | undefined }
