import type { StoredWarning, Watched } from '../../accounts/warnings.ts'
import { readWarning, settleWarning, takeWarnings, untoldMs, watchStatements } from '../sql/warnings.ts'
import type { Database, Transaction } from './database.ts'
import { dialect } from './slices.ts'

/** By the database's clock: those of replicas may differ. */
const now = 'triwire.now_ms()'

/** Warnings that wait to be told, of which each goes to one replica. */
export function createWarnings({ query, transact }: Pick<Database, 'query' | 'transact'>) {
  return { watch, takeWarnings: take, settleWarning: settle }

  function watch(what: Watched): Promise<void> {
    return transact(async (transaction: Transaction) => {
      // Two replicas that start at once say it one after the other.
      await transaction.query('LOCK TABLE triwire.watched IN SHARE ROW EXCLUSIVE MODE')
      for (const { text, values } of watchStatements(dialect, what)) await transaction.query(text, values)
    })
  }

  /** Without a write where there is nothing: it is asked often. */
  async function take(leaseMs: number, limit: number): Promise<StoredWarning[]> {
    const [due] = await query(`SELECT FROM triwire.outbox WHERE next_ms <= ${now} LIMIT 1`)
    if (!due) return []
    await query(`DELETE FROM triwire.outbox WHERE at_ms < ${now} - $1::bigint`, [untoldMs])
    const { text, values } = takeWarnings(dialect, now, leaseMs, limit, 'FOR UPDATE SKIP LOCKED')
    return (await query(text, values)).map(readWarning)
  }

  async function settle(id: string, next: { tries: string; afterMs: number } | undefined): Promise<void> {
    const { text, values } = settleWarning(dialect, now, id, next)
    await query(text, values)
  }
}
