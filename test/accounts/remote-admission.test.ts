import assert from 'node:assert/strict'
import test from 'node:test'
import type { LiveBounds } from '../../src/accounts/account.ts'
import { type ApiKey, StoreSilent } from '../../src/accounts/account.ts'
import type { AdmissionRefusal, Admitted, Entered } from '../../src/accounts/admission.ts'
import type { DeskAnswer, DeskOrder, DeskQuestion, DeskVerdict, KeyFigures } from '../../src/accounts/desk.ts'
import { keyBounds } from '../../src/accounts/key-bounds.ts'
import { RemoteAdmission } from '../../src/accounts/remote-admission.ts'
import { turn } from '../support/waiting.ts'

const key: ApiKey = {
  id: 'key_1',
  prefix: 'sk-tri-12345678',
  account: { id: 'acct_1', name: 'one', state: 'active' },
  expiresMs: undefined,
}

/** An admission before a desk with scripted answers. */
function start({ limit = 300 } = {}) {
  const told: DeskOrder[] = []
  const state = { blocked: new Set<string>(), isShedding: false, nowMs: 0, limit }
  const admission = new RemoteAdmission(
    (accountId) => (state.blocked.has(accountId!) ? 'owing' : undefined),
    (keyId) => (keyId === 'key_9' ? narrow().bounds : undefined),
  )
  admission.connect((orders) => void told.push(...orders))
  const open = admission.open({
    requestsPerMinute: () => state.limit,
    isShedding: () => state.isShedding,
    clockMs: () => state.nowMs,
    nowMs: () => state.nowMs,
  })
  /** Answers the one question that waits. */
  async function answer(
    verdict: DeskVerdict | 'silent',
    more: Partial<Record<keyof typeof plain, number>> & { key?: KeyFigures; person?: KeyFigures } = {},
  ) {
    await turn()
    const asks = takeAsks()
    assert.equal(asks.length, 1)
    const figures = { key: undefined, person: undefined, ...plain, ...more }
    const heard: DeskAnswer = {
      id: asks[0]!.id,
      verdict,
      figures: {
        balanceNanos: BigInt(figures.balance),
        freeNanos: BigInt(figures.free),
        window: { taken: figures.taken, endsInMs: figures.endsInMs },
        budget: undefined,
        key: figures.key,
        person: figures.person,
      },
      place: verdict === 'admitted' && asks[0]!.place === 'take' ? { accountMs: 7, keyMs: undefined } : undefined,
    }
    admission.hear([heard])
    return asks[0]!
  }
  function takeAsks(): DeskQuestion[] {
    return told.splice(0).flatMap((order) => (order.say === 'ask' ? [order.ask] : []))
  }
  return { admission, open, state, told, answer, takeAsks, enter: () => open.enter(key) }
}

const plain = { balance: 100, free: 100, taken: 1, endsInMs: 60_000 }

/** Comes to its end only where nothing has to be asked: no test answers meanwhile. */
async function letIn(entering: Promise<Entered | AdmissionRefusal>): Promise<Entered> {
  const answer = await entering
  assert.ok(answer.ok)
  return answer
}

/** An admission that knows that its account has credit. */
async function startKnown(more: Parameters<ReturnType<typeof start>['answer']>[1] = {}) {
  const rig = start()
  const entering = rig.enter()
  await rig.answer('admitted', more)
  assert.ok((await entering).ok)
  rig.told.length = 0
  return rig
}

test('R1 X7: for an unknown account, the store is asked for a place before the body, then for the hold', async () => {
  const { enter, answer } = start()
  const entering = enter()
  assert.deepEqual(await answer('admitted'), {
    id: 1,
    accountId: 'acct_1',
    requestsPerMinute: 300,
    holdNanos: 0n,
    place: 'take',
  })
  const entered = (await entering) as Entered
  const admitting = entered.admit(9n)
  const { place, holdNanos } = await answer('admitted')
  // The question names the place that it has, which is returned if credit refuses the hold.
  assert.deepEqual([place, holdNanos], [{ accountMs: 7, keyMs: undefined }, 9n])
  assert.equal((await admitting).ok, true)
})

test('R1 X7: an account that had credit enters without a question; its place and hold are one question', async () => {
  const { enter, answer, told } = await startKnown()
  const entered = await letIn(enter())
  await turn()
  assert.deepEqual(told, [])
  const admitting = entered.admit(9n)
  const { place, holdNanos } = await answer('admitted')
  assert.deepEqual([place, holdNanos], ['take', 9n])
  const { release } = (await admitting) as Admitted
  release()
  release()
  entered[Symbol.dispose]()
  await turn()
  assert.deepEqual(told, [{ say: 'release', accountId: 'acct_1', keyId: undefined, holdNanos: 9n }])
})

test('C2 X7: no request is refused for credit on an outdated answer: the store is asked again', async () => {
  const { enter, answer } = await startKnown({ balance: 10, free: 0 })
  const entering = enter()
  await answer('held', { balance: 10, free: 0 })
  assert.deepEqual(await entering, { ok: false, why: 'held', balanceNanos: 10n })
  const again = enter()
  await answer('spent', { balance: -3, free: -3 })
  assert.deepEqual(await again, { ok: false, why: 'spent', balanceNanos: -3n })
  const third = enter()
  await answer('admitted')
  assert.equal((await third).ok, true)
})

test('X7: a full window stays full until it ends, without a question, unless the limit was raised', async () => {
  const { enter, answer, state, told } = await startKnown()
  const admitting = (await letIn(enter())).admit(1n)
  await answer('window', { taken: 300, endsInMs: 30_000 })
  assert.deepEqual(await admitting, { ok: false, why: 'window', retryAfterSeconds: 30 })
  state.nowMs = 20_500
  assert.deepEqual(await enter(), { ok: false, why: 'window', retryAfterSeconds: 10 })
  state.limit = 301
  await letIn(enter())
  state.limit = 300
  state.nowMs = 30_000
  await letIn(enter())
  assert.deepEqual(told, [])
})

test('R1 X7: a request with a wrong body is judged first; however it ends, it uses its place once', async () => {
  const { enter, answer, takeAsks } = await startKnown()
  const wrong = await letIn(enter())
  const judging = wrong.judge()
  assert.equal((await answer('spent', { balance: 0, free: 0 })).place, 'take')
  assert.deepEqual(await judging, { ok: false, why: 'spent', balanceNanos: 0n })
  wrong[Symbol.dispose]()
  await turn()
  assert.deepEqual(takeAsks(), [])
  const { enter: enterAgain, takeAsks: takeAgain } = await startKnown()
  const abandoned = await letIn(enterAgain())
  abandoned[Symbol.dispose]()
  await turn()
  assert.deepEqual(
    takeAgain().map(({ holdNanos, place }) => [holdNanos, place]),
    [[0n, 'take']],
  )
})

test('R1 X7: a request that asked in order to enter has its place, and is not judged again', async () => {
  const { enter, answer, takeAsks } = start()
  const entering = enter()
  await answer('admitted')
  const entered = (await entering) as Entered
  assert.equal(await entered.judge(), undefined)
  entered[Symbol.dispose]()
  await turn()
  assert.deepEqual(takeAsks(), [])
})

test('R1 X7: a process that sheds takes no place, and reports missing credit first', async () => {
  const { enter, answer, state } = start()
  state.isShedding = true
  const poor = enter()
  const { place, holdNanos } = await answer('spent', { balance: 0, free: 0 })
  assert.deepEqual([place, holdNanos], [{ accountMs: 0, keyMs: undefined }, 0n])
  assert.deepEqual(await poor, { ok: false, why: 'spent', balanceNanos: 0n })
  const other = enter()
  await answer('admitted')
  assert.deepEqual(await other, { ok: false, why: 'busy' })
  assert.deepEqual(await enter(), { ok: false, why: 'busy' })
})

test('C5 X7: a store that does not answer counts as silent, and one that takes no debits is not asked', async () => {
  const { enter, answer, state, told } = start()
  const entering = enter()
  await answer('silent')
  await assert.rejects(entering, StoreSilent)
  state.blocked.add('acct_1')
  assert.deepEqual(await enter(), { ok: false, why: 'unwritable' })
  await turn()
  assert.deepEqual(told, [])
})

test('Y16 X7: the store is not asked about a blocked account, at entry or hold; about another account it is', async () => {
  const { enter, answer, state, told } = await startKnown()
  const [first, second] = [await letIn(enter()), await letIn(enter())]
  state.blocked.add('acct_2')
  const admitting = first.admit(1n)
  await answer('admitted')
  assert.equal((await admitting).ok, true)
  state.blocked.add('acct_1')
  assert.deepEqual(await second.admit(1n), { ok: false, why: 'unwritable' })
  assert.deepEqual(await enter(), { ok: false, why: 'unwritable' })
  await turn()
  assert.deepEqual(told, [])
})

test('X7 C5: an owed amount is reported to the desk, and held there until the store has it', async () => {
  const { admission, told } = start()
  admission.balances.owe('acct_1', 5n)
  admission.balances.owe('acct_1', -5n)
  await turn()
  assert.deepEqual(
    told.map((order) => order.say === 'owe' && order.amountNanos),
    [5n, -5n],
  )
})

test('X7 F-P15: a new desk gets the holds and the unanswered questions; without a new desk the store counts as silent', async () => {
  const { admission, enter, answer } = await startKnown()
  const admitting = (await letIn(enter())).admit(9n)
  await answer('admitted')
  await admitting
  admission.balances.owe('acct_2', 4n)
  const waiting = (await letIn(enter())).admit(3n)
  await turn()
  admission.disconnect()
  const late = (await letIn(enter())).admit(2n)
  const again: DeskOrder[] = []
  admission.connect((orders) => void again.push(...orders))
  assert.deepEqual(
    again.map((order) => (order.say === 'ask' ? order.ask.holdNanos : order)),
    [
      { say: 'owe', accountId: 'acct_1', keyId: undefined, amountNanos: 9n },
      { say: 'owe', accountId: 'acct_2', keyId: undefined, amountNanos: 4n },
      3n,
      2n,
    ],
  )
  admission.disconnect(new Error('dead twice'))
  for (const asked of [waiting, late]) await assert.rejects(asked as Promise<unknown>, StoreSilent)
  await assert.rejects((await letIn(enter())).admit(1n), StoreSilent)
})

test('R13 X7: the reported standing of an account comes from the last answer or posted debit', async () => {
  const { open, admission, state } = await startKnown({ balance: 50, taken: 7 })
  assert.deepEqual(open.look('acct_1'), {
    balanceNanos: 50n,
    window: { limit: 300, left: 293, resetSeconds: 60 },
  })
  admission.balances.set('acct_1', 40n)
  state.nowMs = 60_000
  assert.deepEqual(open.look('acct_1'), { balanceNanos: 40n, window: { limit: 300, left: 300, resetSeconds: 0 } })
  assert.equal(open.look('acct_2'), undefined)
})

/** The key, narrower than its account. */
function narrow(more: Partial<LiveBounds> = {}): ApiKey & { bounds: LiveBounds } {
  const own = { ...keyBounds.none, budget: { nanos: 50n, per: 'day' }, requestsPerMinute: 5 } as const
  const bounds: LiveBounds = { ...own, scope: 'key_8', spend: undefined, heldNanos: 0n, keyIds: new Set(), ...more }
  return { ...key, id: 'key_9', bounds }
}

const ofKey = { window: { taken: 1, endsInMs: 60_000 }, budget: { leftNanos: 9n, freeNanos: 9n, renewsMs: 123 } }

test('R15 X7: the store is asked with the scope of the key, and a hold and its release count for both', async () => {
  const { open, answer, told } = await startKnown()
  const asker = narrow()
  const admitting = (await letIn(open.enter(asker))).admit(9n)
  const asked = await answer('admitted', { key: ofKey })
  assert.deepEqual(asked.key, { id: 'key_8', requestsPerMinute: 5, budgetNanos: 50n })
  const { release } = (await admitting) as Admitted
  assert.equal(asker.bounds.heldNanos, 9n)
  release()
  await turn()
  assert.equal(asker.bounds.heldNanos, 0n)
  assert.deepEqual(told.splice(0), [{ say: 'release', accountId: 'acct_1', keyId: 'key_8', holdNanos: 9n }])
  assert.deepEqual(open.look('acct_1', asker.bounds)?.window, { limit: 5, left: 4, resetSeconds: 60 })
})

test('R15 X7: a key that is bound only to models is asked for as its account, and has no holds of its own', async () => {
  const { open, answer, told } = await startKnown()
  const asker = narrow({ budget: undefined, requestsPerMinute: undefined })
  const admitting = (await letIn(open.enter(asker))).admit(9n)
  assert.equal((await answer('admitted')).key, undefined)
  ;((await admitting) as Admitted).release()
  await turn()
  assert.deepEqual(told.splice(0), [{ say: 'release', accountId: 'acct_1', keyId: undefined, holdNanos: 9n }])
})

test('R15 X7: what the store reports of a key includes its budget, what is left and when it renews', async () => {
  const { open, answer, state } = await startKnown()
  const asker = narrow()
  const spent = { ...ofKey, budget: { leftNanos: -3n, freeNanos: -3n, renewsMs: 123 } }
  const first = (await letIn(open.enter(asker))).admit(1n)
  await answer('budget_spent', { key: spent })
  const { budget } = asker.bounds
  assert.deepEqual(await first, { ok: false, why: 'budget_spent', budget, leftNanos: 0n, renewsMs: 123 })
  // Nobody is refused for what was true a while ago.
  const second = open.enter(asker)
  await answer('budget_held', { key: { ...ofKey, window: { taken: 5, endsInMs: 30_000 } } })
  assert.deepEqual(await second, { ok: false, why: 'budget_held', budget, leftNanos: 9n, renewsMs: 123 })
  assert.deepEqual(await open.enter(asker), { ok: false, why: 'key_window', retryAfterSeconds: 30 })
  state.nowMs = 30_000
  const third = (await letIn(open.enter(asker))).admit(1n)
  await answer('key_window', { key: { ...ofKey, window: { taken: 5, endsInMs: 60_000 } } })
  assert.deepEqual(await third, { ok: false, why: 'key_window', retryAfterSeconds: 60 })
})

test('R15 X7: the rest of a budget that was set or changed after the last answer follows from the new budget', async () => {
  const { open, answer } = await startKnown()
  const limited = narrow({ budget: undefined })
  const budget = { nanos: 50n, per: 'day' as const }
  const first = (await letIn(open.enter(limited))).admit(1n)
  await answer('admitted', { key: { window: ofKey.window, budget: undefined } })
  await first
  assert.equal(open.lookBudget({ ...limited.bounds, budget }), 50n)
  const asker = narrow({ budget })
  const second = (await letIn(open.enter(asker))).admit(1n)
  await answer('admitted', { key: ofKey })
  await second
  assert.equal(open.lookBudget({ ...asker.bounds, budget }), 9n)
  assert.equal(open.lookBudget({ ...asker.bounds, budget: { nanos: 80n, per: 'day' } }), 39n)
  assert.equal(open.lookBudget({ ...asker.bounds, budget: { nanos: 40n, per: 'day' } }), -1n)
})

test('R15 C5 X7: an amount owed from a budget is deducted from that budget, and reported to a new desk', async () => {
  const { admission, told } = start()
  admission.balances.owe('acct_1', 4n, 'key_9')
  admission.balances.owe('acct_1', 2n, 'key_1')
  const again: DeskOrder[] = []
  admission.disconnect()
  admission.connect((orders) => void again.push(...orders))
  assert.deepEqual(again, [
    { say: 'owe', accountId: 'acct_1', keyId: 'key_8', amountNanos: 4n },
    { say: 'owe', accountId: 'acct_1', keyId: undefined, amountNanos: 2n },
  ])
  admission.balances.owe('acct_1', -4n, 'key_9')
  await turn()
  assert.deepEqual([...told, ...again].at(-1), {
    ...{ say: 'owe', accountId: 'acct_1' },
    ...{ keyId: 'key_8', amountNanos: -4n },
  })
})

test('Y20 X7: the store is asked with the scope of the person too; a hold, its release and owed amounts count for all three', async () => {
  const { admission, open, answer, told } = await startKnown()
  const own = narrow()
  const personBounds = { ...own.bounds, scope: 'per_1', keyIds: new Set(['per_1']), requestsPerMinute: 4 }
  const asker = { ...own, personBounds }
  const admitting = (await letIn(open.enter(asker))).admit(9n)
  const asked = await answer('admitted', { key: ofKey, person: { ...ofKey, window: { taken: 2, endsInMs: 60_000 } } })
  assert.deepEqual(asked.person, { id: 'per_1', requestsPerMinute: 4, budgetNanos: 50n })
  const { release } = (await admitting) as Admitted
  assert.equal(personBounds.heldNanos, 9n)
  assert.deepEqual(open.look('acct_1', asker.bounds, personBounds)?.window, { limit: 4, left: 2, resetSeconds: 60 })
  const again: DeskOrder[] = []
  admission.disconnect()
  admission.connect((orders) => void again.push(...orders))
  const scopes = { accountId: 'acct_1', keyId: 'key_8', personId: 'per_1' }
  assert.deepEqual(again, [{ say: 'owe', ...scopes, amountNanos: 9n }])
  release()
  await turn()
  assert.deepEqual([...told, ...again].at(-1), { say: 'release', ...scopes, holdNanos: 9n })
  assert.equal(personBounds.heldNanos, 0n)
})

test('Y20 X7: what the store reports of a person includes their budget, and a full window stays full', async () => {
  const { open, answer } = await startKnown()
  const own = narrow({ budget: undefined, requestsPerMinute: undefined })
  const personBounds = {
    ...own.bounds,
    scope: 'per_1',
    requestsPerMinute: 4,
    budget: { nanos: 50n, per: 'day' as const },
  }
  const asker = { ...own, personBounds }
  const first = (await letIn(open.enter(asker))).admit(1n)
  await answer('person_budget_spent', {
    person: { window: undefined, budget: { leftNanos: -3n, freeNanos: -3n, renewsMs: 7 } },
  })
  const { budget } = personBounds
  assert.deepEqual(await first, { ok: false, why: 'person_budget_spent', budget, leftNanos: 0n, renewsMs: 7 })
  const second = open.enter(asker)
  await answer('person_window', { person: { ...ofKey, window: { taken: 4, endsInMs: 30_000 } } })
  assert.deepEqual(await second, { ok: false, why: 'person_window', retryAfterSeconds: 30 })
  assert.deepEqual(await open.enter(asker), { ok: false, why: 'person_window', retryAfterSeconds: 30 })
  assert.equal(open.lookBudget({ ...personBounds, budget }), 9n)
})

test('BRK-14: a store stays silent until the desk reports otherwise, or until there is a new desk', async () => {
  const { admission, told } = start()
  const note = async () => {
    admission.noteSilence(1_000)
    assert.ok(admission.isStoreSilent)
    await turn()
    assert.deepEqual(told.splice(0), [{ say: 'silent', forMs: 1_000 }])
  }
  await note()
  admission.hear([])
  assert.ok(!admission.isStoreSilent)
  await note()
  admission.disconnect()
  admission.noteSilence(1_000)
  admission.connect((orders) => void told.push(...orders))
  assert.ok(!admission.isStoreSilent)
})
