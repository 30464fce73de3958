import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { appendFileSync, existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cache, must, newFolder, root, run } from './install/tools.ts'

// node bin/node.mjs scripts/release-trial.ts
//
// Makes the release of the current commit twice, as a dry run: in two folders with different umasks, on two days that
// are years apart. Both must have the same package, image, lists of parts and signatures. The lists are validated by
// their public schemas. Then tries states that a release must refuse. Needs Debian's faketime, and Python with venv.

const key = generateKeyPairSync('ed25519')
const keyFile = join(newFolder('key'), 'release.pem')
writeFileSync(keyFile, key.privateKey.export({ format: 'pem', type: 'pkcs8' }), { mode: 0o600 })
const pem = String(key.publicKey.export({ format: 'pem', type: 'spki' }))

const one = checkout('one')
const other = checkout('two folders further/other')
// The first run fills the caches of npm and of Debian's packages, because certificates are not valid on the other day.
const first = release(one, [], 'umask 022')
const second = release(other, ['faketime', '--exclude-monotonic', '-f', '+1700d'], 'umask 077')
for (const file of ['SHA256SUMS', 'image.digest', 'notes.md'])
  assert.equal(readFileSync(join(second, file), 'utf8'), readFileSync(join(first, file), 'utf8'), file)
assert.deepEqual(readFileSync(join(second, 'SHA256SUMS.sig')), readFileSync(join(first, 'SHA256SUMS.sig')))
must(['sha256sum', '--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: first })
writeFileSync(join(first, '../release.pub'), pem)
const files = ['-in', 'SHA256SUMS', '-sigfile', 'SHA256SUMS.sig']
must(['openssl', 'pkeyutl', '-verify', '-pubin', '-inkey', '../release.pub', '-rawin', ...files], { cwd: first })
console.log('ok: both runs made the same, and openssl and sha256sum verify it')
console.log(
  readFileSync(join(first, 'SHA256SUMS'), 'utf8')
    .split('\n')
    .filter((line) => !line.includes('oci/blobs'))
    .join('\n'),
)

const python = newFolder('python')
must(['python3', '-m', 'venv', python])
must([join(python, 'bin/pip'), 'install', '--quiet', 'cyclonedx-python-lib[validation]==11.12.0', 'spdx-tools==0.8.5'])
const validate = join(root, 'scripts/release/validate_sboms.py')
console.log(must([join(python, 'bin/python'), validate, 'image.sbom', 'package.sbom'], { cwd: first }))

appendFileSync(join(other, 'README.md'), 'a change\n')
const dirty = run(['node', 'bin/node.mjs', 'scripts/release.ts', '--dry-run', '--key', keyFile], { cwd: other })
assert.deepEqual([dirty.status, dirty.text.includes('The work tree has changes')], [1, true], dirty.text)
console.log('ok: a work tree with changes is refused')

/** Makes a clone of the current commit, with a contact and the public key, and the packages of this checkout. */
function checkout(name: string): string {
  const folder = join(newFolder(name), 'triwire')
  must(['git', 'clone', '--quiet', '--no-hardlinks', root, folder])
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  appendFileSync(join(folder, '.git/info/exclude'), 'node_modules\n')
  const security = readFileSync(join(folder, 'SECURITY.md'), 'utf8')
  const named = security.replace(/^- Contact:.*$/m, '- Contact: security@triwire.example')
  writeFileSync(join(folder, 'SECURITY.md'), `${named}\n${pem}`)
  const author = ['-c', 'user.name=trial', '-c', 'user.email=trial@triwire.example']
  // The notes name the commit. With one date for both checkouts, both make the same commit.
  const date = '2026-01-01T00:00:00Z'
  const commit = ['commit', '--quiet', '--all', '--message', 'Name a contact and a key', '--date', date]
  must(['env', `GIT_COMMITTER_DATE=${date}`, 'git', ...author, ...commit], { cwd: folder })
  return folder
}

function release(folder: string, before: readonly string[], umask: string): string {
  const out = join(folder, '.release')
  const command = [...before, process.execPath, 'scripts/release.ts', '--dry-run', '--key', keyFile].map(
    (word) => `'${word}'`,
  )
  const env = { ...process.env, TRIWIRE_INSTALL_DIR: cache, npm_config_prefer_offline: 'true' }
  const said = must(['sh', '-c', `${umask}; ${command.join(' ')}`], { cwd: folder, env, seconds: 900 })
  console.log(said.replace(/^/gm, '  '))
  assert.ok(existsSync(join(out, 'oci/index.json')))
  return out
}
