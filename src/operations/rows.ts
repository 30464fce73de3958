import { formatPrices } from '../accounts/credit.ts'
import type { ListedEntry } from '../accounts/entries.ts'
import type { Catalog } from '../catalog/model.ts'
import { setAt } from '../catalog/price-list.ts'
import type { RequestRow } from './live-shapes.ts'
import type { ModelRow } from './shapes.ts'

/*
 * Rows of requests and models, and how they are selected and sorted. A server needs this module even if no operator
 * uses the API.
 */

/** Selects requests that match all given fields. A list matches if it contains the value. */
export type RequestFilter = {
  accountId?: string | undefined
  keyIds?: readonly string[] | undefined
  models?: readonly string[] | undefined
  upstreams?: readonly string[] | undefined
  outcomes?: readonly string[] | undefined
  statuses?: readonly string[] | undefined
  /** Selects requests that ended at this time or later. */
  sinceMs?: number | undefined
  /** Selects requests that ended before this time. */
  untilMs?: number | undefined
}

/**
 * The last request of a page. The next page begins after this request. Rows are sorted by both members, the latest
 * first.
 */
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

/** Compares two rows for sorting. The latest request comes first. */
export function compareRows(a: RequestRow, b: RequestRow): number {
  return compareText(b.at, a.at) || compareText(b.request_id, a.request_id)
}

/** Whether a row comes after the given place in a list. Lists begin with the latest row. */
export function isBeyond(row: RequestRow, { atMs, id }: RequestPlace): boolean {
  const ms = Date.parse(row.at)
  return ms < atMs || (ms === atMs && row.request_id < id)
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The largest difference between `atOf` and the posting time, in ms. Clocks differ, and debits may be posted late. */
export const lateMs = 5_000

/** Returns when a request ended, by the clock of its server. The result is within `lateMs` of the posting time. */
export function atOf({ createdMs, postedMs }: ListedEntry): number {
  return Math.min(Math.max(createdMs, postedMs - lateMs), postedMs + lateMs)
}

type Tokens = Omit<NonNullable<ListedEntry['bill']>['usage'], 'estimated'>

/** Converts token counts to the fields of answers. */
export function toTokens(tokens: Tokens) {
  return {
    input_tokens: tokens.inputTokens,
    cache_read_tokens: tokens.cacheReadTokens,
    cache_write_tokens: tokens.cacheWriteTokens,
    cache_write_1h_tokens: tokens.cacheWrite1hTokens,
    output_tokens: tokens.outputTokens,
    reasoning_tokens: tokens.reasoningTokens,
  }
}

/** The token fields of answers, all null, for requests without token counts. */
export const noTokens: Record<keyof ReturnType<typeof toTokens>, null> = {
  input_tokens: null,
  cache_read_tokens: null,
  cache_write_tokens: null,
  cache_write_1h_tokens: null,
  output_tokens: null,
  reasoning_tokens: null,
}

/** The nano-credits that running requests hold, by account id. */
export type Holds = ReadonlyMap<string, bigint>

/** An operator's commands for an upstream account: try it now, stop using it, or use it again. */
export const steerings = ['retry', 'disable', 'enable'] as const

export type SteeringWord = (typeof steerings)[number]

/** Selects the accounts and models of an upstream. A missing member matches all. */
export type UpstreamPlace = { upstream: string; account?: string | undefined; model?: string | undefined }

/**
 * Lists the models that clients can name, with the current base prices, for operators.
 * @param isFailing tells whether a model is failing; undefined if no server is running
 */
export function listModels(
  { entries, chains }: Pick<Catalog, 'entries' | 'chains'>,
  nowMs: number,
  isFailing?: (id: string) => boolean,
): ModelRow[] {
  return [...entries, ...chains].map((model) => {
    const set = setAt(model.prices, { at: nowMs })
    return {
      id: model.id,
      also: model.chain ? [] : [...model.aliases],
      chain: model.chain?.entries.map(({ id }) => id) ?? null,
      wire: model.wire,
      upstream: model.routes[0]!.upstream,
      upstream_model: model.upstreamModel,
      upstreams: model.routes.map(({ upstream, priority, weight, serving }) => ({
        name: upstream,
        priority,
        weight,
        upstream_model: serving.upstreamModel,
      })),
      max_output_tokens: model.outputTokensMax,
      context_window: model.contextWindow ?? null,
      prices: formatPrices(set.prices),
      price_version: set.version,
      failing: isFailing ? (model.chain?.entries ?? [model]).every(({ id }) => isFailing(id)) : null,
    }
  })
}
