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
  accountId?: string | undefined
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
  { by, accountId, limit, find }: SpendQuery<Row>,
): Promise<{ rows: Row[]; placeOf(row: Row): [string, string] }> {
  const isBehind = behind(beyond)
  const ranked = await books.rankSpent({ by, accountId, days: daysMax, nowMs, top: rankedMax })
  const spent = new Map(ranked.map(({ id, nanos }) => [id, nanos]))
  const ids = ranked.flatMap(({ id, nanos }) => (nanos > 0n && isBehind(nanos, id) ? [id] : []))
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
