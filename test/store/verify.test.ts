import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { parseHead } from '../../src/accounts/chain.ts'
import { openStore } from '../support/operator.ts'
import { createDebitRow, createPath, verifyOptions } from './fixtures.ts'
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
  forge(path, (db) => db.exec("UPDATE entries SET digest = '2' || substr(digest, 2)"))
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
