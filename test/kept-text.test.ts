import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { KeptText } from '../src/bytes/memory.ts'
import { characters } from './support/characters.ts'
import { collect } from './support/garbage.ts'
import { runsUpTo } from './support/runs.ts'

test('issue 10 a kept text equals its joined pieces, wherever they were cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: characters, maxLength: 300 }), fc.integer({ min: 1, max: 3 }), (text, size) => {
      const kept = new KeptText()
      // By UTF-16 units: pairs are cut too.
      for (let at = 0; at < text.length; at += size) kept.add(text.slice(at, at + size))
      assert.equal(kept.toString(), text)
    }),
  )
})

test('issue 10 a kept text that is packed at intervals equals its joined pieces', () => {
  const piece = fc.string({ unit: characters, minLength: 1, maxLength: 40 })
  // Repeated until it is worth packing, and cut by UTF-16 units: a pack may begin or end with half a character.
  const pieces = fc.array(fc.tuple(piece, fc.integer({ min: 1, max: 30_000 }), fc.boolean()), { maxLength: 4 })
  fc.assert(
    fc.property(pieces, (all) => {
      const kept = new KeptText()
      let text = ''
      for (const [words, units, isPacked] of all) {
        const next = words.repeat(Math.ceil(units / words.length)).slice(0, units)
        kept.add(next)
        text += next
        if (isPacked) kept.compact()
      }
      assert.equal(kept.toString(), text)
    }),
    { numRuns: runsUpTo(50) },
  )
})

test('issue 10 a short kept text does not keep the source of its pieces in memory after its end was announced', () => {
  const keep = (n: number) => {
    const kept = new KeptText()
    for (let i = 0; i < 3; i++) kept.add(`${n} ${i}`.padEnd(100_000, ' words').slice(50_000, 50_100))
    kept.compact()
    return kept
  }
  collect()
  const before = process.memoryUsage().heapUsed
  const all = Array.from({ length: 50 }, (_, n) => keep(n))
  collect()
  const each = (process.memoryUsage().heapUsed - before) / all.length
  assert.ok(each < 10_000, `${each} bytes`)
  for (const kept of all) assert.equal(kept.toString().length, 300)
})

for (const [alphabet, word] of [
  ['Latin', 'reader'],
  ['Greek', '\u03b1\u03b2\u03b3'],
] as const) {
  test(`issue 10 of prose in ${alphabet} letters packing leaves less than two thirds of its bytes`, () => {
    const words = Array.from({ length: 40_000 }, (_, i) => `${word}${Math.imul(i, 2_654_435_761) >>> 20}`).join(' ')
    const bytes = words.length * (alphabet === 'Latin' ? 1 : 2)
    const texts = Array.from({ length: 40 }, () => new KeptText())
    collect()
    const before = memory()
    for (const [at, kept] of texts.entries()) {
      kept.add(words.slice(at))
      kept.compact()
    }
    collect()
    // What packed is let go of by the first and given back by the second.
    collect()
    const taken = (memory() - before) / texts.length
    assert.ok(taken < (2 / 3) * bytes, `${taken} of ${bytes} bytes`)
    assert.equal(texts.at(-1)!.toString(), words.slice(texts.length - 1))
  })
}

/** In the engine's heap and beside it, in bytes. */
function memory(): number {
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
