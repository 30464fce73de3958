import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'
import { parse } from 'acorn'
import { instrument } from '../scripts/mutate/instrument.ts'
import { findMutants } from '../scripts/mutate/operators.ts'
import { tryMutants, visitMutants } from '../scripts/mutate/run.ts'
import { testFolder } from './support/folder.ts'

test('STR-11 code in which every change is switched stays valid, and each change differs from the code', () => {
  const changed = (code: string) => {
    const mutants = findMutants('a.ts', code).map((mutant, id) => ({ ...mutant, id }))
    parse(instrument(code, mutants), { ecmaVersion: 'latest', sourceType: 'module' })
    return mutants.map(({ after }) => after)
  }
  assert.deepEqual(changed('const a = -(2n ** 63n)'), ['2n ** 63n'])
  assert.deepEqual(changed("import data from './a.json' with { type: 'json' }"), [])
  assert.deepEqual(changed('const b = -a'), ['a'])
})

test('STR-11 the tests of a suite are tried one by one, and a test inside another test counts as a part of it', async () => {
  const root = testFolder('mutants')
  const path = (name: string) => join(root, name)
  writeFileSync(path('code.mjs'), 'export const f = () => 1\nexport const g = () => 1')
  writeFileSync(
    path('some.test.ts'),
    `import { equal } from 'node:assert'
     import { suite, test } from 'node:test'
     import { f, g } from './code.mjs'
     suite('one', () => {
       test('whole', (t) => t.test('part', () => equal(f(), 1)))
       test('other', () => equal(g(), 1))
     })`,
  )
  const switched = 'export const f = () => __mutant(0) ? 2 : 1\nexport const g = () => __mutant(1) ? 2 : 1'
  const code = { [pathToFileURL(path('code.mjs')).href]: switched }
  writeFileSync(path('instrumented.json'), JSON.stringify({ count: 2, code }))
  const place = { root, folder: root, codePath: path('instrumented.json') }
  const visited = await visitMutants(place, 'some.test.ts', 20_000)
  assert.ok('visits' in visited, JSON.stringify(visited))
  const named = visited.visits.flatMap(({ test, mutants }) => (test === undefined ? [] : [{ test, mutants }]))
  assert.deepEqual(named, [
    { test: 'whole', mutants: [0] },
    { test: 'other', mutants: [1] },
  ])
  const trial = { file: 'some.test.ts', mutants: [1], limitMs: 20_000 }
  assert.deepEqual(await tryMutants(place, { ...trial, tests: ['other'] }), { is: 'failed', test: 'other' })
  assert.deepEqual(await tryMutants(place, { ...trial, tests: ['whole'] }), { is: 'passed' })
})
