import assert from 'node:assert/strict'
import { StatementSync } from 'node:sqlite'
import test from 'node:test'
import fc from 'fast-check'
import { BookError } from '../../src/accounts/book-error.ts'
import type { Zone } from '../../src/accounts/calendar.ts'
import { personBounds } from '../../src/accounts/key-bounds.ts'
import { atEnd } from '../support/at-end.ts'
import { openStore } from '../support/operator.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { costNanos, createDebitRow, createPath, verifyOptions } from './fixtures.ts'

/* Bounds of a person over all their keys (ruling Y20), on both stores. */

const at = (text: string) => Date.parse(text)
const noon = at('2026-11-22T12:00:00Z')
const berlin: Zone = { timeZone: 'Europe/Berlin', weekStarts: 'monday' }
const monthly = { nanos: 5n * costNanos, per: 'month' } as const
const november = { fromMs: at('2026-10-31T23:00:00Z'), untilMs: at('2026-11-30T23:00:00Z') }

onEachStore((engine) => {
  async function open() {
    const store = await engine.open({ atMs: noon, zone: berlin })
    const { id } = await store.createAccount('one', 10n ** 12n)
    await store.createAccount('two', 10n ** 12n)
    const person = (await store.createPerson({ name: 'Ada', externalId: 'ada', account: 'one', budget: monthly })).id
    let count = 0
    /** Debits as the server makes them: each names a key and the person whose it was. */
    const post = (debits = 1, whose: string | null = person, accountId = id) =>
      store.postDebits(
        Array.from({ length: debits }, () => ({
          ...createDebitRow(`req_${++count}`, accountId),
          ...(whose !== null && { details: { person: whose } }),
        })),
      )
    const spent = async (whose = person) => (await store.findPerson(whose)).spend
    return { store, id, person, post, spent, posted: () => count }
  }

  const verify = (store: TestStore) => store.verify(verifyOptions)
  const rejects = (work: Promise<unknown>, code: string) =>
    assert.rejects(work, (error) => error instanceof BookError && error.code === code)

  test('Y20 spending of a person is counted over all their keys, in the month of the reporting zone', async () => {
    const { store, id, person, post, spent } = await open()
    assert.deepEqual(await spent(), { ...november, spentNanos: 0n })
    await post(4)
    await post(2, null)
    await store.giveBack(['req_2'])
    await store.credit(id, 10n ** 9n, 'a top-up is no spending')
    assert.deepEqual(await spent(), { ...november, spentNanos: 3n * costNanos })
    const key = await store.createKey(id, { person })
    const [row] = await store.findKeys(key.id)
    assert.deepEqual([row!.personBounds.budget, row!.personSpend], [monthly, await spent()])
    const next = await store.rotateKey(key.id, 0)
    assert.deepEqual((await store.findKeys(next.id))[0]!.personSpend?.spentNanos, 3n * costNanos)
    await store.revokeKey(next.id)
    assert.equal((await spent())?.spentNanos, 3n * costNanos, 'the person has no key, and has spent it')
    await store.turn(november.untilMs)
    await post(1)
    assert.equal((await spent())?.spentNanos, costNanos)
    assert.deepEqual(await verify(store), [])
  })

  test('Y20 a person’s budget that is set later counts what the window has spent; once removed it is no longer counted', async () => {
    const { store, person, post, spent } = await open()
    await store.updatePerson(person, { budget: null })
    assert.deepEqual([await spent(), await verify(store)], [undefined, []])
    await post(7)
    await store.updatePerson(person, { budget: { nanos: 1n, per: 'day' } })
    assert.equal((await spent())?.spentNanos, 7n * costNanos)
    await post(1)
    await store.updatePerson(person, { budget: { nanos: 2n, per: undefined } })
    assert.equal((await spent())?.spentNanos, 8n * costNanos)
    assert.deepEqual(await verify(store), [])
  })

  test('Y20 Y21 two identities of a person share one budget, with the entries of both; an erased person is not counted', async () => {
    const { store, person, post, spent } = await open()
    const other = (await store.createPerson({ name: 'Bo', externalId: 'bo', account: 'one' })).id
    await store.updatePerson(other, { budget: { nanos: 7n, per: 'day' }, requestsPerMinute: 9 })
    await post(2, other)
    await post(1)
    const linked = await store.linkPersons(person, other)
    assert.deepEqual(linked.bounds, { budget: monthly, requestsPerMinute: 9 })
    assert.equal((await spent())?.spentNanos, 3n * costNanos)
    await post(2, other)
    assert.equal((await spent('bo'))?.spentNanos, 5n * costNanos)
    assert.deepEqual(await verify(store), [])
    await store.erasePerson(other)
    await post(1)
    assert.deepEqual(await verify(store), [])
  })

  test('Y20 a person with bounds belongs to one account; in another one the count begins with their spending there', async () => {
    const { store, person, post, spent } = await open()
    const two = (await store.findAccount('two')).id
    await post(3)
    await post(1, person, two)
    await rejects(store.updatePerson(person, { account: null }), 'person_unbound')
    await rejects(store.createPerson({ name: 'Cy', requestsPerMinute: 3 }), 'person_unbound')
    await store.createPerson({ name: 'Di', account: 'one', budget: monthly })
    await store.updatePerson(person, { account: 'two' })
    assert.equal((await spent())?.spentNanos, costNanos)
    await post(1)
    assert.equal((await spent())?.spentNanos, costNanos, 'a request that began before')
    await post(1, person, two)
    assert.equal((await spent())?.spentNanos, 2n * costNanos)
    assert.deepEqual(await verify(store), [])
    await store.updatePerson(person, { account: null, budget: null })
    assert.deepEqual([await spent(), await verify(store)], [undefined, []])
  })

  test('Y20 a list imports budgets of people, and a second import changes nothing; earlier spending is counted', async () => {
    const { store, post, spent } = await open()
    await store.createPerson({ name: 'Bo', externalId: 'bo', account: 'one' })
    await post(2, (await store.findPerson('bo')).id)
    const budget = { nanos: 9n, per: 'week' } as const
    const lines = ['ada', 'bo', 'cy'].map((externalId, line) => ({ line, externalId, account: 'one', budget }))
    assert.deepEqual(await store.importPersons(lines), { created: 1, changed: 2, unchanged: 0 })
    assert.deepEqual(await store.importPersons(lines), { created: 0, changed: 0, unchanged: 3 })
    const sums = await Promise.all(['ada', 'bo', 'cy'].map(async (one) => (await spent(one))?.spentNanos))
    assert.deepEqual(sums, [0n, 2n * costNanos, 0n])
    const wrong = store.importPersons([{ line: 7, externalId: 'dy', budget }])
    await assert.rejects(wrong, (error) => error instanceof BookError && error.line === 7)
    assert.deepEqual(await verify(store), [])
  })

  test('Y20 C15 verify finds spending of a person that differs from the sum of their entries', async () => {
    const { store, person, post } = await open()
    await post(2)
    await store.forge((forger) => forger.run(`UPDATE spends SET spent = 1 WHERE scope = '${person}'`))
    assert.deepEqual(await verify(store), [
      `person ${person}: has spent 1 of its budget, its entries sum to ${2n * costNanos}`,
    ])
    await store.forge((forger) => forger.run(`DELETE FROM spends WHERE scope = '${person}'`))
    assert.deepEqual(await verify(store), [`person ${person}: has a budget, and what it spends is not counted`])
  })

  test('Y20 X15 the budget of a person warns once at four fifths and once when it is spent', async () => {
    const { store, person, post } = await open()
    await store.watch({ lowNanos: [], ownLows: false, budgets: true })
    const told = async () => {
      const warnings = await store.takeWarnings(1_000, 100)
      for (const warning of warnings) await store.settleWarning(warning.id, undefined)
      return warnings.map(({ event, data }) => ({ event, ...data }))
    }
    await post(4)
    const facts = { person, budget_nanos: `${5n * costNanos}`, per: 'month', until_ms: november.untilMs }
    assert.deepEqual(await told(), [{ event: 'person_budget_80', ...facts, spent_nanos: `${4n * costNanos}` }])
    await post(3)
    assert.deepEqual(
      (await told()).map(({ event }) => event),
      ['person_budget_spent'],
    )
  })

  test('Y20 Y15 the budget of a person whose entries were dated ahead is recounted when times are corrected', async () => {
    const { store, post, spent } = await open()
    await store.turn(noon + 400 * 86_400_000)
    await post(2)
    await store.turn(noon)
    await store.as({ actor: 'tester', expectedMs: noon }).correctAhead(noon)
    assert.deepEqual((await spent())?.untilMs, november.untilMs)
    assert.deepEqual(await verify(store), [])
  })

  test('Y20 bounds of a person are in their version and the audit, and are read back as they were set', async () => {
    const { store, person } = await open()
    const rows = () => store.listAudit({ limit: 1 })
    await store.as({ actor: 'tester' }).updatePerson(person, { requestsPerMinute: 7 })
    const { bounds } = await store.findPerson(person)
    assert.deepEqual(bounds, { budget: monthly, requestsPerMinute: 7 })
    assert.deepEqual(JSON.parse((await rows())[0]!.after!), { rpm: 7 })
    const stale = store.as({ actor: 'tester', version: 'another' }).updatePerson(person, { requestsPerMinute: 8 })
    await rejects(stale, 'stale')
    const [paged] = await store.pagePersons({ limit: 1 })
    assert.deepEqual(paged!.spend?.spentNanos, 0n)
    await store.erasePerson(person)
    assert.deepEqual(
      await store.change({
        about: { persons: 'all' },
        decide: ({ persons }) => ({ writes: [], result: persons.map((one) => [one.bounds, one.spend]) }),
      }),
      [[personBounds.none, undefined]],
    )
  })

  const step = fc.record({
    act: fc.constantFrom(
      'post',
      'post',
      'post',
      'return',
      'budget',
      'clear',
      'link',
      'erase',
      'import',
      'move',
      'later',
    ),
    which: fc.nat(9),
    per: fc.constantFrom('day', 'week', 'month', undefined),
  })

  test('Y20 spending of a person is the sum of their entries of its window, for any debits, returns, changes and times', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 16 }), async (steps) => {
        const { store, id, person, post, posted } = await open()
        const two = (await store.findAccount('two')).id
        const bo = (await store.createPerson({ externalId: 'bo', account: 'one', budget: monthly })).id
        const ids = [person, bo]
        let ms = noon
        for (const { act, which, per } of steps) {
          const name = ['ada', 'bo'][which % 2]!
          const budget = { nanos: 10n ** 9n, per }
          if (act === 'later') ms += which * 3_600_000 * 11
          if (act === 'later') await store.turn(ms)
          else if (act === 'post') await post(1 + (which % 3), ids[which % ids.length], which < 7 ? id : two)
          else if (act === 'return') await store.giveBack([`req_${1 + (which % Math.max(1, posted()))}`])
          else if (act === 'import') await store.importPersons([{ line: 1, externalId: name, account: 'one', budget }])
          else {
            const known = await store.findPerson(name).catch(() => undefined)
            if (!known) continue
            if (act === 'budget') await store.updatePerson(name, { account: known.accountId ?? 'one', budget })
            else if (act === 'clear') await store.updatePerson(name, { budget: null })
            else if (act === 'move') await store.updatePerson(name, { account: which < 5 ? 'one' : 'two' })
            else if (act === 'erase') await store.erasePerson(name)
            else await store.linkPersons('ada', 'bo').catch(() => {})
          }
        }
        assert.deepEqual(await verify(store), [])
      }),
      { numRuns: runsUpTo(engine.name === 'SQLite' ? 20 : 8) },
    )
  })
})

test('Y20 a debit with a person runs no more statements than one without, while no person of the account has a budget', () => {
  const store = openStore(createPath())
  atEnd(() => store.close())
  const { id } = store.createAccount('one', 10n ** 12n)
  let [count, statements] = [0, 0]
  const methods = StatementSync.prototype as unknown as Record<string, (...values: unknown[]) => unknown>
  for (const name of ['run', 'get', 'all']) {
    const plain = methods[name]!
    methods[name] = function (this: StatementSync, ...values) {
      statements++
      return plain.apply(this, values)
    }
    atEnd(() => {
      methods[name] = plain
    })
  }
  const cost = (details: object) => {
    store.postDebits([{ ...createDebitRow(`req_${++count}`, id), ...details }])
    const before = statements
    store.postDebits([{ ...createDebitRow(`req_${++count}`, id), ...details }])
    return statements - before
  }
  const [labeled, owned] = [cost({ details: { labels: 'a=b' } }), cost({ details: { person: 'per_1', labels: 'a=b' } })]
  assert.ok(labeled > 0)
  assert.equal(owned, labeled)
  // A write by another connection makes this one read everything again, which costs both more.
  const other = store.createAccount('two')
  const anew = (details: object) => {
    store.updateAccount(other.id, { name: `n${++count}` })
    const before = statements
    store.postDebits([{ ...createDebitRow(`req_${++count}`, id), details }])
    return statements - before
  }
  assert.equal(anew({ person: 'per_2', labels: 'a=b' }), anew({ labels: 'a=b' }))
})
