import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { type RegisterName, registerColumns, registers } from '../../src/accounts/registers.ts'
import { openPostgresBooks } from '../../src/store/postgres/books.ts'
import { openDatabase } from '../../src/store/postgres/database.ts'
import { migrations, secondRelease } from '../../src/store/sqlite/schema.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { atEnd } from '../support/at-end.ts'
import { startPostgres, withoutPostgres } from '../support/postgres.ts'
import { createPath } from './fixtures.ts'

/** Columns of a schema that are the engine's own: where a chain ends, and the numbers of changes. */
const own: Partial<Record<RegisterName, readonly string[]>> = { accounts: ['balance', 'seq', 'revision'] }

const names = Object.keys(registers) as RegisterName[]

/** Each column as `name kind`, with `?` if it may be empty. */
function expected(name: RegisterName): string[] {
  return Object.entries(registerColumns(name))
    .map(([column, { kind, isOptional }]) => `${column} ${kind}${isOptional ? '?' : ''}`)
    .sort()
}

test('STR-9 each register column in SQLite is in the table of columns, with its kind, and vice versa', () => {
  const path = createPath()
  openStore(path).close()
  const db = new DatabaseSync(path)
  atEnd(() => db.close())
  for (const name of names) {
    const found = db
      .prepare('SELECT name, type, "notnull" AS is_needed, pk FROM pragma_table_info(?)')
      .all(name)
      .filter((row) => !own[name]?.includes(row['name'] as string))
      .map(({ name, type, is_needed, pk }) => `${name} ${String(type).toLowerCase()}${is_needed || pk ? '' : '?'}`)
    assert.deepEqual(found.sort(), expected(name), name)
  }
})

test('STR-9 each register column in PostgreSQL is in the table of columns, with its kind, and vice versa', {
  skip: withoutPostgres(),
}, async () => {
  const postgres = await startPostgres()
  const url = postgres.createDatabase('registers')
  await (await openPostgresBooks(url, { shown: url })).close()
  const database = openDatabase({ url, max: 1, patienceMs: 5_000, purpose: 'test' })
  atEnd(() => database.close())
  for (const name of names) {
    const rows = await database.query(
      `SELECT column_name AS name, CASE WHEN data_type = 'text' THEN 'text' ELSE 'integer' END AS kind, is_nullable
       FROM information_schema.columns WHERE table_schema = 'triwire' AND table_name = $1`,
      [name],
    )
    const found = rows
      .filter((row) => !own[name]?.includes(row['name'] as string))
      .map(({ name, kind, is_nullable }) => `${name} ${kind}${is_nullable === 'YES' ? '?' : ''}`)
    assert.deepEqual(found.sort(), expected(name), name)
  }
})

/** Columns that the second release may ignore. Another count covers them, or they are only shown. */
const ignorable = {
  accounts: ['budget_per', 'external_id', 'grant_lapses', 'last_grant', 'metadata'],
  keys: ['external_id', 'metadata', 'person', 'session'],
} as const

for (const [name, listed] of Object.entries(ignorable))
  test(`STR-9 the check for an older release counts each column of ${name} that the second release would ignore`, () => {
    const db = new DatabaseSync(':memory:')
    atEnd(() => db.close())
    for (const step of migrations.slice(0, secondRelease)) typeof step === 'string' ? db.exec(step) : step(db)
    const old = db.prepare('SELECT * FROM pragma_table_info(?)').all(name)
    const fresh = Object.keys(registerColumns(name as RegisterName)).filter(
      (column) => !old.some((row) => row['name'] === column),
    )
    const counted = readFileSync('src/store/sql/newer.ts', 'utf8')
    const forgotten = fresh.filter((column) => !new RegExp(`\\b${column} IS NOT NULL`).test(counted))
    assert.deepEqual(forgotten.sort(), listed)
  })
