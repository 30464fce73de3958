import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { type AccountRow, newAccount } from '../../src/accounts/book-rows.ts'
import { type Changes, createFeed } from '../../src/store/sqlite/accounts.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { createPath } from './fixtures.ts'

/** A connection to a store in which another one writes exactly when the test says. */
function createSource() {
  const rows: AccountRow[] = []
  let dataVersion = 1n
  const calls: string[] = []
  let writeBehind = { call: 0, name: '' }
  const after = <T>(call: string, result: T): T => {
    calls.push(call)
    if (calls.length === writeBehind.call) source.write(writeBehind.name)
    return result
  }
  const source = {
    calls,
    write(name: string) {
      dataVersion++
      rows.push(newAccount(name, name, rows.length))
    },
    writeBehindCall(call: number, name: string) {
      writeBehind = { call, name }
    },
    readDataVersion: () => after('version', dataVersion),
    readChanges: (revision: bigint) =>
      after('changes', {
        revision: BigInt(rows.length),
        accounts: rows.slice(Number(revision < 0n ? 0n : revision)),
        keys: [],
        ...{ isLast: true, hasForeignKeys: false },
      }),
  }
  return source
}

function namesOf(pages: Iterable<Changes>): string[] {
  return [...pages].flatMap(({ accounts }) => accounts.map(({ name }) => name))
}

test('F-C45 a change between any two reads of a poll is not missed by the next poll', () => {
  for (const call of [1, 2, 3]) {
    const source = createSource()
    const feed = createFeed()
    source.write('one')
    source.writeBehindCall(call, 'two')
    const seen = [feed.read(source), feed.read(source), feed.read(source)].flatMap(namesOf)
    assert.deepEqual(seen, ['one', 'two'], `behind call ${call}`)
    assert.deepEqual([...feed.read(source)], [])
  }
})

test('F-C45 a poll of a store without new writes reads its version and nothing else', () => {
  const source = createSource()
  const feed = createFeed()
  namesOf(feed.read(source))
  source.calls.length = 0
  namesOf(feed.read(source))
  assert.deepEqual(source.calls, ['version'])
})

test('F-S3 F-C45 a reopened connection is read whatever its version, since each connection counts for itself', () => {
  const source = createSource()
  const feed = createFeed()
  namesOf(feed.read(source))
  source.write('one')
  const reopened = { ...source, readDataVersion: () => 1n }
  assert.deepEqual(namesOf(feed.read(reopened)), ['one'])
  assert.deepEqual([...feed.read(reopened)], [])
})

test('SCA-5 a server reads a large store page by page, each account once with its keys, and then only changes', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  db.exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 12000)
    INSERT INTO accounts (id, name, state, revision, created_ms)
      SELECT printf('acct_%d', i), printf('name %d', i), 'active', i, 1 FROM n;
    INSERT INTO keys (id, account_id, digest, prefix, created_ms)
      SELECT 'key_' || id, id, 'digest ' || id, 'pre', 1 FROM accounts`)
  const feed = createFeed()
  const pages = [...feed.read(store)]
  assert.deepEqual(
    pages.map(({ accounts, keys }) => [accounts.length, keys.length]),
    [
      [5_000, 5_000],
      [5_000, 5_000],
      [2_000, 2_000],
    ],
  )
  for (const { accounts, keys } of pages)
    assert.deepEqual(new Set(keys.map(({ accountId }) => accountId)), new Set(accounts.map(({ id }) => id)))
  assert.equal(new Set(namesOf(pages)).size, 12_000)
  db.exec(`UPDATE accounts SET state = 'suspended', revision = 12001 WHERE id = 'acct_7'`)
  assert.deepEqual(namesOf(feed.read(store)), ['name 7'])
})

test('Y20 a server reads no keys of sign-ins that ended more than a day ago', (t) => {
  const path = createPath(t)
  const [nowMs, hourMs] = [1_800_000_000_000, 3_600_000]
  const store = openStore(path, { nowMs: () => nowMs })
  t.after(() => store.close())
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  db.exec(`INSERT INTO accounts (id, name, state, revision, created_ms) VALUES ('acct_1', 'one', 'active', 1, 1)`)
  const insert = db.prepare(
    `INSERT INTO keys (id, account_id, digest, prefix, created_ms, session, expires_ms)
       VALUES (?1, 'acct_1', ?1, 'pre', 1, ?2, ?3)`,
  )
  insert.run('lasting', null, null)
  insert.run('expired', null, nowMs - 1_000 * hourMs)
  insert.run('valid', 'ses_1', nowMs + hourMs)
  insert.run('ended', 'ses_2', nowMs - 23 * hourMs)
  insert.run('long ended', 'ses_3', nowMs - 25 * hourMs)
  // An operator removed the expiry of this key.
  insert.run('endless', 'ses_4', null)
  const [page] = createFeed().read(store)
  assert.deepEqual(page?.keys.map(({ id }) => id).sort(), ['ended', 'endless', 'expired', 'lasting', 'valid'])
})

test('F-C45 a read that was interrupted continues with the page that was not read', () => {
  const source = createSource()
  const feed = createFeed()
  for (const name of ['one', 'two']) source.write(name)
  const broken = { ...source, readChanges: () => assert.fail('the file is locked') }
  assert.throws(() => namesOf(feed.read(broken)))
  assert.deepEqual(namesOf(feed.read(source)), ['one', 'two'])
})
