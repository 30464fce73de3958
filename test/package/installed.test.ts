import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { generateKeyPairSync, sign } from 'node:crypto'
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import {
  formatSums,
  listFiles,
  manifestName,
  NotVerifiable,
  parseSums,
  readKeyFile,
  signatureName,
  verifyInstalled,
} from '../../src/host/installed.ts'
import { sha256Hex } from '../../src/ids.ts'
import { testFolder } from '../support/folder.ts'

/* A signed package, and what `triwire version --verify` finds in one that is not as it was signed. */

const { privateKey, publicKey } = generateKeyPairSync('ed25519')
const pem = String(publicKey.export({ format: 'pem', type: 'spki' }))
const files = {
  'SECURITY.md': `# Security\n\n${pem.replace(/^/gm, '    ')}\n`,
  'package.json': '{"name":"triwire","version":"9.9.9"}\n',
  'lib/cli/cli.js': 'export {}\n',
  'docs/a file.md': 'with a blank\n',
}

function signedPackage(name: string, key = privateKey): string {
  const root = testFolder(name)
  for (const [path, text] of Object.entries(files)) write(root, path, text)
  const sums = new Map(Object.entries(files).map(([path, text]) => [path, sha256Hex(text)]))
  const manifest = formatSums(sums)
  write(root, manifestName, manifest)
  writeFileSync(join(root, signatureName), sign(null, Buffer.from(manifest), key))
  return root
}

/** Writes the manifest anew, without a new signature. */
function recode(root: string, pattern: RegExp, text: string): void {
  write(root, manifestName, readFileSync(join(root, manifestName), 'utf8').replace(pattern, text))
}

function write(root: string, path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), text)
}

const none = { changed: [], missing: [], added: [] }

test('issue 50: an unchanged release is verified; its dependencies are not checked', () => {
  const root = signedPackage('signed')
  write(root, 'node_modules/pg/index.js', 'of others')
  const { key, ...found } = verifyInstalled(root)
  assert.deepEqual(found, { files: 4, ...none })
  assert.match(key, /^[0-9a-f]{64}$/)
  assert.equal(verifyInstalled(root, pem).key, key)
})

const damages: [what: string, damage: (root: string) => void, found: Partial<typeof none>][] = [
  ['a byte', (root) => write(root, 'lib/cli/cli.js', 'export {};'), { changed: ['lib/cli/cli.js'] as never }],
  ['a file less', (root) => rmSync(join(root, 'docs/a file.md')), { missing: ['docs/a file.md'] as never }],
  ['a file more', (root) => write(root, 'lib/cli/more.js', ''), { added: ['lib/cli/more.js'] as never }],
  ['a hidden file', (root) => write(root, '.npmrc', ''), { added: ['.npmrc'] as never }],
  // Node would import packages from here, before those that npm installed.
  [
    'a package inside of a folder of ours',
    (root) => write(root, 'lib/node_modules/pg/index.js', ''),
    { added: ['lib/node_modules/pg/index.js'] as never },
  ],
  [
    'a folder in the place of a file',
    (root) => {
      rmSync(join(root, 'lib/cli/cli.js'))
      mkdirSync(join(root, 'lib/cli/cli.js'))
    },
    { missing: ['lib/cli/cli.js'] as never },
  ],
  [
    'a link in the place of a folder',
    (root) => {
      renameSync(join(root, 'docs'), `${root}.docs`)
      symlinkSync(`${root}.docs`, join(root, 'docs'))
    },
    { missing: ['docs/a file.md'] as never, added: ['docs'] as never },
  ],
  [
    'a moved file',
    (root) => renameSync(join(root, 'lib/cli/cli.js'), join(root, 'lib/cli.js')),
    { missing: ['lib/cli/cli.js'] as never, added: ['lib/cli.js'] as never },
  ],
  [
    'a link to the same content',
    (root) => {
      renameSync(join(root, 'lib/cli/cli.js'), `${root}.js`)
      symlinkSync(`${root}.js`, join(root, 'lib/cli/cli.js'))
    },
    { changed: ['lib/cli/cli.js'] as never },
  ],
]
for (const [what, damage, found] of damages)
  test(`issue 50: version --verify names ${what}`, () => {
    const root = signedPackage(`damaged ${what}`)
    damage(root)
    const { key: _, files: _f, ...rest } = verifyInstalled(root)
    assert.deepEqual(rest, { ...none, ...found })
  })

test('issue 50: a different manifest, signature or key is rejected as not our release, with the next step', () => {
  const other = generateKeyPairSync('ed25519')
  const cases: [name: string, damage: (root: string) => void, text: RegExp, key?: string][] = [
    [
      'manifest',
      (root) => write(root, manifestName, `${readFileSync(join(root, manifestName))}\n`),
      /is not signed by the key \w+: do not use/,
    ],
    ['signature', (root) => writeFileSync(join(root, signatureName), Buffer.alloc(64)), /is not signed by the key/],
    ['short signature', (root) => writeFileSync(join(root, signatureName), 'x'), /is not signed by the key/],
    ['no signature', (root) => rmSync(join(root, signatureName)), /has no SHA256SUMS\.sig/],
    ['no manifest', (root) => rmSync(join(root, manifestName)), /has no SHA256SUMS\. Compare a checkout/],
    ['CRLF', (root) => recode(root, /\n/g, '\r\n'), /is not signed by the key/],
    ['appended line', (root) => recode(root, /$/, `${'a'.repeat(64)}  more\n`), /is not signed by the key/],
    [
      'unreadable manifest',
      (root) => {
        rmSync(join(root, manifestName))
        symlinkSync(manifestName, join(root, manifestName))
      },
      /has no SHA256SUMS/,
    ],
    ['no key', (root) => write(root, 'SECURITY.md', ''), /no public key: name a file that has it with --key/],
    [
      'wrong form',
      () => {},
      /not an Ed25519 key/,
      String(generateKeyPairSync('x25519').publicKey.export({ format: 'pem', type: 'spki' })),
    ],
    ['garbage', () => {}, /not an Ed25519 key/, '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----'],
    // Whoever replaces the files of a package replaces its key too: a key from elsewhere finds that.
    [
      'another key',
      () => {},
      /is not signed by the key/,
      String(other.publicKey.export({ format: 'pem', type: 'spki' })),
    ],
  ]
  for (const [name, damage, text, key] of cases) {
    const root = signedPackage(`refused ${name}`)
    damage(root)
    assert.throws(
      () => verifyInstalled(root, key),
      (error) => error instanceof NotVerifiable && text.test(error.message),
      name,
    )
  }
})

test('issue 50: version --verify makes no statement about files that its user cannot read, and names the cure', () => {
  const root = signedPackage('unreadable')
  chmodSync(join(root, 'lib'), 0)
  const isRoot = process.geteuid!() === 0
  if (isRoot) process.seteuid!(65_534)
  try {
    assert.throws(
      () => verifyInstalled(root),
      (error) => error instanceof NotVerifiable && /^Cannot read .* \(EACCES\): run this as a user/.test(error.message),
    )
  } finally {
    if (isRoot) process.seteuid!(0)
    chmodSync(join(root, 'lib'), 0o755)
  }
  assert.throws(
    () => readKeyFile(root),
    (error) => error instanceof NotVerifiable && /^Cannot read .* \(EISDIR\): name a file/.test(error.message),
  )
})

test('issue 50: sha256sum can read a manifest, and a line that leads out of the package is refused', () => {
  const root = signedPackage('sums')
  const { status, stderr } = spawnSync('sha256sum', ['--check', '--strict', '--quiet', manifestName], {
    cwd: root,
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  const sums = parseSums(readFileSync(join(root, manifestName), 'utf8'))
  assert.deepEqual([...sums.keys()], Object.keys(files).toSorted())
  assert.deepEqual(
    listFiles(root)
      .filter((path) => !sums.has(path))
      .toSorted(),
    [manifestName, signatureName],
  )
  const digest = 'a'.repeat(64)
  for (const path of ['/etc/passwd', '../x', 'a/../b', 'a//b', './a', 'a\\b'])
    assert.throws(() => parseSums(`${digest}  ${path}\n`), NotVerifiable, path)
  assert.throws(() => parseSums(`${digest}  a\n${digest}  a\n`), NotVerifiable)
  assert.throws(() => parseSums('nothing\n'), NotVerifiable)
})

test('issue 50: the command of a checkout prints the version, and reports that there is no manifest', () => {
  const run = (...args: string[]) => {
    const cli = join(import.meta.dirname, '../../src/cli/cli.ts')
    const { status, stdout, stderr } = spawnSync(process.execPath, [cli, 'version', ...args], { encoding: 'utf8' })
    return { status, stdout: stdout.trim(), stderr: stderr.trim() }
  }
  const { version } = JSON.parse(readFileSync(join(import.meta.dirname, '../../package.json'), 'utf8'))
  assert.deepEqual(run(), { status: 0, stdout: version, stderr: '' })
  const plain = run('--verify')
  assert.deepEqual([plain.status, plain.stdout], [2, ''])
  assert.match(plain.stderr, /^triwire: This is not a signed release: .* Compare a checkout with git status\.$/)
  assert.deepEqual(run('--key', 'x').status, 2)
  const lost = run('--verify', '--key', 'nowhere.pub')
  assert.deepEqual(lost, {
    status: 2,
    stdout: '',
    stderr: 'triwire: Cannot read nowhere.pub (ENOENT): name a file with the public key.',
  })
  const json = run('--verify', '--json')
  assert.equal(JSON.parse(json.stderr).ok, false)
})
