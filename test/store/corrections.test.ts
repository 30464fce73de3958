import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type Calendar, createCalendar, utc } from '../../src/accounts/calendar.ts'
import { parseHead } from '../../src/accounts/chain.ts'
import { type Correction, correctTimes, countOf, eachCorrected } from '../../src/accounts/corrections.ts'
import type { AheadPage } from '../../src/accounts/entries.ts'
import { runsUpTo } from '../support/runs.ts'
import { onEachStore, openFile, type TestStore } from './engines.ts'
import { costNanos, createDebitRow, createPath, verifyOptions } from './fixtures.ts'
import { redigest } from './forge.ts'

/*
 * A store that one credit dated ahead by two years, cured (issue 46, point 4; amends C15): entries stay, a correction names them,
 * they count at their effective times, and what follows is posted at the right time again.
 */

const hour = 3_600_000
const day = 24 * hour
/** A Tuesday at noon; the clock is ahead by two years for an hour. */
const startMs = Date.UTC(2026, 9, 6, 12)
const aheadMs = startMs + 730 * day
const calendar: Calendar = createCalendar(utc)

/** Credits and debits before, while and after the clock is ahead. */
async function damage(store: TestStore) {
  const { id: a } = await store.createAccount('one', 50_000_000n)
  const { id: b } = await store.createAccount('two', 50_000_000n)
  const { id: keyId } = await store.createKey(a, { budget: { nanos: 10n ** 12n, per: 'month' } })
  const post = (requestId: string, account: string, createdMs: number) =>
    store.postDebits([{ ...createDebitRow(requestId, account), createdMs, ...(account === a && { keyId }) }])
  await post('req_before', a, startMs)
  const { head } = await store.audit(verifyOptions)
  await store.turn(aheadMs)
  // An operator believes the clock.
  await store.confirmClock()
  await store.credit(a, 5_000_000n, 'invoice ahead')
  await post('req_ahead', a, aheadMs)
  await store.turn(aheadMs + hour)
  await post('req_last', a, aheadMs + hour)
  // The clock is right again: created then, and posted after the entry before it.
  await store.turn(startMs + 2 * day)
  await post('req_right', a, startMs + 2 * day - 1_000)
  await post('req_other', b, startMs + 2 * day - 1_000)
  return { a, b, keyId, post, head: head! }
}

const lastMs = startMs + hour

async function usedOn(store: TestStore, ms: number): Promise<bigint> {
  const day0 = calendar.periodOf(ms, 'day')
  const [total] = await store.sumEntries({ sinceMs: day0.startMs, untilMs: day0.endMs }, [])
  return total!.billedNanos
}

async function foldAll(store: TestStore): Promise<void> {
  while (await store.fold(100));
}

onEachStore((engine) => {
  test('issue 46 C15 a store that one credit dated two years ahead is cured', async () => {
    const store = await engine.open({ atMs: startMs })
    const { a, keyId, post, head } = await damage(store)
    await foldAll(store)
    assert.ok(
      (await store.verify(verifyOptions)).some((finding) => /and that is to come: a clock was ahead/.test(finding)),
    )
    const planned = correctTimes(await store.listAhead(), await store.readNowMs(), lastMs)
    const list = async (correction: Correction) => Array.fromAsync(eachCorrected(store, correction))
    const ahead = await list(planned)
    const corrected = await list(await store.correctAhead(lastMs))
    assert.deepEqual(corrected, ahead, 'the list is the same before and after')
    assert.deepEqual(
      corrected.map(({ name, effectiveMs }) => [name, effectiveMs]),
      [
        // The first two were made an hour before the last one with a wrong time.
        ['invoice ahead', startMs],
        ['req_ahead', startMs],
        ['req_last', lastMs],
        ['req_right', startMs + 2 * day - 1_000],
      ],
    )
    assert.deepEqual(await store.listAhead(), [])
    assert.deepEqual(await store.verify(verifyOptions), [])

    // New entries are posted at the right time, and `posted` has stepped back once.
    await store.turn(startMs + 3 * day)
    await post('req_new', a, startMs + 3 * day)
    assert.equal((await store.findEntry('req_new'))!.postedMs, startMs + 3 * day)
    assert.equal((await store.listEntries({ accountId: a, limit: 2 }))[1]!.details!.effectiveMs, lastMs)

    // Reports, whether folded or not, and the budget of the month.
    for (let folds = 0; folds < 2; folds++) {
      assert.deepEqual(
        [await usedOn(store, startMs), await usedOn(store, startMs + 2 * day), await usedOn(store, startMs + 3 * day)],
        [3n * costNanos, 2n * costNanos, costNanos],
      )
      assert.equal(await usedOn(store, aheadMs), 0n)
      await foldAll(store)
      assert.deepEqual(await store.verify(verifyOptions), [])
    }
    const [days] = [await store.sumEntries({ accountId: a }, ['day'])]
    assert.deepEqual(
      days.map(({ dayMs, billedNanos }) => [(dayMs! - calendar.periodOf(startMs, 'day').startMs) / day, billedNanos]),
      [
        [0, 3n * costNanos],
        [2, costNanos],
        [3, costNanos],
      ],
    )
    const [key] = await store.listKeys(a)
    assert.equal(key!.id, keyId)
    assert.deepEqual([key!.spend!.spentNanos, key!.spend!.untilMs], [5n * costNanos, Date.UTC(2026, 10, 1)])

    // Old heads hold, and new ones cover what was corrected.
    const against = (text: string) => store.audit({ ...verifyOptions, against: parseHead(text) })
    const { findings, head: later } = await against(head)
    assert.deepEqual(findings, [])
    assert.ok(parseHead(later!).momentMs <= startMs + 3 * day)
    await store.turn(startMs + 4 * day)
    await post('req_newer', a, startMs + 4 * day)
    assert.deepEqual((await against(later!)).findings, [])
    await store.forge(async (forger) => {
      await forger.run("UPDATE entries SET model = 'cheap' WHERE request_id = 'req_ahead'")
      await redigest(forger)
    })
    const changed = 'what it covered was changed, or is gone'
    assert.ok((await against(later!)).findings.some((finding) => finding.endsWith(changed)))
    assert.ok(!(await against(head)).findings.some((finding) => finding.endsWith(changed)))
  })

  test('issue 46 C15 after a correction, the entries of a key are listed in the order in which they were posted', async () => {
    const store = await engine.open({ atMs: startMs })
    const { a, keyId, post } = await damage(store)
    await store.correctAhead(lastMs)
    await store.turn(startMs + 3 * day)
    await post('req_new', a, startMs + 3 * day)
    assert.deepEqual(
      (await store.listEntries({ keyIds: [keyId], limit: 9 })).map(({ bill }) => bill!.requestId),
      ['req_new', 'req_right', 'req_last', 'req_ahead', 'req_before'],
    )
  })

  test('issue 46 C15 a head that was taken while the clock was ahead is still valid after the correction', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('one', 50_000_000n)
    await store.turn(aheadMs)
    await store.confirmClock()
    await store.credit(id, 1n, 'ahead')
    const { head } = await store.audit(verifyOptions)
    assert.equal(parseHead(head!).momentMs, aheadMs)
    await store.turn(startMs + day)
    await store.correctAhead(startMs)
    await store.postDebits([createDebitRow('req_1', id)])
    assert.equal((await store.findEntry('req_1'))!.postedMs, startMs + day + 1)
    assert.deepEqual((await store.audit({ ...verifyOptions, against: parseHead(head!) })).findings, [])
  })

  test('issue 46 C15 a head stays valid whenever it was taken, after any number of clock faults and later entries', async () => {
    const story = fc.array(
      fc.oneof(
        { weight: 4, arbitrary: fc.constantFrom('post 0', 'post 1', 'head') },
        { weight: 2, arbitrary: fc.constantFrom('correct', 'ahead 1', 'ahead 30', 'ahead 730') },
      ),
      { minLength: 4, maxLength: 12 },
    )
    const known = [
      // One account has no correction, and goes on.
      ['post 1', 'ahead 730', 'post 0', 'head', 'correct', 'post 1'],
      // A head between two faults, of which the second reaches less far, or further.
      ...[30, 730].map((days) => [
        'ahead 30',
        'post 0',
        'correct',
        `ahead ${days}`,
        'post 0',
        'head',
        'correct',
        'post 1',
      ]),
      ['ahead 730', 'post 0', 'correct', 'ahead 30', 'post 1', 'head', 'post 0', 'correct', 'post 0', 'post 1'],
    ]
    await fc.assert(
      fc.asyncProperty(story, (steps) => holds(steps)),
      { examples: known.map((steps) => [steps]), numRuns: runsUpTo(12) },
    )
  })

  /** Tells a story, and verifies against each head of it. */
  async function holds(steps: readonly string[]): Promise<void> {
    const store = await engine.open({ atMs: startMs })
    const accounts = [await store.createAccount('one', 10n ** 12n), await store.createAccount('two', 10n ** 12n)]
    const heads: string[] = []
    let [nowMs, offsetMs, isWrong] = [startMs, 0, false]
    for (const [at, step] of [...steps, 'correct'].entries()) {
      nowMs += hour
      const [name, which = 0] = [step.split(' ')[0], Number(step.split(' ')[1])]
      if (name === 'ahead') [offsetMs, isWrong] = [which * day, true]
      if (name === 'correct') offsetMs = 0
      await store.turn(nowMs + offsetMs)
      await store.confirmClock()
      const createdMs = nowMs + offsetMs
      if (name === 'post') await store.postDebits([{ ...createDebitRow(`req_${at}`, accounts[which]!.id), createdMs }])
      if (name === 'correct' && isWrong) await store.correctAhead(nowMs)
      if (name === 'head') {
        const { head } = await store.audit(verifyOptions)
        if (head) heads.push(head)
      }
    }
    for (const head of heads)
      assert.deepEqual((await store.audit({ ...verifyOptions, against: parseHead(head) })).findings, [], head)
    await store.close()
  }

  test('issue 46 C15 the head of a statement covers a correction from its creation on, as verify does', async () => {
    const store = await engine.open({ atMs: startMs })
    const { b, post } = await damage(store)
    await store.correctAhead(lastMs)
    // The last entry of one account is the correction, which is dated two years ahead. The other account goes on.
    await store.turn(startMs + 3 * day)
    await post('req_later', b, startMs + 3 * day)
    const heads = await Promise.all([1, 2, 3].map((days) => store.makeHead(startMs + days * day)))
    for (const head of heads)
      assert.deepEqual((await store.audit({ ...verifyOptions, against: parseHead(head) })).findings, [], head)
  })

  test('issue 46 C15 without entries ahead there is nothing to correct, and a time that is itself ahead is refused', async () => {
    const store = await engine.open({ atMs: startMs })
    const { id } = await store.createAccount('one', 5n)
    assert.equal(countOf(await store.correctAhead(startMs)), 0)
    assert.equal((await store.listEntries({ accountId: id, limit: 9 })).length, 1)
    await assert.rejects(store.correctAhead(startMs + 1), /effective_ahead/)
    await assert.rejects(store.credit(id, 1n, `effective:${id}/1-1`), /reference_reserved/)
  })

  test('issue 46 C15 a time before the last correctly dated entry is refused, and nothing is changed', async () => {
    const store = await engine.open({ atMs: startMs })
    await damage(store)
    for (const ms of [startMs - 1, Date.UTC(2016, 9, 6), 0, -1, Date.UTC(1960, 0, 1)])
      await assert.rejects(store.correctAhead(ms), /effective_early: 2026-10-06T12:00/, `${ms}`)
    await assert.rejects(store.correctAhead(startMs + 3 * day), /effective_ahead/)
    assert.equal(countOf({ accounts: await store.listAhead(), nowMs: 0, shiftMs: 0 }), 4)
    // Nothing of the next fault counts before the first one was corrected.
    assert.equal(countOf(await store.correctAhead(startMs)), 4)
    await store.turn(aheadMs + day)
    await store.confirmClock()
    const [{ id } = assert.fail()] = await store.listAccounts()
    await store.credit(id, 1n, 'ahead again')
    await store.turn(startMs + 4 * day)
    await assert.rejects(store.correctAhead(startMs + 2 * day - 1), /effective_early: 2026-10-08T12:00/)
    assert.equal(countOf(await store.correctAhead(startMs + 2 * day)), 1)
    assert.deepEqual(await store.verify(verifyOptions), [])
    // An account without an entry before.
    const { id: empty } = await store.createAccount('empty', 0n)
    await store.turn(aheadMs + 2 * day)
    await store.confirmClock()
    await store.credit(empty, 1n, 'ahead at first')
    await store.turn(startMs + 5 * day)
    await assert.rejects(store.correctAhead(startMs + 4 * day - 1), /effective_early/)
    assert.equal(countOf(await store.correctAhead(startMs + 4 * day)), 1)
  })

  test('issue 46 R15 a budget that was set while the clock was ahead counts from now on after the correction', async () => {
    for (const isEntryAhead of [true, false]) {
      const store = await engine.open({ atMs: startMs })
      const { id: a } = await store.createAccount('one', 10n ** 12n)
      const { id: b } = await store.createAccount('two', 10n ** 12n)
      await store.turn(aheadMs)
      await store.confirmClock()
      if (isEntryAhead) await store.credit(b, 1n, 'ahead')
      const nanos = 10n ** 12n
      const { id: keyId } = await store.createKey(a, { budget: { nanos, per: 'day' } })
      await store.updateAccount(a, { budget: { nanos, per: 'month' } })
      await store.updateAccount(b, { budget: { nanos, per: 'week' } })
      await store.turn(startMs + 2 * day)
      const post = (name: string, account: string) =>
        store.postDebits([{ ...createDebitRow(name, account), createdMs: startMs, ...(account === a && { keyId }) }])
      await post('req_before', a)
      assert.equal((await store.listKeys(a))[0]!.spend!.spentNanos, 0n)
      assert.equal(countOf(await store.correctAhead(startMs)), isEntryAhead ? 1 : 0)
      for (const account of [a, b]) await post(`req_after_${account}`, account)
      const spent = async () => [
        (await store.listKeys(a))[0]!.spend!,
        (await store.findAccount(a)).spend!,
        (await store.findAccount(b)).spend!,
      ]
      assert.deepEqual(
        (await spent()).map(({ spentNanos }) => spentNanos),
        [2n * costNanos, 2n * costNanos, costNanos],
      )
      for (const { fromMs, untilMs } of await spent())
        assert.ok(fromMs <= startMs + 2 * day && startMs + 2 * day < untilMs)
      assert.deepEqual(await store.verify(verifyOptions), [])
    }
  })

  test('issue 46 C15 a head covers the newest valid entry, even if corrected entries were posted later', async () => {
    const store = await engine.open({ atMs: startMs })
    const { b } = await damage(store)
    await store.correctAhead(lastMs)
    const momentMs = async () => parseHead((await store.audit(verifyOptions)).head!).momentMs
    assert.equal(await momentMs(), startMs + 2 * day)
    await store.turn(startMs + 30 * day)
    await store.confirmClock()
    await store.credit(b, 1n, 'later')
    await store.turn(startMs + 40 * day)
    assert.equal(await momentMs(), startMs + 30 * day)
  })

  test('C15 law 4 forged corrections are found', async () => {
    const forgeries: [sql: string, finding: RegExp][] = [
      ['UPDATE shifted SET effective_ms = effective_ms + 1 WHERE seq = 4', /entries count at other times than it says/],
      ['DELETE FROM shifted WHERE seq = 4', /corrects times, and does not name/],
      ['DELETE FROM shifted', /corrects times, and does not name/],
      [
        `INSERT INTO shifted SELECT account_id, 1, posted_ms, effective_ms FROM shifted WHERE seq = 4`,
        /corrects times, and/,
      ],
      [`UPDATE entries SET effective = effective + 1 WHERE effective IS NOT NULL`, /count at other times than it says/],
      [
        `DELETE FROM shifted; UPDATE entries SET reference = 'effective:' || account_id || '/0-' || (seq - 1) WHERE effective IS NOT NULL`,
        /corrects times, and does not name/,
      ],
      [`UPDATE entries SET amount = 7 WHERE effective IS NOT NULL`, /corrects times, and has an amount of 7/],
    ]
    for (const [sql, finding] of forgeries) {
      const store = await engine.open({ atMs: startMs })
      await damage(store)
      await store.correctAhead(lastMs)
      await store.forge(async (forger) => {
        await forger.run(sql)
        await redigest(forger)
      })
      const findings = await store.verify(verifyOptions)
      assert.ok(
        findings.some((text) => finding.test(text)),
        `${sql}: ${findings}`,
      )
    }
  })
})

test('issue 46 C15 a correction is made for the moment at which its entries were found, even if they are hardly ahead', async () => {
  for (let beforeMs = 1; beforeMs <= 8; beforeMs++) {
    // Each look at this clock takes a millisecond.
    let ms = startMs
    const clock = {
      get atMs() {
        return ms++
      },
      set atMs(to) {
        ms = to
      },
    }
    const store = openFile(createPath(), clock)
    const { id } = await store.createAccount('one', 5n)
    ms = startMs + hour
    await store.credit(id, 1n, 'ahead')
    const [{ postedMs } = assert.fail()] = await store.listEntries({ accountId: id, limit: 1 })
    ms = postedMs - beforeMs
    await store.correctAhead(startMs + 1_000)
    ms = postedMs + day
    assert.deepEqual(await store.verify(verifyOptions), [], `${beforeMs} ms before`)
  }
})

test('issue 46 C15 entries of a correction are read by pages, each once and in order, however many there are', async () => {
  const asked: number[] = []
  const account = (accountId: string, fromSeq: number, toSeq: number) => ({
    ...{ accountId, accountName: undefined, fromSeq, toSeq, keptMs: undefined, afterMs: 0, hasGrant: false },
    moved: { firstMs: 10, lastMs: 20 },
  })
  const books = {
    async pageAhead({ afterSeq, toSeq, limit }: AheadPage) {
      asked.push(limit)
      const seqs = Array.from({ length: Math.min(limit, toSeq - afterSeq) }, (_, n) => afterSeq + 1 + n)
      return seqs.map((seq) => ({ seq, createdMs: 15, postedMs: 20, effectiveMs: undefined, name: `req_${seq}` }))
    },
  }
  const correction = { accounts: [account('a', 5, 2_504), account('b', 1, 1)], nowMs: 12, shiftMs: 9 }
  const seqs: string[] = []
  for await (const { accountId, seq, effectiveMs } of eachCorrected(books, correction)) {
    seqs.push(`${accountId} ${seq}`)
    assert.equal(effectiveMs, 6)
  }
  assert.deepEqual(seqs, [...Array.from({ length: 2_500 }, (_, n) => `a ${5 + n}`), 'b 1'])
  assert.equal(countOf(correction), 2_501)
  assert.deepEqual(asked, [1_000, 1_000, 1_000, 1_000])
})
