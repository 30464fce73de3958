import assert from 'node:assert/strict'
import { DatabaseSync, type SQLInputValue, type SQLOutputValue } from 'node:sqlite'
import test from 'node:test'
import { findUsageDifferences } from '../../src/store/sql/usage-check.ts'
import { createDialect, createRun } from '../../src/store/sqlite/run.ts'
import { openFile } from './engines.ts'
import { createDebitRow, createPath } from './fixtures.ts'
import { hourMs, startMs } from './usage-laws.ts'

/*
 * Figures are compared with entries in pages. A statement of a database has seconds, and one account or one day can have
 * more entries than can be summed in that time.
 */

test('C9 figures are compared in statements of at most a page of entries, and each difference is found', async () => {
  const path = createPath()
  const store = openFile(path, { atMs: startMs })
  const { id } = await store.createAccount('a', 1_000_000_000_000n)
  const sameMs = ['one', 'two', 'three']
  await store.postDebits(sameMs.map((requestId) => createDebitRow(requestId, id)))
  for (let n = 1; n < 8; n++) {
    await store.turn(startMs + (n * hourMs) / 2)
    await store.postDebits([createDebitRow(`later-${n}`, id)])
  }
  while (await store.fold(500)) {}
  await store.close()

  const db = new DatabaseSync(path, { readBigInts: true })
  const summed: number[] = []
  const prepare = db.prepare.bind(db)
  db.prepare = (sql) => {
    const statement = prepare(sql)
    if (!/FROM main\.entries e[\s\S]*GROUP BY/.test(sql)) return statement
    const all: (...values: SQLInputValue[]) => Record<string, SQLOutputValue>[] = statement.all.bind(statement)
    statement.all = (...values: unknown[]) => {
      const rows = all(...(values as SQLInputValue[]))
      summed.push(rows.reduce((sum, row) => sum + Number(row['requests']), 0))
      return rows
    }
    return statement
  }
  const find = (pageMax: number) => {
    summed.length = 0
    return createRun(db)(findUsageDifferences(createDialect(), pageMax))
  }

  for (const pageMax of [1, 2, 3, 4, 9, 10, 5_000]) {
    assert.deepEqual(find(pageMax), [], `pages of ${pageMax}`)
    // A page by time holds all entries of its last millisecond.
    assert.ok(Math.max(...summed) <= Math.max(pageMax, sameMs.length), `pages of ${pageMax}: ${summed.join(' ')}`)
    assert.equal(
      summed.reduce((sum, one) => sum + one, 0),
      20,
      'each entry is summed once by time and once by account',
    )
  }
  db.exec('UPDATE sums_k SET requests = requests + 1; UPDATE sums_d SET cost = cost - 1')
  const found = find(5_000)
  assert.equal(found.length, 2)
  for (const pageMax of [1, 2, 3, 4, 9, 10]) assert.deepEqual(find(pageMax), found, `pages of ${pageMax}`)
  db.close()
})
