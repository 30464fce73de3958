import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { BookError } from '../../src/accounts/book-error.ts'
import type { Zone } from '../../src/accounts/calendar.ts'
import { accountBounds } from '../../src/accounts/key-bounds.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { costNanos, createDebitRow, verifyOptions } from './fixtures.ts'

/* Bounds of an account over all its keys (ruling R15 as Y20 extends it), on both stores. */

const at = (text: string) => Date.parse(text)
const noon = at('2026-11-22T12:00:00Z')
const berlin: Zone = { timeZone: 'Europe/Berlin', weekStarts: 'monday' }
const monthly = { nanos: 5n * costNanos, per: 'month' } as const
const november = { fromMs: at('2026-10-31T23:00:00Z'), untilMs: at('2026-11-30T23:00:00Z') }

onEachStore((engine) => {
  async function open() {
    const store = await engine.open({ atMs: noon, zone: berlin })
    const { id } = await store.createAccount('one', 10n ** 12n, { budget: monthly })
    const keys = [(await store.createKey(id)).id, (await store.createKey(id, { budget: monthly })).id, undefined]
    let count = 0
    const post = (debits = 1, by = keys) =>
      store.postDebits(
        Array.from({ length: debits }, (_, n) => ({
          ...createDebitRow(`req_${++count}`, id),
          keyId: by[n % by.length],
        })),
      )
    const spent = async () => (await store.findAccount(id)).spend
    const told = async () => {
      const warnings = await store.takeWarnings(1_000, 100)
      for (const warning of warnings) await store.settleWarning(warning.id, undefined)
      return warnings.map(({ event, data }) => ({ event, ...data }))
    }
    return { store, id, keys, post, spent, told }
  }

  const verify = (store: TestStore) => store.verify(verifyOptions)

  test('Y20 R15 spending of an account is counted over all its keys and keyless requests, in the month of the reporting zone', async () => {
    const { store, id, post, spent } = await open()
    assert.deepEqual(await spent(), { ...november, spentNanos: 0n })
    await post(4)
    await store.giveBack(['req_2'])
    await store.credit(id, 10n ** 9n, 'a top-up is no spending')
    assert.deepEqual(await spent(), { ...november, spentNanos: 3n * costNanos })
    await store.turn(november.untilMs)
    await post(1)
    assert.deepEqual((await spent())?.spentNanos, costNanos)
    assert.deepEqual(await verify(store), [])
  })

  /** Posts as the second release does: it counts what keys spend, and knows no budget of an account. */
  async function asBefore(store: TestStore, work: () => Promise<unknown>): Promise<void> {
    const { budget } = (await store.listAccounts())[0]!.bounds
    await store.exec('UPDATE accounts SET budget = NULL')
    await work()
    await store.exec(`UPDATE accounts SET budget = ${budget!.nanos}`)
  }

  for (const per of ['month', 'day', undefined] as const)
    test(`Y20 R15 spending posted by a triwire without account budgets is counted when the store is opened, by ${per ?? 'total'}`, async () => {
      const { store, id, post } = await open()
      await store.adoptReporting({ ...berlin, keepMonths: 24 })
      await store.updateAccount(id, { budget: { nanos: 10n ** 12n, per } })
      await post(2)
      const spentAfter = async (work: () => Promise<unknown>) => {
        await asBefore(store, work)
        const opened = await store.reopen()
        assert.deepEqual(await verify(opened), [])
        return (await opened.findAccount(id)).spend!.spentNanos / costNanos
      }
      assert.equal(await spentAfter(() => post(3)), 5n)
      assert.equal(await spentAfter(() => store.giveBack(['req_4'])), 4n)
      await store.credit(id, 10n ** 9n, 'a top-up is no spending')
      assert.equal(await spentAfter(async () => {}), 4n)
      await store.turn(noon + 86_400_000)
      assert.equal(await spentAfter(() => post(1)), per === 'day' ? 1n : 5n)
      await post(1)
      assert.equal(await spentAfter(async () => {}), per === 'day' ? 2n : 6n)
    })

  test('Y20 R15 opening a store whose accounts are already counted from all entries writes nothing', async () => {
    const { store, id, post } = await open()
    await post(2)
    await store.exec('UPDATE spends SET spent = 7')
    const opened = await store.reopen()
    assert.equal((await opened.findAccount(id)).spend!.spentNanos, 7n)
    await store.exec('UPDATE spends SET seq = NULL WHERE seq IS NOT NULL')
    assert.equal((await (await store.reopen()).findAccount(id)).spend!.spentNanos, 2n * costNanos)
  })

  if (engine.name === 'PostgreSQL')
    test('Y20 R15 X7 spending that a replica of an older triwire posts is counted with the next debit of the account', async () => {
      const { store, id, post, spent } = await open()
      await post(1)
      await asBefore(store, () => post(3))
      await store.credit(id, 10n ** 9n, 'a top-up is no spending')
      await post(2)
      assert.equal((await spent())!.spentNanos, 6n * costNanos)
      await asBefore(store, () => post(1))
      await store.turn(november.untilMs)
      await asBefore(store, () => post(1))
      await post(2)
      assert.equal((await spent())!.spentNanos, 3n * costNanos)
      assert.deepEqual(await verify(store), [])
    })

  test('Y20 R15 a budget that is set later counts what the window has spent; once removed it is no longer counted', async () => {
    const { store, id, post, spent } = await open()
    await store.updateAccount(id, { budget: null })
    assert.deepEqual([await spent(), await verify(store)], [undefined, []])
    await post(7)
    await store.updateAccount(id, { budget: { nanos: 1n, per: 'day' } })
    assert.equal((await spent())?.spentNanos, 7n * costNanos)
    await post(1)
    assert.equal((await spent())?.spentNanos, 8n * costNanos)
    assert.deepEqual(await verify(store), [])
  })

  test('Y20 C15 verify finds recorded spending of an account that differs from the sum of its entries', async () => {
    const { store, id, post } = await open()
    await post(2)
    await store.forge((forger) => forger.run(`UPDATE spends SET spent = 1 WHERE scope = '${id}'`))
    assert.deepEqual(await verify(store), [
      `account ${id}: has spent 1 of its budget, its entries sum to ${2n * costNanos}`,
    ])
    await store.forge((forger) => forger.run(`DELETE FROM spends WHERE scope = '${id}'`))
    assert.deepEqual(await verify(store), [`account ${id}: has a budget, and what it spends is not counted`])
  })

  test('Y20 X15 an account warns at its own levels instead of the common ones, and for its budget', async () => {
    const { store, id, post, told } = await open()
    await store.watch({ lowNanos: [10n ** 12n], ownLows: true, budgets: true })
    const [low, lower] = [10n ** 12n - costNanos, 10n ** 12n - 3n * costNanos]
    await store.updateAccount(id, { warnNanos: [low, lower] })
    await post(2, [undefined])
    const below = { event: 'credit_low', account: id, below_nanos: `${low}`, own: 1 }
    assert.deepEqual(await told(), [{ ...below, balance_nanos: `${10n ** 12n - 2n * costNanos}` }])
    await post(2, [undefined])
    const budget = { account: id, budget_nanos: `${5n * costNanos}`, per: 'month', until_ms: november.untilMs }
    const events = (await told()).toSorted((a, b) => (a.event < b.event ? -1 : 1))
    assert.deepEqual(events, [
      { event: 'account_budget_80', ...budget, spent_nanos: `${4n * costNanos}` },
      { ...below, below_nanos: `${lower}`, balance_nanos: `${10n ** 12n - 4n * costNanos}` },
    ])
    await post(1, [undefined])
    assert.deepEqual(
      (await told()).map(({ event }) => event),
      ['account_budget_spent'],
    )
    // Nobody wants credit warnings of accounts: none waits for ever.
    await store.watch({ lowNanos: [], ownLows: false, budgets: false })
    await store.updateAccount(id, { warnNanos: [10n ** 12n - 6n * costNanos] })
    await post(3, [undefined])
    assert.deepEqual([await told(), await verify(store)], [[], []])
  })

  test('Y20 bounds of an account are in its version and the audit, and are read back as they were set', async () => {
    const store = await engine.open({ atMs: noon, zone: berlin })
    const { id, bounds: none } = await store.createAccount('one')
    assert.deepEqual(none, accountBounds.none)
    const { requestsPerMinute, warnNanos } = { requestsPerMinute: 7, warnNanos: [50n * 10n ** 9n, 10n ** 9n] }
    const budget = { nanos: 500n * 10n ** 9n, per: 'month' } as const
    await store.as({ actor: 'tester' }).updateAccount(id, { budget, requestsPerMinute, warnNanos })
    const expected = { ...accountBounds.none, budget, requestsPerMinute, warnNanos }
    assert.deepEqual((await store.findAccount(id)).bounds, expected)
    const [audit] = await store.listAudit({ limit: 1 })
    assert.deepEqual(JSON.parse(audit!.after!), { budget: '500/month', rpm: 7, warn: '50,1' })
    await store.updateAccount(id, { requestsPerMinute: null })
    assert.equal((await store.findAccount(id)).bounds.requestsPerMinute, undefined)
    const stale = store.as({ actor: 'tester', version: 'another' }).updateAccount(id, { requestsPerMinute: 8 })
    await assert.rejects(stale, (error: BookError) => error instanceof BookError && error.code === 'stale')
  })

  const step = fc.record({
    act: fc.constantFrom('post', 'post', 'return', 'account', 'clear', 'key', 'later'),
    which: fc.nat(9),
    per: fc.constantFrom('day', 'week', 'month', undefined),
  })

  test('Y20 R15 spending of an account is the sum of the entries of its window, for any debits, returns, changes and times', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), async (steps) => {
        const { store, id, keys, post } = await open()
        let [ms, posted] = [noon, 0]
        for (const { act, which, per } of steps) {
          if (act === 'later') ms += which * 3_600_000 * 11
          if (act === 'later') await store.turn(ms)
          else if (act === 'post') posted += (await post(1 + (which % 3), [keys[which % 3]])).length
          else if (act === 'return') await store.giveBack([`req_${1 + (which % Math.max(1, posted))}`])
          else if (act === 'key') await store.updateKey(keys[which % 2]!, { budget: { nanos: 10n ** 9n, per } })
          else await store.updateAccount(id, { budget: act === 'clear' ? null : { nanos: 10n ** 9n, per } })
        }
        assert.deepEqual(await verify(store), [])
      }),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 15 : 6) },
    )
  })
})
