import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { createTestQueue } from '../scripts/support/test-queue.ts'
import { testFolder } from './support/folder.ts'

const bodies = {
  passes: `import { appendFileSync } from 'node:fs'\nimport test from 'node:test'\ntest('passes', () => appendFileSync('ran', '.'))`,
  fails: `import test from 'node:test'\ntest('fails', () => { throw new Error('no') })`,
  breaks: `throw new Error('it cannot be imported')`,
  ends: `import test from 'node:test'\ntest('ends', () => process.exit(0))`,
  dies: `import test from 'node:test'\ntest('dies', () => process.exit(1))`,
}

/** Makes test files and their queue, and runs it with the reporter of failed files. */
function runQueue(contents: Record<string, keyof typeof bodies>, secondsOf = {}, processesMax = 2) {
  const root = testFolder('queue')
  const files = Object.keys(contents).map((name) => `test/${name}.test.ts`)
  mkdirSync(join(root, 'test'))
  for (const [name, body] of Object.entries(contents)) writeFileSync(join(root, `test/${name}.test.ts`), bodies[body])
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  const queue = createTestQueue(root, join(root, 'queue'), files, secondsOf, processesMax)
  const reporter = new URL('../scripts/support/failed-files.ts', import.meta.url).href
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { status, stdout } = spawnSync(
    process.execPath,
    ['--test', `--test-reporter=${reporter}`, '--test-reporter-destination=stdout', ...queue.starts],
    { cwd: root, env, encoding: 'utf8' },
  )
  const failed = [...new Set(stdout.split('\n').filter(Boolean))]
    .flatMap((file) => queue.filesOf(file))
    .map((file) => file.replace(`${root}/`, ''))
  return { root, status, failed, unfinished: queue.listUnfinished(), queue }
}

test('files that several processes share run once each', () => {
  const names = Array.from({ length: 12 }, (_, index) => `f${index}`)
  const seconds = Object.fromEntries(names.map((name) => [`test/${name}.test.ts`, 10]))
  const { root, status, failed, unfinished, queue } = runQueue(
    Object.fromEntries(names.map((name) => [name, 'passes' as const])),
    seconds,
    3,
  )
  assert.equal(queue.starts.length, 3)
  assert.deepEqual({ status, failed, unfinished }, { status: 0, failed: [], unfinished: [] })
  assert.equal(readFileSync(join(root, 'ran'), 'utf8').length, 12)
  assert.deepEqual(queue.starts.flatMap(queue.filesOf).sort(), names.map((name) => `test/${name}.test.ts`).sort())
})

test('the longest files run first, and few short ones share one process', () => {
  const { queue } = runQueue({ a: 'passes', b: 'passes', c: 'passes' }, { 'test/c.test.ts': 5, 'test/b.test.ts': 2 }, 8)
  assert.equal(queue.starts.length, 1)
  assert.deepEqual(queue.filesOf(queue.starts[0]!), ['test/c.test.ts', 'test/b.test.ts', 'test/a.test.ts'])
})

test('a failing test, or a file that cannot be imported, fails the run by name, and the others run', () => {
  const { status, failed, unfinished } = runQueue({ a: 'fails', b: 'breaks', c: 'passes' })
  assert.deepEqual({ status, unfinished }, { status: 1, unfinished: [] })
  assert.deepEqual(failed.sort(), ['test/a.test.ts', 'test/b.test.ts'])
})

for (const body of ['ends', 'dies'] as const)
  test(`a process that ${body} in a test stands for the files that it took, and what it did not finish is listed`, () => {
    const { status, failed, unfinished, queue } = runQueue({ a: 'passes', b: body, c: 'passes' })
    assert.deepEqual(unfinished, ['test/b.test.ts', 'test/c.test.ts'])
    assert.deepEqual(queue.filesOf(queue.starts[0]!), ['test/a.test.ts', 'test/b.test.ts'])
    if (body === 'dies')
      assert.deepEqual({ status, failed }, { status: 1, failed: ['test/a.test.ts', 'test/b.test.ts'] })
  })
