import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import test, { type TestContext } from 'node:test'
import { realPath } from '../../src/store/files/place.ts'
import { spoolPath } from '../../src/store/files/spool.ts'
import { StoreError } from '../../src/store/files/store-error.ts'
import { watchFiles } from '../../src/store/sqlite/file-watch.ts'
import { openStore } from '../support/operator.ts'
import { patienceMs } from '../support/waiting.ts'
import { createDebit, createDebitRow, createPath, freeDescriptor, open, until, verifyOptions } from './fixtures.ts'

/* One server for one file, and what becomes of it when its files are not its own any more (B8, B15, B23). */

test('B15 F-P16 a second server is refused by whatever name it knows the store: a link, a linked folder, a link to a missing file', async (t) => {
  const path = createPath(t)
  const link = createPath(t)
  symlinkSync(path, link)
  const linkedFolder = join(dirname(createPath(t)), 'linked')
  symlinkSync(dirname(path), linkedFolder)
  const first = await open(t, link)
  for (const name of [path, link, join(linkedFolder, 'triwire.db')]) {
    await assert.rejects(open(t, name), /Another triwire server is running on/)
    assert.equal(realPath(name), realPath(path))
  }
  assert.ok(existsSync(`${path}.lock`) && !existsSync(`${link}.lock`))
  await first.close()
  await open(t, path)
})

test('B15 a store with a second name in the file system is refused, with the cure', async (t) => {
  const path = createPath(t)
  openStore(path).close()
  const other = createPath(t)
  linkSync(path, other)
  for (const name of [path, other]) {
    await assert.rejects(
      open(t, name),
      (error) => error instanceof StoreError && /has 2 names \(hard links\)/.test(error.message),
    )
    assert.throws(() => openStore(name), /has 2 names/)
  }
  rmSync(other)
  await open(t, path)
})

test('B15 debits that an earlier release spooled beside a link are still posted', async (t) => {
  const [path, link] = [createPath(t), createPath(t)]
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  symlinkSync(path, link)
  await leaveInSpool(t, path, id, 'req_1')
  renameSync(spoolPath(path), spoolPath(link))
  const next = await open(t, link)
  assert.ok(store.findEntry('req_1'))
  await next.close()
  await leaveInSpool(t, path, id, 'req_2')
  copyFileSync(spoolPath(path), spoolPath(link))
  await assert.rejects(open(t, link), /has debits that are not in the ledger yet: append it to/)
})

const losses: Record<string, (path: string) => void> = {
  'the lock is removed': (path) => rmSync(`${path}.lock`),
  'the lock is removed and made again': (path) => {
    rmSync(`${path}.lock`)
    openSync(`${path}.lock`, 'w', 0o600)
  },
  'the log is removed': (path) => rmSync(`${path}-wal`),
  'the log is replaced': (path) => {
    copyFileSync(`${path}-wal`, `${path}-copy`)
    renameSync(`${path}-copy`, `${path}-wal`)
  },
  'the index of the log is removed': (path) => rmSync(`${path}-shm`),
  'the log is cut to nothing': (path) => truncateSync(`${path}-wal`, 0),
  'the log is cut inside its last page': (path) => truncateSync(`${path}-wal`, statSync(`${path}-wal`).size - 100),
  'the log is cut by a frame': (path) => truncateSync(`${path}-wal`, statSync(`${path}-wal`).size - 4_120),
}

for (const [how, damage] of Object.entries(losses)) {
  test(`B15 X11 ${how} under a running server: it takes nothing new and is lost, and debits go to the spool`, async (t) => {
    const path = createPath(t)
    const store = openStore(path)
    const { id } = store.createAccount('one')
    store.close()
    const { ledger, accounts, fatals } = await open(t, path)
    for (let i = 0; i < 5; i++) assert.equal(await ledger.debit(createDebit(`req_${i}`, accounts.get(id)!)), 'posted')
    damage(path)
    await until(() => fatals.length > 0)
    assert.match(
      fatals[0]!.message,
      /triwire\.db(-wal|-shm|\.lock) was (removed or replaced|cut or overwritten) while the server runs/,
    )
    assert.equal(ledger.whyBlocked() === undefined, false)
    assert.equal(await ledger.debit(createDebit('req_9', accounts.get(id)!)), 'spooled')
  })
}

// With and without a look between the debits before the cut.
for (const pollMs of [5, 400]) {
  test(`B15 X11 a log cut while debits are written after the cut is noticed though it grows again (checked every ${pollMs} ms)`, async (t) => {
    const path = createPath(t)
    const store = openStore(path)
    const { id } = store.createAccount('one')
    store.close()
    const { ledger, accounts, fatals } = await open(t, path, { pollMs })
    const account = accounts.get(id)!
    for (let i = 0; i < 20; i++) await ledger.debit(createDebit(`req_${i}`, account))
    truncateSync(`${path}-wal`, 4_152)
    const posting = ledger.debit(createDebit('req_20', account)).catch(() => {})
    await until(() => fatals.length > 0)
    await posting
    assert.match(fatals[0]!.message, /-wal was cut or overwritten/)
    // The hole was not brought into the file: it would be empty pages there.
    const left = createPath(t)
    copyFileSync(path, left)
    const after = openStore(left)
    t.after(() => after.close())
    assert.deepEqual([after.findDamage(), after.verify(verifyOptions)], [undefined, []])
  })
}

test('B15 debits written into a log that has lost its name are in the file before the server ends', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one')
  store.close()
  const { ledger, accounts, fatals } = await open(t, path)
  await ledger.debit(createDebit('req_0', accounts.get(id)!))
  rmSync(`${path}-wal`)
  await until(() => fatals.length > 0)
  // As a crash leaves it: the file alone.
  const left = createPath(t)
  copyFileSync(path, left)
  const after = openStore(left)
  t.after(() => after.close())
  assert.ok(after.findEntry('req_0'))
  assert.deepEqual(after.verify(verifyOptions), [])
})

test('B15 another process that merges the log and restarts it does not count as a loss', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  const { id } = store.createAccount('one')
  const { ledger, accounts, fatals, directory, balances } = await open(t, path, { pollMs: 1 })
  const other = new DatabaseSync(path)
  t.after(() => other.close())
  for (const mode of ['PASSIVE', 'FULL', 'RESTART', 'TRUNCATE', 'TRUNCATE']) {
    for (let i = 0; i < 5; i++) await ledger.debit(createDebit(`req_${mode}_${i}`, accounts.get(id)!)).catch(() => {})
    other.exec(`PRAGMA wal_checkpoint(${mode})`)
    // The server read the change after another check of the files.
    store.credit('one', 1n, `${mode} ${balances.get(id)!.balanceNanos}`)
    const wanted = store.findAccount('one').balanceNanos
    await until(() => balances.get(id)!.balanceNanos === wanted)
  }
  assert.deepEqual(fatals, [])
  assert.ok(directory)
})

test('B24 F-P11 a watch of files keeps one descriptor, however often the store is reopened', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one')
  const watch = watchFiles(path)
  watch.note()
  const before = freeDescriptor()
  for (let i = 0; i < 5; i++) watch.note()
  assert.equal(freeDescriptor(), before)
})

test('B8 data that may not be on the disk is written once more, without other writes; the ledger stays unchanged', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one', 5n)
  const before = readFileSync(`${path}-wal`)
  const longAgo = new Date(0)
  utimesSync(`${path}-wal`, longAgo, longAgo)
  store.makeDurable()
  assert.ok(statSync(`${path}-wal`).mtimeMs > 0)
  assert.deepEqual(readFileSync(`${path}-wal`), before)
  const other = new DatabaseSync(path, { timeout: 0 })
  t.after(() => other.close())
  other.exec('BEGIN IMMEDIATE')
  const blocked = openStore(path, { busyMs: 0 })
  t.after(() => blocked.close())
  assert.throws(() => blocked.makeDurable(), /locked/)
  other.exec('ROLLBACK')
  store.credit('one', 1n, 'later')
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B8 a log that cannot be written once more does not count as durable', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  t.after(() => store.close())
  store.createAccount('one', 5n)
  rmSync(`${path}-wal`)
  mkdirSync(`${path}-wal`)
  assert.throws(() => store.makeDurable(), /EISDIR/)
  rmSync(`${path}-wal`, { recursive: true })
})

test('B23 F-S6 a damaged page prevents the start, with the cure, and is a finding of verify', async (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one')
  store.close()
  const first = await open(t, path)
  const account = first.accounts.get(id)!
  await Promise.all(Array.from({ length: 200 }, (_, i) => first.ledger.debit(createDebit(`req_${i}`, account))))
  await first.close()
  const file = openSync(path, 'r+')
  const pages = statSync(path).size / 4_096
  for (let page = pages - 3; page < pages; page++) writeSync(file, Buffer.alloc(64, 0xff), 0, 64, page * 4_096)
  await assert.rejects(
    open(t, path),
    (error) => error instanceof StoreError && /is damaged \(.*\): restore a backup$/.test(error.message),
  )
  const damaged = openStore(path)
  t.after(() => damaged.close())
  const { findings, head } = damaged.audit(verifyOptions)
  assert.equal(head, undefined)
  assert.match(findings.at(-1)!, /^the file: database disk image is malformed: restore a backup$/)
})

test('B23 Y20 a store with a damaged page of spending opens for a command, and the page is a finding of verify', (t) => {
  const path = createPath(t)
  const store = openStore(path)
  const { id } = store.createAccount('one', 10n ** 9n, { budget: { nanos: 10n ** 9n, per: undefined } })
  store.postDebits([createDebitRow('req_1', id)])
  store.close()
  const db = new DatabaseSync(path)
  const { rootpage } = db.prepare("SELECT rootpage FROM sqlite_master WHERE name = 'spends'").get()!
  db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(64, 0xff), 0, 64, (Number(rootpage) - 1) * 4_096)
  const damaged = openStore(path)
  t.after(() => damaged.close())
  assert.match(damaged.audit(verifyOptions).findings.at(-1)!, /^the file: .*: restore a backup$/)
})

/** A run that dies with a debit in its spool. */
async function leaveInSpool(t: TestContext, path: string, accountId: string, requestId: string): Promise<void> {
  const { ledger, accounts, close } = await open(t, path, { settleDeadlineMs: 20, busyMs: 10 })
  const blocker = new DatabaseSync(path, { timeout: patienceMs })
  blocker.exec('BEGIN IMMEDIATE')
  assert.equal(await ledger.debit(createDebit(requestId, accounts.get(accountId)!)), 'spooled')
  const left = readFileSync(spoolPath(path))
  assert.ok(left.length > 0)
  await close()
  blocker.exec('ROLLBACK')
  blocker.close()
  assert.deepEqual(readFileSync(spoolPath(path)), left)
}
