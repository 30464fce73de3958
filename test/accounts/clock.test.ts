import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ClockBook, type ClockFacts, ClockWatch, isAhead, isPastRest } from '../../src/accounts/clock.ts'

const [hourMs, dayMs] = [3_600_000, 86_400_000]
const startMs = Date.UTC(2026, 10, 21)

/** Two clocks that a test moves, and a store: what a server would see of them. */
function create(newestMs: number | undefined = startMs - dayMs, offsetMs?: number) {
  const at = { wallMs: startMs, steadyMs: 5_000_000 }
  const facts: Omit<ClockFacts, 'nowMs'> = { newestMs, confirmed: undefined }
  const watch = new ClockWatch(() => at.steadyMs, offsetMs)
  let seq = 0
  return {
    watch,
    facts,
    at,
    /** Real time, which both clocks count, also while the machine sleeps. */
    pass(ms: number) {
      at.wallMs += ms
      at.steadyMs += ms
    },
    /** Somebody, or a hardware clock, sets the wall clock. */
    set(ms: number) {
      at.wallMs += ms
    },
    confirm(atMs = at.wallMs) {
      facts.confirmed = { seq: ++seq, atMs }
    },
    judge: () => watch.judge({ ...facts, nowMs: at.wallMs }).problem,
    believes: () => watch.believes(at.wallMs),
    isDue: () => watch.isDue(at.wallMs),
  }
}

test('Y15 a wall clock that moves more than an hour against the steady one is in doubt until it moves back', () => {
  for (const moveMs of [hourMs + 1, -hourMs - 1, 400 * dayMs, -400 * dayMs]) {
    const { judge, set, believes, isDue } = create()
    assert.deepEqual([judge(), believes(), isDue()], [undefined, true, false])
    set(moveMs)
    // Before anybody has judged it: nothing is dated from the first moment on.
    assert.deepEqual([believes(), isDue()], [false, true])
    assert.equal(judge(), 'moved')
    set(-moveMs)
    assert.deepEqual([believes(), isDue(), judge()], [true, true, undefined])
  }
})

test('Y15 an hour is not yet a doubt, several moves add up, and both clocks may stand still or sleep together', () => {
  const { judge, set, pass } = create()
  judge()
  set(hourMs)
  pass(400 * dayMs)
  assert.equal(judge(), undefined)
  set(-2 * hourMs)
  assert.equal(judge(), undefined)
  set(-1)
  assert.equal(judge(), 'moved')
})

test('Y15 however the clock is set, entries are dated only while the moves since the start add up to at most an hour', () => {
  const step = fc.tuple(fc.constantFrom('pass', 'set'), fc.integer({ min: -3 * hourMs, max: 3 * hourMs }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 20 }), (steps) => {
      const clock = create()
      clock.judge()
      let movedMs = 0
      for (const [kind, ms] of steps) {
        if (kind === 'pass') clock.pass(Math.abs(ms))
        else clock.set(ms)
        if (kind === 'set') movedMs += ms
        const isRight = Math.abs(movedMs) <= hourMs
        assert.equal(clock.believes(), isRight)
        assert.equal(clock.judge() === 'moved', !isRight)
      }
    }),
  )
})

test('Y15 a confirmation ends the doubt and holds until the clock moves again; the time before is then in doubt', () => {
  const { judge, set, pass, confirm } = create()
  judge()
  set(2 * dayMs)
  assert.equal(judge(), 'moved')
  confirm()
  assert.equal(judge(), undefined)
  pass(10 * dayMs)
  assert.equal(judge(), undefined)
  set(-2 * dayMs)
  assert.equal(judge(), 'moved')
  confirm()
  assert.equal(judge(), undefined)
})

test('Y15 a confirmation of another time, or one from before the doubt, has no effect', () => {
  const { judge, set, pass, confirm } = create()
  confirm()
  judge()
  pass(1_000)
  // Back to less than an hour from the time that was confirmed.
  set(-hourMs - 1_000)
  confirm()
  assert.equal(judge(), 'moved')
  assert.equal(judge(), 'moved')
  confirm(startMs + 30 * dayMs)
  assert.equal(judge(), 'moved')
  confirm()
  assert.equal(judge(), undefined)
})

test('Y15 at a start a clock more than 366 days past the newest entry is in doubt, unless it was confirmed', () => {
  const rest = 366 * dayMs
  const at = (nowMs: number, newestMs: number | undefined, confirmedMs?: number): ClockFacts => ({
    nowMs,
    newestMs,
    confirmed: confirmedMs === undefined ? undefined : { seq: 1, atMs: confirmedMs },
  })
  const cases: [facts: ClockFacts, isDoubtful: boolean][] = [
    [at(startMs, undefined), false],
    [at(startMs, startMs - rest), false],
    [at(startMs, startMs - rest - 1), true],
    // A clock that is earlier than its entries is reported, and blocks nothing.
    [at(startMs, startMs + 10 * rest), false],
    [at(startMs, startMs - 3 * rest, startMs - dayMs), false],
    [at(startMs, startMs - 3 * rest, startMs - rest), false],
    [at(startMs, startMs - 3 * rest, startMs - rest - 1), true],
    // What was confirmed was a later time: the clock was set back since.
    [at(startMs, startMs - 3 * rest, startMs + dayMs), true],
    [at(startMs, startMs - 3 * rest, Number.NaN), true],
  ]
  for (const [facts, isDoubtful] of cases) {
    assert.equal(isPastRest(facts), isDoubtful, JSON.stringify(facts))
    const watch = new ClockWatch(() => 0, undefined)
    assert.equal(watch.judge(facts).problem === 'rest', isDoubtful)
    assert.equal(watch.believes(facts.nowMs), !isDoubtful)
  }
})

test('Y15 a start in doubt ends by a confirmation, by a clock that is set right, or by an entry of another server', () => {
  const ends: ((clock: ReturnType<typeof create>) => void)[] = [
    ({ confirm }) => confirm(),
    ({ set }) => set(-700 * dayMs),
    ({ facts, at }) => Object.assign(facts, { newestMs: at.wallMs }),
  ]
  for (const end of ends) {
    const clock = create(startMs - 1_000 * dayMs)
    assert.equal(clock.judge(), 'rest')
    end(clock)
    assert.equal(clock.judge(), undefined)
    // From then on it is held against the steady clock.
    clock.set(2 * hourMs)
    assert.equal(clock.judge(), 'moved')
  }
})

test('Y15 a thread that replaces another one compares the clock with the same moment', () => {
  const { offsetMs } = new ClockWatch(() => 5_000_000, undefined).judge({
    nowMs: startMs,
    newestMs: undefined,
    confirmed: undefined,
  })
  const next = create(undefined, offsetMs)
  assert.equal(next.judge(), undefined)
  next.set(2 * hourMs)
  assert.equal(create(undefined, offsetMs! - 2 * hourMs).judge(), 'moved')
})

test('Y15 a newest entry more than an hour ahead is reported and blocks nothing; a doubt is reported first', () => {
  const { judge, believes, set } = create(startMs + hourMs + 1)
  assert.deepEqual([judge(), believes()], ['ahead', true])
  set(-2 * hourMs)
  assert.equal(judge(), 'moved')
  set(2 * hourMs + 1)
  assert.equal(judge(), undefined)
  assert.deepEqual([isAhead(startMs + hourMs, startMs), isAhead(startMs + hourMs + 1, startMs)], [false, true])
})

test('Y15 the store is read at the start, each minute, each second in doubt, and at once when the clock moves', () => {
  const { judge, pass, set, isDue } = create()
  assert.equal(isDue(), true)
  judge()
  pass(59_999)
  assert.equal(isDue(), false)
  pass(1)
  assert.equal(isDue(), true)
  judge()
  set(2 * hourMs)
  assert.equal(isDue(), true)
  judge()
  pass(999)
  assert.equal(isDue(), false)
  pass(1)
  assert.equal(isDue(), true)
})

test('Y15 a problem is logged with its cure when it begins, changes or ends', () => {
  const lines: unknown[] = []
  const book = new ClockBook(
    (level, event, { problem }) => lines.push([level, event, problem]),
    () => 0,
  )
  assert.deepEqual([book.text, book.doubt], [undefined, undefined])
  const tell = (problem: 'moved' | 'rest' | 'ahead' | undefined) =>
    book.hear({ nowMs: startMs, newestMs: startMs, confirmed: undefined, offsetMs: 0, problem })
  tell(undefined)
  for (const problem of ['moved', 'rest'] as const) {
    tell(problem)
    tell(problem)
    assert.match(book.text!, /clock is in doubt.*triwire clock confirm$/)
    assert.equal(book.doubt, book.text)
  }
  tell('ahead')
  assert.match(book.text!, /newest entry .* ahead of the clock/)
  assert.equal(book.doubt, undefined)
  tell(undefined)
  assert.equal(book.text, undefined)
  assert.deepEqual(lines, [
    ['error', 'clock_wrong', 'moved'],
    ['error', 'clock_wrong', 'rest'],
    ['error', 'clock_wrong', 'ahead'],
    ['info', 'clock_right', undefined],
  ])
})
