import { hash, randomFillSync, randomInt, timingSafeEqual } from 'node:crypto'

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
 * The divisor that splits off eight base-62 digits in one step. The remainder fits exactly into a `number`. One step
 * for each digit would take three times as long.
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

/** The digits of ids and keys: 0 to 9, A to Z, a to z. */
export const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

/** Returns random letters and digits, each equally likely. */
export function randomText(chars: number): string {
  let text = ''
  for (let i = 0; i < chars; i++) text += base62[randomInt(base62.length)]
  return text
}

/** The random bytes in an id. Nine become two hex digits each. The tenth chooses the digit of the UUID's variant. */
const chanceBytes = 10

/** Random bytes for 128 ids. They are drawn together, because drawing costs more than the rest of an id. */
const drawn = Buffer.alloc(128 * chanceBytes)
let at = drawn.length
/** The time of the last id, and its digits. A busy server makes several ids per millisecond. */
let [lastMs, digits] = [0, '']

/** Makes a unique request id: `req_` and a UUIDv7 without dashes. The id is the ledger's key for debits (ruling R5). */
export function newRequestId(): string {
  if (at === drawn.length) {
    randomFillSync(drawn)
    at = 0
  }
  const chance = drawn.toString('hex', at, at + chanceBytes)
  const variant = '89ab'[drawn[at + chanceBytes - 1]! & 3]
  at += chanceBytes
  // Node's own function for UUIDv7 is newer than the oldest supported release of Node 24.
  const nowMs = Date.now()
  if (nowMs !== lastMs) [lastMs, digits] = [nowMs, nowMs.toString(16).padStart(12, '0')]
  return `req_${digits}7${chance.slice(0, 3)}${variant}${chance.slice(3, 18)}`
}
