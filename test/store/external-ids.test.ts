import assert from 'node:assert/strict'
import { test } from 'node:test'
import { onEachStore } from './engines.ts'

onEachStore((engine) => {
  test('issue 50 external ids and metadata of accounts and keys are stored, found and removed', async () => {
    const books = (await engine.open({ atMs: 1_800_000_000_000 })).as({ actor: 'operator:ann' })
    const wish = { externalId: 'crm/Ä', metadata: { a: '1', 'ü"\\': '' } }
    const { id } = await books.createAccount('acme', 0n, wish)
    await books.createAccount('other', 0n, { externalId: 'crm/ä' })
    const key = await books.createKey('acme', { ...wish, label: 'one' })
    await books.createKey('acme', {})
    const findAccounts = (externalId: string) => books.pageAccounts({ externalId, sort: 'created', limit: 9 })
    const [account, ...more] = await findAccounts('crm/Ä')
    assert.deepEqual([account?.id, more.length], [id, 0])
    assert.deepEqual([account?.bounds.externalId, account?.bounds.metadata], [wish.externalId, wish.metadata])
    const keys = await books.pageKeys({ externalId: 'crm/Ä', limit: 9 })
    assert.deepEqual(
      keys.map((one) => [one.id, one.bounds.metadata]),
      [[key.id, wish.metadata]],
    )
    for (const odd of ['', 'a\0b', '\ud800', '%', 'x'.repeat(10_000)]) {
      assert.deepEqual(await findAccounts(odd), [])
      assert.deepEqual(await books.pageKeys({ externalId: odd, limit: 9 }), [])
    }
    await books.rotateKey(key.id, 1_000)
    assert.equal((await books.pageKeys({ externalId: 'crm/Ä', limit: 9 })).length, 2)
    await books.updateKey(key.id, { externalId: null, metadata: null })
    assert.deepEqual(await books.pageKeys({ externalId: 'crm/Ä', limit: 9 }), [])
    await books.updateAccount('acme', { metadata: { b: '2' } })
    assert.deepEqual((await books.findAccount('acme')).bounds.metadata, { b: '2' })
    assert.equal((await findAccounts('crm/Ä')).length, 1)
  })
})
