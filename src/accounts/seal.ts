import { createCipheriv, createDecipheriv, createHash, createHmac, type Hash, randomBytes } from 'node:crypto'
import type { Sealed } from '../inference/request.ts'

/** Makes and opens our envelopes, which encrypt the signatures of providers (ruling T7). */
export type Sealer = ReturnType<typeof createSealer>

/** The prefix of all our envelopes. It distinguishes them from a provider's own `encrypted_content`. */
export const envelopePrefix = 'tw1.'
const ivBytes = 12
const tagBytes = 16

/**
 * Makes and opens envelopes. An envelope carries a provider's signature through a client that only returns it (ruling
 * T7). Envelopes are encrypted with AES-256-GCM and bound to the account and the model. A changed envelope, or an
 * envelope of another account, cannot be opened.
 */
export function createSealer(key: Buffer) {
  return {
    seal(sealed: Sealed, accountId: string, modelId: string): string {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      cipher.setAAD(binding(accountId, modelId))
      const text = Buffer.concat([cipher.update(JSON.stringify(sealed)), cipher.final()])
      return envelopePrefix + Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url')
    },
    unseal(envelope: string, accountId: string, modelId: string): Sealed | undefined {
      if (!envelope.startsWith(envelopePrefix)) return undefined
      const bytes = Buffer.from(envelope.slice(envelopePrefix.length), 'base64url')
      if (bytes.length <= ivBytes + tagBytes) return undefined
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, ivBytes))
        decipher.setAAD(binding(accountId, modelId))
        decipher.setAuthTag(bytes.subarray(ivBytes, ivBytes + tagBytes))
        const text = Buffer.concat([decipher.update(bytes.subarray(ivBytes + tagBytes)), decipher.final()])
        return JSON.parse(text.toString('utf8')) as Sealed
      } catch {
        // The envelope is not ours, is of another account or model, or was changed. It is treated as missing.
        return undefined
      }
    },
    isOurs: (text: string) => text.startsWith(envelopePrefix),
  }
}

/**
 * Returns a function that begins the digest of a request. Digests are keyed by a secret that all replicas share, and by
 * the account (ruling Y24).
 */
export function createDigests(sealKey: Buffer): (accountId: string) => Hash {
  const key = createHmac('sha256', sealKey).update('likeness').digest('base64url')
  return (accountId) => createHash('sha256').update(`${key} ${accountId}`)
}

function binding(accountId: string, modelId: string): Buffer {
  return Buffer.from(`${accountId}\u0000${modelId}`)
}

/**
 * Returns the conversation key for an upstream. Two accounts never get the same key, even if their clients send equal
 * keys. So the accounts share nothing in a provider's cache (R-CACHE). The key has 63 hex characters, which every wire
 * allows.
 */
export function scopeKey(accountId: string, key: string): string {
  return createHmac('sha256', accountId).update(key).digest('hex').slice(0, 63)
}
