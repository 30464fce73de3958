import { z } from 'zod'
import { type Budget, budgetPeriods, parseBudget, renewsAt, type Spend, spentAt } from '../accounts/budget.ts'
import { type Calendar, formatTime } from '../accounts/calendar.ts'
import { formatCredits, parseCredits } from '../accounts/credit.ts'
import {
  checkExternalId,
  checkMetadata,
  type Metadata,
  metadataMax,
  parseMetadata,
  parseModels,
  rateMax,
} from '../accounts/key-bounds.ts'
import { labelsMax, parseDimensions, parseLabels } from '../accounts/labels.ts'
import { outcomes } from '../accounts/ledger.ts'
import { sayIssue } from './problem.ts'

export { formatTime } from '../accounts/calendar.ts'

/* Fields that several operations share. Their error texts are read by programs and by people. */

/** The most rows of a page. */
export const pageMax = 200

/** Matches an integer of up to 15 digits. `010` is invalid, because it may mean 8 or 10. */
const wholeNumber = /^(?:0|[1-9]\d{0,14})$/

/** A field for an integer. @param usual the default */
export function count(least: number, most: number, usual: number) {
  const error = `must be a whole number from ${least} to ${most}`
  const number = z.coerce.number({ error }).int({ error }).min(least, { error }).max(most, { error }).default(usual)
  return z.preprocess((value) => (typeof value === 'string' && !wholeNumber.test(value) ? Number.NaN : value), number)
}

/** A field for yes or no. A query has no booleans, so the texts `true` and `false` are read too. */
export const flag = z.preprocess((value) => (value === 'true' ? true : value === 'false' ? false : value), z.boolean())

const limit = count(1, pageMax, 50).describe('the largest number of rows')

const cursor = z.string().optional().describe('the `next` of the previous page')

/**
 * Tells how many entries the figures include. It is present only while many entries are not yet folded (summed up for
 * reports).
 */
export const folding = z
  .object({
    folded: z.number().describe('entries that the figures of reports include'),
    entries: z.number().describe('all entries of the ledger'),
  })
  .optional()
  .describe('present only while reports leave out a part of the ledger, not summed up yet: see docs/operating.md')

/** The fields that every list takes. */
export const paging = { limit, cursor }

export const text = (error: string) => z.string({ error })

/** Splits a text at commas. */
export function split(value: string): string[] {
  return value
    .split(',')
    .map((one) => one.trim())
    .filter(Boolean)
}

/** A field for a list of words, separated by commas. An empty list would select nothing, so it is refused. */
export const someWords = text('must be a text')
  .transform(split)
  .refine((all) => all.length > 0, { error: 'must name at least one' })

/**
 * A field for a list of known words, separated by commas. Repeated words are removed.
 * @param most the maximum number of words
 */
export const someOf = <Word extends string>(known: readonly Word[], most: number, error: string) =>
  text(error).transform((value, context) => {
    const all = [...new Set(split(value))]
    if (all.length > 0 && all.length <= most && all.every((one) => known.includes(one as Word))) return all as Word[]
    context.addIssue({ code: 'custom', message: error })
    return z.NEVER
  })

/** Selects requests by their outcomes. */
export const outcome = someOf(outcomes, outcomes.length, `must be any of ${outcomes.join(', ')}`)
  .optional()
  .describe('only requests with one of these outcomes, separated by commas')

/** A name or id in the path. */
export const account = text('must be the name or id of an account').describe('the name or id of the account')
export const key = text('must be the id of a key').describe('the id or the first characters of the key')

/** An amount of credits. @returns nano-credits */
export const credits = text('must be a text such as "12.5"').transform((value, context) =>
  tryTo(context, () => parseCredits(value)),
)

const unitsMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** A length of time. @returns milliseconds */
export const duration = text('must be a text such as "24h"').transform((value, context) =>
  tryTo(context, () => readDuration(value)),
)

function readDuration(value: string): number {
  const [, count, unit] = /^(0|[1-9]\d{0,5})([smhd])$/.exec(value) ?? []
  if (!count || !unit) throw new RangeError('Write it like 90s, 30m, 24h or 7d.')
  return Number(count) * unitsMs[unit]!
}

/** A length of time, in ms or in months of a calendar. */
export type TimeLength = { ms: number } | { months: number }

export const timeLength = text('must be a text such as "24h" or "1mo"').transform((value, context) =>
  tryTo(context, (): TimeLength => {
    const [, months] = /^(\d{1,3})mo$/.exec(value) ?? []
    return months === undefined ? { ms: readDuration(value) } : { months: Number(months) }
  }),
)

const monthError = 'must be a month such as "2026-10", from 1970 to 9998'

/** A field for a calendar month. There are no entries of earlier years, and later times have years of five digits. */
export const month = text(monthError)
  .regex(/^\d{4}-(0[1-9]|1[0-2])$/, { error: monthError })
  .refine((value) => value >= '1970' && value < '9999', { error: monthError })

/** A moment in Unix milliseconds, or a day whose time zone is not known yet. */
export type DayOrTime = { date: string } | { ms: number }

export const dayOrTime = text('must be a day such as "2026-11-21" or a time such as "2026-11-21T08:30:00Z"').transform(
  (value, context) => tryTo(context, () => readDayOrTime(value)),
)

function readDayOrTime(value: string): DayOrTime {
  return readDay(value) === undefined ? { ms: readInstant(value) } : { date: value }
}

/** Converts a day or a time to a moment. A day begins in the reporting zone (ruling X12). @returns Unix milliseconds */
export function momentOf(said: DayOrTime, calendar: Pick<Calendar, 'startOf'>): number {
  return 'ms' in said ? said.ms : calendar.startOf(said.date)
}

/** Makes an inclusive end exclusive: a day becomes the next day, and a moment stays as it is. @throws RangeError */
export function nextDay(value: string): string {
  const startMs = readDay(value)
  if (startMs === undefined) return value
  const next = new Date(startMs + dayMs).toISOString()
  return next.startsWith('+') ? `${value}T23:59:59.999Z` : next.slice(0, 10)
}

/* Fields of answers. */

/** Credits as a decimal. */
export const amount = z.string().regex(/^-?\d+(\.\d{1,9})?$/, { error: 'must be a text such as "12.5"' })
export const when = z.iso.datetime()

/**
 * Marks a member that only the gateway sets. It is ignored in a request, so that programs can send back what they read.
 */
const readOnly = { readOnly: true }

/** A budget, and how much of it is spent. */
export const budgetShape = named('Budget', {
  credits: amount,
  per: z.enum(budgetPeriods).nullable().describe('the period after which the budget starts anew; null: it never does'),
  spent: amount
    .describe('what was spent in the current period; for a key, together with keys before and after its rotation')
    .meta(readOnly),
  held: amount.describe('the part that is set aside for running requests').meta(readOnly),
  renews_at: when.nullable().describe('when the next period begins; null: never').meta(readOnly),
})

/** A grant: credit that an account is given in each month. */
export const grantShape = named('Grant', {
  credits: amount,
  lapse: z.boolean().describe('whether the unspent part of a grant expires when the next grant is given'),
  last: z.string().nullable().describe('the reference of the last grant').meta(readOnly),
})

/** Labels by their dimensions. */
export const labelsShape = z.record(z.string(), z.string()).meta({ title: 'Labels' })

/** Makes the schema of an object in answers. @param title the name of its component in the OpenAPI document */
export function named<Members extends z.ZodRawShape>(title: string, members: Members) {
  return z.object(members).meta({ title })
}

/** The word that removes a value on the command line, where null cannot be typed. */
const none = 'none'

/**
 * Makes a field for a text. The text `none`, or null, removes the value. @param read converts any other text; throws
 * RangeError
 */
export function orNone<T>(error: string, read: (text: string) => T) {
  return text(error)
    .transform((value, context) => tryTo<T | null>(context, () => (value === none ? null : read(value))))
    .nullable()
}

/**
 * Fields with the same shape in requests and answers, so that programs can send back what they read. Such a field also
 * accepts a text, but the OpenAPI document shows only the shape.
 */
export const sharedShapes = z.registry<{ shape: unknown }>()

/**
 * Makes a field that accepts a text as `orNone` does, and also the value that answers have in this field.
 * @param read converts the text that a person types
 * @param shape the form of the value in answers
 * @param take converts such a value; throws RangeError
 */
function orShape<T, S extends z.ZodType>(
  error: string,
  read: (text: string) => T,
  shape: S,
  take: (value: z.output<S>) => T,
) {
  const shaped = askable(shape).transform((value, context) => tryTo<T>(context, () => take(value)))
  const texts = orNone(error, read)
  const field = z.unknown().transform((value, context): T | null => {
    const asked = (typeof value === 'object' && value !== null ? shaped : texts).safeParse(value, { error: sayIssue })
    if (asked.success) return asked.data as T | null
    for (const issue of asked.error.issues) context.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue)
    return z.NEVER
  })
  return field.register(sharedShapes, { shape })
}

/** Returns the shape of an object in requests. Members that are read-only or can be null are optional there. */
function askable<S extends z.ZodType>(shape: S): S {
  if (!(shape instanceof z.ZodObject)) return shape
  const members = Object.entries<z.ZodType>(shape.shape).map(([name, member]) => [
    name,
    member.meta()?.['readOnly'] ? z.unknown().optional() : member instanceof z.ZodNullable ? member.optional() : member,
  ])
  return z.strictObject(Object.fromEntries(members)) as unknown as S
}

/**
 * Makes a function that converts a list in a request. @param read converts the members, joined by commas into one text
 */
function fromList<T>(read: (text: string) => T): (list: readonly string[]) => T {
  return (list) => {
    if (list.some((one) => one.includes(','))) throw new RangeError('A member of the list must not contain a comma.')
    return read(list.join(','))
  }
}

/** The budget of a key or an account. */
export const budget = orShape<Budget, typeof budgetShape>(
  'must be a text such as "5/day"',
  parseBudget,
  budgetShape,
  ({ credits, per }) => parseBudget(per ? `${credits}/${per}` : credits),
).describe(
  'the most credits that the key may spend: in each period, such as 5/day, 20/week or 100/month, or in total, such as 50; `none` removes the limit',
)

/** A filter that limits a list to one person. */
export const ofPerson = text('must name a person').describe(
  'only keys or sessions of this person, by id, external id or name',
)

/** The person who uses a key. */
export const person = orNone('must be a text', (text) => text).describe(
  'the person who uses the key, by id, external id, or a unique name or e-mail address; `none`: nobody',
)

/** The most balances at which an account can warn. */
const levelsMax = 10

/** The balances at which an account warns. @returns nano-credits */
export const warn = orShape('must be a text such as "50,10"', readWarn, z.array(amount), fromList(readWarn)).describe(
  'balances such as 50,10: when the balance of the account falls below one of them, a `credit_low` message is sent; `none`: the balance that the configuration sets',
)

function readWarn(text: string): bigint[] {
  const levels = [...new Set(split(text).map(parseCredits))]
  if (levels.length === 0 || levels.length > levelsMax || levels.some((nanos) => nanos <= 0n))
    throw new RangeError(`Write 1 to ${levelsMax} amounts above 0, with commas between them, such as 50,10.`)
  return levels
}

/** The plan of an account. */
export const plan = orNone('must be a text such as "gold"', (text) => {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/.test(text)) throw new RangeError('Write the name of a plan, such as gold.')
  return text
})

/**
 * A monthly grant, in nano-credits. If the grant is an object, `lapse` is a member of it. If the grant is a text,
 * `lapse` is a separate field of the request.
 */
export const grant = orShape<{ nanos: bigint; lapses?: boolean }, typeof grantShape>(
  'must be a text such as "100/month"',
  readGrant,
  grantShape,
  ({ credits, lapse }) => ({ ...readGrant(`${credits}/month`), lapses: lapse }),
).describe('credit that the account gets in each month of the reporting zone, such as 100/month; `none` ends it')

function readGrant(text: string): { nanos: bigint } {
  const budget = /\//.test(text) ? parseBudget(text) : undefined
  if (budget?.per !== 'month') throw new RangeError('Write it like 100/month: a grant is given once in each month.')
  return { nanos: budget.nanos }
}

/** The labels of a key's requests. */
export const labels = orShape('must be a text such as "project=apollo"', parseLabels, labelsShape, (labels) =>
  fromList(parseLabels)(Object.entries(labels).map((pair) => pair.join('='))),
).describe(
  `the labels of the key's requests, separated by commas, such as project=apollo,team=red: at most ${labelsMax} that the configuration declares; \`none\` removes them`,
)

export const mayChoose = orShape(
  'must be a text such as "project,team"',
  parseDimensions,
  z.array(z.string()),
  fromList(parseDimensions),
).describe(
  'the dimensions in which a client of the key may choose another declared label, separated by commas; `none`: no dimension',
)

/** `maxProperties` keeps this schema different from the schema of labels. Equal schemas would become one component. */
export const metadataShape = z.record(z.string(), z.string()).meta({
  title: 'Metadata',
  description: 'pairs of your own, which the gateway keeps and does not interpret',
  maxProperties: metadataMax,
})

/** Metadata of the operator, which the gateway does not interpret. */
export const metadata = orShape<Metadata, typeof metadataShape>(
  'must be an object such as {"team":"red"}',
  parseMetadata,
  metadataShape,
  checkMetadata,
).describe('your own names and values, such as team=red,order=12, which triwire only stores; `none` removes them')

/** The id of an object in a system of the operator. */
export const externalId = orNone('must be a text', checkExternalId).describe(
  'the id in a system of your own; several objects may have the same id; `none` removes it',
)

/** A filter of lists by external id. */
export const ofExternalId = text('must be a text').optional().describe('only rows with this external id')

/** The ids of models that a key may use. */
export const models = orShape(
  'must be a text such as "large,small-*"',
  parseModels,
  z.array(z.string()),
  fromList(parseModels),
).describe('the models that the key may use: ids separated by commas, such as large,small-*; `none`: all models')

const rateError = `must be a whole number from 1 to ${rateMax}`

/** A field for the most requests per minute. */
export const rate = z
  .union(
    [
      z.int({ error: rateError }).min(1).max(rateMax),
      z.string().regex(/^(?:[1-9]\d{0,6}|none)$/, { error: rateError }),
    ],
    {
      error: rateError,
    },
  )
  .nullable()
  .transform((value) => (value === null || value === none ? null : Number(value)))
  .refine((value) => value === null || value <= rateMax, { error: rateError })
  .register(sharedShapes, { shape: z.int().min(1).max(rateMax) })
  .describe('the most requests of the key per minute, within the limit of its account; `none`: no own limit')

/** The end of a key or a token: after a duration, at a moment, or at the beginning of a day. */
type End = { afterMs: number } | DayOrTime

/** Converts the end of a key or a token to Unix milliseconds. @param calendar the calendar of the reporting zone */
export function endsAt(end: End, nowMs: number, calendar: Pick<Calendar, 'startOf'>): number {
  return 'afterMs' in end ? nowMs + end.afterMs : momentOf(end, calendar)
}

export const end = orNone<End>('must be a text such as "30d"', (value) =>
  /^\d+[smhd]$/.test(value) ? { afterMs: readDuration(value) } : readDayOrTime(value),
).describe(
  'when the key expires: after a duration such as 30d, at a time such as 2027-01-31T12:00:00Z, or at the beginning of a day such as 2027-01-31; `none`: never',
)

const dayMs = 86_400_000

function readDay(value: string): number | undefined {
  return /^\d{4}-\d\d-\d\d$/.test(value) ? readDate(`${value}T00:00:00.000Z`) : undefined
}

/** Reads a time in the form of RFC 3339. @returns Unix milliseconds @throws RangeError */
export function readInstant(value: string): number {
  const [, date, clock, fraction = '', sign, hours, minutes] =
    /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/.exec(value) ?? []
  if (date === undefined) throw new RangeError('Write a day like 2026-11-21 or a time like 2026-11-21T08:30:00Z.')
  const offsetMs = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000 * (sign === '-' ? -1 : 1)
  // A fraction of a millisecond is rounded up.
  const ms = Math.ceil(Number(`0${fraction}`) * 1_000)
  return readDate(`${date}T${clock}.000Z`) + ms - offsetMs
}

/** Parses a time. A day that does not exist, which `Date.parse` would convert, is an error. */
function readDate(iso: string): number {
  const ms = Date.parse(iso)
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== iso) throw new RangeError('There is no such day or time.')
  return ms
}

function tryTo<T>(context: z.RefinementCtx, read: () => T): T {
  try {
    return read()
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message })
    return z.NEVER
  }
}

/** Describes a budget, and how much of it is spent at a moment. The calendar decides when a day begins. */
export function tellBudget(
  spend: Spend | undefined,
  budget: Budget,
  heldNanos: bigint,
  { nowMs, calendar }: { nowMs: number; calendar: Calendar },
): z.output<typeof budgetShape> {
  return {
    credits: formatCredits(budget.nanos),
    per: budget.per ?? null,
    spent: formatCredits(spentAt(spend, nowMs)),
    held: formatCredits(heldNanos),
    renews_at: formatTime(renewsAt(calendar, budget, spend, nowMs)),
  }
}
