import { z } from 'zod'
import { quarterMs, type Zone } from '../accounts/calendar.ts'
import { formatCredits } from '../accounts/credit.ts'
import { type BucketCounts, percentileError, percentileOf } from '../accounts/usage/histogram.ts'
import {
  type Series,
  type SumName,
  type TimeName,
  type UsageAnswer,
  type UsageGrouping,
  type UsageQuestion,
  usageGroupings,
} from '../accounts/usage/question.ts'
import { formatCsvRow } from './csv.ts'
import { amount, folding, formatTime, named, when } from './fields.ts'

/** The stored sums and times from which each measure is computed. */
const made = {
  credits: { sums: ['cost'] },
  requests: { sums: ['requests'] },
  errors: { sums: ['errors'] },
  input_tokens: { sums: ['input_tokens'] },
  cache_read_tokens: { sums: ['cache_read_tokens'] },
  cache_write_tokens: { sums: ['cache_write_tokens'] },
  cache_write_1h_tokens: { sums: ['cache_write_1h_tokens'] },
  output_tokens: { sums: ['output_tokens'] },
  reasoning_tokens: { sums: ['reasoning_tokens'] },
  moved_requests: { sums: ['moved'] },
  cache_share: { sums: ['cache_read_tokens', 'input_tokens', 'cache_write_tokens'] },
  first_byte_ms: { sums: ['requests'], time: 'first_byte' },
  total_ms: { sums: ['requests'], time: 'total' },
} as const satisfies Record<string, { sums: readonly SumName[]; time?: TimeName }>

export type Measure = keyof typeof made

export const measures = Object.keys(made) as Measure[]

const shares = { p50: 0.5, p95: 0.95, p99: 0.99 } as const

const counts = z.array(z.number().nullable())
const times = named('Percentiles', {
  p50: counts,
  p95: counts,
  p99: counts,
  error: z.number().describe('the largest relative error of the values'),
})

const figures = {
  credits: z.array(amount.nullable()).optional(),
  requests: counts.optional(),
  errors: counts.optional().describe('requests that failed: they neither succeeded nor were ended by their client'),
  input_tokens: counts.optional(),
  cache_read_tokens: counts.optional(),
  cache_write_tokens: counts.optional().describe('tokens written to a cache, including those kept for an hour'),
  cache_write_1h_tokens: counts.optional(),
  output_tokens: counts.optional().describe('output tokens, including reasoning tokens'),
  reasoning_tokens: counts.optional(),
  moved_requests: counts
    .optional()
    .describe('requests whose conversation moved to another upstream account, as the servers counted them'),
  cache_share: counts.optional().describe('the share of input tokens that were read from a cache'),
  first_byte_ms: times.optional(),
  total_ms: times.optional(),
} satisfies Record<Measure, z.ZodType>

const text = z.string().nullable()
const grouped = Object.fromEntries(usageGroupings.map((name) => [name, text])) as Record<UsageGrouping, typeof text>

export const usageShape = named('Usage', {
  time_zone: z.string(),
  week_starts: z.string(),
  bucket: z.string(),
  buckets: z.array(z.string()).describe('the start of each bucket: a day of the zone, or a time'),
  from: when,
  to: when,
  complete_until: when.describe('the time until which the figures are complete; later requests may not be counted yet'),
  folding,
  series: z.array(
    z.object({
      of: z.object(grouped).partial(),
      named: z.object({ account: text, key: text, person: text }).partial().nullable(),
      ...figures,
    }),
  ),
  other: z
    .object({ count: z.number(), ...figures })
    .nullable()
    .describe('the sum of all further groups'),
  total: z.object(figures),
})

export type ToldUsage = z.output<typeof usageShape>

/** Returns what to read from the store for the measures. The first measure determines the order of groups. */
export function neededOf(asked: readonly Measure[]): { sums: SumName[]; times: TimeName[]; sort: SumName } {
  const sums = [...new Set(asked.flatMap((measure): readonly SumName[] => made[measure].sums))]
  const times = [...new Set(asked.flatMap((measure) => timeOf(measure) ?? []))]
  return { sums, times, sort: made[asked[0]!].sums[0] }
}

function timeOf(measure: Measure): TimeName | undefined {
  const { time } = made[measure] as { time?: TimeName }
  return time
}

/** Returns the number of values that the measures have in each bucket. A time has several percentiles. */
export function countColumns(asked: readonly Measure[]): number {
  return asked.reduce((sum, measure) => sum + (timeOf(measure) ? percentiles.length : 1), 0)
}

type UsageView = {
  question: UsageQuestion
  measures: readonly Measure[]
  zone: Zone
  bucket: string
  buckets: string[]
  completeMs: number
  /** Names of accounts and keys by id. */
  named: ReadonlyMap<string, string>
}

export function tellUsage({ groups, other, total, keptFrom, folding }: UsageAnswer, telling: UsageView): ToldUsage {
  const { question, zone, bucket, buckets, completeMs } = telling
  const { by, bounds } = question
  const tell = (series: Series) => tellFigures(series, telling, keptFrom)
  return {
    time_zone: zone.timeZone,
    week_starts: zone.weekStarts,
    ...{ bucket, buckets },
    from: formatTime(bounds[0]! * quarterMs)!,
    to: formatTime(bounds.at(-1)! * quarterMs)!,
    complete_until: formatTime(completeMs)!,
    ...(folding && { folding }),
    series: groups.map((group) => {
      const of = Object.fromEntries(by.map((name, at) => [name, group.of[at] || null] as const))
      const people = by.flatMap((name, at) => (isNamed(name) ? [[name, telling.named.get(group.of[at]!) ?? null]] : []))
      return {
        of,
        named: people.length > 0 ? (Object.fromEntries(people) as Record<string, string | null>) : null,
        ...tell(group),
      }
    }),
    other: other ? { count: other.count, ...tell(other) } : null,
    total: tell(total),
  }
}

/** Converts a series to figures. A bucket whose figures are no longer kept is null, not 0. */
function tellFigures({ sums, times }: Series, { question, measures }: UsageView, keptFrom: number): ToldUsage['total'] {
  const { bounds } = question
  const isKept = (at: number) => bounds[at]! >= keptFrom
  const sumsOf = (name: SumName) => sums[question.sums.indexOf(name)]!
  const each = <T>(values: readonly T[], tell: (value: T, at: number) => unknown) =>
    values.map((value, at) => (isKept(at) ? tell(value, at) : null))
  const told: Record<string, unknown> = {}
  for (const measure of measures) {
    const time = timeOf(measure)
    if (time !== undefined) told[measure] = tellTimes(times[question.times.indexOf(time)]!, isKept)
    else if (measure === 'credits') told[measure] = each(sumsOf('cost'), (nanos) => formatCredits(nanos))
    else if (measure === 'cache_share') {
      const [input, writes] = [sumsOf('input_tokens'), sumsOf('cache_write_tokens')]
      told[measure] = each(sumsOf('cache_read_tokens'), (read, at) => shareOf(read, read + input[at]! + writes[at]!))
    } else told[measure] = each(sumsOf(made[measure].sums[0]), Number)
  }
  return told as ToldUsage['total']
}

function shareOf(part: bigint, whole: bigint): number | null {
  return whole > 0n ? Math.round((Number(part) / Number(whole)) * 10_000) / 10_000 : null
}

function tellTimes(buckets: readonly BucketCounts[], isKept: (at: number) => boolean) {
  const tell = (share: number) =>
    buckets.map((counts, at) => (isKept(at) ? (percentileOf(counts, share) ?? null) : null))
  return {
    ...Object.fromEntries(Object.entries(shares).map(([name, share]) => [name, tell(share)])),
    error: percentileError,
  }
}

/** Whether the values of a grouping are ids that have a name. */
function isNamed(name: string): name is 'account' | 'key' | 'person' {
  return name === 'account' || name === 'key' || name === 'person'
}

const groups = Object.keys(grouped) as (keyof typeof grouped)[]
const percentiles = Object.keys(shares) as (keyof typeof shares)[]

type UsageRow = ToldUsage['series'][number] | NonNullable<ToldUsage['other']> | ToldUsage['total']
type Cell = { value: string | number | null; isNumber: boolean }

/**
 * Formats a line of CSV for each bucket of each series. The first column marks the lines of `other` and `total`.
 * @param dimensions the requested groupings, which are columns even if there are no figures
 */
export function* formatUsageCsv(told: ToldUsage, dimensions: readonly UsageGrouping[] = []): Iterable<string> {
  const { series, other, total, buckets } = told
  const by = groups.filter((name) => dimensions.includes(name))
  const asked = measures.filter((name) => name in total)
  const columns = asked.flatMap((name) => (name.endsWith('_ms') ? percentiles.map((one) => `${name}_${one}`) : [name]))
  const names = by.filter(isNamed)
  const head = ['series', 'bucket', ...by, ...names.map((name) => `${name}_name`), ...columns]
  yield formatCsvRow(head.map(toCell))
  for (const one of series) {
    const words = [...by.map((name) => one.of[name] ?? ''), ...names.map((name) => one.named?.[name] ?? '')]
    yield* lines('group', words, one)
  }
  const none = [...by, ...names].map(() => '')
  if (other) yield* lines('other', none, other)
  yield* lines('total', none, total)

  function* lines(kind: string, words: readonly string[], figures: UsageRow): Iterable<string> {
    for (const [at, bucket] of buckets.entries()) {
      const cells = asked.flatMap((name): Cell[] => {
        const values = figures[name]!
        const of = (list: readonly (string | number | null)[]) => ({ value: list[at] ?? null, isNumber: true })
        return Array.isArray(values)
          ? [of(values)]
          : percentiles.map((one) => of((values as Record<typeof one, number[]>)[one]))
      })
      yield formatCsvRow([kind, bucket, ...words].map(toCell).concat(cells))
    }
  }
}

function toCell(value: string): Cell {
  return { value, isNumber: false }
}
