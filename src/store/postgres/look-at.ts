import type { AccountRow, NewerContent } from '../../accounts/book-rows.ts'
import { findPlanless } from '../../accounts/planless.ts'
import { createQuestions } from '../sql/books.ts'
import { readNewer } from '../sql/newer.ts'
import { type Database, openDatabase } from './database.ts'
import { dialect, run } from './run.ts'
import { migrations } from './schema.ts'

/** The longest wait for the database, in ms. The machine that checks a configuration may be unable to reach it. */
const patienceMs = 2_000

/**
 * Finds accounts whose plan is not among `plans`, and writes nothing. Returns an empty list if the database has no
 * store, or a store with an older schema.
 * @throws the error of a database that does not answer
 */
export async function lookForPlanless(url: string, plans: readonly string[]): Promise<AccountRow[]> {
  const { pageAccounts } = createQuestions(dialect)
  const look = (database: Database) =>
    findPlanless({ pageAccounts: (page) => run(database, pageAccounts(page)) }, plans)
  return (await lookAtDatabase(url, look)) ?? []
}

/**
 * Counts rows of kinds that the second release does not know. Returns undefined if the database has no store, or a
 * store with an older schema.
 * @throws the error of a database that does not answer
 */
export async function lookForNewer(url: string): Promise<NewerContent | undefined> {
  return lookAtDatabase(url, (database) => run(database, readNewer(dialect, 'SELECT oldest FROM triwire.schema', 1)))
}

async function lookAtDatabase<T>(url: string, look: (database: Database) => Promise<T>): Promise<T | undefined> {
  const settings = { default_transaction_read_only: 'on' }
  const database = openDatabase({ url, max: 1, patienceMs, purpose: 'check', settings })
  try {
    const [there] = await database.query(`SELECT to_regclass('triwire.schema') IS NOT NULL AS is_there`)
    if (!there!['is_there']) return undefined
    const [schema] = await database.query('SELECT version FROM triwire.schema')
    if (schema === undefined || Number(schema['version']) < migrations.length) return undefined
    return await look(database)
  } finally {
    await database.close()
  }
}
