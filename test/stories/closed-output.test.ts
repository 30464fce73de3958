import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import test from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { portsOf } from '../support/listen.ts'
import { until } from '../support/waiting.ts'

/* The program whose output nobody takes: what it prints is lost, and it serves (B24). */

const program = resolve(import.meta.dirname, '../../bin/triwire.mjs')

type Started = { child: ChildProcess; log(): string }

/** @param stdout a descriptor, or a pipe whose other end is closed at once. */
function serve(stdout: number | 'pipe', stderr?: number): Started {
  const folder = testFolder('output')
  const path = join(folder, 'stderr')
  const descriptor = stderr ?? openSync(path, 'a')
  const child = spawn(
    process.execPath,
    [program, 'serve', '--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0'],
    { cwd: folder, env: { ...process.env, NODE_NO_WARNINGS: '1' }, stdio: ['ignore', stdout, descriptor] },
  )
  atEnd(() => child.kill('SIGKILL'))
  child.stdout?.destroy()
  closeSync(descriptor)
  return { child, log: () => (existsSync(path) ? readFileSync(path, 'utf8') : '') }
}

function openFull(): number {
  return openSync('/dev/full', 'w')
}

const outputs: [string, () => number | 'pipe'][] = [
  ['a full disk', openFull],
  ['a pipe that nobody reads', () => 'pipe'],
]
for (const [name, stdout] of outputs) {
  test(`B24: a stdout that is ${name} at the start does not end the server`, async () => {
    const { child, log } = serve(stdout())
    await until(() => log().includes('"listening"') || child.exitCode !== null, 'it listens')
    const [, address] = /"address":"([^"]+)"/.exec(log())!
    // The lines on stdout come behind the one of the log: by now, or never, they have ended it.
    for (let i = 0; i < 20; i++) assert.equal((await fetch(`http://${address}/v1/models`)).status, 200)
    child.kill('SIGINT')
    await until(() => child.exitCode !== null, 'it ends')
    assert.equal(child.exitCode, 0)
    assert.doesNotMatch(log(), /uncaught/)
    assert.match(log(), /"event":"stopped"/)
  })
}

test('B24: a server that can write neither to its log nor elsewhere runs until it is stopped', async () => {
  const { child } = serve(openFull(), openFull())
  let port = 0
  const ask = () => fetch(`http://127.0.0.1:${port}/v1/models`).catch(() => undefined)
  const isAnswered = async () => {
    for (port of portsOf(child.pid!)) if ((await ask())?.status === 200) return true
    return false
  }
  await until(async () => child.exitCode !== null || (await isAnswered()), 'it answers')
  for (let i = 0; i < 20; i++) assert.equal((await ask())?.status, 200)
  child.kill('SIGINT')
  await until(() => child.exitCode !== null, 'it ends')
  assert.equal(child.exitCode, 0)
})
