import assert from 'node:assert/strict'
import test from 'node:test'
import { nanosMax } from '../../src/accounts/credit.ts'
import { withoutPostgres } from '../support/postgres.ts'
import { isNightly } from '../support/runs.ts'
import { clusterOfFile, openShared, startReplica } from './cluster.ts'
import * as laws from './laws.ts'

const cluster = clusterOfFile()
const skip = withoutPostgres()
/** How often: once, and by night as often as chance may show something. */
const runs = isNightly ? 10 : 1

const titles: [title: string, law: laws.Law][] = [
  [
    'X7, C2: over three replicas exactly 300 of 1,000 at once run in a minute, and 300 over forty rounds',
    laws.exactWindow,
  ],
  [
    'X7, C2: over three replicas the overdraft of 1,002 at once is within the law, at their hold and at half as much again',
    laws.boundedOverdraft,
  ],
  ['X7: what three replicas hold is held when the database has lost it, whoever asks first', laws.emptiedWhileHeld],
  ['X7: 180 places taken are taken when the database has lost them: 120 more, and never a 301st', laws.emptiedInWindow],
  ['X7: an answer that is lost behind the commit changes nothing, however often', laws.lostAnswers],
  ['X7: a call that comes behind its successors changes nothing', laws.lateCall],
  ['X7: calls of many accounts never wait for each other in a circle', laws.noDeadlock],
  ['X7: clocks of replicas that are hours apart change nothing', laws.oneClock],
]

for (const [title, law] of titles) {
  test(title, { skip }, async () => {
    for (let run = 0; run < runs; run++) await law(cluster(), `${law.name}-${run}`)
  })
}

test('X7: a database whose default sessions are repeatable read or read only changes nothing', {
  skip,
}, async () => {
  const defaults = { default_transaction_isolation: 'repeatable read', default_transaction_read_only: 'on' }
  await laws.exactWindow(cluster(), 'repeatable', { defaults })
  await laws.boundedOverdraft(cluster(), 'repeatable-credit', { defaults })
})

test('R15 X7: the largest budget has no more left than fits into 64 bits, if a debit of the period before was given back', {
  skip,
}, async () => {
  const store = await openShared(cluster(), 'largest', { patienceMs: 2_000 })
  const replica = await startReplica(store.shared)
  const [account, other] = [await store.createAccount(10n), await store.createAccount(10n)]
  const key = { id: 'key_0000000000000001', requestsPerMinute: undefined, budgetNanos: nanosMax }
  for (const scope of [account, key.id])
    await store.operator.query(
      'INSERT INTO triwire.spends (scope, from_ms, until_ms, spent) VALUES ($1, 0, 8640000000000000, -5)',
      [scope],
    )
  const asked = [replica.ask(account, 3n, { budgetNanos: nanosMax, key }), replica.ask(other, 3n)]
  const [first, second] = await Promise.all(asked)
  assert.deepEqual([first!.verdict, second!.verdict], ['admitted', 'admitted'])
  assert.equal(first!.figures?.key?.budget?.leftNanos, nanosMax)
  assert.equal(first!.figures?.budget?.freeNanos, nanosMax - 3n)
})
