import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { base62, randomText } from '../ids/base62.ts'

const scheme = 'sk-tri-'
const randomChars = 40
const checksumChars = 6
const prefixChars = scheme.length + 8
const form = new RegExp(`^${scheme}[0-9A-Za-z]{${randomChars + checksumChars}}$`)

type NewKey = {
  /** The secret itself: shown once to the person who asked for it, and kept nowhere. */
  key: string
  id: string
  /** The first characters, for people to tell keys apart. */
  prefix: string
  /** Kept in the store instead of the key. */
  digest: string
}

/** A new key of 238 random bits and a checksum. Scanners recognise it as ours, and a typing error is found at once. */
export function createKey(): NewKey {
  const body = scheme + randomText(randomChars)
  const key = body + checksum(body)
  return { key, id: `key_${randomText(16)}`, prefix: key.slice(0, prefixChars), digest: digestKey(key) }
}

/** Checks form and checksum first, so that garbage costs no digest and no lookup. */
export function readKey(text: string): { kind: 'well_formed'; digest: string } | { kind: 'malformed' } {
  if (!form.test(text)) return { kind: 'malformed' }
  const body = text.slice(0, -checksumChars)
  if (text.slice(-checksumChars) !== checksum(body)) return { kind: 'malformed' }
  return { kind: 'well_formed', digest: digestKey(text) }
}

/** The longest text that is read as a foreign key, in characters. */
const foreignCharsMax = 256

/**
 * Returns the digest of a text that may be a key of another gateway; undefined for any other text. LiteLLM's keys begin with
 * `sk-`, the rest may be chosen freely (litellm 1.110, `hash_token_if_needed`, November 2026). Only the store knows whether it is one.
 */
export function digestForeignKey(text: string): string | undefined {
  return /^sk-[\x21-\x7e]+$/.test(text) && text.length <= foreignCharsMax ? digestKey(text) : undefined
}

/** Returns our digest of a key from its SHA-256 in hex, as LiteLLM keeps it; undefined for any other text. */
export function digestOfHex(hex: string): string | undefined {
  return /^[\da-f]{64}$/i.test(hex) ? Buffer.from(hex, 'hex').toString('base64url') : undefined
}

/** Whether a text that is not secret may contain a key, whole or in part. */
export function mayHoldKey(text: string): boolean {
  return text.includes(scheme) || /tri-(?:op|at|rt)-/.test(text)
}

/** A whole key is shortened to its first characters, by which people may name it. Any other text stays as it is. */
export function nameOfKey(text: string): string {
  return form.test(text) ? text.slice(0, prefixChars) : text
}

/**
 * A text that may be shown and kept: each key in it, whole or not, is cut to its first characters (ruling U5). Of what may be a
 * key of another gateway only `sk-` stays.
 */
export function withoutKeys(text: string): string {
  return text
    .replace(/(sk-tri-[0-9A-Za-z]{8}|tri-(?:op|at|rt)-[0-9A-Za-z]{6})[0-9A-Za-z]+/g, '$1…')
    .replace(/\bsk-(?!tri-[0-9A-Za-z]{0,8}(?![\w-]))[\w-]{16,}/g, 'sk-…')
}

/** SHA-256 as base64url. No slow hash is needed: a random key of this length cannot be guessed. */
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
