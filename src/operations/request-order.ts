import type { ListedEntry } from '../accounts/entries.ts'
import type { RequestRow } from './live-shapes.ts'

/* The filter of requests and their order. A server needs these parts even if no operator asks for requests. */

/** Which requests are meant: those that fit all of what is given, and one of each list. */
export type RequestFilter = {
  accountId?: string | undefined
  keyIds?: readonly string[] | undefined
  models?: readonly string[] | undefined
  upstreams?: readonly string[] | undefined
  outcomes?: readonly string[] | undefined
  statuses?: readonly string[] | undefined
  /** Over then or later. */
  sinceMs?: number | undefined
  /** Over before. */
  untilMs?: number | undefined
}

/** The request after which a page begins. Requests are listed in the order of both members, the last first. */
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

/** The last first. */
export function compareRows(a: RequestRow, b: RequestRow): number {
  return compareText(b.at, a.at) || compareText(b.request_id, a.request_id)
}

/** Whether it comes after a place. */
export function isBeyond(row: RequestRow, { atMs, id }: RequestPlace): boolean {
  const ms = Date.parse(row.at)
  return ms < atMs || (ms === atMs && row.request_id < id)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** How far a store's clock may be from the server's, and how late a debit may be posted, without losing its place. */
export const lateMs = 5_000

/** When it was over by the clock of the server, as far as its place among the entries allows. */
export function atOf({ createdMs, postedMs }: ListedEntry): number {
  return Math.min(Math.max(createdMs, postedMs - lateMs), postedMs + lateMs)
}

/** The sums that running requests hold of accounts, in nano-credits, by the ids of the accounts. */
export type Holds = ReadonlyMap<string, bigint>

/** The orders of an operator for an upstream account: try it now, do not use it, or use it again. */
export const steerings = ['retry', 'disable', 'enable'] as const

export type SteeringWord = (typeof steerings)[number]

/** Which services of an upstream are meant: all of what is not said. */
export type UpstreamPlace = { upstream: string; account?: string | undefined; model?: string | undefined }
