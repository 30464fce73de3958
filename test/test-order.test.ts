import assert from 'node:assert/strict'
import test from 'node:test'
import {
  type Coverage,
  type CoverageReport,
  joinReports,
  type SourceRange,
  sortByGain,
} from '../scripts/support/coverage.ts'
import { chooseWithin } from '../scripts/support/test-order.ts'

/** A report of a source file: each range with the number of its runs. */
const report = (path: string, ...ranges: [start: number, end: number, count: number][]): CoverageReport => ({
  result: [
    {
      url: `file:///src/${path}`,
      functions: [
        {
          functionName: '',
          isBlockCoverage: true,
          ranges: ranges.map(([startOffset, endOffset, count]) => ({ startOffset, endOffset, count })),
        },
      ],
    },
  ],
})

test('code has run if it has run in one of the processes; a block in other code has its own count', () => {
  const first = report('a.ts', [0, 100, 1], [20, 60, 0], [30, 40, 2])
  const second = report('a.ts', [0, 100, 1], [20, 50, 1], [50, 100, 0])
  const other = report('b.ts', [0, 10, 0])
  assert.deepEqual(
    [...joinReports([first], 'file:///src/')],
    [
      [
        'a.ts',
        [
          [0, 20],
          [30, 40],
          [60, 100],
        ],
      ],
    ],
  )
  assert.deepEqual(
    [...joinReports([first, second, other], 'file:///src/')],
    [
      [
        'a.ts',
        [
          [0, 50],
          [60, 100],
        ],
      ],
      ['b.ts', []],
    ],
  )
  assert.deepEqual([...joinReports([first], 'file:///test/')], [])
})

test('short files are first, then the file that runs most new code for its seconds, and last those that run none', () => {
  const coverages = new Map<string, Coverage>(
    Object.entries<SourceRange[]>({
      long: [[0, 1_000]],
      short: [[0, 100]],
      same: [[50, 100]],
      slowSame: [[0, 100]],
      new: [[1_000, 1_010]],
      nothing: [],
      rule: [],
      quick: [[0, 1]],
    }).map(([name, ranges]) => [name, new Map([['a.ts', ranges]])]),
  )
  const secondsOf = { long: 100, short: 1, same: 1, slowSame: 2, new: 10, nothing: 3, rule: 0.1, quick: 0.9 }
  assert.deepEqual(sortByGain(coverages, secondsOf), [
    ['quick', 1],
    ['rule', 0],
    ['short', 99],
    ['long', 900],
    ['new', 10],
    ['same', 0],
    ['slowSame', 0],
    ['nothing', 0],
  ])
})

test('npm test runs files in the order of the table until the seconds are used, and every file that it does not list', () => {
  const order = { a: 3, b: 9, c: 1, gone: 1, d: 2, e: 1 }
  const files = ['a', 'b', 'c', 'd', 'e', 'unlisted']
  assert.deepEqual(chooseWithin(files, order, 14), ['a', 'b', 'c', 'unlisted'])
  assert.deepEqual(chooseWithin(files, order, 15), ['a', 'b', 'c', 'd', 'unlisted'], 'a deleted file costs nothing')
  assert.deepEqual(chooseWithin(['a', 'd'], order, 2), [])
  assert.deepEqual(chooseWithin(['a', 'b', 'c', 'd'], order, 1_000), ['a', 'b', 'c', 'd'])
})
