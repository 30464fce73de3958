import assert from 'node:assert/strict'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { StoreError } from '../../src/store/files/store-error.ts'
import { migrate, openDatabase, readTogether } from '../../src/store/sqlite/open.ts'
import { migrations } from '../../src/store/sqlite/schema.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { createPath } from './fixtures.ts'

test('F-S7 a missing store is created, readable by its owner only, and durable on every opening', (t) => {
  const path = createPath(t)
  for (let i = 0; i < 2; i++) {
    const db = openDatabase(path)
    assert.equal(db.prepare('PRAGMA journal_mode').get()!.journal_mode, 'wal')
    assert.equal(db.prepare('PRAGMA synchronous').get()!.synchronous, 2n)
    assert.equal(db.prepare('PRAGMA foreign_keys').get()!.foreign_keys, 1n)
    for (const file of [path, `${path}-wal`, `${path}-shm`]) assert.equal(statSync(file).mode & 0o777, 0o600, file)
    db.close()
  }
})

test('a store opened only for reading is not created at a wrong path', (t) => {
  assert.throws(
    () => openDatabase(createPath(t), { create: false }),
    /There is no store at .*: name the right one with --store/,
  )
})

test('SCA-5 a connection keeps 2 MB of a file in memory, and as much as its opener says', (t) => {
  const path = createPath(t)
  for (const [options, kb] of [
    [{}, 2_000n],
    [{ cacheKb: 16_000 }, 16_000n],
  ] as const) {
    const db = openDatabase(path, options)
    assert.equal(db.prepare('PRAGMA cache_size').get()!.cache_size, -kb)
    db.close()
  }
})

test('C9 creating a store takes no lock: no server of an older triwire runs on it', (t) => {
  const path = createPath(t)
  const lock = () => assert.fail('it was asked for')
  for (let i = 0; i < 2; i++) openDatabase(path, { lock }).close()
})

test('a store that others can read is refused, with the command that fixes it', (t) => {
  const path = createPath(t)
  openDatabase(path).close()
  chmodSync(path, 0o640)
  assert.throws(() => openDatabase(path), new RegExp(`mode 0640\\): run chmod 600 ${path}$`))
})

test('F-S7 an older schema is migrated in one transaction, or not at all', (t) => {
  const db = new DatabaseSync(createPath(t), { readBigInts: true })
  t.after(() => db.close())
  const first = ['accounts', 'entries', 'keys']
  const steps = [first.map((name) => `CREATE TABLE ${name} (x)`).join(';'), 'CREATE TABLE m (x)', 'CREATE TABLE n (x)']
  migrate(db, 'store', steps.slice(0, 1))
  assert.throws(() => migrate(db, 'store', [...steps.slice(0, 2), 'nonsense']))
  assert.deepEqual(readTables(db), [1n, ...first])
  migrate(db, 'store', steps)
  migrate(db, 'store', steps)
  assert.deepEqual(readTables(db), [3n, ...first, 'm', 'n'])
})

test('F-S7 a newer schema is refused', (t) => {
  const path = createPath(t)
  const db = openDatabase(path)
  db.exec('PRAGMA user_version = 99')
  db.close()
  assert.throws(
    () => openDatabase(path),
    new RegExp(`schema version 99 and this triwire knows ${migrations.length}: run the newer triwire`),
  )
})

test('F-S6 a file that is not a store, or not ours, is refused with a clear message', (t) => {
  const path = createPath(t)
  writeFileSync(path, 'not a database '.repeat(100), { mode: 0o600 })
  assert.throws(
    () => openStore(path),
    (error) => error instanceof StoreError && /is not a triwire store/.test(error.message),
  )
  for (const version of [0, 1, migrations.length, 78]) {
    const other = createPath(t)
    const db = new DatabaseSync(other)
    db.exec(`CREATE TABLE accounts (theirs); PRAGMA user_version = ${version}`)
    db.close()
    chmodSync(other, 0o600)
    const bytes = readFileSync(other)
    assert.throws(() => openStore(other), /is not a triwire store: name another file/)
    assert.deepEqual(readFileSync(other), bytes)
  }
})

function readTables(db: DatabaseSync): unknown[] {
  const names = db.prepare('SELECT name FROM sqlite_master ORDER BY name').all()
  return [db.prepare('PRAGMA user_version').get()!.user_version, ...names.map(({ name }) => name)]
}

test('an error that ends a read is reported, even if the database has already ended its transaction', () => {
  const db = new DatabaseSync(':memory:')
  const reading = () =>
    readTogether(db, () => {
      db.exec('ROLLBACK')
      throw new Error('disk I/O error')
    })
  assert.throws(reading, /disk I\/O error/)
  assert.equal(
    readTogether(db, () => 7),
    7,
  )
  db.close()
})
