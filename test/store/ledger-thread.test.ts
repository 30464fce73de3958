import assert from 'node:assert/strict'
import test from 'node:test'
import type { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../src/accounts/account.ts'
import { LedgerThread } from '../../src/store/sqlite/ledger-thread.ts'
import { openStore } from '../support/operator.ts'
import { createDebitRow, createPath } from './fixtures.ts'

test('F-P15 when the thread dies, everyone who waits for it hears why, and whoever asks later', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const workers: Worker[] = []
  const note = (worker: Worker) => void workers.push(worker)
  process.on('worker', note)
  t.after(() => process.off('worker', note))
  const thread = new LedgerThread({ path, busyMs: 20, pollMs: 3_600_000, drainsSpool: false }, () => {})
  await thread.ready
  const debit = createDebitRow('req_1', id)
  // From here on it reads no message.
  const end = workers[0]!.terminate()
  const waiting = [thread.post([debit]), thread.giveBack(['req_9']), thread.withdraw([debit]), thread.look()]
  const outcomes = Promise.allSettled(waiting)
  await end
  const reasons = (await outcomes).map((outcome) => (outcome.status === 'rejected' ? outcome.reason : undefined))
  const death = await thread.death
  assert.deepEqual(reasons.slice(0, 3), [death, death, death])
  assert.ok(reasons[3] instanceof StoreSilent && reasons[3].cause === death)
  for (const late of [() => thread.post([debit]), () => thread.withdraw([debit]), () => thread.look()])
    await assert.rejects(late(), StoreSilent)
})
