import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { builtInPresets } from '../../src/catalog/presets.ts'
import { describePlan, planSettings, writePlans } from '../../src/cli/setup/write-settings.ts'
import { writeWhole } from '../../src/host/whole-file.ts'
import type { SettingsFile } from '../../src/programs/program.ts'
import { testFolder } from '../support/folder.ts'
import { runWarm } from './run.ts'

/* BRK-11: a file of somebody's own is read if it is a file, and written whole or not at all. */

const settings = (path: string): SettingsFile => ({ path, format: 'json', text: '{\n  "model": "big"\n}\n' })
const place = () => join(testFolder('settings'), 'settings.json')

const unreadable: [what: string, make: (path: string) => void, why: RegExp][] = [
  ['a pipe', (path) => execFileSync('mkfifo', [path]), /it is no file/],
  ['a folder', (path) => mkdirSync(path), /it is no file/],
  ['a link to a device', (path) => symlinkSync('/dev/zero', path), /it is no file/],
  ['in another encoding', (path) => writeFileSync(path, Buffer.from('{"a":"\xe9"}', 'latin1')), /it is not UTF-8/],
  ['links in a circle', (path) => symlinkSync(path, path), /ELOOP/],
  [
    'nested beyond all measure',
    (path) => writeFileSync(path, `${'['.repeat(100_000)}${']'.repeat(100_000)}`),
    /it has too many levels/,
  ],
  ['larger than a settings file is', (path) => writeFileSync(path, '// a\n'.repeat(210_000)), /more than 1048576/],
]

for (const [what, make, why] of unreadable)
  test(`BRK-11 settings that are ${what} are left unchanged, and the reason is printed`, () => {
    const path = place()
    make(path)
    assert.throws(
      () => planSettings([settings(path)], {}),
      (error: Error) => why.test(error.message) && error.message.startsWith(`${path} was left as it is: `),
    )
  })

/* The time of an edit grows with the file and not with the number of settings, so the largest file takes few seconds. */
const added = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`setting${i}`, { a: i, b: { c: i } }]))
const commented: [format: 'json' | 'toml', name: string, before: (comments: string) => string][] = [
  ['json', 'at the head', (comments) => `${comments}{\n  "theirs": 1\n}\n`],
  ['json', 'at the end', (comments) => `{\n  "theirs": 1\n${comments}}\n`],
  ['json', 'and nothing else', (comments) => comments],
  ['toml', 'at the head', (comments) => `${comments}theirs = 1\n`],
  ['toml', 'before a table', (comments) => `${comments}\n[theirs]\nx = 1\n`],
  ['toml', 'at the end', (comments) => `theirs = 1\n${comments}`],
  ['toml', 'and nothing else', (comments) => comments],
]
for (const [format, name, before] of commented) {
  const count = format === 'json' ? 200_000 : 50_000
  test(`BRK-11 a ${format} file with ${count} lines of comments ${name} gets our settings, and the change is short`, () => {
    const path = place()
    const comments = `${format === 'json' ? '//' : '#'} a\n`.repeat(count)
    writeFileSync(path, before(comments))
    const text = format === 'json' ? `${JSON.stringify({ ours: added }, undefined, 2)}\n` : '[ours]\nx = 1\ny = 2\n'
    const [plan] = planSettings([{ path, format, text }], {})
    assert.equal(plan!.after.replaceAll(comments, '').includes('ours'), true)
    assert.equal(plan!.after.split('\n').length - 1 > comments.split('\n').length - 1, true)
    // The whole file has many more lines.
    assert.ok(describePlan(plan!).split('\n').length < 1_000)
  })
}

test('BRK-11 a json file with 200,000 comments or values in one line gets our settings within seconds', {
  timeout: 60_000,
}, () => {
  for (const before of [`{${'/**/'.repeat(200_000)}"theirs":1}`, `{"theirs":[${'1,'.repeat(400_000)}1]}`]) {
    const path = place()
    writeFileSync(path, before)
    const [plan] = planSettings([{ path, format: 'json', text: JSON.stringify({ ours: added }) }], {})
    // The line stays as it is, and the new value follows in it.
    const after = before.replace(/}$/, `,"ours": ${JSON.stringify(added)}}`)
    assert.ok(plan!.after === after, `${plan!.after.length} characters, ${plan!.after.slice(-90)}`)
  }
})

test('BRK-11 a written file keeps its mode, its link and its backup, and no other file is left', () => {
  const path = place()
  const [own, real] = [testFolder('dotfiles'), 'own.json']
  writeFileSync(join(own, real), '{"theirs":1}', { mode: 0o640 })
  chmodSync(join(own, real), 0o640)
  symlinkSync(join(own, real), path)
  writePlans(planSettings([settings(path)], {}))
  assert.ok(lstatSync(path).isSymbolicLink())
  assert.deepEqual(JSON.parse(readFileSync(join(own, real), 'utf8')), { theirs: 1, model: 'big' })
  assert.equal(statSync(join(own, real)).mode & 0o777, 0o640)
  assert.deepEqual(readdirSync(own), [real])
  assert.deepEqual(readdirSync(dirname(path)), ['settings.json', 'settings.json.before-triwire'])
})

test('BRK-11 a link to a file that does not exist yet stays a link, and neighbouring files stay', () => {
  const path = place()
  writeFileSync(`${path}.new`, 'theirs')
  symlinkSync('between.json', path)
  symlinkSync(join(testFolder('dotfiles'), 'own.json'), join(dirname(path), 'between.json'))
  writeWhole(path, 'new')
  assert.equal(readFileSync(path, 'utf8'), 'new')
  assert.deepEqual(readdirSync(dirname(path)), ['between.json', 'settings.json', 'settings.json.new'])
  assert.ok(lstatSync(path).isSymbolicLink() && lstatSync(join(dirname(path), 'between.json')).isSymbolicLink())
})

test('BRK-11 a file that root writes keeps its owner and group, so that the service can read it', {
  skip: process.getuid?.() !== 0 && 'only root may give files away',
}, () => {
  const path = place()
  writeFileSync(path, 'old')
  chmodSync(path, 0o640)
  chownSync(path, 1234, 2345)
  writeWhole(path, 'new')
  const { uid, gid, mode } = statSync(path)
  assert.deepEqual([readFileSync(path, 'utf8'), uid, gid, mode & 0o777], ['new', 1234, 2345, 0o640])
})

test('BRK-11 a file that the disk cannot take keeps the old text, and no other file is left', () => {
  const path = place()
  writeWhole(path, 'old')
  const program = `
    import { writeWhole } from ${JSON.stringify(new URL('../../src/host/whole-file.ts', import.meta.url).href)}
    import fs from 'node:fs'
    import { syncBuiltinESMExports } from 'node:module'
    fs[process.argv[1]] = () => { throw new Error('no room') }
    syncBuiltinESMExports()
    try { writeWhole(${JSON.stringify(path)}, 'new') } catch { process.exit(7) }`
  for (const moment of ['writeFileSync', 'fsyncSync', 'chmodSync', 'renameSync']) {
    assert.throws(() => execFileSync(process.execPath, ['--input-type=module', '-e', program, moment]), { status: 7 })
    assert.equal(readFileSync(path, 'utf8'), 'old', moment)
    assert.deepEqual(readdirSync(dirname(path)), ['settings.json'], moment)
  }
})

test('BRK-11 a configuration that is a pipe, or in another encoding, is left unchanged', async () => {
  for (const [make, why] of [
    [(path: string) => execFileSync('mkfifo', [path]), /it is no file/],
    [(path: string) => writeFileSync(path, Buffer.from('# caf\xe9\n', 'latin1')), /it is not UTF-8/],
  ] as const) {
    const cwd = testFolder('cli')
    make(join(cwd, 'triwire.yaml'))
    const { code, stderr } = await runWarm(['catalog', 'add', 'deepseek', '--yes'], { cwd })
    assert.equal(code, 1)
    assert.match(stderr, why)
  }
})

test('BRK-11 a data file of presets may come from a pipe, which is read once', async () => {
  const cwd = testFolder('cli')
  execFileSync('mkfifo', [join(cwd, 'pipe')])
  const done = runWarm(['catalog', 'update', '--from', 'pipe', '--yes'], { cwd })
  await writeFile(join(cwd, 'pipe'), JSON.stringify(builtInPresets))
  assert.equal((await done).code, 0)
  assert.deepEqual(JSON.parse(readFileSync(join(cwd, 'triwire.presets.json'), 'utf8')), builtInPresets)
})

test('BRK-11 a new file is readable by its owner only, and one in a read-only folder stays unchanged', {
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
