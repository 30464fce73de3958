import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { BookError } from '../../src/accounts/book-error.ts'
import { createCalendar, type Zone } from '../../src/accounts/calendar.ts'
import { postGrant } from '../../src/accounts/post-grant.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore } from './engines.ts'
import { createDebitRow, verifyOptions } from './fixtures.ts'

/* Monthly grants (law 13 of the books of credit): one in a month, and the rest of it lapses before bought credit does. */

const credits = (count: number) => BigInt(count) * 10n ** 9n
const berlin: Zone = { timeZone: 'Europe/Berlin', weekStarts: 'monday' }
const november = Date.parse('2026-11-22T12:00:00Z')
/** The first moment of December in Berlin. */
const december = Date.parse('2026-11-30T23:00:00Z')
const january = Date.parse('2026-12-31T23:00:00Z')

onEachStore((engine) => {
  async function open(lapses = true, bought = 0) {
    const store = await engine.open({ atMs: november, zone: berlin })
    const { id } = await store.createAccount('one', credits(bought))
    await store.updateAccount(id, { grant: { nanos: credits(100), lapses } })
    let count = 0
    const spend = (amount: number) =>
      store.postDebits([{ ...createDebitRow(`req_${++count}`, id), amountNanos: credits(amount) }])
    const balance = async () => (await store.findAccount(id)).balanceNanos / 10n ** 9n
    const booked = async () => {
      const entries = await store.listEntries({ limit: 100, first: 'oldest' })
      const told = entries.map(({ reference, amountNanos }) => [reference?.replace(id, 'A'), amountNanos / 10n ** 9n])
      return told.filter(([reference]) => reference !== undefined && reference !== 'create:A')
    }
    return { store, id, spend, balance, booked }
  }

  test('law 13 the first grant is given when it is set, the next in the next month of the reporting zone, each once', async () => {
    const { store, id, balance, booked } = await open(false)
    assert.equal(await balance(), 100n)
    for (const ms of [november, december - 1]) {
      await store.turn(ms)
      assert.equal(await store.grant(id), false)
    }
    await store.turn(december)
    assert.deepEqual([await store.grant(id), await store.grant(id), await balance()], [true, false, 200n])
    // Nobody came for months: one grant, for the month that is.
    await store.turn(Date.parse('2027-05-03T00:00:00Z'))
    assert.equal(await store.grant(id), true)
    assert.deepEqual(await booked(), [
      ['grant:A/2026-11', 100n],
      ['grant:A/2026-12', 100n],
      ['grant:A/2027-05', 100n],
    ])
    const [audit] = await store.listAudit({ limit: 1 })
    assert.equal(audit!.operation, 'account.grant')
    // A clock that was set back gives nothing again.
    await store.turn(december)
    assert.equal(await store.grant(id), false)
  })

  for (const [name, bought, spent, correction, lapse] of [
    ['nothing was spent', 50, 0, 0, 100n],
    ['a part was spent: the grant is used before what was bought', 50, 30, 0, 70n],
    ['more was spent than the grant', 50, 120, 0, undefined],
    ['a correction took the rest', 0, 30, -50, 20n],
    ['the balance is below zero', 0, 150, 0, undefined],
  ] as const)
    test(`law 13 the rest of a grant lapses with its month: ${name}`, async () => {
      const { store, id, spend, balance, booked } = await open(true, bought)
      if (spent > 0) await spend(spent)
      if (correction !== 0) await store.credit(id, credits(correction), 'correction')
      await store.turn(december)
      const before = await balance()
      assert.equal(await store.grant(id), true)
      const lapsed = (await booked()).find(([reference]) => reference === 'lapse:A/2026-11')
      assert.equal(lapsed?.[1], lapse === undefined ? undefined : -lapse)
      assert.equal(await balance(), before + 100n - (lapse ?? 0n))
    })

  test('law 13 C13 a returned debit counts as not spent', async () => {
    const { store, id, spend, booked } = await open(true, 50)
    await spend(60)
    await store.giveBack(['req_1'])
    await store.turn(december)
    await store.grant(id)
    assert.deepEqual((await booked()).at(-1), ['lapse:A/2026-11', -100n])
  })

  for (const lapses of [true, false])
    test(`law 13 C13 the return of a debit from before the grant is not part of the grant, lapse set ${lapses ? 'before' : 'after'}`, async () => {
      const { store, id, spend, balance, booked } = await open(lapses, 100)
      await store.updateAccount(id, { grant: { nanos: credits(100), lapses: true } })
      // The lapse of November's grant comes in December, and leaves the balance at 200 with what was bought.
      await spend(150)
      await store.turn(december)
      await store.grant(id)
      assert.equal(await balance(), 150n)
      await spend(60)
      await store.giveBack(['req_1'])
      await spend(10)
      await store.giveBack(['req_3'])
      await store.turn(january)
      await store.grant(id)
      assert.deepEqual([(await booked()).at(-1), await balance()], [['lapse:A/2026-12', -40n], 300n])
    })

  test('law 13 a negative credit is taken from the grant first, and another credit takes nothing from it', async () => {
    const { store, id, balance } = await open(true, 50)
    await store.credit(id, credits(-100), 'correction')
    await store.credit(id, credits(30), 'invoice')
    await store.turn(december)
    await store.grant(id)
    assert.equal(await balance(), 180n)
    // The lapse of one grant is no correction of the next: each lapses whole.
    for (const ms of [january, Date.UTC(2027, 1, 2)]) {
      await store.turn(ms)
      await store.grant(id)
      assert.equal(await balance(), 180n)
    }
  })

  test('law 13 a lapse that is set during a grant takes no purchased credit', async () => {
    const { store, id, spend, balance } = await open(false, 100)
    await spend(100)
    const base = await store.sumGrant(id)
    await store.updateAccount(id, { grant: { nanos: credits(100), lapses: true } })
    await store.turn(december)
    const calendar = createCalendar(berlin)
    assert.equal(await store.change(postGrant(id, calendar, base)), 'again')
    const summed = await store.sumGrant(id)
    const ofAnother = { ...summed!, reference: `${summed!.reference}/2` }
    assert.equal(await store.change(postGrant(id, calendar, ofAnother)), 'again')
    assert.equal(await store.change(postGrant(id, calendar, summed)), 'posted')
    assert.equal(await balance(), 200n)
  })

  test('law 13 C1 a grant that the account cannot hold is refused like any credit', async () => {
    const { store, id } = await open(true, 9_223_371_936)
    await store.turn(december)
    await assert.rejects(store.grant(id), (error) => error instanceof BookError && error.code === 'overflow')
    assert.equal((await store.findAccount(id)).balanceNanos, credits(9_223_372_036))
  })

  test('law 13 several simultaneous calls grant once', async () => {
    const { store, id, balance } = await open(true, 0)
    const others = [await store.beside(), await store.beside()]
    await store.turn(december)
    const all = await Promise.all([store, ...others, store].map((one) => one.grant(id)))
    assert.deepEqual([all.filter(Boolean).length, await balance()], [1, 100n])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  for (const lapses of [true, false])
    test(`Y20 C15 after a clock that was ahead is corrected, each month gets its grant ${lapses ? 'with' : 'without'} lapse`, async () => {
      const { store, id, spend, booked } = await open(lapses, 0)
      const { id: other } = await store.createAccount('new', credits(1))
      // In February by a wrong clock.
      await store.turn(Date.UTC(2027, 1, 20))
      await store.confirmClock()
      assert.equal(await store.grant(id), true)
      await store.updateAccount(other, { grant: { nanos: credits(100), lapses } })
      await spend(10)
      await store.turn(november + 3_600_000)
      assert.equal(await store.grant(id), false)
      await store.correctAhead(november)
      // November's is there already; the other account never had one.
      assert.deepEqual([await store.grant(id), await store.grant(other)], [false, true])
      for (const month of [1, 2, 3]) {
        await store.turn(Date.UTC(2026, 10 + month, 20))
        for (const accountId of [id, other]) {
          assert.equal(await store.grant(accountId), true)
          assert.equal(await store.grant(accountId), false)
        }
      }
      const grants = (await booked()).filter(([reference]) => `${reference}`.startsWith('grant:A'))
      assert.deepEqual(grants.map(([reference]) => reference).toSorted(), [
        'grant:A/2026-11',
        'grant:A/2026-12',
        'grant:A/2027-01',
        'grant:A/2027-02',
        'grant:A/2027-02/2',
      ])
      if (lapses) assert.equal((await store.findAccount(id)).balanceNanos, credits(100))
      assert.deepEqual(await store.verify({ ...verifyOptions, priceNanos: () => credits(10) }), [])
    })

  test('C8 the prefixes are reserved; a reference that was used earlier gets /2, and repeats as before', async () => {
    const { store, id, booked } = await open(true, 0)
    for (const reference of ['grant:x', `lapse:${id}/2026-12`, 'grant:'])
      await assert.rejects(
        store.credit(id, 1n, reference),
        (error: BookError) => error instanceof BookError && error.code === 'reference_reserved',
      )
    // As an earlier triwire booked it.
    for (const reference of [`grant:${id}/2026-12`, `grant:${id}/2026-12/2`, `lapse:${id}/2026-11`])
      await store.change({
        about: {},
        decide: () => ({
          writes: [{ kind: 'post_credit', accountId: id, amountNanos: credits(1), reference }],
          result: undefined,
        }),
      })
    assert.equal(await store.credit(id, credits(1), `grant:${id}/2026-12`), 'exists')
    await store.turn(december)
    assert.equal(await store.grant(id), true)
    assert.deepEqual((await booked()).slice(-2), [
      ['grant:A/2026-12/3', 100n],
      ['lapse:A/2026-11/2', -100n],
    ])
    assert.equal(await store.grant(id), false)
    await store.turn(january)
    assert.equal(await store.grant(id), true)
    assert.deepEqual((await booked()).at(-2), ['grant:A/2027-01', 100n])
  })

  test('a removed grant and a suspended account get nothing; everything else stays', async () => {
    const { store, id, balance } = await open(true, 0)
    await store.updateAccount(id, { grant: null })
    await store.turn(december)
    assert.deepEqual([await store.grant(id), await balance()], [false, 100n])
    await store.updateAccount(id, { state: 'suspended' })
    await store.updateAccount(id, { grant: { nanos: credits(7), lapses: false } })
    assert.deepEqual([await store.grant(id), await balance()], [false, 100n])
    await store.updateAccount(id, { state: 'active' })
    assert.deepEqual([await store.grant(id), await balance()], [true, 107n])
  })

  const step = fc.record({
    act: fc.constantFrom('spend', 'spend', 'credit', 'correct', 'return', 'turn', 'grant', 'twice'),
    amount: fc.integer({ min: 1, max: 130 }),
  })

  test('law 13 after any debits, credits, returns and months the ledger matches that of a separate model', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 20 }), async (steps) => {
        const { store, id, spend, balance } = await open(true, 20)
        const debits: { amount: number; isReturned: boolean; of: number }[] = []
        let [month, granted, used, sum] = [0, 0, 0, 120]
        for (const [at, { act, amount }] of steps.entries()) {
          if (act === 'turn') {
            month++
            await store.turn(Date.UTC(2026, 10 + month, 15))
          } else if (act === 'spend') {
            await spend(amount)
            debits.push({ amount, isReturned: false, of: granted })
            used += amount
            sum -= amount
          } else if (act === 'credit') {
            await store.credit(id, credits(amount), `invoice ${at}`)
            sum += amount
          } else if (act === 'correct') {
            await store.credit(id, credits(-amount), `correction ${at}`)
            used += amount
            sum -= amount
          } else if (act === 'return') {
            const which = amount % Math.max(1, debits.length)
            const debit = debits[which]
            if (!debit) continue
            await store.giveBack([`req_${which + 1}`])
            if (debit.isReturned) continue
            debit.isReturned = true
            if (debit.of === granted) used -= debit.amount
            sum += debit.amount
          } else {
            if (act === 'twice') await Promise.all([store.grant(id), store.grant(id)])
            else await store.grant(id)
            if (granted === month) continue
            sum += 100 - Math.max(0, Math.min(Math.min(100, 100 - used), sum))
            granted = month
            used = 0
          }
        }
        assert.equal(await balance(), BigInt(sum))
      }),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 25 : 6) },
    )
  })
})
