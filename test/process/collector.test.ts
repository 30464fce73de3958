import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import test from 'node:test'
import { pathToFileURL } from 'node:url'

const moduleUrl = pathToFileURL(join(import.meta.dirname, '../../src/process/collector.ts')).href

/** Collects everything, behind another's choice. */
const program = `const { calmCollector } = await import(process.argv[1])
const { setFlagsFromString } = await import('node:v8')
setFlagsFromString('--heap-growing-percent=70')
if (process.argv[2] === 'calm') calmCollector()
const alive = Array.from({ length: 100_000 }, (_, i) => ({ text: 'number ' + i, list: [i, i + 1] }))
gc()
console.log(alive.length)`

/** To how much of what is alive the engine then lets the heap grow, as it says itself, and what it has against its flags. */
function growthOf(how: string): { growth: string[]; complaints: string } {
  const flags = ['--expose-gc', '--trace-gc-verbose', '--input-type=module', '--no-warnings']
  const { stdout, stderr } = spawnSync(process.execPath, [...flags, '-e', program, moduleUrl, how], {
    encoding: 'utf8',
  })
  return { growth: Array.from(stdout.matchAll(/factor (\d+\.\d+)/g), ([, factor]) => factor!), complaints: stderr }
}

test('issue 14 decisions 60 and 61: the engine knows the flags, and lets the heap be three times what is alive', () => {
  assert.deepEqual(growthOf('calm'), { growth: ['3.0'], complaints: '' })
  assert.deepEqual(growthOf('left to itself'), { growth: ['1.7'], complaints: '' }, 'a control')
})
