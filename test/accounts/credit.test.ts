import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { formatCredits, parseCredits } from '../../src/accounts/credit.ts'

test('C1 credits are decimal strings for users and nano-credits in the code', () => {
  for (const [text, nanos] of [
    ['12.5', 12_500_000_000n],
    ['0', 0n],
    ['0.000000001', 1n],
    ['-3', -3_000_000_000n],
    ['9223372036.854775807', 9_223_372_036_854_775_807n],
  ] as const) {
    assert.equal(parseCredits(text), nanos)
    assert.equal(formatCredits(nanos), text)
  }
  assert.equal(parseCredits('+1.50'), 1_500_000_000n)
})

test('C1 an invalid amount is refused with an explanation', () => {
  for (const text of ['', 'ten', '1,5', '1.', '.5', '1e3', '0x10', ' 1', '1.0000000001', '--1', 'Infinity']) {
    assert.throws(() => parseCredits(text), /is not an amount of credits: write it like 12 or 12\.5/)
  }
  assert.throws(() => parseCredits('9223372036.854775808'), /too large: the most is 9223372036\.854775807 credits/)
})

test('C1 every 64-bit amount survives being written and read', () => {
  const max = 2n ** 63n - 1n
  fc.assert(fc.property(fc.bigInt(-max, max), (nanos) => assert.equal(parseCredits(formatCredits(nanos)), nanos)))
})
