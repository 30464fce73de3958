import assert from 'node:assert/strict'
import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import type { CopyEnd } from '../../src/store/copy/end.ts'
import { openSource, openTarget } from '../../src/store/copy/open-end.ts'
import { lockStore } from '../../src/store/files/lock.ts'
import { makeFolder, refuseNarrowDisk, refuseNoRoom } from '../../src/store/files/place.ts'
import { DamageError, explainErrors, resultCode, StoreError } from '../../src/store/files/store-error.ts'
import { openBooks } from '../../src/store/open-books.ts'
import { openDatabase, transact } from '../../src/store/sqlite/open.ts'
import { testFolder } from '../support/folder.ts'
import { verifyOptions } from './fixtures.ts'

const newPath = () => join(testFolder('cures'), 'deep', 'triwire.db')

test('F-S7 the folder of a new store is created, for its owner only', () => {
  const path = newPath()
  openDatabase(path).close()
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
})

test('a store is refused, and not touched, if others can read the files beside it', () => {
  for (const beside of ['-wal', '-shm']) {
    const path = newPath()
    openDatabase(path).close()
    writeFileSync(path + beside, '')
    chmodSync(path + beside, 0o604)
    assert.throws(
      () => openDatabase(path),
      new StoreError(`${path}${beside} can be read by other users (mode 0604): run chmod 600 ${path}${beside}`),
    )
  }
})

test('F-S6 each failure that an operator can fix is reported with the file and the cure, and keeps its cause', () => {
  const cures = {
    5: 'is locked by another process: try again when it is done',
    8: 'cannot be written: check its owner and its file system',
    10: 'cannot be read or written: check the disk, and that it has space',
    11: 'is damaged: restore a backup',
    13: 'cannot grow: the disk is full',
    14: 'cannot be opened: check its folder, its owner, and that its file system can be written',
    26: 'is not a triwire store, or is damaged: name another file with --store, or restore a backup',
  }
  for (const [code, cure] of Object.entries(cures)) {
    // The upper bits of a code tell more than anybody asked.
    const failure = Object.assign(new Error('from SQLite'), { errcode: Number(code) | 0x300 })
    assert.throws(
      () => explainErrors('/a/store.db', () => fail(failure)),
      (error) => error instanceof StoreError && error.message === `/a/store.db ${cure}` && error.cause === failure,
    )
  }
  const synced = Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO' })
  assert.throws(() => explainErrors('/a/store.db', () => fail(synced)), new StoreError(`/a/store.db ${cures[10]}`))
  const other = Object.assign(new Error('from SQLite'), { errcode: 1 })
  assert.throws(() => explainErrors('/a/store.db', () => fail(other)), other)
  assert.equal(
    explainErrors('/a/store.db', () => 7),
    7,
  )
})

test('C13 a disk without space for debits counts as full, even if one page may still fit', () => {
  const space = (bavail: number, blocks = 1_000) => refuseNarrowDisk('/a', () => ({ bavail, blocks, bsize: 4_096 }))
  space(64)
  space(0, 0)
  assert.throws(
    () => space(63),
    (error) => resultCode(error) === 13 && /258048 bytes are left/.test(String(error)),
  )
})

test('an error that is not a failure of SQLite has no code', () => {
  assert.equal(resultCode(new Error('x')), 0)
  assert.equal(resultCode(undefined), 0)
})

test('F-S7 a file that cannot be migrated is closed again', () => {
  const path = newPath()
  openDatabase(path).close()
  const before = new DatabaseSync(path)
  before.exec('PRAGMA user_version = 99')
  before.close()
  assert.throws(() => openDatabase(path), /schema version 99/)
  // With a connection left open the log would still lie beside the file.
  assert.equal(statSync(`${path}-wal`, { throwIfNoEntry: false }), undefined)
})

test('a failure that has ended its transaction is reported, instead of the failed rollback', () => {
  const db = new DatabaseSync(':memory:')
  const failure = new Error('the first one')
  const work = () => {
    db.exec('ROLLBACK')
    throw failure
  }
  assert.throws(() => transact(db, work), failure)
  db.close()
})

function fail(error: Error): never {
  throw error
}

test('a store that this user may not access is not reported as missing', () => {
  const path = newPath()
  openDatabase(path).close()
  chmodSync(dirname(path), 0)
  const refusal = new StoreError(`${path} cannot be read by this user: run the command as the user who owns the store`)
  asNobody(() => {
    for (const create of [false, true]) assert.throws(() => openDatabase(path, { create }), refusal)
    assert.throws(() => lockStore(path), refusal)
  })
  chmodSync(dirname(path), 0o700)
})

test('a store that cannot be created is reported with the cure', () => {
  const file = join(testFolder('cures'), 'file')
  writeFileSync(file, '')
  const path = join(file, 'triwire.db')
  assert.throws(() => openDatabase(path), new StoreError(`${file} is a file; choose another place with --store`))
})

test('X13 a folder that cannot be created is reported with its key and the cause, at a start and by check', () => {
  const file = join(testFolder('cures'), 'file')
  writeFileSync(file, '')
  const cure = `${file} is a file; choose another place with state_dir`
  for (const [path, words] of [
    [join(file, 'a', 'b'), `${join(file, 'a', 'b')} cannot be created: ${cure}`],
    [file, cure],
  ] as const)
    for (const act of [makeFolder, refuseNoRoom]) assert.throws(() => act(path, 'state_dir'), new StoreError(words))
})

/** Who may do anything looks with other eyes. */
function asNobody(work: () => void): void {
  const isRoot = process.geteuid!() === 0
  if (isRoot) process.seteuid!(65_534)
  try {
    work()
  } finally {
    if (isRoot) process.seteuid!(0)
  }
}

test('F-S6 a command that meets a locked store names the file and the cure, at whatever it does', async () => {
  const path = newPath()
  const { books, close } = await openBooks({ engine: 'sqlite', path, shown: path }, { busyMs: 1 })
  const other = new DatabaseSync(path)
  try {
    other.exec('BEGIN EXCLUSIVE')
    const locked = new StoreError(`${path} is locked by another process: try again when it is done`)
    await assert.rejects(books.createAccount('a', 0n), locked)
    await assert.rejects(books.audit(verifyOptions), locked)
    other.exec('COMMIT')
    await books.createAccount('a', 0n)
  } finally {
    other.close()
    await close()
  }
})

test('F-S6 a copy that meets a damaged file names it and the cure, at every step of either end', async () => {
  for (const open of [openSource, openTarget]) {
    const path = newPath()
    const place = { engine: 'sqlite', path, shown: path } as const
    const { books, close } = await openBooks(place)
    await books.createAccount('a', 0n)
    await close()
    const end: CopyEnd = await open(place)
    try {
      const bytes = readFileSync(path)
      writeFileSync(path, bytes.fill(0xaa, 4096))
      await assert.rejects(end.count(), new DamageError(`${path} is damaged: restore a backup`))
    } finally {
      await end.close()
    }
  }
})
