import type { NewCredit } from '../../accounts/book-rules.ts'
import { formatContent, formatLater, formOf } from '../../accounts/chain.ts'
import { nanosMax } from '../../accounts/credit.ts'
import { isSame, returnReference } from '../../accounts/entries.ts'
import {
  creditRow,
  debitRow,
  fieldColumns,
  givenColumns,
  isWellTyped,
  priceRow,
  readEntry,
  returnRow,
  type UnplacedRow,
} from '../../accounts/entry-row.ts'
import type { Debit } from '../../accounts/ledger.ts'
import type { GivenBack, Posted, Posting } from '../../accounts/poster.ts'
import { repeatOf } from '../sql/archives.ts'
import { isText } from '../sql/dialect.ts'
import { readNowMs } from '../sql/moments.ts'
import type { Row } from '../sql/step.ts'
import type { Database, Transaction } from './database.ts'
import { locks } from './migrate.ts'
import { post, postedAlready } from './post-function.ts'
import { dialect, entryIdOf, newEntryId, run } from './run.ts'
import { SpendWindows } from './spend-windows.ts'
import { codeOf } from './trouble.ts'

/** The SQLSTATE of PostgreSQL for a second row with the same key. */
const uniqueViolation = '23505'

/** The functions of the database that must be installed before the functions of this file are called. */
export const postFunctions = [post]

/** An entry without the columns that are computed from its place in the chain of its account. */
type NewEntry = { id: string; accountId: string; row: UnplacedRow }

/** @property index the position of the debit in the call */
type NewDebit = NewEntry & { debit: Debit; index: number }

/** @property hasBegun whether this call began form 3 of the ledger, a layout that older versions cannot read */
type PostOutcome = {
  hasBegun: boolean
  letters: string
  balances: (readonly [accountId: string, storedNanos: bigint])[]
}

type PostListener = {
  /** Called as soon as a debit is known to be in the ledger, even if the whole call fails later. */
  onBooked?: (debit: Debit) => void
  /** Called when the ledger gets its first entry of form 3, a layout that older versions of triwire cannot read. */
  onBegun?: (() => void) | undefined
}

/**
 * Posts all debits in one commit, which is durable when this resolves. Each request id is posted at most once. A debit
 * that cannot be posted does not affect the others. The call may be repeated after any failure.
 */
export async function postDebits(
  database: Database,
  debits: readonly Debit[],
  windows: SpendWindows = new SpendWindows(),
  { onBooked, onBegun }: PostListener = {},
): Promise<Posted> {
  const postings: Posting[] = debits.map(() => 'rejected')
  const balances = new Map<string, bigint>()
  const entries = sortByAccount(debits.flatMap((debit, index) => newDebit(debit, index) ?? []))
  // The database may refuse a value that `newDebit` should have refused. It also refuses entries while a partition is
  // being created. After a refusal each entry is posted alone, so that only a faulty entry stays refused.
  if (entries.length > 0 && !(await postUnlessRefused(entries)))
    for (const entry of entries) await postUnlessRefused([entry])
  const open = debits.flatMap((debit, index) => (postings[index] === 'posted' ? [] : [{ debit, index }]))
  const earlier = await readByRequestId(
    database,
    open.map(({ debit }) => debit.requestId),
  )
  for (const { debit, index } of open) {
    const row = earlier.get(debit.requestId)
    if (row) postings[index] = isSame(readEntry(row), debit) ? 'exists' : 'conflict'
  }
  const absent = open.filter(({ debit }) => !earlier.has(debit.requestId))
  const archived = await readArchived(
    database,
    absent.map(({ debit }) => debit.requestId),
  )
  for (const { debit, index } of absent) postings[index] = repeatOf(debit, archived.get(debit.requestId))
  return { postings, balances: [...balances] }

  /** Posts debits. @returns false if the database refuses a value of these debits; then none of them is posted */
  async function postUnlessRefused(some: readonly NewDebit[]): Promise<boolean> {
    const priced = some.map(({ debit }) => debit)
    try {
      const {
        letters,
        balances: stored,
        hasBegun,
      } = await windows.retry(() => postNew(database, some, priced, windows))
      if (hasBegun) onBegun?.()
      for (const [at, { debit, index }] of some.entries()) {
        if (letters[at] !== 'r') onBooked?.(debit)
        if (letters[at] === 'p') postings[index] = 'posted'
      }
      for (const [accountId, storedNanos] of stored) balances.set(accountId, storedNanos)
      return true
    } catch (error) {
      if (isAboutValues(error)) return false
      throw error
    }
  }
}

/**
 * Reverses the debits of these requests (ruling C13), each at most once. Even if no debit is reversed, the commit
 * writes to the disk, which shows that the store can be written again. The call may be repeated after any failure.
 */
export async function giveBack(
  database: Database,
  requestIds: readonly string[],
  windows: SpendWindows = new SpendWindows(),
): Promise<GivenBack> {
  return windows.retry(() => giveBackOnce(database, requestIds, windows))
}

/** Finds the accounts of debits, in the ledger or in the index of archives. Requests without a debit are left out. */
export async function readDebtors(database: Pick<Database, 'query'>, requestIds: readonly string[]) {
  if (requestIds.length === 0) return []
  const debits = new Map([
    ...(await readArchived(database, requestIds)),
    ...(await readByRequestId(database, requestIds)),
  ])
  return Array.from(debits, ([requestId, row]) => ({ requestId, accountId: row['account_id'] as string }))
}

function giveBackOnce(database: Database, requestIds: readonly string[], windows: SpendWindows): Promise<GivenBack> {
  return database.transact(async (transaction) => {
    // The lock of heads is taken before locks of accounts. All posts take them in this order, so none can deadlock.
    await transaction.query(
      `SELECT pg_advisory_xact_lock_shared(${locks.head}), pg_logical_emit_message(true, 'triwire', 'written')`,
    )
    const debits = await readByRequestId(transaction, requestIds)
    const absent = requestIds.filter((requestId) => !debits.has(requestId))
    // The index of archives has only the account and the amount of a debit. So the entry that reverses it has neither
    // key nor model.
    for (const [requestId, row] of await readArchived(transaction, absent))
      debits.set(requestId, { ...row, request_id: requestId })
    const accountIds = Array.from(debits.values(), (row) => row.account_id as string)
    // All sessions that reverse a debit lock its account. So no other session can reverse these debits from here on.
    await lockAccounts(transaction, accountIds)
    const entries = await newReturns(transaction, [...debits.values()])
    if (entries.length > 0) await postTo(transaction, sortByAccount(entries), [], windows)
    return {
      returned: requestIds.filter((requestId) => debits.has(requestId)),
      balances: await readBalances(transaction, accountIds),
    }
  })
}

/**
 * Posts credits in the caller's transaction, in which the caller has checked the references of the credits.
 * @param credits credits of one account
 * @param nowMs the database's time
 * @returns whether all are posted; false if the balance would become too large
 */
export async function postCredits(
  transaction: Transaction,
  credits: readonly NewCredit[],
  nowMs: number,
): Promise<boolean> {
  const entries = credits.map(({ accountId, amountNanos, reference, createdMs, effectiveMs }) => ({
    ...{ id: newEntryId(), accountId },
    row: creditRow(amountNanos, reference, createdMs ?? nowMs, effectiveMs),
  }))
  // Only debits and their reversals count in budgets. These credits are neither, so the call gets no budget periods.
  const { letters } = await postTo(transaction, entries, [], { text: '[]', clock: undefined })
  return letters === 'p'.repeat(credits.length)
}

/** Looks for debits in the ledger. @returns the debits that the ledger lacks */
export async function findMissing(database: Pick<Database, 'query'>, debits: readonly Debit[]): Promise<Set<Debit>> {
  const ids = debits.map(({ requestId }) => entryIdOf(requestId))
  const known = new Set(await readKnown(database, ids))
  return new Set(debits.filter((_, at) => !known.has(ids[at]!)))
}

/** Looks for entries in the ledger and in archives. @returns the ids that were found */
async function readKnown({ query }: Pick<Database, 'query'>, ids: readonly string[]): Promise<string[]> {
  const rows = await query(
    'SELECT id FROM triwire.entries WHERE id = ANY ($1::uuid[]) UNION ALL SELECT id FROM triwire.archived WHERE id = ANY ($1::uuid[])',
    [ids],
  )
  return rows.map(({ id }) => (id as string).replaceAll('-', ''))
}

/** Returns the accounts whose chains another session has locked now. The call waits for no lock, and needs no disk. */
export async function findLocked({ query }: Transaction, accountIds: readonly string[]): Promise<Set<string>> {
  const rows = await query(
    `WITH free AS (SELECT account_id FROM triwire.balances WHERE account_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED)
     SELECT account_id FROM triwire.balances WHERE account_id = ANY ($1) EXCEPT SELECT account_id FROM free`,
    [accountIds.filter(isText)],
  )
  return new Set(rows.map(({ account_id }) => account_id as string))
}

/** Reads the balances of the accounts that exist, in nano-credits. */
export async function readBalances(
  database: Pick<Database, 'query'>,
  accountIds: readonly string[],
): Promise<(readonly [accountId: string, storedNanos: bigint])[]> {
  if (accountIds.length === 0) return []
  const rows = await database.query('SELECT account_id, balance FROM triwire.balances WHERE account_id = ANY ($1)', [
    accountIds.filter(isText),
  ])
  return rows.map(({ account_id, balance }) => [account_id as string, balance as bigint])
}

/** Posts entries. Some of them may be posted already. */
async function postNew(
  database: Database,
  entries: readonly NewEntry[],
  priced: readonly Debit[],
  windows: SpendWindows,
): Promise<PostOutcome> {
  for (let known: readonly string[] = []; ; ) {
    try {
      return await postTo(database, entries, priced, windows, known)
    } catch (error) {
      if (codeOf(error) !== postedAlready && codeOf(error) !== uniqueViolation) throw error
      const ids = await readKnown(
        database,
        entries.map(({ id }) => id),
      )
      if (ids.length === known.length) throw error
      known = ids
    }
  }
}

/**
 * Calls the database's function `post`.
 * @param entries grouped by account
 * @param known ids of entries that are posted already
 */
async function postTo(
  { query }: Pick<Database, 'query'>,
  entries: readonly NewEntry[],
  priced: readonly Debit[],
  windows: Pick<SpendWindows, 'text' | 'clock'>,
  known: readonly string[] = [],
): Promise<PostOutcome> {
  const prices = new Map(priced.map(({ priceVersion, prices }) => [priceVersion, prices]))
  for (const { details, costPrices } of priced)
    if (details?.costVersion !== undefined && costPrices) prices.set(details.costVersion, costPrices)
  const lists = new Map(
    priced.flatMap(({ details, listText }) => (listText && details?.list ? [[details.list, listText]] : [])),
  )
  const listRows = Array.from(lists, ([digest, text]) => ({ digest, text }))
  const hasDetails = entries.some(({ row }) => formOf(row) === '3')
  const priceRows = Array.from(prices, ([version, rates]) => priceRow(version.toWellFormed(), rates))
  const priceJson = JSON.stringify(priceRows, (_, value) => (typeof value === 'bigint' ? `${value}` : value))
  const values = [
    `[${entries.map(toJson).join()}]`,
    [...new Set(entries.map(({ accountId }) => accountId))],
    known,
    priceJson,
    windows.text,
    windows.clock?.expectedMs,
    hasDetails ? JSON.stringify(listRows) : null,
  ]
  const [result] = await query(`SELECT * FROM ${post.name}($1, $2, $3, $4, $5, $6, $7)`, values, post.name)
  const { postings, accounts, stored, begun } = result as {
    postings: string
    accounts: string[]
    stored: bigint[]
    begun: boolean | null
  }
  return {
    hasBegun: begun === true,
    letters: postings,
    balances: (accounts ?? []).map((accountId, at) => [accountId, stored[at]!] as const),
  }
}

/** The JSON text before the value of each column. The account is not here, because `toJson` writes it with the id. */
const members = givenColumns.flatMap((column) => (column === 'account_id' ? [] : [[column, `,"${column}":`] as const]))

/** Writes 64-bit integers as strings, because JSON numbers cannot hold them. Null values are left out. */
function toJson({ id, accountId, row }: NewEntry): string {
  let text = `{"id":"${id}","account_id":${JSON.stringify(accountId)}`
  for (const [column, begin] of members) {
    const value = row[column]
    if (typeof value === 'string') text += begin + JSON.stringify(value.toWellFormed())
    else if (typeof value === 'bigint') text += `${begin}"${value}"`
    else if (value !== null && value !== undefined) text += begin + value
  }
  const form = formOf(row)
  const later = JSON.stringify(formatLater(row, form).toWellFormed())
  return `${text},"form":"${form}","later":${later},"content":${JSON.stringify(formatContent(row).toWellFormed())}}`
}

/** Makes a debit's entry. @returns undefined if it has a value that the database cannot store or would refuse */
function newDebit(debit: Debit, index: number): NewDebit | undefined {
  const row = debitRow(debit)
  if (!isText(debit.requestId) || !isText(debit.priceVersion) || !isText(debit.accountId)) return undefined
  if (!isWellTyped(row) || !fieldColumns.every((column) => isStorable(row[column])) || (row.amount as bigint) < 0n)
    return undefined
  const { version: _, terms: __, ...rates } = priceRow('', debit.prices)
  if (!Object.values(rates).every((rate) => typeof rate === 'bigint' && isStorable(rate))) return undefined
  return { id: entryIdOf(debit.requestId), accountId: debit.accountId, row, debit, index }
}

/** Reverses those debits that are not reversed yet. Each reversing entry gets a new reference (rulings C8, C13). */
async function newReturns({ query }: Transaction, debits: readonly Row[]): Promise<NewEntry[]> {
  const entries: NewEntry[] = []
  const nowMs = await run({ query }, readNowMs(dialect))
  let open = debits
  for (let number = 1; open.length > 0; number++) {
    const references = open.map((debit) => returnReference(debit.request_id as string, number))
    const rows = await query(
      `SELECT c.reference, (e.usage_source IS NOT NULL OR a.kind = 'return') AS is_return FROM triwire.credits c
       LEFT JOIN triwire.entries e ON e.id = c.entry_id LEFT JOIN triwire.archived a ON a.id = c.entry_id
       WHERE c.reference = ANY ($1)`,
      [references],
    )
    const taken = new Map(rows.map((row) => [row.reference, row.is_return === true]))
    const blocked: Row[] = []
    for (const [at, debit] of open.entries()) {
      const isReturn = taken.get(references[at])
      if (isReturn) continue
      if (isReturn === false) blocked.push(debit)
      else {
        const row = returnRow(debit, references[at]!, nowMs)
        entries.push({ id: newEntryId(), accountId: debit.account_id as string, row })
      }
    }
    open = blocked
  }
  return entries
}

/** Locks accounts in the order of their ids. `sortByAccount` has the same order. */
async function lockAccounts({ query }: Transaction, accountIds: readonly string[]): Promise<void> {
  await query(
    'SELECT FROM triwire.balances WHERE account_id = ANY ($1) ORDER BY account_id COLLATE "C" FOR NO KEY UPDATE',
    [accountIds],
  )
}

async function readByRequestId(
  { query }: Pick<Database, 'query'>,
  requestIds: readonly string[],
): Promise<Map<string, Row>> {
  const asked = requestIds.filter(isText)
  if (asked.length === 0) return new Map()
  const rows = await query('SELECT * FROM triwire.entries WHERE id = ANY ($1::uuid[])', [asked.map(entryIdOf)])
  return new Map(rows.map((row) => [row.request_id as string, row]))
}

/** Reads rows of the index of archives, by request id. */
async function readArchived(
  { query }: Pick<Database, 'query'>,
  requestIds: readonly string[],
): Promise<Map<string, Row>> {
  const byId = new Map(requestIds.filter(isText).map((requestId) => [entryIdOf(requestId), requestId]))
  if (byId.size === 0) return new Map()
  const rows = await query(`SELECT * FROM triwire.archived WHERE id = ANY ($1::uuid[]) AND kind = 'debit'`, [
    [...byId.keys()],
  ])
  return new Map(rows.map((row) => [byId.get((row.id as string).replaceAll('-', ''))!, row]))
}

/** Sorts entries by account. All calls lock accounts in this order. */
function sortByAccount<E extends NewEntry>(entries: readonly E[]): E[] {
  return entries.toSorted((a, b) => (a.accountId < b.accountId ? -1 : a.accountId > b.accountId ? 1 : 0))
}

/** Whether a column can store the value. PostgreSQL refuses strings with NUL. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'bigint') return value >= -nanosMax - 1n && value <= nanosMax
  return typeof value !== 'string' || isText(value)
}

/** Whether a value does not fit its type, breaks a constraint or is too long (SQLSTATE classes 22, 23 and 54). */
function isAboutValues(error: unknown): boolean {
  return /^(22|23|54)...$/.test(codeOf(error))
}
