import assert from 'node:assert/strict'
import test from 'node:test'
import { openBooksThread } from '../../src/store/serving/books-thread.ts'
import { StoreThread } from '../../src/store/serving/thread.ts'

/** A thread that answers every question with the bound of its young generation, in the form of one or the other thread. */
const reporting = (answer: string) =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort, resourceLimits } from 'node:worker_threads'
      const value = resourceLimits.maxYoungGenerationSizeMb
      parentPort.on('message', (asked) => {
        if (asked !== 'close') parentPort.postMessage(${answer})
        if (asked === 'close' || asked.question === 'close') parentPort.close()
      })`)}`,
  )

test('CON-10 the store thread may use 12 MB for new objects', async () => {
  const file = reporting('[{ id: asked.id, value }]')
  const thread = new StoreThread({ file, name: 'ledger', workerData: undefined, closeMs: 5_000 }, () => {})
  assert.equal(await (thread.ask('lookUp', []) as Promise<unknown>), 12)
  await thread.close()
})

test('CON-10 a books thread may use 12 MB for new objects', async () => {
  const thread = openBooksThread(reporting('{ id: asked.id, result: value }'), 'reports', undefined)
  const books = thread.books({ actor: 'test' }, Date.now)
  assert.equal(await (books.listOperators() as Promise<unknown>), 12)
  await thread.close()
})
