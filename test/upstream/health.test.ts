import assert from 'node:assert/strict'
import test from 'node:test'
import { Health, maySpare } from '../../src/upstream/health.ts'
import type { Verdict } from '../../src/upstream/verdict.ts'

const full: Verdict = { tell: 'capacity', elsewhere: 'another', cool: 'now' }
const barred: Verdict = { tell: 'account', elsewhere: 'another', cool: 'now' }
const passing: Verdict = { tell: 'broken', elsewhere: 'another', cool: 'repeated' }
const ours: Verdict = { tell: 'broken', elsewhere: 'nobody', cool: 'no' }

function start() {
  let nowMs = 1_000
  const health = new Health(
    () => nowMs,
    () => 0.5,
  )
  const fail = (verdict: Verdict, retryAfterSeconds?: number, mayCool = true) =>
    health.failed(health.enter(), verdict, 'a cause', () => mayCool, retryAfterSeconds)
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { health, fail, pass, succeed: () => health.succeeded(health.enter()) }
}

test('U1 401, 402, 403 and 429 cool an account at once, other failures from the third in a row, and the rest never', () => {
  for (const verdict of [full, barred]) {
    const { health, fail } = start()
    fail(verdict)
    assert.equal(health.state, 'cooling')
  }
  const { health, fail, succeed } = start()
  fail(passing)
  fail(passing)
  succeed()
  fail(passing)
  fail(passing)
  for (let i = 0; i < 9; i++) fail(ours)
  assert.deepEqual([health.state, health.isOpen], ['ready', true])
  fail(passing)
  assert.deepEqual([health.state, health.isOpen], ['cooling', false])
})

test('Y26 a cooldown heard of another replica counts only if it is longer than the own', () => {
  const { health, fail, pass } = start()
  fail(full, 60)
  health.hear({ forMs: 30_000, cause: 'theirs', tell: 'capacity' })
  assert.deepEqual([health.trouble?.waitMs, health.trouble?.cause], [60_000, 'a cause'])
  pass(10_000)
  health.hear({ forMs: 90_000, cause: 'theirs', tell: 'capacity' })
  assert.deepEqual([health.trouble?.waitMs, health.trouble?.cause], [90_000, 'theirs'])
})

const waits: [what: string, verdict: Verdict, asked: number | undefined, ms: number][] = [
  ['F-U16 retry-after 7', full, 7, 7_000],
  ['F-U16 retry-after of three years', full, 99_999_999, 300_000],
  ['F-U16 retry-after of half a second', full, 0.5, 1_000],
  ['F-U17 a 429 without one', full, undefined, 10_000],
  ['F-U18 a key that is not taken', barred, undefined, 60_000],
]
for (const [what, verdict, asked, ms] of waits) {
  test(`${what} cools an account for ${ms} ms`, () => {
    const { health, fail, pass } = start()
    fail(verdict, asked)
    pass(ms - 1)
    assert.deepEqual([health.state, health.isOpen, health.trouble?.waitMs], ['cooling', false, 1])
    pass(1)
    assert.deepEqual([health.state, health.isOpen, health.trouble?.waitMs], ['trial', true, 0])
  })
}

test('F-U17 each cooldown in a row is twice as long, up to 300 s; after a success it starts at the first length again', () => {
  const { health, fail, pass, succeed } = start()
  const lengths: number[] = []
  for (let i = 0; i < 8; i++) {
    fail(full)
    lengths.push(health.trouble!.waitMs)
    pass(health.trouble!.waitMs)
  }
  assert.deepEqual(lengths, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000, 300_000])
  succeed()
  fail(full)
  assert.equal(health.trouble!.waitMs, 10_000)
})

test('F-U1 cooldowns vary randomly by a fifth in both directions; waits that an upstream asks for do not', () => {
  for (const [random, ms] of [
    [0, 8_000],
    [0.999_999, 12_000],
  ] as const) {
    const health = new Health(
      () => 0,
      () => random,
    )
    health.failed(health.enter(), full, 'a cause', () => true)
    assert.equal(Math.round(health.trouble!.waitMs), ms)
  }
})

test('U1 after a cooldown one request at a time tries the account; any end of that request lets the next one try', () => {
  const ends: [
    what: string,
    end: (rig: ReturnType<typeof start>, visit: ReturnType<Health['enter']>) => void,
    state: string,
  ][] = [
    ['a success', ({ health }, visit) => health.succeeded(visit), 'ready'],
    ['a failure', ({ health }, visit) => health.failed(visit, passing, 'a cause', () => true), 'cooling'],
    [
      'one that cannot be spared',
      ({ health }, visit) => health.failed(visit, passing, 'a cause', () => false),
      'ready',
    ],
    ['a failure of ours', ({ health }, visit) => health.failed(visit, ours, 'a cause', () => true), 'trial'],
    ['a client that left', ({ health }, visit) => health.left(visit), 'trial'],
  ]
  for (const [what, end, state] of ends) {
    const rig = start()
    rig.fail(full)
    rig.pass(10_000)
    const visit = rig.health.enter()
    assert.deepEqual([rig.health.state, rig.health.isOpen], ['trial', false], what)
    end(rig, visit)
    assert.deepEqual([rig.health.state, rig.health.isOpen], [state, state !== 'cooling'], what)
  }
})

test('U1 a trial that hangs makes the other requests wait for 30 s', () => {
  const { health, fail, pass } = start()
  fail(full)
  pass(10_000)
  health.enter()
  pass(29_999)
  assert.equal(health.isOpen, false)
  pass(1)
  assert.equal(health.isOpen, true)
})

test('reliability §4 a request sent before a cooldown neither ends it nor counts twice; a longer wait that it returns holds', () => {
  const { health, fail, pass } = start()
  const before = [health.enter(), health.enter(), health.enter()]
  fail(full)
  health.succeeded(before[0]!)
  assert.equal(health.state, 'cooling')
  health.failed(before[1]!, full, 'a cause', () => true)
  assert.equal(health.trouble!.waitMs, 10_000)
  health.failed(before[2]!, full, 'a cause', () => true, 25)
  assert.equal(health.trouble!.waitMs, 25_000)
  pass(25_000)
  fail(full)
  assert.equal(health.trouble!.waitMs, 20_000, 'the second cooldown in a row')
})

test('U1 a temporary failure cools no account that the pool cannot spare', () => {
  const { health, fail } = start()
  for (let i = 0; i < 9; i++) fail(passing, undefined, false)
  assert.deepEqual([health.state, health.failures], ['ready', 9])
  assert.equal(fail(passing, undefined, false), true, 'each is the first of its trouble')
})

test('U1 R6 a longer wait that a running request was asked for is reported with its own cause', () => {
  const { health } = start()
  const [first, second] = [health.enter(), health.enter()]
  health.failed(first, barred, 'upstream_401', () => true)
  health.failed(second, full, 'upstream_429', () => true, 300)
  assert.deepEqual(health.trouble, { cause: 'upstream_429', tell: 'capacity', waitMs: 300_000 })
})

test('U1 temporary failures cool at most half of the enabled accounts, and an account that was never asked counts as healthy', () => {
  assert.equal(maySpare([]), false)
  assert.equal(maySpare(['ready']), true)
  assert.equal(maySpare(['cooling']), false)
  assert.equal(maySpare(['ready', 'disabled', 'disabled']), true)
  assert.equal(maySpare([undefined, 'trial', undefined]), true)
})
