import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type Balance, hold, isAdmitted } from '../../src/accounts/live-accounts.ts'

test('C2 a request is admitted while the balance minus the holds is above zero', () => {
  const balance = createBalance(10n)
  assert.equal(isAdmitted(balance), true)
  const release = hold(balance, 10n)
  assert.equal(isAdmitted(balance), false)
  release()
  assert.equal(isAdmitted(balance), true)
  balance.balanceNanos = 0n
  assert.equal(isAdmitted(balance), false)
})

test('C2 if nothing runs, the smallest positive balance admits the largest request', () => {
  const balance = createBalance(1n)
  assert.equal(isAdmitted(balance), true)
  hold(balance, 10n ** 12n)
  assert.deepEqual([balance.heldNanos, balance.running], [10n ** 12n, 1])
})

test('C2 a hold is released once', () => {
  const balance = createBalance(10n)
  const release = hold(balance, 4n)
  hold(balance, 5n)
  release()
  release()
  assert.deepEqual([balance.heldNanos, balance.running], [5n, 1])
})

test('C2 the overdraft is at most the under-estimated amount plus the last hold, in any order of starts and ends', () => {
  const amount = fc.bigInt(0n, 100n)
  const step = fc.record({ ends: fc.nat(), isStart: fc.boolean(), holdNanos: amount, actualNanos: amount })
  fc.assert(
    fc.property(fc.bigInt(0n, 300n), fc.array(step, { maxLength: 60 }), (balanceNanos, steps) => {
      const balance = createBalance(balanceNanos)
      const running: { release: () => void; actualNanos: bigint }[] = []
      let bound = 0n
      let lastHoldNanos = 0n
      for (const { isStart, ends, holdNanos, actualNanos } of steps) {
        if (isStart && isAdmitted(balance)) {
          running.push({ release: hold(balance, holdNanos), actualNanos })
          if (actualNanos > holdNanos) bound += actualNanos - holdNanos
          lastHoldNanos = holdNanos
        } else if (running.length) end(ends % running.length)
      }
      while (running.length) end(0)
      assert.ok(-balance.balanceNanos <= bound + lastHoldNanos, `${balance.balanceNanos} ${bound} ${lastHoldNanos}`)
      assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])

      function end(index: number): void {
        const [{ release, actualNanos }] = running.splice(index, 1) as [(typeof running)[number]]
        balance.balanceNanos -= actualNanos
        release()
      }
    }),
  )
})

test('F-C47 of 1,000 simultaneous requests on a balance worth 10, ten are admitted', () => {
  const balance = createBalance(1_000n)
  let admitted = 0
  for (let i = 0; i < 1_000; i++) {
    if (!isAdmitted(balance)) continue
    hold(balance, 100n)
    admitted++
  }
  assert.equal(admitted, 10)
})

function createBalance(balanceNanos: bigint): Balance {
  return { balanceNanos, owedNanos: 0n, heldNanos: 0n, running: 0 }
}
