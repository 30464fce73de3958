import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { ApiKey } from '../../src/accounts/account.ts'
import { type AdmissionRefusal, type Admitted, createAdmission, type Entered } from '../../src/accounts/admission.ts'
import type { Budget } from '../../src/accounts/budget.ts'
import { type KeyBounds, keyBounds } from '../../src/accounts/key-bounds.ts'
import { createWindows } from '../../src/accounts/limits.ts'
import { createBalances, createBoundsBook } from '../../src/accounts/live-accounts.ts'

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
    windows,
    whyBlocked: (accountId) => (state.blocked.has(accountId!) ? 'owing' : undefined),
    isShedding: () => state.isShedding,
  })
  const enter = (asked = key) => admission.enter(asked)
  return { balances, balance: balances.get('acct_1')!, state, windows, bounds, admission, enter }
}

/** What of an admission is about keys with bounds. */
function noBounds() {
  return { bounds: createBoundsBook(), clockMs: () => 0, nowMs: () => 0 }
}

function letIn(answer: Entered | AdmissionRefusal): Entered {
  assert.ok(answer.ok)
  return answer
}

function whyOf(answer: { ok: true } | AdmissionRefusal): string {
  return answer.ok ? 'ok' : answer.why
}

test('R1 if several checks fail, the error names the first in order: unwritable, credit, shedding, window', async () => {
  const { state, balance, enter } = createGate({ limit: 1 })
  letIn(await enter())
  assert.deepEqual(await enter(), { ok: false, why: 'window', retryAfterSeconds: 60 })
  state.isShedding = true
  assert.equal(whyOf(await enter()), 'busy')
  balance.heldNanos = 10n
  assert.equal(whyOf(await enter()), 'held')
  balance.balanceNanos = 0n
  assert.equal(whyOf(await enter()), 'spent')
  state.blocked.add('acct_1')
  assert.equal(whyOf(await enter()), 'unwritable')
})

test('Y16 a blocked account is refused both when it enters and at its hold; another account is not', async () => {
  const { state, balances, enter } = createGate()
  balances.set('acct_2', 10n)
  const other: ApiKey = { ...key, account: { id: 'acct_2', name: 'two', state: 'active' } }
  const [mine, theirs] = [letIn(await enter()), letIn(await enter(other))]
  state.blocked.add('acct_1')
  assert.deepEqual([whyOf(await enter()), whyOf(await enter(other))], ['unwritable', 'ok'])
  assert.deepEqual([whyOf(await mine.admit(1n)), whyOf(await theirs.admit(1n))], ['unwritable', 'ok'])
})

test('R1 a request that is refused before the window uses no place in it', async () => {
  const { state, balance, enter } = createGate({ limit: 1 })
  state.isShedding = true
  assert.equal(whyOf(await enter()), 'busy')
  state.isShedding = false
  balance.heldNanos = 10n
  assert.equal(whyOf(await enter()), 'held')
  balance.heldNanos = 0n
  assert.equal(whyOf(await enter()), 'ok')
})

test('R1 C2 a 402 at the hold returns the place in the window, once', async () => {
  const { balance, enter } = createGate({ limit: 2 })
  const [first, second] = [letIn(await enter()), letIn(await enter())]
  balance.heldNanos = 10n
  assert.equal(whyOf(await first.admit(1n)), 'held')
  assert.equal(whyOf(await first.admit(1n)), 'held')
  balance.heldNanos = 0n
  assert.equal(whyOf(await enter()), 'ok')
  assert.equal(whyOf(await enter()), 'window')
  assert.equal(whyOf(await second.admit(1n)), 'ok')
})

test('R1 a request that ends before its hold has still used its place', async () => {
  const { enter } = createGate({ limit: 1 })
  letIn(await enter())[Symbol.dispose]()
  assert.equal(whyOf(await enter()), 'window')
})

test('C2 a hold lasts until its release, which takes effect once', async () => {
  const { balance, enter } = createGate()
  const admit = async () => (await letIn(await enter()).admit(4n)) as Admitted
  const [one, two] = [await admit(), await admit()]
  assert.deepEqual([balance.heldNanos, balance.running], [8n, 2])
  one.release()
  one.release()
  assert.deepEqual([balance.heldNanos, balance.running], [4n, 1])
  two!.release()
  assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])
})

test('C2 an account whose balance the store has not reported has no credit', async () => {
  const { windows } = createGate()
  const admission = createAdmission({
    ...noBounds(),
    balances: createBalances(),
    windows,
    whyBlocked: () => undefined,
    isShedding: () => false,
  })
  assert.equal(whyOf(await admission.enter(key)), 'spent')
})

test('F-C47 C2 of 1,000 requests that entered on a balance worth 10, ten are admitted', async () => {
  const { enter } = createGate({ balanceNanos: 1_000n, limit: 1_000 })
  const entered = await Promise.all(Array.from({ length: 1_000 }, async () => letIn(await enter())))
  const answers = await Promise.all(entered.map((one) => one.admit(100n)))
  assert.equal(answers.filter(({ ok }) => ok).length, 10)
})

test('C2 the overdraft is at most the under-estimated amount plus the last hold, through enter and admit', async () => {
  const amount = fc.bigInt(0n, 100n)
  const step = fc.record({ ends: fc.nat(), isStart: fc.boolean(), holdNanos: amount, actualNanos: amount })
  await fc.assert(
    fc.asyncProperty(fc.bigInt(0n, 300n), fc.array(step, { maxLength: 60 }), async (balanceNanos, steps) => {
      const { balances, balance, enter } = createGate({ balanceNanos, limit: 1_000 })
      const running: { release: () => void; actualNanos: bigint }[] = []
      let [storedNanos, shortfall, lastHoldNanos] = [balanceNanos, 0n, 0n]
      for (const { isStart, ends, holdNanos, actualNanos } of steps) {
        const answer = isStart ? await enter() : undefined
        const admitted = answer?.ok ? await answer.admit(holdNanos) : undefined
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
      bounds: { ...keyBounds.none, budget, requestsPerMinute },
      spend: budget && { fromMs: 0, untilMs: 2_000, spentNanos: 0n },
    })!
  const [live, narrow] = [bound('key_1'), { ...key, bounds: bound('key_1') }]
  return { ...rig, live, narrow, successor: { ...key, id: 'key_2', bounds: bound('key_2') } }
}

test('R15 if several limits are exceeded, the error names the account first, then the budget, then the windows, the account’s first', async () => {
  const { balance, state, live, narrow, enter } = createBound({ budgetNanos: 10n, requestsPerMinute: 1, limit: 2 })
  letIn(await enter(narrow))
  assert.deepEqual(await enter(narrow), { ok: false, why: 'key_window', retryAfterSeconds: 60 })
  letIn(await enter())
  assert.equal(whyOf(await enter(narrow)), 'window')
  state.isShedding = true
  assert.equal(whyOf(await enter(narrow)), 'busy')
  live.heldNanos = 10n
  assert.deepEqual(await enter(narrow), {
    ...{ ok: false, why: 'budget_held', leftNanos: 10n, renewsMs: 2_000 },
    budget: { nanos: 10n, per: 'day' },
  })
  live.spend = { fromMs: 0, untilMs: 2_000, spentNanos: 10n }
  assert.equal(whyOf(await enter(narrow)), 'budget_spent')
  balance.heldNanos = balance.balanceNanos
  assert.equal(whyOf(await enter(narrow)), 'held')
  state.blocked.add('acct_1')
  assert.equal(whyOf(await enter(narrow)), 'unwritable')
})

test('R15 STR-9 each bound of a key refuses a request that exceeds it, except bounds that are judged with the body', async () => {
  const cases: Record<keyof KeyBounds, { bound: Parameters<typeof createBound>[0]; second: string }> = {
    budget: { bound: { budgetNanos: 0n }, second: 'budget_spent' },
    requestsPerMinute: { bound: { requestsPerMinute: 1 }, second: 'key_window' },
    // The gateway judges models: a request names its model in the body. Persons, labels and words of operators are no limits.
    models: { bound: {}, second: 'ok' },
    person: { bound: {}, second: 'ok' },
    labels: { bound: {}, second: 'ok' },
    mayChoose: { bound: {}, second: 'ok' },
    externalId: { bound: {}, second: 'ok' },
    metadata: { bound: {}, second: 'ok' },
  }
  for (const [name, { bound, second }] of Object.entries(cases)) {
    const { narrow, enter } = createBound(bound)
    await enter(narrow)
    assert.equal(whyOf(await enter(narrow)), second, name)
  }
})

test('R15 a request that the window of a key refuses uses no place of its account, and vice versa', async () => {
  const { windows, narrow, enter } = createBound({ requestsPerMinute: 2, limit: 3 })
  for (let at = 0; at < 9; at++) await enter(narrow)
  assert.equal(windows.look('acct_1').left, 1)
  letIn(await enter())
  assert.equal(whyOf(await enter(narrow)), 'window')
  const other = createBound({ requestsPerMinute: 2, limit: 1 })
  letIn(await other.enter())
  for (let at = 0; at < 9; at++) await other.enter(other.narrow)
  assert.deepEqual(other.admission.look('acct_1', other.live)?.window, { limit: 1, left: 0, resetSeconds: 60 })
  const { look } = createBound({ requestsPerMinute: 2 }).admission
  assert.equal(look('acct_1')?.window?.left, 300)
})

test('R15 R13 of two windows, the one with fewer places left is reported', async () => {
  const { live, narrow, enter, admission } = createBound({ requestsPerMinute: 5, limit: 300 })
  letIn(await enter(narrow))
  assert.deepEqual(admission.look('acct_1', live)?.window, { limit: 5, left: 4, resetSeconds: 60 })
  assert.equal(admission.look('acct_1')?.window?.left, 299)
})

test('R15 R1 a 402 of a budget at the hold returns the places in both windows', async () => {
  const { windows, live, narrow, enter } = createBound({ budgetNanos: 10n, requestsPerMinute: 2 })
  const [first, second] = [letIn(await enter(narrow)), letIn(await enter(narrow))]
  assert.equal(whyOf(await first.admit(10n)), 'ok')
  assert.equal(whyOf(await second.admit(1n)), 'budget_held')
  assert.equal(windows.look('acct_1').left, 299)
  live.heldNanos = 0n
  letIn(await enter(narrow))
  assert.equal(whyOf(await enter(narrow)), 'key_window')
})

test('R15 a hold counts against the account and against the key, until its release', async () => {
  const { balance, live, narrow, enter } = createBound({ budgetNanos: 10n })
  const { release } = (await letIn(await enter(narrow)).admit(4n)) as Admitted
  assert.deepEqual([balance.heldNanos, live.heldNanos], [4n, 4n])
  release()
  release()
  assert.deepEqual([balance.heldNanos, live.heldNanos], [0n, 0n])
})

test('R15 during the grace period of a rotation, both keys share their bounds: what one spends or takes, the other lacks', async () => {
  const { live, narrow, successor, enter } = createBound({ budgetNanos: 10n, requestsPerMinute: 2 })
  assert.equal(narrow.bounds, successor.bounds)
  await letIn(await enter(narrow)).admit(4n)
  await letIn(await enter(successor)).admit(4n)
  assert.equal(live.heldNanos, 8n)
  assert.equal(whyOf(await enter(narrow)), 'key_window')
})

test('R15 nothing is spent in a calendar window that has ended, and holds continue', async () => {
  const { state, live, narrow, enter } = createBound({ budgetNanos: 10n })
  live.spend = { fromMs: 0, untilMs: 2_000, spentNanos: 10n }
  state.nowMs = 1_999
  assert.equal(whyOf(await enter(narrow)), 'budget_spent')
  state.nowMs = 2_000
  const entered = letIn(await enter(narrow))
  live.heldNanos = 10n
  assert.equal(whyOf(await entered.admit(1n)), 'budget_held')
})

test('C5 R15 an amount owed from a budget is not spendable again, even if the key had no budget when it was owed', async () => {
  const { bounds, live, narrow, enter } = createBound({ budgetNanos: 10n })
  bounds.owe('key_1', 10n)
  assert.equal(whyOf(await enter(narrow)), 'budget_spent')
  bounds.owe('key_1', -10n)
  bounds.set('key_1', { fromMs: 0, untilMs: 2_000, spentNanos: 9n })
  assert.equal(whyOf(await enter(narrow)), 'ok')
  bounds.owe('key_9', 7n)
  const late = bounds.note({ id: 'key_9', scope: 'key_9', bounds: live, spend: undefined })!
  assert.equal(bounds.left(late, live.budget!, 0).creditNanos, 3n)
})

test('F-C47 C2 R15 of 1,000 requests that entered on a budget worth ten, ten are admitted', async () => {
  const { narrow, enter } = createBound({ budgetNanos: 1_000n, limit: 1_000 })
  const entered = await Promise.all(Array.from({ length: 1_000 }, async () => letIn(await enter(narrow))))
  const answers = await Promise.all(entered.map((one) => one.admit(100n)))
  assert.equal(answers.filter(({ ok }) => ok).length, 10)
})

test('C2 R15 in every window, spending exceeds the budget by at most the under-estimated amount plus the last hold', async () => {
  const amount = fc.bigInt(0n, 100n)
  const step = fc.record({
    ends: fc.nat(),
    kind: fc.integer({ min: 0, max: 8 }),
    holdNanos: amount,
    actualNanos: amount,
  })
  await fc.assert(
    fc.asyncProperty(fc.bigInt(1n, 300n), fc.array(step, { maxLength: 80 }), async (budgetNanos, steps) => {
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
        const answer = kind < 5 ? await enter(narrow) : undefined
        const admitted = answer?.ok ? await answer.admit(holdNanos) : undefined
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

test('C5 an owed amount is not spendable again when the store reports the balance, until the store has the debit', async () => {
  const { balances, balance, enter } = createGate({ balanceNanos: 10n })
  balances.owe('acct_1', 10n)
  assert.equal(whyOf(await enter()), 'spent')
  // The store does not know of it, and says so as often as it is read.
  balances.set('acct_1', 10n)
  balances.set('acct_1', 10n)
  assert.equal(whyOf(await enter()), 'spent')
  balances.owe('acct_1', -10n)
  balances.set('acct_1', 0n)
  assert.deepEqual([balance.balanceNanos, balance.owedNanos], [0n, 0n])
  balances.set('acct_1', 5n)
  assert.equal(whyOf(await enter()), 'ok')
})

test('C5 R1 a failure that occurs while a body is read is reported at the hold: a store without debits, spent credit', async () => {
  const { enter, state, balances, balance } = createGate()
  const early = letIn(await enter())
  state.blocked.add('acct_1')
  assert.equal(whyOf(await early.admit(1n)), 'unwritable')
  state.blocked.clear()
  const late = letIn(await enter())
  balances.set('acct_1', -3n)
  assert.equal(whyOf(await late.admit(1n)), 'spent')
  assert.deepEqual([balance.heldNanos, balance.running], [0n, 0])
})

/** Keys of one person, each with bounds of its own, and the person's bounds over them. */
function createOwned({ budgetNanos, requestsPerMinute }: { budgetNanos?: bigint; requestsPerMinute?: number }) {
  const rig = createBound({ budgetNanos: 1_000n, requestsPerMinute: 3 })
  const budget: Budget | undefined = budgetNanos === undefined ? undefined : { nanos: budgetNanos, per: 'day' }
  const person = rig.bounds.note({
    ...{ id: 'per_1', scope: 'per_1', bounds: { ...keyBounds.none, budget, requestsPerMinute } },
    spend: budget && { fromMs: 0, untilMs: 2_000, spentNanos: 0n },
  })!
  const keys = [rig.narrow, { ...key, id: 'key_5' }].map((one) => ({ ...one, personBounds: person }))
  return { ...rig, person, keys }
}

test('Y20 the bounds of a person cover all their keys and are reported after those of the account, before those of the key', async () => {
  const { balance, windows, live, person, keys, enter } = createOwned({ budgetNanos: 10n, requestsPerMinute: 2 })
  const [narrow, wide] = keys
  for (const one of keys) letIn(await enter(one))
  for (const one of keys) assert.deepEqual(await enter(one), { ok: false, why: 'person_window', retryAfterSeconds: 60 })
  assert.equal(windows.look('acct_1').left, 298, 'a refusal uses no place')
  person.heldNanos = 10n
  live.heldNanos = 1_000n
  const refused = { why: 'person_budget_held', leftNanos: 10n, renewsMs: 2_000, budget: { nanos: 10n, per: 'day' } }
  assert.deepEqual(await enter(narrow), { ok: false, ...refused })
  person.spend = { fromMs: 0, untilMs: 2_000, spentNanos: 10n }
  assert.equal(whyOf(await enter(wide)), 'person_budget_spent')
  balance.heldNanos = balance.balanceNanos
  assert.equal(whyOf(await enter(wide)), 'held')
  balance.heldNanos = 0n
  Object.assign(person, keyBounds.none)
  assert.equal(whyOf(await enter(narrow)), 'budget_held')
})

test('Y20 R13 R1 of three windows, the one with the fewest places left is reported, and a 402 at the hold returns all three', async () => {
  const { windows, live, person, keys, enter, admission } = createOwned({ budgetNanos: 10n, requestsPerMinute: 2 })
  const entered = [letIn(await enter(keys[0])), letIn(await enter(keys[1]))]
  assert.deepEqual(admission.look('acct_1', live, person)?.window, { limit: 2, left: 0, resetSeconds: 60 })
  assert.deepEqual(admission.look('acct_1', live)?.window, { limit: 3, left: 2, resetSeconds: 60 })
  const first = (await entered[0]!.admit(10n)) as Admitted
  assert.equal(whyOf(await entered[1]!.admit(1n)), 'person_budget_held')
  assert.deepEqual([windows.look('acct_1').left, admission.look('acct_1', live, person)?.window?.left], [299, 1])
  first.release()
  assert.deepEqual([person.heldNanos, live.heldNanos], [0n, 0n])
})

test('Y20 C5 an amount owed by a person is not spendable again', async () => {
  const { bounds, keys, enter } = createOwned({ budgetNanos: 10n })
  bounds.owe('per_1', 10n)
  assert.equal(whyOf(await enter(keys[1])), 'person_budget_spent')
  bounds.owe('per_1', -10n)
  assert.equal(whyOf(await enter(keys[1])), 'ok')
})

test('Y20 C2 in every window, a person exceeds the budget by at most the under-estimated amount plus the last hold', async () => {
  const request = fc.record({
    which: fc.nat(1),
    hold: fc.bigInt(0n, 40n),
    actual: fc.bigInt(0n, 60n),
    ends: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(request, { maxLength: 40 }), fc.bigInt(1n, 100n), async (requests, budgetNanos) => {
      const { bounds, person, keys, enter } = createOwned({ budgetNanos })
      Object.assign(keys[0]!.bounds!, keyBounds.none)
      let [spentNanos, underNanos, lastNanos] = [0n, 0n, 0n]
      const running: (() => void)[] = []
      for (const { which, hold, actual, ends } of requests) {
        const entered = await enter(keys[which])
        const admitted = entered.ok ? await entered.admit(hold) : entered
        if (admitted.ok) {
          lastNanos = hold > lastNanos ? hold : lastNanos
          underNanos += actual > hold ? actual - hold : 0n
          running.push(() => {
            spentNanos += actual
            bounds.set('per_1', { fromMs: 0, untilMs: 2_000, spentNanos })
            admitted.release()
          })
        }
        if (ends) running.shift()?.()
      }
      for (const end of running) end()
      assert.ok(spentNanos <= budgetNanos + underNanos + lastNanos, `${spentNanos}`)
      assert.equal(person.heldNanos, 0n)
    }),
  )
})
