import { DatabaseSync } from 'node:sqlite'
import { type ChainedRow, digestEntry } from '../../src/accounts/chain.ts'

/** Changes the file as somebody does who may write it and knows the schema: past the triggers, which are there again after it. */
export function forge(path: string, work: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(path, { readBigInts: true, enableForeignKeyConstraints: false })
  const triggers = db.prepare("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`)
  work(db)
  for (const { sql } of triggers) db.exec(sql as string)
  db.close()
}

/** Numbers and balances made right again, all the way to the accounts; digests are left as they were. */
export function rechain(db: DatabaseSync): void {
  walk(db, ({ id, seq, balance_after }) => {
    db.prepare('UPDATE entries SET seq = ?, balance_after = ? WHERE id = ?').run(seq, balance_after, id)
  })
}

/** The digests too, by our own source. */
export function redigest(db: DatabaseSync): void {
  rechain(db)
  const last = new Map<unknown, string>()
  for (const row of db.prepare('SELECT * FROM entries ORDER BY account_id, seq').all()) {
    const digest = digestEntry(row as unknown as ChainedRow, last.get(row.account_id) ?? null)
    last.set(row.account_id, digest)
    db.prepare('UPDATE entries SET digest = ? WHERE id = ?').run(digest, row.id!)
  }
}

type Place = { id: bigint; seq: number; balance_after: bigint }

function walk(db: DatabaseSync, write: (place: Place) => void): void {
  const ends = new Map<string, { seq: number; balance: bigint }>()
  const rows = db.prepare('SELECT id, account_id, kind, amount FROM entries ORDER BY account_id, seq').all()
  // Out of the way first, for no two may have one number in between.
  db.exec('UPDATE entries SET seq = -id')
  for (const row of rows) {
    const last = ends.get(row.account_id as string) ?? { seq: 0, balance: 0n }
    const change = row.kind === 'credit' ? (row.amount as bigint) : -(row.amount as bigint)
    const end = { seq: last.seq + 1, balance: last.balance + change }
    ends.set(row.account_id as string, end)
    write({ id: row.id as bigint, seq: end.seq, balance_after: end.balance })
  }
  db.exec('UPDATE accounts SET seq = 0, balance = 0')
  for (const [id, { seq, balance }] of ends)
    db.prepare('UPDATE accounts SET seq = ?, balance = ? WHERE id = ?').run(seq, balance, id)
}
