import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'

const moduleUrl = pathToFileURL(join(import.meta.dirname, '../../src/process/heap-growth.ts')).href

/** Collects everything, behind another's choice. */
const program = `const { giveHeapRoom } = await import(process.argv[1])
const { setFlagsFromString } = await import('node:v8')
setFlagsFromString('--heap-growing-percent=70')
if (process.argv[2] === 'roomy') giveHeapRoom()
const alive = Array.from({ length: 100_000 }, (_, i) => ({ text: 'number ' + i, list: [i, i + 1] }))
gc()
console.log(alive.length)`

/** To how much of what is alive the engine then lets the heap grow, as it says itself. */
function growthOf(how: string): string[] {
  const flags = ['--expose-gc', '--trace-gc-verbose', '--input-type=module', '--no-warnings']
  const told = execFileSync(process.execPath, [...flags, '-e', program, moduleUrl, how], { encoding: 'utf8' })
  return Array.from(told.matchAll(/factor (\d+\.\d+)/g), ([, factor]) => factor!)
}

test('issue 14 decision 60: the heap may be three times what is alive', () => {
  assert.deepEqual(growthOf('roomy'), ['3.0'])
  assert.deepEqual(growthOf('left to itself'), ['1.7'], 'a control')
})
