import assert from 'node:assert/strict'
import { join } from 'node:path'
import test from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import { openServingBooks } from '../../src/store/open-books.ts'
import { openBooksThread, sumsMax, toAnswer } from '../../src/store/serving/books-thread.ts'
import { testFolder } from '../support/folder.ts'
import { openStore } from '../support/operator.ts'
import { createDebitRow } from './fixtures.ts'

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

test('a list or a statement that reads a long ledger delays no sign-in and no change', async (t) => {
  const path = join(testFolder('books-thread'), 'triwire.db')
  const store = openStore(path)
  t.after(() => store.close())
  const { id: accountId } = store.createAccount('acme')
  const [busy, idle] = [store.createKey('acme'), store.createKey('acme')]
  for (let from = 0; from < 20_000; from += 1_000)
    store.postDebits(
      Array.from({ length: 1_000 }, (_, n) => ({ ...createDebitRow(`req_${from + n}`, accountId), keyId: busy.id })),
    )
  const { books, close } = await openServingBooks({ engine: 'sqlite', path, shown: path }, Date.now)
  t.after(close)
  const list = (...keyIds: string[]) => books.listEntries({ accountId, keyIds, limit: 250 })
  // Both threads have opened the store.
  assert.equal((await list(busy.id)).length, 250)
  assert.equal((await books.findAccount(accountId)).name, 'acme')
  const month = { accountId, fromMs: 0, toMs: Date.now() + 60_000 }
  for (const ask of [() => list(idle.id), () => books.sumMonth(month)]) {
    const order: string[] = []
    const note = (what: string) => () => order.push(what)
    const slow = Array.from({ length: 5 }, () => ask().then(note('slow')))
    await Promise.all([...slow, books.findAccount(accountId).then(note('account'))])
    assert.equal(order[0], 'account', `${ask}`)
  }
  assert.deepEqual((await books.sumMonth(month)).entries, { from: 1, to: 20_000 })
  const all = []
  for await (const { bill } of books.eachEntry({ accountId, keyIds: [busy.id] })) all.push(bill?.requestId)
  assert.equal(new Set(all).size, 20_000)
})
