import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { estimateBytesTokens } from '../../src/inference/estimate.ts'
import { estimateMediaTokens, mediaHeadChars } from '../../src/inference/estimate-media.ts'
import { runsUpTo } from '../support/runs.ts'

/*
 * The estimate works on masks of 64 bytes. Here is what it estimates, byte after byte: that both say the same of every
 * body is what makes a bill the same before and after a change of either.
 */

test('C2 the estimate of a body is the sum over its bytes, each judged by the bytes before it', () => {
  fc.assert(
    fc.property(body, (text) => {
      const bytes = Buffer.from(text)
      assert.equal(estimateBytesTokens(bytes), sumByBytes(bytes))
    }),
    { numRuns: runsUpTo(5_000) },
  )
})

test('C2 the estimate is the same if a pattern crosses the ends of blocks, half blocks and buffers', () => {
  const patterns = [
    '\\n',
    '\\"',
    '\\\\',
    '\\u00e9',
    '\\/',
    '\\t',
    '\\n\\n',
    'a\\n',
    'Ab',
    '"',
    '9',
    'é',
    ' ',
    'aB=',
    '.x',
  ]
  for (const length of [64, 128, 8_192, 65_536, 131_072])
    for (const pattern of patterns)
      for (let offset = -8; offset <= 8; offset++) {
        const bytes = Buffer.from(`${pattern.repeat(length / pattern.length + 1).slice(0, length + offset)}" `)
        assert.equal(estimateBytesTokens(bytes), sumByBytes(bytes), `${pattern}, ${length + offset}`)
      }
})

test('C2 the estimate is the same if a body ends within an escape, in either half of a block', () => {
  for (const start of [56, 120])
    for (let digits = start; digits < start + 8; digits++)
      for (let cut = 1; cut <= 6; cut++) {
        const bytes = Buffer.from(`${'9'.repeat(digits)}${'\\u00e9'.slice(0, cut)}`)
        assert.equal(estimateBytesTokens(bytes), sumByBytes(bytes), `${digits} and ${cut}`)
      }
})

test('C2 the estimate of a body does not depend on earlier bodies', () => {
  const bodies = ['a "b"\\', '{}', `"${'x'.repeat(300)}"`, 'nn"\\u12', ''].map((text) => Buffer.from(text))
  for (const before of bodies)
    for (const bytes of bodies) {
      estimateBytesTokens(before)
      assert.equal(estimateBytesTokens(bytes), sumByBytes(bytes))
    }
})

const piece = fc.constantFrom(
  ...['a', 'bc', 'Z', 'XY', '7', '42', ' ', '\t', '\n', '\\n', '\\n\\n', '\\t', '\\"', '\\\\', '\\/', '\\r', '\\u00e9'],
  ...['\\u12', '\\', '"', '{', '},', '+', '/', '=', '-', '_', '.', 'é', '漢', 'word ', 'aGVsbG8', '\u007f', '\u000b'],
)
/** What is no text: an image, a document, somebody's padding. */
const run = fc
  .tuple(fc.constantFrom('iVBORw0KGgo', 'JVBERi0x', '', '\\/'), fc.constantFrom('QUFB', 'Ab\\/', 'x'), fc.nat(600))
  .map(([head, unit, count]) => head + unit.repeat(count))
const few = fc.array(fc.oneof({ weight: 30, arbitrary: piece }, { weight: 1, arbitrary: run }), { maxLength: 60 })
const body = fc.tuple(few, fc.constantFrom(1, 1, 1, 3, 40, 400)).map(([pieces, times]) => pieces.join('').repeat(times))

const weights = { byte: 59, word: 650, marks: 780, digit: 650, high: 100 }
const escapes = { first: 900, further: 250, unicode: 740 }
const blockBytes = 128

type Kind = 'lower' | 'upper' | 'digit' | 'blank' | 'high' | 'base64Mark' | 'mark' | 'escape'

function sumByBytes(bytes: Buffer): number {
  const stride = bytes.length <= 8_192 ? blockBytes : 8 * blockBytes
  let [weight, weighedBytes, opaqueBytes, opaqueTokens, at] = [0, 0, 0, 0, 0]
  while (at < bytes.length) {
    const block = weighBlock(bytes, at)
    if (block.isProse || at + blockBytes > bytes.length) {
      weight += block.weight
      weighedBytes += block.end - at
      at = Math.max(block.end, at + stride)
      continue
    }
    let start = at
    while (start > Math.max(0, at - stride) && kindOf(bytes[start - 1]!) !== 'mark') start--
    const quoteAt = bytes.indexOf('"', at)
    at = quoteAt < 0 ? bytes.length : quoteAt
    const head = bytes.toString('latin1', start, Math.min(at, start + mediaHeadChars)).replace(/\\(?:[nr]|(?=\/))/g, '')
    opaqueTokens += estimateMediaTokens(head, at - start) ?? Math.ceil((at - start) / 4)
    opaqueBytes += at - start
  }
  const textBytes = Math.max(0, bytes.length - opaqueBytes)
  const textTokens = weighedBytes === 0 ? 0 : (weight / 1_024) * (textBytes / weighedBytes)
  return bytes.length === 0 ? 0 : Math.max(1, Math.round(textTokens + opaqueTokens))
}

function weighBlock(bytes: Buffer, start: number): { weight: number; end: number; isProse: boolean } {
  const stop = Math.min(bytes.length, start + blockBytes)
  let weight = 0
  let isProse = false
  let before: Kind = 'blank'
  let i = start
  while (i < stop) {
    const kind = kindOf(bytes[i]!)
    if (kind !== 'escape') {
      weight += addedBy(kind, before)
      isProse ||= kind === 'mark' || kind === 'blank' || kind === 'high'
      before = kind
      i++
      continue
    }
    const letter = i + 1 < bytes.length ? String.fromCharCode(bytes[i + 1]!) : ''
    isProse ||= letter === '' || !'/nr'.includes(letter)
    if (letter === 'u') {
      weight += escapes.unicode
      before = 'high'
      i += 6
    } else {
      const isMark = letter === '"' || letter === '\\'
      if (isMark) weight += addedBy('mark', before)
      else weight += before === 'escape' ? escapes.further : escapes.first
      before = isMark ? 'mark' : 'escape'
      i += 2
    }
  }
  return { weight, end: i, isProse }
}

function addedBy(kind: Kind, before: Kind): number {
  const isBehindMark = before === 'mark' || before === 'base64Mark'
  const isBehindLetter = before === 'lower' || before === 'upper'
  if (kind === 'lower' && !isBehindLetter) return weights.byte + weights.word
  if (kind === 'upper' && before !== 'upper') return weights.byte + weights.word
  if ((kind === 'mark' || kind === 'base64Mark') && !isBehindMark) return weights.byte + weights.marks
  if (kind === 'digit') return weights.byte + weights.digit
  if (kind === 'high') return weights.byte + weights.high
  return weights.byte
}

function kindOf(byte: number): Kind {
  const character = String.fromCharCode(byte)
  if (byte >= 0x80) return 'high'
  if (character >= 'a' && character <= 'z') return 'lower'
  if (character >= 'A' && character <= 'Z') return 'upper'
  if (character >= '0' && character <= '9') return 'digit'
  if (' \t\r\n'.includes(character)) return 'blank'
  if ('+/=-_'.includes(character)) return 'base64Mark'
  return character === '\\' ? 'escape' : 'mark'
}
