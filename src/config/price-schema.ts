import { z } from 'zod'
import { callKind } from '../accounts/calls.ts'
import { count, filled, oneOf } from '../catalog/kinds.ts'
import { tiers } from '../catalog/model.ts'
import { complain, decimal, timeZone } from './fields.ts'

/* The schema of prices and calendars. `price-list.ts` finds mistakes that involve several keys. */

const priceCure = 'must be a decimal of at most 9 places in quotes, such as "0.25": credits per million tokens'
const price = decimal(({ input }) =>
  /^\d+(\.\d+)?e-\d+$|^0?\.0{4,}\d+$/i.test(String(input))
    ? `${priceCure}; a price of one token, as LiteLLM has it, is multiplied by 1,000,000`
    : priceCure,
)

const rates = {
  input: price.describe('Input tokens that are neither read from nor written to a cache.'),
  cache_read: price.optional().describe('Input tokens read from a cache. Default: `input`.'),
  cache_write: price.optional().describe('Input tokens written to a cache. Default: `input`.'),
  cache_write_1h: price.optional().describe('Input tokens written to a cache for an hour. Default: `cache_write`.'),
  cache_write_12h: price
    .optional()
    .describe(
      'Input tokens written to a cache for twelve hours (OpenAI). They are counted together with tokens written for an hour. If the two prices differ, the higher price applies to both. Default: `cache_write_1h`.',
    ),
  output: price.describe('Output tokens, including reasoning.'),
}

/** The lowest plausible price of a million tokens, in nano-credits: 0.001 credits. */
export const leastNanos = 1_000_000n

/** Refuses prices per token, as LiteLLM writes them. With such prices, input and output are both below `leastNanos`. */
function refuseTokenPrices(
  { input, output }: { input?: bigint | undefined; output?: bigint | undefined },
  context: z.RefinementCtx,
): void {
  const isSmall = (nanos: bigint | undefined) => nanos !== undefined && nanos > 0n && nanos < leastNanos
  if (isSmall(input) && isSmall(output))
    complain(context, 'and `output` are prices of one token, as LiteLLM has them: multiply them by 1,000,000', [
      'input',
    ])
}

const step = z
  .strictObject({
    above: count(1).describe(
      'The step applies to requests with more input tokens than this number. Fresh tokens and tokens read from or written to a cache all count.',
    ),
    ...rates,
  })
  .superRefine(refuseTokenPrices)

const steps = z
  .array(step, { error: 'must be a list of maps, each with `above` and its prices' })
  .optional()
  .describe('Prices of long requests. The last step that the input exceeds applies to the whole request.')

const writtenOut = z.strictObject({ ...rates, steps }).superRefine(refuseTokenPrices)

const factorCure = 'must be a decimal above 0, of at most 9 places, in quotes, such as "0.5"'
const factor = decimal(factorCure).refine((nanos) => nanos > 0n, {
  error: 'must be more than 0: where it costs nothing, write the prices out',
})

const factorOrRates = z.union([factor, writtenOut], { error: `${factorCure}, or a map of prices` })

/** Whether a text is an existing date, such as 2026-02-28. */
function isDate(text: string): boolean {
  const ms = Date.parse(`${text}T00:00:00Z`)
  return !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
}

const weekdays = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] as const
const weekday = `(?:${weekdays.join('|')})`
const daysCure = 'must be days such as mon-fri, or a list of them such as [mon, wed-fri]'
const days = z.string({ error: daysCure }).regex(new RegExp(`^${weekday}(?:-${weekday})?$`), { error: daysCure })

const hoursCure = 'must be hours such as "09:00-12:00", or a list of them; they end before the second time'
const hours = z
  .string({ error: hoursCure })
  .regex(/^(?:[01]\d|2[0-3]):[0-5]\d-(?:(?:[01]\d|2[0-3]):[0-5]\d|24:00)$/, { error: hoursCure })
  .refine((text) => text.slice(0, 5) !== text.slice(6), {
    error: 'is empty: it ends when it begins; all of a day is "00:00-24:00"',
  })

/** Makes a field for one item or a list of items. */
const oneOrMore = <Item extends z.ZodType>(item: Item, error: string) =>
  z.union([item, z.array(item, { error }).min(1, { error: 'must not be empty' })], { error })

const band = z
  .strictObject({
    name: filled('must not be empty').describe(
      "The band's name in reports, such as peak. It must be unique in its row.",
    ),
    zone: timeZone
      .optional()
      .describe("The time zone of the band's hours and days. Default: the zone of its calendar."),
    days: oneOrMore(days, daysCure).optional().describe("The days on which the band's hours begin. Default: all days."),
    hours: oneOrMore(hours, hoursCure)
      .optional()
      .describe(
        'The hours of the band, from the first time up to but without the second. Hours that cross midnight belong to the day on which they begin. Default: all hours.',
      ),
    not_on: filled('must be the name of a calendar')
      .optional()
      .describe('The name of an entry of `calendars`. On its days, no hours of the band begin.'),
    times: factor.optional().describe('The factor for all token prices of the row. A band may have prices instead.'),
    ...z.strictObject(rates).partial().shape,
    steps,
  })
  .superRefine(({ zone, not_on: calendar, times, steps: written, ...entry }, context) => {
    refuseTokenPrices(entry, context)
    const named = Object.keys(rates).filter((kind) => entry[kind as keyof typeof rates] !== undefined)
    if (zone === undefined && calendar === undefined)
      complain(context, 'is missing: it must be the zone of the hours, such as UTC', ['zone'])
    if (times !== undefined && (named.length > 0 || written))
      complain(context, 'stands beside prices: write a factor or prices, not both', ['times'])
    if (times === undefined && named.length === 0)
      complain(context, 'is missing: write a factor such as "2", or the prices of the band', ['times'])
    if (times === undefined && named.length > 0)
      for (const kind of ['input', 'output'] as const)
        if (entry[kind] === undefined) complain(context, 'is missing; add it', [kind])
  })

const instantCure =
  'must be a time with its zone, such as 2027-01-01T00:00:00Z or 2027-01-01T00:00+08:00, as the provider announced it'
const instant = z
  .string({ error: instantCure })
  .regex(/^\d{4}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,3})?)?(?:Z|[+-][01]\d:[0-5]\d)$/, {
    error: instantCure,
  })
  .refine((text) => isDate(text.slice(0, 10)), { error: instantCure })
  .transform((text) => Date.parse(text))

const callCure = 'must be a decimal of at most 9 places in quotes, such as "0.01": credits per call'

const row = z
  .strictObject({
    from: instant
      .optional()
      .describe(
        'In a list of rows: the time from which the row applies, with a time zone. The first row needs no `from`.',
      ),
    ...rates,
    steps,
    calls: z
      .record(z.string().regex(callKind, { error: 'must be a kind of call, such as web_search' }), decimal(callCure), {
        error: 'must be a map of credits per call, such as { web_search: "0.01" }',
      })
      .optional()
      .describe('The credits for a call of a tool that the provider runs, by kind, such as `web_search`.'),
    bands: z
      .array(band, { error: 'must be a list of maps, each with `name`, `hours` and `times`' })
      .optional()
      .describe('Hours of the week with other prices. In all other hours the prices of the row apply.'),
    tiers: z
      .partialRecord(z.enum(tiers, { error: `must be one of: ${tiers.join(', ')}` }), factorOrRates, {
        error: 'must be a map of factors by tier, such as { flex: "0.5" }',
      })
      .optional()
      .describe(
        'Prices by the service tier that the provider reports: a factor for all token prices, or a map of prices. `priority` includes `fast`.',
      ),
    geos: z
      .record(
        z.string().regex(/^[a-z0-9][a-z0-9_-]{0,31}$/, { error: 'must be a geography, such as us' }),
        factorOrRates,
        {
          error: 'must be a map of factors by geography, such as { us: "1.1" }',
        },
      )
      .optional()
      .describe('Prices by the geography that the provider reports (`inference_geo`): a factor, or a map of prices.'),
    counts: oneOf(['end', 'start'])
      .optional()
      .describe(
        'The moment that decides which row and band apply: the `start` of the request, or the `end` of its answer. It must be the same in all rows. Default: `end`.',
      ),
  })
  .superRefine(refuseTokenPrices)

export const prices = z.union([row, z.array(row).min(1, { error: 'must have a row' })], {
  error: 'must be a map of prices, or a list of them by date',
})

const dateCure = 'must be a day such as 2026-12-31'
const date = z
  .string({ error: dateCure })
  .regex(/^\d{4}-\d\d-\d\d$/, { error: dateCure })
  .refine(isDate, { error: dateCure })

const spanCure = 'must be a day such as 2026-10-01, or days such as 2026-10-01..2026-10-07'
const span = z
  .string({ error: spanCure })
  .regex(/^\d{4}-\d\d-\d\d(?:\.\.\d{4}-\d\d-\d\d)?$/, { error: spanCure })
  .refine((text) => text.split('..').every(isDate), { error: spanCure })
  .refine((text) => text.slice(-10) >= text.slice(0, 10), { error: 'must begin with the earlier day' })
  .refine((text) => Date.parse(text.slice(-10)) - Date.parse(text.slice(0, 10)) < 366 * 86_400_000, {
    error: 'must be at most a year',
  })

const calendar = z
  .strictObject({
    zone: timeZone.describe('The time zone in which the days begin.'),
    through: date.describe('The last day that the list covers. Every later day counts as a working day.'),
    days: z
      .array(span, { error: `must be a list; each item ${spanCure}` })
      .describe('The days of the calendar, such as public holidays.'),
  })
  .superRefine(({ through, days: spans }, context) => {
    for (const [index, text] of spans.entries())
      if (text.slice(-10) > through)
        complain(context, 'is after `through`, the last day that the list covers', ['days', index])
  })

const planModels = z.record(z.string(), z.union([factor, prices], { error: `${factorCure}, or prices` }))

/** The plans by name. A plan sets the prices of the accounts that have it. */
export const plans = z.record(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/, { error: 'must be letters, digits, and . _ -' }),
  z.strictObject({
    times: factor
      .optional()
      .describe(
        "The factor for the token prices of all models. Prices of calls of the provider's tools stay the same.",
      ),
    models: planModels.optional().describe('Factors or prices for single models, by id, which replace `times`.'),
  }),
  { error: 'must be a map of plans by name, such as gold: { times: "0.9" }' },
)

export type PlanEntries = z.output<typeof plans>

export const calendars = z.record(
  z.string().regex(/^[A-Za-z0-9][A-Za-z0-9_.-]*$/, { error: 'must be letters, digits, and . _ -' }),
  calendar,
  { error: 'must be a map of calendars by name' },
)

export type Calendars = z.output<typeof calendars>
export type PriceRowEntry = z.output<typeof row>
export type BandEntry = z.output<typeof band>
export type WrittenRates = z.output<typeof writtenOut>
export type PricesEntry = z.output<typeof prices>

/** Returns the dates of a calendar, in days since 1970. */
export function daysOf({ days: spans }: Calendars[string]): Set<number> {
  const all = new Set<number>()
  for (const text of spans) {
    const last = Date.parse(text.slice(-10)) / 86_400_000
    for (let day = Date.parse(text.slice(0, 10)) / 86_400_000; day <= last; day++) all.add(day)
  }
  return all
}

/** Returns for each weekday, Sunday first, whether the band includes it. The range `fri-mon` includes Sunday. */
export function weekdaysOf({ days: spans }: Pick<BandEntry, 'days'>): boolean[] {
  if (spans === undefined) return Array.from({ length: 7 }, () => true)
  const found = Array.from({ length: 7 }, () => false)
  for (const text of [spans].flat()) {
    const [first, last = first] = text.split('-').map((name) => weekdays.indexOf(name as (typeof weekdays)[number]))
    for (let day = first!; ; day = (day + 1) % 7) {
      found[day] = true
      if (day === last) break
    }
  }
  return found
}

const minuteMs = 60_000

/** Returns the hours of a band, in ms from midnight of the day on which the hours begin. */
export function windowsOf({
  hours: spans = '00:00-24:00',
}: Pick<BandEntry, 'hours'>): { startMs: number; endMs: number }[] {
  return [spans].flat().map((text) => {
    const [startMs, endMs] = [text.slice(0, 5), text.slice(6)].map(
      (time) => (Number(time.slice(0, 2)) * 60 + Number(time.slice(3))) * minuteMs,
    ) as [number, number]
    return { startMs, endMs: endMs > startMs ? endMs : endMs + 1_440 * minuteMs }
  })
}
