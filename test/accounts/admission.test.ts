import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { ApiKey } from '../../src/accounts/account.ts'
import { type Admitted, createAdmission, type Entered, type Refused } from '../../src/accounts/admission.ts'
import { createBalances } from '../../src/accounts/balances.ts'
import { createWindows, type Windows } from '../../src/accounts/limits.ts'

const key: ApiKey = {
  id: 'key_1',
  prefix: 'sk-tri-12345678',
  account: { id: 'acct_1', name: 'one', state: 'active' },
  expiresMs: undefined,
}

/** An admission over one account, and what is wrong now. */
function createGate({ balanceNanos = 10n, limit = 300 } = {}) {
  const balances = createBalances()
  balances.set('acct_1', balanceNanos)
  const state = { isWritable: true, isShedding: false }
  const windows = createWindows({ limit, windowMs: 60_000, clockMs: () => 0 })
  const admission = createAdmission({
    balances,
    windows: () => windows,
    isWritable: () => state.isWritable,
    isShedding: () => state.isShedding,
  })
  return { balances, balance: balances.get('acct_1')!, state, windows, enter: () => atOnce(admission.enter(key)) }
}

function atOnce<T>(answer: T | Promise<T>): T {
  assert.ok(!(answer instanceof Promise), 'what memory decides is there at once')
  return answer
}

function letIn(answer: Entered | Refused): Entered {
  assert.ok(answer.ok)
  return answer
}

function whyOf(answer: { ok: true } | Refused): string {
  return answer.ok ? 'ok' : answer.why
}

test('R1 of several things wrong the first in the order of checks is told: unwritable, credit, shedding, window', () => {
  const { state, balance, enter } = createGate({ limit: 1 })
  letIn(enter())
  assert.deepEqual(enter(), { ok: false, why: 'rate', retryAfterSeconds: 60 })
  state.isShedding = true
  assert.equal(whyOf(enter()), 'busy')
  balance.heldNanos = 10n
  assert.equal(whyOf(enter()), 'all_held')
  balance.balanceNanos = 0n
  assert.equal(whyOf(enter()), 'no_credit')
  state.isWritable = false
  assert.equal(whyOf(enter()), 'unwritable')
})

test('R1 what is refused before the window uses no place of it', () => {
  const { state, balance, enter } = createGate({ limit: 1 })
  state.isShedding = true
  assert.equal(whyOf(enter()), 'busy')
  state.isShedding = false
  balance.heldNanos = 10n
  assert.equal(whyOf(enter()), 'all_held')
  balance.heldNanos = 0n
  assert.equal(whyOf(enter()), 'ok')
})

test('R1 C2 the 402 of a hold gives the place in the window back, once', () => {
  const { balance, enter } = createGate({ limit: 2 })
  const [first, second] = [letIn(enter()), letIn(enter())]
  balance.heldNanos = 10n
  assert.equal(whyOf(atOnce(first.admit(1n))), 'all_held')
  assert.equal(whyOf(atOnce(first.admit(1n))), 'all_held')
  balance.heldNanos = 0n
  assert.equal(whyOf(enter()), 'ok')
  assert.equal(whyOf(enter()), 'rate')
  assert.equal(whyOf(atOnce(second.admit(1n))), 'ok')
})

test('R1 a request that ends before its hold has used its place all the same', () => {
  const { enter } = createGate({ limit: 1 })
  letIn(enter())[Symbol.dispose]()
  assert.equal(whyOf(enter()), 'rate')
})

test('C2 a hold lasts until its release, which takes effect once', () => {
  const { balance, enter } = createGate()
  const [one, two] = [letIn(enter()), letIn(enter())].map((entered) => atOnce(entered.admit(4n)) as Admitted)
  assert.deepEqual([balance.heldNanos, balance.running], [8n, 2])
  one!.release()
  one!.release()
  assert.deepEqual([balance.heldNanos, balance.running], [4n, 1])
  two!.release()
  assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])
})

test('C2 an account that the store has not told of has no credit', () => {
  const { windows } = createGate()
  const admission = createAdmission({
    balances: createBalances(),
    windows: () => windows,
    isWritable: () => true,
    isShedding: () => false,
  })
  assert.equal(whyOf(atOnce(admission.enter(key))), 'no_credit')
})

test('F-C47 C2 of 1,000 that have entered on a balance worth 10, ten are admitted', () => {
  const { enter } = createGate({ balanceNanos: 1_000n, limit: 1_000 })
  const entered = Array.from({ length: 1_000 }, () => letIn(enter()))
  assert.equal(entered.filter((one) => atOnce(one.admit(100n)).ok).length, 10)
})

test('C2 overdraft is at most what was under-estimated plus the last hold, through enter and admit', () => {
  const amount = fc.bigInt(0n, 100n)
  const step = fc.record({ ends: fc.nat(), isStart: fc.boolean(), holdNanos: amount, actualNanos: amount })
  fc.assert(
    fc.property(fc.bigInt(0n, 300n), fc.array(step, { maxLength: 60 }), (balanceNanos, steps) => {
      const { balances, balance, enter } = createGate({ balanceNanos, limit: 1_000 })
      const running: { release: () => void; actualNanos: bigint }[] = []
      let [storedNanos, shortfall, lastHoldNanos] = [balanceNanos, 0n, 0n]
      for (const { isStart, ends, holdNanos, actualNanos } of steps) {
        const answer = isStart ? enter() : undefined
        const admitted = answer?.ok ? atOnce(answer.admit(holdNanos)) : undefined
        if (admitted?.ok) {
          running.push({ release: admitted.release, actualNanos })
          if (actualNanos > holdNanos) shortfall += actualNanos - holdNanos
          lastHoldNanos = holdNanos
        } else if (running.length) end(ends % running.length)
      }
      while (running.length) end(0)
      assert.ok(-balance.balanceNanos <= shortfall + lastHoldNanos)
      assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])

      function end(index: number): void {
        const [one] = running.splice(index, 1)
        storedNanos -= one!.actualNanos
        balances.set('acct_1', storedNanos)
        one!.release()
      }
    }),
  )
})

test('R1 a window on another machine is waited for', async () => {
  const balances = createBalances()
  balances.set('acct_1', 10n)
  const windows: Windows = { take: async () => ({ ok: false, retryAfterSeconds: 7 }), look: () => undefined }
  const admission = createAdmission({
    balances,
    windows: () => windows,
    isWritable: () => true,
    isShedding: () => false,
  })
  assert.deepEqual(await admission.enter(key), { ok: false, why: 'rate', retryAfterSeconds: 7 })
})

test('C5 what is owed is not spendable again when the store tells its balance, until the store has it', () => {
  const { balances, balance, enter } = createGate({ balanceNanos: 10n })
  balances.owe('acct_1', 10n)
  assert.equal(whyOf(enter()), 'no_credit')
  // The store does not know of it, and says so as often as it is read.
  balances.set('acct_1', 10n)
  balances.set('acct_1', 10n)
  assert.equal(whyOf(enter()), 'no_credit')
  balances.owe('acct_1', -10n)
  balances.set('acct_1', 0n)
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [0n, 0n])
  balances.set('acct_1', 5n)
  assert.equal(whyOf(enter()), 'ok')
})

test('C5 R1 what was lost while a body was read is told at the hold: a store that takes no debits, credit that is spent', () => {
  const { enter, state, balances, balance } = createGate()
  const early = letIn(enter())
  state.isWritable = false
  assert.equal(whyOf(atOnce(early.admit(1n))), 'unwritable')
  state.isWritable = true
  const late = letIn(enter())
  balances.set('acct_1', -3n)
  assert.equal(whyOf(atOnce(late.admit(1n))), 'no_credit')
  assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])
})
