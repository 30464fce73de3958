import assert from 'node:assert/strict'
import test from 'node:test'
import { foldedMax, usualReporting } from '../../src/accounts/usage/reporting.ts'
import { Folder, type FolderOptions } from '../../src/store/sqlite/folder.ts'
import type { Store } from '../../src/store/sqlite/store.ts'

test('issue 10: after figures that cannot be stored, no retry happens for a minute, however many debits arrive', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let tries = 0
  const told: string[] = []
  const store = {
    withoutWaiting: (work: () => boolean) => work(),
    adoptReporting: () => {},
    pruneSome: () => false,
    fold() {
      tries++
      throw new Error('no such table')
    },
  } as unknown as Store
  const folder = new Folder({
    connection: { write: (work: (store: Store) => void) => work(store) } as unknown as FolderOptions['connection'],
    reporting: usualReporting,
    say: ({ message }) => void told.push(message),
    nowMs: () => 0,
    everyMs: 5_000,
  })
  folder.note(foldedMax)
  t.mock.timers.tick(0)
  assert.deepEqual([tries, told.length], [1, 1])
  for (let i = 0; i < 10; i++) {
    folder.note(foldedMax)
    t.mock.timers.tick(1_000)
  }
  assert.equal(tries, 1)
  t.mock.timers.tick(50_000)
  assert.equal(tries, 2)
  folder.close()
})
