import assert from 'node:assert/strict'
import test from 'node:test'
import type { Worker } from 'node:worker_threads'
import { StoreSilent } from '../../src/accounts/account.ts'
import { usualReporting } from '../../src/accounts/usage/reporting.ts'
import { packDebit, StoreThread } from '../../src/store/serving/thread.ts'
import type { WorkerOptions } from '../../src/store/sqlite/worker.ts'
import { openStore } from '../support/operator.ts'
import { turn } from '../support/waiting.ts'
import { createDebitRow, createPath } from './fixtures.ts'

test('F-P15 when the thread dies, all waiting and later callers get the reason', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const workers: Worker[] = []
  const note = (worker: Worker) => void workers.push(worker)
  process.on('worker', note)
  t.after(() => process.off('worker', note))
  const thread = start({ path, pollMs: 3_600_000 })
  await thread.ask('open', undefined)
  const debit = createDebitRow('req_1', id)
  // From here on it reads no message.
  const end = workers[0]!.terminate()
  const askAll = () => [
    thread.ask('post', [packDebit(debit)]),
    thread.ask('giveBack', ['req_9']),
    thread.ask('withdraw', [debit]),
    thread.ask('lookUp', []),
  ]
  const waiting = askAll()
  const outcomes = Promise.allSettled(waiting)
  await end
  const reasons = (await outcomes).map((outcome) => (outcome.status === 'rejected' ? outcome.reason : undefined))
  const death = await thread.death
  assert.deepEqual(reasons, [death, death, death, death])
  for (const late of askAll()) await assert.rejects(late, StoreSilent)
})

test('B14 a closed thread ends by itself, and its end is not reported as a death', async (t) => {
  const exits: number[] = []
  const note = (worker: Worker) => void worker.on('exit', (code) => exits.push(code))
  process.on('worker', note)
  t.after(() => process.off('worker', note))
  const thread = start({ path: createPath(t), pollMs: 20 })
  await thread.ask('open', undefined)
  await thread.close()
  // What is terminated has another code.
  assert.deepEqual(exits, [0])
  assert.equal(await Promise.race([thread.death, turn()]), undefined)
})

function start(options: Pick<WorkerOptions, 'path' | 'pollMs'>): StoreThread {
  const workerData: WorkerOptions = { ...options, busyMs: 20, drainsSpool: false, reporting: usualReporting }
  const file = new URL('../../src/store/sqlite/worker.ts', import.meta.url)
  return new StoreThread({ file, name: 'ledger', workerData, closeMs: 2_000 }, () => {})
}
