import {
  type Archive,
  type ArchivedEntry,
  awayStates,
  findAway,
  isAway,
  type Seal,
  type SealedSums,
} from '../../accounts/archive.ts'
import { BookError } from '../../accounts/book-error.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { Posting } from '../../accounts/poster.ts'
import { sumColumns } from '../../accounts/usage/rollup.ts'
import type { Dialect, Put } from './dialect.ts'
import { ask, askOne, type Row, type StoreStep } from './step.ts'

/* Queries about archives, the files with entries of closed months. All code that reads entries uses these queries. */

/** Reads the archives of a store, the oldest first. */
export function* readArchives(dialect: Dialect): StoreStep<Archive[]> {
  const rows = yield* ask(dialect, () => `SELECT * FROM ${dialect.schema}.archives ORDER BY month`)
  return rows.map((row) => ({
    month: row['month'] as string,
    timeZone: row['time_zone'] as string,
    fromMs: Number(row['from_ms']),
    untilMs: Number(row['until_ms']),
    state: row['state'] as Archive['state'],
    file: row['file'] as string,
    fileDigest: row['file_digest'] as string,
    accounts: Number(row['accounts']),
    entries: Number(row['entries']),
    sealsDigest: row['seals_digest'] as string,
    indexDigest: row['index_digest'] as string,
    digest: row['digest'] as string,
  }))
}

/** Refuses a time span if entries that count in it may be in a detached month. @throws BookError `month_away` */
export function* refuseAway(dialect: Dialect, sinceMs?: number, untilMs?: number): StoreStep<void> {
  const away = findAway(yield* readArchives(dialect), sinceMs, untilMs)
  if (away.length > 0) throw monthsAway(away)
}

/** Makes the error that lists the detached months, whose entries are in archive files. */
export function monthsAway(away: readonly Pick<Archive, 'month'>[]): BookError {
  return new BookError('month_away', away.map(({ month }) => month).join(', '))
}

/** SQL: whether some entries of an archive `x` may be missing in the store. */
export const isAwaySql = `x.state IN (${awayStates.map((state) => `'${state}'`).join(', ')})`

/**
 * SQL: whether an entry `e` belongs to no detached month. The store may still have some entries of a detached month.
 */
export function isHere(schema: string): string {
  return `NOT EXISTS (SELECT 1 FROM ${schema}.seals l JOIN ${schema}.archives x ON x.month = l.month AND ${isAwaySql}
    WHERE l.account_id = e.account_id AND l.from_seq <= e.seq AND l.to_seq >= e.seq)`
}

/** Reads the sealed rows of these accounts, one for each archived month. They are sorted by account, then by month. */
export function* readSeals(dialect: Dialect, fromId: string, toId: string): StoreStep<Seal[]> {
  const rows = yield* ask(
    dialect,
    (put) => `SELECT * FROM ${dialect.schema}.seals
      WHERE account_id >= ${put(fromId)} AND account_id <= ${put(toId)} ORDER BY account_id, month`,
  )
  return rows.map(readSeal)
}

export function readSeal(row: Row): Seal {
  return {
    accountId: row['account_id'] as string,
    month: row['month'] as string,
    fromSeq: Number(row['from_seq']),
    toSeq: Number(row['to_seq']),
    creditedNanos: row['credited'] as bigint,
    debitedNanos: row['debited'] as bigint,
    balanceNanos: row['balance'] as bigint,
    firstDigest: row['first_digest'] as string,
    lastDigest: row['last_digest'] as string,
    postedMs: Number(row['posted_ms']),
  }
}

/** Reads sums of archived entries, by account and month. */
export function* readSealedSums(
  dialect: Dialect,
  fromId: string,
  toId: string,
): StoreStep<(SealedSums & { accountId: string; month: string })[]> {
  const rows = yield* ask(
    dialect,
    (put) => `SELECT * FROM ${dialect.schema}.sealed_sums
      WHERE account_id >= ${put(fromId)} AND account_id <= ${put(toId)} ORDER BY account_id, month`,
  )
  return rows.map((row) => ({
    accountId: row['account_id'] as string,
    month: row['month'] as string,
    keyId: row['key_id'] as string,
    person: row['person'] as string,
    sums: Object.fromEntries(sumColumns.map((column) => [column, row[column]])) as SealedSums['sums'],
  }))
}

/** Reads the sums of an account's entries that are only in archives. The rows have the form of `selectSummed`. */
export function* readAwaySums(dialect: Dialect, accountId: string): StoreStep<Row[]> {
  const { schema } = dialect
  return yield* ask(
    dialect,
    (put) => `SELECT s.* FROM ${schema}.sealed_sums s JOIN ${schema}.archives x ON x.month = s.month AND ${isAwaySql}
      WHERE s.account_id = ${put(accountId)}`,
  )
}

/** Finds the sealed row (what remains of archived entries) that covers the entry with this number. */
export function* findSealOf(dialect: Dialect, accountId: string, seq: number): StoreStep<Seal | undefined> {
  const row = yield* askOne(
    dialect,
    (put) => `SELECT * FROM ${dialect.schema}.seals 
      WHERE account_id = ${put(accountId)} AND from_seq <= ${put(seq)} AND to_seq >= ${put(seq)}`,
  )
  return row && readSeal(row)
}

/**
 * Lists the months whose entries are detached, separated by commas. A sum over all time must include the sealed sums of
 * these months.
 */
export function* listAway(dialect: Dialect): StoreStep<string> {
  return (yield* readArchives(dialect))
    .filter(isAway)
    .map(({ month }) => month)
    .join(', ')
}

/** Finds the debit of a request in the index of archives. */
export function* findArchived(dialect: Dialect, requestId: string): StoreStep<ArchivedEntry | undefined> {
  return (yield* findArchivedAll(dialect, [requestId])).get(requestId)
}

/** The most request ids in one statement. */
const idsMax = 500

/** Finds the debits of several requests in the index of archives, by request id. */
export function* findArchivedAll(
  dialect: Dialect,
  requestIds: readonly string[],
): StoreStep<Map<string, ArchivedEntry>> {
  const found = new Map<string, ArchivedEntry>()
  for (let at = 0; at < requestIds.length; at += idsMax) {
    const some = requestIds.slice(at, at + idsMax)
    const byId = new Map(some.map((requestId) => [dialect.archivedId(requestId), requestId]))
    const select = (put: Put) => `SELECT * FROM ${dialect.schema}.archived
      WHERE id IN (${[...byId.keys()].map((id) => put(id)).join(', ')}) AND kind = 'debit'`
    for (const row of yield* ask(dialect, select)) {
      const entry = readArchivedEntry(row)
      found.set(byId.get(entry.id)!, entry)
    }
  }
  return found
}

export function readArchivedEntry(row: Row): ArchivedEntry {
  return {
    id: (row['id'] as string).replace(/^(.{8})-(.{4})-(.{4})-(.{4})-(.{12})$/, '$1$2$3$4$5'),
    kind: row['kind'] as ArchivedEntry['kind'],
    month: row['month'] as string,
    accountId: row['account_id'] as string,
    seq: Number(row['seq']),
    amountNanos: row['amount'] as bigint,
  }
}

/**
 * Judges a debit that the database refused, perhaps because the debit was posted and archived before.
 * @param archived the row of the debit's request in the index of archives
 */
export function repeatOf(debit: Debit, archived: Row | undefined): Posting {
  if (!archived) return 'rejected'
  const { accountId, amountNanos } = readArchivedEntry(archived)
  return accountId === debit.accountId && amountNanos === debit.amountNanos ? 'exists' : 'conflict'
}
