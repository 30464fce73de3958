import assert from 'node:assert/strict'
import test from 'node:test'
import { parse } from 'acorn'
import { instrument } from '../scripts/mutate/instrument.ts'
import { findMutants } from '../scripts/mutate/operators.ts'

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
