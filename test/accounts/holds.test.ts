import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Account } from '../../src/accounts/account.ts'
import { hold, isAdmitted } from '../../src/accounts/holds.ts'

test('C2 a request is admitted while balance less holds is above zero', () => {
  const account = createAccount(10n)
  assert.equal(isAdmitted(account), true)
  const release = hold(account, 10n)
  assert.equal(isAdmitted(account), false)
  release()
  assert.equal(isAdmitted(account), true)
  account.balanceNanos = 0n
  assert.equal(isAdmitted(account), false)
})

test('C2 with nothing running the smallest positive balance admits the largest request', () => {
  const account = createAccount(1n)
  assert.equal(isAdmitted(account), true)
  hold(account, 10n ** 12n)
  assert.deepEqual([account.heldNanos, account.running], [10n ** 12n, 1])
})

test('C2 a hold is released once', () => {
  const account = createAccount(10n)
  const release = hold(account, 4n)
  hold(account, 5n)
  release()
  release()
  assert.deepEqual([account.heldNanos, account.running], [5n, 1])
})

test('C2 overdraft is at most what was under-estimated plus the last hold, in any order of starts and ends', () => {
  const amount = fc.bigInt(0n, 100n)
  const step = fc.record({ ends: fc.nat(), isStart: fc.boolean(), holdNanos: amount, actualNanos: amount })
  fc.assert(
    fc.property(fc.bigInt(0n, 300n), fc.array(step, { maxLength: 60 }), (balanceNanos, steps) => {
      const account = createAccount(balanceNanos)
      const running: { release: () => void; actualNanos: bigint }[] = []
      let bound = 0n
      let lastHoldNanos = 0n
      for (const { isStart, ends, holdNanos, actualNanos } of steps) {
        if (isStart && isAdmitted(account)) {
          running.push({ release: hold(account, holdNanos), actualNanos })
          if (actualNanos > holdNanos) bound += actualNanos - holdNanos
          lastHoldNanos = holdNanos
        } else if (running.length) end(ends % running.length)
      }
      while (running.length) end(0)
      assert.ok(-account.balanceNanos <= bound + lastHoldNanos, `${account.balanceNanos} ${bound} ${lastHoldNanos}`)
      assert.deepEqual([account.heldNanos, account.running], [0n, 0])

      function end(index: number): void {
        const [{ release, actualNanos }] = running.splice(index, 1) as [(typeof running)[number]]
        account.balanceNanos -= actualNanos
        release()
      }
    }),
  )
})

test('F-C47 of 1,000 at once on a balance worth 10, ten are admitted', () => {
  const account = createAccount(1_000n)
  let admitted = 0
  for (let i = 0; i < 1_000; i++) {
    if (!isAdmitted(account)) continue
    hold(account, 100n)
    admitted++
  }
  assert.equal(admitted, 10)
})

function createAccount(balanceNanos: bigint): Account {
  return { id: 'acct_1', name: 'one', state: 'active', balanceNanos, heldNanos: 0n, running: 0 }
}
