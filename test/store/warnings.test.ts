import assert from 'node:assert/strict'
import test from 'node:test'
import { onEachStore } from './engines.ts'
import { costNanos, createDebitRow, verifyOptions } from './fixtures.ts'

const noon = Date.parse('2026-11-22T12:00:00Z')
const dayMs = 86_400_000

onEachStore((engine) => {
  async function open(creditNanos: bigint, budgetNanos?: bigint) {
    const store = await engine.open({ atMs: noon })
    const { id } = await store.createAccount('one', creditNanos)
    const wishes = budgetNanos === undefined ? {} : { budget: { nanos: budgetNanos, per: 'day' as const } }
    const { id: keyId } = await store.createKey(id, wishes)
    let count = 0
    const post = (debits = 1) =>
      store.postDebits(Array.from({ length: debits }, () => ({ ...createDebitRow(`req_${++count}`, id), keyId })))
    /** All that is due, each taken and over. */
    const told = async () => {
      const warnings = await store.takeWarnings(60_000, 100)
      for (const warning of warnings) await store.settleWarning(warning.id, undefined)
      return warnings.map(({ event, data }) => ({ event, ...data }))
    }
    return { store, id, keyId, post, told }
  }

  test('X15 a balance that falls below a line warns once, in the commit of the debit, until it falls again', async () => {
    const { store, id, post, told } = await open(5n * costNanos)
    await store.watch({ lowNanos: [1n, 3n * costNanos], ownLows: false, budgets: false })
    await post(2)
    assert.deepEqual(await told(), [])
    await post()
    const low = { event: 'credit_low', account: id, below_nanos: `${3n * costNanos}` }
    assert.deepEqual(await told(), [{ ...low, balance_nanos: `${2n * costNanos}` }])
    await post()
    assert.deepEqual(await told(), [])
    // Credit that leads above it arms it again, and one commit may cross both.
    await store.credit(id, 3n * costNanos, 'invoice 1')
    await post(4)
    assert.deepEqual((await told()).map((one) => ('below_nanos' in one ? one.below_nanos : '')).toSorted(), [
      '1',
      `${3n * costNanos}`,
    ])
    // A correction by an operator crosses it too, whichever operator books it.
    await store.credit(id, 9n * costNanos, 'invoice 2')
    await (await store.beside()).credit(id, -8n * costNanos, 'correction')
    assert.equal((await told()).length, 1)
    await store.watch({ lowNanos: [], ownLows: false, budgets: false })
    await store.credit(id, -costNanos, 'correction 2')
    assert.deepEqual([await told(), await store.verify(verifyOptions)], [[], []])
  })

  test('X15 Y15 a warning has the time of the clock, even if the entries of its account are dated ahead', async () => {
    const { store, id, post } = await open(10n * costNanos, 3n * costNanos)
    await store.watch({ lowNanos: [10n * costNanos], ownLows: false, budgets: true })
    await store.turn(noon + 40 * dayMs)
    await store.confirmClock()
    await store.credit(id, 1n, 'ahead')
    await store.turn(noon + 60_000)
    await post(3)
    const warnings = await store.takeWarnings(60_000, 10)
    assert.deepEqual(
      warnings.map(({ event, atMs }) => [event, atMs]).toSorted(),
      ['credit_low', 'key_budget_80', 'key_budget_spent'].map((event) => [event, noon + 60_000]),
    )
  })

  test('X15 Y20 a grant and a lapse are judged as one change: by the balance before and after both', async () => {
    const store = await engine.open({ atMs: noon })
    const { id } = await store.createAccount('one', 0n)
    await store.watch({ lowNanos: [50n, 150n], ownLows: true, budgets: false })
    await store.updateAccount(id, { grant: { nanos: 100n, lapses: true } })
    const told = async () => {
      const warnings = await store.takeWarnings(60_000, 100)
      for (const warning of warnings) await store.settleWarning(warning.id, undefined)
      return warnings.map(({ data }) => data)
    }
    const months: [grant: bigint, warn: bigint[] | undefined, below: string[]][] = [
      [100n, undefined, []],
      [100n, [40n, 120n], []],
      // The change as a whole leads below 50, and names the balance after it.
      [30n, undefined, ['50']],
      [300n, undefined, []],
      [100n, [250n], ['250']],
    ]
    for (const [at, [nanos, warn, below]] of months.entries()) {
      await store.updateAccount(id, { grant: { nanos, lapses: true }, warnNanos: warn ?? null })
      await store.turn(Date.UTC(2026, 11 + at, 15))
      assert.equal(await store.grant(id), true)
      const { balanceNanos } = await store.findAccount(id)
      assert.equal(balanceNanos, nanos)
      assert.deepEqual(
        (await told()).map((data) => [data['below_nanos'], data['balance_nanos']]),
        below.map((line) => [line, `${nanos}`]),
      )
    }
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('X15 R15 a budget warns at four fifths and when it is spent, once per window', async () => {
    const { store, keyId, post, told } = await open(10n ** 12n, 5n * costNanos)
    await store.watch({ lowNanos: [], ownLows: false, budgets: true })
    await post(3)
    assert.deepEqual(await told(), [])
    await post()
    const untilMs = Date.parse('2026-11-23T00:00:00Z')
    const of = { key: keyId, budget_nanos: `${5n * costNanos}`, per: 'day', until_ms: untilMs }
    assert.deepEqual(await told(), [{ event: 'key_budget_80', ...of, spent_nanos: `${4n * costNanos}` }])
    // An amount that is returned and spent again is not another crossing.
    await store.giveBack(['req_4'])
    await post(3)
    assert.deepEqual(await told(), [{ event: 'key_budget_spent', ...of, spent_nanos: `${5n * costNanos}` }])
    await post()
    assert.deepEqual(await told(), [])
    await store.turn(untilMs)
    await post(9)
    assert.deepEqual((await told()).map(({ event }) => event).toSorted(), ['key_budget_80', 'key_budget_spent'])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('X15 R15 after a change of a budget, earlier spending causes no warning; later spending does', async () => {
    const { store, keyId, post, told } = await open(10n ** 12n, 5n * costNanos)
    await store.watch({ lowNanos: [], ownLows: false, budgets: true })
    await post(4)
    await told()
    await store.updateKey(keyId, { budget: { nanos: 10n * costNanos, per: 'day' } })
    await post(3)
    assert.deepEqual(await told(), [])
    await post()
    assert.equal((await told())[0]?.event, 'key_budget_80')
    await store.updateKey(keyId, { budget: { nanos: 2n * costNanos, per: 'day' } })
    await post()
    assert.deepEqual(await told(), [])
    await store.updateKey(keyId, { budget: { nanos: 20n * costNanos, per: 'month' } })
    await post(7)
    assert.deepEqual(
      (await told()).map(({ event }) => event),
      ['key_budget_80'],
    )
  })

  test('X15 a warning is leased to one server, until the lease ends or a try fails, and is removed once sent', async () => {
    const { store, post } = await open(costNanos)
    await store.watch({ lowNanos: [1n], ownLows: false, budgets: true })
    await post()
    const other = await store.beside()
    const [warning] = await store.takeWarnings(60_000, 10)
    assert.deepEqual([warning?.event, warning?.tries], ['credit_low', undefined])
    assert.deepEqual(await other.takeWarnings(60_000, 10), [])
    await store.settleWarning(warning!.id, { tries: 'a canary', afterMs: 30_000 })
    await store.turn(noon + 29_999)
    assert.deepEqual(await other.takeWarnings(60_000, 10), [])
    await store.turn(noon + 30_000)
    assert.equal((await other.takeWarnings(60_000, 10))[0]?.tries, 'a canary')
    // Whoever had it is gone.
    await store.turn(noon + 90_000)
    const [again] = await store.takeWarnings(60_000, 10)
    assert.equal(again?.id, warning?.id)
    await store.settleWarning(again!.id, undefined)
    await store.turn(noon + 900_000)
    assert.deepEqual(await store.takeWarnings(60_000, 10), [])
  })

  test('X15 Y15 a warning that was put off by a clock that was ahead is due when the clock is right again', async () => {
    for (const aheadMs of [1.5 * dayMs, 8 * 3_600_000]) {
      const { store, post } = await open(costNanos)
      await store.watch({ lowNanos: [1n], ownLows: false, budgets: false })
      await post()
      await store.turn(noon + aheadMs)
      const [warning] = await store.takeWarnings(60_000, 10)
      await store.settleWarning(warning!.id, { tries: 'a canary', afterMs: 30_000 })
      await store.turn(noon + 60_000)
      assert.equal((await store.takeWarnings(60_000, 10))[0]?.tries, 'a canary', `${aheadMs}`)
    }
  })
})
