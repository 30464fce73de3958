import assert from 'node:assert/strict'
import test from 'node:test'
import type { WindowRefusal } from '../../../src/accounts/admission.ts'
import { windowMs } from '../../../src/accounts/limits.ts'
import { admit, verdictCodes } from '../../../src/store/postgres/admit.ts'
import { sweep } from '../../../src/store/postgres/replicas.ts'
import { giveBack, keyOf, ShareBook } from '../../../src/store/postgres/shares.ts'

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

/** The length of each rate window. */
const lengths: Record<WindowRefusal, number> = { window: windowMs, person_window: windowMs, key_window: windowMs }

test('R15 X7 STR-9 the places of each window are kept until it ends, in memory and in the database', () => {
  for (const [name, lengthMs] of Object.entries(lengths)) {
    const book = new ShareBook()
    Object.assign(keyOf(book.of('acct_1'), name), { windowMs: 1_000, taken: 1 })
    const sizeAt = (nowMs: number) => {
      book.forgetIdle(nowMs, () => false)
      return book.size
    }
    assert.deepEqual([sizeAt(999 + lengthMs), sizeAt(1_000 + lengthMs)], [1, 0], name)
  }
  const keptMs = /FROM triwire\.shares x\s+WHERE x\.window_ms \+ (\d+) <= t/.exec(sweep.create)?.[1]
  assert.equal(Number(keptMs), Math.max(...Object.values(lengths)))
})
