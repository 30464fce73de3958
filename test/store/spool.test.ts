import assert from 'node:assert/strict'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createSpool } from '../../src/store/sqlite/spool.ts'
import { testFolder } from '../support/child.ts'

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

test('F-S2 a spool that is used after its closing leaves no file open: one left to the garbage collector ends the process', async () => {
  const path = join(testFolder('spool'), 'triwire.db.spool')
  const spool = createSpool(path)
  await spool.append([])
  await spool.close()
  assert.equal(countOpen(path), 0)
  await spool.append([])
  await spool.clear(() => true)
  assert.equal(countOpen(path), 0)
})
