import assert from 'node:assert/strict'
import test from 'node:test'
import type { BookError, BookErrorCode } from '../../src/accounts/book-error.ts'
import { digestKey } from '../../src/accounts/keys.ts'
import { onEachStore } from './engines.ts'
import { verifyOptions } from './fixtures.ts'

function refuses(work: Promise<unknown>, code: BookErrorCode, subject: string): Promise<void> {
  return assert.rejects(work, (error: BookError) => {
    assert.deepEqual([error.code, error.subject], [code, subject])
    return true
  })
}

onEachStore((engine) => {
  test('C8 account create with credit books it with the reference create:<id>', async () => {
    const books = await engine.open()
    const { id, balanceNanos, state } = await books.createAccount('one', 5n)
    assert.deepEqual([balanceNanos, state], [5n, 'active'])
    assert.equal((await books.findAccount(id)).balanceNanos, 5n)
    const [entry] = await books.listEntries({ limit: 10 })
    assert.deepEqual([entry?.kind, entry?.amountNanos, entry?.reference], ['credit', 5n, `create:${id}`])
    assert.deepEqual(await books.verify(verifyOptions), [])
  })

  test('names of accounts are unique, and an account is found by id or name', async () => {
    const books = await engine.open()
    const { id } = await books.createAccount('one')
    await refuses(books.createAccount('one'), 'name_taken', 'one')
    assert.equal((await books.findAccount('one')).id, id)
    assert.equal((await books.findAccount(id)).name, 'one')
    await refuses(books.findAccount('two'), 'no_account', 'two')
    await refuses(books.listKeys('two'), 'no_account', 'two')
    assert.equal((await books.updateAccount('one', { state: 'suspended' })).state, 'suspended')
    assert.equal((await books.findAccount('one')).state, 'suspended')
    assert.equal((await books.listAccounts()).length, 1)
  })

  test('an account may not be named like an id, since it would be found instead of the account with that id', async () => {
    const books = await engine.open()
    const { id } = await books.createAccount('one')
    await refuses(books.createAccount(id), 'name_invalid', id)
    assert.equal((await books.findAccount(id)).name, 'one')
  })

  test('C8 a repeated reference with the same account and amount is one credit, with others an error', async () => {
    const books = await engine.open()
    await books.createAccount('one')
    await books.createAccount('two')
    assert.equal(await books.credit('one', 7n, 'invoice 1'), 'posted')
    assert.equal(await books.credit('one', 7n, 'invoice 1'), 'exists')
    await refuses(books.credit('one', 8n, 'invoice 1'), 'reference_conflict', 'invoice 1')
    await refuses(books.credit('two', 7n, 'invoice 1'), 'reference_conflict', 'invoice 1')
    assert.equal(await books.credit('one', -2n, 'correction of invoice 1'), 'posted')
    assert.equal((await books.findAccount('one')).balanceNanos, 5n)
    await refuses(books.credit('one', 1n, ' '), 'reference_missing', ' ')
  })

  test('C1 balances are exact 64-bit integers, and none overflows', async () => {
    const books = await engine.open()
    const { id } = await books.createAccount('one', 2n ** 63n - 2n)
    await books.credit('one', 1n, 'a')
    assert.equal((await books.findAccount('one')).balanceNanos, 9_223_372_036_854_775_807n)
    await refuses(books.credit('one', 1n, 'b'), 'overflow', id)
    assert.deepEqual(await books.verify(verifyOptions), [])
  })

  test('a change that a rule forbids leaves no trace', async () => {
    const books = await engine.open()
    await assert.rejects(books.createAccount('rich', 2n ** 63n))
    assert.deepEqual(await books.listAccounts(), [])
  })

  test('keys are kept as digests; revocation is permanent; a rotated key has its grace period', async () => {
    const books = await engine.open({ atMs: 1_000 })
    await books.createAccount('one')
    const old = await books.createKey('one')
    const fresh = await books.rotateKey(old.prefix, 500)
    const expiryOf = async (id: string) => (await books.listKeys('one')).find((key) => key.id === id)?.expiresMs
    assert.equal(await expiryOf(old.id), 1_500)
    await books.rotateKey(old.id, 9_000)
    assert.equal(await expiryOf(old.id), 1_500)
    await books.rotateKey(old.id, 100)
    assert.equal(await expiryOf(old.id), 1_100)
    assert.equal((await books.revokeKey(fresh.id)).revokedMs, 1_000)
    assert.equal((await books.revokeKey(fresh.id)).revokedMs, 1_000)
    await refuses(books.rotateKey(fresh.prefix, 0), 'key_revoked', fresh.id)
    await refuses(books.revokeKey('key_x'), 'no_key', 'key_x')
    const keys = await books.listKeys('one')
    assert.equal(keys.length, 4)
    assert.equal(keys.find(({ id }) => id === old.id)?.digest, digestKey(old.key))
  })

  test('F-C45 every change of an account or its keys makes servers read it again', async () => {
    const books = await engine.open()
    await books.createAccount('one')
    const { id } = await books.createKey('one')
    const changes: [name: string, change: () => Promise<unknown>][] = [
      ['suspended', () => books.updateAccount('one', { state: 'suspended' })],
      ['credited', () => books.credit('one', 5n, 'invoice')],
      ['a key more', () => books.createKey('one')],
      ['rotated', () => books.rotateKey(id, 1_000)],
      ['revoked', () => books.revokeKey(id)],
    ]
    for (const [name, change] of changes) {
      const { revision } = await books.readChanges(-1n)
      await change()
      assert.equal((await books.readChanges(revision)).accountIds.length, 1, name)
    }
    const { revision } = await books.readChanges(-1n)
    await books.credit('one', 5n, 'invoice')
    assert.equal((await books.readChanges(revision)).accountIds.length, 0, 'a credit that exists changes nothing')
  })

  test('C1 the total of all accounts may exceed 64 bits', async () => {
    const books = await engine.open()
    const most = 2n ** 63n - 1n
    for (const name of ['one', 'two']) await books.createAccount(name, most)
    await books.createAccount('three')
    await books.credit('three', -most, 'all that it has not')
    await books.credit('three', -1n, 'and one more')
    assert.deepEqual(
      (await books.sumEntries({}, [])).map(({ creditedNanos }) => creditedNanos),
      [most - 1n],
    )
    const { id } = await books.findAccount('one')
    assert.equal((await books.sumEntries({ accountId: id }, []))[0]!.creditedNanos, most)
    const two = { accountId: (await books.findAccount('two')).id }
    assert.equal((await books.sumEntries(two, []))[0]!.creditedNanos, most)
  })

  test('any text that a user may type is stored and found unchanged, refused by a rule, or matches nothing', async () => {
    const books = await engine.open()
    const odd = ['a "b" c', "o'; DROP TABLE accounts", '{"json": 1}', 'back\\slash', 'ü漢🙂', '%_$1 ?', 'null']
    for (const text of odd) {
      const { id } = await books.createAccount(text)
      assert.equal((await books.findAccount(text)).id, id)
      const key = await books.createKey(id, { label: text })
      assert.deepEqual(
        (await books.findKeys(text)).map((found) => found.id),
        [key.id],
      )
      assert.equal(await books.credit(text, 1n, text), 'posted')
      assert.equal(await books.credit(text, 1n, text), 'exists')
    }
    assert.deepEqual((await books.listAccounts()).map(({ name }) => name).sort(), odd.toSorted())
    const [nul, [name]] = ['with\0 in it', odd as [string]]
    await refuses(books.createAccount(nul), 'name_invalid', nul)
    await refuses(books.updateAccount(name, { name: nul }), 'name_invalid', nul)
    await refuses(books.credit(name, 1n, nul), 'reference_invalid', nul)
    await refuses(books.credit(name, 1n, 'x'.repeat(501)), 'reference_invalid', 'x'.repeat(40))
    assert.equal(await books.credit(name, 1n, '漢'.repeat(500)), 'posted')
    await refuses(books.findAccount(nul), 'no_account', nul)
    await refuses(books.credit(nul, 1n, 'r'), 'no_account', nul)
    await refuses(books.revokeKey(nul), 'no_key', nul)
    assert.deepEqual(await books.findKeys(nul), [])
    assert.equal(await books.findEntry(nul), undefined)
    assert.deepEqual(await books.listEntries({ limit: 9, model: nul }), [])
    assert.equal((await books.sumEntries({ model: nul }, []))[0]?.requests, 0)
    assert.deepEqual(await books.verify(verifyOptions), [])
  })
})
