import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { inSnapshot, inTransaction, rowsOf, type StoreStep } from '../../src/store/sql/step.ts'
import { createRun } from '../../src/store/sqlite/run.ts'
import { atEnd } from '../support/at-end.ts'
import { openFile } from './engines.ts'
import { createDebitRow, createPath, verifyOptions } from './fixtures.ts'

const sql = (text: string) => rowsOf({ text, values: [] })

test('STR-5 a step in a transaction is written completely or not at all, and a step inside it joins it', () => {
  const db = new DatabaseSync(':memory:')
  atEnd(() => db.close())
  const run = createRun(db)
  run(sql('CREATE TABLE t (n INTEGER)'))
  function* add(fails: boolean): StoreStep<unknown> {
    yield* sql('INSERT INTO t VALUES (1)')
    yield* inTransaction(sql('INSERT INTO t VALUES (2)'))
    yield* inSnapshot(sql('SELECT * FROM t'))
    if (fails) throw new Error('broken off')
    return (yield* sql('SELECT count(*) AS n FROM t'))[0]!['n']
  }
  assert.throws(() => run(inTransaction(add(true))), /broken off/)
  assert.deepEqual(run(sql('SELECT * FROM t')), [])
  assert.equal(run(inTransaction(add(false))), 2)
  assert.equal(db.isTransaction, false)
})

test('C9 a fold that was rolled back has numbered no words', async () => {
  const store = openFile(createPath())
  const { id } = await store.createAccount('a', 1_000_000_000_000n)
  await store.postDebits([createDebitRow('one', id)])
  await store.exec(`CREATE TRIGGER broken BEFORE INSERT ON sums_k BEGIN SELECT RAISE(ABORT, 'broken off'); END`)
  await assert.rejects(store.fold(10), /broken off/)
  // Other words get the numbers that were rolled back.
  await store.exec(
    `DROP TRIGGER broken; INSERT INTO usage_words (kind, word) VALUES ('model', 'another'), ('key', 'other')`,
  )
  await store.fold(10)
  assert.deepEqual(await store.verify(verifyOptions), [])
})
