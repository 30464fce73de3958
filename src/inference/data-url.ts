import { hexDigit } from '../bytes/hex-digit.ts'

type DataUrl = { mime: string; base64: string }

/** Misspelled media types that clients send, and their registered names. */
const mimeNames = new Map([['image/jpg', 'image/jpeg']])

/**
 * The longest accepted head of a data URL (type and parameters) in characters. Usual heads have two or three
 * parameters.
 */
const headCharactersMax = 1_000

/**
 * Reads `data:<mime>[;params][;base64],<data>` (R-IMG). The scheme and `base64` may be in any case. White space in
 * the data is removed, and percent-encoded data is returned as base64.
 * @returns undefined for anything else
 */
export function parseDataUrl(url: string): DataUrl | undefined {
  if (url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const comma = url.indexOf(',')
  if (comma < 0 || comma > headCharactersMax) return undefined
  const [type = '', ...params] = url.slice(5, comma).split(';')
  const isBase64 = params.some((param) => param.trim().toLowerCase() === 'base64')
  const base64 = isBase64 ? cleanBase64(url.slice(comma + 1)) : encodePercent(url.slice(comma + 1))
  if (base64 === undefined) return undefined
  return { mime: cleanMime(type), base64 }
}

/** The data without white space; undefined if it is empty or not base64. */
export function cleanBase64(data: string): string | undefined {
  const clean = data.replace(/\s+/g, '')
  // Searching for one invalid character is fast even for 5 MB. A pattern that matches the whole text is not.
  return clean === '' || /[^A-Za-z0-9+/=_-]/.test(clean) ? undefined : clean
}

export function cleanMime(type: string): string {
  const mime = type.trim().toLowerCase() || 'text/plain'
  return mimeNames.get(mime) ?? mime
}

export function writeDataUrl(mime: string, base64: string): string {
  return `data:${mime};base64,${base64}`
}

export function textToBase64(text: string): string {
  return Buffer.from(text).toString('base64')
}

export function base64ToText(base64: string): string {
  return Buffer.from(base64, 'base64').toString()
}

function encodePercent(data: string): string | undefined {
  if (data === '') return undefined
  const bytes = Buffer.from(data)
  let length = 0
  for (let at = 0; at < bytes.length; at++) {
    const high = bytes[at] === percent ? hexDigit(bytes[at + 1]) : -1
    const low = high < 0 ? -1 : hexDigit(bytes[at + 2])
    if (low >= 0) at += 2
    bytes[length++] = low >= 0 ? high * 16 + low : bytes[at]!
  }
  return bytes.toString('base64', 0, length)
}

const percent = 0x25
