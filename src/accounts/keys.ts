import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { base62, randomText } from '../ids.ts'

const scheme = 'sk-tri-'
const randomChars = 40
const checksumChars = 6
const prefixChars = scheme.length + 8
const form = new RegExp(`^${scheme}[0-9A-Za-z]{${randomChars + checksumChars}}$`)

type NewKey = {
  /** The secret itself. It is shown once to the person who requested the key, and stored nowhere. */
  key: string
  id: string
  /** The first characters, so that people can tell keys apart. */
  prefix: string
  /** The digest, which the store keeps instead of the key. */
  digest: string
}

/**
 * Makes a new key of 238 random bits and a checksum. Secret scanners recognise it as ours, and a typing error is found
 * at once.
 */
export function createKey(): NewKey {
  const body = scheme + randomText(randomChars)
  const key = body + checksum(body)
  return { key, id: `key_${randomText(16)}`, prefix: key.slice(0, prefixChars), digest: digestKey(key) }
}

/** Reads a text as a key. Form and checksum are checked first, so that garbage costs no digest and no lookup. */
export function readKey(text: string): { kind: 'well_formed'; digest: string } | { kind: 'malformed' } {
  if (!form.test(text)) return { kind: 'malformed' }
  const body = text.slice(0, -checksumChars)
  if (text.slice(-checksumChars) !== checksum(body)) return { kind: 'malformed' }
  return { kind: 'well_formed', digest: digestKey(text) }
}

/** The longest text that is accepted as a foreign key, in characters. */
const foreignCharsMax = 256

/**
 * Returns the digest of a text that may be a key of another gateway; undefined for any other text. LiteLLM's keys begin
 * with `sk-`, followed by any text (litellm 1.110, `hash_token_if_needed`, November 2026). Only a lookup in the store
 * shows whether the key exists.
 */
export function digestForeignKey(text: string): string | undefined {
  return /^sk-[\x21-\x7e]+$/.test(text) && text.length <= foreignCharsMax ? digestKey(text) : undefined
}

/** Converts the SHA-256 of a key in hex, which LiteLLM stores, to our digest. Returns undefined for any other text. */
export function digestOfHex(hex: string): string | undefined {
  return /^[\da-f]{64}$/i.test(hex) ? Buffer.from(hex, 'hex').toString('base64url') : undefined
}

/** Whether a text may contain a key or a part of one. Such a text must not be shown or stored. */
export function mayHoldKey(text: string): boolean {
  return text.includes(scheme) || /tri-(?:op|at|rt)-/.test(text)
}

/** Shortens a whole key to its first characters, by which people may identify it. Any other text stays unchanged. */
export function nameOfKey(text: string): string {
  return form.test(text) ? text.slice(0, prefixChars) : text
}

/**
 * Shortens each key in a text to its first characters, even a key that is not whole. After that, the text can be shown
 * and stored (ruling U5). A text that looks like a key of another gateway is cut to `sk-`.
 */
export function withoutKeys(text: string): string {
  return text
    .replace(/(sk-tri-[0-9A-Za-z]{8}|tri-(?:op|at|rt)-[0-9A-Za-z]{6})[0-9A-Za-z]+/g, '$1…')
    .replace(/\bsk-(?!tri-[0-9A-Za-z]{0,8}(?![\w-]))[\w-]{16,}/g, 'sk-…')
}

/**
 * Returns the SHA-256 as base64url. A slow hash is not needed, because a random key of this length cannot be guessed.
 */
export function digestKey(key: string): string {
  return hash('sha256', key, 'base64url')
}

/** Returns the CRC-32 of a text as six letters and digits. */
function checksum(text: string): string {
  let rest = crc32(text)
  let digits = ''
  for (let i = 0; i < checksumChars; i++) {
    digits = base62[rest % base62.length] + digits
    rest = Math.floor(rest / base62.length)
  }
  return digits
}
