import type { EntryFilter, EntryPlace } from '../../accounts/entries.ts'
import type { Dialect } from '../sql/dialect.ts'
import { conditions, type Direction, type Slice } from '../sql/entries.ts'
import type { Database } from './database.ts'

export const dialect: Dialect = { schema: 'triwire', parameter: (n) => `$${n}`, order: ['e.account_id', 'e.seq'] }

/** How many entries are read, summed and verified at once. */
export type SliceSizes = { readMax: number; sumMax: number; verifyMax: number }

/** A few hundredths of a second each. */
export const sliceSizes: SliceSizes = { readMax: 2_000, sumMax: 50_000, verifyMax: 5_000 }

/**
 * Parts of the entries that a filter may let through, one behind the other. A statement that reads all of a large ledger
 * would keep the rows alive that busy accounts leave behind with every debit, and each debit would be slower than the one
 * before it; so whatever reads more than a few entries does it by slices.
 * @param size how many entries are in a slice; more only where as many have one moment.
 */
export async function* slicesOf(
  { query }: Pick<Database, 'query'>,
  { accountId, sinceMs, untilMs }: EntryFilter,
  size: number,
  first: Direction = 'oldest',
  beyond?: EntryPlace | undefined,
): AsyncIterable<Slice> {
  const column = accountId === undefined ? 'posted_ms' : 'seq'
  // The times of an account's entries are looked at where they are read: by number they are found without.
  const filter = accountId === undefined ? { sinceMs, untilMs } : { accountId }
  const [isOldest, order] = [first === 'oldest', `e.${column}${first === 'oldest' ? '' : ' DESC'}`]
  let rest: Slice = { column, ...(beyond && startBehind(column, first, beyond)) }
  for (;;) {
    const { where, values } = conditions(dialect, filter, rest)
    const [end] = await query(
      `SELECT e.${column} AS place FROM triwire.entries e ${where} ORDER BY ${order} OFFSET ${size} LIMIT 1`,
      values,
    )
    if (!end) break
    const place = end.place as bigint
    yield isOldest ? { ...rest, through: place } : { ...rest, after: place - 1n }
    rest = isOldest ? { ...rest, after: place } : { ...rest, through: place - 1n }
  }
  yield rest
}

/** Of a time there may be more on the same page: what of them was read already is the statement's to tell. */
function startBehind(column: Slice['column'], first: Direction, { postedMs, seq }: EntryPlace): Partial<Slice> {
  if (column === 'seq') return first === 'newest' ? { through: BigInt(seq - 1) } : { after: BigInt(seq) }
  return first === 'newest' ? { through: BigInt(postedMs) } : { after: BigInt(postedMs - 1) }
}
