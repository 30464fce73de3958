import type { Zone } from '../calendar.ts'
import type { BucketCounts } from './histogram.ts'
import { dimensions, type SumColumn } from './rollup.ts'

/** What is summed of a group in a bucket. `errors`: of the requests those that failed. */
export type SumName = SumColumn | 'errors'

const timeNames = ['first_byte', 'total'] as const

export type TimeName = (typeof timeNames)[number]

/** Who asks to have figures told apart may also ask for the code of requests that cost nothing; all others have none. */
export const usageGroupings = [...dimensions, 'code'] as const

export type UsageGrouping = (typeof usageGroupings)[number]

/** Outcomes of requests that did not fail: their answer was whole, or their client left it. */
export const soundOutcomes = ['ok', 'client_abort', 'client_stall', 'client_timeout']

export type UsageQuestion = {
  /** Where buckets begin, and where the last one ends: numbers of quarter hours. */
  bounds: readonly number[]
  /** Each of them begins a day of this zone, which may be the store's. */
  daysOf: Zone | undefined
  by: readonly UsageGrouping[]
  /** Only these words of each. */
  only: Partial<Record<UsageGrouping, readonly string[]>>
  sums: readonly SumName[]
  times: readonly TimeName[]
  /** So many groups are told by themselves, those with most of this. */
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
  /** What is in no group that is told. @property count of groups */
  other: (Series & { count: number }) | undefined
  total: Series
  /** What is before this quarter is kept no more. */
  keptFrom: number
}

/** How a store keeps its figures. */
export type UsageState = Zone & { keptFrom: number }

/** Whether a server has said whose days they are (ruling X12): each that starts says it together with since when they are kept. */
export function isRecorded({ keptFrom }: Pick<UsageState, 'keptFrom'>): boolean {
  return keptFrom > 0
}
