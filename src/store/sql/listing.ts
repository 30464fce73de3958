import type { DayShift } from '../../accounts/day-shifts.ts'
import {
  addTotals,
  type EntryFilter,
  type EntryPage,
  type FoundDebit,
  type Grouping,
  type ListedEntry,
  returnReference,
  type Total,
} from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'
import { findArchived, monthsAway, refuseAway } from './archives.ts'
import { type Dialect, isOneOf, isText, type Put } from './dialect.ts'
import { eachSlice, readListed, readTotal, selectEntries, selectNamed, selectSums } from './entries.ts'
import { ask, askOne, first, query, rowsOf, type StoreStep } from './step.ts'

/** The numbers of entries to read, to sum and to verify in one statement. */
export type SliceSizes = { readMax: number; sumMax: number; verifyMax: number }

/** Creates the queries by which people read the ledger. The database filters and sums, and adds names to ids. */
export function createListing(dialect: Dialect, { readMax, sumMax }: Pick<SliceSizes, 'readMax' | 'sumMax'>) {
  const { schema } = dialect
  return { findEntry, findDebit, listEntries, sumEntries }

  function* findEntry(requestId: string): StoreStep<ListedEntry | undefined> {
    const entry = yield* findHere(requestId)
    const archived = entry ? undefined : yield* findArchived(dialect, requestId)
    if (archived) throw monthsAway([archived])
    return entry
  }

  function* findHere(requestId: string): StoreStep<ListedEntry | undefined> {
    const text = selectNamed(dialect)
    const select = (put: Put) => `${text} WHERE ${dialect.isOfRequest(put, requestId)}`
    return yield* first(query(dialect, readListed, select))
  }

  function* findDebit(requestId: string): StoreStep<FoundDebit | undefined> {
    const entry = yield* findHere(requestId)
    if (!entry?.bill) return undefined
    const { bill } = entry
    const select = (put: Put) => `SELECT * FROM ${schema}.prices WHERE version = ${put(bill.priceVersion)}`
    const prices = yield* first(query(dialect, readPrices, select))
    return { entry: { ...entry, bill }, prices, isReturned: yield* isReturned(requestId) }
  }

  /**
   * Whether the debit of a request was reversed by a credit. The credit's reference contains the request id. It also
   * contains a number if top-ups of the first release have the references with lower numbers (ruling C13).
   */
  function* isReturned(requestId: string): StoreStep<boolean> {
    for (let number = 1; ; number++) {
      const reference = returnReference(requestId, number)
      const row = yield* askOne(dialect, (put) => `SELECT e.* FROM ${dialect.creditEntry} = ${put(reference)}`)
      if (row && readEntry(row).returned) return true
      if (row) continue
      const away = yield* askOne(dialect, (put) => `SELECT a.kind FROM ${dialect.archivedCredit} = ${put(reference)}`)
      if (away?.['kind'] !== 'credit') return away !== undefined
    }
  }

  /** Lists entries, by default the newest first. */
  function* listEntries({ limit, first = 'newest', beyond, ...filter }: EntryPage): StoreStep<ListedEntry[]> {
    const narrow = yield* narrowed(filter)
    const entries: ListedEntry[] = []
    if (!narrow) return entries
    // The oldest months may be detached, so that their entries are only in archive files. A list that begins with the
    // oldest entry needs these months. A list that begins with the newest entry ends where the entries of the store
    // end.
    if (first === 'oldest') yield* refuseAway(dialect, filter.sinceMs, filter.untilMs)
    yield* eachSlice(dialect, narrow, readMax, { first, beyond }, function* (slice) {
      const rows = yield* rowsOf(selectEntries(dialect, narrow, first, { slice, limit, beyond }))
      for (const row of rows) entries.push(readListed(row))
      return entries.length < limit
    })
    return entries.slice(0, limit)
  }

  /** Returns a row of sums for each group with entries, sorted by the groupings. Without groupings there is one row. */
  function* sumEntries(filter: EntryFilter, by: readonly Grouping[], shifts?: readonly DayShift[]): StoreStep<Total[]> {
    yield* refuseAway(dialect, filter.sinceMs, filter.untilMs)
    const narrow = yield* narrowed(filter)
    const asked = narrow ?? { keyIds: [] }
    const totals: Total[][] = []
    yield* eachSlice(dialect, asked, narrow ? sumMax : Infinity, { first: 'oldest' }, function* (slice) {
      const rows = yield* rowsOf(selectSums(dialect, asked, by, { slice, shifts }))
      totals.push(rows.map((row) => readTotal(row, by)))
      return true
    })
    // Each slice is read by itself, so a month may have been detached meanwhile.
    yield* refuseAway(dialect, filter.sinceMs, filter.untilMs)
    return totals.length === 1 ? totals[0]! : addTotals(totals.flat(), by)
  }

  /**
   * If all keys of a filter belong to one account, adds this account to the filter. An index keeps an account's entries
   * together.
   * @returns undefined if no entry can match
   */
  function* narrowed(filter: EntryFilter): StoreStep<EntryFilter | undefined> {
    const { accountId, keyIds, model } = filter
    const texts = [accountId, model, ...(keyIds ?? [])]
    if (texts.some((text) => text !== undefined && !isText(text)) || keyIds?.length === 0) return undefined
    if (!keyIds || accountId !== undefined) return filter
    const select = (put: Put) => `SELECT DISTINCT account_id FROM ${schema}.keys WHERE ${isOneOf(put, 'id', keyIds)}`
    const rows = yield* ask(dialect, select)
    return rows.length === 1 ? { ...filter, accountId: rows[0]!['account_id'] as string } : filter
  }
}
