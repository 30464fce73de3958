import { crc32, deflateSync, inflateSync } from 'node:zlib'

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
const coloursMax = 256

/**
 * Writes a screenshot again with a palette of its 256 most frequent colours. Each other colour is replaced with the
 * nearest of them. A page with few flat colours looks the same, and takes a third of the bytes.
 * PNG: https://www.w3.org/TR/png-3/, as of 2026-11-28.
 *
 * @param png not interlaced, 8 bits a channel, RGB or RGBA; transparency is ignored, since a screenshot has none
 * @throws an error for any other form of PNG
 */
export function toPalettePng(png: Buffer): Buffer {
  const { width, height, pixels } = decode(png)
  const counts = new Map<number, number>()
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1)
  const palette = [...counts]
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
    .slice(0, coloursMax)
    .map(([colour]) => colour)
  const indexes = new Map(palette.map((colour, index) => [colour, index]))
  for (const colour of counts.keys()) if (!indexes.has(colour)) indexes.set(colour, nearest(palette, colour))
  // Each row begins with its filter. Rows of indexes are smallest without one.
  const rows = Buffer.alloc(height * (width + 1))
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) rows[y * (width + 1) + 1 + x] = indexes.get(pixels[y * width + x]!)!
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 3, 0, 0, 0], 8)
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]))
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function nearest(palette: readonly number[], colour: number): number {
  let best = 0
  let least = Number.POSITIVE_INFINITY
  for (const [index, other] of palette.entries()) {
    const distance =
      ((colour >> 16) - (other >> 16)) ** 2 +
      (((colour >> 8) & 255) - ((other >> 8) & 255)) ** 2 +
      ((colour & 255) - (other & 255)) ** 2
    if (distance < least) [best, least] = [index, distance]
  }
  return best
}

/** @returns the colours of all pixels, row by row, each as 0xRRGGBB */
export function decode(png: Buffer): { width: number; height: number; pixels: Uint32Array } {
  const parts = new Map<string, Buffer[]>()
  for (let at = signature.length; at < png.length; ) {
    const length = png.readUInt32BE(at)
    const type = png.toString('latin1', at + 4, at + 8)
    parts.set(type, [...(parts.get(type) ?? []), png.subarray(at + 8, at + 8 + length)])
    at += length + 12
  }
  const header = parts.get('IHDR')![0]!
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)]
  const [depth, colourType, , , interlace] = header.subarray(8)
  const channels = { 2: 3, 3: 1, 6: 4 }[colourType!]
  if (depth !== 8 || channels === undefined || interlace !== 0) throw new Error('not an 8-bit RGB, RGBA or palette PNG')
  const raw = inflateSync(Buffer.concat(parts.get('IDAT')!))
  const stride = width * channels
  const bytes = Buffer.alloc(height * stride)
  for (let y = 0; y < height; y++) {
    const filter = raw[y * (stride + 1)]!
    for (let x = 0; x < stride; x++) {
      const left = x < channels ? 0 : bytes[y * stride + x - channels]!
      const up = y === 0 ? 0 : bytes[(y - 1) * stride + x]!
      const corner = x < channels || y === 0 ? 0 : bytes[(y - 1) * stride + x - channels]!
      bytes[y * stride + x] = raw[y * (stride + 1) + 1 + x]! + predict(filter, left, up, corner)
    }
  }
  const palette = parts.get('PLTE')?.[0]
  const pixels = Uint32Array.from({ length: width * height }, (_, index) =>
    palette ? palette.readUIntBE(bytes[index]! * 3, 3) : bytes.readUIntBE(index * channels, 3),
  )
  return { width, height, pixels }
}

/** The number that a filter of a row adds to each byte (section 9.2). */
function predict(filter: number, left: number, up: number, corner: number): number {
  if (filter < 3) return [0, left, up][filter]!
  if (filter === 3) return (left + up) >> 1
  const guess = left + up - corner
  const [toLeft, toUp, toCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)]
  if (toLeft <= toUp && toLeft <= toCorner) return left
  return toUp <= toCorner ? up : corner
}

function chunk(type: string, data: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(data.length)
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const tail = Buffer.alloc(4)
  tail.writeUInt32BE(crc32(body))
  return Buffer.concat([head, body, tail])
}
