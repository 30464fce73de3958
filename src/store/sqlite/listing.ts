import type { DatabaseSync } from 'node:sqlite'
import type { DayShift } from '../../accounts/day-shifts.ts'
import {
  type EntryFilter,
  type EntryPage,
  type FoundDebit,
  type Grouping,
  type ListedEntry,
  returnReference,
  type Total,
} from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'
import type { Dialect, Statement } from '../sql/dialect.ts'
import { readListed, readTotal, selectEntries, selectNamed, selectSums } from '../sql/entries.ts'

export type Listing = ReturnType<typeof createListing>

export const dialect: Dialect = { schema: 'main', parameter: (n) => `?${n}`, order: ['e.account_id', 'e.seq'] }

/** The ledger for people to read: filtered and summed by the database, with names beside the ids. */
export function createListing(db: DatabaseSync) {
  const byRequestId = db.prepare(`${selectNamed(dialect)} WHERE e.request_id = ?`)
  const byReference = db.prepare('SELECT * FROM entries WHERE reference = ?')
  const pricesOf = db.prepare('SELECT * FROM prices WHERE version = ?')
  return { findEntry, findDebit, listEntries, eachEntry, sumEntries }

  function findEntry(requestId: string): ListedEntry | undefined {
    const row = byRequestId.get(requestId)
    return row && readListed(row)
  }

  function findDebit(requestId: string): FoundDebit | undefined {
    const entry = findEntry(requestId)
    if (!entry?.bill) return undefined
    const prices = pricesOf.get(entry.bill.priceVersion)
    return {
      entry: { ...entry, bill: entry.bill },
      prices: prices && readPrices(prices),
      isReturned: isReturned(requestId),
    }
  }

  /** A reference of this form may be a top-up of the first release: the return has the next free one (ruling C13). */
  function isReturned(requestId: string): boolean {
    for (let number = 1; ; number++) {
      const row = byReference.get(returnReference(requestId, number))
      if (!row || readEntry(row).returned) return row !== undefined
    }
  }

  /** The newest first, unless told otherwise. */
  function listEntries({ limit, first = 'newest', beyond, ...filter }: EntryPage): ListedEntry[] {
    return all(selectEntries(dialect, filter, first, { limit, beyond })).map(readListed)
  }

  /** The oldest first, read as they are asked for. */
  function* eachEntry(filter: EntryFilter = {}): Iterable<ListedEntry> {
    const { text, values } = selectEntries(dialect, filter, 'oldest')
    for (const row of db.prepare(text).iterate(...values)) yield readListed(row)
  }

  function sumEntries(filter: EntryFilter, by: readonly Grouping[], shifts?: readonly DayShift[]): Total[] {
    return all(selectSums(dialect, filter, by, { shifts })).map((row) => readTotal(row, by))
  }

  function all({ text, values }: Statement): Record<string, unknown>[] {
    return db.prepare(text).all(...values)
  }
}
