import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { isDue, pauseMs } from '../../src/webhooks/tries.ts'

const hourMs = 3_600_000

test('X15 the pauses between tries of a receiver grow to an hour', () => {
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 7, 1_000].map(pauseMs), [
    5_000,
    30_000,
    120_000,
    300_000,
    900_000,
    1_800_000,
    hourMs,
    hourMs,
    hourMs,
  ])
})

test('X15 Y15 a time further ahead than any pause comes from a wrong clock, and does not delay a receiver', () => {
  const nowMs = Date.parse('2026-11-22T12:00:00Z')
  for (const [dueMs, is] of [
    [0, true],
    [nowMs - 1, true],
    [nowMs, true],
    [nowMs + 1, false],
    [nowMs + hourMs, false],
    [nowMs + hourMs + 1, true],
    [Date.parse('2031-01-01T00:00:00Z'), true],
  ] as const)
    assert.equal(isDue(dueMs, nowMs), is, new Date(dueMs).toISOString())
})

test('X15 Y15 a receiver waits for an hour at most, whatever time another clock has written', () => {
  fc.assert(
    fc.property(fc.nat(), fc.maxSafeInteger(), (nowMs, dueMs) => {
      assert.ok(isDue(dueMs, nowMs) || dueMs - nowMs <= hourMs)
      assert.ok(isDue(dueMs, nowMs) || isDue(dueMs, nowMs + hourMs))
    }),
  )
})
