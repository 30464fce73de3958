import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'

const moduleUrl = pathToFileURL(join(import.meta.dirname, '../../src/process/heap-growth.ts')).href

/** Collects everything. */
const program = `const { giveHeapRoom } = await import(process.argv[1])
if (process.argv[2] === 'roomy') giveHeapRoom()
const alive = Array.from({ length: 100_000 }, (_, i) => ({ text: 'number ' + i, list: [i, i + 1] }))
gc()
console.log(alive.length)`

/** By how much the engine then lets the heap grow, as it says itself. */
function growthOf(how: string): string[] {
  const flags = ['--expose-gc', '--trace-gc-verbose', '--input-type=module', '--no-warnings']
  const told = execFileSync(process.execPath, [...flags, '-e', program, moduleUrl, how], { encoding: 'utf8' })
  return Array.from(told.matchAll(/factor (\d+\.\d+)/g), ([, factor]) => factor!)
}

test('issue 14 the heap may be three times what is alive, however slowly it grows', () => {
  assert.deepEqual(growthOf('roomy'), ['3.0'])
  assert.notDeepEqual(growthOf('left to itself'), ['3.0'], 'a control')
})
