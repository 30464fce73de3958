import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { parseHead } from '../../src/accounts/chain.ts'
import { openStore } from '../support/operator.ts'
import { costNanos, createDebitRow, createPath, prices, verifyOptions } from './fixtures.ts'
import { forge, redigest } from './forge.ts'

test('C15 the moments of heads do not go back with the clock, so that what is posted in between is behind the first', (t) => {
  let now = 5_000
  const store = openStore(createPath(t), { nowMs: () => now })
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  now = 9_000
  const first = parseHead(store.audit(verifyOptions).head!)
  now = 1_000
  const second = parseHead(store.audit(verifyOptions).head!)
  assert.deepEqual(second, first)
  store.postDebits([createDebitRow('req_1', id)])
  assert.deepEqual(store.verify({ ...verifyOptions, against: first }), [])
})

test('C15 verify finds an entry that was posted before the one before it, whatever its digest says', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  store.postDebits([createDebitRow('req_1', id)])
  forge(path, (db) => {
    db.exec('UPDATE entries SET posted_ms = 1 WHERE seq = 2')
    redigest(db)
  })
  assert.deepEqual(store.verify(verifyOptions), [`account ${id}, entry 2: was posted before the entry before it`])
})

test('C15 verify does not pass a digest of a form it does not know', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  forge(path, (db) => db.exec("UPDATE entries SET digest = '3' || substr(digest, 2)"))
  assert.deepEqual(store.verify(verifyOptions), [
    `account ${id}, entry 1: has a digest of a form that is not known here`,
  ])
})

test('C15 verify finds a trigger that is not ours; an index or a view is the operator’s own business', (t) => {
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

test('C15 the moment of the last head that is missing, or still far to come, is a finding, and no head is made', (t) => {
  let now = 1_000
  const path = createPath(t)
  const store = openStore(path, { nowMs: () => now })
  t.after(() => store.close())
  store.createAccount('one', 5n)
  const missing =
    'the file: the moment of its last head is missing: what is posted may fall among what that head covered'
  const ahead = (moment: string) =>
    `the file: its last head was taken at ${moment}, and that is more than a day to come`
  const cases: [sql: string, finding: string][] = [
    ['DELETE FROM head', missing],
    ['UPDATE head SET moment_ms = 86401001', ahead('1970-01-02T00:00:01.001Z')],
    ['UPDATE head SET moment_ms = 9223372036854775807', ahead('9223372036854775807 ms')],
  ]
  for (const [sql, finding] of cases) {
    forge(path, (db) => db.exec(sql))
    assert.deepEqual(store.verify(verifyOptions), [finding], sql)
    assert.deepEqual(store.audit(verifyOptions), { findings: [finding], head: undefined }, sql)
    forge(path, (db) => db.exec('UPDATE head SET moment_ms = 1000'))
  }
  // A clock that was ahead by hours when the head was taken is no forgery.
  forge(path, (db) => db.exec('UPDATE head SET moment_ms = 86401000'))
  assert.deepEqual(store.verify(verifyOptions), [])
  now = 2_000
  assert.match(store.audit(verifyOptions).head!, /^1\/1970-01-02T00:00:01\.000Z\//)
})

test('C15 what an audit finds missing it writes down anew, so that it is told once', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one', 5n)
  forge(path, (db) => db.exec('DELETE FROM head'))
  assert.equal(store.audit(verifyOptions).findings.length, 1)
  assert.deepEqual(store.audit(verifyOptions).findings, [])
})

test('C15 a debit is not posted before the one before it, though the clock goes back between two of one connection', (t) => {
  let now = 5_000
  const store = openStore(createPath(t), { nowMs: () => now })
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  for (const [at, requestId] of [
    [9_000, 'req_1'],
    [1_000, 'req_2'],
  ] as const) {
    now = at
    store.postDebits([createDebitRow(requestId, id)])
  }
  assert.equal(store.findEntry('req_2')?.postedMs, 9_000)
  now = 9_000
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('C15 verify tells a key that does not exist from one of another account', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const [one, other] = [store.createAccount('one', 5n), store.createAccount('other', 5n)]
  const key = store.createKey('other')
  store.postDebits([createDebitRow('req_1', one.id), createDebitRow('req_2', one.id)])
  forge(path, (db) => {
    db.prepare("UPDATE entries SET key_id = ? WHERE request_id = 'req_1'").run(key.id)
    db.prepare("UPDATE entries SET key_id = 'key_gone' WHERE request_id = 'req_2'").run()
    redigest(db)
  })
  assert.deepEqual(store.verify(verifyOptions), [
    `account ${one.id}, entry 2: its key ${key.id} belongs to account ${other.id}`,
    `account ${one.id}, entry 3: its key key_gone does not exist`,
  ])
})

test('C9 verify with the log says none for what an entry does not have and its line has', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  store.postDebits([createDebitRow('req_1', id)])
  const log = [{ requestId: 'req_1', outcome: 'ok', amountNanos: costNanos, keyId: 'key_1' }]
  assert.deepEqual(store.verify({ ...verifyOptions, log }), ['request req_1: the log says key key_1, the ledger none'])
})

test('C11 verify does the sum of steps and calls again, and finds a call that was taken away or made up', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one', 5n)
  const steps = [{ ...prices, above: 100, outputNanos: 30_000_000_000n }]
  const stepped = { ...prices, steps, calls: { web_search: 10_000_000n } }
  const calls = { web_search: 2 }
  const debit = { ...createDebitRow('req_1', id), prices: stepped, priceVersion: 'v2', calls, pricedCalls: 2 }
  // 116 tokens of input are above the step: 20 of output cost twice as much.
  const amountNanos = costNanos + 300_000n + 20_000_000n
  assert.deepEqual(store.postDebits([{ ...debit, amountNanos }, createDebitRow('req_2', id)]), ['posted', 'posted'])
  assert.deepEqual(
    store.postDebits([
      { ...debit, amountNanos },
      { ...debit, amountNanos, calls: { x: 2 } },
    ]),
    ['exists', 'conflict'],
  )
  assert.deepEqual(store.verify(verifyOptions), [])
  assert.deepEqual(store.findDebit('req_1')!.prices, stepped)
  assert.deepEqual(store.findEntry('req_1')!.bill!.calls, calls)
  assert.match(store.findEntry('req_1')!.digest, /^2:/)
  assert.match(store.findEntry('req_2')!.digest, /^1:/)
  const entry = `account ${id}, entry 2`
  forge(path, (db) => db.exec("UPDATE entries SET calls = 'web_search:1' WHERE seq = 2"))
  assert.deepEqual(store.verify(verifyOptions), [
    `${entry}: is not what its digest was made of`,
    `request req_1: billed ${amountNanos}, its tokens and calls cost ${amountNanos - 10_000_000n}`,
    'request req_1: priced calls 2, of all kinds 1',
  ])
  forge(path, (db) => db.exec('UPDATE entries SET calls = NULL WHERE seq = 2'))
  assert.ok(store.verify(verifyOptions).includes(`${entry}: is not what its digest was made of`))
})
