import assert from 'node:assert/strict'
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import test from 'node:test'
import { readSealKey } from '../../src/host/seal-key.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import { testFolder } from '../support/folder.ts'
import { configFile, model, newFolder, serve } from '../support/serve.ts'
import { fileAt } from '../support/store-place.ts'

const newPath = () => join(testFolder('seal'), 'triwire.db')

test('B23 T7 the key of the envelopes is created once, complete, for its owner only, and never changes', () => {
  const path = newPath()
  const key = readSealKey(undefined, fileAt(path))
  assert.deepEqual(readdirSync(dirname(path)), ['triwire.db.seal'])
  assert.equal(statSync(`${path}.seal`).mode & 0o777, 0o600)
  assert.equal(Buffer.from(readFileSync(`${path}.seal`, 'utf8'), 'base64').length, 32)
  // A file that a power loss left half written under the other name does not matter.
  writeFileSync(`${path}.seal.new`, 'half')
  assert.deepEqual(readSealKey(undefined, fileAt(path)), key)
  const other = newPath()
  writeFileSync(`${other}.seal.new`, 'half')
  assert.notDeepEqual(readSealKey(undefined, fileAt(other)), key)
})

test('B23 BRK-12 an empty, cut or guessable key is refused with the cure, and so is one that others can read', () => {
  for (const [text, bytes] of [
    ['', 0],
    ['\n', 0],
    ['c2hvcnQ=', 5],
  ] as const) {
    const path = newPath()
    writeFileSync(`${path}.seal`, text, { mode: 0o600 })
    assert.throws(
      () => readSealKey(undefined, fileAt(path)),
      (error) =>
        error instanceof StoreError &&
        error.message.startsWith(
          `${path}.seal has ${bytes} of the 32 bytes of a key: restore it from a backup, or remove it`,
        ),
    )
  }
  for (const guessed of [Buffer.alloc(32), Buffer.alloc(32, ' '), Buffer.alloc(48, 'secret')]) {
    const path = newPath()
    writeFileSync(`${path}.seal`, guessed.toString('base64'), { mode: 0o600 })
    assert.throws(
      () => readSealKey(undefined, fileAt(path)),
      (error) => error instanceof StoreError && /has a key that can be guessed.*: restore it/.test(error.message),
    )
  }
  const path = newPath()
  readSealKey(undefined, fileAt(path))
  for (const mode of [0o644, 0o640]) {
    chmodSync(`${path}.seal`, mode)
    assert.throws(
      () => readSealKey(undefined, fileAt(path)),
      new StoreError(`${path}.seal can be read by other users (mode 0${mode.toString(8)}): run chmod 600 ${path}.seal`),
    )
  }
})

test('B15 the key is beside the store, whatever name the server uses for it; a key beside the link stays in use', () => {
  const [path, link] = [newPath(), newPath()]
  symlinkSync(path, link)
  const key = readSealKey(undefined, fileAt(link))
  assert.ok(existsSync(`${path}.seal`) && !existsSync(`${link}.seal`))
  assert.deepEqual(readSealKey(undefined, fileAt(path)), key)
  renameSync(`${path}.seal`, `${link}.seal`)
  assert.deepEqual(readSealKey(undefined, fileAt(link)), key)
})

test('B23 the server does not start with such a key, and reports why', async () => {
  const folder = newFolder()
  writeFileSync(join(folder, 'triwire.db.seal'), '', { mode: 0o600 })
  const running = serve(['--config', configFile(folder, model('mine'))], folder)
  assert.equal(await running.exited, 1)
  assert.match(running.stderr(), /^.*triwire\.db\.seal has 0 of the 32 bytes of a key: restore it/m)
  assert.doesNotMatch(running.stderr(), /\n\s+at /)
})
