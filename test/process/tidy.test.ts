import assert from 'node:assert/strict'
import test from 'node:test'
import { tidyWhenIdle } from '../../src/process/tidy.ts'

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

test('issue 10 R18 what a burst left behind is collected once the process has been idle for two looks', () => {
  const told = look([
    [200, 0],
    [400, 0.9],
    [500, 0.5],
    [500, 0.02],
    [500, 0.02, 250],
    [250, 0],
  ])
  assert.deepEqual(told, [false, false, false, false, true, false])
})

test('issue 10 R18 a process that works is not stopped for it, and one that did not grow neither', () => {
  const busy = look([[200, 0.2], ...Array.from({ length: 20 }, (_, i): [number, number] => [600, i % 2 ? 0.05 : 0.3])])
  assert.ok(!busy.includes(true))
  const steady = look(Array.from({ length: 20 }, (_, i): [number, number] => [200 + 6 * i, 0]))
  assert.ok(!steady.includes(true))
})

test('issue 10 R18 where little can be given back nothing is collected again before as much has come anew', () => {
  const told = look([
    [200, 0],
    [400, 0],
    [400, 0, 390],
    [390, 0],
    [515, 0],
    [519, 0],
    [519, 0, 519],
  ])
  assert.deepEqual(told, [false, true, false, false, false, true, false])
})
