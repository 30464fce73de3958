import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { labelsOfRequest, parseDimensions, parseLabels, undeclaredMistake } from '../../src/accounts/labels.ts'
import { runsUpTo } from '../support/runs.ts'

const declared = new Map([
  ['project', new Set(['apollo', 'gemini'])],
  ['project-x', new Set(['apollo'])],
  ['team', new Set(['red', 'blue/1'])],
])

test('Y21 labels are dimensions with values, one in each dimension, four at most', () => {
  assert.deepEqual(parseLabels(' team=red, project-x=apollo,project=apollo'), [
    'project=apollo',
    'project-x=apollo',
    'team=red',
  ])
  const wrong = ['', 'project', '=a', 'a=', 'a=b=c', 'a=b,', 'a=b,a=c', 'a=b c', 'ä=b', 'a="b"', `a=${'x'.repeat(65)}`]
  for (const text of [...wrong, 'a=1,b=1,c=1,d=1,e=1']) assert.throws(() => parseLabels(text), RangeError, text)
  assert.deepEqual(parseDimensions('team,project,team'), ['project', 'team'])
  for (const text of ['', 'a,', 'a=b', 'a b', 'a,b,c,d,e']) assert.throws(() => parseDimensions(text), RangeError, text)
  assert.throws(() => parseDimensions('a,'), /Write dimensions with commas between them, such as project,team/)
})

test('Y21 an undeclared label is reported with its cure', () => {
  assert.equal(undeclaredMistake(declared, ['project=apollo', 'team=blue/1', 'team']), undefined)
  assert.match(undeclaredMistake(declared, ['place'])!, /no dimension "place": declare it in the configuration/)
  assert.match(undeclaredMistake(declared, ['team=apollo'])!, /"apollo" is no value of team: declare it/)
})

const dimension = fc.constantFrom<string>('project', 'project-x', 'team', 'place', '__proto__', '')
const value = fc.constantFrom('apollo', 'gemini', 'red', 'blue/1', 'canary', '', 'constructor')
const label = fc.oneof(
  fc.tuple(dimension, value).map((both) => both.join('=')),
  dimension,
  fc.string({ maxLength: 6 }),
)

test('Y21 law: a request has the labels of its key and declared values that it may choose, and no other byte of its client', () => {
  const own = fc.uniqueArray(fc.constantFrom<string>('project=apollo', 'project-x=apollo', 'team=red', 'old=gone'))
  const sent = fc.option(
    fc.array(label, { maxLength: 4 }).map((all) => all.join(',')),
    { nil: undefined },
  )
  fc.assert(
    fc.property(own, fc.uniqueArray(dimension), sent, (labels, mayChoose, chosen) => {
      const read = labelsOfRequest(chosen, { labels, mayChoose }, declared)
      const words = (chosen ?? '')
        .split(',')
        .map((word) => word.trim())
        .filter(Boolean)
      const split = words.map((word) => word.split('='))
      const isRight =
        split.every(
          ([of = '', what = '', ...more]) => more.length === 0 && mayChoose.includes(of) && declared.get(of)?.has(what),
        ) && new Set(split.map(([of]) => of)).size === split.length
      if (!isRight) return assert.equal(read, 'forbidden')
      assert.notEqual(read, 'forbidden')
      const all = (read as { labels: string | undefined }).labels?.split(',') ?? []
      const dimensions = all.map((one) => one.split('=')[0]!)
      assert.deepEqual(dimensions, [...new Set(dimensions)].sort())
      for (const one of all) assert.ok(labels.includes(one) || words.includes(one), one)
      for (const one of words) assert.ok(all.includes(one), one)
      for (const one of labels) assert.ok(dimensions.includes(one.split('=')[0]!), one)
    }),
    { numRuns: runsUpTo(2_000) },
  )
})
