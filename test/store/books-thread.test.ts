import assert from 'node:assert/strict'
import test from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import { openBooksThread, sumsMax, toAnswer } from '../../src/store/serving/books-thread.ts'

/** Answers with the arguments; dies of some. */
const worker = new URL(
  `data:text/javascript,${encodeURIComponent(`
  import { parentPort } from 'node:worker_threads'
  parentPort.on('message', (asked) => {
    if (asked === 'close') parentPort.close()
    else if (asked.args[0] === 'exit') process.exit(3)
    else if (asked.args[0] === 'throw') throw new Error('no memory is left')
    else if (asked.args[0] !== 'wait') parentPort.postMessage({ id: asked.id, result: asked.args[0] })
  })
`)}`,
)

test('C5 a books thread that dies takes its pending questions with it; the next question goes to a new thread', async () => {
  const thread = openBooksThread(worker, 'books', {})
  const books = thread.books({ actor: 'operator:ann' }, () => 0)
  assert.equal(await books.findAccount('one'), 'one')
  for (const death of ['exit', 'throw']) {
    const waiting = books.findAccount('wait')
    const asked = [waiting, books.findAccount(death)]
    for (const one of asked) await assert.rejects(one, StoreSilent)
    assert.equal(await books.findAccount('again'), 'again')
  }
  await thread.close()
  await assert.rejects(books.findAccount('late'), StoreSilent)
})

test('operate §3 sums of the ledger with more rows than anyone reads are not passed to the serving thread', () => {
  const rows = (count: number) => Array.from({ length: count }, () => null)
  const sums = { id: 1, method: 'sumEntries' }
  assert.deepEqual(toAnswer(sums, rows(sumsMax)), { id: 1, result: rows(sumsMax) })
  assert.deepEqual(toAnswer(sums, rows(sumsMax + 1)), { id: 1, rule: 'too_many_rows', subject: '10000' })
  // What is read by its pages has no such end.
  assert.ok('result' in toAnswer({ id: 1, method: 'listKeys' }, rows(sumsMax + 1)))
})
