import { createHash, randomBytes } from 'node:crypto'
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Secret } from '../config/config.ts'

/** The key of the envelopes: from the configuration, else made once beside the store, readable by its owner only. */
export function readSealKey(configured: Secret | undefined, storePath: string): Buffer {
  if (configured) return createHash('sha256').update(configured.reveal()).digest()
  const path = `${storePath}.seal`
  if (!existsSync(path)) {
    writeFileSync(path, randomBytes(32).toString('base64'), { mode: 0o600, flag: 'wx' })
    chmodSync(path, 0o600)
  }
  return createHash('sha256').update(readFileSync(path, 'utf8').trim()).digest()
}
