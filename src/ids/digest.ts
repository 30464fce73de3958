import { hash, timingSafeEqual } from 'node:crypto'
import { base62 } from './base62.ts'

/** Returns the SHA-256 of a text in UTF-8, or of bytes, as 64 lower-case hex characters. */
export function sha256Hex(text: string | Uint8Array): string {
  return hash('sha256', text, 'hex')
}

/** Returns the first `length` digits, at most 42, of the text's SHA-256 in base 62. */
export function sha256Base62(text: string, length: number): string {
  let number = BigInt(`0x${sha256Hex(text)}`)
  let digits = ''
  while (digits.length < length) {
    let rest = Number(number % eightDigits)
    number /= eightDigits
    for (let i = 0; i < 8; i++, rest = Math.floor(rest / 62)) digits += base62[rest % 62]
  }
  return digits.slice(0, length)
}

/**
 * One division gives eight digits, which a number holds exactly. A division for each digit takes three times as long.
 */
const eightDigits = 62n ** 8n

/** Returns the first ten hex characters of the text's SHA-256. They suffice to distinguish the names in one request. */
export function hex10(text: string): string {
  return sha256Hex(text).slice(0, 10)
}

/** Compares secrets in a time that does not depend on their content. Comparing digests also hides their lengths. */
export function isSameSecret(shown: string, wanted: string): boolean {
  return timingSafeEqual(hash('sha256', shown, 'buffer'), hash('sha256', wanted, 'buffer'))
}
