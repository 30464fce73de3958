import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { BookError } from '../../src/accounts/book-error.ts'
import { neverMs } from '../../src/accounts/budget.ts'
import type { Zone } from '../../src/accounts/calendar.ts'
import { nanosMax } from '../../src/accounts/credit.ts'
import { keyBounds } from '../../src/accounts/key-bounds.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { costNanos, createDebitRow, verifyOptions } from './fixtures.ts'

const at = (text: string) => Date.parse(text)
const noon = at('2026-11-22T12:00:00Z')
const berlin: Zone = { timeZone: 'Europe/Berlin', weekStarts: 'monday' }
const daily = { nanos: 5_000_000_000n, per: 'day' } as const

onEachStore((engine) => {
  /** A store at noon in Berlin, an account, and a key with a budget of a day. */
  async function open(budget: typeof daily | null = daily) {
    const store = await engine.open({ atMs: noon, zone: berlin })
    const { id } = await store.createAccount('one', 10n ** 12n)
    const { id: keyId } = await store.createKey(id, { budget })
    let count = 0
    const post = (by = keyId, debits = 1) =>
      store.postDebits(Array.from({ length: debits }, () => ({ ...createDebitRow(`req_${++count}`, id), keyId: by })))
    const spent = async (of = keyId) => (await store.findKeys(of))[0]!.spend
    return { store, id, keyId, post, spent, last: () => `req_${count}` }
  }

  const verify = (store: TestStore) => store.verify(verifyOptions)

  test('R15 spending of a key is written once, in the commit of its debit, in the window of the reporting zone', async () => {
    const { store, id, keyId, post, spent } = await open()
    const day = { fromMs: at('2026-11-21T23:00:00Z'), untilMs: at('2026-11-22T23:00:00Z') }
    assert.deepEqual(await spent(), { ...day, spentNanos: 0n })
    await post(keyId, 3)
    const again = { ...createDebitRow('req_1', id), keyId }
    assert.deepEqual(await store.postDebits([again, { ...again, amountNanos: 1n }]), ['exists', 'conflict'])
    assert.deepEqual(await spent(), { ...day, spentNanos: 3n * costNanos })
    // Of another key, or of none, nothing is counted.
    const { id: wide } = await store.createKey(id)
    await post(wide)
    await store.postDebits([createDebitRow('req_none', id)])
    assert.deepEqual([await spent(wide), (await spent())?.spentNanos], [undefined, 3n * costNanos])
    assert.deepEqual(await verify(store), [])
  })

  test('R15 lifetime spending of a key may exceed what an account can hold, and never keeps a debit out of the ledger', async () => {
    const store = await engine.open({ atMs: noon, zone: berlin })
    const { id } = await store.createAccount('one', 9n * 10n ** 18n)
    const { id: keyId } = await store.createKey(id, { budget: { nanos: nanosMax, per: undefined } })
    for (const [at, credit] of [5n, 5n, 5n].map((n) => n * 10n ** 18n).entries()) {
      const row = { ...createDebitRow(`req_${at}`, id), keyId, amountNanos: credit }
      assert.deepEqual(await store.postDebits([row]), ['posted'])
      await store.credit(id, credit, `again-${at}`)
    }
    assert.equal((await store.findKeys(keyId))[0]!.spend?.spentNanos, nanosMax)
  })

  test('R15 a debit counts in the window in which it is posted: just before midnight, and at midnight', async () => {
    const { store, post, spent } = await open()
    await store.turn(at('2026-11-22T22:59:59.999Z'))
    await post()
    assert.equal((await spent())?.untilMs, at('2026-11-22T23:00:00Z'))
    await store.turn(at('2026-11-22T23:00:00Z'))
    await post()
    const next = { fromMs: at('2026-11-22T23:00:00Z'), untilMs: at('2026-11-23T23:00:00Z') }
    assert.deepEqual(await spent(), { ...next, spentNanos: costNanos })
    // A clock that is set back: nothing is posted before what was posted.
    await store.turn(noon)
    await post()
    assert.deepEqual(await spent(), { ...next, spentNanos: 2n * costNanos })
    await store.turn(at('2026-11-22T23:00:00Z'))
    assert.deepEqual(await verify(store), [])
  })

  test('R15 days of 23 and 25 hours are one window each', async () => {
    for (const [day, from, until] of [
      ['2027-03-28', '2027-03-27T23:00:00Z', '2027-03-28T22:00:00Z'],
      ['2027-10-31', '2027-10-30T22:00:00Z', '2027-10-31T23:00:00Z'],
    ] as const) {
      const { store, post, spent } = await open()
      for (const ms of [at(from), at(`${day}T10:00:00Z`), at(until) - 1]) {
        await store.turn(ms)
        await post()
      }
      assert.deepEqual(await spent(), { fromMs: at(from), untilMs: at(until), spentNanos: 3n * costNanos }, day)
      await store.turn(at(until))
      await post()
      assert.equal((await spent())?.spentNanos, costNanos)
      assert.deepEqual(await verify(store), [])
    }
  })

  test('C13 R15 a returned debit is not spent, in the window in which it is returned', async () => {
    const { store, keyId, post, spent, last } = await open()
    await post(keyId, 2)
    assert.deepEqual(await store.giveBack([last(), 'req_unknown']), [last()])
    await store.giveBack([last()])
    assert.equal((await spent())?.spentNanos, costNanos)
    await store.turn(at('2026-11-23T12:00:00Z'))
    await store.giveBack(['req_1'])
    assert.equal((await spent())?.spentNanos, -costNanos)
    assert.deepEqual(await verify(store), [])
  })

  test('R15 a rotated key passes on label, bounds, end and spending, and both keys spend one budget in the grace period', async () => {
    const store = await engine.open({ atMs: noon, zone: berlin })
    const { id } = await store.createAccount('one', 10n ** 12n)
    const wishes = { label: 'ci', budget: daily, requestsPerMinute: 60, models: ['a', 'b*'], expiresMs: noon + 9e9 }
    const { id: first } = await store.createKey(id, wishes)
    const second = (await store.rotateKey(first, 3_600_000)).id
    // The one that is in its grace once more: the third ends when it was meant to, not with that grace.
    const third = (await store.rotateKey(first, 60_000)).id
    const keys = await Promise.all([first, second, third].map(async (key) => (await store.findKeys(key))[0]!))
    assert.deepEqual(
      keys.map(({ label, scope, expiresMs }) => [label, scope, expiresMs]),
      [
        ['ci', first, noon + 60_000],
        ['ci', first, noon + 9e9],
        ['ci', first, noon + 9e9],
      ],
    )
    for (const { bounds } of keys)
      assert.deepEqual(bounds, { ...keyBounds.none, budget: daily, requestsPerMinute: 60, models: ['a', 'b*'] })
    for (const [index, keyId] of [first, second, third].entries())
      await store.postDebits([{ ...createDebitRow(`req_${index}`, id), keyId }])
    for (const key of [first, second, third])
      assert.equal((await store.findKeys(key))[0]!.spend?.spentNanos, 3n * costNanos)
    // What is changed of one is changed of all.
    await store.updateKey(third, { requestsPerMinute: 7, models: null })
    assert.deepEqual((await store.findKeys(first))[0]!.bounds, {
      ...keys[0]!.bounds,
      requestsPerMinute: 7,
      models: undefined,
    })
    assert.deepEqual(await verify(store), [])
  })

  test('R15 a key may get any end until it is rotated itself, even if the key before it is rotated once more', async () => {
    const store = await engine.open({ atMs: noon })
    const { id } = await store.createAccount('one')
    const { id: first } = await store.createKey(id)
    const second = (await store.rotateKey(first, 3_600_000)).id
    await store.turn(noon + 60_000)
    const third = (await store.rotateKey(first, 3_600_000)).id
    for (const key of [second, third])
      for (const expiresMs of [noon + 9e9, null])
        assert.equal((await store.updateKey(key, { expiresMs })).expiresMs, expiresMs ?? undefined)
    await assert.rejects(store.updateKey(first, { expiresMs: null }), { code: 'key_rotated' })
  })

  test('R15 a new or changed window of a budget is counted from the ledger; a changed amount changes no spending', async () => {
    const { store, id, keyId, post, spent } = await open(null)
    await post(keyId, 2)
    await store.turn(at('2026-11-23T12:00:00Z'))
    await post()
    assert.equal(await spent(), undefined)
    const budgetOf = async (per: 'day' | 'week' | 'month' | undefined, nanos = 10n ** 9n) =>
      (await store.updateKey(keyId, { budget: { nanos, per } })) && spent()
    assert.deepEqual(await budgetOf('day'), {
      ...{ fromMs: at('2026-11-22T23:00:00Z'), untilMs: at('2026-11-23T23:00:00Z') },
      spentNanos: costNanos,
    })
    // Monday began at 23:00 UTC on Sunday, after the spending of Sunday.
    assert.equal((await budgetOf('week'))?.spentNanos, costNanos)
    assert.equal((await budgetOf('month'))?.spentNanos, 3n * costNanos)
    assert.deepEqual(await budgetOf(undefined), { fromMs: 0, untilMs: neverMs, spentNanos: 3n * costNanos })
    await post()
    assert.equal((await budgetOf(undefined, 7n))?.spentNanos, 4n * costNanos)
    assert.deepEqual(await verify(store), [])
    await store.updateKey(keyId, { budget: null })
    assert.equal(await spent(), undefined)
    await post()
    assert.equal((await budgetOf('day'))?.spentNanos, 3n * costNanos)
    assert.deepEqual(await verify(store), [])
    // What a new key has spent is nothing, however much its account has.
    const { id: later } = await store.createKey(id, { budget: { nanos: 1n, per: undefined } })
    assert.equal((await spent(later))?.spentNanos, 0n)
  })

  test('R15 a changed budget reaches servers and the audit, and is refused if it is older than the stored one', async () => {
    const { store, id, keyId } = await open()
    const { revision } = await store.readChanges(0n)
    await store
      .as({ actor: 'cli:a@b' })
      .updateKey(keyId, { budget: { nanos: 2_500_000_000n, per: 'week' }, models: ['m*'] })
    assert.deepEqual((await store.readChanges(revision)).accountIds, [id])
    const [record] = await store.listAudit({ limit: 1 })
    assert.deepEqual(
      [record!.operation, JSON.parse(record!.before!), JSON.parse(record!.after!)],
      ['key.update', { budget: '5/day', models: null }, { budget: '2.5/week', models: 'm*' }],
    )
    const stale = store.as({ actor: 'x', version: 'older' }).updateKey(keyId, { requestsPerMinute: 1 })
    await assert.rejects(stale, (error) => error instanceof BookError && error.code === 'stale')
    // The same again writes nothing.
    await store.updateKey(keyId, { models: ['m*'] })
    assert.equal((await store.listAudit({ limit: 9 })).filter(({ operation }) => operation === 'key.update').length, 1)
  })

  test('R15 C15 verify finds spending that differs from the sum of its entries, and budgets that are not counted', async () => {
    const { store, keyId, post } = await open()
    await post(keyId, 2)
    assert.deepEqual(await verify(store), [])
    await store.forge(({ run }) => run('UPDATE spends SET spent = spent - 1'))
    assert.deepEqual(await verify(store), [
      `key ${keyId}: has spent ${2n * costNanos - 1n} of its budget, its entries sum to ${2n * costNanos}`,
    ])
    await store.forge(({ run }) => run('DELETE FROM spends'))
    assert.deepEqual(await verify(store), [`key ${keyId}: has a budget, and what it spends is not counted`])
    await store.forge(({ run }) =>
      run('INSERT INTO spends (scope, from_ms, until_ms, spent) VALUES (?, 0, 5, 0)', 'key_x'),
    )
    assert.equal((await verify(store)).length, 2)
  })

  test('R15 C2 spending is the sum of the entries of its window, for any debits, returns, changes and times', async () => {
    const { store, id } = await open()
    const keys: string[] = []
    for (let n = 0; n < 3; n++) keys.push((await store.createKey(id, n ? { budget: daily } : {})).id)
    let [count, nowMs] = [0, noon]
    const step = fc.record({
      act: fc.constantFrom('debits', 'debits', 'return', 'budget', 'rotate', 'clear'),
      key: fc.nat(),
      which: fc.nat(),
      per: fc.constantFrom('day', 'week', 'month', undefined),
      stepMs: fc.nat(2 * 86_400_000),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
        for (const { act, key, which, per, stepMs } of steps) {
          nowMs += stepMs
          await store.turn(nowMs)
          const keyId = keys[key % keys.length]!
          if (act === 'debits')
            await store.postDebits(
              [0, 1, 2].map((n) => ({
                ...createDebitRow(`req_p${++count}`, id),
                keyId: keys[(key + n) % keys.length],
              })),
            )
          else if (act === 'return') await store.giveBack([`req_p${count === 0 ? 0 : (which % count) + 1}`])
          else if (act === 'rotate') keys[key % keys.length] = (await store.rotateKey(keyId, 60_000)).id
          else await store.updateKey(keyId, { budget: act === 'clear' ? null : { nanos: 10n ** 9n, per } })
        }
        assert.deepEqual(await verify(store), [])
      }),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 15 : 6) },
    )
  })
})
