import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { findNearIds } from '../../src/catalog/near-ids.ts'

const list = ['claude-sonnet-5-5', 'claude-opus-5', 'gpt-6', 'gpt-6-mini', 'gemini-4-pro', 'deepseek/deepseek-v4', 'o5']

const meant: [asked: string, near: string[]][] = [
  ['claude-sonnet-5.5', ['claude-sonnet-5-5']],
  ['Claude-Sonnet-5-5', ['claude-sonnet-5-5']],
  ['anthropic/claude-sonnet-5-5', ['claude-sonnet-5-5']],
  ['claude-sonnet-5-5-20260901', ['claude-sonnet-5-5']],
  ['claude-sonnet-5-5-latest', ['claude-sonnet-5-5']],
  ['claude-sonnet-5-5@2026-09-01', ['claude-sonnet-5-5']],
  ['deepseek-v4', ['deepseek/deepseek-v4']],
  ['claude-sonet-5-5', ['claude-sonnet-5-5']],
  ['claud-sonnet-55', ['claude-sonnet-5-5']],
  ['gpt6', ['gpt-6']],
  ['gpt-5', ['gpt-6']],
  ['sonnet', []],
  ['gpt-6-turbo', []],
  ['', ['o5']],
]
for (const [asked, near] of meant) {
  test(`R17 the suggestions for ${asked || 'an empty name'} are ${near.join(', ') || 'none of the list'}`, () => {
    assert.deepEqual(findNearIds(asked, list), near)
  })
}

test('R17 at most three ids are suggested, the nearest first', () => {
  assert.deepEqual(findNearIds('m1', ['m23', 'm2', 'M-1', 'n1', 'm3']), ['M-1', 'm2', 'n1'])
})

test('R17 an id with one or two more characters is near, one with three more is another id', () => {
  const id = fc.string({ unit: fc.constantFrom(...'abc-1'), minLength: 3, maxLength: 12 })
  fc.assert(
    fc.property(id, fc.nat(12), fc.constantFrom(...'xyz'), (text, at, letter) => {
      const place = at % (text.length + 1)
      const more = (count: number) => text.slice(0, place) + letter.repeat(count) + text.slice(place)
      for (const near of [more(1), more(2)]) {
        assert.deepEqual(findNearIds(near, [text]), [text])
        assert.deepEqual(findNearIds(text, [near]), [near])
      }
      assert.deepEqual(findNearIds(more(3), [text]), [])
    }),
  )
  assert.deepEqual(findNearIds('m'.repeat(5_000_000), ['m']), [])
})
