import type { z } from 'zod'
import type { Books } from '../accounts/books.ts'
import { type Calendar, spanOfMonth } from '../accounts/calendar.ts'
import type { UsageGrouping, UsageQuestion } from '../accounts/usage/question.ts'
import * as field from './fields.ts'
import { readFilter, refuseBackwards } from './filter.ts'
import { ProblemError, wrongField } from './problem.ts'

/** The fields that select a range of time. */
export const rangeFields = {
  from: field.dayOrTime
    .optional()
    .describe(
      'the start: a day of the reporting zone such as 2026-11-18, or a time such as 2026-11-18T08:30:00Z; buckets are always whole',
    ),
  to: field.dayOrTime.optional().describe('the end, a day or a time; default: now'),
  last: field.timeLength.optional().describe('instead of a start: a duration before the end, such as 24h, 30d or 1mo'),
  month: field.month.optional().describe('instead of start and end: a calendar month such as 2026-10'),
}

/** The options for `rangeFields`. On the command line an end day is inclusive. */
export const rangeFlags = {
  from: '--since <time>',
  to: '--until <time>',
  last: '--last <time>',
  month: '--month <month>',
}

/** A field for a list of words, separated by commas. */
const words = (what: string) => field.someWords.optional().describe(`only ${what}; separate several by commas`)

/** A field for a list of names, separated by commas. A name can have a comma too, so the text is split later. */
const names = (what: string) =>
  field
    .text('must be a text')
    .refine((text) => field.split(text).length > 0, { error: 'must name at least one' })
    .optional()
    .describe(`only ${what}; separate several by commas`)

/** The fields that select figures by account, key, model and so on. */
export const wordFields = {
  account: names('these accounts, by name or id'),
  key: names('these keys, by id, first characters or label'),
  model: words('these models'),
  wires: words('these pairs of wires, such as messages-to-chat'),
  upstream: words('these upstreams'),
  outcome: field.outcome,
}

export const wordFlags = {
  account: '--account <accounts>',
  key: '--key <keys>',
  model: '--model <models>',
  wires: '--wires <pairs>',
  upstream: '--upstream <upstreams>',
  outcome: '--outcome <outcomes>',
}

type RangeInput = z.output<z.ZodObject<typeof rangeFields>>
type WordInput = z.output<z.ZodObject<typeof wordFields>>

/** A range in Unix milliseconds. `toMs` is exclusive. */
export type TimeRange = { fromMs: number; toMs: number }

/**
 * Reads a range.
 * @param usual returns the start for a given end. It is called if the input names no start
 * @throws ProblemError
 */
export function readRange(
  { from, to, last, month }: RangeInput,
  calendar: Calendar,
  nowMs: number,
  usual: (toMs: number) => number,
): TimeRange {
  if (month !== undefined) {
    if (from !== undefined || to !== undefined || last !== undefined)
      throw wrongField('month', '`month` is the whole range: leave `from`, `to` and `last` out')
    const { startMs, endMs } = spanOfMonth(calendar, month)
    return bounded({ fromMs: startMs, toMs: endMs })
  }
  if (from !== undefined && last !== undefined)
    throw wrongField('last', '`last` and `from` both say where it begins: leave one of them out')
  const toMs = to === undefined ? nowMs : field.momentOf(to, calendar)
  const fromMs = from ? field.momentOf(from, calendar) : last ? before(toMs, last, calendar) : usual(toMs)
  if (last && fromMs >= toMs) throw wrongField('last', 'must be longer than 0')
  refuseBackwards(fromMs, toMs)
  return bounded({ fromMs, toMs })
}

/** Subtracts a length of time from `toMs`. One month before 31 March is the last day of February. */
function before(toMs: number, length: field.TimeLength, calendar: Calendar): number {
  if ('ms' in length) return toMs - length.ms
  const [year, month, day] = calendar.dateOf(Math.min(toMs, lastMs)).split('-').map(Number)
  const date = (day: number) => new Date(Date.UTC(year!, month! - 1 - length.months, day))
  const lastDay = new Date(Date.UTC(year!, month! - length.months, 0)).getUTCDate()
  const startMs = calendar.startOf(date(Math.min(day!, lastDay)).toISOString().slice(0, 10))
  return startMs + toMs - calendar.periodOf(toMs, 'day').startMs
}

/** The end of the year 9998. Later times may have years of five digits, which programs cannot parse. */
const lastMs = Date.UTC(9999, 0)

/** Limits a range to the years from 1970 to 9998. @throws ProblemError if it is outside */
function bounded({ fromMs, toMs }: TimeRange): TimeRange {
  const range = { fromMs: Math.max(0, fromMs), toMs: Math.min(toMs, lastMs) }
  if (range.fromMs < range.toMs) return range
  throw wrongField(toMs <= 0 ? 'to' : 'from', 'There are no figures of before 1970, and none of after 9998')
}

/**
 * Converts names of accounts and keys to ids. A key stands for all keys of its line (a key with its successors).
 * @throws ProblemError for a name that matches nothing
 */
export async function readOnly(books: Books, calendar: Calendar, input: WordInput): Promise<UsageQuestion['only']> {
  const only: UsageQuestion['only'] = {}
  for (const name of ['model', 'wires', 'upstream', 'outcome'] as const) if (input[name]) only[name] = input[name]
  if (input.account !== undefined) {
    const found = await findEach(input.account, (account) => readFilter({ books, calendar }, { account }))
    only.account = found.map(({ accountId }) => accountId!)
  }
  if (input.key !== undefined) {
    // Keys of several accounts may have one label. If the query names one account, only its keys are meant.
    const account = only.account?.length === 1 ? only.account[0] : undefined
    const found = await findEach(input.key, (key) => readFilter({ books, calendar }, { account, key }))
    only.key = await books.listLines(found.flatMap(({ keyIds }) => keyIds!))
  }
  return only
}

/** Finds what a list names. If the whole text is a name with a comma, such as `Acme, Inc.`, only that is meant. */
async function findEach<T>(list: string, find: (name: string) => Promise<T>): Promise<T[]> {
  const names = field.split(list)
  const whole = names.length > 1 ? await find(list.trim()).catch(orRefused) : undefined
  return whole === undefined ? Promise.all(names.map(find)) : [whole]
}

function orRefused(error: unknown): undefined {
  if (!(error instanceof ProblemError)) throw error
  return undefined
}

/** Returns the names of the accounts, keys and people in the groups, by id. */
export async function namesOf(books: Books, by: readonly UsageGrouping[], groups: readonly (readonly string[])[]) {
  const idsOf = (name: UsageGrouping) => [
    ...new Set(by.includes(name) ? groups.map((of) => of[by.indexOf(name)]!) : []),
  ]
  const [ids, keyIds, personIds] = [idsOf('account'), idsOf('key'), idsOf('person')]
  const accounts = ids.length > 0 ? await books.pageAccounts({ ids, sort: 'name', limit: ids.length }) : []
  const persons = personIds.length > 0 ? await books.namePersons(personIds) : []
  const names = [...accounts, ...Array.from(persons, ([id, { name }]) => ({ id, name }))]
  const lines = keyIds.length > 0 ? await books.nameLines(keyIds) : []
  return new Map([...names.map(({ id, name }) => [id, name] as const), ...lines])
}
