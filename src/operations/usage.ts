import { z } from 'zod'
import {
  type Calendar,
  createCalendar,
  isSameZone,
  isTimeZone,
  type PeriodName,
  periods,
  quarterMs,
  type Zone,
} from '../accounts/calendar.ts'
import { isOfTraffic } from '../accounts/usage/plan.ts'
import { type UsageGrouping, type UsageQuestion, usageGroupings } from '../accounts/usage/question.ts'
import * as field from './fields.ts'
import { type Context, operation } from './operation.ts'
import { ProblemError } from './problem.ts'
import {
  namesOf,
  rangeFields,
  rangeFlags,
  readOnly,
  readRange,
  type TimeRange,
  wordFields,
  wordFlags,
} from './usage-range.ts'
import { countColumns, formatUsageCsv, measures, neededOf, tellUsage, usageShape } from './usage-shape.ts'

const bucketNames = ['auto', ...periods, 'all'] as const

/** The most buckets that `auto` chooses for a chart, and the most in an answer. */
const [plottedMax, bucketsMax] = [400, 2_000]
const [groupsUsual, groupsMax] = [6, 50]

/**
 * The most values in an answer: groups times buckets times columns. More of them would block all other requests for
 * hundreds of ms.
 */
const valuesMax = 150_000

/** A range that is longer than this number of ms is read by days. */
const longMs = 35 * 86_400_000

/** The longest range that can be summed from entries, in ms. */
const entriesMs = 7 * 86_400_000

/** The longest time, in ms, after which another server writes its counts of free requests (those that cost nothing). */
const trafficLagMs = 10_000

export const usageInput = z.strictObject({
  ...rangeFields,
  bucket: z
    .enum(bucketNames, { error: `must be one of ${bucketNames.join(', ')}` })
    .default('auto')
    .describe(
      `the length of a bucket; \`auto\`: the shortest of at least an hour that gives at most ${plottedMax} buckets; \`quarter\`: 15 minutes, for ranges of at most 7 days; requests without a bill, and times, then stand in the first quarter of their hour`,
    ),
  by: field
    .someOf(usageGroupings, 2, `must be one or two of ${usageGroupings.join(', ')}`)
    .optional()
    .describe(`how to group the figures: one or two of ${usageGroupings.join(', ')}, separated by commas`),
  measures: field
    .someOf(measures, measures.length, `must be any of ${measures.join(', ')}`)
    .prefault('credits,requests,errors')
    .describe(`the figures to show, separated by commas: any of ${measures.join(', ')}`),
  top: field
    .count(1, groupsMax, groupsUsual)
    .describe(
      'how many groups are shown: those with the largest values of the first measure; `other` is the sum of the rest',
    ),
  tz: field
    .text('must be a text')
    .refine(isTimeZone, { error: 'must be the name of a time zone, such as UTC or Europe/Berlin' })
    .optional()
    .describe('another time zone than the reporting zone, for ranges of at most 7 days'),
  ...wordFields,
})

type Input = z.output<typeof usageInput>

/**
 * The fields of a query, without the fields that select figures. The caller of `showUsage` passes the selection as
 * `only`.
 */
type FigureInput = Pick<Input, 'from' | 'to' | 'last' | 'month' | 'bucket' | 'tz' | 'top' | 'by' | 'measures'>

export const usageOperations = [
  operation({
    id: 'usage.show',
    http: 'GET /usage',
    role: 'reader',
    input: usageInput,
    output: usageShape,
    problems: ['range_too_large', 'conflict'],
    text: 'show what was used and what it cost, as a time series',
    atOnce: 4,
    cli: [
      {
        command: 'usage show',
        isDefault: true,
        options: {
          by: '--by <columns>',
          ...rangeFlags,
          bucket: '--bucket <bucket>',
          measures: '--measures <columns>',
          top: '--top <count>',
          tz: '--tz <zone>',
          ...wordFlags,
        },
        usual: { bucket: 'all' },
        reads: { to: field.nextDay },
      },
    ],
    async *csv(context, input) {
      yield* formatUsageCsv(await showAll(context, input), input.by)
    },
    run: async (context, input) => ({ body: await showAll(context, input) }),
  }),
]

async function showAll(context: Context, input: Input): Promise<z.output<typeof usageShape>> {
  return showUsage(context, input, await readOnly(context.books, context.calendar, input))
}

/** Answers a usage query. @param only see `UsageQuestion` @throws ProblemError if the range is too long */
export async function showUsage(
  { books, running, nowMs }: Context,
  input: FigureInput,
  only: UsageQuestion['only'],
): Promise<z.output<typeof usageShape>> {
  const { timeZone, weekStarts } = await books.readUsageState()
  const calendar = createCalendar({ timeZone: input.tz ?? timeZone, weekStarts })
  const zone: Zone = { timeZone: calendar.timeZone, weekStarts }
  const range = readRange(input, calendar, nowMs, (toMs) => toMs - 7 * 86_400_000)
  const bucket = chooseBucket(input.bucket, range)
  const isOther = !isSameZone(calendar.timeZone, timeZone)
  if (bucket === 'quarter' || isOther) refuseLong(range, isOther ? 'tz' : 'bucket', timeZone)
  const boundsMs = boundsOf(range, bucket, calendar)
  const by: readonly UsageGrouping[] = input.by ?? []
  refuseLarge(input, boundsMs.length - 1)
  const { sums, times, sort } = neededOf(input.measures)
  const question: UsageQuestion = {
    bounds: boundsMs.map((ms) => Math.floor(ms / quarterMs)),
    daysOf: boundsMs.every((ms) => calendar.periodOf(ms, 'day').startMs === ms) ? zone : undefined,
    ...{ by, sums, times, sort, top: input.top },
    only,
  }
  const hasCounted = times.length > 0 || sums.some(isOfTraffic)
  const isWritten = hasCounted && (await running.writeTraffic())
  const answer = await books.readUsage(question)
  const lagMs = hasCounted && !(isWritten && running.isAlone) ? trafficLagMs : 0
  return tellUsage(answer, {
    question,
    measures: input.measures,
    ...{ zone, bucket },
    buckets: boundsMs.slice(0, -1).map((ms) => tellBucket(ms, bucket, calendar)),
    completeMs: Math.min(boundsMs.at(-1)!, nowMs - lagMs),
    named: await namesOf(
      books,
      by,
      answer.groups.map(({ of }) => of),
    ),
  })
}

const lengthsMs: Record<PeriodName, number> = {
  quarter: quarterMs,
  hour: 3_600_000,
  day: 86_400_000,
  week: 7 * 86_400_000,
  month: 30 * 86_400_000,
}

/** Refuses a long range if its figures must be added up from entries. @throws ProblemError */
function refuseLong({ fromMs, toMs }: TimeRange, name: 'tz' | 'bucket', timeZone: string): void {
  if (toMs - fromMs <= entriesMs) return
  const instead = name === 'tz' ? 'leave `tz` out' : 'name a longer `bucket`'
  throw new ProblemError(
    'range_too_large',
    `Figures are kept by hours of ${timeZone}, so these are summed from the entries of at most 7 days: ${instead}, or name a shorter range`,
    { mistakes: [{ pointer: `/${name}`, detail: 'at most 7 days' }] },
  )
}

/** Refuses a query whose answer would be too large. @throws ProblemError */
function refuseLarge({ by, top, measures }: FigureInput, buckets: number): void {
  // Each answer has the total too, and an answer with groups has the sum of all further groups.
  const series = by === undefined ? 2 : top + 2
  const values = series * buckets * countColumns(measures)
  if (values <= valuesMax) return
  throw new ProblemError(
    'range_too_large',
    `The answer may have ${values} values, and at most ${valuesMax} are given: name a longer \`bucket\`, fewer groups (\`top\`), fewer \`measures\`, or a shorter range`,
    { mistakes: [{ pointer: '/bucket', detail: `at most ${valuesMax} values` }] },
  )
}

type Bucket = PeriodName | 'all'

function chooseBucket(asked: Input['bucket'], { fromMs, toMs }: TimeRange): Bucket {
  if (asked !== 'auto') return asked
  const isShort = (period: PeriodName) => (toMs - fromMs) / lengthsMs[period] <= plottedMax
  return periods.find((period) => period !== 'quarter' && isShort(period)) ?? 'month'
}

/** Returns the start of each bucket, and the end of the last one. @throws ProblemError for too many buckets */
function boundsOf({ fromMs, toMs }: TimeRange, bucket: Bucket, calendar: Calendar): number[] {
  if (bucket === 'all') {
    const unit = toMs - fromMs > longMs ? 'day' : 'hour'
    return [calendar.periodOf(fromMs, unit).startMs, calendar.periodOf(toMs - 1, unit).endMs]
  }
  const bounds = [calendar.periodOf(fromMs, bucket).startMs]
  while (bounds.at(-1)! < toMs) {
    if (bounds.length > bucketsMax)
      throw new ProblemError(
        'range_too_large',
        `There are more than ${bucketsMax} buckets in it: name a longer \`bucket\`, or a shorter range`,
        {
          mistakes: [{ pointer: '/bucket', detail: `at most ${bucketsMax} buckets` }],
        },
      )
    bounds.push(calendar.periodOf(bounds.at(-1)!, bucket).endMs)
  }
  return bounds
}

function tellBucket(ms: number, bucket: Bucket, calendar: Calendar): string {
  return bucket === 'day' || bucket === 'week' || bucket === 'month' ? calendar.dateOf(ms) : field.formatTime(ms)!
}
