import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { KeptText } from '../src/bytes/kept-text.ts'
import { characters } from './support/characters.ts'

test('issue 10 a kept text is what its pieces were, wherever they were cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: characters, maxLength: 300 }), fc.integer({ min: 1, max: 3 }), (text, size) => {
      const kept = new KeptText()
      // By UTF-16 units: pairs are cut too.
      for (let at = 0; at < text.length; at += size) kept.add(text.slice(at, at + size))
      assert.equal(kept.toString(), text)
    }),
  )
})
