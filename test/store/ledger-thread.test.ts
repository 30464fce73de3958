import assert from 'node:assert/strict'
import test from 'node:test'
import type { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../src/accounts/account.ts'
import { usualReporting } from '../../src/accounts/usage/reporting.ts'
import { LedgerThread } from '../../src/store/sqlite/ledger-thread.ts'
import { openStore } from '../support/operator.ts'
import { turn } from '../support/waiting.ts'
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
  const thread = new LedgerThread(
    { path, busyMs: 20, pollMs: 3_600_000, drainsSpool: false, reporting: usualReporting },
    () => {},
  )
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

test('B14 a thread that is closed ends by itself, and its death is nobody’s', async (t) => {
  const exits: number[] = []
  const note = (worker: Worker) => void worker.on('exit', (code) => exits.push(code))
  process.on('worker', note)
  t.after(() => process.off('worker', note))
  const thread = new LedgerThread(
    { path: createPath(t), busyMs: 20, pollMs: 20, drainsSpool: false, reporting: usualReporting },
    () => {},
  )
  await thread.ready
  await thread.close()
  // What is terminated has another code.
  assert.deepEqual(exits, [0])
  assert.equal(await Promise.race([thread.death, turn()]), undefined)
})
