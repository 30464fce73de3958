import assert from 'node:assert/strict'
import test from 'node:test'
import { createCalendar, quarterMs, utc } from '../../src/accounts/calendar.ts'
import { type UsageQuestion, unfoldedMax } from '../../src/accounts/usage/question.ts'
import { formatUsage } from '../../src/cli/usage.ts'
import { readFilter } from '../../src/operations/filter.ts'
import type { Context } from '../../src/operations/operation.ts'
import { runningOperations } from '../../src/operations/running.ts'
import { tellUsage } from '../../src/operations/usage-shape.ts'
import type { Statement } from '../../src/store/sql/dialect.ts'
import { createWords } from '../../src/store/sql/words.ts'
import { createDialect } from '../../src/store/sqlite/run.ts'
import { onEachStore, type TestStore } from './engines.ts'
import { createDebitRow } from './fixtures.ts'

const atMs = Date.UTC(2026, 9, 14, 12)
const { startMs, endMs } = createCalendar(utc).periodOf(atMs, 'day')
const ofDay: UsageQuestion = {
  bounds: [startMs / quarterMs, endMs / quarterMs],
  daysOf: utc,
  ...{ by: ['account'], only: {}, sums: ['cost', 'requests'], times: [], top: 5, sort: 'cost' },
}

/** @returns ids of accounts, of which the second one has a third of the debits, at three times the cost */
async function post(store: TestStore, debits: number): Promise<[first: string, second: string]> {
  const [first, second] = [
    await store.createAccount('first', 10n ** 15n),
    await store.createAccount('second', 10n ** 15n),
  ]
  const rows = Array.from({ length: debits }, (_, at) => ({
    ...createDebitRow(`req_${String(at).padStart(8, '0')}`, at % 3 === 2 ? second.id : first.id),
    amountNanos: at % 3 === 2 ? 3n : 1n,
  }))
  for (let at = 0; at < rows.length; at += 2_000) await store.postDebits(rows.slice(at, at + 2_000))
  return [first.id, second.id]
}

/** Signs a person of an account in. @returns the id of the key of their session */
async function signIn(store: TestStore, account: string): Promise<string> {
  const { id, code } = await store.beginGrant({ kind: 'device' })
  await store.decideGrant(id, { issuer: 'https://idp.example', subject: 'u-1', account, role: 'member' })
  const day = 86_400_000
  const redeemed = await store.pollGrant(code, { accessMs: day, idleMs: day, absoluteMs: day })
  assert.ok('session' in redeemed)
  return redeemed.session.keyId
}

onEachStore((engine) => {
  test('CON-10 while much is not folded, reports answer from the folded part and say how much it is, and are exact afterwards', async () => {
    const store = await engine.open({ atMs })
    const debits = unfoldedMax + 1_500
    const [first, second] = await post(store, debits)
    // The first entry of an account is its credit.
    const entries = debits + 2
    const ranking = { by: 'account', days: 1, nowMs: atMs, top: 5 } as const
    assert.deepEqual(await store.readFolding(), { folded: 0, entries })
    const none = await store.readUsage(ofDay)
    assert.deepEqual([none.folding, none.total.sums], [{ folded: 0, entries }, [[0n], [0n]]])
    assert.deepEqual(await store.rankSpent(ranking), [])
    // A question reads none of the many entries, and refuses no model that they may have.
    assert.deepEqual(await store.listModels(), [])
    const ofModel = (model: string) => readFilter({ books: store, calendar: createCalendar(utc) }, { model })
    assert.equal((await ofModel('other')).model, 'other')
    let folded = 0
    for (;;) {
      await store.fold(500)
      const told = await store.readUsage(ofDay)
      if (!told.folding) break
      assert.ok(told.folding.folded > folded && told.folding.folded <= folded + 500)
      folded = told.folding.folded
      const requests = told.total.sums[1]![0]!
      // What is folded and is no credit.
      assert.ok(requests >= folded - 2 && requests <= folded, `${requests} of ${folded}`)
      const ranked = await store.rankSpent(ranking)
      assert.equal(
        ranked.reduce((sum, { nanos }) => sum + nanos, 0n),
        told.total.sums[0]![0],
      )
    }
    assert.ok(entries - folded > unfoldedMax && entries - folded <= unfoldedMax + 500)
    assert.equal((await store.listModels()).length, 1)
    await assert.rejects(ofModel('other'), /no entry of "other"/)
    const exact = await store.readUsage(ofDay)
    const thirds = BigInt(Math.floor(debits / 3))
    const [ofSecond, ofFirst] = [thirds * 3n, BigInt(debits) - thirds]
    assert.deepEqual(exact.total.sums, [[ofFirst + ofSecond], [BigInt(debits)]])
    const expected = [
      { id: second, nanos: ofSecond },
      { id: first, nanos: ofFirst },
    ]
    assert.deepEqual(await store.rankSpent(ranking), expected)
    while (await store.fold(500)) {}
    assert.deepEqual(await store.readFolding(), { folded: entries, entries })
    assert.deepEqual((await store.readUsage(ofDay)).total, exact.total)
    assert.deepEqual(await store.rankSpent(ranking), expected)
  })

  test('SCA-5 a ranking covers the requested days, account and count, whatever is folded', async () => {
    const store = await engine.open({ atMs })
    const keys = new Map<string, bigint>()
    const ofSessions: string[] = []
    const accounts = [await store.createAccount('a', 10n ** 12n), await store.createAccount('b', 10n ** 12n)]
    for (let at = 0; at < 12; at++) {
      const { id: accountId } = accounts[at % 2]!
      const keyId = at === 4 || at === 8 ? await signIn(store, accountId) : (await store.createKey(accountId)).id
      if (at === 4 || at === 8) ofSessions.push(keyId)
      // Equal amounts are in the order of the ids.
      const amountNanos = BigInt(100 + (at % 5))
      await store.postDebits([{ ...createDebitRow(`req_${at}`, accountId), keyId, amountNanos }])
      keys.set(keyId, amountNanos)
      if (at === 5) while (await store.fold(3)) {}
    }
    await store.postDebits([createDebitRow('req_none', accounts[0]!.id)])
    const [last] = keys.keys()
    await store.postDebits([{ ...createDebitRow('req_more', accounts[0]!.id), keyId: last!, amountNanos: 1_000n }])
    keys.set(last!, keys.get(last!)! + 1_000n)
    const all = [...keys].sort(([a, x], [b, y]) => (x === y ? (a < b ? -1 : 1) : x > y ? -1 : 1))
    const ask = async (wanted: Partial<Parameters<typeof store.rankSpent>[0]>) =>
      (await store.rankSpent({ by: 'key', days: 30, nowMs: atMs, top: 99, ...wanted })).map(({ id, nanos }) => [
        id,
        nanos,
      ])
    const owned = new Set((await store.listKeys('b')).map(({ id }) => id))
    for (let isFolded = false; ; isFolded = true) {
      assert.deepEqual(await ask({}), all)
      assert.deepEqual(await ask({ top: 3 }), all.slice(0, 3))
      assert.deepEqual(
        await ask({ accountId: accounts[1]!.id }),
        all.filter(([id]) => owned.has(id)),
      )
      assert.deepEqual(await ask({ accountId: 'none' }), [])
      // Keys of sessions take no places of other keys.
      const lasting = all.filter(([id]) => !ofSessions.includes(id))
      assert.deepEqual(await ask({ isWithoutSessions: true, top: 3 }), lasting.slice(0, 3))
      assert.deepEqual(
        await ask({ isWithoutSessions: true, accountId: accounts[0]!.id }),
        lasting.filter(([id]) => !owned.has(id)),
      )
      assert.deepEqual(await ask({ nowMs: atMs + 31 * 86_400_000 }), [])
      if (isFolded) break
      while (await store.fold(500)) {}
    }
  })
})

test('C9 new words are written in one order, so that two servers that write the same words do not deadlock', () => {
  const places = [
    { model: 'b', upstream: 'y' },
    { model: 'a', upstream: 'x' },
  ].map((place) => ({ place }))
  const written = (rows: typeof places) => {
    const step = createWords(createDialect()).placesOf(rows, ['model', 'upstream'])
    const statements: Statement[] = []
    for (let turn = step.next(); !turn.done; turn = step.next([]))
      if ('text' in turn.value && turn.value.text.startsWith('INSERT')) statements.push(turn.value)
    return statements.flatMap(({ values }) => values)
  }
  for (const rows of [places, places.toReversed()])
    assert.deepEqual(written(rows), ['model', 'a', 'model', 'b', 'upstream', 'x', 'upstream', 'y'])
})

test('CON-10 a status reports how much is folded only while reports leave something out, and waits for no store', async () => {
  const { run } = runningOperations.find(({ id }) => id === 'status')!
  const ask = async (readFolding: () => Promise<unknown>) => {
    const openBooks = async () => ({ readFolding, listArchives: async () => [] })
    const running = { readStatus: async () => ({ version: '1' }), listNeeds: async () => [] }
    const { body } = (await run({ openBooks, running } as unknown as Context, {} as never)) as { body: object }
    const { needs: _, ...status } = body as { needs: unknown }
    return status
  }
  const folding = { folded: 5, entries: unfoldedMax + 6 }
  assert.deepEqual(await ask(async () => folding), { version: '1', folding })
  assert.deepEqual(await ask(async () => ({ ...folding, folded: 6 })), { version: '1' })
  assert.deepEqual(await ask(async () => Promise.reject(new Error('gone'))), { version: '1' })
  assert.deepEqual(await ask(() => new Promise(() => {})), { version: '1' })
})

test('CON-10 figures and a status name the share of the ledger that they cover, for programs and for people', () => {
  const folding = { folded: 619_999, entries: 1_000_000 }
  const answer = { groups: [], other: undefined, total: { sums: [[7n]], times: [] }, keptFrom: 1 }
  const telling = {
    question: { ...ofDay, by: [], sums: ['requests'] as const, sort: 'requests' as const },
    measures: ['requests'] as const,
    ...{ zone: utc, bucket: 'day', buckets: ['2026-10-14'], completeMs: endMs, named: new Map() },
  }
  const told = tellUsage({ ...answer, folding }, telling)
  assert.deepEqual(told.folding, folding)
  assert.match(formatUsage(told), /^\S+ to \S+, days of UTC, of 61 % of the ledger\n/)
  const whole = tellUsage(answer, telling)
  assert.ok(!('folding' in whole) && !formatUsage(whole).includes('%'))
})
