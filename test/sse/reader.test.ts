import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createSseReader, cutFrame, eventSizeMax, type SseFrame } from '../../src/bytes/sse.ts'
import { runsOf } from '../support/runs.ts'

function read(...chunks: (string | Uint8Array)[]): SseFrame[] {
  const reader = createSseReader()
  const frames = chunks.flatMap((chunk) => [...reader.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk)])
  return [...frames, ...reader.end()]
}
const frame = (data: string, event?: string): SseFrame => ({ event, data })
const alive = frame('')

test('translation 4.1 fields are read as the standard defines', () => {
  assert.deepEqual(read('event: a\nid: 1\nretry: 2\nother: x\ndata:x\ndata: y\ndata:  z\n\n'), [frame('x\ny\n z', 'a')])
  assert.deepEqual(read('event: a\n\ndata: x\n\n'), [frame('x')])
})

test('translation 4.1 line ends may be any of three and may be split', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    assert.deepEqual(read(`data: a${end}data: b${end}${end}data: c${end}${end}`), [frame('a\nb'), frame('c')])
  }
  assert.deepEqual(read('data: a\r', '\ndata: b\r', '\n\r', '\n'), [frame('a\nb')])
  assert.deepEqual(read('data: a\r', '\r', 'data: b\n\r\n'), [frame('a'), frame('b')])
})

test('translation 4.1 a byte order mark at the start is removed, whole or split; a later one stays', () => {
  assert.deepEqual(read('\uFEFFdata: a\n\n'), [frame('a')])
  assert.deepEqual(read(Uint8Array.of(0xef), Uint8Array.of(0xbb, 0xbf), 'data: \uFEFFa\n\n'), [frame('\uFEFFa')])
})

test('translation 4.1 characters split between chunks are joined again, and broken ones are replaced', () => {
  const bytes = Buffer.from('data: é€😀\n\n')
  for (let at = 0; at <= bytes.length; at++)
    assert.deepEqual(read(bytes.subarray(0, at), bytes.subarray(at)), [frame('é€😀')])
  assert.deepEqual(read(Uint8Array.of(...Buffer.from('data: a'), 0xe2, 0x82), '\n\n'), [frame('a\uFFFD')])
})

test('translation 4.1 comments count as signs of life, and empty data is ignored', () => {
  assert.deepEqual(read(': ping\n\n:\ndata: a\n\ndata:\n\ndata\n\n'), [alive, alive, frame('a')])
})

test('translation 4.1 an event without its blank line counts if it is complete; otherwise the stream was cut', () => {
  assert.deepEqual(read('data: {"a":1}'), [frame('{"a":1}')])
  assert.deepEqual(read('data: {"a":1}\n'), [frame('{"a":1}')])
  assert.deepEqual(read('data: [DONE]'), [frame('[DONE]')])
  assert.deepEqual(read('data: {"a":'), [cutFrame])
  assert.deepEqual(read('data: a\n\nda'), [frame('a')])
})

test('translation 4.1 an event beyond 8 MiB breaks the stream: one line, many lines, many empty lines, no line end', () => {
  const oversized = [{ event: undefined, data: '', broken: 'oversized' }]
  const half = `data: ${'x'.repeat(eventSizeMax / 2)}\n`
  assert.deepEqual(read(`data: ${'x'.repeat(eventSizeMax)}\n\ndata: a\n\n`), oversized)
  assert.deepEqual(read(half, half, '\ndata: a\n\n'), oversized)
  assert.deepEqual(read('data:\n'.repeat(eventSizeMax + 1), '\n'), oversized)
  assert.deepEqual(read('x'.repeat(eventSizeMax), 'x', '\n\ndata: a\n\n'), oversized)
  assert.equal(read(`data: ${'x'.repeat(eventSizeMax - 1)}\n\n`)[0]?.data.length, eventSizeMax - 1)
})

test('TP1 the reader gives the same frames wherever the bytes are cut', () => {
  const line = fc.constantFrom('data: a', 'data:', 'data: é😀', ': c', 'event: e', '', '', 'id', 'data: {"x":1}')
  const text = fc
    .array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 20 })
    .map((lines) => lines.flat().join(''))
  fc.assert(
    fc.property(text, fc.array(fc.nat(12), { maxLength: 30 }), (script, sizes) => {
      const bytes = Buffer.from(script)
      let at = 0
      const chunks = sizes.map((size) => {
        at += size
        return bytes.subarray(at - size, at)
      })
      assert.deepEqual(read(...chunks, bytes.subarray(at)), read(bytes))
    }),
    { numRuns: runsOf(200) },
  )
})
