import { holdsWord, placesOf } from '../bytes/search.ts'

/*
 * The tokens that images and documents count in an estimate. No tokenizer reads them. These rules are ours, near what
 * models report, and bounded, so that a picture of many megabytes does not look like a library
 * (docs/token-estimate.md).
 */

/** Pixels for one token; models differ between 500 and 1,000. */
const pixelsPerToken = 750
/** Larger images are scaled down by the models before they look at them; also the count of one whose size is unknown. */
export const imageTokensMax = 1_600
/** A page counts by its text and by its picture. */
export const pageTokens = 2_000
/** Of a PDF we know only its size: this many bytes are taken for a page. */
const pageBytes = 50_000
const pagesMax = 100

/** How much of an image is looked at for its dimensions, in base64 characters: enough to pass a camera's preview. */
export const mediaHeadChars = 65_536

/**
 * The tokens of an image or a PDF in base64; undefined if it is neither. Its first characters decide (at least 32, at
 * most `mediaHeadChars` are used), and its length in characters.
 */
export function estimateMediaTokens(head: string, chars: number): number | undefined {
  if (head.startsWith('JVBERi')) {
    return pageTokens * Math.min(pagesMax, Math.max(1, Math.ceil((chars * 3) / 4 / pageBytes)))
  }
  const kind = imageKinds.find(({ mark }) => head.startsWith(mark))
  if (!kind) return undefined
  const pixels = kind.pixels(Buffer.from(head.slice(0, mediaHeadChars), 'base64'))
  return pixels > 0 ? Math.min(imageTokensMax, Math.ceil(pixels / pixelsPerToken)) : imageTokensMax
}

/**
 * Whether a body holds images, documents, sound or film in base64, as the wires write them. They are in a data URL, in
 * a source of that type, or the data of a file. A PDF of 5 KB can be 180,000 tokens, and an image of 300 bytes 8,500
 * (gpt-4o-mini counts each of its tiles as 5,667).
 */
export function holdsMedia(body: Buffer): boolean {
  for (const at of placesOf(body, 'base64')) {
    const around = body.toString('latin1', at - 1, at + 7)
    if (around === ';base64,' || around === '"base64"') return true
  }
  return holdsWord(body, 'file_data')
}

type ImageKind = {
  type: string
  /** Its first bytes in base64. */
  mark: string
  /** Holds for the beginning of this format alone, if other formats begin with the same mark. */
  form?: RegExp
  /** Reads width × height; 0 if it cannot. */
  pixels(bytes: Buffer): number
}

const imageKinds: readonly ImageKind[] = [
  {
    type: 'image/png',
    mark: 'iVBORw0KGgo',
    pixels: (bytes) => (bytes.length < 24 ? 0 : bytes.readUInt32BE(16) * bytes.readUInt32BE(20)),
  },
  {
    type: 'image/gif',
    mark: 'R0lGOD',
    pixels: (bytes) => (bytes.length < 10 ? 0 : bytes.readUInt16LE(6) * bytes.readUInt16LE(8)),
  },
  // RIFF, then its length, then `WEBP`: sound has the same mark.
  { type: 'image/webp', mark: 'UklGR', form: /^.{11}XRUJQ/, pixels: webpPixels },
  { type: 'image/jpeg', mark: '/9j/', pixels: jpegPixels },
]

/** The type of an image by its first bytes in base64; undefined if it is not one of the four that all models take. */
export function imageTypeOf(base64: string): string | undefined {
  return imageKinds.find(({ mark, form }) => base64.startsWith(mark) && form?.test(base64) !== false)?.type
}

/** RFC 9649: the first chunk is VP8 (lossy), VP8L (lossless) or VP8X (extended), each with its own size field. */
function webpPixels(bytes: Buffer): number {
  if (bytes.length < 30 || bytes.toString('latin1', 8, 12) !== 'WEBP') return 0
  const chunk = bytes.toString('latin1', 12, 16)
  if (chunk === 'VP8 ') return (bytes.readUInt16LE(26) & 0x3fff) * (bytes.readUInt16LE(28) & 0x3fff)
  if (chunk === 'VP8X') return (bytes.readUIntLE(24, 3) + 1) * (bytes.readUIntLE(27, 3) + 1)
  if (chunk !== 'VP8L') return 0
  const size = bytes.readUInt32LE(21)
  return ((size & 0x3fff) + 1) * (((size >>> 14) & 0x3fff) + 1)
}

/** ITU T.81: segments follow one another; the dimensions stand in the start of frame (C0…CF without C4, C8, CC). */
function jpegPixels(bytes: Buffer): number {
  let at = 2
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1]!
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc
    if (isFrame) return bytes.readUInt16BE(at + 5) * bytes.readUInt16BE(at + 7)
    at += 2 + bytes.readUInt16BE(at + 2)
  }
  return 0
}
