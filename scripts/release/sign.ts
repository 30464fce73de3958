import { type KeyObject, sign } from 'node:crypto'
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { formatSums, listFiles, manifestName, signatureName } from '../../src/host/installed.ts'
import { sha256Hex } from '../../src/ids.ts'
import { must } from '../install/tools.ts'
import { compress, writeTar } from './tar.ts'

/** The time that npm gives to each file of a package, in Unix seconds: 26 October 1985. */
const npmSeconds = 499_162_500

/**
 * Writes a manifest of all files of a folder, and its signature.
 * @param key a private Ed25519 key: the same files have the same signature
 */
export function signFolder(folder: string, key: KeyObject): void {
  for (const name of [manifestName, signatureName]) rmSync(join(folder, name), { force: true })
  const sums = new Map(listFiles(folder).map((path) => [path, sha256Hex(readFileSync(join(folder, path)))]))
  const manifest = Buffer.from(formatSums(sums))
  writeFileSync(join(folder, manifestName), manifest)
  writeFileSync(join(folder, signatureName), sign(null, manifest, key))
}

/**
 * Adds files to a package that npm packed, then a manifest of all files and its signature, and packs it again.
 * @param more texts by the paths that they have in the package
 * @param scratch a folder to unpack into
 */
export function signPackage(
  tarball: string,
  key: KeyObject,
  more: Readonly<Record<string, string>>,
  to: string,
  scratch: string,
): void {
  rmSync(scratch, { recursive: true, force: true })
  mkdirSync(scratch, { recursive: true })
  must(['tar', '-xzf', tarball, '--strip-components=1', '--no-same-owner', '-C', scratch])
  for (const [path, text] of Object.entries(more)) writeFileSync(join(scratch, path), text)
  signFolder(scratch, key)
  const entries = listFiles(scratch).map((path) => {
    const file = join(scratch, path)
    return { path: `package/${path}`, mode: statSync(file).mode & 0o100 ? 0o755 : 0o644, data: readFileSync(file) }
  })
  mkdirSync(dirname(to), { recursive: true })
  writeFileSync(to, compress(writeTar(entries, npmSeconds)))
}
