import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import fc from 'fast-check'
import { createCalendar, quarterMs, utc, type Zone } from '../../src/accounts/calendar.ts'
import { nanosMax } from '../../src/accounts/credit.ts'
import type { Entry } from '../../src/accounts/entries.ts'
import { findKeyDifferences } from '../../src/accounts/usage/check.ts'
import {
  type BucketCounts,
  bucketOf,
  encodeCounts,
  percentileError,
  percentileOf,
} from '../../src/accounts/usage/histogram.ts'
import { bucketAt } from '../../src/accounts/usage/plan.ts'
import type { Series, UsageAnswer, UsageQuestion } from '../../src/accounts/usage/question.ts'
import { usualReporting } from '../../src/accounts/usage/reporting.ts'
import { hourAndDayOf, sumColumns } from '../../src/accounts/usage/rollup.ts'
import { createTraffic, type TrafficCell } from '../../src/accounts/usage/traffic.ts'
import { selectTail } from '../../src/store/sql/usage.ts'
import { createDialect, usageDialect } from '../../src/store/sqlite/run.ts'
import { secondRelease } from '../../src/store/sqlite/schema.ts'
import { openStore } from '../../src/store/sqlite/store.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore, openFile, type TestStore } from './engines.ts'
import { createDebitRow, createPath, verifyOptions } from './fixtures.ts'
import {
  type Asking,
  asking,
  berlin,
  boundsOf,
  hourMs,
  isByDays,
  type Post,
  post,
  question,
  startMs,
} from './usage-laws.ts'

/*
 * Figures for reports against the ledger itself (ruling C9): every answer is compared with sums made from all entries, one by one,
 * by a few lines that know nothing of rows, marks or tails.
 */

test('C9: verify accepts a total cost that is limited to 64 bits', () => {
  const sums = (cost: bigint) => Object.fromEntries(sumColumns.map((name) => [name, name === 'cost' ? cost : 0n]))
  const place = { account_id: 'a', key_id: 'k' }
  const rows = (cost: bigint) => [
    { place: { account: 'a', key: 'k' }, sums: sumColumns.map((name) => sums(cost)[name]!) },
  ]
  const entries = [nanosMax - 5n, 9n].map((cost) => ({ ...place, ...sums(cost) }))
  const differ = (cost: bigint) => findKeyDifferences('a', entries, rows(cost), { mark: 2n, seq: 2n })
  assert.deepEqual(differ(nanosMax), [])
  assert.equal(differ(nanosMax - 1n).length, 1)
})

onEachStore((engine) => {
  const numRuns = runsUpTo(engine.name === 'SQLite' ? 25 : 4)

  test('C9: whatever is posted, folded and requested, figures are the sums of the entries, and verify finds nothing', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(post, fc.constantFrom(0, 0, 1, 2, 500)), { minLength: 1, maxLength: 25 }),
        fc.array(asking, { minLength: 3, maxLength: 6 }),
        async (posts, askings) => {
          const { store, accounts } = await openWith(posts)
          const entries: Entry[] = []
          for await (const entry of store.eachEntry()) entries.push(entry)
          for (const one of askings) await compare(store, entries, accounts, one)
          assert.deepEqual(await findingsOf(store), [])
          while (await store.fold(500)) {}
          for (const one of askings) await compare(store, entries, accounts, one)
          assert.deepEqual(await findingsOf(store), [])
          for (const { id } of accounts)
            for (const key of ['0', '1']) await compareSpent(store, entries, id, `${id}/${key}`)
        },
      ),
      { numRuns },
    )
  })

  test('C9: several processes fold at once, and each entry counts once', async () => {
    const store = await engine.open({ atMs: startMs })
    const others = [await store.beside(), await store.beside()]
    const ids: string[] = []
    for (let n = 0; n < 8; n++) ids.push((await store.createAccount(`a${n}`, 1_000_000_000_000n)).id)
    for (let round = 0; round < 4; round++) {
      await store.postDebits(ids.flatMap((id) => [0, 1, 2].map((n) => createDebitRow(`${round} ${id} ${n}`, id))))
      await Promise.all([store, ...others].map((one) => one.fold(5).catch(refuseConflicts)))
    }
    while (await store.fold(7)) {}
    assert.deepEqual((await store.readUsage(question())).total.sums, [[96n], [96n * 630_000n], [9_600n]])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('C9: the figures of all accounts may be larger than what one account can hold', async () => {
    const store = await engine.open({ atMs: startMs })
    const amountNanos = 5n * 10n ** 18n
    for (const [day, name] of ['a', 'b'].entries()) {
      await store.turn(startMs + day * 24 * hourMs)
      const { id } = await store.createAccount(name, amountNanos)
      await store.postDebits([{ ...createDebitRow(name, id), amountNanos }])
    }
    const [from = assert.fail(), to = assert.fail()] = question().bounds
    const costs = async (bounds: number[]) => (await store.readUsage(question({ bounds }))).total.sums[1]
    for (const isFolded of [false, true]) {
      assert.deepEqual(await costs([from, to]), [2n * amountNanos], `folded: ${isFolded}`)
      assert.deepEqual(await costs([from + 1, to]), [2n * amountNanos], `of entries, folded: ${isFolded}`)
      while (await store.fold(500)) {}
    }
  })

  test('C9: an account and a key may spend more than 64 bits can hold, and all accounts are still folded', async () => {
    const store = await engine.open({ atMs: startMs })
    const amountNanos = 5n * 10n ** 18n
    const { id } = await store.createAccount('a', amountNanos)
    const [one, two] = [(await store.createKey(id)).id, (await store.createKey(id)).id]
    const spend = async (requestId: string, keyId: string, nanos: bigint) => {
      await store.postDebits([{ ...createDebitRow(requestId, id), keyId, amountNanos: nanos }])
      while (await store.fold(500)) {}
    }
    for (const [at, keyId] of [one, two].entries()) {
      await store.turn(startMs + at * 24 * hourMs)
      await spend(`req_${at}`, keyId, amountNanos)
    }
    const nowMs = startMs + 24 * hourMs
    assert.deepEqual(await store.rankSpent({ by: 'account', days: 2, nowMs, top: 5 }), [
      { id, nanos: 2n * amountNanos },
    ])
    await store.credit(id, amountNanos, 'more')
    await store.turn(startMs + 48 * hourMs)
    await spend('req_2', one, amountNanos)
    assert.equal(await store.readSpent(id, one), nanosMax)
    const { id: other } = await store.createAccount('b', 10n)
    await store.postDebits([{ ...createDebitRow('req_other', other), amountNanos: 7n }])
    while (await store.fold(500)) {}
    const { folded, entries } = await store.readFolding()
    assert.equal(folded, entries)
  })

  test('C9: one commit may add more to the total of a key than 64 bits can hold', async () => {
    const store = await engine.open({ atMs: startMs })
    const amountNanos = 5n * 10n ** 18n
    const { id } = await store.createAccount('a', amountNanos)
    const { id: keyId } = await store.createKey(id)
    await store.postDebits(
      ['one', 'two'].map((model) => ({ ...createDebitRow(`req_${model}`, id), keyId, amountNanos, model })),
    )
    while (await store.fold(500)) {}
    assert.equal(await store.readSpent(id, keyId), nanosMax)
  })

  if (engine.name === 'SQLite')
    test('C9: entries not folded yet are found by their place, and not among all entries of the requested time', async () => {
      const path = createPath()
      openStore(path).close()
      const db = new DatabaseSync(path)
      const { text, values } = selectTail(createDialect(), usageDialect.tail, { from: 0, to: 1 })
      const steps = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values)
      db.close()
      assert.ok(
        steps.some(({ detail }) => detail === 'SEARCH e USING INTEGER PRIMARY KEY (rowid>?)'),
        JSON.stringify(steps),
      )
    })

  if (engine.name === 'SQLite')
    test('issue 46: a store folded by quarter hours by the previous triwire is folded again, and keeps those quarters', async () => {
      const path = createPath()
      const before = openFile(path)
      const { id } = await before.createAccount('a', 1_000_000_000_000n)
      await before.postDebits([createDebitRow('one', id), createDebitRow('two', id)])
      await before.close()
      const db = new DatabaseSync(path)
      for (const { name } of db
        .prepare(`SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'sums%'`)
        .all())
        db.exec(`DROP TABLE ${name}`)
      db.exec(`INSERT INTO usage_q VALUES (1, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9, 9, 9, 9, 9);
        INSERT INTO usage_marks VALUES ('${id}', 2); UPDATE usage_state SET folded_id = 2`)
      const quarters = () =>
        JSON.stringify([db.prepare('SELECT * FROM usage_q').all(), db.prepare('SELECT * FROM usage_marks').all()])
      const were = quarters()
      const store = openFile(path)
      const asked = question({ bounds: [0, 3_000_000] })
      const expected = [[2n], [1_260_000n], [200n]]
      assert.deepEqual((await store.readUsage(asked)).total.sums, expected)
      while (await store.fold(500)) {}
      assert.deepEqual((await store.readUsage(asked)).total.sums, expected)
      assert.deepEqual(await store.verify(verifyOptions), [])
      assert.equal(quarters(), were)
      assert.equal(db.prepare('PRAGMA user_version').get()!['user_version'], secondRelease)
      db.close()
    })

  if (engine.name === 'SQLite')
    test('C9: the mark of an account decides, whatever was read before', async () => {
      const store = await engine.open({ atMs: startMs })
      const { id } = await store.createAccount('a', 1_000_000_000_000n)
      await store.postDebits([createDebitRow('one', id), createDebitRow('two', id)])
      while (await store.fold(500)) {}
      await store.exec('UPDATE sums_state SET folded_id = 0')
      const expected = [[2n], [1_260_000n], [200n]]
      assert.deepEqual((await store.readUsage(question())).total.sums, expected)
      while (await store.fold(1)) {}
      assert.deepEqual((await store.readUsage(question())).total.sums, expected)
      assert.deepEqual(await store.verify(verifyOptions), [])
    })

  test('C9: a fold continues with other accounts, and does not wait for those that another server has locked', async () => {
    const store = await engine.open({ atMs: startMs })
    const ids: string[] = []
    for (let n = 0; n < 5; n++) ids.push((await store.createAccount(`a${n}`, 1_000_000_000_000n)).id)
    await store.postDebits(ids.flatMap((id) => [0, 1, 2].map((n) => createDebitRow(`${id} ${n}`, id))))
    const folded = async () => (await store.readUsage(question())).total.sums[0]
    // The first entry of each is its credit.
    for (const _ of ids) await store.fold(1)
    if (engine.name === 'PostgreSQL')
      await store.forge(async ({ all }) => {
        const marks = await all('SELECT seq FROM sums_marks FOR UPDATE')
        assert.deepEqual(
          marks.map(({ seq }) => seq),
          ids.map(() => 1n),
        )
        assert.equal(await store.fold(500), false)
      })
    assert.deepEqual(await folded(), [15n])
    let commits = 0
    while (await store.fold(4)) commits++
    assert.ok(commits >= 3, `${commits} commits`)
    assert.deepEqual(await folded(), [15n])
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('C9: a day has its own length in the reporting zone, and another zone remakes the days', async () => {
    const store = await engine.open({ atMs: Date.parse('2026-10-24T22:30:00Z') })
    await store.adoptReporting(berlin)
    const { id } = await store.createAccount('a', 1_000_000_000_000n)
    // In the first and the last hour of a day of 25 hours, and in the first of the next.
    for (const [name, time] of [
      ['first', '2026-10-24T22:30:00Z'],
      ['last', '2026-10-25T22:30:00Z'],
      ['next', '2026-10-25T23:30:00Z'],
    ] as const) {
      await store.turn(Date.parse(time))
      await store.postDebits([createDebitRow(name, id)])
    }
    while (await store.fold(500)) {}
    const days = async (zone: Zone) => (await store.readUsage(byDays(zone, '2026-10-24', '2026-10-27'))).total.sums[0]
    assert.deepEqual(await days(berlin), [0n, 2n, 1n])
    assert.deepEqual(await days({ ...berlin, timeZone: 'UTC' }), [1n, 2n, 0n])
    await store.rezone('Asia/Kolkata')
    assert.deepEqual(await store.verify(verifyOptions), [])
    assert.deepEqual(await days({ ...berlin, timeZone: 'Asia/Kolkata' }), [0n, 1n, 2n])
    assert.deepEqual(await days(berlin), [0n, 2n, 1n])
    // What is folded from now on counts by these days too.
    await store.postDebits([createDebitRow('one more', id)])
    while (await store.fold(500)) {}
    assert.deepEqual(await store.verify(verifyOptions), [])
    assert.deepEqual(await days({ ...berlin, timeZone: 'Asia/Kolkata' }), [0n, 1n, 3n])
  })

  test('C9: expired figures leave the reports but not the spending of a key, and verify takes that into account', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('a', 1_000_000_000_000n)
    await store.postDebits([{ ...createDebitRow('old', id), keyId: 'key_a' }])
    while (await store.fold(500)) {}
    // An entry that is folded only after its day has expired.
    await store.postDebits([{ ...createDebitRow('late', id), keyId: 'key_a', model: 'm-late' }])
    await store.turn(Date.parse('2027-01-05T12:00:00Z'))
    await store.postDebits([{ ...createDebitRow('new', id), keyId: 'key_a' }])
    await store.adoptReporting({ ...usualReporting, keepMonths: 1 })
    const told = async () => {
      const { total, keptFrom } = await store.readUsage(byDays(usualReporting, '2026-10-01', '2027-02-01'))
      return [total.sums[0]!.reduce((a, b) => a + b), new Date(keptFrom * quarterMs).toISOString().slice(0, 10)]
    }
    assert.deepEqual(await told(), [1n, '2026-12-01'])
    assert.ok(await store.pruneSome())
    while (await store.pruneSome()) {}
    assert.deepEqual(await told(), [1n, '2026-12-01'])
    while (await store.fold(500)) {}
    assert.equal(await store.pruneSome(), false, 'no row of a day that is not kept was added')
    assert.ok(!(await store.listModels()).includes('m-late'))
    assert.deepEqual(await told(), [1n, '2026-12-01'])
    assert.equal(await store.readSpent(id, 'key_a'), 1_890_000n)
    assert.deepEqual(await findingsOf(store), [])
  })

  test('C9: verify names the account whose figures differ from the sum of its entries', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('a', 1_000_000_000_000n)
    await store.postDebits([createDebitRow('one', id), createDebitRow('two', id)])
    while (await store.fold(500)) {}
    const forgeries: [sql: string, finding: RegExp][] = [
      [
        'UPDATE sums_h SET cost = cost + 1',
        /^account acct_\w+: its figures for reports of 2026-10-24 \(sums_h\) are not/,
      ],
      ['UPDATE sums_d SET requests = requests + 1', /^account acct_\w+: its figures .* \(sums_d\)/],
      ['UPDATE sums_t SET input_tokens = 0', /^figures for reports of 2026-10-24 are not what the entries sum to/],
      ['UPDATE sums_k SET cost = 0', /^account acct_\w+: the figures of its keys are not/],
      ['UPDATE sums_marks SET seq = seq - 1', /^account acct_\w+: its figures/],
      [
        'UPDATE sums_marks SET seq = seq + 1',
        /^account acct_\w+: its figures for reports go up to entry 4, and it has 3/,
      ],
      ['DELETE FROM sums_h', /\(sums_h\)/],
    ]
    for (const [sql, finding] of forgeries) {
      const [table] = /sums_\w+/.exec(sql)!
      await store.exec(`CREATE TABLE kept_rows AS SELECT * FROM ${table}; ${sql}`)
      const findings = await store.verify(verifyOptions)
      assert.ok(
        findings.some((one) => finding.test(one)),
        `${sql}: ${findings.join('; ')}`,
      )
      await store.exec(`DELETE FROM ${table}; INSERT INTO ${table} SELECT * FROM kept_rows; DROP TABLE kept_rows`)
    }
    assert.deepEqual(await store.verify(verifyOptions), [])
  })

  test('issue 13: percentiles cover all requests of a bucket, those shown, the others, and all together', async () => {
    const store = await engine.open({ atMs: startMs })
    await store.adoptReporting(berlin)
    // By key how long its answers took: merged and not averaged, they are as of one.
    const { id } = await store.createAccount('a')
    const keys = [await store.createKey(id), await store.createKey(id), await store.createKey(id)].map((key) => key.id)
    const tookMs = [Array.from({ length: 200 }, () => 100), Array.from({ length: 10 }, () => 10_000), [60_000]]
    let [nowMs, noted] = [startMs, 0]
    const traffic = createTraffic(() => nowMs)
    for (const [at, times] of tookMs.entries()) {
      for (const endMs of times) {
        nowMs += quarterMs / 10
        const told = {
          walk: 'infer',
          status: 200,
          outcome: 'ok',
          accountId: id,
          keyId: keys[at]!,
          model: 'm',
          firstByteMs: endMs / 10,
        }
        traffic.note({ ...told, endMs })
        if (++noted % 20 === 0) await store.writeTraffic(traffic.take())
      }
    }
    await store.writeTraffic(traffic.take())
    const p = (counts: BucketCounts, share: number) => percentileOf(counts, share)!
    const near = (found: number, ms: number) =>
      assert.ok(Math.abs(found - ms) <= ms * percentileError, `${found} for ${ms}`)
    const bounds = [calendarDay('2026-10-24'), calendarDay('2026-12-15')]
    for (const daysOf of [berlin, undefined]) {
      const answer = await store.readUsage(
        question({
          by: ['key'],
          top: 1,
          sort: 'requests',
          sums: ['requests'],
          times: ['first_byte', 'total'],
          bounds,
          daysOf,
        }),
      )
      const [fast] = answer.groups
      assert.deepEqual([fast!.of, answer.other!.count], [[keys[0]], 2])
      near(p(fast!.times[0]![0]!, 0.99), 10)
      near(p(fast!.times[1]![0]!, 0.99), 100)
      near(p(answer.other!.times[1]![0]!, 0.5), 10_000)
      near(p(answer.other!.times[1]![0]!, 0.99), 60_000)
      near(p(answer.total.times[1]![0]!, 0.5), 100)
      // The average of each one's would be far from it.
      near(p(answer.total.times[1]![0]!, 0.9), 100)
      near(p(answer.total.times[1]![0]!, 0.99), 10_000)
      assert.deepEqual(answer.total.sums, [[211n]])
    }
    await store.rezone('UTC')
    const again = await store.readUsage(
      question({
        ...byDays(utc, '2026-10-20', '2026-12-15'),
        by: ['model'],
        times: ['total'],
        sums: ['requests'],
        sort: 'requests',
      }),
    )
    assert.equal(
      again.groups[0]!.times[0]!.flat().reduce((a, b) => a + b),
      211,
    )
  })

  test('issue 13: whatever is counted and requested, times and free requests are the sums of what was counted', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(counted, { maxLength: 8 }), { minLength: 1, maxLength: 4 }),
        fc.array(asking, { minLength: 2, maxLength: 5 }),
        async (pieces, askings) => {
          const store = await engine.open({ atMs: startMs })
          await store.adoptReporting(berlin)
          const owners: Owner[] = []
          for (const name of ['a', 'b', 'c']) {
            const { id } = await store.createAccount(name)
            owners.push({ account: id, key: (await store.createKey(id)).id })
          }
          for (const cells of pieces) await store.writeTraffic(cells.map((one) => cellOf(one, owners)))
          for (const one of askings) await compareCounted(store, pieces.flat(), one, owners)
        },
      ),
      { numRuns },
    )
  })

  async function openWith(posts: readonly (readonly [Post, number])[]) {
    const store = await engine.open({ atMs: startMs })
    await store.adoptReporting(berlin)
    const accounts = []
    for (const name of ['a', 'b', 'c']) accounts.push(await store.createAccount(name, 1_000_000_000_000n))
    let nowMs = startMs
    for (const [at, [one, folded]] of posts.entries()) {
      nowMs += one.later * hourMs
      await store.turn(nowMs)
      const { id } = accounts[one.account]!
      const requestId = `req_${at}`
      const { model, outcome, upstream } = one
      await store.postDebits([
        { ...createDebitRow(requestId, id), keyId: `${id}/${one.key}`, model, outcome, upstream },
      ])
      if (one.isReturned) await store.giveBack([requestId])
      if (folded > 0) await store.fold(folded)
    }
    return { store, accounts }
  }
})

/** The keys of these debits were never made. */
async function findingsOf(store: TestStore): Promise<string[]> {
  return (await store.verify(verifyOptions)).filter((one) => !one.endsWith('does not exist'))
}

function refuseConflicts(error: { errcode?: number; code?: string }): boolean {
  assert.ok(error.errcode === 5 || error.code === '40P01', `${error}`)
  return true
}

async function compareSpent(
  store: TestStore,
  entries: readonly Entry[],
  accountId: string,
  keyId: string,
): Promise<void> {
  const spent = entries.reduce(
    (sum, entry) => sum + (entry.accountId === accountId && keyOf(entry) === keyId ? costOf(entry) : 0n),
    0n,
  )
  assert.equal(await store.readSpent(accountId, keyId), spent)
}

/** Hours; so long that a month ends in it. */
const laterMax = 200

/** What was counted of requests of one kind. @property later hours since the start @property tookMs of those with an answer */
const counted = fc.record({
  account: fc.nat(2),
  model: fc.constantFrom('m-large', 'm-small'),
  upstream: fc.constantFrom('one', ''),
  code: fc.constantFrom('', 'rate_limited'),
  outcome: fc.constantFrom('ok', 'refused'),
  later: fc.nat(laterMax - 1),
  requests: fc.nat(3),
  moved: fc.nat(2),
  tookMs: fc.array(fc.integer({ min: 1, max: 600_000 }), { maxLength: 5 }),
})

type Counted = typeof counted extends fc.Arbitrary<infer T> ? T : never

type Owner = { account: string; key: string }

function placeOf({ account, model, upstream, code, outcome, later }: Counted, owners: readonly Owner[]) {
  const words = { ...owners[account]!, model, wires: '', upstream, outcome, code }
  return { quarter: Math.floor((startMs + later * hourMs) / quarterMs), ...words }
}

function cellOf(one: Counted, owners: readonly Owner[]): TrafficCell {
  const total = encodeCounts(countsOf(one.tookMs))
  const { requests, moved } = one
  return { place: placeOf(one, owners), requests, moved, first_byte: encodeCounts(countsOf([])), total }
}

function countsOf(times: readonly number[]): BucketCounts {
  const counts: BucketCounts = []
  for (const ms of times) {
    const bucket = bucketOf(ms)
    for (let at = counts.length; at <= bucket; at++) counts.push(0)
    counts[bucket]!++
  }
  return counts
}

/** An answer against the same counts, put together one by one. */
async function compareCounted(
  store: TestStore,
  all: readonly Counted[],
  asked: Asking,
  owners: readonly Owner[],
): Promise<void> {
  const boundsMs = boundsOf(asked, startMs + laterMax * hourMs)
  const asking = question({
    bounds: boundsMs.map((ms) => Math.floor(ms / quarterMs)),
    daysOf: isByDays(asked) ? { timeZone: asked.zone, weekStarts: 'monday' } : undefined,
    ...{ by: asked.by, top: 100 },
    only: {
      ...(asked.model && { model: [asked.model] }),
      ...(asked.account && { account: [owners[asked.account]!.account] }),
    },
    ...{ sums: ['requests', 'moved'], sort: 'requests', times: ['total'] },
  })
  const { groups, total } = await store.readUsage(asking)
  const meant = all.filter(
    (one) => (!asked.model || one.model === asked.model) && (!asked.account || one.account === asked.account),
  )
  const told = (found: readonly Counted[]) =>
    asking.bounds.slice(1).map((_, bucket) => {
      // What costs nothing is counted by hours of the store's zone, whatever is asked for.
      const hourOf = (one: Counted) => hourAndDayOf(placeOf(one, owners).quarter, createCalendar(berlin)).hour
      const within = found.filter((one) => bucketAt(asking.bounds, hourOf(one)) === bucket)
      const requests = within.reduce((sum, one) => sum + BigInt(one.requests), 0n)
      const moved = within.reduce((sum, one) => sum + BigInt(one.moved), 0n)
      return { requests, moved, counts: countsOf(within.flatMap(({ tookMs }) => tookMs)) }
    })
  const answered = ({ sums: [requests, moved], times }: Series) =>
    requests!.map((count, at) => ({ requests: count, moved: moved![at]!, counts: times[0]![at]! }))
  assert.deepEqual(answered(total), told(meant))
  const wordsOf = (one: Counted) => asked.by.map((name) => placeOf(one, owners)[name as 'model']).join()
  const expected = [...Map.groupBy(meant, wordsOf)].map(([of, found]) => ({ of, told: told(found) }))
  const byWords = (a: { of: string }, b: { of: string }) => (a.of < b.of ? -1 : 1)
  const found = groups.map((group) => ({ of: group.of.join(), told: answered(group) }))
  assert.deepEqual(found.sort(byWords), asked.by.length === 0 ? [] : expected.sort(byWords))
}

/** An answer against the same figures, made from all entries. */
async function compare(
  store: TestStore,
  entries: readonly Entry[],
  accounts: readonly { id: string }[],
  asked: Asking,
): Promise<void> {
  const boundsMs = boundsOf(asked, entries.at(-1)!.postedMs + 1)
  const accountId = asked.account === undefined ? undefined : accounts[asked.account]!.id
  const asking = question({
    bounds: boundsMs.map((ms) => Math.floor(ms / quarterMs)),
    daysOf: isByDays(asked) ? { timeZone: asked.zone, weekStarts: 'monday' } : undefined,
    ...{ by: asked.by, top: asked.top },
    only: { ...(asked.model && { model: [asked.model] }), ...(accountId && { account: [accountId] }) },
    sums: ['cost', 'requests', 'errors', 'output_tokens', 'moved'],
  })
  const answer = await store.readUsage(asking)
  const meant = entries.filter(
    (entry) =>
      (!asked.model || originOf(entry)?.model === asked.model) && (!accountId || entry.accountId === accountId),
  )
  const expected = sumUp(meant, asking)
  assert.deepEqual(tell(answer), expected)
}

function tell({ groups, other, total }: UsageAnswer) {
  return {
    groups: groups.map(({ of, sums }) => ({ of, sums })),
    other: other && { count: other.count, sums: other.sums },
    total: total.sums,
  }
}

/** By the plainest way there is. */
function sumUp(entries: readonly Entry[], { bounds, by, top, sums }: UsageQuestion) {
  const empty = () => sums.map(() => bounds.slice(1).map(() => 0n))
  const groups = new Map<string, { of: string[]; sums: bigint[][] }>()
  const total = empty()
  for (const entry of entries) {
    const origin = originOf(entry)
    const bucket = bucketAt(bounds, Math.floor(entry.postedMs / quarterMs))
    if (!origin || bucket === undefined) continue
    const words: Record<string, string> = {
      ...{ account: entry.accountId, key: keyOf(entry) ?? '', model: origin.model, upstream: origin.upstream! },
      ...{ wires: `${origin.clientWire}-to-${origin.modelWire}`, outcome: outcomes.get(requestOf(entry)!)!, code: '' },
    }
    if (entry.bill) outcomes.set(requestOf(entry)!, entry.bill.outcome)
    words['outcome'] = outcomes.get(requestOf(entry)!)!
    const sign = entry.bill ? 1n : -1n
    const values: Record<string, bigint> = {
      ...{ cost: costOf(entry), requests: sign, output_tokens: BigInt(entry.bill?.usage.outputTokens ?? 0) },
      errors: words['outcome'] === 'upstream_cut' ? sign : 0n,
      // Counted beside the ledger.
      moved: 0n,
    }
    const of = by.map((name) => words[name]!)
    const group = groups.get(of.join('\n')) ?? { of, sums: empty() }
    groups.set(of.join('\n'), group)
    for (const [at, name] of sums.entries()) {
      group.sums[at]![bucket]! += values[name]!
      total[at]![bucket]! += values[name]!
    }
  }
  if (by.length === 0) return { groups: [], other: undefined, total }
  const amount = ({ sums }: { sums: bigint[][] }) => sums[0]!.reduce((all, one) => all + one, 0n)
  const sorted = [...groups.entries()].sort(([keyA, a], [keyB, b]) =>
    amount(a) === amount(b) ? (keyA < keyB ? -1 : 1) : amount(a) > amount(b) ? -1 : 1,
  )
  const rest = sorted.slice(top)
  const other = empty()
  for (const [, group] of rest)
    for (const [at, values] of group.sums.entries())
      for (const [bucket, value] of values.entries()) other[at]![bucket]! += value
  return {
    groups: sorted.slice(0, top).map(([, group]) => group),
    other: rest.length === 0 ? undefined : { count: rest.length, sums: other },
    total,
  }
}

const outcomes = new Map<string, string>()

function originOf({ bill, returned }: Entry) {
  return bill ?? returned
}

function keyOf(entry: Entry): string | undefined {
  return originOf(entry)?.keyId
}

function requestOf({ bill, returned }: Entry): string | undefined {
  return (bill ?? returned)?.requestId
}

function costOf({ bill, returned, amountNanos }: Entry): bigint {
  return bill ? amountNanos : returned ? -amountNanos : 0n
}

function calendarDay(date: string): number {
  return createCalendar(berlin).startOf(date) / quarterMs
}

function byDays(zone: Zone, from: string, to: string): UsageQuestion {
  const calendar = createCalendar(zone)
  const bounds = [calendar.startOf(from)]
  while (bounds.at(-1)! < calendar.startOf(to)) bounds.push(calendar.periodOf(bounds.at(-1)!, 'day').endMs)
  return question({ bounds: bounds.map((ms) => ms / quarterMs), daysOf: zone })
}
