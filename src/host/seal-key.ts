import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import type { Secret, StorePlace } from '../config/config.ts'
import { realPath } from '../store/files/place.ts'
import { StoreError } from '../store/files/store-error.ts'
import { refuseWideMode } from '../store/files/wide-mode.ts'
import { writeWhole } from './whole-file.ts'

const keyBytes = 32

/**
 * The key of the envelopes: from the configuration, else made once beside the store's file, readable by its owner only.
 * @throws StoreError if the file cannot be what was written. A key that can be guessed opens every envelope (B23).
 */
export function readSealKey(configured: Secret | undefined, store: StorePlace): Buffer {
  if (configured) return createHash('sha256').update(configured.reveal()).digest()
  // One that each server makes for itself opens nobody else's envelopes (ruling T7).
  if (store.engine !== 'sqlite') throw new StoreError(`${store.shown} needs a seal_key in the configuration`)
  const path = findSealFile(store.path)
  if (!existsSync(path)) writeWhole(path, randomBytes(keyBytes).toString('base64'))
  refuseWideMode([path])
  const text = readFileSync(path, 'utf8').trim()
  const { length } = Buffer.from(text, 'base64')
  if (length < keyBytes) {
    throw new StoreError(
      `${path} has ${length} of the ${keyBytes} bytes of a key: restore it from a backup, or remove it, and a new one is made (clients then lose the reasoning of old turns, nothing else)`,
    )
  }
  return createHash('sha256').update(text).digest()
}

/** Beside the store itself; an earlier release made it beside the link that it was started with. */
function findSealFile(storePath: string): string {
  const [given, real] = [`${storePath}.seal`, `${realPath(storePath)}.seal`]
  return !existsSync(real) && existsSync(given) ? given : real
}
