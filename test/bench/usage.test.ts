import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { readTree } from '../../bench/usage.ts'
import { testFolder } from '../support/folder.ts'

test('a peer’s processes are counted with all their descendants, including ended ones, and no others', () => {
  const proc = testFolder('proc')
  // The numbers of a process may be lower than its parent's, since they start again from the beginning.
  put(proc, 300, { parent: 1, ticks: [100, 20, 7, 3], pages: 256 })
  put(proc, 41, { parent: 300, ticks: [5, 5, 0, 0], pages: 512, name: 'a (worker) R 9' })
  put(proc, 42, { parent: 41, ticks: [1, 0, 0, 0], pages: 256 })
  put(proc, 99, { parent: 1, ticks: [5_000, 5_000, 0, 0], pages: 9_999 })
  mkdirSync(join(proc, '77'))
  mkdirSync(join(proc, 'sys'))
  assert.deepEqual(readTree(300, proc), { pids: [300, 41, 42], cpuNs: 141 * 1e7, rssMb: 4 })
})

test('a process that is gone has used nothing', () => {
  assert.deepEqual(readTree(300, testFolder('proc')), { pids: [], cpuNs: 0, rssMb: 0 })
})

type Said = { parent: number; ticks: readonly number[]; pages: number; name?: string }

/** As the kernel writes it: 52 fields, of which the second is a name. */
function put(proc: string, pid: number, { parent, ticks, pages, name = 'server' }: Said): void {
  const fields = Array.from({ length: 50 }, () => '0')
  fields[0] = 'S'
  fields[1] = String(parent)
  for (const [i, count] of ticks.entries()) fields[11 + i] = String(count)
  fields[21] = String(pages)
  mkdirSync(join(proc, String(pid)))
  writeFileSync(join(proc, String(pid), 'stat'), `${pid} (${name}) ${fields.join(' ')}\n`)
}
