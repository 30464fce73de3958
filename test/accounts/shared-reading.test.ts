import assert from 'node:assert/strict'
import test from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import { shareReadings } from '../../src/accounts/shared-reading.ts'
import { turn } from '../support/waiting.ts'

/** Readings that end when the test says so, on a clock that the test turns. */
function createReadings() {
  const readings: PromiseWithResolvers<void>[] = []
  const clock = { nowMs: 0 }
  const readAgain = shareReadings({
    read: () => {
      const reading = Promise.withResolvers<void>()
      readings.push(reading)
      return reading.promise
    },
    clockMs: () => clock.nowMs,
  })
  return { readings, clock, readAgain }
}

test('R16 only one read of the store is under way; callers that arrive after its start share the next one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { readings, clock, readAgain } = createReadings()
  const ends: string[] = []
  void readAgain().then(() => ends.push('first'))
  assert.equal(readings.length, 1)
  for (let i = 0; i < 1_000; i++) void readAgain().then(() => ends.push('later'))
  clock.nowMs = 10
  await turn()
  assert.equal(readings.length, 1)
  readings[0]!.resolve()
  await turn()
  assert.deepEqual([ends, readings.length], [['first'], 2])
  readings[1]!.resolve()
  await turn()
  assert.deepEqual([ends.length, readings.length], [1_001, 2])
})

test('R16 a failed read is reported to all that shared it, and the next one begins anyway', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { readings, clock, readAgain } = createReadings()
  const failed = assert.rejects(readAgain(), /broken/)
  clock.nowMs = 10
  const next = readAgain()
  readings[0]!.reject(new Error('broken'))
  await failed
  await turn()
  readings[1]!.resolve()
  await next
})

test('R16 unknown keys cause at most two hundred reads of the store per second', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { readings, clock, readAgain } = createReadings()
  // A store that answers at once, asked every millisecond.
  while (clock.nowMs < 1_000) {
    void readAgain()
    for (const { resolve } of readings) resolve()
    await turn()
    clock.nowMs++
    t.mock.timers.tick(1)
    await turn()
  }
  assert.ok(readings.length >= 150 && readings.length <= 201, String(readings.length))
})

test('R16 no caller waits longer than a second, whichever read it was to share', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { readings, clock, readAgain } = createReadings()
  let silent = 0
  const count = (error: Error) => {
    assert.ok(error instanceof StoreSilent)
    silent++
  }
  readAgain().catch(count)
  t.mock.timers.tick(600)
  clock.nowMs = 600
  readAgain().catch(count)
  t.mock.timers.tick(399)
  await turn()
  assert.equal(silent, 0)
  t.mock.timers.tick(1)
  await turn()
  assert.equal(silent, 1)
  t.mock.timers.tick(600)
  await turn()
  assert.deepEqual([silent, readings.length], [2, 1])
})
