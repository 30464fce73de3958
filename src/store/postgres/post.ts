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
import { post } from './post-function.ts'
import { dialect, entryIdOf, newEntryId, run } from './run.ts'
import { SpendWindows } from './spend-windows.ts'
import { codeOf } from './trouble.ts'

/** To be installed wherever something here is called. */
export const postFunctions = [post]

/** An entry on its way: all that does not follow from its place in the chain. */
type NewEntry = { id: string; accountId: string; row: UnplacedRow }

/** @property index of the debit in its call */
type NewDebit = NewEntry & { debit: Debit; index: number }

/** @property hasBegun whether the ledger has begun form 3 with it */
type PostOutcome = {
  hasBegun: boolean
  letters: string
  balances: (readonly [accountId: string, storedNanos: bigint])[]
}

type PostListener = {
  /** Called for each debit that the ledger has, as soon as that is known: also if the whole call fails later. */
  onBooked?: (debit: Debit) => void
  /** The ledger has begun form 3, which older triwires cannot read. Called once in the life of a store. */
  onBegun?: (() => void) | undefined
}

/**
 * Posts all of them in one commit, which is durable when this resolves. Each request id is posted once, ever. A debit that
 * cannot be posted leaves the others alone. The call may be repeated after any failure.
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
  // The database may refuse a value that a check should have found. Then each entry gets a commit of its own, so that one
  // refuses only itself. A refusal counts when it comes twice: a month that is being made refuses entries that it will take.
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

  /** @returns false if the database refuses a value of theirs; then none is posted. */
  async function postUnlessRefused(some: readonly NewDebit[]): Promise<boolean> {
    const priced = some.map(({ debit }) => debit)
    try {
      const { letters, balances: stored, hasBegun } = await windows.retry(() => postTo(database, some, priced, windows))
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
 * Gives back the debits of these requests (ruling C13), each once, ever. The commit writes to the disk even if there is
 * nothing to give back: it shows that the store can be written again. The call may be repeated after any failure.
 */
export async function giveBack(
  database: Database,
  requestIds: readonly string[],
  windows: SpendWindows = new SpendWindows(),
): Promise<GivenBack> {
  return windows.retry(() => giveBackOnce(database, requestIds, windows))
}

function giveBackOnce(database: Database, requestIds: readonly string[], windows: SpendWindows): Promise<GivenBack> {
  return database.transact(async (transaction) => {
    // The lock of heads comes before those of accounts, as in every post.
    await transaction.query(
      `SELECT pg_advisory_xact_lock_shared(${locks.head}), pg_logical_emit_message(true, 'triwire', 'written')`,
    )
    const debits = await readByRequestId(transaction, requestIds)
    const absent = requestIds.filter((requestId) => !debits.has(requestId))
    // Of an archived debit, account and amount are known: its return has no key and no model.
    for (const [requestId, row] of await readArchived(transaction, absent))
      debits.set(requestId, { ...row, request_id: requestId })
    const accountIds = Array.from(debits.values(), (row) => row.account_id as string)
    // Before the references are read: every return of an account's debits is made by who holds the account.
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
 * Inside the caller's transaction, which has looked for the references.
 * @param credits of one account
 * @param nowMs of the database.
 * @returns whether all are posted; false if the account cannot hold one of them
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
  // No key spends what is credited.
  const { letters } = await postTo(transaction, entries, [], { text: '[]', clock: undefined })
  return letters === 'p'.repeat(credits.length)
}

/** The debits among these that the ledger has not. */
export async function findMissing({ query }: Pick<Database, 'query'>, debits: readonly Debit[]): Promise<Set<Debit>> {
  const ids = debits.map(({ requestId }) => entryIdOf(requestId))
  const known =
    'SELECT id FROM triwire.entries WHERE id = ANY ($1::uuid[]) UNION ALL SELECT id FROM triwire.archived WHERE id = ANY ($1::uuid[])'
  const rows = await query(known, [ids])
  const there = new Set(rows.map(({ id }) => (id as string).replaceAll('-', '')))
  return new Set(debits.filter((_, at) => !there.has(ids[at]!)))
}

/** Of these accounts those whose ends of the chain somebody has locked now. It waits for nobody, and needs no disk. */
export async function findLocked({ query }: Transaction, accountIds: readonly string[]): Promise<Set<string>> {
  const rows = await query(
    'SELECT account_id FROM triwire.balances WHERE account_id = ANY ($1) FOR NO KEY UPDATE SKIP LOCKED',
    [accountIds.filter(isText)],
  )
  const locked = new Set(accountIds)
  for (const { account_id } of rows) locked.delete(account_id as string)
  return locked
}

/** Of those that exist, in nano-credits. */
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

/** @param entries those of an account together, accounts in the order of `sortByAccount`. */
async function postTo(
  { query }: Pick<Database, 'query'>,
  entries: readonly NewEntry[],
  priced: readonly Debit[],
  windows: Pick<SpendWindows, 'text' | 'clock'>,
): Promise<PostOutcome> {
  const rows = entries.map((entry, at) => toJson(entry, entries[at + 1]?.accountId !== entry.accountId))
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
    `[${rows.join()}]`,
    priceJson,
    windows.text,
    windows.clock?.expectedMs,
    hasDetails ? JSON.stringify(listRows) : null,
  ]
  const [result] = await query(`SELECT * FROM ${post.name}($1, $2, $3, $4, $5)`, values, post.name)
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

/** Columns as members of a JSON object begin; the account comes with the id. */
const members = givenColumns.flatMap((column) => (column === 'account_id' ? [] : [[column, `,"${column}":`] as const]))

/** Integers of 64 bits as texts, for no number of JSON holds them; nulls not at all. */
function toJson({ id, accountId, row }: NewEntry, endsAccount: boolean): string {
  let text = `{"id":"${id}","account_id":${JSON.stringify(accountId)},"ends_account":${endsAccount}`
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

/** @returns undefined for what the database has no type for or refuses by its rules: the debit's own trouble. */
function newDebit(debit: Debit, index: number): NewDebit | undefined {
  const row = debitRow(debit)
  if (!isText(debit.requestId) || !isText(debit.priceVersion) || !isText(debit.accountId)) return undefined
  if (!isWellTyped(row) || !fieldColumns.every((column) => isStorable(row[column])) || (row.amount as bigint) < 0n)
    return undefined
  const { version: _, terms: __, ...rates } = priceRow('', debit.prices)
  if (!Object.values(rates).every((rate) => typeof rate === 'bigint' && isStorable(rate))) return undefined
  return { id: entryIdOf(debit.requestId), accountId: debit.accountId, row, debit, index }
}

/** Of the debits that were not given back yet, each with the first reference that is free (ruling C8). */
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

/** In the order of `sortByAccount`. */
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

/** Rows of the index of archives, by request ids. */
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

/** In the one order in which accounts are locked, everywhere. */
function sortByAccount<E extends NewEntry>(entries: readonly E[]): E[] {
  return entries.toSorted((a, b) => (a.accountId < b.accountId ? -1 : a.accountId > b.accountId ? 1 : 0))
}

/** Whether a column keeps it: PostgreSQL has no text with NUL in it. */
function isStorable(value: unknown): boolean {
  if (typeof value === 'bigint') return value >= -nanosMax - 1n && value <= nanosMax
  return typeof value !== 'string' || isText(value)
}

/** Data that a type cannot hold (22), that breaks a constraint (23), or that is too long for an index (54). */
function isAboutValues(error: unknown): boolean {
  return /^(22|23|54)...$/.test(codeOf(error))
}
