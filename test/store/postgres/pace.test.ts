import assert from 'node:assert/strict'
import test, { mock } from 'node:test'
import type { DeskAnswer } from '../../../src/accounts/desk.ts'
import { newRequestId } from '../../../src/ids.ts'
import { AdmissionDesk } from '../../../src/store/postgres/admission-desk.ts'
import type { Transaction } from '../../../src/store/postgres/database.ts'
import { installFunctions } from '../../../src/store/postgres/migrate.ts'
import { Pace } from '../../../src/store/postgres/pace.ts'
import { postFunctions } from '../../../src/store/postgres/post.ts'
import { PostingDesk } from '../../../src/store/postgres/posting-desk.ts'
import { SpendWindows } from '../../../src/store/postgres/spend-windows.ts'
import { createRandom } from '../../../src/store/seeded-random.ts'
import { packDebit } from '../../../src/store/serving/thread.ts'
import { atEnd } from '../../support/at-end.ts'
import { startPostgres, withoutPostgres } from '../../support/postgres.ts'
import { createDebitRow } from '../fixtures.ts'
import { openOperator } from './opened.ts'

/** Lets what is due of promises and I/O happen, without a wait. */
const turn = () => new Promise<void>((resolve) => void setImmediate(resolve))

/** A pace after calls that took so long each, with a pause after each. */
function paceAfter(tookMs: number, requests = 1, calls = 100) {
  let nowMs = 0
  const pace = new Pace(() => nowMs)
  for (let n = 0; n < calls; n++) {
    const answered = pace.begin(requests)
    nowMs += tookMs
    answered()
    nowMs += 25
  }
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { pace, pass }
}

test('SCA-4 calls are spaced further apart the longer they take: by 1 ms on an idle database, by 25 ms at most', () => {
  const spaces = [0, 0.1, 0.5, 0.8, 3, 10, 100].map((tookMs) => [
    tookMs,
    Math.round(paceAfter(tookMs).pace.spaceMs * 10) / 10,
  ])
  assert.deepEqual(spaces, [
    [0, 1],
    [0.1, 1],
    [0.5, 4],
    [0.8, 6.4],
    [3, 7],
    [10, 10],
    [100, 25],
  ])
})

test('SCA-4 a busy gateway spaces calls by the delay of a database that is short of processor time, not by its distance', () => {
  const spaceAfter = (tookMs: number, requests: number) => {
    const { pace, pass } = paceAfter(1, requests)
    for (let n = 0; n < 100; n++) {
      const answered = pace.begin(requests)
      pass(tookMs)
      answered()
      pass(25)
    }
    return pace.spaceMs
  }
  assert.ok(spaceAfter(2, 20) > 10 && spaceAfter(2, 20) < 15, `${spaceAfter(2, 20)}`)
  assert.equal(spaceAfter(4, 20), 25)
  for (const requests of [1, 2]) assert.equal(spaceAfter(2, requests), 7)
  assert.equal(paceAfter(5, 20).pace.spaceMs, 7)
})

test('SCA-4 a request that comes after a pause is never delayed, however long calls take', () => {
  assert.equal(new Pace(() => 0).waitMs, 0)
  for (const tookMs of [0.5, 5, 50]) {
    const { pace, pass } = paceAfter(tookMs)
    pass(25)
    assert.equal(pace.waitMs, 0)
    pace.begin(1)
    assert.ok(pace.waitMs > 0)
  }
})

test('SCA-4 a failed call does not change the spacing', () => {
  const { pace, pass } = paceAfter(1)
  const before = pace.spaceMs
  pace.begin(1)
  pass(60_000)
  assert.equal(pace.spaceMs, before)
})

test('SCA-4 one call that waited for a lock does not delay the next ones as a slow database does', () => {
  const { pace, pass } = paceAfter(0.2)
  const before = pace.spaceMs
  const answered = pace.begin(1)
  pass(2_000)
  answered()
  assert.ok(before < 2 && pace.spaceMs <= 7, `${before} and then ${pace.spaceMs}`)
})

/**
 * Four processes with 300 requests a second each, and a database with two processors, of which two fifths are used
 * by others. A call costs as measured on a busy machine (docs/scaling.md).
 */
function simulate(spaceOf: (pace: Pace) => number, seed: number): { costUs: number; p50Ms: number } {
  const random = createRandom(seed)
  const calls = {
    admit: { us: 245, eachUs: 30, diskMs: 0 },
    post: { us: 600, eachUs: 50, diskMs: 1 },
  } as const
  const wayMs = 0.3
  let nowMs = 0
  let costUs = 0
  const events: { atMs: number; act: () => void }[] = []
  const at = (atMs: number, act: () => void) => {
    let index = events.length
    while (index > 0 && events[index - 1]!.atMs < atMs) index--
    events.splice(index, 0, { atMs, act })
  }
  const processors = [0, 0]
  const took: number[] = []
  const desk = (kind: keyof typeof calls, next: (beganMs: number) => void) => {
    const pace = new Pace(() => nowMs)
    let waiting: number[] = []
    let [lanes, calledMs, isScheduled] = [2, Number.NEGATIVE_INFINITY, false]
    const schedule = () => {
      if (isScheduled || waiting.length === 0 || lanes === 0) return
      isScheduled = true
      at(Math.max(nowMs, calledMs + spaceOf(pace)), call)
    }
    const call = () => {
      isScheduled = false
      const batch = waiting
      waiting = []
      const answered = pace.begin(batch.length)
      calledMs = nowMs
      lanes--
      const { us, eachUs, diskMs } = calls[kind]
      costUs += us + eachUs * batch.length
      const first = processors[0]! < processors[1]! ? 0 : 1
      processors[first] = Math.max(nowMs, processors[first]!) + (us + eachUs * batch.length) / 600
      at(processors[first]! + diskMs + wayMs, () => {
        lanes++
        answered()
        batch.forEach(next)
        schedule()
      })
    }
    return (beganMs: number) => {
      waiting.push(beganMs)
      schedule()
    }
  }
  for (let process = 0; process < 4; process++) {
    const post = desk('post', (beganMs) => took.push(nowMs - beganMs))
    const admit = desk('admit', post)
    for (let beganMs = 0; beganMs < 5_000; beganMs += (-Math.log(1 - random()) * 1_000) / 300) {
      const comesMs = beganMs
      at(comesMs, () => admit(comesMs))
    }
  }
  for (let event = events.pop(); event; event = events.pop()) {
    nowMs = event.atMs
    event.act()
  }
  took.sort((a, b) => a - b)
  return { costUs: costUs / took.length, p50Ms: took[took.length >> 1]! }
}

test('48.6 SCA-4 four processes at 300 requests a second cost a busy database 40 % less; the median request waits at most 5 ms longer', () => {
  for (const seed of [1, 2, 3]) {
    const before = simulate(() => 1, seed)
    const now = simulate((pace) => pace.spaceMs, seed)
    assert.ok(now.costUs <= 0.6 * before.costUs, `${now.costUs} of ${before.costUs}`)
    assert.ok(now.p50Ms - before.p50Ms <= 5, `${now.p50Ms} for ${before.p50Ms}`)
  }
})

test('48.6 SCA-4 the first question is sent at once; those that come before the next call share it', async () => {
  const sent: string[][] = []
  let nowMs = 0
  const database: Transaction = {
    async query(_text, values) {
      if (typeof values![3] !== 'string') return [{ result: undefined }]
      const scopes = values![3].slice(1, -1).split(',')
      sent.push(scopes)
      nowMs += 50
      return [{ result: ['0'.repeat(scopes.length), 1_000, ...scopes.map(() => '1000,1,1,9,8,,,')].join(';') }]
    },
  }
  const answers: DeskAnswer[] = []
  const desk = new AdmissionDesk({ database, clockMs: () => nowMs, answer: (some) => answers.push(...some) })
  atEnd(() => desk.close())
  void desk.tell({ id: 1, startedMs: 1 })
  await turn()
  const ask = (id: number) =>
    desk.take([
      {
        say: 'ask',
        ask: { id, accountId: `acct_${id}`, requestsPerMinute: 9, holdNanos: 1n, place: 'take' },
      },
    ])
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    ask(1)
    await turn()
    await turn()
    assert.deepEqual([sent, answers.length], [[['acct_1']], 1])
    // The next call may begin now: 50 ms have passed, and it is the beginning that counts.
    ask(2)
    await turn()
    await turn()
    nowMs -= 50
    for (const id of [3, 4, 5]) {
      ask(id)
      await turn()
    }
    assert.equal(sent.length, 2)
    mock.timers.tick(25)
    await turn()
    assert.deepEqual(sent.slice(2), [['acct_3', 'acct_4', 'acct_5']])
    await turn()
    assert.equal(answers.length, 5)
  } finally {
    mock.timers.reset()
  }
})

test('SCA-4 a full call ignores the spacing, so that many simultaneous accounts are limited by the lanes alone', async () => {
  const sent: string[][] = []
  const database: Transaction = {
    async query(_text, values) {
      if (typeof values![3] !== 'string') return [{ result: undefined }]
      const scopes = values![3].slice(1, -1).split(',')
      sent.push(scopes)
      return [{ result: ['0'.repeat(scopes.length), 1_000, ...scopes.map(() => '1000,1,1,9,8,,,')].join(';') }]
    },
  }
  const answers: DeskAnswer[] = []
  const desk = new AdmissionDesk({ database, clockMs: () => 0, answer: (some) => answers.push(...some) })
  atEnd(() => desk.close())
  void desk.tell({ id: 1, startedMs: 1 })
  await turn()
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    for (let id = 0; id < 70; id++)
      desk.take([
        { say: 'ask', ask: { id, accountId: `acct_${id}`, requestsPerMinute: 9, holdNanos: 1n, place: 'take' } },
      ])
    for (let turns = 0; turns < 50; turns++) await turn()
    assert.deepEqual(
      sent.map(({ length }) => length),
      [16, 16, 16, 16],
    )
    mock.timers.tick(1)
    for (let turns = 0; turns < 5; turns++) await turn()
    assert.deepEqual([sent[4]?.length, answers.length, new Set(sent.flat()).size], [6, 70, 70])
    // The first of these waits for the space. Then the call is full, and begins at once.
    for (let id = 100; id < 116; id++) {
      desk.take([
        { say: 'ask', ask: { id, accountId: `acct_${id}`, requestsPerMinute: 9, holdNanos: 1n, place: 'take' } },
      ])
      await turn()
      assert.equal(sent.length, id < 115 ? 5 : 6, `${id}`)
    }
    assert.equal(sent[5]?.length, 16)
  } finally {
    mock.timers.reset()
  }
})

test('48.6 SCA-4 debits that come within the space share a commit, each once', {
  skip: withoutPostgres(),
}, async () => {
  const cluster = await startPostgres()
  const url = cluster.createDatabase('pace')
  const { createAccount, database } = await openOperator(url)
  const { id } = await createAccount('payer', 1_000_000_000n)
  await installFunctions(database, postFunctions)
  const desk = new PostingDesk({
    ...{ url, patienceMs: 20_000, say: () => {}, clockMs: () => 0, isSuccessor: false },
    windows: new SpendWindows(),
  })
  atEnd(() => desk.close())
  await desk.onReached()
  const post = () => desk.answers.post([packDebit(createDebitRow(newRequestId(), id))])
  const posting: ReturnType<typeof post>[] = []
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    await post()
    for (let n = 0; n < 3; n++) {
      posting.push(post())
      await turn()
    }
    mock.timers.tick(1)
  } finally {
    mock.timers.reset()
  }
  assert.deepEqual(
    (await Promise.all(posting)).map(({ postings }) => postings),
    [['posted'], ['posted'], ['posted']],
  )
  const [row] = await database.query(
    `SELECT count(*)::int AS entries, count(DISTINCT xmin::text)::int AS commits FROM triwire.entries WHERE kind = 'debit'`,
  )
  assert.deepEqual(row, { entries: 4, commits: 2 })
})
