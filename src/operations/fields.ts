import { z } from 'zod'
import { parseCredits } from '../accounts/credit.ts'

export { formatTime } from './format-time.ts'

/* Fields that several operations have. What a field says of a wrong value is said to programs and to people. */

/** What programs may ask for at once. */
export const pageMax = 200

export const limit = z.coerce
  .number({ error: `must be a whole number from 1 to ${pageMax}` })
  .int({ error: `must be a whole number from 1 to ${pageMax}` })
  .min(1, { error: `must be a whole number from 1 to ${pageMax}` })
  .max(pageMax, { error: `must be a whole number from 1 to ${pageMax}` })
  .default(50)
  .describe('how many at most')

export const cursor = z.string().optional().describe('`next` of the page before')

/** What every list takes. */
export const paging = { limit, cursor }

export const text = (error: string) => z.string({ error })

/** A name or id in the path. */
export const account = text('must be the name or id of an account').describe('name or id')
export const key = text('must be the id of a key').describe('id or first characters')

/** @returns nano-credits. */
export const credits = text('must be a text such as "12.5"').transform((value, context) =>
  tryTo(context, () => parseCredits(value)),
)

const unitsMs: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** @returns milliseconds. */
export const duration = text('must be a text such as "24h"').transform((value, context) =>
  tryTo(context, () => {
    const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(value) ?? []
    if (!count || !unit) throw new RangeError('Write it like 90s, 30m, 24h or 7d.')
    return Number(count) * unitsMs[unit]!
  }),
)

/** @returns Unix milliseconds; of a bare day its first. */
export const time = text('must be a time such as "2026-11-21T08:30:00Z"').transform((value, context) =>
  tryTo(context, () => readDay(value) ?? readInstant(value)),
)

/** A bare day as the moment behind it; a moment as it is. @throws RangeError */
export function throughDay(value: string): string {
  const startMs = readDay(value)
  return startMs === undefined ? value : new Date(startMs + dayMs).toISOString()
}

const dayMs = 86_400_000

function readDay(value: string): number | undefined {
  return /^\d{4}-\d\d-\d\d$/.test(value) ? readDate(`${value}T00:00:00.000Z`) : undefined
}

/** RFC 3339. */
function readInstant(value: string): number {
  const [, date, clock, fraction = '', sign, hours, minutes] =
    /^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))$/.exec(value) ?? []
  if (date === undefined) throw new RangeError('Write a day like 2026-11-21 or a time like 2026-11-21T08:30:00Z.')
  const offsetMs = (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * 60_000 * (sign === '-' ? -1 : 1)
  // What stands behind the milliseconds makes a time later than them.
  const ms = Math.ceil(Number(`0${fraction}`) * 1_000)
  return readDate(`${date}T${clock}.000Z`) + ms - offsetMs
}

/** A day or an hour that does not exist would become another one. */
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

/* What is answered. */

/** Credits as a decimal. */
export const amount = z.string().regex(/^-?\d+(\.\d{1,9})?$/)
export const when = z.iso.datetime()
