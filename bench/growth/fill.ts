import { DatabaseSync } from 'node:sqlite'
import { createBooks } from '../../src/accounts/books.ts'
import { openStore } from '../../src/store/sqlite/store.ts'

/** The number of accounts that send requests. With so many, two debits of a commit are rarely of the same account. */
const payers = 500
const credit = 1_000_000_000_000_000n

/** Makes accounts with credit, and a key for each. @returns the keys */
export async function addPayers(path: string): Promise<string[]> {
  const store = openStore(path)
  const books = createBooks(store, Date.now)
  const keys: string[] = []
  for (let n = 0; n < payers; n++) {
    const { id } = await books.createAccount(`payer ${n}`, credit)
    keys.push((await books.createKey(id)).key)
  }
  store.close()
  return keys
}

/**
 * Adds accounts that send no requests, with a key each. Their ids are random, so the ids of payers lie between them.
 */
export function addAccounts(path: string, count: number): void {
  fill(path, (db) => {
    db.exec(
      `${numbers(count)} INSERT INTO accounts (id, name, state, balance, seq, revision, created_ms)
       SELECT 'acct_' || ${randomText(16)}, 'account ' || n, 'active', 0, 0, n, ${startMs} + n FROM numbers`,
    )
    db.exec(
      `INSERT INTO keys (id, account_id, digest, prefix, created_ms, scope)
       SELECT 'key_' || substr(id, 6), id, ${randomText(43)}, 'sk-tri-' || substr(id, 6, 8), created_ms, 'key_' || substr(id, 6)
       FROM accounts WHERE seq = 0`,
    )
  })
}

/**
 * Adds debits, equally many for each payer, that count as folded. Their digests are random, because only `ledger
 * verify` reads them.
 */
export function addEntries(path: string, count: number): void {
  const of = Math.floor(count / payers)
  fill(path, (db) => {
    db.exec(
      `INSERT INTO prices (version, input, cache_read, cache_write, cache_write_1h, output) VALUES ('v0', 0, 0, 0, 0, 0)`,
    )
    // Debits are in the order of time, so the accounts get one each in turn.
    db.exec(
      `CREATE TEMP TABLE payer AS SELECT row_number() OVER (ORDER BY a.id) - 1 AS n, a.id, k.id AS key_id FROM accounts a
         JOIN keys k ON k.account_id = a.id WHERE a.name LIKE 'payer %';
       CREATE UNIQUE INDEX temp.payer_n ON payer (n)`,
    )
    db.exec(
      `${numbers(of * payers)} INSERT INTO entries (account_id, seq, kind, amount, balance_after, request_id, key_id, client_wire, model,
         model_wire, upstream, upstream_account, input_tokens, cache_read_tokens, cache_write_tokens, cache_write_1h_tokens,
         output_tokens, reasoning_tokens, usage_source, price_version, outcome, created_ms, posted_ms, digest)
       SELECT p.id, (i.n - 1) / ${payers} + 2, 'debit', 1000, ${credit} - 1000 * ((i.n - 1) / ${payers} + 1),
         printf('req_%012x7', ${startMs} + i.n * 3) || lower(hex(randomblob(9))) || '0', p.key_id, 'chat', 'some-model', 'chat',
         'upstream', 'main', 1000, 0, 0, 0, 500, 0, 'final', 'v0', 'ok', ${startMs} + i.n * 3, ${startMs} + i.n * 3, ${randomText(43)}
       FROM numbers i JOIN temp.payer p ON p.n = (i.n - 1) % ${payers}`,
    )
    db.exec(
      `UPDATE accounts SET seq = ${of} + 1, balance = ${credit} - 1000 * ${of} WHERE id IN (SELECT id FROM payer);
       INSERT OR REPLACE INTO usage_marks SELECT id, ${of} + 1 FROM payer;
       UPDATE usage_state SET folded_id = (SELECT max(id) FROM entries)`,
    )
  })
}

/** The time of the first entry. The others follow every 3 ms, so ten million end long before now. */
const startMs = Date.now() - 365 * 86_400_000

const numbers = (count: number) =>
  `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${count})`

const randomText = (length: number) => `substr(lower(hex(randomblob(${Math.ceil(length / 2)}))), 1, ${length})`

/**
 * Fills a store without the triggers of entries, which check each entry for duplicates. This takes a third of the time.
 */
function fill(path: string, work: (db: DatabaseSync) => void): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -2000000')
  const triggers = db
    .prepare(`SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'entries'`)
    .all()
  db.exec('BEGIN')
  for (const { name } of triggers) db.exec(`DROP TRIGGER ${name}`)
  work(db)
  for (const { sql } of triggers) db.exec(String(sql))
  db.exec('COMMIT; PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}
