import { type RankedSpend, rank } from '../accounts/usage/question.ts'
import { noCursor, readPlace } from './cursor.ts'
import type { Context } from './operation.ts'

/** The value of `order` that sorts by spend. */
export const bySpend = '-spent'

/** The number of days whose spend counts. The last of these days is today in the reporting zone. */
const daysMax = 30

/** The most rows of a ranking. A longer ranking is not useful to a person. */
const rankedMax = 1_000

/** The number of rows that one query looks up. */
const slice = 200

export const bySpendText = `\`${bySpend}\`: the ${rankedMax} that spent most in the last ${daysMax} days, the largest first; rows without spending are left out`

type SpendQuery<Row> = {
  by: 'account' | 'key'
  accountId?: string | undefined
  /** Whether to leave out the keys of people's sessions. */
  isWithoutSessions?: boolean
  limit: number
  /** Returns those rows with these ids that match the filters of the list, in any order. */
  find(ids: readonly string[]): Promise<readonly Row[]>
}

/**
 * Returns a page of accounts or keys, sorted by what they spent, the largest first. The figures are the sums for
 * reports, not the ledger entries.
 * @returns the rows of the page, and the first row of the next page if there is one. `placeOf` returns the place of a
 * row for the cursor
 */
export async function pageBySpend<Row extends { id: string }>(
  { books, beyond, nowMs }: Pick<Context, 'books' | 'beyond' | 'nowMs'>,
  { by, accountId, isWithoutSessions, limit, find }: SpendQuery<Row>,
): Promise<{ rows: Row[]; placeOf(row: Row): [string, string] }> {
  const isBehind = behind(beyond)
  const single = await books.rankSpent({ by, accountId, isWithoutSessions, days: daysMax, nowMs, top: rankedMax })
  const ranked = by === 'key' ? await rankLines(books, single) : single
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

/** Ranks keys by what all keys of their line (a key with its successors) spent, because reports show these figures. */
async function rankLines(books: Context['books'], ranked: readonly RankedSpend[]): Promise<RankedSpend[]> {
  const ids = await books.listLines(ranked.map(({ id }) => id))
  const lines = await books.findLines(ids)
  const lineOf = (id: string) => lines.get(id) ?? id
  const sums = new Map<string, bigint>()
  for (const { id, nanos } of ranked) sums.set(lineOf(id), (sums.get(lineOf(id)) ?? 0n) + nanos)
  return rank(ids.map((id) => ({ id, nanos: sums.get(lineOf(id)) ?? 0n })))
}

/** Makes a function that tells if a row is after the cursor. @throws ProblemError for a cursor of another list */
function behind(beyond: Context['beyond']): (nanos: bigint, id: string) => boolean {
  const place = readPlace(beyond, ['string', 'string'])
  if (!place) return () => true
  const [said, last] = place
  if (!/^\d{1,30}$/.test(said)) throw noCursor()
  const lastNanos = BigInt(said)
  return (nanos, id) => nanos < lastNanos || (nanos === lastNanos && id > last)
}
