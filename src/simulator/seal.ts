import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/*
 * Signatures of thinking and encrypted reasoning, as opaque to clients as the vendors' are. The key is no secret: it
 * only lets a simulator recognise what a simulator has made, also one that was started anew.
 */

const key = 'triwire simulator'
const hashBytes = 16

/** An opaque token that stands for a reasoning text. */
export function seal(text: string): string {
  const hash = createHash('sha256').update(text).digest().subarray(0, hashBytes)
  return Buffer.concat([hash, mac(hash)]).toString('base64')
}

/** Whether the token is one of ours and, if a text came back with it, belongs to that very text. */
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
