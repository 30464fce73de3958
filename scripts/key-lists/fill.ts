import { hash } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { openDatabase } from '../../src/store/postgres/database.ts'

type Value = string | number | null

const startMs = Date.now() - 40 * 86_400_000
const ofAccount = 10
const alphabet = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns letters and digits that depend only on the seed. */
function letters(seed: string, count: number): string {
  return Array.from(hash('sha256', seed, 'buffer').subarray(0, count), (byte) => alphabet[byte % 62]).join('')
}

const prefixOf = (at: number) => `sk-tri-${letters(`prefix ${at}`, 8)}`

/** Returns the first characters of the middle key of this number of keys. */
export const middlePrefix = (keys: number) => prefixOf(keys >> 1)

const accountColumns = ['id', 'name', 'state', 'revision', 'created_ms'] as const
const keyColumns = [
  'id',
  'account_id',
  'digest',
  'prefix',
  'label',
  'created_ms',
  'expires_ms',
  'revoked_ms',
  'scope',
] as const

function* accountsOf(keys: number): Iterable<Value[]> {
  for (let at = 0; at < keys / ofAccount; at++)
    yield [
      `acct_${letters(`account ${at}`, 16)}`,
      `account-${at}`,
      at % 100 === 99 ? 'suspended' : 'active',
      at + 1,
      startMs + at,
    ]
}

function* keysOf(keys: number): Iterable<Value[]> {
  for (let at = 0; at < keys; at++) {
    const owner = at % 10 === 5 ? 0 : Math.floor(at / ofAccount)
    const id = `key_${letters(`key ${at}`, 16)}`
    yield [
      ...[
        id,
        `acct_${letters(`account ${owner}`, 16)}`,
        `digest ${at}`,
        prefixOf(at),
        `Team ${at % 1_000}`,
        startMs + at * 1_000,
      ],
      at % 10 === 3 ? startMs + at * 1_000 + 1 : null,
      at % 20 === 1 ? startMs + at * 1_000 + 2 : null,
      id,
    ]
  }
}

/** Adds keys and their accounts to an existing store. */
export function fillFile(path: string, keys: number): void {
  const db = new DatabaseSync(path)
  db.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -1000000; BEGIN')
  // Indexes are made again afterwards, which is much faster.
  const indexes = db
    .prepare("SELECT name, sql FROM sqlite_schema WHERE tbl_name = 'keys' AND sql LIKE 'CREATE INDEX%'")
    .all()
  for (const { name } of indexes) db.exec(`DROP INDEX ${name}`)
  const put = (table: string, columns: readonly string[], rows: Iterable<Value[]>) => {
    const insert = db.prepare(
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    )
    for (const row of rows) insert.run(...row)
  }
  put('accounts', accountColumns, accountsOf(keys))
  put('keys', keyColumns, keysOf(keys))
  for (const { sql } of indexes) db.exec(sql as string)
  db.exec('COMMIT')
  db.close()
}

/** Does the same in PostgreSQL, and lets it count what is there, as its autovacuum does. */
export async function fillDatabase(url: string, keys: number): Promise<void> {
  const database = openDatabase({ url, max: 1, patienceMs: 600_000, statementMs: 600_000, purpose: 'trial' })
  const put = async (table: string, columns: readonly string[], rows: Iterable<Value[]>) => {
    const flush = async (some: Value[][]) => {
      const values = columns.map((column, at) => {
        const cast = column.endsWith('_ms') || column === 'revision' ? 'bigint' : 'text'
        return { cast, list: some.map((row) => row[at]!) }
      })
      const parts = values.map(({ cast }, at) => `$${at + 1}::${cast}[]`)
      await database.query(
        `INSERT INTO triwire.${table} (${columns.join(', ')}) SELECT * FROM unnest(${parts.join(', ')})`,
        values.map(({ list }) => list),
      )
    }
    let waiting: Value[][] = []
    for (const row of rows) {
      waiting.push(row)
      if (waiting.length === 20_000) await flush(waiting.splice(0))
    }
    await flush(waiting)
    waiting = []
  }
  await put('accounts', accountColumns, accountsOf(keys))
  await database.query('INSERT INTO triwire.balances (account_id) SELECT id FROM triwire.accounts')
  // Indexes are made again afterwards, which is much faster.
  const indexes = await database.query(
    `SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'triwire' AND tablename = 'keys' AND indexdef NOT LIKE '%UNIQUE%'`,
  )
  for (const { indexname } of indexes) await database.query(`DROP INDEX triwire.${indexname}`)
  await put('keys', keyColumns, keysOf(keys))
  for (const { indexdef } of indexes) await database.query(indexdef as string)
  await database.query('VACUUM ANALYZE')
  await database.close()
}
