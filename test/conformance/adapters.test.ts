import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Adapter, adapterNames } from '../../conformance/src/adapter.ts'
import { wires } from '../../conformance/src/case.ts'
import { loadCases } from '../../conformance/src/load-cases.ts'
import { startProgram } from '../../conformance/src/program.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'

const root = join(import.meta.dirname, '../../conformance')
const schema = JSON.parse(readFileSync(join(root, 'case.schema.json'), 'utf8'))
const needs: string[] = schema.properties.needs.items.enum
const pairs = wires.flatMap((client) => wires.map((model) => `${client}>${model}`))
const results = readFileSync(join(root, 'results/README.md'), 'utf8')
const cases = loadCases().map(({ id }) => id)

for (const name of readdirSync(join(root, 'adapters')).filter((entry) => !entry.includes('.'))) {
  test(`issue 51: the adapter of ${name} declares what it switches on, and has its row among the results`, async () => {
    const { default: adapter } = (await import(`../../conformance/adapters/${name}/adapter.ts`)) as { default: Adapter }
    assert.match(adapter.homepage ?? 'https:', /^https:/)
    for (const pair of adapter.pairs ?? []) assert.ok(pairs.includes(pair), pair)
    for (const feature of adapter.features) assert.ok(needs.includes(feature), feature)
    for (const { cases: ids, page, says } of adapter.deviations) {
      for (const id of ids) assert.ok(cases.includes(id) || /^[a-z-]+\/\*$/.test(id), id)
      assert.ok(page && says)
    }
    const { names = adapterNames } = adapter
    const lanes = Array.from({ length: adapter.lanes }, (_, at) => at + 1)
    const all = wires.flatMap((wire) => lanes.map((lane) => names(wire, lane).client))
    assert.equal(new Set(all).size, adapter.lanes * wires.length, 'each model has a name of its own')
    assert.ok(
      results.includes(adapter.homepage ? `[${adapter.title}](${adapter.homepage})` : `| ${adapter.title} |`),
      'its row',
    )
    if (existsSync(join(root, `results/${name}.json`))) assert.ok(adapter.switchedOn.length > 0)
  })
}

test('issue 51: at least seven gateways are tested, each with its version and its page', () => {
  const pages = readdirSync(join(root, 'results')).filter((file) => file.endsWith('.json'))
  assert.ok(pages.length >= 7, String(pages))
  for (const file of pages) {
    const { gateway, seconds } = JSON.parse(readFileSync(join(root, 'results', file), 'utf8'))
    assert.match(gateway.version, /\d/, file)
    assert.ok(seconds > 0)
    assert.match(readFileSync(join(root, 'results', file.replace('json', 'md')), 'utf8'), /## MUST: pair × area/)
  }
})

const server = `require('node:http').createServer((request, response) => response.end(JSON.stringify(process.env)))`

test('a gateway starts in its own folder, with only PATH from the environment, and all of its processes are ended', async () => {
  const folder = testFolder('gateway')
  const listen = (port: number) => `${server}.listen(${port}, '127.0.0.1')`
  let second = 0
  const program = await startProgram(folder, ({ port, write }) => {
    second = port
    // The process that listens is a child of the one that was started.
    const file = write('server.cjs', listen(port))
    const parent = `require('node:child_process').spawn(process.execPath, [${JSON.stringify(file)}])`
    return { command: [process.execPath, '-e', parent], env: { OWN: 'yes' } }
  })
  atEnd(program.stop)
  const env = (await (await fetch(program.origin)).json()) as Record<string, string>
  assert.equal(program.port, second)
  assert.deepEqual(Object.keys(env).sort(), ['HOME', 'LANG', 'NODE_ENV', 'OWN', 'PATH'])
  assert.equal(env['HOME'], folder)
  await program.stop()
  await assert.rejects(fetch(program.origin))
})

test('a gateway that ends before it listens is reported with the end of its output', async () => {
  const folder = testFolder('broken')
  const command = [process.execPath, '-e', "console.error('no such option'); process.exit(3)"]
  await assert.rejects(
    startProgram(folder, () => ({ command })),
    /no such option/,
  )
})
