import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { coverPairs } from './support/runs.ts'

const rows = fc.array(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 4, maxLength: 4 }), { maxLength: 60 })

test('the chosen rows have every pair of values that occurs in a row, in the order of the table', () => {
  fc.assert(
    fc.property(rows, (rows) => {
      const chosen = coverPairs(rows, (row) => row)
      for (const row of rows)
        for (const [one, value] of row.entries())
          for (const [other, more] of row.entries())
            assert.ok(chosen.some((row) => row[one] === value && row[other] === more))
      assert.deepEqual(
        chosen,
        rows.filter((row) => chosen.includes(row)),
      )
    }),
  )
})

test('a table of all combinations is covered by a fraction of its rows, and one of single values by one row each', () => {
  const values = [0, 1, 2, 3]
  const rows = values.flatMap((a) => values.flatMap((b) => values.flatMap((c) => values.map((d) => [a, b, c, d]))))
  const chosen = coverPairs(rows, (row) => row)
  assert.ok(chosen.length >= 16 && chosen.length <= 32, `${chosen.length} of ${rows.length}`)
  assert.deepEqual(
    coverPairs([1, 2, 2, 3], (row) => [row]),
    [1, 2, 3],
  )
})

test('npm test does a share of the runs, never fewer than five; the nightly run does all, or those of TRIWIRE_RUNS', async (t) => {
  const before = process.env['TRIWIRE_RUNS']
  t.after(() => {
    if (before === undefined) delete process.env['TRIWIRE_RUNS']
    else process.env['TRIWIRE_RUNS'] = before
  })
  delete process.env['TRIWIRE_RUNS']
  // Other paths are other modules, which read the environment anew.
  const usual = (await import(`${import.meta.resolve('./support/runs.ts')}?usual`)) as Runs
  assert.deepEqual([usual.runsOf(300), usual.runsOf(12), usual.runsUpTo(3)], [60, 5, 3])
  assert.equal(usual.chooseRows(['aa', 'ab', 'ba', 'bb', 'aa'], (row) => [...row]).length, 4)
  assert.deepEqual(
    [0, 1].map((turn) => usual.takeTurn(['a', 'b', 'c'], turn, 2)),
    [['a', 'c'], ['b']],
  )
  process.env['TRIWIRE_RUNS'] = '10000'
  const nightly = (await import(`${import.meta.resolve('./support/runs.ts')}?nightly`)) as Runs
  assert.deepEqual([nightly.runsOf(300), nightly.runsUpTo(300)], [10_000, 300])
  assert.equal(nightly.chooseRows(['aa', 'ab', 'ba', 'bb', 'aa'], (row) => [...row]).length, 5)
  assert.deepEqual(nightly.takeTurn(['a', 'b', 'c'], 1, 2), ['a', 'b', 'c'])
})

type Runs = typeof import('./support/runs.ts')
