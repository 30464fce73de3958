import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/*
 * The files of a release, and the files that are installed. A release has a manifest in the format of `sha256sum`, and
 * a signature of the manifest (Ed25519, RFC 8032). Users can check these without our code (SECURITY.md).
 */

export const manifestName = 'SHA256SUMS'
export const signatureName = 'SHA256SUMS.sig'

/** The digests of files, by path. Paths have slashes on every platform. */
type FileSums = ReadonlyMap<string, string>

type InstalledFiles = {
  /** The SHA-256 of the public key, in hex. */
  key: string
  files: number
  changed: string[]
  missing: string[]
  added: string[]
}

/** Thrown if the installed files cannot be verified. The message names the cure. */
export class NotVerifiable extends Error {}

/** Writes digests in the format of `sha256sum`. */
export function formatSums(sums: FileSums): string {
  return [...sums]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([path, digest]) => `${digest}  ${path}\n`)
    .join('')
}

/**
 * Reads digests in the format of `sha256sum`.
 * @throws NotVerifiable for an invalid line, or a path that leads out of the folder
 */
export function parseSums(text: string): Map<string, string> {
  const sums = new Map<string, string>()
  for (const line of text.split('\n').slice(0, -1)) {
    const [, digest = '', path = ''] = /^([0-9a-f]{64}) {2}([^\\]+)$/.exec(line) ?? []
    const isBelow = path !== '' && !path.split('/').some((part) => ['', '.', '..'].includes(part))
    if (!isBelow || sums.has(path))
      throw new NotVerifiable(`${manifestName} has an invalid line: install the package again.`)
    sums.set(path, digest)
  }
  return sums
}

/**
 * Finds the public key in a text such as SECURITY.md; undefined if there is none.
 * @throws NotVerifiable if it is not an Ed25519 key
 */
export function findPublicKey(text: string): KeyObject | undefined {
  const [pem] = /-----BEGIN PUBLIC KEY-----[\sA-Za-z0-9+/=]+-----END PUBLIC KEY-----/.exec(text) ?? []
  if (pem === undefined) return undefined
  try {
    const key = createPublicKey(pem.replace(/^[ \t]+/gm, ''))
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // The reason that OpenSSL gives does not help the operator, so it is left out.
  }
  throw new NotVerifiable('The public key is not an Ed25519 key in PEM form.')
}

/** The SHA-256 of a public key, in hex, for people to compare. */
export function fingerprintOf(key: KeyObject): string {
  return createHash('sha256')
    .update(key.export({ format: 'der', type: 'spki' }))
    .digest('hex')
}

/**
 * Compares the files of an installed package with its signed manifest. The modes of files are not compared.
 * @param root the folder of the package; its `node_modules` is skipped, because the manifest lists only our files
 * @param keyText a text with the public key; if undefined, the package's SECURITY.md is used
 * @throws NotVerifiable if there is no manifest or key, or if the signature is by another key
 */
export function verifyInstalled(root: string, keyText?: string): InstalledFiles {
  const manifest = readMaybe(join(root, manifestName))
  const signature = readMaybe(join(root, signatureName))
  if (!manifest || !signature)
    throw new NotVerifiable(
      `This is not a signed release: ${root} has no ${manifest ? signatureName : manifestName}. Compare a checkout with git status.`,
    )
  const key = findPublicKey(keyText ?? readMaybe(join(root, 'SECURITY.md'))?.toString() ?? '')
  if (!key) throw new NotVerifiable('There is no public key: name a file that has it with --key.')
  if (!verify(null, manifest, key, signature))
    throw new NotVerifiable(
      `${manifestName} is not signed by the key ${fingerprintOf(key)}: do not use this installation. Install the package again.`,
    )
  const sums = parseSums(manifest.toString())
  const found = new Set(listFiles(root).filter((path) => path !== manifestName && path !== signatureName))
  const paths = [...sums.keys()]
  return {
    key: fingerprintOf(key),
    files: sums.size,
    changed: paths.filter((path) => found.has(path) && digestOf(join(root, path)) !== sums.get(path)),
    missing: paths.filter((path) => !found.has(path)),
    added: [...found].filter((path) => !sums.has(path)).sort(),
  }
}

/**
 * Returns the SHA-256 of a file, in hex. @returns undefined if the path is not a regular file (a link is not regular)
 */
function digestOf(path: string): string | undefined {
  const data = readMaybe(path)
  return data && createHash('sha256').update(data).digest('hex')
}

function readMaybe(path: string): Buffer | undefined {
  return readable(path, () => (lstatSync(path, { throwIfNoEntry: false })?.isFile() ? readFileSync(path) : undefined))
}

/** Reads a file with the public key. @throws NotVerifiable with the name of the file, if the file cannot be read */
export function readKeyFile(file: string): string {
  return readable(file, () => readFileSync(file, 'utf8'), 'name a file with the public key')
}

/**
 * Reads a path by `read`. @throws NotVerifiable if this user may not read it, because unread files cannot be verified
 */
function readable<T>(
  path: string,
  read: () => T,
  cure = 'run this as a user who can read all files of the package',
): T {
  try {
    return read()
  } catch (error) {
    throw new NotVerifiable(`Cannot read ${path} (${(error as NodeJS.ErrnoException).code}): ${cure}.`)
  }
}

/**
 * Lists all files and links below a folder. The `node_modules` that npm creates at the top is skipped. A
 * `node_modules` in a deeper folder is listed, because Node would look for packages there first.
 */
export function listFiles(root: string, below = ''): string[] {
  const folder = join(root, below)
  return readable(folder, () => readdirSync(folder, { withFileTypes: true })).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`
    if (!entry.isDirectory()) return [path]
    return path === 'node_modules' ? [] : listFiles(root, path)
  })
}
