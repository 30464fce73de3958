import assert from 'node:assert/strict'
import test from 'node:test'
import { digestKey } from '../../src/accounts/keys.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { createPath, verifyOptions } from './fixtures.ts'

test('C8 account create with credit books it with the reference create:<id>', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id, balanceNanos, state } = store.createAccount('one', 5n)
  assert.deepEqual([balanceNanos, state], [5n, 'active'])
  const [entry] = store.listEntries({ limit: 10 })
  assert.deepEqual([entry?.kind, entry?.amountNanos, entry?.reference], ['credit', 5n, `create:${id}`])
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('names of accounts are unique, and an account is found by id or name', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  assert.throws(() => store.createAccount('one'), /already an account named "one"/)
  assert.equal(store.findAccount('one').id, id)
  assert.equal(store.findAccount(id).name, 'one')
  assert.throws(() => store.findAccount('two'), /no account "two": see triwire account list/)
  assert.equal(store.setAccountState('one', 'suspended').state, 'suspended')
  assert.equal(store.listAccounts().length, 1)
})

test('C8 the same reference with the same account and amount is one credit, with others an error', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  store.createAccount('one')
  store.createAccount('two')
  assert.equal(store.credit('one', 7n, 'invoice 1'), 'posted')
  assert.equal(store.credit('one', 7n, 'invoice 1'), 'exists')
  assert.throws(() => store.credit('one', 8n, 'invoice 1'), /used for another account or amount/)
  assert.throws(() => store.credit('two', 7n, 'invoice 1'), /used for another account or amount/)
  assert.equal(store.credit('one', -2n, 'correction of invoice 1'), 'posted')
  assert.equal(store.findAccount('one').balanceNanos, 5n)
  assert.throws(() => store.credit('one', 1n, ' '), /needs a reference/)
})

test('C1 balances are exact 64-bit integers, and none overflows', (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  store.createAccount('one', 2n ** 63n - 2n)
  store.credit('one', 1n, 'a')
  assert.equal(store.findAccount('one').balanceNanos, 9_223_372_036_854_775_807n)
  assert.throws(() => store.credit('one', 1n, 'b'), /cannot hold so much/)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('keys are kept as digests; revoking is for good; a rotated key has its grace', (t) => {
  const store = openStore(createPath(t), { nowMs: () => 1_000 })
  t.after(() => store.close())
  store.createAccount('one')
  const old = store.createKey('one')
  const fresh = store.rotateKey(old.prefix, 500)
  assert.equal(store.listKeys('one').find(({ id }) => id === old.id)?.expiresMs, 1_500)
  store.rotateKey(old.id, 9_000)
  assert.equal(store.listKeys().find(({ id }) => id === old.id)?.expiresMs, 1_500)
  assert.equal(store.revokeKey(fresh.id).revokedMs, 1_000)
  assert.equal(store.revokeKey(fresh.id).revokedMs, 1_000)
  assert.throws(() => store.rotateKey(fresh.id, 0), /is revoked/)
  assert.throws(() => store.revokeKey('key_x'), /no key "key_x"/)
  const { keys } = store.readChanges(-1n)
  assert.equal(keys.length, 2)
  assert.equal(keys.find(({ id }) => id === old.id)?.digest, digestKey(old.key))
  store.touchKeys([[old.id, 1_200]])
  assert.equal(store.listKeys('one').find(({ id }) => id === old.id)?.lastUsedMs, 1_200)
})

test('what another connection changed is read once, whole accounts at a time', (t) => {
  const path = createPath(t)
  const [server, operator] = [openStore(path), openStore(path)]
  t.after(() => server.close())
  t.after(() => operator.close())
  operator.createAccount('one')
  operator.createAccount('two')
  const { revision } = server.readChanges(-1n)
  const version = server.readDataVersion()
  assert.equal(server.readDataVersion(), version)
  const { id } = operator.createKey('two')
  assert.notEqual(server.readDataVersion(), version)
  const changes = server.readChanges(revision)
  assert.deepEqual(
    changes.accounts.map(({ name }) => name),
    ['two'],
  )
  assert.deepEqual(
    changes.keys.map((key) => key.id),
    [id],
  )
  assert.deepEqual(server.readChanges(changes.revision).accounts, [])
})
