import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createSpool, readSpool } from '../../src/store/files/spool.ts'
import { testFolder } from '../support/child.ts'
import { createDebitRow } from './fixtures.ts'

/** How many descriptors of this process are open on the file, where the system can tell. */
function countOpen(path: string): number {
  if (!existsSync('/proc/self/fd')) return 0
  const links = readdirSync('/proc/self/fd').map((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`)
    } catch {
      return ''
    }
  })
  return links.filter((link) => link === path).length
}

test('F-S2 a spool used after its closing leaves no file open: one left to the garbage collector ends the process', async () => {
  const path = join(testFolder('spool'), 'triwire.db.spool')
  const spool = createSpool(path)
  await spool.append([])
  await spool.close()
  assert.equal(countOpen(path), 0)
  await spool.append([])
  await spool.clear(() => true)
  assert.equal(countOpen(path), 0)
})

test('F-P1 F-S2 the next debit survives after a line that a crash or a full disk has torn', async () => {
  const path = join(testFolder('spool'), 'triwire.db.spool')
  writeFileSync(path, '{"requestId":"req_0","amou', { mode: 0o600 })
  const spool = createSpool(path)
  const first = { ...createDebitRow('req_1', 'acct_1'), keyId: 'key_1' }
  await spool.append([first, createDebitRow('req_2', 'acct_1')])
  await spool.append([createDebitRow('req_3', 'acct_1')])
  await spool.close()
  const { debits, unreadable } = readSpool(path)
  assert.deepEqual([debits.map(({ requestId }) => requestId), unreadable], [['req_1', 'req_2', 'req_3'], 1])
  assert.deepEqual(debits[0], first)
})

test('Y16 a probe reports whether debits could be appended, and leaves nothing in the spool that has a meaning', async () => {
  const folder = testFolder('spool')
  const path = join(folder, 'triwire.db.spool')
  mkdirSync(path)
  const spool = createSpool(path)
  await assert.rejects(spool.probe(), { code: 'EISDIR' })
  rmdirSync(path)
  await spool.probe()
  await spool.append([createDebitRow('req_1', 'acct_1')])
  await spool.probe()
  const { debits, returns, unreadable } = readSpool(path)
  assert.deepEqual([debits.map(({ requestId }) => requestId), returns, unreadable], [['req_1'], [], 0])
  await spool.clear(() => true)
  assert.equal(readFileSync(path, 'utf8'), '')
  await spool.close()
})
