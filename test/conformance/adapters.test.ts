import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Adapter, adapterNames } from '../../conformance/src/adapter.ts'
import { wires } from '../../conformance/src/case.ts'
import { loadCases } from '../../conformance/src/load-cases.ts'
import {
  findBuilt,
  findNpm,
  findPython,
  homeOf,
  nodeOf,
  nodePackage,
  startProgram,
} from '../../conformance/src/program.ts'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { until } from '../support/waiting.ts'
import { isRunning } from './support/running.ts'

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

const { signal } = new AbortController()

const server = `require('node:http').createServer((request, response) => response.end(JSON.stringify(process.env)))`

test('a gateway starts in its own folder, with only PATH from the environment, and all of its processes are ended', async () => {
  const folder = testFolder('gateway')
  const listen = (port: number) => `${server}.listen(${port}, '127.0.0.1')`
  let second = 0
  const program = await startProgram({ folder, signal }, ({ port, write }) => {
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
  assert.deepEqual(
    [env['HOME'], env['LANG'], env['NODE_ENV'], env['OWN'], env['PATH']],
    [folder, 'C.UTF-8', 'production', 'yes', process.env['PATH']],
  )
  await program.stop()
  await assert.rejects(fetch(program.origin))
})

test('a gateway that ends before it listens is reported with the end of its output', async () => {
  const folder = testFolder('broken')
  const code = "console.error('begin' + 'é'.repeat(1_990)); console.log('no such option'); process.exit(3)"
  await assert.rejects(
    startProgram({ folder, signal }, () => ({ command: [process.execPath, '-e', code] })),
    { message: `${'é'.repeat(1_984)}\nno such option\n` },
  )
})

test('a gateway that cannot be started, or is killed, is reported as one that ends', async () => {
  const start = (...command: string[]) => startProgram({ folder: testFolder('broken'), signal }, () => ({ command }))
  await assert.rejects(start('/nowhere/gateway'), { message: 'spawn /nowhere/gateway ENOENT' })
  await assert.rejects(start(process.execPath, '-e', "console.log('so'); process.kill(process.pid, 'SIGKILL')"), {
    message: 'so\n',
  })
})

test('a gateway is ready when it answers, not when it only tries whether its port is free', async () => {
  const { origin, stop } = await startProgram({ folder: testFolder('trying'), signal }, ({ port }) => {
    const code = `const tried = require('node:net').createServer().listen(${port}, '127.0.0.1')
tried.once('connection', (socket) => { socket.destroy(); tried.close(() => { ${server}.listen(${port}, '127.0.0.1') }) })`
    return { command: [process.execPath, '-e', code] }
  })
  atEnd(stop)
  assert.equal((await fetch(origin)).status, 200)
})

/** Code that keeps a process from ending by itself. */
const stays = "require('node:fs').watch(process.execPath)"

test('a gateway is stopped if the run is ended before it is ready', async () => {
  const folder = testFolder('slow')
  const [begun, ending] = [join(folder, 'begun'), new AbortController()]
  let asked = 0
  const starting = startProgram({ folder, signal: ending.signal }, () => {
    const code = `console.log(process.pid); require('node:fs').writeFileSync(${JSON.stringify(begun)}, String(process.pid))
${stays}`
    return { command: [process.execPath, '-e', code], isReady: async () => asked++ < 0 }
  })
  await until(() => existsSync(begun) && readFileSync(begun, 'utf8'))
  ending.abort()
  const pid = Number(readFileSync(begun, 'utf8'))
  await assert.rejects(starting, { message: `${pid}\n` })
  await until(() => !isRunning(pid))
  assert.ok(asked > 0)
})

test('a gateway has time to end, and then what it started is killed; its files are for its user only', async () => {
  const folder = testFolder('gateway')
  const [ended, started] = [join(folder, 'ended'), join(folder, 'started')]
  const stubborn = `process.on('SIGTERM', () => {}); require('node:fs').writeFileSync(process.argv[2], String(process.pid))
${stays}`
  const program = await startProgram({ folder, signal }, ({ port, write, folder: own }) => {
    assert.equal(own, folder)
    const child = write('child.cjs', stubborn)
    assert.deepEqual([child, statSync(child).mode & 0o777], [join(folder, 'child.cjs'), 0o600])
    const main = `const fs = require('node:fs')
require('node:child_process').spawn(process.execPath, [${JSON.stringify(child)}, ${JSON.stringify(started)}])
const sleep = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
process.on('SIGTERM', () => { sleep(30); process.exit(fs.writeFileSync(${JSON.stringify(ended)}, process.cwd())) })
const isThere = () => fs.existsSync(${JSON.stringify(started)}) && fs.statSync(${JSON.stringify(started)}).size > 0
while (!isThere()) sleep(5)
${server}.listen(${port}, '127.0.0.1')`
    return { command: [process.execPath, '-e', main] }
  })
  atEnd(program.stop)
  assert.equal(program.origin, `http://127.0.0.1:${program.port}`)
  const pid = Number(readFileSync(started, 'utf8'))
  assert.equal(process.kill(pid, 0), true)
  await program.stop()
  assert.equal(readFileSync(ended, 'utf8'), folder)
  await until(() => !isRunning(pid))
})

test('installed gateways are found in the folder of the environment, or below the user’s cache', () => {
  const root = testFolder('gateways')
  const before = process.env['BOTHSIDES_GATEWAYS']
  atEnd(() => setGateways(before))
  setGateways(undefined)
  assert.equal(homeOf('a'), join(homedir(), '.cache', 'bothsides', 'a'))
  setGateways(root)
  const home = join(root, 'a')
  assert.equal(homeOf('a'), home)

  assert.deepEqual(findNpm('a', 'pack'), { missing: `pack is not installed below ${home}` })
  assert.deepEqual(findPython('a', 'pack'), { missing: `pack is not installed in ${home}` })
  assert.deepEqual(findBuilt('a'), { missing: `${join(home, 'program')} is not there` })
  for (const folder of ['node_modules/pack', 'bin']) mkdirSync(join(home, folder), { recursive: true })
  writeFileSync(join(home, 'node_modules/pack/package.json'), '{"version":"1.2"}')
  writeFileSync(join(home, 'bin/python'), '#!/bin/sh\nprintf "%s\\n" "$1 $2 "', { mode: 0o755 })
  writeFileSync(join(home, 'program'), '')
  assert.deepEqual(findNpm('a', 'pack'), { version: '1.2' })
  assert.deepEqual(findPython('a', 'pack'), {
    version: '-c import importlib.metadata as m; print(m.version("pack"))',
  })
  assert.deepEqual(findBuilt('a'), { version: 'unknown' })
  writeFileSync(join(home, 'version'), ' 3.4\n')
  assert.deepEqual(findBuilt('a'), { version: '3.4' })
})

test('a gateway that needs certain versions of other packages is found only beside these', () => {
  const root = testFolder('gateways')
  const before = process.env['BOTHSIDES_GATEWAYS']
  atEnd(() => setGateways(before))
  setGateways(root)
  const home = join(root, 'a')
  const install = (name: string, version: string) => {
    mkdirSync(join(home, 'node_modules', name), { recursive: true })
    writeFileSync(join(home, 'node_modules', name, 'package.json'), JSON.stringify({ version }))
  }
  const beside = { '@own/server': '1.13.5', [nodePackage]: '20.20.2' }
  install('pack', '1.2')
  assert.deepEqual(findNpm('a', 'pack', beside), { missing: `@own/server below ${home} is missing, not 1.13.5` })
  install('@own/server', '1.19.19')
  assert.deepEqual(findNpm('a', 'pack', beside), { missing: `@own/server below ${home} is 1.19.19, not 1.13.5` })
  install('@own/server', '1.13.5')
  assert.deepEqual(findNpm('a', 'pack', beside), { missing: `${nodePackage} below ${home} is missing, not 20.20.2` })
  install(nodePackage, '20.20.2')
  assert.deepEqual(findNpm('a', 'pack', beside), { version: '1.2' })
  assert.equal(nodePackage, `node-${process.platform}-${process.arch}`)
  assert.equal(nodeOf('a'), join(home, 'node_modules', nodePackage, 'bin', 'node'))
})

function setGateways(folder: string | undefined): void {
  if (folder === undefined) delete process.env['BOTHSIDES_GATEWAYS']
  else process.env['BOTHSIDES_GATEWAYS'] = folder
}

test('a model of the first lane has the name of its wire, and the others have their number too', () => {
  const named = (name: string) => ({ client: name, upstream: name })
  assert.deepEqual(adapterNames('chat', 1), named('bothsides-chat'))
  assert.deepEqual(adapterNames('messages', 12), named('bothsides-messages-12'))
})
