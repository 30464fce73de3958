import { hash, timingSafeEqual } from 'node:crypto'
import { base62 } from './base62.ts'

/** SHA-256 of the UTF-8 text as 64 lower-case hex characters. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex')
}

/** Returns the first characters of the text's SHA-256 in base 62, at most 42. Such ids look random and can be made again. */
export function sha256Base62(text: string, length: number): string {
  const digest = hash('sha256', text, 'buffer')
  const parts = Array.from({ length: digest.length / 2 }, (_, i) => digest.readUInt16BE(2 * i))
  let digits = ''
  while (digits.length < length) {
    // Divides the whole number. Each step is within 46 bits, and so exact.
    let rest = 0
    for (let i = 0; i < parts.length; i++) {
      const part = 65_536 * rest + parts[i]!
      parts[i] = Math.floor(part / fiveDigits)
      rest = part % fiveDigits
    }
    for (let i = 0; i < 5; i++, rest = Math.floor(rest / 62)) digits += base62[rest % 62]
  }
  return digits.slice(0, length)
}

/** As many digits as a division of 16 bits at a time can bring out at once. */
const fiveDigits = 62 ** 5

/** Returns the first ten hex characters of the text's SHA-256, enough to tell apart the names in one request. */
export function hex10(text: string): string {
  return sha256Hex(text).slice(0, 10)
}

/** Compares secrets in a time that tells nothing of them: their digests have one length. */
export function isSameSecret(shown: string, wanted: string): boolean {
  return timingSafeEqual(hash('sha256', shown, 'buffer'), hash('sha256', wanted, 'buffer'))
}
