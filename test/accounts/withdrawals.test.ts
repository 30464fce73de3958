import assert from 'node:assert/strict'
import test from 'node:test'
import type { Debit } from '../../src/accounts/ledger.ts'
import { createBalances } from '../../src/accounts/live-accounts.ts'
import type { GivenBack, Poster, Spool, WithdrawalFate, Withdrawn } from '../../src/accounts/poster.ts'
import { type WaitingDebit, Withdrawals } from '../../src/accounts/withdrawals.ts'
import { turn } from '../support/waiting.ts'

/* Withdrawals by themselves (ruling C13); test/accounts/settlement.test.ts has them behind a settlement. */

/** A poster that answers when the test says so, and a spool that can be broken. */
function start() {
  let nowMs = 10_000
  const told: string[] = []
  const asked: { rows: readonly Debit[]; answer: (answer: Withdrawn) => void; die: (error: Error) => void }[] = []
  const gifts: { requestIds: readonly string[]; answer: (given: GivenBack) => void }[] = []
  const spool = {
    isTorn: false,
    isBroken: false,
    notes: [] as string[][],
    async appendReturns(requestIds: readonly string[]) {
      told.push(`note ${requestIds.join(' ')}`)
      if (this.isBroken) throw new Error('canary: the disk is full')
      this.notes.push([...requestIds])
    },
  }
  const poster = {
    withdraw(rows: readonly Debit[]) {
      const { promise, resolve, reject } = Promise.withResolvers<Withdrawn>()
      asked.push({ rows, answer: resolve, die: reject })
      return promise
    },
    giveBack(requestIds: readonly string[]) {
      const { promise, resolve } = Promise.withResolvers<GivenBack>()
      gifts.push({ requestIds, answer: resolve })
      return promise
    },
  }
  const over: string[] = []
  const commits: number[] = []
  const balances = createBalances()
  balances.set('acct_1', 1_000n)
  const state = { hasPoster: true }
  const withdrawals = new Withdrawals({
    spool: spool as unknown as Spool,
    balances,
    clockMs: () => nowMs,
    log: (level, event, fields) => void told.push(`${level} ${event} ${fields['withdrawn']}`),
    poster: () => (state.hasPoster ? (poster as unknown as Poster) : undefined),
    onChange: () => void told.push('change'),
    onOver: (accountId) => void over.push(accountId),
    onCommit: () => void commits.push(commits.length),
  })
  return {
    withdrawals,
    spool,
    asked,
    gifts,
    told,
    over,
    commits,
    state,
    balance: () => balances.get('acct_1')!.balanceNanos,
    pass(ms: number) {
      nowMs += ms
      withdrawals.sweep(nowMs)
    },
    /** Takes over a debit of 100 that its account owes. */
    withdraw(...requestIds: string[]) {
      const debits = requestIds.map((requestId): WaitingDebit => {
        balances.owe('acct_1', 100n)
        const row = { requestId, accountId: 'acct_1', amountNanos: 100n } as Debit
        const resolve = (result: string) => void told.push(`${requestId} ${result}`)
        return { row, sinceMs: 0, dueMs: 0, resolve, reject: () => void told.push(`${requestId} refused`) }
      })
      withdrawals.withdraw(debits, new Error('refused'))
    },
    async answer(...fates: WithdrawalFate[]) {
      asked.shift()!.answer({ fates, balances: [] })
      await turn()
    },
  }
}

test('C13 a debit that the poster does not have is refused, no longer owed, and over after the next commit that writes', async () => {
  const { withdrawals, withdraw, answer, gifts, told, balance } = start()
  withdraw('one')
  assert.deepEqual([withdrawals.size, withdrawals.has('one'), withdrawals.isSafe(), balance()], [1, true, false, 900n])
  await answer('absent')
  assert.deepEqual(told, ['one refused', 'change'])
  assert.deepEqual([withdrawals.size, withdrawals.isSafe(), balance()], [1, true, 1_000n])
  assert.deepEqual(gifts[0]!.requestIds, ['one'])
  gifts[0]!.answer({ returned: [], balances: [] })
  await turn()
  assert.deepEqual(told.slice(2), ['info ledger_withdrawn 1', 'change'])
  assert.equal(withdrawals.size, 0)
})

test('C13 a debit that the poster has on record gets its answer, and is not returned', async () => {
  const { withdrawals, withdraw, answer, gifts, told, balance } = start()
  withdraw('one', 'two')
  await answer('booked', 'absent')
  assert.deepEqual(told, ['one exists', 'two refused', 'change'])
  assert.deepEqual([withdrawals.size, balance(), gifts[0]!.requestIds], [1, 1_000n, ['two']])
  assert.equal(withdrawals.take('one'), undefined)
})

test('C13 a post that arrives meanwhile takes its debit; an unknown or refused id gets none', async () => {
  const { withdrawals, withdraw, answer, told, gifts } = start()
  withdraw('one', 'two')
  assert.equal(withdrawals.take('never heard of'), undefined)
  assert.equal(withdrawals.take('one')!.row.requestId, 'one')
  await answer('unknown', 'absent')
  assert.deepEqual(told, ['two refused', 'change'])
  assert.equal(withdrawals.take('two'), undefined)
  assert.deepEqual(gifts[0]!.requestIds, ['two'])
})

test('C13 a debit that may appear later is noted before its client is answered; only then is a death of the process safe', async () => {
  for (const [fate, isTorn] of [
    ['unknown', false],
    ['absent', true],
  ] as const) {
    const { withdrawals, withdraw, answer, told, spool } = start()
    spool.isTorn = isTorn
    withdraw('one')
    await answer(fate)
    assert.deepEqual(told, ['note one', 'change', 'one refused', 'change'])
    assert.equal(withdrawals.isSafe(), true)
    await withdrawals.close()
    assert.deepEqual(spool.notes, [['one']], 'it is noted once')
  }
})

test('C13 a note that cannot be written is retried once a second, and once more at the end', async () => {
  const { withdrawals, withdraw, answer, told, spool, pass } = start()
  const notes = () => told.filter((text) => text.startsWith('note')).length
  spool.isBroken = true
  withdraw('one')
  await answer('unknown')
  assert.deepEqual([told, withdrawals.isSafe()], [['note one', 'one refused', 'change'], false])
  pass(999)
  await turn()
  assert.equal(notes(), 1)
  pass(1)
  await turn()
  assert.equal(notes(), 2)
  await withdrawals.close()
  assert.deepEqual([notes(), withdrawals.isSafe()], [3, false])
  spool.isBroken = false
  pass(1_000)
  await turn()
  assert.deepEqual([notes(), withdrawals.isSafe(), told.at(-1)], [4, true, 'change'])
  pass(5_000)
  await withdrawals.close()
  assert.equal(notes(), 4, 'what is noted is noted')
})

test('C13 a silent poster is waited for 2.5 s, a dead or absent one not at all', async () => {
  const silent = start()
  silent.withdraw('one')
  silent.pass(2_499)
  await turn()
  assert.deepEqual(silent.told, [])
  silent.pass(1)
  await turn()
  assert.deepEqual(silent.told.slice(0, 3), ['note one', 'change', 'one refused'])
  await silent.answer('booked')
  assert.equal(silent.told.filter((text) => text === 'one exists').length, 0, 'what is told is told')

  const dying = start()
  dying.withdraw('one')
  dying.asked[0]!.die(new Error('dead'))
  await turn()
  assert.ok(dying.told.includes('one refused'))

  const alone = start()
  alone.state.hasPoster = false
  alone.withdraw('one')
  await turn()
  assert.ok(alone.told.includes('one refused'))
  assert.equal(alone.gifts.length, 0)
  alone.state.hasPoster = true
  alone.withdrawals.resend()
  assert.deepEqual(alone.gifts[0]!.requestIds, ['one'])
})

test('C13 the end waits until every client has its answer', async () => {
  const { withdrawals, withdraw, asked, told, answer } = start()
  withdraw('one')
  withdraw('two')
  let isOver = false
  const closing = withdrawals.close().then(() => {
    isOver = true
  })
  await turn()
  await answer('absent')
  assert.equal(isOver, false)
  assert.equal(asked.length, 1)
  await answer('absent')
  await closing
  assert.deepEqual(told, ['one refused', 'change', 'two refused', 'change'])
})

test('C13 a new poster gets the refused debits, not the open questions; a debit returned by two posters ends once', async () => {
  const { withdrawals, withdraw, answer, gifts, told } = start()
  withdraw('one')
  await answer('absent')
  withdraw('two')
  withdrawals.resend()
  assert.deepEqual(
    gifts.map(({ requestIds }) => requestIds),
    [['one'], ['one']],
  )
  told.length = 0
  for (const gift of gifts) {
    gift.answer({ returned: ['one'], balances: [['acct_1', 700n]] })
    await turn()
  }
  assert.deepEqual(told, ['error ledger_withdrawn 1', 'change'])
})
