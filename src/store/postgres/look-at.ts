import type { AccountRow } from '../../accounts/book-rows.ts'
import { findPlanless } from '../../accounts/planless.ts'
import { createQuestions } from '../sql/books.ts'
import { openDatabase } from './database.ts'
import { dialect, run } from './run.ts'
import { migrations } from './schema.ts'

/** How long the database is waited for, in ms: who checks a configuration may not reach it. */
const patienceMs = 2_000

/**
 * The accounts that have another plan than these, as `findPlanless` finds them, in a store that is there and up to date. Nothing
 * is written. @throws the error of a database that does not answer
 */
export async function lookForPlanless(url: string, plans: readonly string[]): Promise<AccountRow[]> {
  const settings = { default_transaction_read_only: 'on' }
  const database = openDatabase({ url, max: 1, patienceMs, purpose: 'check', settings })
  try {
    const [there] = await database.query(`SELECT to_regclass('triwire.schema') IS NOT NULL AS is_there`)
    if (!there!['is_there']) return []
    const [schema] = await database.query('SELECT version FROM triwire.schema')
    if (schema === undefined || Number(schema['version']) < migrations.length) return []
    const { pageAccounts } = createQuestions(dialect)
    return await findPlanless({ pageAccounts: (page) => run(database, pageAccounts(page)) }, plans)
  } finally {
    await database.close()
  }
}
