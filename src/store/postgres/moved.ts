import { registers } from '../../accounts/registers.ts'
import type { Transaction } from './database.ts'
import { movedCode } from './trouble.ts'

type Queries = Pick<Transaction, 'query'>

/** Tables to which servers and operators write. The registers (accounts, keys and so on) are not listed here. */
const others = ['balances', 'entries', 'credits', 'watched', 'head', 'usage_marks', 'sums_marks', 'traffic_q']

/** For each table: the kinds of write that fail once the store was moved. In `replicas`, updates still work. */
const guarded = {
  ...Object.fromEntries([...Object.keys(registers), ...others].map((table) => [table, 'INSERT OR UPDATE OR DELETE'])),
  replicas: 'INSERT',
}

/**
 * Closes the store. Every server and operator of any version then fails to write, even a server that was suspended
 * during the move. `allowWriting` lets a copy fill the store.
 * @param to the place that the store was moved to; empty while the store is being filled
 */
export async function closeStore({ query }: Queries, to: string): Promise<void> {
  await query(
    `INSERT INTO triwire.moved (to_store, moved_ms) VALUES ($1, triwire.now_ms())
     ON CONFLICT (one) DO UPDATE SET to_store = excluded.to_store, moved_ms = excluded.moved_ms`,
    [to],
  )
  await query(`CREATE OR REPLACE FUNCTION triwire.refuse_moved() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF current_setting('triwire.copying', true) = 'on' THEN RETURN NULL; END IF;
      RAISE EXCEPTION USING ERRCODE = '${movedCode}', MESSAGE = coalesce((SELECT m.to_store FROM triwire.moved m), '');
    END $$`)
  for (const [table, events] of Object.entries(guarded)) {
    await query(
      `CREATE OR REPLACE TRIGGER moved BEFORE ${events} ON triwire.${table}
       FOR EACH STATEMENT EXECUTE FUNCTION triwire.refuse_moved()`,
    )
  }
}

/** Allows writes to a closed store, until the end of the transaction. */
export async function allowWriting({ query }: Queries): Promise<void> {
  await query('SET LOCAL triwire.copying = on')
}

export async function reopenStore({ query }: Queries): Promise<void> {
  for (const table of Object.keys(guarded)) await query(`DROP TRIGGER IF EXISTS moved ON triwire.${table}`)
  await query('DELETE FROM triwire.moved')
}
