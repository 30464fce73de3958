import { createCipheriv, createDecipheriv, createHmac, randomBytes } from 'node:crypto'
import type { Sealed } from '../inference/request.ts'

/** Envelopes for a provider's signatures (ruling T7). */
export type Sealer = {
  seal(sealed: Sealed, accountId: string, modelId: string): string
  unseal(envelope: string, accountId: string, modelId: string): Sealed | undefined
  isOurs(text: string): boolean
}

/** How every envelope of ours begins, and what tells it from a provider's own `encrypted_content`. */
export const envelopePrefix = 'tw1.'
const ivBytes = 12
const tagBytes = 16

/**
 * Envelopes that carry a provider's signature through a client that can only give it back (ruling T7): encrypted and
 * authenticated with AES-256-GCM, bound to the account and the model, so that another's or a changed one does not open.
 */
export function createSealer(key: Buffer): Sealer {
  return {
    seal(sealed, accountId, modelId) {
      const iv = randomBytes(ivBytes)
      const cipher = createCipheriv('aes-256-gcm', key, iv)
      cipher.setAAD(binding(accountId, modelId))
      const text = Buffer.concat([cipher.update(JSON.stringify(sealed)), cipher.final()])
      return envelopePrefix + Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64url')
    },
    unseal(envelope, accountId, modelId) {
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
        // Not ours, not for them, or changed: as good as not there.
        return undefined
      }
    },
    isOurs: (text) => text.startsWith(envelopePrefix),
  }
}

function binding(accountId: string, modelId: string): Buffer {
  return Buffer.from(`${accountId}\u0000${modelId}`)
}

/**
 * A conversation key as an upstream may see it: the same for one account, never the same for two, so that equal keys of
 * two customers do not meet in a provider's cache (R-CACHE). 63 hex characters, within every wire's limit.
 */
export function scopeKey(accountId: string, key: string): string {
  return createHmac('sha256', accountId).update(key).digest('hex').slice(0, 63)
}
