import assert from 'node:assert/strict'
import test from 'node:test'
import { admit, verdictCodes } from '../../../src/store/postgres/admit.ts'
import { giveBack } from '../../../src/store/postgres/shares.ts'

test('R1 X7 a place is returned only to the window in which it was taken', () => {
  for (const [taken, windowMs, takenInMs, left, why] of [
    [3, 60_000, 60_000, 2, 'the window is still open'],
    [3, 120_000, 60_000, 3, 'another window has opened since'],
    [3, 60_000, 120_000, 3, 'the database set its clock back, and opened an earlier one'],
    [3, 60_000, undefined, 3, 'no place was taken'],
    [3, 0, 0, 3, 'there was no window'],
    [0, 60_000, 60_000, 0, 'the replica has forgotten the place'],
  ] as const) {
    const share = { scope: 'acct_1', heldNanos: 0n, windowMs, taken, told: 'never' as const }
    giveBack(share, takenInMs)
    assert.deepEqual([share.taken, share.windowMs], [left, windowMs], why)
  }
})

test('STR-9 the function admit returns each verdict', () => {
  const missing = Object.values(verdictCodes).filter((code) => !new RegExp(`(THEN|ELSE) '${code}'`).test(admit.create))
  assert.deepEqual(missing, [])
})
