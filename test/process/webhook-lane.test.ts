import assert from 'node:assert/strict'
import test from 'node:test'
import { Lane } from '../../src/webhooks/send.ts'
import { turn } from '../support/waiting.ts'

test('issue 13 X15: a receiver gets one message after the other, and at most ten waiting messages are in memory', async () => {
  let nowMs = 0
  const lane = new Lane(() => nowMs)
  const ends: (() => void)[] = []
  const begun: number[] = []
  const enter = (n: number) =>
    lane.enter(() => {
      begun.push(n)
      return new Promise<void>((resolve) => ends.push(resolve))
    })
  const first = enter(1)
  for (let n = 2; n <= 10; n++) assert.ok(!('comeInMs' in enter(n)))
  assert.deepEqual(enter(11), { comeInMs: 5_000 })
  await turn()
  assert.deepEqual(begun, [1])
  ends[0]!()
  await first
  await turn()
  assert.deepEqual(begun, [1, 2])
  nowMs = 3_000
  // There is room again, but not for a message that would be sent before the eleventh.
  assert.deepEqual(enter(12), { comeInMs: 2_000 })
  nowMs = 5_000
  assert.ok(!('comeInMs' in enter(11)))
  assert.deepEqual(enter(12), { comeInMs: 5_000 })
})

test('issue 13 X15: a failure of one message does not affect the next', async () => {
  const lane = new Lane(() => 0)
  const failed = lane.enter(() => Promise.reject(new Error('no')))
  assert.ok(!('comeInMs' in failed))
  await assert.rejects(failed, /no/)
  assert.equal(await lane.enter(async () => 'told'), 'told')
})
