import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { quarterMs } from '../../src/accounts/calendar.ts'
import { usualReporting } from '../../src/accounts/usage/reporting.ts'
import { makeDemoLife } from '../../src/store/demo-life.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { createPath, verifyOptions } from './fixtures.ts'
import { watchNeeds } from './need-watch.ts'

const nowMs = Date.parse('2026-11-27T12:20:00Z')

async function live(seed?: number) {
  const path = createPath()
  await makeDemoLife(path, { nowMs, reporting: usualReporting, ...(seed !== undefined && { seed }) })
  const store = openStore(path, { nowMs: () => nowMs })
  const books = createBooks(store, () => nowMs)
  const totals = await books.sumEntries({}, ['day', 'model'])
  const balances = (await books.listAccounts()).map(({ name, balanceNanos }) => `${name} ${balanceNanos}`)
  return { store, books, totals, balances: balances.toSorted() }
}

/** The usual life, made once. */
let usual: Awaited<ReturnType<typeof live>>
before(async () => {
  usual = await live()
})
after(() => usual.store.close())

test('CON-P7 the books of the demo verify, with 30 days for every plot and list, and lines that need an operator', async () => {
  const { books, totals } = usual
  assert.deepEqual(await books.verify(verifyOptions), [])
  assert.deepEqual((await books.verifyAudit()).findings, [])
  const { folded, entries } = await books.readFolding()
  assert.equal(folded, entries)
  assert.equal(new Set(totals.map(({ dayMs }) => dayMs)).size, 31)
  const bounds = [nowMs - 30 * 86_400_000, nowMs + quarterMs].map((ms) => Math.floor(ms / quarterMs))
  const question = { bounds, daysOf: undefined, only: {}, times: ['first_byte'], top: 9, sort: 'requests' } as const
  const { groups } = await books.readUsage({ ...question, by: ['outcome'], sums: ['requests', 'cost'] })
  const outcomes = new Map(groups.map(({ of, sums }) => [of[0], sums[0]![0]!]))
  assert.ok(outcomes.get('ok')! > 5_000n)
  for (const name of ['client_abort', 'upstream_cut', 'upstream_error', 'refused'])
    assert.ok(outcomes.get(name)! > 0n, name)
  assert.ok(groups.find(({ of }) => of[0] === 'ok')!.times[0]![0]!.length > 0)
  assert.deepEqual(await watchNeeds(books, nowMs).rules(), ['account_dry', 'key_budget_spent', 'spend_leap'])
})

test('CON-P7 the same moment and seed give the same demo data, another seed gives other data', async () => {
  const [one, other, third] = [usual, await live(), await live(8)]
  assert.deepEqual([one.totals, one.balances], [other.totals, other.balances])
  assert.notDeepEqual(one.totals, third.totals)
  for (const { store } of [other, third]) store.close()
})
