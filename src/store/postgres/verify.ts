import { type Audited, type Entry, returnReference, type VerifyOptions } from '../../accounts/entries.ts'
import { readEntry, readPrices } from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { AccountEnd } from '../../accounts/verify/chain.ts'
import { findUncounted, type SpendEnd, type SpendRow } from '../../accounts/verify/spends.ts'
import { createVerification } from '../../accounts/verify/verification.ts'
import { readNowMs } from '../sql/clock.ts'
import { joinNames, readingColumns, readReading } from '../sql/entries.ts'
import { checkMoment, takeMoment } from '../sql/head.ts'
import type { SliceSizes } from '../sql/listing.ts'
import { readSpend, readSpendRows, selectBudgeted, selectSpends } from '../sql/spends.ts'
import type { Row } from '../sql/step.ts'
import { findUsageDifferences } from '../sql/usage-check.ts'
import type { Database } from './database.ts'
import { entryIdOf } from './entry-id.ts'
import { locks } from './migrate.ts'
import { dialect, run } from './run.ts'
import { findForeignSchema } from './verify-schema.ts'

/** The name of the ledger's place, for people. */
const place = 'the database'

/** How many rows of the default partition are counted. */
const countMax = 10_000

/**
 * Verifies, and makes a head of what it read. The head's moment is written down while no post is under way. Posts share the
 * lock of heads from before they have a time, and this transaction holds it alone. Entries that are in the ledger by then were
 * posted by that moment. All others are posted after it.
 */
export async function audit(database: Database, options: VerifyOptions, sizes: SliceSizes): Promise<Audited> {
  const { findings, momentMs } = await database.transact(async (transaction) => {
    await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.head])
    const findings = await run(transaction, checkMoment(dialect, place))
    return { findings, momentMs: await run(transaction, takeMoment(dialect)) }
  })
  return readLedger(database, options, sizes, findings, momentMs)
}

/** Findings in words. */
export async function verify(database: Database, options: VerifyOptions, sizes: SliceSizes): Promise<string[]> {
  return (await readLedger(database, options, sizes, await run(database, checkMoment(dialect, place)))).findings
}

type ReadPages = (select: Select, before: Readonly<Record<string, unknown>>) => AsyncIterable<Row[]>

/** A table, called `e`, and what is read beside each of its rows. */
type Select = { table: string; columns: string; joins: string }

/**
 * All rows of a table, in the order of these columns, which tell each row from all others.
 * @param before values that come before those of the first row that is wanted.
 */
async function* pagesOf(
  { query }: Pick<Database, 'query'>,
  { table, columns, joins }: Select,
  before: Readonly<Record<string, unknown>>,
  rowsMax: number,
): AsyncIterable<Row[]> {
  const names = Object.keys(before)
  const order = names.map((name) => `e.${name}`).join(', ')
  // Which rows is said before anything is joined, so that no plan looks at others.
  const text = `SELECT ${names.map((name, at) => `e.${name} AS page_${at}`).join(', ')}, ${columns}
    FROM (SELECT * FROM ${table} e WHERE (${order}) > (${names.map((_, at) => `$${at + 1}`).join(', ')})
      ORDER BY ${order} LIMIT ${rowsMax}) e ${joins} ORDER BY ${order}`
  for (let place: unknown[] = Object.values(before); ; ) {
    const rows = await query(text, place)
    yield rows
    const last = rows.at(-1)
    if (!last || rows.length < rowsMax) return
    place = names.map((_, at) => last[`page_${at}`])
  }
}

/**
 * By pages, each in a snapshot of its own. A single snapshot for the whole would make every busy account slower with each debit. So an account's end is read with its last entry, and prices as they are needed.
 * @param momentMs of the head that is to be made. Without it no head is made.
 */
async function readLedger(
  database: Database,
  options: VerifyOptions,
  { verifyMax }: SliceSizes,
  findings: string[],
  momentMs?: number,
): Promise<Audited> {
  findings.push(...(await findForeignSchema(database, place)))
  const readPages: ReadPages = (select, before) => pagesOf(database, select, before, verifyMax)
  const prices = new Map<string, Debit['prices']>()
  const spends = readSpendRows(await database.query(selectSpends('triwire')))
  const [count] = await database.query('SELECT coalesce(sum(seq), 0) AS n FROM triwire.balances')
  const facts = { prices, returns: await readReturns(readPages), spends, entries: Number(count!.n) }
  const verification = createVerification(options, facts, findings, momentMs)
  const ends = new Map<string, AccountEnd>()
  for await (const rows of readPages(readings, { account_id: '', seq: lowest, id: lowestId })) {
    await readPricesOf(database, rows, prices)
    for (const row of rows) {
      findings.push(...findRepeatable(row))
      verification.check(readReading(row))
      const end = readEnd(row)
      if (end) ends.set(end.id, end)
    }
  }
  for await (const end of readIdle(database, readPages, ends)) ends.set(end.id, end)
  for await (const finding of findLostCredits(readPages)) findings.push(finding)
  for (const finding of await run(database, findUsageDifferences(dialect, options.progress))) findings.push(finding)
  const notes = await findUndated(database)
  const spent = await readSpendEnds(database, spends, verification.lastSeqOf, findings)
  const nowMs = await run(database, readNowMs(dialect))
  return { ...verification.end(ends.values(), spent, nowMs), ...(notes.length > 0 && { notes }) }
}

/**
 * Spending of keys by now, each with what was posted in its window since the entries were read. One snapshot has both. If a new
 * window has begun meanwhile, or the budget was changed, the next verification compares it.
 */
async function readSpendEnds(
  { query }: Database,
  rows: readonly SpendRow[],
  lastSeqOf: (scope: string) => number,
  findings: string[],
): Promise<SpendEnd[]> {
  const [counted] = await query(
    `SELECT (SELECT array_agg(b.scope) FROM (${selectBudgeted('triwire')}) b) AS budgeted,
      (SELECT array_agg(s.scope) FROM triwire.spends s) AS counted`,
  )
  const { budgeted, counted: scopes } = counted as { budgeted: string[] | null; counted: string[] | null }
  findings.push(...findUncounted(budgeted ?? [], new Set(scopes ?? [])))
  const ends: SpendEnd[] = []
  for (const { scope, accountId, keyIds } of rows) {
    const [row] = await query(
      `SELECT s.*, (SELECT coalesce(sum(CASE WHEN e.kind = 'debit' THEN e.amount ELSE -e.amount END), 0)::bigint
          FROM triwire.entries e WHERE e.account_id = $2 AND e.seq > $3 AND e.key_id = ANY ($4)
            AND e.posted_ms >= s.from_ms AND e.posted_ms < s.until_ms) AS tail
        FROM triwire.spends s WHERE s.scope = $1`,
      [scope, accountId ?? '', lastSeqOf(scope), keyIds],
    )
    if (row) ends.push({ ...readSpend(row), tailNanos: row.tail as bigint })
  }
  return ends
}

/** Before the first of all rows. */
const [lowest, lowestId] = [-(2n ** 63n), '00000000-0000-0000-0000-000000000000']

const readings: Select = {
  table: 'triwire.entries',
  columns: `${readingColumns}, b.balance AS end_balance, b.seq AS end_seq, b.digest AS end_digest, c.entry_id AS referred_id`,
  joins: `${joinNames(dialect)} LEFT JOIN triwire.balances b ON b.account_id = e.account_id
    LEFT JOIN triwire.credits c ON c.reference = e.reference`,
}

const referred: Select = {
  table: 'triwire.credits',
  columns: 'e.reference AS noted, e.entry_id, entry.*',
  joins: 'LEFT JOIN triwire.entries entry ON entry.id = e.entry_id',
}

const accounts: Select = {
  table: 'triwire.accounts',
  columns: 'e.id, b.balance, b.seq',
  joins: 'LEFT JOIN triwire.balances b ON b.account_id = e.id',
}

/** Undefined where there is no such account. */
function readEnd({ account_id, account_name, end_balance, end_seq, end_digest }: Row): AccountEnd | undefined {
  if (account_name === null || end_seq === null) return undefined
  return {
    id: account_id as string,
    balanceNanos: end_balance as bigint,
    seq: Number(end_seq),
    digest: end_digest as string | null,
  }
}

/** Finds damage that would let the same debit or credit in once more. */
function* findRepeatable(row: Row): Iterable<string> {
  const { id, kind, request_id, reference, referred_id } = row
  if (kind === 'debit' && (id as string).replaceAll('-', '') !== entryIdOf(String(request_id)))
    yield `request ${request_id}: has not the id of its request, and may be booked more than once`
  if (kind === 'credit' && referred_id !== id)
    yield `reference ${reference}: ${referred_id ? 'is booked more than once' : 'is not noted as booked'}`
}

async function readPricesOf(
  { query }: Pick<Database, 'query'>,
  rows: readonly Row[],
  prices: Map<string, Debit['prices']>,
): Promise<void> {
  const asked = new Set(rows.map((row) => row.price_version as string | null))
  const unknown = [...asked].filter((version) => version !== null && !prices.has(version))
  if (unknown.length === 0) return
  for (const row of await query('SELECT * FROM triwire.prices WHERE version = ANY ($1)', [unknown]))
    prices.set(row.version as string, readPrices(row))
}

/** All returns have references that begin alike, and so stand together. */
async function readReturns(readPages: ReadPages): Promise<Entry[]> {
  const prefix = returnReference('')
  const returns: Entry[] = []
  for await (const rows of readPages(referred, { reference: prefix })) {
    const found = rows.filter(({ noted }) => (noted as string).startsWith(prefix))
    returns.push(...found.filter(({ id }) => id !== null).map(readEntry))
    if (found.length < rows.length) break
  }
  return returns
}

/** References that are taken by no entry of theirs. */
async function* findLostCredits(readPages: ReadPages): AsyncIterable<string> {
  for await (const rows of readPages(referred, { reference: '' }))
    for (const { noted, id, reference } of rows)
      if (id === null || reference !== noted) yield `reference ${noted}: is noted as booked and has no entry`
}

/** Accounts that no entry was read of, and that say they have some. */
async function* readIdle(
  { query }: Database,
  readPages: ReadPages,
  read: ReadonlyMap<string, unknown>,
): AsyncIterable<AccountEnd> {
  for await (const rows of readPages(accounts, { id: '' }))
    for (const { id, balance, seq } of rows) {
      if (read.has(id as string) || (seq === 0n && balance === 0n)) continue
      // One that was made, or has its first entry, since the entries were read.
      const [entry] = await query('SELECT FROM triwire.entries WHERE account_id = $1 LIMIT 1', [id])
      if (!entry) yield { id: id as string, balanceNanos: (balance as bigint) ?? 0n, seq: Number(seq ?? Number.NaN) }
    }
}

/**
 * Entries that were made in no month that has a partition. Nothing is lost with them, and no forger needs them; but one
 * who cuts off old months should know that they are elsewhere.
 */
async function findUndated({ query }: Database): Promise<string[]> {
  const [row] = await query(
    `SELECT count(*) AS n, min(request_id) AS first FROM
       (SELECT request_id FROM triwire.entries_default WHERE id < 'f0000000-0000-0000-0000-000000000000' LIMIT ${countMax}) e`,
  )
  const { n, first } = row as { n: bigint; first: string | null }
  if (n === 0n) return []
  const count = n === BigInt(countMax) ? `${n} or more` : `${n}`
  return [
    `${count} entries are in the default partition${first === null ? '' : `, ${first} among them`}: the clock of who made their ids was months from ours`,
  ]
}
