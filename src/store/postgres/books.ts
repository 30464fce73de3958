import { BookError } from '../../accounts/book-error.ts'
import { type AccountRow, type KeyRow, readAccountRow, readKeyRow } from '../../accounts/book-rows.ts'
import { accountOf, type BookChange, type BookWrite, type ChangeScope, type Facts } from '../../accounts/book-rules.ts'
import type { BookStore } from '../../accounts/books.ts'
import { isRecorded } from '../../accounts/usage/question.ts'
import type { Moved } from '../files/moved.ts'
import { heldByReplicas, keysWithSpends } from '../sql/spends.ts'
import { readClock, readNowMs } from './clock.ts'
import { type Database, openDatabase, type Transaction } from './database.ts'
import { explainDatabase } from './explain.ts'
import { createListing } from './listing.ts'
import { locks, migrate, refuseEmpty } from './migrate.ts'
import { readMoved } from './moved.ts'
import { createOperators } from './operators.ts'
import { lockAccounts, postCredit, postFunctions } from './post.ts'
import { livingReplicas } from './replicas.ts'
import { sliceSizes } from './slices.ts'
import { armSpend, setSpend, sumSpend } from './spends.ts'
import { ask } from './texts.ts'
import { isConflict } from './trouble.ts'
import { createUsageReading } from './usage.ts'
import { lockState, rezone } from './usage-keep.ts'
import { audit, verify } from './verify.ts'
import { createWarnings } from './warnings.ts'

export type PostgresBooks = BookStore & { readMoved(): Promise<Moved | undefined>; close(): Promise<void> }

export type PostgresBooksOptions = {
  /** The URL as it may be shown (ruling X13). */
  shown: string
  /** False: a database without a store is an error. */
  create?: boolean
  /** What a statement takes at most where a change of all figures is to come, in ms. */
  statementMs?: number | undefined
}

/** What a statement of the books takes at most, in ms: none of them reads more than a slice of the ledger. */
const patienceMs = 5_000

/** What a report may take, while the figures of an upgraded store are still being folded. */
const reportMs = 30_000

/** A slice is found by an index, also where nobody has counted yet how many entries there are. */
const byIndex = { enable_seqscan: 'off' }

/** A migration may have to wait for whoever uses the tables, and work on many rows. */
const schemaMs = 60_000

/** How often a change is made anew that others stood in the way of. */
const triesMax = 5

/**
 * The books of a store in PostgreSQL, with its schema made or brought up to date.
 * @throws StoreError
 */
export async function openPostgresBooks(
  url: string,
  { shown, create = true, statementMs = patienceMs }: PostgresBooksOptions,
): Promise<PostgresBooks> {
  const maker = openDatabase({ url, max: 1, patienceMs, statementMs: schemaMs, purpose: 'schema' })
  try {
    if (!create) await refuseEmpty(maker, shown)
    await migrate(maker, shown, postFunctions)
  } catch (error) {
    throw explainDatabase(error, shown)
  } finally {
    await maker.close()
  }
  const database = openDatabase({ url, max: 2, patienceMs, statementMs, purpose: 'books', settings: byIndex })
  // Reports read tables whole, which no index is for.
  const reports = openDatabase({ url, max: 2, patienceMs, statementMs: reportMs, purpose: 'reports' })
  return {
    ...createPostgresBooks(database, sliceSizes, reports),
    readMoved: () => readMoved(database),
    async close() {
      await Promise.all([database.close(), reports.close()])
    },
  }
}

/** @param database whose schema is there. */
export function createPostgresBooks(database: Database, sizes = sliceSizes, reports: Database = database): BookStore {
  return {
    change: (change) => makeChange(database, change),
    readNowMs: () => readNowMs(database),
    ...createReaders(database),
    ...createOperators(database),
    ...createListing(database, sizes),
    ...createUsageReading(reports),
    sumSpend: (of) => sumSpend(database, of),
    ...createWarnings(database),
    verify: (options) => verify(database, options, sizes),
    audit: (options) => audit(database, options, sizes),
  }
}

function createReaders({ query }: Pick<Database, 'query'>) {
  const accounts = `SELECT a.id, a.name, a.state, b.balance, a.created_ms
    FROM triwire.accounts a JOIN triwire.balances b ON b.account_id = a.id`
  const keys = keysWithSpends('triwire', heldByReplicas)
  return { findAccount, findAccountNamed, listAccounts, listKeys, findKeys, findKeysToChange }

  async function findAccount(idOrName: string): Promise<AccountRow | undefined> {
    const [row] = await ask(query, `${accounts} WHERE a.id = $1 OR a.name = $1 ORDER BY a.id = $1 DESC`, [idOrName])
    return row && readAccountRow(row)
  }

  async function findAccountNamed(name: string): Promise<AccountRow | undefined> {
    const [row] = await ask(query, `${accounts} WHERE a.name = $1`, [name])
    return row && readAccountRow(row)
  }

  async function listAccounts(): Promise<AccountRow[]> {
    return (await query(`${accounts} ORDER BY a.created_ms, a.id`)).map(readAccountRow)
  }

  async function listKeys(accountId?: string): Promise<KeyRow[]> {
    const which = accountId === undefined ? '' : 'WHERE account_id = $1'
    const values = accountId === undefined ? [] : [accountId]
    return (await ask(query, `SELECT * FROM ${keys} ${which} ORDER BY created_ms, id`, values)).map(readKeyRow)
  }

  async function findKeys(name: string): Promise<KeyRow[]> {
    const where = 'id = $1 OR prefix = $1 OR label = $1'
    return (await ask(query, `SELECT * FROM ${keys} WHERE ${where} ORDER BY created_ms, id`, [name])).map(readKeyRow)
  }

  async function findKeysToChange(idOrPrefix: string): Promise<KeyRow[]> {
    return (await ask(query, `SELECT * FROM ${keys} WHERE id = $1 OR prefix = $1`, [idOrPrefix])).map(readKeyRow)
  }
}

/** Once more where the database has ended it for the sake of others: nothing of it was written then. */
async function makeChange<T>(database: Database, change: BookChange<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await database.transact((transaction) => changeIn(transaction, change))
    } catch (error) {
      if (tries === triesMax || !isConflict(error)) throw error
    }
  }
}

/**
 * All changes of operators come one after the other, so that revisions are committed in their order: a server that has
 * read one has missed none before it.
 */
async function changeIn<T>(transaction: Transaction, { about, decide }: BookChange<T>): Promise<T> {
  await transaction.query('SELECT pg_advisory_xact_lock($1)', [locks.operators])
  const facts = await findFacts(transaction, about)
  const { writes, result } = decide(facts)
  if (writes.length === 0) return result
  for (const write of writes) await make(transaction, write, facts.nowMs)
  const accountIds = writes.map(accountOf).filter((id) => id !== undefined)
  if (accountIds.length === 0) return result
  const rows = await transaction.query(
    `UPDATE triwire.accounts SET revision = nextval('triwire.revisions') WHERE id = ANY ($1) RETURNING revision`,
    [[...new Set(accountIds)]],
  )
  const newest = rows.map(({ revision }) => revision as bigint).reduce((a, b) => (a > b ? a : b))
  await transaction.query(`SELECT pg_notify('triwire_changes', $1)`, [`${newest}`])
  return result
}

async function findFacts({ query }: Transaction, about: ChangeScope): Promise<Facts> {
  const readers = createReaders({ query })
  const { account, accountName, key, reference, operator, once, reporting, isDated } = about
  const { findOperators, findMade } = createOperators({ query })
  return {
    account: account === undefined ? undefined : await readers.findAccount(account),
    accountNamed: accountName === undefined ? undefined : await readers.findAccountNamed(accountName),
    keys: key === undefined ? [] : await readers.findKeysToChange(key),
    credit: reference === undefined ? undefined : await findCredit({ query }, reference),
    operators: operator === undefined ? [] : await findOperators(operator),
    made: once === undefined ? undefined : await findMade(once),
    reporting: reporting && (await findReporting({ query })),
    clock: isDated && (await readClock({ query })),
    nowMs: await readNowMs({ query }),
  }
}

/** Locked: a server that starts meanwhile waits for what becomes of it. */
async function findReporting(transaction: Transaction): Promise<Facts['reporting']> {
  const { calendar, keptFrom } = await lockState(transaction, 'UPDATE')
  const servers = await transaction.query(livingReplicas)
  return {
    timeZone: calendar.timeZone,
    isRecorded: isRecorded({ keptFrom }),
    servers: servers.map(({ id, name }) => `${name} (${id})`),
  }
}

async function findCredit({ query }: Transaction, reference: string): Promise<Facts['credit']> {
  const [row] = await ask(query, 'SELECT account_id, amount FROM triwire.credits WHERE reference = $1', [reference])
  return row && { accountId: row.account_id as string, amountNanos: row.amount as bigint }
}

async function make(transaction: Transaction, write: BookWrite, nowMs: number): Promise<void> {
  const { query } = transaction
  if (write.kind === 'insert_account') {
    const { id, name, state, createdMs } = write.account
    await query('INSERT INTO triwire.accounts (id, name, state, revision, created_ms) VALUES ($1, $2, $3, 0, $4)', [
      id,
      name,
      state,
      createdMs,
    ])
    await query('INSERT INTO triwire.balances (account_id) VALUES ($1)', [id])
  } else if (write.kind === 'set_state')
    await query('UPDATE triwire.accounts SET state = $1 WHERE id = $2', [write.state, write.accountId])
  else if (write.kind === 'set_name')
    await query('UPDATE triwire.accounts SET name = $1 WHERE id = $2', [write.name, write.accountId])
  else if (write.kind === 'post_credit') {
    const posting = await postCredit(transaction, write, nowMs)
    // The balance may have grown since the change was decided, by what was given back.
    if (posting !== 'posted') throw new BookError('overflow', write.accountId)
  } else if (write.kind === 'set_zone') await rezone(transaction, { timeZone: write.timeZone })
  else if (write.kind === 'set_spend') await setSpend(transaction, write)
  else if (write.kind === 'clear_spend') {
    await lockAccounts(transaction, [write.accountId])
    await query('DELETE FROM triwire.spends WHERE scope = $1', [write.scope])
  } else {
    // No debit of the account is posted by what its keys were a moment ago.
    if (write.kind === 'set_bounds') await lockAccounts(transaction, [write.accountId])
    await createOperators(transaction).writeOperators(write)
    if (write.kind === 'set_bounds') await armSpend(transaction, write.scope)
  }
}
