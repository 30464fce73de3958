import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/*
 * Signatures of thinking and encrypted reasoning. They are opaque to clients, as the vendors' signatures are. The key
 * is not secret. It only lets a simulator recognize the tokens of a simulator, even after a restart.
 */

const key = 'triwire simulator'
const hashBytes = 16

/** Returns an opaque token for a reasoning text. */
export function seal(text: string): string {
  const hash = createHash('sha256').update(text).digest().subarray(0, hashBytes)
  return Buffer.concat([hash, mac(hash)]).toString('base64')
}

/** Whether a token was made by a simulator. If a text is given, the token must belong to that text. */
export function isSealOf(token: string, text: string): boolean {
  const bytes = Buffer.from(token, 'base64')
  if (bytes.length !== 2 * hashBytes) return false
  const hash = bytes.subarray(0, hashBytes)
  if (!timingSafeEqual(mac(hash), bytes.subarray(hashBytes))) return false
  return text === '' || seal(text) === token
}

function mac(hash: Buffer): Buffer {
  return createHmac('sha256', key).update(hash).digest().subarray(0, hashBytes)
}
