import {
  type Audited,
  correctionPrefix,
  type Entry,
  returnReference,
  type VerifyOptions,
} from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { RecordedArchive, SealOfAccount } from '../../accounts/verify/archives.ts'
import type { AccountEnd } from '../../accounts/verify/chain.ts'
import { findUncounted, type SpendEnd, type SpendRow } from '../../accounts/verify/spends.ts'
import { createVerification } from '../../accounts/verify/verification.ts'
import { findArchivedAll, isHere, readArchivedEntry, readArchives, readSealedSums, readSeals } from './archives.ts'
import { isSpending, selectBudgeted } from './budgeted.ts'
import { type Dialect, isOneOf, type Put, type SqlValue } from './dialect.ts'
import { countedMs, joinNames, readingColumns, readReading } from './entries.ts'
import { readNowMs } from './moments.ts'
import { readSpend, readSpendRows, selectSpends } from './spends.ts'
import { ask, askOne, type Row, type StoreStep } from './step.ts'
import { findUsageDifferences } from './usage-check.ts'

/**
 * A table `e` that is read page by page.
 * @property order columns that identify a row
 * @property joins other tables to read with it
 */
type PagedTable = { table: string; columns: string; joins?: string; order: readonly string[] }

/** The parts of a verification that differ between our databases. */
export type VerifyDialect = {
  /** The most rows in one page, and the most entries that one statement sums. */
  pageMax: number
  /** A value that sorts before the ids of all entries. */
  lowestId: SqlValue
  /**
   * The columns with an account's balance and its last entry's number. The entry's digest is included if it is stored.
   */
  ends: { columns: string; joins: string }
  /** The table of credit references, joined with the entries of the credits. The column `noted` has the reference. */
  references: PagedTable
  accounts: PagedTable
  /** The table that lists archived entries. `first` is a position before its first row. */
  archived: { table: PagedTable; first: readonly SqlValue[] }
  /** Finds damage to a row that is possible only in this kind of database. */
  findWrong?(row: Row): Iterable<string>
}

/**
 * The parameters of a verification.
 * @property findings the findings of earlier checks; the verification adds its own
 * @property momentMs the time of the head (a digest of all entries) that the verification makes; undefined for no head
 */
export type LedgerAudit = { options: VerifyOptions; findings: string[]; momentMs?: number | undefined }

/**
 * Verifies the ledger page by page.
 *
 * In PostgreSQL each page is a snapshot of its own. A single long snapshot would make each debit of busy accounts
 * slower. So an account's last entry and stored balance are read in one page, and prices are read on demand.
 */
export function* verifyLedger(
  dialect: Dialect,
  verified: VerifyDialect,
  { options, findings, momentMs }: LedgerAudit,
): StoreStep<Audited> {
  const { schema, isShared, ends: tails } = dialect
  // The findings are pushed one by one, because there may be more of them than a call takes arguments.
  const note = (found: Iterable<string>) => {
    for (const finding of found) findings.push(finding)
  }
  const eachPage = pagesOf(dialect, verified.pageMax)
  const spends = readSpendRows(yield* ask(dialect, () => selectSpends(schema)))
  note(yield* readUncounted(dialect))
  // This number is only displayed. It is a sum of floats, because a sum of integers would fail on forged numbers.
  const count = () => `SELECT sum(CAST(seq AS double precision)) AS n FROM ${tails} e`
  const { n } = (yield* askOne(dialect, count))!
  const prices = new Map<string, Debit['prices']>()
  const returns = yield* readReferred(returnReference(''))
  const corrections = yield* readReferred(correctionPrefix)
  const correctedMs = corrections.map(({ createdMs }) => createdMs)
  const lists = new Map<string, string>()
  const archives = yield* readArchives(dialect)
  const facts = { prices, lists, returns, spends, correctedMs, entries: Number(n ?? 0), archives }
  const verification = createVerification(options, facts, findings, momentMs)
  const ends = new Map<string, AccountEnd>()
  yield* eachPage(readingsOf(dialect, verified), ['', -(2n ** 63n), verified.lowestId], function* (rows) {
    yield* readPricesOf(dialect, rows, prices)
    yield* readListsOf(dialect, rows, lists)
    const sealsOf = yield* readSealsOf(rows)
    for (const row of rows) {
      if (!verification.isRead(row['account_id'] as string, Number(row['seq']), sealsOf)) continue
      if (verified.findWrong) note(verified.findWrong(row))
      verification.check(readReading(row))
      const end = readEnd(row)
      if (end) ends.set(end.id, end)
    }
    return true
  })
  yield* eachPage(verified.accounts, [''], readIdle)
  if (isShared) yield* eachPage(verified.references, [''], findLost)
  note(yield* findUsageDifferences(dialect, verified.pageMax, options.progress))
  if (archives.length > 0)
    yield* eachPage(verified.archived.table, verified.archived.first, (rows) => {
      for (const row of rows) verification.checkIndex(readArchivedEntry(row))
      return true
    })
  for (const [requestId, entry] of archives.length === 0
    ? []
    : yield* findArchivedAll(dialect, verification.listUnread()))
    verification.noteAway(requestId, entry)
  const spent = yield* readSpendEnds(dialect, spends, verification.lastSeqOf)
  const audited = verification.end(ends.values(), spent, yield* readNowMs(dialect), yield* readRecorded())
  // Each page is a snapshot of its own, so a month may have been detached between two pages.
  const isSame = JSON.stringify(yield* readArchives(dialect)) === JSON.stringify(archives)
  return isSame ? audited : { findings: ['a month was detached or attached meanwhile: verify again'], head: undefined }

  /** Reads the last record about each archive from the audit trail. The keys of the result are months. */
  function* readRecorded(): StoreStep<Map<string, RecordedArchive>> {
    const rows = yield* ask(
      dialect,
      () => `SELECT object, operation, "after" FROM ${schema}.audit
        WHERE operation IN ('ledger.detach', 'ledger.attach') ORDER BY seq`,
    )
    const digestOf = (after: unknown) => /"digest":"([^"]*)"/.exec(`${after}`)?.[1] ?? ''
    return new Map(
      rows.map(({ object, operation, after }) => [
        object as string,
        { digest: digestOf(after), isDetached: operation === 'ledger.detach' },
      ]),
    )
  }

  /**
   * Reads the sealed rows (what remains of archived entries).
   * @param rows a page of entries, sorted by account. The sealed rows of these accounts are read
   */
  function* readSealsOf(rows: readonly Row[]): StoreStep<(accountId: string) => SealOfAccount[]> {
    if (archives.length === 0 || rows.length === 0) return () => []
    const [from, to] = [rows[0]!, rows.at(-1)!].map((row) => row['account_id'] as string) as [string, string]
    const sums = Map.groupBy(yield* readSealedSums(dialect, from, to), (one) => `${one.month}/${one.accountId}`)
    const all = (yield* readSeals(dialect, from, to)).map((seal) => ({
      ...{ seal, sums: sums.get(`${seal.month}/${seal.accountId}`) ?? [] },
    }))
    const byAccount = Map.groupBy(all, ({ seal }) => seal.accountId)
    return (accountId) => byAccount.get(accountId) ?? []
  }

  /** Reads entries whose references begin with a prefix. Such references are next to each other in the index. */
  function* readReferred(prefix: string): StoreStep<Entry[]> {
    const entries: Entry[] = []
    yield* eachPage(verified.references, [prefix], (rows) => {
      const found = rows.filter(({ noted }) => (noted as string).startsWith(prefix))
      for (const row of found) if (row['id'] !== null) entries.push(readEntry(row))
      return found.length === rows.length
    })
    return entries
  }

  /** Reports references that are noted as booked, although the ledger has no credit with this reference. */
  function findLost(rows: readonly Row[]): boolean {
    for (const { noted, id, reference, archived } of rows)
      if (id === null && archived) continue
      else if (id === null || reference !== noted)
        findings.push(`reference ${noted}: is noted as booked and has no entry`)
    return true
  }

  /** Finds accounts whose row says that they have entries, although none was read. */
  function* readIdle(rows: readonly Row[]): StoreStep<boolean> {
    for (const { id, balance, seq } of rows) {
      if (ends.has(id as string) || (seq === 0n && balance === 0n)) continue
      // This account may have been created, or got its first entry, since the entries were read.
      const entry = (put: Put) => `SELECT 1 FROM ${schema}.entries WHERE account_id = ${put(id as string)} LIMIT 1`
      if (yield* askOne(dialect, entry)) continue
      const end = { id: id as string, balanceNanos: (balance as bigint) ?? 0n, seq: Number(seq ?? Number.NaN) }
      ends.set(end.id, end)
    }
    return true
  }
}

/** Returns a function that reads a table from the row `first` on, page by page, as long as `work` returns true. */
function pagesOf(dialect: Dialect, pageMax: number) {
  return function* (
    { table, columns, joins = '', order }: PagedTable,
    first: readonly SqlValue[],
    work: (rows: Row[]) => StoreStep<boolean> | boolean,
  ): StoreStep<void> {
    const by = order.map((name) => `e.${name}`).join(', ')
    const marks = order.map((name, at) => `e.${name} AS page_${at}`).join(', ')
    for (let [place, than] = [first, '>=']; ; than = '>') {
      // The subquery chooses the rows of the page first, so the joins read no other rows.
      const select = (put: Put) => `SELECT ${marks}, ${columns}
        FROM (SELECT * FROM ${table} e WHERE (${by}) ${than} (${place.map(put).join(', ')}) ORDER BY ${by} LIMIT ${pageMax}) e
        ${joins} ORDER BY ${by}`
      const rows = yield* ask(dialect, select)
      const worked = work(rows)
      const isMore = typeof worked === 'boolean' ? worked : yield* worked
      if (!isMore || rows.length < pageMax) return
      place = order.map((_, at) => rows.at(-1)![`page_${at}`] as SqlValue)
    }
  }
}

function readingsOf(dialect: Dialect, { ends: { columns, joins } }: VerifyDialect): PagedTable {
  return {
    table: `${dialect.schema}.entries`,
    columns: `${readingColumns(dialect)}, ${columns}`,
    joins: `${joinNames(dialect)} ${joins}`,
    order: ['account_id', 'seq', 'id'],
  }
}

/** Finds budgets without a recorded spend, and recorded spends without a budget. One statement reads both together. */
function* readUncounted(dialect: Dialect): StoreStep<Iterable<string>> {
  const { schema } = dialect
  const both = `SELECT 'budgeted' AS kind, b.scope FROM (${selectBudgeted(schema)}) b
    UNION ALL SELECT 'counted', s.scope FROM ${schema}.spends s`
  const rows = yield* ask(dialect, () => both)
  const scopes = (kind: string) => rows.filter((row) => row['kind'] === kind).map(({ scope }) => scope as string)
  return findUncounted(scopes('budgeted'), new Set(scopes('counted')))
}

function* readPricesOf(dialect: Dialect, rows: readonly Row[], prices: Map<string, Debit['prices']>): StoreStep<void> {
  const asked = new Set(rows.flatMap((row) => [row['price_version'], row['cost_version']] as (string | null)[]))
  const unknown = [...asked].filter((version) => version !== null && !prices.has(version)) as string[]
  if (unknown.length === 0) return
  const select = (put: Put) => `SELECT * FROM ${dialect.schema}.prices WHERE ${isOneOf(put, 'version', unknown)}`
  for (const row of yield* ask(dialect, select)) prices.set(row['version'] as string, readPrices(row))
}

function* readListsOf(dialect: Dialect, rows: readonly Row[], lists: Map<string, string>): StoreStep<void> {
  const unknown = [...new Set(rows.map((row) => row['list'] as string | null))].filter(
    (digest): digest is string => digest !== null && !lists.has(digest),
  )
  if (unknown.length === 0) return
  const select = (put: Put) => `SELECT * FROM ${dialect.schema}.lists WHERE ${isOneOf(put, 'digest', unknown)}`
  for (const { digest, text } of yield* ask(dialect, select)) lists.set(digest as string, text as string)
}

/**
 * Reads, in one snapshot, the recorded spend of each budget and the spend of the entries that are newer than the
 * verified ones. Entries of a detached month are left out, because its sealed sums are verified. A budget that was
 * changed or has a new window is compared only in the next verification.
 */
function* readSpendEnds(
  dialect: Dialect,
  rows: readonly SpendRow[],
  lastSeqOf: (scope: string) => number,
): StoreStep<SpendEnd[]> {
  const { schema } = dialect
  const spent: SpendEnd[] = []
  for (const { scope, accountId = '', keyIds, personIds } of rows) {
    const counts = (put: Put) =>
      personIds.length > 0 ? isOneOf(put, 'e.person', personIds) : isOneOf(put, 'e.key_id', keyIds)
    const select = (put: Put) => `SELECT s.*, CAST((
        SELECT coalesce(sum(CASE WHEN e.kind = 'debit' THEN e.amount ELSE -e.amount END), 0) FROM ${schema}.entries e
        WHERE e.account_id = ${put(accountId)} AND e.seq > ${put(lastSeqOf(scope))} AND ${scope === accountId ? isSpending : counts(put)}
          AND ${countedMs(schema)} >= s.from_ms AND ${countedMs(schema)} < s.until_ms AND ${isHere(schema)}) AS bigint) AS tail
      FROM ${schema}.spends s WHERE s.scope = ${put(scope)}`
    const row = yield* askOne(dialect, select)
    if (row) spent.push({ ...readSpend(row), tailNanos: row['tail'] as bigint })
  }
  return spent
}

/** Reads the end of an account's chain from the row of any of its entries. Undefined if the account does not exist. */
function readEnd({ account_id, account_name, end_balance, end_seq, end_digest }: Row): AccountEnd | undefined {
  if (account_name === null || end_seq === null) return undefined
  const end = { id: account_id as string, balanceNanos: end_balance as bigint, seq: Number(end_seq) }
  return end_digest === undefined ? end : { ...end, digest: end_digest as string | null }
}
