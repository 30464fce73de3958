import { DatabaseSync } from 'node:sqlite'
import { type ChainedRow, digestEntry } from '../../src/accounts/chain.ts'

/** Somebody's connection to a store, with nothing in the way of its changes. */
export type Forger = {
  engine: 'sqlite' | 'postgres'
  all(sql: string): Promise<Record<string, unknown>[]>
  /** Statements without values may be several. @param values for each `?`. */
  run(sql: string, ...values: (string | number | bigint | null)[]): Promise<void>
  /** Where it is kept how the chain of an account ends: number and balance, and by what an account is found there. */
  ends: { table: 'accounts' | 'balances'; id: 'id' | 'account_id' }
}

/** Changes the file past the triggers, which are there again after it. */
export async function forgeFile(path: string, work: (forger: Forger) => Promise<void>): Promise<void> {
  const db = openWithoutTriggers(path)
  await work({
    engine: 'sqlite',
    all: async (sql) => db.prepare(sql).all(),
    async run(sql, ...values) {
      if (values.length === 0) db.exec(sql)
      else db.prepare(sql).run(...values)
    },
    ends: { table: 'accounts', id: 'id' },
  })
  db.close()
}

/** The same with a statement that is nothing but SQLite's. */
export function forge(path: string, work: (db: DatabaseSync) => void): void {
  const db = openWithoutTriggers(path)
  work(db)
  db.close()
}

function openWithoutTriggers(path: string): DatabaseSync {
  const db = new DatabaseSync(path, { readBigInts: true, enableForeignKeyConstraints: false })
  const triggers = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`)
  const close = db.close.bind(db)
  db.close = () => {
    for (const { sql } of triggers) db.exec(sql as string)
    close()
  }
  return db
}

/** Numbers and balances made right again, all the way to the accounts; digests are left as they were. */
export async function rechain(forger: Forger): Promise<void> {
  const ends = new Map<string, { seq: number; balance: bigint }>()
  const rows = await forger.all('SELECT id, account_id, kind, amount FROM entries ORDER BY account_id, seq')
  // Out of the way first, for no two may have one number in between.
  if (forger.engine === 'sqlite') await forger.run('UPDATE entries SET seq = -id')
  for (const row of rows) {
    const last = ends.get(row.account_id as string) ?? { seq: 0, balance: 0n }
    const change = row.kind === 'credit' ? (row.amount as bigint) : -(row.amount as bigint)
    const end = { seq: last.seq + 1, balance: last.balance + change }
    ends.set(row.account_id as string, end)
    await forger.run(
      'UPDATE entries SET seq = ?, balance_after = ? WHERE id = ?',
      end.seq,
      end.balance,
      row.id as string,
    )
  }
  const { table, id } = forger.ends
  await forger.run(`UPDATE ${table} SET seq = 0, balance = 0`)
  for (const [accountId, { seq, balance }] of ends)
    await forger.run(`UPDATE ${table} SET seq = ?, balance = ? WHERE ${id} = ?`, seq, balance, accountId)
}

/** The digests too, by our own source. */
export async function redigest(forger: Forger): Promise<void> {
  await rechain(forger)
  const last = new Map<unknown, string>()
  for (const row of await forger.all('SELECT * FROM entries ORDER BY account_id, seq')) {
    const digest = digestEntry(row as unknown as ChainedRow, last.get(row.account_id) ?? null)
    last.set(row.account_id, digest)
    await forger.run('UPDATE entries SET digest = ? WHERE id = ?', digest, row.id as string)
  }
  await follow(forger)
}

/** What PostgreSQL keeps beside the entries, made to say what they say: digests at the ends of chains, and references. */
export async function follow(forger: Forger): Promise<void> {
  if (forger.engine === 'sqlite') return
  await forger.run(
    `UPDATE balances b SET (posted_ms, digest) = (SELECT e.posted_ms, e.digest FROM entries e
       WHERE e.account_id = b.account_id AND e.seq = b.seq) WHERE b.seq > 0;
     DELETE FROM credits;
     INSERT INTO credits SELECT reference, id, account_id, amount FROM entries WHERE kind = 'credit'`,
  )
}
