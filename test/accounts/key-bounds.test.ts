import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { keyBounds, mayUse, modelsMax, parseModels, seenBounds } from '../../src/accounts/key-bounds.ts'
import { seenFields } from '../../src/operations/keys.ts'

test('R15 the models of a key are ids and prefixes of ids, as clients request them', () => {
  const models = parseModels(' large , small-*,large')
  assert.deepEqual(models, ['large', 'small-*'])
  assert.equal(keyBounds.values({ ...keyBounds.none, models })['models'], 'large,small-*')
  for (const asked of ['large', 'small-', 'small-2']) assert.ok(mayUse(models, asked), asked)
  for (const asked of ['Large', 'larger', 'small', '', 'small*']) assert.ok(!mayUse(models, asked), asked)
  assert.ok(mayUse(undefined, 'anything'))
  assert.ok(mayUse(['*'], 'anything'))
})

test('R15 a list of models that does not mean what it seems to mean is refused', () => {
  for (const text of ['', 'a,', ',a', 'a,,b', 'a*b', '**', 'a b', 'a\nb', 'x'.repeat(201)])
    assert.throws(() => parseModels(text), RangeError, JSON.stringify(text))
  const many = Array.from({ length: modelsMax + 1 }, (_, at) => `m${at}`)
  assert.throws(() => parseModels(many.join()), RangeError)
  assert.equal(parseModels(many.slice(1).join()).length, modelsMax)
})

test('Y22 STR-9 each bound of a key that people see is in the answers to its owner', () => {
  assert.deepEqual(
    seenBounds.filter((name) => !Object.hasOwn(seenFields, name)),
    [],
  )
})

for (const [part, pattern] of Object.entries({
  form: /^export function KeyFields.*?^}$/ms,
  list: /^export const limitColumns.*?^]$/ms,
}))
  test(`STR-9 each bound of a key is in the ${part} of the console`, () => {
    const [text = ''] = pattern.exec(readFileSync('console/src/pages/key-fields.tsx', 'utf8')) ?? []
    // The list has the budget beside its spending, in keys.tsx.
    const expected = seenBounds.filter((name) => part === 'form' || name !== 'budget')
    assert.deepEqual(
      expected.filter((name) => !new RegExp(`\\b${name}\\b`).test(text)),
      [],
    )
  })
