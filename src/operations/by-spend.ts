import { createCalendar, quarterMs } from '../accounts/calendar.ts'
import type { UsageQuestion } from '../accounts/usage/question.ts'
import { noCursor, readPlace } from './cursor.ts'
import type { Context } from './operation.ts'

/** The value of `order` for this order. */
export const bySpend = '-spent'

/** The number of days that count: today in the reporting zone, and the days before it. */
const daysMax = 30

/** The most rows of a ranking. Longer ones are not useful to a person. */
const rankedMax = 1_000

/** The number of rows that are looked up at once. */
const slice = 200

export const bySpendText = `\`${bySpend}\`: those that spent most in the last ${daysMax} days first, the first ${rankedMax} of them; without those that spent nothing`

type SpendQuery<Row> = {
  by: 'account' | 'key'
  only?: UsageQuestion['only']
  limit: number
  /** Returns those of the ids that match the other filters, in any order. */
  find(ids: readonly string[]): Promise<readonly Row[]>
}

/**
 * Returns a page of accounts or keys by what they spent, from the figures for reports. Reads no entries, and no more rows than
 * it returns.
 * @returns one row more than the page has, if there is one, and the place of each
 */
export async function pageBySpend<Row extends { id: string }>(
  { books, beyond, nowMs }: Pick<Context, 'books' | 'beyond' | 'nowMs'>,
  { by, only = {}, limit, find }: SpendQuery<Row>,
): Promise<{ rows: Row[]; placeOf(row: Row): [string, string] }> {
  const isBehind = behind(beyond)
  const { timeZone, weekStarts } = await books.readUsageState()
  const zone = { timeZone, weekStarts }
  const calendar = createCalendar(zone)
  const { endMs } = calendar.periodOf(nowMs, 'day')
  let fromMs = endMs
  for (let day = 0; day < daysMax; day++) fromMs = calendar.periodOf(fromMs - 1, 'day').startMs
  const { groups } = await books.readUsage({
    bounds: [fromMs / quarterMs, endMs / quarterMs],
    daysOf: zone,
    by: [by],
    only,
    ...{ sums: ['cost'], times: [], sort: 'cost', top: rankedMax },
  })
  const spent = new Map(groups.map(({ of: [id = ''], sums }) => [id, sums[0]![0]!]))
  const ids = [...spent.keys()].filter((id) => id !== '' && spent.get(id)! > 0n && isBehind(spent.get(id)!, id))
  const rows: Row[] = []
  for (let at = 0; at < ids.length && rows.length <= limit; at += slice) {
    const asked = ids.slice(at, at + slice)
    const found = new Map((await find(asked)).map((row) => [row.id, row]))
    rows.push(...asked.flatMap((id) => found.get(id) ?? []))
  }
  return { rows: rows.slice(0, limit + 1), placeOf: ({ id }) => [`${spent.get(id)}`, id] }
}

/** Sorts the most first, equal ones by id. @throws ProblemError for a place of another order */
function behind(beyond: Context['beyond']): (nanos: bigint, id: string) => boolean {
  const place = readPlace(beyond, ['string', 'string'])
  if (!place) return () => true
  const [said, last] = place
  if (!/^\d{1,30}$/.test(said)) throw noCursor()
  const lastNanos = BigInt(said)
  return (nanos, id) => nanos < lastNanos || (nanos === lastNanos && id > last)
}
