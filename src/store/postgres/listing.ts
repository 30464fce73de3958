import type { DayShift } from '../../accounts/day-shifts.ts'
import {
  type EntryFilter,
  type EntryPage,
  type EntryPlace,
  type FoundDebit,
  type Grouping,
  type ListedEntry,
  returnReference,
  type Total,
} from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'
import { addTotals } from '../../accounts/totals.ts'
import { readListed, readTotal, type Slice, selectEntries, selectNamed, selectSums } from '../sql/entries.ts'
import type { Database, Row } from './database.ts'
import { entryIdOf } from './entry-id.ts'
import { dialect, type SliceSizes, sliceSizes, slicesOf } from './slices.ts'
import { ask, isText } from './texts.ts'

/** The ledger for people to read: filtered and summed by the database, with names beside the ids. */
export function createListing(database: Pick<Database, 'query'>, { readMax, sumMax }: SliceSizes = sliceSizes) {
  const { query } = database
  return { findEntry, findDebit, listEntries, eachEntry, sumEntries }

  async function findEntry(requestId: string): Promise<ListedEntry | undefined> {
    if (!isText(requestId)) return undefined
    const [row] = await query(`${selectNamed(dialect)} WHERE e.id = $1`, [entryIdOf(requestId)])
    return row && readListed(row)
  }

  async function findDebit(requestId: string): Promise<FoundDebit | undefined> {
    const entry = await findEntry(requestId)
    if (!entry?.bill) return undefined
    const [prices] = await query('SELECT * FROM triwire.prices WHERE version = $1', [entry.bill.priceVersion])
    return {
      entry: { ...entry, bill: entry.bill },
      prices: prices && readPrices(prices),
      isReturned: await isReturned(requestId),
    }
  }

  /** A reference of this form may be a top-up of the first release: the return has the next free one (ruling C13). */
  async function isReturned(requestId: string): Promise<boolean> {
    for (let number = 1; ; number++) {
      const [row] = await query(
        'SELECT e.* FROM triwire.credits c JOIN triwire.entries e ON e.id = c.entry_id WHERE c.reference = $1',
        [returnReference(requestId, number)],
      )
      if (!row || readEntry(row).returned) return row !== undefined
    }
  }

  /** The newest first, unless told otherwise. */
  async function listEntries({ limit, first = 'newest', beyond, ...filter }: EntryPage): Promise<ListedEntry[]> {
    const entries: ListedEntry[] = []
    for await (const rows of readSlices(filter, first, { limit, beyond })) {
      for (const row of rows) {
        if (entries.length === limit) return entries
        entries.push(readListed(row))
      }
    }
    return entries
  }

  /** The oldest first, read as they are asked for. */
  async function* eachEntry(filter: EntryFilter = {}): AsyncIterable<ListedEntry> {
    for await (const rows of readSlices(filter, 'oldest')) for (const row of rows) yield readListed(row)
  }

  async function* readSlices(
    filter: EntryFilter,
    first: 'oldest' | 'newest',
    page: { limit?: number; beyond?: EntryPlace | undefined } = {},
  ): AsyncIterable<Row[]> {
    const narrow = await narrowed(filter)
    if (!narrow) return
    for await (const slice of slicesOf(database, narrow, readMax, first, page.beyond)) {
      const { text, values } = selectEntries(dialect, narrow, first, { slice, ...page })
      yield await query(text, values)
    }
  }

  /** One row for each group that has entries, in the order of the groupings; one in all where there are none. */
  async function sumEntries(
    filter: EntryFilter,
    by: readonly Grouping[],
    shifts?: readonly DayShift[],
  ): Promise<Total[]> {
    const narrow = await narrowed(filter)
    if (!narrow) return sum({ keyIds: [] }, by)
    const totals: Total[][] = []
    for await (const slice of slicesOf(database, narrow, sumMax)) totals.push(await sum(narrow, by, { slice, shifts }))
    return addTotals(totals.flat(), by)
  }

  async function sum(
    filter: EntryFilter,
    by: readonly Grouping[],
    more?: { slice: Slice; shifts: readonly DayShift[] | undefined },
  ): Promise<Total[]> {
    const { text, values } = selectSums(dialect, filter, by, more)
    return (await query(text, values)).map((row) => readTotal(row, by))
  }

  /**
   * Keys of one account are read by the account, whose entries an index has together.
   * @returns undefined where nothing can fit.
   */
  async function narrowed(filter: EntryFilter): Promise<EntryFilter | undefined> {
    const { accountId, keyIds, model } = filter
    const texts = [accountId, model, ...(keyIds ?? [])]
    if (texts.some((text) => text !== undefined && !isText(text)) || keyIds?.length === 0) return undefined
    if (!keyIds || accountId !== undefined) return filter
    const rows = await ask(
      query,
      `SELECT DISTINCT account_id FROM triwire.keys WHERE id IN (${keyIds.map((_, at) => `$${at + 1}`).join(', ')})`,
      keyIds,
    )
    return rows.length === 1 ? { ...filter, accountId: rows[0]!.account_id as string } : filter
  }
}
