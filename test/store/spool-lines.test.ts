import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { createSpool, readSpool, retireSpool } from '../../src/store/files/spool.ts'
import { testFolder } from '../support/folder.ts'
import { createDebitRow } from './fixtures.ts'

/** All its fields are said, so that what is read is what was written. */
const debitRow = (requestId: string, accountId: string) => ({ ...createDebitRow(requestId, accountId), keyId: 'key_1' })

const newPath = () => join(testFolder('spool'), 'triwire.db.spool')
const one = debitRow('req_1', 'acct_1')
const two = debitRow('req_2', 'acct_1')

test('F-S2 a debit after a line that a crash tore is still read', async () => {
  const path = newPath()
  writeFileSync(path, '{"requestId":"req_0","usa')
  const spool = createSpool(path)
  await spool.append([one, two])
  await spool.close()
  assert.deepEqual(readSpool(path), { debits: [one, two], returns: [], unreadable: 1 })
})

test('F-S2 a spool that was never used is not emptied: its content is from an earlier run', async () => {
  const path = newPath()
  writeFileSync(path, 'of another run\n')
  const spool = createSpool(path)
  await spool.clear(() => true)
  await spool.close()
  assert.equal(readFileSync(path, 'utf8'), 'of another run\n')
})

test('F-S2 a spool is emptied when its debits are posted, unless more debits have come', async () => {
  const path = newPath()
  const spool = createSpool(path)
  await spool.append([one])
  await spool.clear(() => false)
  assert.deepEqual(readSpool(path).debits, [one])
  await spool.clear(() => true)
  assert.equal(readFileSync(path, 'utf8'), '')
  // Once empty it is left alone, until it is used again.
  appendFileSync(path, 'of another process\n')
  await spool.clear(() => true)
  assert.equal(readFileSync(path, 'utf8'), 'of another process\n')
  await spool.append([two])
  await spool.clear(() => true)
  assert.equal(readFileSync(path, 'utf8'), '')
  await spool.close()
})

test('F-S2 a failed append is reported, and does not spoil the next one', async () => {
  const path = newPath()
  mkdirSync(path)
  const spool = createSpool(path)
  await assert.rejects(spool.append([one]), /EISDIR/)
  rmdirSync(path)
  await spool.append([two])
  await spool.close()
  assert.deepEqual(readSpool(path).debits, [two])
})

test('F-S2 appends are written one after the other', async () => {
  const path = newPath()
  const spool = createSpool(path)
  const rows = Array.from({ length: 50 }, (_, i) => debitRow(`req_${i}`, 'acct_1'))
  await Promise.all(rows.map((row) => spool.append([row])))
  await spool.close()
  assert.deepEqual(readSpool(path).debits, rows)
})

test('F-S2 a line that is not a debit is counted as unreadable, each by itself', () => {
  const path = newPath()
  const rest = '"amountNanos":"1","prices":{}'
  writeFileSync(path, `\n{${rest},"usage":{}}\n{${rest},"requestId":7,"usage":{}}\n{${rest},"requestId":"req_1"}\n7\n`)
  assert.deepEqual(readSpool(path), { debits: [], returns: [], unreadable: 4 })
  assert.deepEqual(readSpool(newPath()), { debits: [], returns: [], unreadable: 0 })
})

test('F-S2 a fully read spool is removed, and an absent one is fine; any other is renamed, and the new name reported', () => {
  const path = newPath()
  assert.equal(retireSpool(path, true), undefined)
  writeFileSync(path, 'x')
  const aside = retireSpool(path, false)!
  assert.match(aside, /\.spool\.\d+\.bad$/)
  assert.deepEqual([existsSync(path), readFileSync(aside, 'utf8')], [false, 'x'])
  writeFileSync(path, 'x')
  assert.equal(retireSpool(path, true), undefined)
  assert.equal(existsSync(path), false)
})

/** Makes calls of open files fail, as a broken disk does, until `mend` is called. */
async function breakDisk(t: TestContext, ...names: ('sync' | 'datasync' | 'truncate')[]): Promise<{ mend(): void }> {
  const file = await open(import.meta.filename)
  const anyFile = Object.getPrototypeOf(file) as FileHandle
  await file.close()
  const mocks = names.map((name) =>
    t.mock.method(anyFile, name, async () => {
      throw new Error(`EIO: ${name}`)
    }),
  )
  return { mend: () => mocks.forEach(({ mock }) => void mock.restore()) }
}

test('B7 C13 F-S4 bytes that a failed sync may have left are truncated before the failure is reported, back to the last acknowledged', async (t) => {
  for (const before of ['', 'torn by a crash']) {
    const path = newPath()
    writeFileSync(path, before)
    const spool = createSpool(path)
    await spool.append([one])
    const acknowledged = readFileSync(path, 'utf8')
    const disk = await breakDisk(t, 'datasync')
    await assert.rejects(spool.append([two]), /EIO: datasync/)
    assert.equal(readFileSync(path, 'utf8'), acknowledged)
    disk.mend()
    await spool.append([two])
    await spool.close()
    assert.deepEqual(readSpool(path).debits, [one, two])
  }
})

test('B7 C13 if even truncating fails, it is done before the next line, and when the spool is emptied', async (t) => {
  for (const isEmptied of [false, true]) {
    const path = newPath()
    const spool = createSpool(path)
    const disk = await breakDisk(t, 'datasync', 'truncate')
    await assert.rejects(spool.append([one]), /EIO: datasync/)
    assert.match(readFileSync(path, 'utf8'), /req_1/)
    await assert.rejects(spool.append([one]), /EIO: truncate/)
    disk.mend()
    if (isEmptied) await spool.clear(() => true)
    await spool.append([two])
    await spool.close()
    assert.deepEqual(readSpool(path), { debits: [two], returns: [], unreadable: 0 })
  }
})

test('B7 C13 F-S3 a note that cannot be synced is reported as failed, but stays, since a kill loses no unsynced byte', async (t) => {
  for (const broken of [['datasync'], ['sync'], ['datasync', 'sync', 'truncate']] as const) {
    const path = newPath()
    const spool = createSpool(path)
    const disk = await breakDisk(t, ...broken)
    await assert.rejects(spool.append([one]), /EIO/)
    // Again and again, while the disk is broken; the file does not grow by it where it can be cut.
    for (let i = 0; i < 3; i++) await assert.rejects(spool.appendReturns(['req_1']), /EIO/)
    const { debits, returns } = readSpool(path)
    assert.deepEqual([debits, new Set(returns)], [[], new Set(['req_1'])])
    if (!broken.some((name) => name === 'truncate')) assert.equal(returns.length, 1)
    disk.mend()
    await spool.appendReturns(['req_1'])
    assert.equal(spool.isTorn, false)
    await spool.append([two])
    await spool.close()
    assert.deepEqual(readSpool(path).debits, [two])
    assert.ok(readSpool(path).returns.includes('req_1'))
  }
})

test('F-S2 F-S4 after a failure the spool is reopened: the file then under its name is what the next start reads', async (t) => {
  const path = newPath()
  const spool = createSpool(path)
  await spool.append([one])
  for (const fail of [() => spool.append([two]), () => spool.appendReturns(['req_9'])]) {
    const disk = await breakDisk(t, 'datasync')
    await assert.rejects(fail(), /EIO: datasync/)
    disk.mend()
    rmSync(path)
    await spool.append([two])
    assert.deepEqual(readSpool(path).debits, [two])
  }
  await spool.close()
})

test('B7 C13 a note truncates nothing unless a line failed, so what an operator appended stays', async () => {
  const path = newPath()
  const spool = createSpool(path)
  await spool.append([one])
  const other = newPath()
  const left = createSpool(other)
  await left.append([two])
  await left.close()
  appendFileSync(path, readFileSync(other))
  await spool.appendReturns(['req_9'])
  await spool.close()
  assert.deepEqual(readSpool(path), { debits: [one, two], returns: ['req_9'], unreadable: 0 })
})

test('B7 C13 a note that a debit is to be returned is read as that, and its debit is not read too', async () => {
  const path = newPath()
  const spool = createSpool(path)
  await spool.append([one, two])
  await spool.appendReturns(['req_1', 'req_9'])
  await spool.close()
  assert.deepEqual(readSpool(path), { debits: [two], returns: ['req_1', 'req_9'], unreadable: 0 })
})

test('C11 a debit with steps and calls is read back from the spool unchanged, and is posted', async () => {
  const path = newPath()
  const { prices } = one
  const called = {
    ...one,
    calls: { web_search: 2 },
    pricedCalls: 2,
    prices: { ...prices, steps: [{ ...prices, above: 5 }], calls: { web_search: 10_000_000n } },
  }
  const spool = createSpool(path)
  await spool.append([called, two])
  await spool.close()
  assert.deepEqual(readSpool(path).debits, [called, two])
})
