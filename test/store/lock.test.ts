import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'
import { LockedError, lockStore } from '../../src/store/files/lock.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import { testFolder } from '../support/folder.ts'

test('F-P16 the lock is created with its folder, for its owner only, and another server is refused until it is released', () => {
  const path = join(testFolder('lock'), 'deep', 'triwire.db')
  const release = lockStore(path)
  assert.equal(statSync(`${path}.lock`).mode & 0o777, 0o600)
  assert.equal(statSync(join(path, '..')).mode & 0o777, 0o700)
  assert.throws(
    () => lockStore(path),
    (error) => error instanceof StoreError && error.message.includes(`Another triwire server is running on ${path}`),
  )
  release()
  lockStore(path)()
  // The store itself does not matter here.
  assert.equal(existsSync(path), false)
})

test('F-P16 a fault of the lock file itself is not reported as another server', () => {
  const path = join(testFolder('lock'), 'triwire.db')
  writeFileSync(`${path}.lock`, 'not a database '.repeat(100))
  assert.throws(
    () => lockStore(path),
    (error) => !(error instanceof StoreError) && /not a database/.test(String(error)),
  )
})

test('F-P16 a lock that cannot be opened is reported with its path and the cure', () => {
  const path = join(testFolder('lock'), 'triwire.db')
  mkdirSync(`${path}.lock`)
  assert.throws(
    () => lockStore(path),
    (error) =>
      error instanceof StoreError && error.message.startsWith(`${path}.lock cannot be opened: check its folder`),
  )
})

test('F-P16 a lock that root creates belongs to the owner of the store', (t) => {
  if (process.geteuid?.() !== 0) return t.skip('root is who may give files away')
  const path = join(testFolder('lock'), 'triwire.db')
  writeFileSync(path, '')
  chownSync(path, 12_345, 12_346)
  lockStore(path)()
  const { uid, gid } = statSync(`${path}.lock`)
  assert.deepEqual([uid, gid], [12_345, 12_346])
})

test('F-P16 B15 a second server that is refused in the same process does not take the lock from the first', () => {
  const path = join(testFolder('lock'), 'triwire.db')
  const release = lockStore(path)
  assert.throws(() => lockStore(path), LockedError)
  const lock = pathToFileURL(join(import.meta.dirname, '../../src/store/files/lock.ts')).href
  const program = 'const [, lock, path] = process.argv; (await import(lock)).lockStore(path)'
  const args = ['--no-warnings', '--input-type=module', '-e', program, lock, path]
  const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  assert.match(stderr, /LockedError: Another triwire server/)
  release()
})

/** Takes the lock, of a store or of a server's folder, and says with which kind of error it could not. */
const program = `const [, how, path] = process.argv
const { lockStore } = await import(how + 'files/lock.ts')
const { openPostgresStore } = await import(how + 'postgres/open.ts')
for (const take of [() => lockStore(path), () => openPostgresStore({ stateDir: path })])
  try {
    await take()
  } catch (error) {
    console.log(error.constructor.name, error.message)
  }`

test('F-S6 a disk without space for the lock is reported with its cure, and not as another server', (t) => {
  const path = join(testFolder('lock'), 'replica')
  const stores = pathToFileURL(join(import.meta.dirname, '../../src/store/')).href
  const command = ['--fsize=0', process.execPath, '--no-warnings', '--input-type=module', '-e', program, stores, path]
  const { stdout, error } = spawnSync('prlimit', command, { encoding: 'utf8' })
  if (error) return t.skip('prlimit is not installed')
  const told = (lock: string) =>
    `StoreError ${lock}.lock cannot be read or written: check the disk, and that it has space\n`
  assert.equal(stdout, told(path) + told(join(path, 'replica')))
})
