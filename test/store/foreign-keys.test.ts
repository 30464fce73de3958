import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import type { ForeignImport } from '../../src/accounts/foreign-keys.ts'
import { digestForeignKey, digestKey, digestOfHex, withoutKeys } from '../../src/accounts/keys.ts'
import { setSpend } from '../../src/store/sql/spends.ts'
import { createDialect } from '../../src/store/sqlite/run.ts'
import { onEachStore } from './engines.ts'

const atMs = 1_800_000_000_000
const hexOf = (key: string) => createHash('sha256').update(key).digest('hex')

/** A key as LiteLLM keeps it. */
const foreign = (key: string, more: Partial<ForeignImport['keys'][number]> = {}): ForeignImport['keys'][number] => ({
  ...{ digest: digestOfHex(hexOf(key))!, prefix: `sk-...${key.slice(-4)}`, label: undefined, account: 'team' },
  ...{ externalId: undefined, expiresMs: undefined, ownExpiresMs: undefined, bounds: {} },
  ...more,
})

const team = {
  name: 'team',
  state: 'active',
  bounds: {},
  creditNanos: 5_000_000_000n,
  reference: 'import:litellm:t1',
} as const

test('issue 50 a digest in hex, as LiteLLM stores it, equals our digest of the same key', () => {
  // As `hash_token` of litellm 1.110.2 answers it.
  const theirs = '88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b'
  assert.equal(digestOfHex(theirs), digestKey('sk-1234'))
  assert.equal(hexOf('sk-1234'), theirs)
  assert.equal(digestOfHex(hexOf('sk-1234').toUpperCase()), digestKey('sk-1234'))
  for (const text of ['', 'sk-1234', hexOf('a').slice(1), `${hexOf('a')}0`]) assert.equal(digestOfHex(text), undefined)
  assert.equal(digestForeignKey('sk-1234'), digestKey('sk-1234'))
  for (const text of ['sk-', 'xk-1234', 'sk-a b', 'sk-ä', `sk-${'a'.repeat(300)}`, ' sk-1', 'sk-1\n'])
    assert.equal(digestForeignKey(text), undefined, text)
})

test('issue 50 U5 a text that may be a key of another gateway is shown only by its first characters', () => {
  for (const [text, shown] of [
    ['There is no key "sk-A1b2C3d4E5f6G7h8I9"', 'There is no key "sk-…"'],
    ['sk-tri-chosen-by-somebody-1', 'sk-…'],
    ['sk-...abcd', 'sk-...abcd'],
    ['task-management-of-the-team', 'task-management-of-the-team'],
    ['sk-tri-JXCiJSao', 'sk-tri-JXCiJSao'],
  ])
    assert.equal(withoutKeys(text!), shown)
})

test('issue 50 setting a budget with nothing spent reads no other key, so that an import costs the same for each key', () => {
  const ask = (spentNanos: bigint) => {
    const span = { fromMs: 0, untilMs: 1 }
    const step = setSpend(createDialect(), {
      accountId: 'acct',
      scope: 'key',
      ...span,
      spentNanos,
      throughSeq: undefined,
    })
    const texts: string[] = []
    for (let turn = step.next(); !turn.done; turn = step.next([]))
      texts.push('text' in turn.value ? turn.value.text : '')
    return texts.filter((text) => /\bkeys\b/.test(text)).length
  }
  assert.deepEqual([ask(0n), ask(1n)], [0, 1])
})

onEachStore((engine) => {
  test('issue 50 foreign keys are imported completely, and a second import changes nothing', async () => {
    const store = await engine.open({ atMs })
    const books = store.as({ actor: 'operator:ann' })
    const plan: ForeignImport = {
      origin: 'litellm',
      accounts: [
        { ...team, bounds: { budget: { nanos: 9n, per: 'month' }, requestsPerMinute: 7 } },
        { ...team, name: 'off', state: 'suspended', creditNanos: 0n, reference: 'import:litellm:t2' },
      ],
      keys: [
        foreign('sk-a', {
          label: 'ada',
          externalId: 'u-1',
          bounds: { models: ['m'], budget: { nanos: 3n, per: 'day' } },
        }),
        foreign('sk-b', { account: 'off', externalId: 'u-1', expiresMs: atMs + 5, ownExpiresMs: atMs + 9 }),
      ],
    }
    const counts = { accounts: 2, persons: 1, keys: 2, keysKnown: 0, creditedNanos: 5_000_000_000n }
    assert.deepEqual(await books.importForeign(plan), counts)
    assert.deepEqual(await books.importForeign(plan), {
      ...{ accounts: 0, persons: 0, keys: 0, keysKnown: 2, creditedNanos: 0n },
    })
    const account = await store.findAccount('team')
    assert.equal(account.balanceNanos, 5_000_000_000n)
    assert.deepEqual(account.bounds.budget, { nanos: 9n, per: 'month' })
    assert.equal((await store.findAccount('off')).state, 'suspended')
    const [a, b] = (await store.listKeys()).toSorted((x, y) => x.prefix.localeCompare(y.prefix))
    assert.deepEqual([a!.origin, a!.label, a!.prefix, a!.bounds.models], ['litellm', 'ada', 'sk-...sk-a', ['m']])
    assert.equal(a!.bounds.person, b!.bounds.person)
    assert.equal((await books.findPerson('u-1')).id, a!.bounds.person)
    assert.deepEqual([b!.expiresMs, b!.ownExpiresMs], [atMs + 5, atMs + 9])
    const audit = (await store.listAudit({ limit: 9 })).toReversed()
    assert.deepEqual(
      audit.map(({ operation, object, after }) => [operation, object, JSON.parse(after!)]),
      [
        ['account.create', account.id, { name: 'team', state: 'active', budget: '0.000000009/month', rpm: 7 }],
        ['account.credit', account.id, { amount: '5', reference: 'import:litellm:t1' }],
        ['account.create', b!.accountId, { name: 'off', state: 'suspended' }],
        ['key.import', 'litellm', { accounts: 2, persons: 1, keys: 2, keysKnown: 0 }],
      ],
    )
    assert.deepEqual(await store.verifyAudit().then(({ findings }) => findings), [])
    await store.close()
  })

  test('issue 50 a key that a dump has twice is imported once, from its first row', async () => {
    const store = await engine.open({ atMs })
    const keys = [foreign('sk-a', { label: 'first' }), foreign('sk-b'), foreign('sk-a', { label: 'second' })]
    const counts = await store
      .as({ actor: 'operator:ann' })
      .importForeign({ origin: 'litellm', accounts: [team], keys })
    assert.deepEqual([counts.keys, counts.keysKnown], [2, 1])
    assert.deepEqual((await store.listKeys()).map(({ label }) => label ?? '').toSorted(), ['', 'first'])
    await store.close()
  })

  test('issue 50 an import whose last line breaks a rule changes nothing', async () => {
    const store = await engine.open({ atMs })
    const books = store.as({ actor: 'operator:ann' })
    const elsewhere = await books.createAccount('elsewhere')
    await books.createPerson({ externalId: 'u-9', account: elsewhere.id })
    const bad = [foreign('sk-b', { label: 'two\nlines' }), foreign('sk-b', { externalId: 'u-9' })]
    for (const last of bad)
      await assert.rejects(
        books.importForeign({ origin: 'litellm', accounts: [team], keys: [foreign('sk-a'), last] }),
        (error: { code?: string }) => /label_invalid|person_elsewhere/.test(error.code ?? ''),
      )
    assert.deepEqual(await store.listKeys(), [])
    await assert.rejects(store.findAccount('team'), { code: 'no_account' })
    await store.close()
  })

  test('issue 50 Y20 a key of a second identity is of the account of its person', async () => {
    const store = await engine.open({ atMs })
    const books = store.as({ actor: 'operator:ann' })
    await books.createAccount('elsewhere')
    const { id } = await books.createPerson({ externalId: 'u-1', account: 'elsewhere', requestsPerMinute: 5 })
    await books.createPerson({ externalId: 'u-2' })
    await books.linkPersons('u-1', 'u-2')
    const plan = (account: string) => ({
      ...{ origin: 'litellm', accounts: [{ ...team, name: account, creditNanos: 0n }] },
      keys: [foreign('sk-a', { account, externalId: 'u-2' })],
    })
    await assert.rejects(books.importForeign(plan('team')), { code: 'person_elsewhere' })
    await books.importForeign(plan('elsewhere'))
    assert.deepEqual(
      (await store.listKeys()).map(({ bounds }) => bounds.person),
      [id],
    )
    await store.close()
  })

  test('issue 50 rotation of a foreign key gives an ordinary key of the same line, and the report says so', async () => {
    const store = await engine.open({ atMs })
    const books = store.as({ actor: 'operator:ann' })
    const bounds = { requestsPerMinute: 3 }
    const keys = [foreign('sk-a', { label: 'ada', bounds, expiresMs: atMs + 9 }), foreign('sk-b')]
    await books.importForeign({ origin: 'litellm', accounts: [team], keys })
    await books.createKey('team')
    const page = () => store.pageKeys({ isForeign: true, limit: 9 })
    const [a, b] = (await page()).toSorted((x, y) => x.prefix.localeCompare(y.prefix))
    assert.deepEqual([a!.prefix, b!.prefix], ['sk-...sk-a', 'sk-...sk-b'])
    assert.deepEqual([...(await store.findRotated([a!.scope, b!.scope]))], [])
    const issued = await books.rotateKey(a!.id, 60_000)
    assert.match(issued.key, /^sk-tri-/)
    assert.deepEqual([...(await store.findRotated([a!.scope, b!.scope]))], [a!.scope])
    assert.equal((await page()).length, 2)
    const next = (await store.listKeys()).find(({ id }) => id === issued.id)!
    assert.deepEqual([next.origin, next.label, next.scope, next.expiresMs], [undefined, 'ada', a!.scope, undefined])
    assert.equal(next.bounds.requestsPerMinute, 3)
    // After its rotation it is: its owner has a successor (R15).
    for (const expiresMs of [null, atMs + 10, atMs + 90_000])
      await assert.rejects(books.updateKey(a!.id, { expiresMs }), { code: 'key_rotated' })
    assert.equal((await books.updateKey(a!.id, { expiresMs: atMs + 5 })).expiresMs, atMs + 5)
    // The end of any other foreign key is no grace, so an operator may move it.
    assert.equal((await books.updateKey(b!.id, { expiresMs: atMs + 70 })).expiresMs, atMs + 70)
    assert.equal((await books.updateKey(b!.id, { expiresMs: atMs + 700 })).expiresMs, atMs + 700)
    await store.close()
  })
})
