import assert from 'node:assert/strict'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32, deflateSync } from 'node:zlib'
import fc from 'fast-check'
import { decode, toPalettePng } from '../scripts/console/palette-png.ts'

const docs = join(import.meta.dirname, '../docs')
const pictureBytesMax = 100_000

/** Each filter of a row as PNG 9.2 defines it: what is taken away from a byte, by its neighbours. */
const filters: readonly ((left: number, up: number, corner: number) => number)[] = [
  () => 0,
  (left) => left,
  (_, up) => up,
  (left, up) => Math.floor((left + up) / 2),
  (left, up, corner) =>
    [left, up, corner].reduce((best, one) =>
      Math.abs(left + up - corner - one) < Math.abs(left + up - corner - best) ? one : best,
    ),
]

const pictures = fc
  .record({ width: fc.integer({ min: 1, max: 9 }), channels: fc.constantFrom(3, 4) })
  .chain(({ width, channels }) =>
    fc.record({
      width: fc.constant(width),
      channels: fc.constant(channels),
      rows: fc.array(
        fc.record({
          filter: fc.integer({ min: 0, max: 4 }),
          bytes: fc.uint8Array({ minLength: width * channels, maxLength: width * channels }),
        }),
        { minLength: 1, maxLength: 9 },
      ),
    }),
  )

test('issue 50: a picture of up to 256 colours has the same pixels with a palette, whatever its filters', () => {
  fc.assert(
    fc.property(pictures, ({ width, channels, rows }) => {
      const png = encode(width, channels, rows)
      const expected = rows.flatMap(({ bytes }) =>
        Array.from({ length: width }, (_, x) => Buffer.from(bytes).readUIntBE(x * channels, 3)),
      )
      assert.deepEqual([...decode(png).pixels], expected)
      assert.deepEqual(decode(toPalettePng(png)), decode(png))
    }),
  )
})

test('issue 50: a picture of more colours uses the nearest of its 256 most frequent ones', () => {
  const bytes = Uint8Array.from(
    { length: 300 * 3 },
    (_, index) => [Math.floor(index / 3) >> 8, 0, index / 3][index % 3]!,
  )
  const { pixels } = decode(toPalettePng(encode(300, 3, [{ filter: 0, bytes }])))
  assert.equal(new Set(pixels).size, 256)
  assert.deepEqual([...pixels.subarray(0, 256)], [...Array(256).keys()])
  assert.equal(pixels[299], 43, 'red 1, blue 43 becomes blue 43')
})

test('issue 50: each picture of the documentation has at most 100 KB', () => {
  const files = globSync('**/*.png', { cwd: docs })
  assert.ok(files.length >= 5)
  assert.deepEqual(
    files.filter((file) => statSync(join(docs, file)).size > pictureBytesMax),
    [],
  )
})

type Row = { filter: number; bytes: Uint8Array }

function encode(width: number, channels: number, rows: readonly Row[]): Buffer {
  const data = rows.map(({ filter, bytes }, y) => {
    const above = rows[y - 1]?.bytes
    const filtered = bytes.map((byte, x) => {
      const at = x - channels
      return byte - filters[filter]!(bytes[at] ?? 0, above?.[x] ?? 0, above?.[at] ?? 0)
    })
    return Buffer.from([filter, ...filtered])
  })
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(rows.length, 4)
  header.set([8, channels === 3 ? 2 : 6], 8)
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    part('IHDR', header),
    part('IDAT', deflateSync(Buffer.concat(data))),
    part('IEND', Buffer.alloc(0)),
  ])
}

function part(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  sum.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, sum])
}
