import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * All parts of an image, with their digests (image/lock.json).
 * @property debian packages of Debian's release `suite`, by name
 * @property node the pinned Node, with and without its symbols
 * @property npm packages by the path that npm installs them to, as in package-lock.json
 */
export type ImageLock = {
  suite: string
  debian: Record<string, { version: string; sha256: string }>
  node: { version: string; sha256: string; strippedSha256: string }
  npm: Record<string, LockedPackage>
}

export type LockedPackage = { version: string; integrity: string; license?: string }

export const lockPath = 'image/lock.json'

export function readLock(root: string): ImageLock {
  return JSON.parse(readFileSync(join(root, lockPath), 'utf8')) as ImageLock
}

type Installed = {
  version: string
  integrity: string
  license?: string
  dev?: true
  optional?: true
  devOptional?: true
  peer?: true
}

/** The packages of package-lock.json that are installed beside ours: neither tools nor the Node of the checkout. */
export function lockedPackages(root: string): Record<string, LockedPackage> {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Installed>
  }
  const kept = Object.entries(packages).filter(
    ([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional,
  )
  return Object.fromEntries(
    kept.map(([path, { version, integrity, license }]) => [path, { version, integrity, ...(license && { license }) }]),
  )
}
