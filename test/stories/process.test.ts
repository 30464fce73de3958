import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import test from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { testFolder } from '../support/folder.ts'
import { listen } from '../support/listen.ts'
import { until } from '../support/waiting.ts'

/* The program as an operator runs it: a process of its own, signals, exit codes. */

const program = resolve(import.meta.dirname, '../../bin/triwire.mjs')

type Running = {
  child: ChildProcess
  stdout(): string
  stderr(): string
  exited: Promise<number | string>
  /** Waits until the log has the words. */
  saw(words: string): Promise<void>
}

function serve(args: readonly string[], folder = newFolder()): Running {
  const child = spawn(process.execPath, [program, 'serve', ...args], {
    cwd: folder,
    env: { ...process.env, NODE_NO_WARNINGS: '1' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  atEnd(() => child.kill('SIGKILL'))
  let stdout = ''
  let stderr = ''
  child.stdout!.on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr!.on('data', (chunk) => {
    stderr += chunk
  })
  const exited = new Promise<number | string>((done) => child.on('exit', (code, signal) => done(code ?? signal ?? '')))
  const saw = async (words: string) => {
    await until(() => stderr.includes(words) || child.exitCode !== null, words)
    assert.ok(stderr.includes(words), `${words} in: ${stderr}`)
  }
  return { child, stdout: () => stdout, stderr: () => stderr, exited, saw }
}

function newFolder(): string {
  return testFolder('process')
}

const anyPorts = ['--listen', '127.0.0.1:0', '--admin-listen', '127.0.0.1:0']

/** A file with these models, and short drains. */
function configFile(folder: string, models: string, port: string, delay = '50ms'): string {
  const path = join(folder, 'triwire.yaml')
  const text = `listen: 127.0.0.1:${port}
admin_listen: 127.0.0.1:0
catalog:
  pinned: 2026-11-01
  models:
${models}
upstreams:
  sim: { base_url: http://127.0.0.1:9, accounts: [{ name: a, key: k }] }
timeouts: { drain_delay: ${delay}, drain_deadline: 500ms }
`
  writeFileSync(path, text, { mode: 0o600 })
  return path
}

const model = (id: string) =>
  `    - { id: ${id}, wire: chat, upstream: sim, max_output_tokens: 9, prices: { input: "1", output: "1" } }`

test('F-P18 a port in use: a message that says what to do, and exit code 1', async () => {
  const port = await listen(createServer())
  const running = [
    serve(['--listen', `127.0.0.1:${port}`, '--admin-listen', '127.0.0.1:0']),
    serve(['--listen', '127.0.0.1:0', '--admin-listen', `127.0.0.1:${port}`]),
  ]
  for (const { exited, stderr } of running) {
    assert.equal(await exited, 1)
    assert.match(
      stderr(),
      /address already in use 127\.0\.0\.1:\d+: stop what listens there, or choose another address/,
    )
    assert.doesNotMatch(stderr(), /\n\s+at /)
  }
})

test('F-P13 F-P2 X4 SIGHUP takes a good file and keeps the old one for a bad one; SIGTERM exits 0', async () => {
  const folder = newFolder()
  const path = configFile(folder, model('first'), '0')
  const running = serve(['--config', path], folder)
  await running.saw('"listening"')
  const port = /"listening","address":"127\.0\.0\.1:(\d+)"/.exec(running.stderr())![1]!
  const list = async () => {
    const answer = (await (await fetch(`http://127.0.0.1:${port}/v1/models`)).json()) as { data: { id: string }[] }
    return answer.data.map(({ id }) => id)
  }
  assert.deepEqual(await list(), ['first'])
  configFile(folder, `${model('first')}\n${model('second')}`, '0')
  running.child.kill('SIGHUP')
  await running.saw('"config_reloaded"')
  assert.deepEqual(await list(), ['first', 'second'])
  writeFileSync(path, 'catalog: [', { mode: 0o600 })
  running.child.kill('SIGHUP')
  await running.saw('"config_rejected"')
  assert.deepEqual(await list(), ['first', 'second'])
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  await running.saw('"stopped"')
  // What the log says goes to stderr, what a person asked for to stdout (ruling X4).
  assert.doesNotMatch(running.stdout(), /"event"/)
})

test('F-P4 a second signal ends a drain delay of an hour; the exit code stays 0', async () => {
  const folder = newFolder()
  const running = serve(['--config', configFile(folder, model('only'), '0', '1h')], folder)
  await running.saw('"listening"')
  running.child.kill('SIGTERM')
  await running.saw('"drain"')
  // Close together two would be one signal that arrives two ways, so it is sent until the program has left.
  await until(() => !running.child.kill('SIGTERM'), 'the program leaves')
  assert.equal(await running.exited, 0)
})

test('F-P12 a log that nobody reads keeps no process from leaving', async () => {
  const running = serve(anyPorts)
  await running.saw('"listening"')
  const port = /"listening","address":"127\.0\.0\.1:(\d+)"/.exec(running.stderr())![1]!
  running.child.stderr!.pause()
  for (let i = 0; i < 20; i++) {
    const asked = Array.from({ length: 50 }, () => fetch(`http://127.0.0.1:${port}/v1/models`))
    for (const response of await Promise.all(asked)) assert.equal((await response.arrayBuffer()).byteLength > 0, true)
  }
  running.child.kill('SIGINT')
  assert.equal(await running.exited, 0)
})
