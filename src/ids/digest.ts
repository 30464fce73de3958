import { hash } from 'node:crypto'
import { base62 } from './base62.ts'

/** SHA-256 of the UTF-8 text as 64 lower-case hex characters. */
export function sha256Hex(text: string): string {
  return hash('sha256', text, 'hex')
}

/** The first characters of the text's SHA-256 in base 62: ids that look random and can be made again. At most 42. */
export function sha256Base62(text: string, length: number): string {
  let rest = BigInt(`0x${sha256Hex(text)}`)
  let digits = ''
  for (let i = 0; i < length; i++) {
    digits += base62[Number(rest % 62n)]
    rest /= 62n
  }
  return digits
}

/** The first ten hex characters of the text's SHA-256: enough to tell apart what one request names. */
export function hex10(text: string): string {
  return sha256Hex(text).slice(0, 10)
}
