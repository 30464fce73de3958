import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { base62, randomText } from '../ids/base62.ts'

const scheme = 'sk-tri-'
const randomChars = 40
const checksumChars = 6
const prefixChars = scheme.length + 8
const form = new RegExp(`^${scheme}[0-9A-Za-z]{${randomChars + checksumChars}}$`)

export type NewKey = {
  /** The secret itself: shown once to the person who asked for it, and kept nowhere. */
  key: string
  id: string
  /** The first characters, for people to tell keys apart. */
  prefix: string
  /** What the store keeps. */
  digest: string
}

/** A new key: 238 bits of chance and a checksum, so that a scanner knows it for ours and a typing error is seen at once. */
export function createKey(): NewKey {
  const body = scheme + randomText(randomChars)
  const key = body + checksum(body)
  return { key, id: `key_${randomText(16)}`, prefix: key.slice(0, prefixChars), digest: digestKey(key) }
}

/** Looks at form and checksum only, so that garbage costs no digest and no lookup. */
export function readKey(text: string): { kind: 'well_formed'; digest: string } | { kind: 'malformed' } {
  if (!form.test(text)) return { kind: 'malformed' }
  const body = text.slice(0, -checksumChars)
  if (text.slice(-checksumChars) !== checksum(body)) return { kind: 'malformed' }
  return { kind: 'well_formed', digest: digestKey(text) }
}

/** Whether somebody may have put a key, whole or not, into a text that is no secret. */
export function mayHoldKey(text: string): boolean {
  return text.includes(scheme) || text.includes('tri-op-')
}

/** A whole key as people may name it: by its first characters. Anything else as it is. */
export function nameOfKey(text: string): string {
  return form.test(text) ? text.slice(0, prefixChars) : text
}

/** A text that may be shown and kept: of a key in it, whole or not, the first characters at most (ruling U5). */
export function withoutKeys(text: string): string {
  return text.replace(/(sk-tri-[0-9A-Za-z]{8}|tri-op-[0-9A-Za-z]{6})[0-9A-Za-z]+/g, '$1…')
}

/** SHA-256 as base64url. A plain digest will do: a random key of this length cannot be guessed back. */
export function digestKey(key: string): string {
  return hash('sha256', key, 'base64url')
}

/** The CRC-32 of a text in six letters and digits. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < checksumChars; i++) {
    digits = base62[rest % base62.length] + digits
    rest = Math.floor(rest / base62.length)
  }
  return digits
}
