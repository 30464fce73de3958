import type { Zone } from '../calendar.ts'
import type { BucketCounts } from './histogram.ts'
import { dimensions, paidDimensions, type SumColumn } from './rollup.ts'

/**
 * A sum of a group in a bucket. `errors`: the failed ones of the requests. `moved`: those whose conversation moved to another
 * upstream account (ruling Y24), as servers have counted them.
 */
export type SumName = SumColumn | 'errors' | 'moved'

const timeNames = ['first_byte', 'total'] as const

export type TimeName = (typeof timeNames)[number]

/** The groupings that a question may name. `code` is for requests that cost nothing; all others have an empty one. */
export const usageGroupings = [...dimensions, ...paidDimensions, 'code'] as const

export type UsageGrouping = (typeof usageGroupings)[number]

/** Outcomes of requests that did not fail: their answer was whole, or their client left it. */
export const soundOutcomes = ['ok', 'client_abort', 'client_stall', 'client_timeout']

export type UsageQuestion = {
  /** The beginnings of the buckets and the end of the last one, as numbers of quarter hours. */
  bounds: readonly number[]
  /** Of all entries even if figures are not kept of them, and of nothing that cost nothing. Else see `folding`, `keptFrom`. */
  isWhole?: boolean
  /** Each of them begins a day of this zone, which may be the store's. */
  daysOf: Zone | undefined
  by: readonly UsageGrouping[]
  /** Only these words of each. */
  only: Partial<Record<UsageGrouping, readonly string[]>>
  sums: readonly SumName[]
  times: readonly TimeName[]
  /** The number of groups that are listed by name, those with most of this. */
  top: number
  sort: SumName
}

/** Figures by bucket. */
export type Series = {
  /** In the order of the question's. */
  sums: bigint[][]
  times: BucketCounts[][]
}

export type UsageAnswer = {
  /** Words in the order of `by`. */
  groups: (Series & { of: string[] })[]
  /** The sum of all groups that are not listed. @property count of groups */
  other: (Series & { count: number }) | undefined
  total: Series
  /** Figures of quarters before this one are deleted. */
  keptFrom: number
  /** Set if so many entries are not folded that they were left out. The figures are then of what is folded. */
  folding?: FoldProgress | undefined
}

/** Entries of the ledger, and how many of them are folded into figures. */
export type FoldProgress = { folded: number; entries: number }

/**
 * Reports read so many unfolded entries at most, in some 50 MB (CON-10). More are left only after an upgrade or a copy of a store,
 * or if a server folds more slowly than it posts.
 */
export const unfoldedMax = 20_000

/** @returns whether reports leave out what is not folded */
export function isFolding({ folded, entries }: FoldProgress): boolean {
  return entries - folded > unfoldedMax
}

/** How a store keeps its figures. */
export type UsageState = Zone & { keptFrom: number }

/** Whether a server has said whose days they are (ruling X12): each that starts says it together with since when they are kept. */
export function isRecorded({ keptFrom }: Pick<UsageState, 'keptFrom'>): boolean {
  return keptFrom > 0
}

/** Asks which accounts or keys spent most, today in the reporting zone and on the days before it. */
export type SpendRanking = {
  by: 'account' | 'key'
  /** Only keys of this account. */
  accountId?: string | undefined
  days: number
  /** Unix milliseconds. */
  nowMs: number
  /** The most rows to return. */
  top: number
}

/** @property nanos the cost in nano-credits, less what was given back */
export type RankedSpend = { id: string; nanos: bigint }
