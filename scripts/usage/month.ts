import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { createBooks } from '../../src/accounts/books.ts'
import { utc } from '../../src/accounts/calendar.ts'
import type { Debit } from '../../src/accounts/ledger.ts'
import { foldedMax } from '../../src/accounts/usage/reporting.ts'
import { newRequestId } from '../../src/ids.ts'
import { openPostgresBooks } from '../../src/store/postgres/books.ts'
import { openDatabase } from '../../src/store/postgres/database.ts'
import { createFolding } from '../../src/store/postgres/fold.ts'
import { postDebits } from '../../src/store/postgres/post.ts'
import { SpendWindows } from '../../src/store/postgres/spend-windows.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { makeOwners, type Owner, readOwners, sessions } from './ledger.ts'
import * as database from './postgres.ts'
import * as file from './sqlite.ts'

/** A closed month of UTC. @property name such as 2026-10 */
export type Month = { entries: number; startMs: number; endMs: number; name: string }

/** @property accounts the ids of all accounts */
export type MonthStore = { place: string; accounts: readonly string[]; postMore(count: number): Promise<void> }

/** The number of accounts, and the number of keys of each account. */
type Owners = { accounts: number; keys: number }

/** The number of people. The keys are given to them in turns. */
const people = 300

/** Opens a store in a file. */
export const openFile = (path: string) => openStore(path, { create: false })

/**
 * Fills a store with entries of a month, without the chain. Its figures are folded.
 * @param base a checkout of a release without people. If given, that release makes the store, and nothing is folded
 */
export async function fillMonth(place: string, month: Month, owners: Owners, base?: string): Promise<MonthStore> {
  const fill = place.startsWith('postgres') ? fillDatabase : fillFile
  return fill(place, month, owners, base)
}

async function fillFile(path: string, month: Month, owners: Owners, base: string | undefined): Promise<MonthStore> {
  const open: typeof openStore = base ? (await load(base, 'src/store/sqlite/store.ts')).openStore : openStore
  const store = open(path)
  const made = await makeKeys(
    base ? (await load(base, 'src/accounts/books.ts')).createBooks(store, Date.now) : createBooks(store, Date.now),
    owners,
    base,
  )
  file.writeEntries(path, entriesOf(month, made), () => {}, base === undefined)
  while (base === undefined && store.fold(foldedMax) > 0);
  store.close()
  return {
    place: path,
    accounts: accountsOf(made),
    async postMore(count) {
      const posting = openStore(path, { create: false })
      refuseUnposted(posting.postDebits(debitsOf(made, count)))
      posting.close()
    },
  }
}

async function fillDatabase(url: string, month: Month, owners: Owners, base: string | undefined): Promise<MonthStore> {
  const open: typeof openPostgresBooks = base
    ? (await load(base, 'src/store/postgres/books.ts')).openPostgresBooks
    : openPostgresBooks
  const opened = await open(url, { shown: 'database' })
  const made = await makeKeys(
    base ? (await load(base, 'src/accounts/books.ts')).createBooks(opened, Date.now) : createBooks(opened, Date.now),
    owners,
    base,
  )
  await opened.close()
  const openToWrite = () => openDatabase({ url, max: 4, patienceMs: 600_000, statementMs: 600_000, purpose: 'trial' })
  const writing = openToWrite()
  await database.writeEntries(writing, entriesOf(month, made), () => {}, base === undefined)
  await writing.query('ANALYZE')
  const { fold } = createFolding(writing)
  while (base === undefined && (await fold()));
  await writing.query('VACUUM ANALYZE')
  await writing.close()
  return {
    place: url,
    accounts: accountsOf(made),
    async postMore(count) {
      const posting = openToWrite()
      const { postings } = await postDebits(posting, debitsOf(made, count), new SpendWindows(utc))
      refuseUnposted(postings)
      await posting.close()
    },
  }
}

/** Loads a module of another checkout. */
function load(root: string, path: string) {
  return import(pathToFileURL(join(root, path)).href)
}

async function makeKeys(
  books: ReturnType<typeof createBooks>,
  { accounts, keys }: Owners,
  base: string | undefined,
): Promise<Owner[]> {
  await makeOwners(books, accounts, keys)
  const owners = await readOwners(books)
  if (base !== undefined) return owners
  const persons: string[] = []
  for (let n = 0; n < people; n++) persons.push((await books.createPerson({ name: `person ${n}` })).id)
  return owners.map((owner, at) => ({ ...owner, person: persons[at % people]! }))
}

function accountsOf(owners: readonly Owner[]): string[] {
  return [...new Set(owners.map(({ accountId }) => accountId))]
}

function entriesOf({ entries, startMs, endMs }: Month, owners: readonly Owner[]) {
  return sessions(entries, owners, endMs, endMs - startMs)
}

function debitsOf(owners: readonly Owner[], count: number): Debit[] {
  return Array.from({ length: count }, (_, at) => debitOf(owners[at % owners.length]!))
}

function refuseUnposted(postings: readonly unknown[]): void {
  if (postings.some((posting) => posting !== 'posted'))
    throw new Error(`not every entry was posted: ${[...new Set(postings)].join()}`)
}

/** Makes a debit of one request. */
export function debitOf({ accountId, keyId }: Owner): Debit {
  return {
    requestId: newRequestId(),
    accountId,
    keyId,
    clientWire: 'chat',
    model: 'm-large',
    modelWire: 'messages',
    upstream: 'm-upstream',
    upstreamAccount: 'm-one',
    amountNanos: 600_000n,
    usage: {
      ...{ inputTokens: 100, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
      ...{ outputTokens: 20, reasoningTokens: 5, estimated: false },
    },
    usageSource: 'final',
    pricedCalls: 0,
    calls: undefined,
    priceVersion: 'v2',
    prices: {
      ...{ inputNanos: 3_000_000_000n, cacheReadNanos: 300_000_000n, cacheWriteNanos: 3_750_000_000n },
      ...{ cacheWrite1hNanos: 6_000_000_000n, outputNanos: 15_000_000_000n },
    },
    outcome: 'ok',
    createdMs: Date.now(),
  }
}
