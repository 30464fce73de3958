import type { AccountLook } from '../../accounts/planless.ts'
import { createQuestions } from '../sql/books.ts'
import { type NewerContent, readNewer } from '../sql/newer.ts'
import { readUsageState } from '../sql/usage-keep.ts'
import { type Database, openDatabase } from './database.ts'
import { dialect, run } from './run.ts'
import { migrations } from './schema.ts'

/** The longest wait for the database, in ms. The machine that checks a configuration may be unable to reach it. */
const patienceMs = 2_000

/**
 * Reads accounts and writes nothing. Returns undefined if the database has no store, or a store with an older schema.
 * @throws the error of a database that does not answer
 */
export async function lookAtAccounts<T>(url: string, look: AccountLook<T>): Promise<T | undefined> {
  const { pageAccounts, findAccount } = createQuestions(dialect)
  return lookAtDatabase(url, (database) =>
    look({
      pageAccounts: (page) => run(database, pageAccounts(page)),
      findAccount: (name) => run(database, findAccount(name)),
      readUsageState: () => run(database, readUsageState(dialect)),
    }),
  )
}

/**
 * Counts rows of kinds that did not exist in the second release of triwire. Returns undefined if the database has no
 * store, or a store with an older schema.
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
