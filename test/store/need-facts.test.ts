import assert from 'node:assert/strict'
import test from 'node:test'
import { nanosPerCredit } from '../../src/accounts/credit.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { createDebitRow } from './fixtures.ts'
import { watchNeeds } from './need-watch.ts'

const [hourMs, dayMs] = [3_600_000, 86_400_000]
const startMs = Date.parse('2026-08-20T10:05:00Z')

onEachStore((engine) => {
  let requests = 0
  const debit = (accountId: string, keyId: string, credits: number) => ({
    ...createDebitRow(`req_${++requests}`, accountId),
    ...{ keyId, amountNanos: BigInt(credits * 1_000) * (nanosPerCredit / 1_000n) },
  })
  const open = async () => {
    const store = await engine.open({ atMs: startMs })
    const { id: accountId } = await store.createAccount('acme', 100n * nanosPerCredit)
    const { id: keyId } = await store.createKey(accountId, { label: 'ci' })
    return { store, accountId, keyId, ...watchNeeds(store, startMs) }
  }

  test('CON-P3 an account that would run dry at its weekly spend appears, and disappears with credit or suspension', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    assert.deepEqual(await texts(), [])
    await turn(startMs + 3 * dayMs)
    await store.postDebits([debit(accountId, keyId, 60)])
    await turn(startMs + 3 * dayMs + hourMs)
    assert.deepEqual(await texts(), [
      'Account acme runs dry in 2 days: it has 40.00 credits, and spent 60.00 in 3 days.',
    ])
    await store.credit(accountId, 30n * nanosPerCredit, 'invoice')
    assert.deepEqual(await texts(), [])
    await store.postDebits([debit(accountId, keyId, 80)])
    await turn(startMs + 4 * dayMs)
    assert.deepEqual(await texts(), ['Account acme has no credit left, and spent 140.00 in 4 days.'])
    await store.updateAccount(accountId, { state: 'suspended' })
    assert.deepEqual(await texts(), [])
  })

  test('CON-P3 an account without credit disappears when it has spent nothing for a week', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    await store.postDebits([debit(accountId, keyId, 101)])
    assert.deepEqual(await texts(), ['Account acme has no credit left, and spent 101.00 in 1 minute.'])
    await turn(startMs + 8 * dayMs)
    assert.deepEqual(await texts(), [])
  })

  test('R15 Y20 spent budgets appear, of an account and once per line of rotations, and disappear when they renew', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    await store.updateAccount(accountId, { budget: { nanos: 2n * nanosPerCredit, per: 'month' } })
    await store.updateKey(keyId, { budget: { nanos: nanosPerCredit, per: 'day' } })
    await store.rotateKey(keyId, 86_400_000)
    await store.postDebits([debit(accountId, keyId, 1)])
    assert.deepEqual(await texts(), [
      'Key ci of acme has spent its budget of 1.00 credits, which renews on 2026-08-21 00:00 UTC.',
    ])
    await store.postDebits([debit(accountId, keyId, 1)])
    assert.deepEqual(await texts(), [
      'Account acme has spent its budget of 2.00 credits, which renews on 2026-09-01 00:00 UTC.',
      'Key ci of acme has spent its budget of 1.00 credits, which renews on 2026-08-21 00:00 UTC.',
    ])
    await turn(Date.parse('2026-08-21T00:00:00Z'))
    assert.deepEqual((await texts()).length, 1)
    await turn(Date.parse('2026-09-01T00:00:00Z'))
    assert.deepEqual(await texts(), [])
  })

  test('Y20 the budget of a person over all their keys appears when it is spent, and disappears when it renews', async () => {
    const { store, accountId, turn, texts } = await open()
    const budget = { nanos: 2n * nanosPerCredit, per: 'day' as const }
    const { id: person } = await store.createPerson({ name: 'Ada', account: accountId, budget })
    const keys = [await store.createKey(accountId, { person }), await store.createKey(accountId, { person })]
    await store.postDebits([{ ...debit(accountId, keys[0]!.id, 1), details: { person } }])
    assert.deepEqual(await texts(), [])
    await store.postDebits([{ ...debit(accountId, keys[1]!.id, 1), details: { person } }])
    assert.deepEqual(await texts(), [
      'Ada has spent their budget of 2.00 credits, which renews on 2026-08-21 00:00 UTC.',
    ])
    await turn(Date.parse('2026-08-21T00:00:00Z'))
    assert.deepEqual(await texts(), [])
  })

  test('Y21 a person who is erased disappears, with their name', async () => {
    const { store, accountId, turn, texts } = await open()
    const budget = { nanos: nanosPerCredit, per: 'day' as const }
    const { id: person } = await store.createPerson({ name: 'Ada', account: accountId, budget })
    const { id: keyId } = await store.createKey(accountId, { person })
    await store.postDebits([{ ...debit(accountId, keyId, 1), details: { person } }])
    assert.match((await texts()).join(), /^Ada has spent their budget/)
    await store.erasePerson(person)
    await turn(startMs + hourMs)
    assert.deepEqual(await texts(), [])
  })

  test('CON-P3 a key that was not used for 90 days appears, and disappears when it is revoked or ended', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    const { id: ended } = await store.createKey(accountId, { label: 'old', expiresMs: startMs + 89 * dayMs })
    await turn(startMs + 90 * dayMs - 1)
    assert.deepEqual([await texts(), ended === keyId], [[], false])
    await turn(startMs + 90 * dayMs)
    assert.deepEqual(await texts(), ['Key ci of acme was not used for 90 days.'])
    await store.revokeKey(keyId)
    assert.deepEqual(await texts(), [])
  })

  test('CON-P3 an hour that costs three times as much as a week ago appears with its key, for two hours', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    await store.credit(accountId, 900n * nanosPerCredit, 'invoice')
    const { id: other } = await store.createKey(accountId, { label: 'nightly' })
    await store.postDebits([debit(accountId, keyId, 2)])
    await turn(startMs + 7 * dayMs)
    await store.postDebits([debit(accountId, keyId, 1.5), debit(accountId, other, 4.4)])
    assert.deepEqual(await texts(), [])
    await store.postDebits([debit(accountId, keyId, 0.1)])
    const line =
      'The hour from 2026-08-27 10:00 UTC cost 6.00 credits, the same hour last week 2.00; key nightly of acme spent 4.40 of it.'
    assert.deepEqual(await texts(), [line])
    await turn(startMs + 7 * dayMs + hourMs)
    assert.deepEqual(await texts(), [line])
    await turn(startMs + 7 * dayMs + 2 * hourMs)
    assert.deepEqual(await texts(), [])
  })

  test('CON-P3 the key of a costly hour is compared with all keys of its rotation a week ago', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    await store.credit(accountId, 900n * nanosPerCredit, 'invoice')
    const { id: next } = await store.rotateKey(keyId, dayMs)
    const { id: other } = await store.createKey(accountId, { label: 'nightly' })
    await store.postDebits([debit(accountId, next, 5)])
    await turn(startMs + 7 * dayMs)
    await store.postDebits([debit(accountId, next, 8), debit(accountId, other, 7)])
    assert.deepEqual(await texts(), [
      'The hour from 2026-08-27 10:00 UTC cost 15.00 credits, the same hour last week 5.00; key nightly of acme spent 7.00 of it.',
    ])
  })

  test('CON-P3 the key of a costly hour is the newest of its rotation', async () => {
    const { store, accountId, keyId, turn, texts } = await open()
    await store.credit(accountId, 900n * nanosPerCredit, 'invoice')
    await store.postDebits([debit(accountId, keyId, 1)])
    await turn(startMs + 7 * dayMs)
    const { id: newest } = await store.rotateKey(keyId, 0)
    await store.updateKey(newest, { label: 'ci-2' })
    await store.postDebits([debit(accountId, newest, 5)])
    assert.deepEqual(await texts(), [
      'The hour from 2026-08-27 10:00 UTC cost 5.00 credits, the same hour last week 1.00; key ci-2 of acme spent 5.00 of it.',
    ])
  })
})

test('CON-P3 keys beyond what one check reads are found in turns, and forgotten when their page is read again', async () => {
  const keys = Array.from({ length: 2_100 }, (_, at) => ({
    ...{
      id: `key_${`${at}`.padStart(4, '0')}`,
      label: `k${at}`,
      accountName: 'many',
      createdMs: startMs - 100 * dayMs,
    },
    ...{ revokedMs: undefined as number | undefined, bounds: {} },
  }))
  let reads = 0
  const total = { sums: [[]], times: [] }
  const store = {
    rankSpent: async () => [],
    readUsage: async () => ({ groups: [], total }),
    pageAccounts: async () => [],
    pagePersons: async () => [],
    async pageKeys({ beyond, limit }: { beyond?: [number, string]; limit: number }) {
      reads++
      return keys.filter(({ id }) => !beyond || id > beyond[1]).slice(0, limit)
    },
    noteNeeds: async () => new Map(),
  } as unknown as TestStore
  const { texts } = watchNeeds(store, startMs)
  for (const key of keys.slice(3, -1)) key.revokedMs = 1
  const line = (at: number) => `Key k${at} of many was not used for 100 days.`
  assert.deepEqual(await texts(), [0, 1, 2].map(line))
  assert.equal(reads, 10, 'one look reads ten pages at most')
  assert.deepEqual((await texts()).toSorted(), [0, 1, 2, 2_099].map(line))
  keys[0]!.revokedMs = 1
  assert.deepEqual((await texts()).toSorted(), [1, 2, 2_099].map(line))
})
