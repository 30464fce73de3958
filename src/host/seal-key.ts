import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { Secret, StorePlace } from '../config/config.ts'
import { isGuessable } from '../config/values.ts'
import { realPath, refuseWideMode } from '../store/files/place.ts'
import { StoreError } from '../store/files/store-error.ts'
import { writeWhole } from './whole-file.ts'

const keyBytes = 32

/**
 * Returns the key that seals envelopes. An envelope is encrypted data that clients send back. The key is configured, or
 * read from a file beside the store. The file is created once, and only its owner can read it.
 * @throws StoreError if the file is damaged, because a key that can be guessed would open every envelope (B23)
 */
export function readSealKey(configured: Secret | undefined, store: StorePlace): Buffer {
  if (configured) return createHash('sha256').update(configured.reveal()).digest()
  // Servers that share a database need a common key, or they could not open each other's envelopes (ruling T7).
  if (store.engine !== 'sqlite') throw new StoreError(`${store.shown} needs a seal_key in the configuration`)
  const path = findSealFile(store.path)
  if (!existsSync(path)) writeWhole(path, randomBytes(keyBytes).toString('base64'))
  refuseWideMode([path])
  const text = readFileSync(path, 'utf8').trim()
  const bytes = Buffer.from(text, 'base64')
  const fault =
    bytes.length < keyBytes
      ? `${path} has ${bytes.length} of the ${keyBytes} bytes of a key`
      : isGuessable(bytes) && `${path} has a key that can be guessed, of few different bytes`
  if (fault)
    throw new StoreError(
      `${fault}: restore it from a backup, or remove it, and a new one is made (clients then lose only the reasoning of old turns)`,
    )
  return createHash('sha256').update(text).digest()
}

/**
 * Returns the path of the key file. If the store's path is a link, earlier releases put the key file beside the link.
 * Such a file is still used.
 */
function findSealFile(storePath: string): string {
  const [given, real] = [`${storePath}.seal`, `${realPath(storePath)}.seal`]
  return !existsSync(real) && existsSync(given) ? given : real
}
