import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { ApiKey } from '../../src/accounts/account.ts'
import { type Admitted, createAdmission, type Entered, type Refused } from '../../src/accounts/admission.ts'
import { createBalances } from '../../src/accounts/balances.ts'
import type { Budget } from '../../src/accounts/budget.ts'
import { createWindows, type Windows } from '../../src/accounts/limits.ts'
import { createBoundsBook } from '../../src/accounts/live-bounds.ts'

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
  const state = { blocked: new Set<string>(), isShedding: false, nowMs: 1_000 }
  const windows = createWindows({ limit, windowMs: 60_000, clockMs: () => 0 })
  const bounds = createBoundsBook()
  const admission = createAdmission({
    ...noBounds(),
    balances,
    bounds,
    nowMs: () => state.nowMs,
    windows: () => windows,
    whyBlocked: (accountId) => (state.blocked.has(accountId!) ? 'owing' : undefined),
    isShedding: () => state.isShedding,
  })
  const enter = (asked = key) => atOnce(admission.enter(asked))
  return { balances, balance: balances.get('acct_1')!, state, windows, bounds, admission, enter }
}

/** What of an admission is about keys with bounds. */
function noBounds() {
  const keyWindows = createWindows({ limit: Number.POSITIVE_INFINITY, windowMs: 60_000, clockMs: () => 0 })
  return { bounds: createBoundsBook(), keyWindows, nowMs: () => 0 }
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
  state.blocked.add('acct_1')
  assert.equal(whyOf(enter()), 'unwritable')
})

test('Y16 an account that is blocked is refused, when it enters and at its hold; another one is not', () => {
  const { state, balances, enter } = createGate()
  balances.set('acct_2', 10n)
  const other: ApiKey = { ...key, account: { id: 'acct_2', name: 'two', state: 'active' } }
  const [mine, theirs] = [letIn(enter()), letIn(enter(other))]
  state.blocked.add('acct_1')
  assert.deepEqual([whyOf(enter()), whyOf(enter(other))], ['unwritable', 'ok'])
  assert.deepEqual(
    [mine, theirs].map((entered) => whyOf(atOnce(entered.admit(1n)))),
    ['unwritable', 'ok'],
  )
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
    ...noBounds(),
    balances: createBalances(),
    windows: () => windows,
    whyBlocked: () => undefined,
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

/** A gate, and a key of its account with these bounds. */
function createBound({
  budgetNanos,
  requestsPerMinute,
  ...gate
}: { budgetNanos?: bigint; requestsPerMinute?: number } & Parameters<typeof createGate>[0] = {}) {
  const rig = createGate({ balanceNanos: 1_000_000n, ...gate })
  const budget: Budget | undefined = budgetNanos === undefined ? undefined : { nanos: budgetNanos, per: 'day' }
  const bound = (id: string) =>
    rig.bounds.note({
      id,
      scope: 'key_1',
      bounds: { budget, requestsPerMinute, models: undefined },
      spend: budget && { fromMs: 0, untilMs: 2_000, spentNanos: 0n },
    })!
  const [live, narrow] = [bound('key_1'), { ...key, bounds: bound('key_1') }]
  return { ...rig, live, narrow, successor: { ...key, id: 'key_2', bounds: bound('key_2') } }
}

test('R15 of several things wrong the account is told first, then the budget, then both windows, the account’s first', () => {
  const { balance, state, live, narrow, enter } = createBound({ budgetNanos: 10n, requestsPerMinute: 1, limit: 2 })
  letIn(enter(narrow))
  assert.deepEqual(enter(narrow), { ok: false, why: 'key_rate', retryAfterSeconds: 60 })
  letIn(enter())
  assert.equal(whyOf(enter(narrow)), 'rate')
  state.isShedding = true
  assert.equal(whyOf(enter(narrow)), 'busy')
  live.heldNanos = 10n
  assert.deepEqual(enter(narrow), {
    ...{ ok: false, why: 'budget_held', leftNanos: 10n, renewsMs: 2_000 },
    budget: { nanos: 10n, per: 'day' },
  })
  live.spend = { fromMs: 0, untilMs: 2_000, spentNanos: 10n }
  assert.equal(whyOf(enter(narrow)), 'budget_spent')
  balance.heldNanos = balance.balanceNanos
  assert.equal(whyOf(enter(narrow)), 'all_held')
  state.blocked.add('acct_1')
  assert.equal(whyOf(enter(narrow)), 'unwritable')
})

test('R15 what the window of a key refuses uses no place of its account’s, and the other way round', () => {
  const { windows, narrow, enter } = createBound({ requestsPerMinute: 2, limit: 3 })
  for (let at = 0; at < 9; at++) enter(narrow)
  assert.equal(windows.look('acct_1').left, 1)
  letIn(enter())
  assert.equal(whyOf(enter(narrow)), 'rate')
  const other = createBound({ requestsPerMinute: 2, limit: 1 })
  letIn(other.enter())
  for (let at = 0; at < 9; at++) other.enter(other.narrow)
  assert.deepEqual(other.admission.look('acct_1', other.live)?.window, { limit: 1, left: 0, resetSeconds: 60 })
  const { look } = createBound({ requestsPerMinute: 2 }).admission
  assert.equal(look('acct_1')?.window?.left, 300)
})

test('R15 R13 of two windows the one with fewer places left is told', () => {
  const { live, narrow, enter, admission } = createBound({ requestsPerMinute: 5, limit: 300 })
  letIn(enter(narrow))
  assert.deepEqual(admission.look('acct_1', live)?.window, { limit: 5, left: 4, resetSeconds: 60 })
  assert.equal(admission.look('acct_1')?.window?.left, 299)
})

test('R15 R1 a budget’s 402 at the hold gives the places of both windows back', () => {
  const { windows, live, narrow, enter } = createBound({ budgetNanos: 10n, requestsPerMinute: 2 })
  const [first, second] = [letIn(enter(narrow)), letIn(enter(narrow))]
  assert.equal(whyOf(atOnce(first.admit(10n))), 'ok')
  assert.equal(whyOf(atOnce(second.admit(1n))), 'budget_held')
  assert.equal(windows.look('acct_1').left, 299)
  live.heldNanos = 0n
  letIn(enter(narrow))
  assert.equal(whyOf(enter(narrow)), 'key_rate')
})

test('R15 a hold counts against the account and against the key, until its release', () => {
  const { balance, live, narrow, enter } = createBound({ budgetNanos: 10n })
  const { release } = atOnce(letIn(enter(narrow)).admit(4n)) as Admitted
  assert.deepEqual([balance.heldNanos, live.heldNanos], [4n, 4n])
  release()
  release()
  assert.deepEqual([balance.heldNanos, live.heldNanos], [0n, 0n])
})

test('R15 in the grace behind a rotation two keys share bounds: what one spends and takes the other has not', () => {
  const { live, narrow, successor, enter } = createBound({ budgetNanos: 10n, requestsPerMinute: 2 })
  assert.equal(narrow.bounds, successor.bounds)
  atOnce(letIn(enter(narrow)).admit(4n))
  atOnce(letIn(enter(successor)).admit(4n))
  assert.equal(live.heldNanos, 8n)
  assert.equal(whyOf(enter(narrow)), 'key_rate')
})

test('R15 a window of the calendar that is over has nothing spent in it, and holds go on', () => {
  const { state, live, narrow, enter } = createBound({ budgetNanos: 10n })
  live.spend = { fromMs: 0, untilMs: 2_000, spentNanos: 10n }
  state.nowMs = 1_999
  assert.equal(whyOf(enter(narrow)), 'budget_spent')
  state.nowMs = 2_000
  const entered = letIn(enter(narrow))
  live.heldNanos = 10n
  assert.equal(whyOf(atOnce(entered.admit(1n))), 'budget_held')
})

test('C5 R15 what is owed of a budget is not spendable again, also where the key had none when it came to be owed', () => {
  const { bounds, live, narrow, enter } = createBound({ budgetNanos: 10n })
  bounds.owe('key_1', 10n)
  assert.equal(whyOf(enter(narrow)), 'budget_spent')
  bounds.owe('key_1', -10n)
  bounds.set('key_1', { fromMs: 0, untilMs: 2_000, spentNanos: 9n })
  assert.equal(whyOf(enter(narrow)), 'ok')
  bounds.owe('key_9', 7n)
  const late = bounds.note({ id: 'key_9', scope: 'key_9', bounds: live, spend: undefined })!
  assert.equal(bounds.left(late, live.budget!, 0).creditNanos, 3n)
})

test('F-C47 C2 R15 of 1,000 that have entered on a budget worth ten, ten are admitted', () => {
  const { narrow, enter } = createBound({ budgetNanos: 1_000n, limit: 1_000 })
  const entered = Array.from({ length: 1_000 }, () => letIn(enter(narrow)))
  assert.equal(entered.filter((one) => atOnce(one.admit(100n)).ok).length, 10)
})

test('C2 R15 in every window of a budget no more is spent than it, what was under-estimated and the last hold', () => {
  const amount = fc.bigInt(0n, 100n)
  const step = fc.record({
    ends: fc.nat(),
    kind: fc.integer({ min: 0, max: 8 }),
    holdNanos: amount,
    actualNanos: amount,
  })
  fc.assert(
    fc.property(fc.bigInt(1n, 300n), fc.array(step, { maxLength: 80 }), (budgetNanos, steps) => {
      const { state, bounds, live, narrow, enter } = createBound({ budgetNanos, limit: 1_000 })
      const running: { release: () => void; actualNanos: bigint }[] = []
      let [spentNanos, shortfall, lastHoldNanos] = [0n, 0n, 0n]
      for (const { kind, ends, holdNanos, actualNanos } of steps) {
        if (kind === 0) {
          // Midnight: what runs is posted in the new window.
          judge()
          state.nowMs += 2_000
          spentNanos = 0n
        }
        const answer = kind < 5 ? enter(narrow) : undefined
        const admitted = answer?.ok ? atOnce(answer.admit(holdNanos)) : undefined
        if (admitted?.ok) {
          running.push({ release: admitted.release, actualNanos })
          if (actualNanos > holdNanos) shortfall += actualNanos - holdNanos
          lastHoldNanos = holdNanos
        } else if (running.length) end(ends % running.length)
      }
      while (running.length) end(0)
      judge()
      assert.equal(live.heldNanos, 0n)

      function end(index: number): void {
        const [one] = running.splice(index, 1)
        spentNanos += one!.actualNanos
        const fromMs = Math.floor(state.nowMs / 2_000) * 2_000
        bounds.set('key_1', { fromMs, untilMs: fromMs + 2_000, spentNanos })
        one!.release()
      }
      function judge(): void {
        assert.ok(spentNanos <= budgetNanos + shortfall + lastHoldNanos)
      }
    }),
  )
})

test('R1 a window on another machine is waited for', async () => {
  const balances = createBalances()
  balances.set('acct_1', 10n)
  const windows: Windows = { take: async () => ({ ok: false, retryAfterSeconds: 7 }), look: () => undefined }
  const admission = createAdmission({
    ...noBounds(),
    balances,
    windows: () => windows,
    whyBlocked: () => undefined,
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
  state.blocked.add('acct_1')
  assert.equal(whyOf(atOnce(early.admit(1n))), 'unwritable')
  state.blocked.clear()
  const late = letIn(enter())
  balances.set('acct_1', -3n)
  assert.equal(whyOf(atOnce(late.admit(1n))), 'no_credit')
  assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])
})
