import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { estimateTextTokens } from '../../src/inference/estimate.ts'
import { TextMeter } from '../../src/inference/meter.ts'
import { runsOf } from '../support/runs.ts'
import { readSamples } from './samples.ts'

const runs = { numRuns: runsOf(100) }
const mixed = readSamples()
  .map((sample) => sample.text)
  .join('\n')

function meterOf(text: string, sizes: readonly number[]) {
  const meter = new TextMeter()
  for (let at = 0, turn = 0; at < text.length; turn++) {
    const size = sizes[turn % sizes.length]!
    meter.write(text.slice(at, at + size))
    at += size
  }
  return meter
}

test('C10 a text of any length is estimated as a whole, whatever the pieces it comes in', () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 9_000 }), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(fc.nat(mixed.length), fc.nat(60_000), sizes, (from, length, cut) => {
      const text = mixed.slice(from, from + length)
      const meter = meterOf(text, cut)
      assert.equal(meter.estimateTokens(), estimateTextTokens(text))
      assert.equal(meter.estimateTokens(), estimateTextTokens(text), 'asked twice')
      assert.equal(meter.characters(), text.length)
    }),
    runs,
  )
})

test('C10 halves of a character and of a word that arrive separately count as one', () => {
  const text = '😀'.repeat(3_000) + 'international'.repeat(20)
  assert.equal(meterOf(text, [1]).estimateTokens(), estimateTextTokens(text))
})

test('C10 an endless run is counted in parts: within a thousandth of the whole, and in linear time', () => {
  for (const unit of ['a', '漢', ' ', '-', '9']) {
    const text = unit.repeat(300_000)
    const whole = estimateTextTokens(text)
    for (const sizes of [[1], [7, 5_000]]) {
      const tokens = meterOf(text, sizes).estimateTokens()
      assert.ok(Math.abs(tokens - whole) <= Math.max(300, whole / 1000), `${unit}: ${tokens} for ${whole}`)
    }
  }
})

test('C10 an empty text has no token, and the shortest text has one', () => {
  assert.equal(new TextMeter().estimateTokens(), 0)
  assert.equal(meterOf('a', [1]).estimateTokens(), 1)
})
