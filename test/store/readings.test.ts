import assert from 'node:assert/strict'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { createPath } from './fixtures.ts'

test('what another connection changed is read once, whole accounts at a time', async (t) => {
  const path = createPath(t)
  const [server, other] = [openStore(path), openStore(path)]
  t.after(() => server.close())
  t.after(() => other.close())
  const operator = createBooks(other, Date.now)
  await operator.createAccount('one')
  await operator.createAccount('two')
  const { revision } = server.readChanges(-1n)
  const version = server.readDataVersion()
  assert.equal(server.readDataVersion(), version)
  const { id } = await operator.createKey('two')
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

test('when a key was last used is noted, and never goes back', async (t) => {
  const store = openStore(createPath(t))
  t.after(() => store.close())
  const books = createBooks(store, Date.now)
  await books.createAccount('one')
  const { id } = await books.createKey('one')
  for (const [usedMs, noted] of [
    [1_200, 1_200],
    [1_100, 1_200],
  ]) {
    store.touchKeys([[id, usedMs!]])
    assert.equal((await books.listKeys('one'))[0]?.lastUsedMs, noted)
  }
})
