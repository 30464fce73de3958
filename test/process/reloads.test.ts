import assert from 'node:assert/strict'
import test from 'node:test'
import { createReloads, reloadsApartMs } from '../../src/process/reloads.ts'

/** Reloads by a clock that is turned by hand; each is noted as its time and how many signals it answers. */
function createRig() {
  let nowMs = 10_000
  let timers: { atMs: number; act: () => void }[] = []
  const done: [atMs: number, asked: number][] = []
  const signal = createReloads({
    reload(asked) {
      done.push([nowMs - 10_000, asked])
    },
    clockMs: () => nowMs,
    after: (ms, act) => void timers.push({ atMs: nowMs + ms, act }),
  })
  const advance = (ms: number) => {
    nowMs += ms
    const due = timers.filter(({ atMs }) => atMs <= nowMs)
    timers = timers.filter(({ atMs }) => atMs > nowMs)
    for (const { act } of due) act()
  }
  return { signal, advance, done, waiting: () => timers.length }
}

test('B3: the first signal after a quiet time reloads at once', () => {
  const { signal, advance, done, waiting } = createRig()
  signal()
  assert.deepEqual(done, [[0, 1]])
  advance(reloadsApartMs)
  signal()
  assert.deepEqual(done.at(-1), [reloadsApartMs, 1])
  assert.equal(waiting(), 0)
})

test('B3: signals soon after a reload cause one more reload, a second later, and none is lost', () => {
  const { signal, advance, done, waiting } = createRig()
  signal()
  for (let i = 0; i < 12; i++) {
    advance(20)
    signal()
  }
  assert.deepEqual([done, waiting()], [[[0, 1]], 1])
  advance(reloadsApartMs - 12 * 20)
  assert.deepEqual(done, [
    [0, 1],
    [1_000, 12],
  ])
  // The last signal also has a reload, whenever it comes after that.
  advance(999)
  signal()
  assert.equal(done.length, 2)
  advance(1)
  assert.deepEqual(done.at(-1), [2_000, 1])
})

test('B3: a flood of 50 signals a second causes one reload a second', () => {
  const { signal, advance, done } = createRig()
  for (let i = 0; i < 500; i++) {
    signal()
    advance(20)
  }
  assert.equal(done.length, 11)
  assert.equal(
    done.reduce((sum, [, asked]) => sum + asked, 0),
    500,
  )
})
