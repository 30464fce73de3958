import { type Dialect, isText, type Statement } from '../sql/dialect.ts'
import type { SliceSizes } from '../sql/listing.ts'
import type { Row, StoreStep } from '../sql/step.ts'
import type { Database, Transaction } from './database.ts'
import { entryIdOf } from './entry-id.ts'
import { livingReplicas } from './replicas.ts'

export const dialect: Dialect = {
  schema: 'triwire',
  isShared: true,
  parameter: (n) => `$${n}`,
  accounts: `SELECT a.id, a.name, a.state, b.balance, a.created_ms
    FROM triwire.accounts a JOIN triwire.balances b ON b.account_id = a.id`,
  ends: 'triwire.balances',
  credits: 'triwire.credits',
  creditEntry: 'triwire.credits c JOIN triwire.entries e ON e.id = c.entry_id WHERE c.reference',
  isOfRequest: (put, requestId) => `e.id = ${put(entryIdOf(requestId))}`,
  now: () => 'triwire.now_ms()',
  rowsMax: 200,
  livingReplicas,
}

/** A few hundredths of a second each. */
export const sliceSizes: SliceSizes = { readMax: 2_000, sumMax: 50_000, verifyMax: 5_000 }

/**
 * Connections to answer a step on. Without `transact` it is one inside a transaction.
 * @property lane for statements apart: it has a connection free whatever transactions are under way
 */
type Connections = Pick<Transaction, 'query'> & Partial<Pick<Database, 'transact'>> & { lane?: Transaction }

/** The driver of PostgreSQL. */
export async function run<T>(connections: Connections, step: StoreStep<T>): Promise<T> {
  let turn = step.next()
  while (!turn.done) {
    const asked = turn.value
    const answer = 'text' in asked ? ask(connections, asked) : together(connections, asked.step, asked.isWriting)
    turn = step.next(await answer)
  }
  return turn.value
}

/** Somebody may have typed the values: no row fits a text that the database cannot have. */
async function ask({ query, lane }: Connections, { text, values, isApart }: Statement): Promise<Row[]> {
  if (isApart && lane) return lane.query(text, values)
  const isAskable = values.every((value) => typeof value !== 'string' || isText(value))
  return isAskable || !text.startsWith('SELECT') ? query(text, values) : []
}

async function together<T>(connections: Connections, step: StoreStep<T>, isWriting: boolean): Promise<T> {
  if (!connections.transact) return run(connections, step)
  return connections.transact(async (transaction) => {
    if (!isWriting) await transaction.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY')
    return run({ query: transaction.query }, step)
  })
}
