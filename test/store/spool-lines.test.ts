import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createSpool, readSpool, retireSpool } from '../../src/store/sqlite/spool.ts'
import { testFolder } from '../support/folder.ts'
import { createDebitRow } from './fixtures.ts'

/** All its fields are said, so that what is read is what was written. */
const debitRow = (requestId: string, accountId: string) => ({ ...createDebitRow(requestId, accountId), keyId: 'key_1' })

const newPath = () => join(testFolder('spool'), 'triwire.db.spool')
const one = debitRow('req_1', 'acct_1')
const two = debitRow('req_2', 'acct_1')

test('F-S2 a debit behind a line that a crash tore is read all the same', async () => {
  const path = newPath()
  writeFileSync(path, '{"requestId":"req_0","usa')
  const spool = createSpool(path)
  await spool.append([one, two])
  await spool.close()
  assert.deepEqual(readSpool(path), { debits: [one, two], unreadable: 1 })
})

test('F-S2 a spool that was never used is not emptied: what lies there is of a run before this one', async () => {
  const path = newPath()
  writeFileSync(path, 'of another run\n')
  const spool = createSpool(path)
  await spool.clear(() => true)
  await spool.close()
  assert.equal(readFileSync(path, 'utf8'), 'of another run\n')
})

test('F-S2 a spool is emptied when its debits are posted, unless more has come', async () => {
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

test('F-S2 an append that failed is told, and does not spoil the next one', async () => {
  const path = newPath()
  mkdirSync(path)
  const spool = createSpool(path)
  await assert.rejects(spool.append([one]), /EISDIR/)
  rmdirSync(path)
  await spool.append([two])
  await spool.close()
  assert.deepEqual(readSpool(path).debits, [two])
})

test('F-S2 appends are written in turn', async () => {
  const path = newPath()
  const spool = createSpool(path)
  const rows = Array.from({ length: 50 }, (_, i) => debitRow(`req_${i}`, 'acct_1'))
  await Promise.all(rows.map((row) => spool.append([row])))
  await spool.close()
  assert.deepEqual(readSpool(path).debits, rows)
})

test('F-S2 what is no debit is counted as unreadable, one line at a time', () => {
  const path = newPath()
  const rest = '"amountNanos":"1","prices":{}'
  writeFileSync(path, `\n{${rest},"usage":{}}\n{${rest},"requestId":7,"usage":{}}\n{${rest},"requestId":"req_1"}\n7\n`)
  assert.deepEqual(readSpool(path), { debits: [], unreadable: 4 })
  assert.deepEqual(readSpool(newPath()), { debits: [], unreadable: 0 })
})

test('F-S2 a spool that was read whole goes, also where there was none; another is put aside under a name that is told', () => {
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
