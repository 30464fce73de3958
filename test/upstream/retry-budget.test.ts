import assert from 'node:assert/strict'
import test from 'node:test'
import { RetryBudget } from '../../src/upstream/pool-memory.ts'

function start() {
  let nowMs = 5_000
  const budget = new RetryBudget(() => nowMs)
  return {
    budget,
    pass(ms: number) {
      nowMs += ms
    },
    /** @returns how many of so many wishes for a retry were granted */
    retry(times: number): number {
      let granted = 0
      for (let i = 0; i < times; i++) {
        if (budget.left === 0) continue
        budget.note(true)
        granted++
      }
      return granted
    },
    send(times: number) {
      for (let i = 0; i < times; i++) budget.note(false)
    },
  }
}

test('U1 ten retries a minute are always allowed, and an eleventh is not', () => {
  const { retry, pass } = start()
  assert.equal(retry(50), 10)
  pass(59_000)
  assert.equal(retry(50), 0)
  pass(61_000)
  assert.equal(retry(50), 10)
})

test('U1 the remaining budget falls with each retry, and grows with each request', () => {
  const { budget, send, retry } = start()
  assert.deepEqual([budget.left, retry(3), budget.left], [10, 3, 7])
  send(255)
  assert.deepEqual([budget.left, retry(50), budget.left], [22, 25, 0])
})

test('F-U44 retries are at most a tenth of the requests sent to the upstream', () => {
  const { send, retry, pass } = start()
  let sent = 0
  let retried = 0
  // 500 a second for five minutes, all of which fail.
  for (let second = 0; second < 300; second++) {
    for (let i = 0; i < 50; i++) {
      send(10)
      sent += 10
      retried += retry(10)
    }
    pass(1_000)
  }
  assert.ok((sent + retried) / sent <= 1.12, `${(sent + retried) / sent} requests for one`)
  assert.ok(retried > sent * 0.09)
})

test('U1 the minute slides: requests sent long ago allow no retry', () => {
  const { send, retry, pass } = start()
  send(10_000)
  pass(30_000)
  assert.ok(retry(400) === 400)
  pass(200_000)
  assert.equal(retry(400), 10)
})

test('U1 answered retries use no budget, whatever their number; failed ones are as limited as before', () => {
  const { budget, retry, pass } = start()
  for (let i = 0; i < 1_000; i++) {
    if (i % 100 === 0) pass(30_000)
    assert.equal(retry(1), 1)
    budget.noteAnswered()
  }
  pass(200_000)
  assert.equal(retry(50), 10)
  pass(60_001)
  budget.noteAnswered()
  pass(60_000)
  budget.noteAnswered()
  pass(60_000)
  assert.equal(budget.left, 10, 'it never grows beyond what is allowed')
})

test('U1 a retry of the minute before that is answered late frees its own part of the budget, and no other', () => {
  const { budget, retry, pass } = start()
  assert.equal(retry(10), 10)
  pass(60_000)
  assert.equal(budget.left, 0, 'the minute has just begun, and all ten still count')
  const left = []
  for (let n = 0; n < 11; n++) {
    budget.noteAnswered()
    left.push(budget.left)
  }
  assert.deepEqual(left, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 10])
})
