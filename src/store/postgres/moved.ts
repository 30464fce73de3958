import { registers } from '../../accounts/registers.ts'
import type { Transaction } from './database.ts'
import { movedCode } from './trouble.ts'

type Queries = Pick<Transaction, 'query'>

/** Tables beside the registers that servers and operators write to. */
const others = ['balances', 'entries', 'credits', 'watched', 'head', 'usage_marks', 'sums_marks', 'traffic_q']

/** Tables that refuse writes, and which. A server may still say that it lives, or leave. */
const guarded = {
  ...Object.fromEntries([...Object.keys(registers), ...others].map((table) => [table, 'INSERT OR UPDATE OR DELETE'])),
  replicas: 'INSERT',
}

/**
 * Closes the store: writing fails for every server and operator of any version, also for a server that slept through the move.
 * `allowWriting` lets a copy fill it.
 * @param to empty while it is being filled
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

/** To the end of the transaction. */
export async function allowWriting({ query }: Queries): Promise<void> {
  await query('SET LOCAL triwire.copying = on')
}

export async function reopenStore({ query }: Queries): Promise<void> {
  for (const table of Object.keys(guarded)) await query(`DROP TRIGGER IF EXISTS moved ON triwire.${table}`)
  await query('DELETE FROM triwire.moved')
}
