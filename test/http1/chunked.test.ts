import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { ChunkedReader } from '../../src/http1/chunked.ts'
import { runsUpTo } from '../support/runs.ts'
import { readByNode } from './node-parser.ts'

type ReadBody = { data: string; used: number; isOver: boolean; isBroken: boolean }

/** The body, read in pieces of so many bytes. */
function read(text: string, sizes: readonly number[] = []): ReadBody {
  const bytes = Buffer.from(text, 'latin1')
  const reader = new ChunkedReader()
  let data = ''
  let start = 0
  for (let i = 0; start < bytes.length && !reader.isOver && !reader.isBroken; i++) {
    const piece = bytes.subarray(start, start + (sizes[i] ?? bytes.length))
    const { at, data: read } = reader.read(piece, 0)
    data += read?.toString('latin1') ?? ''
    start += at
  }
  return { data, used: start, isOver: reader.isOver, isBroken: reader.isBroken }
}

const chunk = fc.tuple(
  fc.string({ minLength: 1, maxLength: 40, unit: 'binary-ascii' }),
  fc.constantFrom('', ';a', ';a=b;c="d e"'),
  fc.boolean(),
)
const bodies = fc
  .record({
    chunks: fc.array(chunk, { maxLength: 5 }),
    zeros: fc.nat(3),
    trailer: fc.constantFrom('', 'x: y\r\n', 'a:\r\nb: c\r\n'),
  })
  .map(({ chunks, zeros, trailer }) => {
    const size = (text: string, isUpper: boolean) => {
      const digits = '0'.repeat(zeros) + text.length.toString(16)
      return isUpper ? digits.toUpperCase() : digits
    }
    const told = chunks
      .map(([text, extension, isUpper]) => `${size(text, isUpper)}${extension}\r\n${text}\r\n`)
      .join('')
    return { data: chunks.map(([text]) => text).join(''), text: `${told}0\r\n${trailer}\r\n` }
  })

test('a chunked body is decoded to its data, wherever it is cut, and the bytes after it are left alone', () => {
  fc.assert(
    fc.property(bodies, fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 80 }), ({ data, text }, sizes) => {
      const wanted = { data, used: text.length, isOver: true, isBroken: false }
      assert.deepEqual(read(`${text}GET / HTTP/1.1\r\n`, sizes), wanted)
      assert.deepEqual(read(text, Array(text.length).fill(1)), wanted)
    }),
  )
})

test('B25 data that arrives at once is one piece, however many chunks it has, and is copied if it is shared', () => {
  fc.assert(
    fc.property(bodies, fc.nat(30), fc.boolean(), ({ data, text }, before, isShared) => {
      const bytes = Buffer.from(`${'x'.repeat(before)}${text}GET`, 'latin1')
      const { at, data: piece } = new ChunkedReader().read(bytes, before, isShared)
      assert.equal(at, before + text.length)
      if (isShared) bytes.fill(0)
      assert.equal(piece?.toString('latin1') ?? '', data)
    }),
  )
  const { data } = new ChunkedReader().read(Buffer.from('1\r\na\r\n'.repeat(10_000)), 0)
  assert.equal(data!.length, 10_000)
})

test('R18 decision 58 of chunks that are small beside their framing, no more is kept than their data', () => {
  const { data } = new ChunkedReader().read(Buffer.from('0000000000001\r\nX\r\n'.repeat(3_600)), 0)
  assert.equal(data!.length, 3_600)
  assert.ok(data!.buffer.byteLength < 10_000, `${data!.buffer.byteLength} bytes are kept`)
})

const octets = fc.constantFrom(...'\r\n\t ;0159afAFgG-+_x\x00\x7f\xff', '\r\n', '0\r\n\r\n', '0x')

test('F-C13 a chunked body that is accepted is read by Node as the same body, however it was mutated', () => {
  let taken = 0
  const edits = fc.array(fc.tuple(fc.nat(60), fc.nat(2), octets), { maxLength: 3 })
  const check = ({ text }: { text: string }, changes: [number, number, string][]) => {
    const changed = changes.reduce((body, [at, cut, put]) => body.slice(0, at) + put + body.slice(at + cut), text)
    const ours = read(changed)
    const { used, ...cut } = read(changed, Array(changed.length).fill(1))
    // The number of bytes read from a broken body does not matter.
    assert.deepEqual({ ...cut, used: cut.isBroken ? ours.used : used }, ours)
    if (!ours.isOver) return
    taken++
    const head = 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n'
    const theirs = readByNode('request', Buffer.from(head + changed.slice(0, ours.used), 'latin1'))
    // Of extensions, which both only read over, it takes fewer.
    if (!theirs.isFault || !changed.includes(';'))
      assert.deepEqual([theirs.body, theirs.isWhole, theirs.isFault], [ours.data, true, false])
  }
  fc.assert(fc.property(bodies, edits, check), { numRuns: runsUpTo(20_000) })
  assert.ok(taken > runsUpTo(1_000), `${taken} were taken`)
})

test('F-C22 extensions must follow their grammar, inside quotes too', () => {
  const of = (extension: string) => read(`2${extension}\r\nab\r\n0\r\n\r\n`)
  for (const taken of [';a', '; a = b', ';a="b;,: c"', ';a="\\"";b', ';a="\xe9"', ';a="b" ;c'])
    assert.deepEqual([of(taken).data, of(taken).isOver], ['ab', true], taken)
  for (const broken of [';a="', ';a="b', ';,a', ';a:=b', ';a="b"c', ';a="\\', ';a="b\0"', ';\xe9'])
    assert.equal(of(broken).isBroken, true, broken)
})

test('F-C13 F-C22 ignored bytes and the digits of a size have bounds', () => {
  const long = (length: number) => `1;${'e'.repeat(length)}\r\na\r\n0\r\n\r\n`
  assert.deepEqual([read(long(16_000)).isOver, read(long(16_385)).isBroken], [true, true])
  const many = `1;${'e'.repeat(6_000)}\r\na\r\n`.repeat(3)
  assert.equal(read(`${many}0\r\n\r\n`).isBroken, true)
  const trailer = (length: number) => `0\r\nx: ${'t'.repeat(length)}\r\n\r\n`
  for (const bare of ['0\r\n\n', '0\r\nx: y\n', '0\r\nx: y\n\n', '0\r\nx: y\r\n\n', '0\r\nx\0'])
    assert.deepEqual([read(bare).isOver, read(bare).isBroken], [false, true], JSON.stringify(bare))
  // With its name and its line ends, the trailer has 16,384 octets, or one more.
  for (const sizes of [[], [3, 10_000, 10_000], Array(17_000).fill(1)]) {
    const [most, more] = [read(trailer(16_377), sizes), read(trailer(16_378), sizes)]
    assert.deepEqual([most.isOver, more.isOver, more.isBroken], [true, false, true], `${sizes}`)
  }
  assert.equal(read(`0\r\nx: ${'t'.repeat(20_000)}`, Array(21_000).fill(1)).isBroken, true)
  const padded = (zeros: number) => read(`${'0'.repeat(zeros)}1\r\na`)
  assert.deepEqual([padded(63).data, padded(64).isBroken, read('fffffffffffffff\r\na').isBroken], ['a', true, true])
  assert.equal(read('0\r\nno field\r\n\r\n').isBroken, true)
})
