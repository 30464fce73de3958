import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createBooks } from '../../src/accounts/books.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { runsUpTo } from '../support/runs.ts'
import { createDebitRow, createPath } from './fixtures.ts'

test('a change by another connection is read once, whole accounts at a time', async (t) => {
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

test('C15 balances after a post are those of the store, whatever others have booked in between', async (t) => {
  const path = createPath(t)
  const [server, other] = [openStore(path), openStore(path)]
  t.after(() => server.close())
  t.after(() => other.close())
  const [own, operator] = [createBooks(server, Date.now), createBooks(other, Date.now)]
  const nobody = 'acct_nobody'
  const ids = [nobody]
  for (const name of ['one', 'two', 'three']) ids.push((await operator.createAccount(name)).id)
  let number = 0
  const acts: Record<string, (id: string) => unknown> = {
    'the server posts': (id) => server.postDebits([createDebitRow(`req_${number}`, id)]),
    'the server posts once more': (id) => server.postDebits([createDebitRow('req_1', id)]),
    'the server gives back': () => server.giveBack(['req_1']),
    'another posts': (id) => other.postDebits([createDebitRow(`req_${number}`, id)]),
    'the operator tops up': (id) => operator.credit(id, 7n, `r${number}`),
    'the server’s operator tops up': (id) => own.credit(id, 5n, `r${number}`),
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.constantFrom(...Object.keys(acts)), fc.constantFrom(...ids)), { maxLength: 12 }),
      async (steps) => {
        for (const [act, id] of [...steps, ['the server posts', ids[1]!] as const]) {
          number++
          if (id === nobody && !act.includes('posts')) continue
          await acts[act]!(id)
          if (act.startsWith('the server posts')) assert.deepEqual(server.balancesBehind(ids), server.readBalances(ids))
        }
      },
    ),
    { numRuns: runsUpTo(100) },
  )
})

test('the last use of a key is recorded, and never moves back', async (t) => {
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
