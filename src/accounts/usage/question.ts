import type { Zone } from '../calendar.ts'
import type { BucketCounts } from './histogram.ts'
import { dimensions, paidDimensions, type SumColumn } from './rollup.ts'

/**
 * A kind of sum in a report: each group has one sum for each bucket of time. `errors` counts the failed requests.
 * `moved` counts requests whose conversation moved to another upstream account (ruling Y24), as counted by servers.
 */
export type SumName = SumColumn | 'errors' | 'moved'

const timeNames = ['first_byte', 'total'] as const

export type TimeName = (typeof timeNames)[number]

/** The groupings that a question may use. Only requests that cost nothing have a `code`. For all others it is empty. */
export const usageGroupings = [...dimensions, ...paidDimensions, 'code'] as const

export type UsageGrouping = (typeof usageGroupings)[number]

/** Outcomes of requests that did not fail: the answer was complete, or the client left it. */
export const soundOutcomes = ['ok', 'client_abort', 'client_stall', 'client_timeout']

export type UsageQuestion = {
  /** The start of each bucket and the end of the last bucket, as numbers of quarter hours. */
  bounds: readonly number[]
  /**
   * If true, the answer covers all ledger entries, even those that no stored figure contains. Requests without cost
   * have no entry. If false, `folding` and `keptFrom` of the answer say which entries are covered.
   */
  isWhole?: boolean
  /** The zone in which each bound is the start of a day. Undefined if the bounds are not the starts of days. */
  daysOf: Zone | undefined
  by: readonly UsageGrouping[]
  /** Selects entries. For each grouping named here, an entry must have one of the listed values. */
  only: Partial<Record<UsageGrouping, readonly string[]>>
  sums: readonly SumName[]
  times: readonly TimeName[]
  /** The number of groups that are listed by name: those with the highest sum of `sort`. */
  top: number
  sort: SumName
}

/** The figures of one group, with one element for each bucket of time. */
export type Series = {
  /** The sums of each bucket, in the order of the question's `sums`. */
  sums: bigint[][]
  times: BucketCounts[][]
}

export type UsageAnswer = {
  /** The listed groups. `of` has the group's values in the order of `by`. */
  groups: (Series & { of: string[] })[]
  /** The sum of all groups that are not listed. @property count the number of these groups */
  other: (Series & { count: number }) | undefined
  total: Series
  /** Figures of quarter hours before this one are deleted. */
  keptFrom: number
  /** Set if too many entries are not folded into figures yet. The answer then covers only the folded entries. */
  folding?: FoldProgress | undefined
}

/** The number of ledger entries, and how many of them are folded into figures. */
export type FoldProgress = { folded: number; entries: number }

/**
 * The most unfolded entries (not yet in the figures) that reports read, which take some 50 MB (CON-10). There are more
 * only after an upgrade or a copy of a store, or if a server folds more slowly than it posts.
 */
export const unfoldedMax = 20_000

/** Whether reports leave out the entries that are not folded (summed into figures) yet. */
export function isFolding({ folded, entries }: FoldProgress): boolean {
  return entries - folded > unfoldedMax
}

/** The time zone of a store's figures, and the first quarter hour for which figures are kept. */
export type UsageState = Zone & { keptFrom: number }

/**
 * Whether the store knows the time zone in which the days of its figures begin (ruling X12). Each server records this
 * zone when it starts, together with `keptFrom`.
 */
export function isRecorded({ keptFrom }: Pick<UsageState, 'keptFrom'>): boolean {
  return keptFrom > 0
}

/**
 * Asks which accounts or keys have spent most in `days` days of the reporting zone. The last of these days is today.
 */
export type SpendRanking = {
  by: 'account' | 'key'
  /** Only keys of this account. */
  accountId?: string | undefined
  /** Whether to leave out the keys of people's sessions. */
  isWithoutSessions?: boolean | undefined
  days: number
  /** The current time in Unix milliseconds. */
  nowMs: number
  /** The most rows to return. */
  top: number
}

/** A row of a ranking. @property nanos the cost in nano-credits, minus the amounts given back */
export type RankedSpend = { id: string; nanos: bigint }

/** Sorts rows of a ranking: the highest spend first, and rows with the same spend by id. */
export function rank(rows: readonly RankedSpend[]): RankedSpend[] {
  return rows.toSorted((a, b) => (a.nanos === b.nanos ? (a.id < b.id ? -1 : 1) : a.nanos > b.nanos ? -1 : 1))
}
