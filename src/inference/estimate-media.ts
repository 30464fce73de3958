import { holdsWord, placesOf } from '../bytes/json.ts'
import { endOfString } from '../bytes/json-edit.ts'
import { parseDataUrl } from './data-url.ts'

/*
 * Estimates the tokens of images and documents. No tokenizer reads these. The rules are ours and close to the counts
 * that models report. They are bounded, so that an image of many megabytes does not count as millions of tokens
 * (docs/token-estimate.md).
 */

/** Pixels per token. Models differ between 500 and 1,000. */
const pixelsPerToken = 750
/**
 * The most tokens of an image, since models scale down larger images. An image of unknown size also counts as this
 * many.
 */
export const imageTokensMax = 1_600
/** Tokens of a PDF page. A page counts as text and as an image. */
export const pageTokens = 2_000
/** The assumed bytes per page of a PDF. Only the size of the whole PDF is known. */
const pageBytes = 50_000
const pagesMax = 100

/**
 * How many base64 characters at the start of an image are searched for its dimensions. A camera may put a preview
 * before the dimensions, and this number leaves enough room for it.
 */
export const mediaHeadChars = 65_536

/**
 * Estimates the tokens of an image or a PDF in base64 from its head and its length. Undefined for other data.
 * @param head the first characters of the data: at least 32; at most `mediaHeadChars` are used
 * @param chars the length of the whole data in characters
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
 * Whether a body contains images, documents, audio or video. They can be in a data URL, in a source of type base64, or
 * in the data of a file. Media can cost far more tokens than their bytes suggest. A PDF of 5 KB can be 180,000 tokens.
 * An image of 300 bytes can be 8,500 tokens, because gpt-4o-mini counts each of its tiles as 5,667.
 * @param mayHoldDataUrl false if no string of the body is a data URL, so that none is searched for
 */
export function holdsMedia(body: Buffer, mayHoldDataUrl = true): boolean {
  for (const at of placesOf(body, '64')) {
    const isWord = (body[at - 1]! | 0x20) === 0x65
    if (isWord && /;\s*base64\s*[;,]|"base64"/i.test(body.toString('latin1', at - 9, at + 7))) return true
  }
  return holdsWord(body, 'file_data') || (mayHoldDataUrl && findPlainMedia(body).length > 0)
}

/**
 * The head of a data URL of an image or a PDF, without base64. Scheme and type may be in any case (RFC 3986, RFC 2045).
 * A URL in quoted source code follows an escaped quote, and counts as text.
 */
const plainHead = /(?<!\\)"data:(?:image\\?\/|application\\?\/pdf)(?![^,"]{0,200};\s*base64\s*[;,])[^,"]{0,200},/gi

/**
 * A quick first search. If this pattern matches nothing, `plainHead` matches nothing either. This search takes a third
 * of the time of `plainHead`.
 */
const headPart = /"[Dd][Aa][Tt][Aa]:[IiAa]/

/**
 * Finds the strings that are data URLs of images or PDFs without base64, such as `data:image/svg+xml,%3Csvg…`. Each
 * such string has a percent sign or the `+x` of `svg+xml`.
 */
export function findPlainMedia(body: Buffer): { start: number; end: number; tokens: number }[] {
  if (!['%', '+x', '+X'].some((sign) => body.includes(sign))) return []
  const found: { start: number; end: number; tokens: number }[] = []
  const text = body.toString('latin1')
  if (!headPart.test(text)) return found
  for (const { index } of text.matchAll(plainHead)) {
    const closing = endOfString(body, index)
    const [start, end] = [index + 1, closing < 0 ? body.length : closing]
    const url = parseDataUrl(readJsonString(body, start, end))
    if (url) found.push({ start, end, tokens: estimateMediaTokens(url.base64, url.base64.length) ?? imageTokensMax })
  }
  return found
}

function readJsonString(body: Buffer, start: number, end: number): string {
  const text = body.toString('utf8', start, end)
  try {
    return JSON.parse(`"${text}"`) as string
  } catch {
    return text
  }
}

type ImageKind = {
  type: string
  /** The first bytes of the format, in base64. */
  mark: string
  /** Distinguishes this format from others that begin with the same mark. */
  form?: RegExp
  /** Returns width × height; 0 if unreadable. */
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
  // The head is RIFF, a length, then `WEBP`. WAV audio begins with RIFF too.
  { type: 'image/webp', mark: 'UklGR', form: /^.{11}XRUJQ/, pixels: webpPixels },
  { type: 'image/jpeg', mark: '/9j/', pixels: jpegPixels },
]

/**
 * The type of an image by its first bytes in base64; undefined if it is not one of the four types that all models
 * accept.
 */
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

/** ITU T.81: a JPEG is a list of segments. The start of frame (C0…CF without C4, C8, CC) has the dimensions. */
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
