import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { planSettings, writePlans } from '../../src/cli/setup/write-settings.ts'
import { writeWhole } from '../../src/host/whole-file.ts'
import type { SettingsFile } from '../../src/programs/program.ts'
import { testFolder } from '../support/folder.ts'

/* BRK-11: a file of somebody's own is read if it is a file, and written whole or not at all. */

const settings = (path: string): SettingsFile => ({ path, format: 'json', text: '{\n  "model": "big"\n}\n' })
const place = () => join(testFolder('settings'), 'settings.json')

const unreadable: [what: string, make: (path: string) => void, why: RegExp][] = [
  ['a pipe', (path) => execFileSync('mkfifo', [path]), /it is no file/],
  ['a folder', (path) => mkdirSync(path), /it is no file/],
  ['a link to a device', (path) => symlinkSync('/dev/zero', path), /it is no file/],
  [
    'nested beyond all measure',
    (path) => writeFileSync(path, `${'['.repeat(100_000)}${']'.repeat(100_000)}`),
    /it has too many levels/,
  ],
]

for (const [what, make, why] of unreadable)
  test(`BRK-11 settings that are ${what} are left as they are, and it says why`, () => {
    const path = place()
    make(path)
    assert.throws(
      () => planSettings([settings(path)], {}),
      (error: Error) => why.test(error.message) && error.message.startsWith(`${path} was left as it is: `),
    )
  })

test('BRK-11 a file that is written keeps its mode, its link and its backup, and leaves nothing else', async () => {
  const path = place()
  const [own, real] = [testFolder('dotfiles'), 'own.json']
  writeFileSync(join(own, real), '{"theirs":1}', { mode: 0o640 })
  chmodSync(join(own, real), 0o640)
  symlinkSync(join(own, real), path)
  await writePlans(planSettings([settings(path)], {}), true, undefined as never)
  assert.ok(lstatSync(path).isSymbolicLink())
  assert.deepEqual(JSON.parse(readFileSync(join(own, real), 'utf8')), { theirs: 1, model: 'big' })
  assert.equal(statSync(join(own, real)).mode & 0o777, 0o640)
  assert.deepEqual(readdirSync(own), [real])
  assert.deepEqual(readdirSync(dirname(path)), ['settings.json', 'settings.json.before-triwire'])
})

test('BRK-11 a new file is its owner’s alone, and one whose folder takes no file stays as it was', {
  skip: process.getuid?.() === 0 && 'root may write everywhere',
}, () => {
  const path = place()
  writeWhole(path, 'new')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  chmodSync(dirname(path), 0o500)
  assert.throws(() => writeWhole(path, 'newer'), /EACCES/)
  assert.equal(readFileSync(path, 'utf8'), 'new')
})

test('BRK-11 a crash at any moment leaves the old text or the new one', () => {
  const path = place()
  writeWhole(path, 'old')
  assert.equal(statSync(path).mode & 0o777, 0o600)
  const program = `
    import { writeWhole } from ${JSON.stringify(new URL('../../src/host/whole-file.ts', import.meta.url).href)}
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    fs[process.argv[1]] = () => process.exit(7)
    syncBuiltinESMExports()
    writeWhole(${JSON.stringify(path)}, 'new '.repeat(100_000))`
  for (const moment of ['openSync', 'writeFileSync', 'fsyncSync', 'closeSync', 'chmodSync', 'renameSync']) {
    assert.throws(() => execFileSync(process.execPath, ['--input-type=module', '-e', program, moment]), { status: 7 })
    assert.equal(readFileSync(path, 'utf8'), 'old', moment)
  }
  writeWhole(path, 'newest')
  assert.equal(readFileSync(path, 'utf8'), 'newest')
})
