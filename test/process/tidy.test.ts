import assert from 'node:assert/strict'
import test from 'node:test'
import { tidyWhenIdle } from '../../src/host/collector.ts'

const mega = 1024 * 1024

/** What became of looks at a process: of each the resident memory in MB, the share that it worked, and whether it was tidied up. */
function look(looks: readonly [rss: number, busy: number, left?: number][]): boolean[] {
  let now: readonly [rss: number, busy: number, left?: number] = [0, 0]
  let isTidied = false
  let tick!: () => void
  const stop = tidyWhenIdle({
    readRss: () => (isTidied ? (now[2] ?? now[0]) : now[0]) * mega,
    readBusy: () => now[1],
    collect() {
      isTidied = true
    },
    every(_ms, act) {
      tick = act
      return () => {}
    },
  })
  const told = looks.map((next) => {
    now = next
    isTidied = false
    tick()
    return isTidied
  })
  stop()
  return told
}

/** So long nothing else was done. */
const minute = (rss: number): [rss: number, busy: number][] => Array.from({ length: 59 }, () => [rss, 0.02])

test('issue 10 R18 memory left after a burst is collected once the process has been idle for a minute', () => {
  const told = look([[200, 0], [300, 0.9], [400, 0.5], ...minute(400), [400, 0.02, 250], ...minute(250)])
  assert.deepEqual(indexesOf(told), [62])
})

test('B10 memory left by many requests is collected after two idle checks', () => {
  const told = look([[200, 0], [600, 0.9], [600, 0.5], [600, 0.02], [600, 0.02, 250], ...minute(250)])
  assert.deepEqual(indexesOf(told), [4])
})

test('B10 memory held by clients that left in the meantime is collected a minute later', () => {
  const told = look([
    [200, 0],
    [800, 0.9],
    [800, 0.02],
    [800, 0.02, 700],
    ...minute(700),
    [700, 0.02, 250],
    ...minute(250),
  ])
  assert.deepEqual(indexesOf(told), [3, 63])
})

test('issue 14 decision 61: a client that pauses for less finds the code warm', () => {
  const told = look([[200, 0], [455, 0.5], ...minute(455), [455, 0.5], ...minute(455)])
  assert.deepEqual(indexesOf(told), [])
})

test('issue 10 R18 a busy process is not stopped for a collection, and neither is one that did not grow', () => {
  const busy = look([[200, 0.2], ...Array.from({ length: 200 }, (_, i): [number, number] => [600, i % 2 ? 0.05 : 0.3])])
  assert.ok(!busy.includes(true))
  const steady = look(Array.from({ length: 200 }, (_, i): [number, number] => [200 + 0.6 * i, 0]))
  assert.ok(!steady.includes(true))
})

test('issue 10 R18 if little can be freed, the next collection waits for as much new memory, and for another minute', () => {
  const told = look([
    [200, 0.5],
    ...minute(400),
    [400, 0, 390],
    ...minute(390),
    [517, 0],
    [518, 0, 518],
    ...minute(700),
  ])
  assert.deepEqual(indexesOf(told), [60, 121])
})

function indexesOf(told: readonly boolean[]): number[] {
  return told.flatMap((isTidied, i) => (isTidied ? [i] : []))
}
