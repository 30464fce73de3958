import { createPrivateKey, type KeyObject } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findPublicKey, fingerprintOf, manifestName, signatureName } from '../../src/host/installed.ts'

/** The words of the command line. */
export type ReleaseOptions = { 'dry-run'?: boolean; key?: string; registry?: string; out?: string }

/** @returns the options, or a sentence about an unknown one, because a misspelt `--dry-run` must not make a release */
export function readOptions(args: string[]): ReleaseOptions | string {
  const text = { type: 'string' } as const
  const options = { 'dry-run': { type: 'boolean' }, key: text, registry: text, out: text } as const
  try {
    return parseArgs({ args, options }).values
  } catch (error) {
    return `${(error as Error).message.split('. ')[0]}: use --key FILE, --dry-run, --registry URL and --out FOLDER.`
  }
}

/** Reads the signing key. @returns a sentence if the file cannot be read, or has no private key without a password */
export function readSigningKey(file: string): KeyObject | string {
  try {
    return createPrivateKey(readFileSync(file))
  } catch (error) {
    const { code = 'unknown' } = error as NodeJS.ErrnoException
    return `${file} cannot be read as a private key (${code}): make one with openssl genpkey -algorithm ed25519 -out FILE.`
  }
}

/** Whether a release may empty this folder: it does not exist, is empty, or has an older release. */
export function mayEmpty(folder: string): boolean {
  const there = existsSync(folder)
  return !there || (statSync(folder).isDirectory() && (readdirSync(folder).length === 0 || hasRelease(folder)))
}

function hasRelease(folder: string): boolean {
  return [manifestName, signatureName, 'notes.md', 'oci'].every((name) => existsSync(join(folder, name)))
}

/**
 * The facts that decide whether a release may begin.
 * @property status the state of the work tree, as `git status --porcelain` prints it
 * @property version the version in package.json
 * @property out the folder that the release is written to
 */
export type ReleaseInput = {
  out: string
  isDry: boolean
  status: string
  version: string
  changelog: string
  security: string
  /** The public half of the key that signs; undefined if no key was given. */
  key: KeyObject | undefined
  registry: string | undefined
}

/** Returns a version without the suffix `-dev`. CHANGELOG.md has a section for this version. */
export function releaseOf(version: string): string {
  return version.replace(/-dev$/, '')
}

/** Returns heading and text of a version's section in CHANGELOG.md. Undefined if the section is missing or empty. */
export function sectionOf(changelog: string, version: string): { heading: string; text: string } | undefined {
  for (const section of changelog.split(/^(?=## )/m)) {
    const [heading = '', ...lines] = section.split('\n')
    const text = lines.join('\n').trim()
    if (heading.startsWith('## ') && heading.slice(3).split(' ')[0] === version && text !== '') return { heading, text }
  }
  return undefined
}

/** The place where somebody reports a vulnerability: an address on the web or for mail. */
const contact = /^- Contact: <?(?:https:\/\/[^\s>]+|[^\s@<>]+@[^\s@<>]+\.[^\s@<>]+)>?$/m

/** Returns a sentence for each reason not to release, with its cure. */
export function findObstacles({
  isDry,
  status,
  version,
  changelog,
  security,
  key,
  registry,
  out,
}: ReleaseInput): string[] {
  const section = sectionOf(changelog, releaseOf(version))
  const checks: [isWrong: boolean, sentence: string][] = [
    [status.trim() !== '', `The work tree has changes: commit or stash them.\n${status.trimEnd()}`],
    [section === undefined, `CHANGELOG.md has no section "## ${releaseOf(version)}" with entries: write it.`],
    [!contact.test(security), 'SECURITY.md names no contact: complete the line "- Contact: " with an address.'],
    [!isDry && version !== releaseOf(version), `package.json has the version ${version}: set the one to release.`],
    [!isDry && /not released/.test(section?.heading ?? ''), 'CHANGELOG.md says "not released yet": put the day there.'],
    [!isDry && registry === undefined, 'No registry is named: say where the image goes with --registry.'],
    [!mayEmpty(out), `${out} has other files than a release: name a new folder with --out.`],
    [key === undefined, 'No key signs: name a private Ed25519 key in PEM form with --key.'],
    [key !== undefined && key.asymmetricKeyType !== 'ed25519', 'The key is not an Ed25519 key.'],
  ]
  const sentences = checks.filter(([isWrong]) => isWrong).map(([, sentence]) => sentence)
  if (key?.asymmetricKeyType !== 'ed25519') return sentences
  return [...sentences, ...keyObstacles(security, key)]
}

/** People verify with the public key in SECURITY.md, so it has to be the one that signs. */
function keyObstacles(security: string, key: KeyObject): string[] {
  const pem = key.export({ format: 'pem', type: 'spki' })
  try {
    const named = findPublicKey(security)
    if (named && fingerprintOf(named) === fingerprintOf(key)) return []
    return [`SECURITY.md ${named ? 'has another public key' : 'has no public key'}: put this one there.\n${pem}`]
  } catch {
    return [`The public key in SECURITY.md cannot be read: put this one there.\n${pem}`]
  }
}
