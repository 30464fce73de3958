import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { Queue } from '../../src/store/sqlite/queue.ts'
import type { Store } from '../../src/store/sqlite/store.ts'
import { openStore } from '../support/operator.ts'
import { createFirstRelease } from './first-release.ts'
import { costNanos, createDebitRow, createPath, verifyOptions } from './fixtures.ts'

test('C15 INSERT OR REPLACE changes no entry: a booked request id is left unchanged, everything else is refused', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  store.postDebits([createDebitRow('req_1', id)])
  const before = [...store.eachEntry()]
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  const replace = (column: string, value: string, where: string) => {
    const names = db
      .prepare("SELECT name FROM pragma_table_info('entries')")
      .all()
      .map(({ name }) => name as string)
    const values = names.map((name) => (name === column ? value : name))
    db.exec(`INSERT OR REPLACE INTO entries (${names}) SELECT ${values} FROM entries WHERE ${where}`)
  }
  replace('amount', '0', 'seq = 2')
  assert.throws(() => replace('amount', '0', 'seq = 1'), /ledger entries are never replaced/)
  for (const column of ['id', 'account_id', 'reference']) {
    // All of its places but one are free: that one is enough.
    const taken = { id: 'id = 1', account_id: 'account_id, seq', reference: 'reference' }[column]!
    const [free, digest] = ["'r2'", "'forged'"]
    const row: Record<string, string> = { id: '9', account_id: `'${id}'`, seq: '9', reference: free, digest }
    if (column === 'id') row.id = '1'
    if (column === 'account_id') row.seq = '1'
    if (column === 'reference') row.reference = `'create:${id}'`
    assert.throws(
      () =>
        db.exec(`INSERT OR REPLACE INTO entries (${Object.keys(row)}, kind, amount, balance_after, created_ms, posted_ms)
          VALUES (${Object.values(row)}, 'credit', 9, 9, 0, 0)`),
      /ledger entries are never replaced/,
      taken,
    )
  }
  db.exec("INSERT OR REPLACE INTO prices VALUES ('v1', 0, 0, 0, 0, 0, NULL)")
  assert.equal(db.prepare('SELECT output FROM prices').get()!.output, 15_000_000_000)
  assert.deepEqual([...store.eachEntry()], before)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C13 C8 a first-release top-up with the reference of a return blocks no return: it takes the next reference', (t) => {
  const path = createPath(t)
  createFirstRelease(path, { acct_a: 'one', acct_b: 'two' }, [
    { accountId: 'acct_a', creditNanos: 1_000_000n, reference: 'create:acct_a' },
    { accountId: 'acct_b', creditNanos: costNanos, reference: 'return:req_1' },
    { accountId: 'acct_b', creditNanos: 1n, reference: 'return:req_1/2' },
    { accountId: 'acct_a', requestId: 'req_1' },
  ])
  const store = openStore(path)
  t.after(() => store.close())
  assert.deepEqual(store.postReturns(['req_1', 'req_1']), ['posted', 'exists'])
  const [entry] = store.listEntries({ limit: 1 })
  assert.deepEqual(
    [entry!.accountId, entry!.reference, entry!.returned?.requestId, entry!.amountNanos],
    ['acct_a', 'return:req_1/3', 'req_1', costNanos],
  )
  assert.equal(store.findAccount('one').balanceNanos, 1_000_000n)
  assert.equal(store.findAccount('two').balanceNanos, costNanos + 1n)
  const [total] = store.sumEntries({}, [])
  assert.deepEqual([total!.requests, total!.billedNanos, total!.creditedNanos], [0, 0n, 1_000_001n + costNanos])
  const refused = { requestId: 'req_1', outcome: 'internal_error' }
  assert.deepEqual(store.verify({ ...verifyOptions, log: [refused] }), [])
})

test('U5 no key is in the file', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  store.createAccount('one')
  const { key } = store.createKey('one')
  store.close()
  assert.equal(readFileSync(path).includes(key.slice(15)), false)
})

test('verify finds a request id that is booked twice', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  store.postDebits([createDebitRow('req_1', id)])
  const db = new DatabaseSync(path)
  const sql = db.prepare("SELECT sql FROM sqlite_master WHERE name = 'entries'").get()!.sql as string
  db.exec(`PRAGMA foreign_keys = OFF; ${sql.replace('TABLE entries', 'TABLE copy').replaceAll(' UNIQUE,', ',')};
    INSERT INTO copy SELECT * FROM entries; UPDATE copy SET id = 9, seq = 2, balance_after = -1260000;
    INSERT INTO copy SELECT * FROM entries; DROP TABLE entries; ALTER TABLE copy RENAME TO entries;
    UPDATE accounts SET seq = 2, balance = -1260000`)
  db.close()
  assert.deepEqual(store.verify(verifyOptions), [
    'request_id req_1: is booked more than once',
    'the file: table entries is not as triwire made it',
    'the file: trigger entries_are_not_changed is missing',
    'the file: trigger entries_are_not_deleted is missing',
    'the file: trigger entries_are_not_replaced is missing',
    `account ${id}, entry 2: is not what its digest was made of`,
  ])
})

test('C15 F-S3 a connection does not remember what was rolled back', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one', 1_000_000_000n)
  assert.deepEqual(store.postDebits([createDebitRow('req_1', id)]), ['posted'])
  const broken = createDebitRow('req_3', id)
  // Not the debit's own trouble but a bug: the whole batch goes back.
  Object.defineProperty(broken, 'usage', {
    get() {
      throw new Error('a bug')
    },
  })
  assert.throws(() => store.postDebits([createDebitRow('req_2', id), broken]), /a bug/)
  assert.deepEqual(store.postDebits([createDebitRow('req_2', id)]), ['posted'])
  assert.deepEqual(store.verify(verifyOptions), [])
  store.close()
})

test('C15 verify finds a trigger that is not ours; indexes and views are left to the operator', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  db.exec('CREATE INDEX theirs ON entries (outcome); CREATE VIEW report AS SELECT * FROM entries')
  assert.deepEqual(store.verify(verifyOptions), [])
  db.exec('CREATE TRIGGER gift AFTER INSERT ON entries BEGIN UPDATE accounts SET balance = balance + 1; END')
  assert.deepEqual(store.verify(verifyOptions), ["the file: trigger gift is not triwire's"])
})

test('B7 C13 returning debits writes to the disk, even if there is nothing to return', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  store.postDebits([createDebitRow('req_1', store.createAccount('one').id)])
  for (const asked of [['req_9'], ['req_9'], ['req_1'], ['req_1']]) {
    const before = store.countFrames()
    store.giveBack(asked)
    assert.ok(store.countFrames() > before, 'its commit has something to sync')
  }
})

test('C13 the outcome of each return is reported: made, already made, or without a debit', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  store.postDebits([createDebitRow('req_1', store.createAccount('one').id)])
  assert.deepEqual(store.postReturns(['req_1', 'req_1', 'req_9']), ['posted', 'exists', 'absent'])
  assert.deepEqual(store.postReturns(['req_1']), ['exists'])
})

test('B7 C13 a debit of a detached month is returned by a server too, and its account is no longer blocked', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  const db = new DatabaseSync(path)
  t.after(() => db.close())
  db.exec(`INSERT INTO archived VALUES ('req_away', 'debit', '2026-01', '${id}', 1, 7)`)
  const queue = new Queue({
    ...{ later: (run) => setImmediate(run), refuseNarrowDisk() {}, mayDate: () => true },
    connection: {
      write(work) {
        work(store as unknown as Store)
        return 'done'
      },
    },
  })
  assert.deepEqual(await queue.giveBack(['req_away', 'req_unknown']), {
    returned: ['req_away'],
    ...{ balances: [[id, 12n]], spends: [] },
  })
})
