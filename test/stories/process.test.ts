import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import test from 'node:test'
import { fileURLToPath } from 'node:url'
import { listen } from '../support/listen.ts'
import { childrenOf } from '../support/pgrep.ts'
import { raw } from '../support/raw.ts'
import { anyPorts, configFile, model, newFolder, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

/* The program as an operator runs it: a process of its own, signals, exit codes. */

test('F-P18 a port in use gives exit code 1 and a message with the cure', async () => {
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
    assert.match(stderr(), /"demo" was made nevertheless\. Its key is shown this once: sk-tri-/)
  }
})

test('F-P13 F-P2 X4 N-F3 N-F4 SIGHUP loads a valid file and keeps the old one if it is invalid; SIGTERM exits 0', async () => {
  const folder = newFolder()
  const path = configFile(folder, model('first'))
  const env = { HTTPS_PROXY: 'http://ann:hidden-word@proxy.example:3128', NO_PROXY: '', https_proxy: '' }
  const running = serve(['--config', path], folder, { env })
  await running.saw('"listening"')
  const port = /"listening","address":"127\.0\.0\.1:(\d+)"/.exec(running.stderr())![1]!
  const list = async () => {
    const answer = (await (await fetch(`http://127.0.0.1:${port}/v1/models`)).json()) as { data: { id: string }[] }
    return answer.data.map(({ id }) => id)
  }
  assert.deepEqual(await list(), ['first'])
  configFile(folder, `${model('first')}\n${model('second')}`, { upstreams: { sim: 'https://far.example' } })
  // The reload waits for the command, takes the proxy, and says what it leaves as it was.
  const changed = readFileSync(path, 'utf8')
    .replace('listen: 127.0.0.1:0', 'listen: 127.0.0.1:1')
    .replace('key: k', 'key_command: [/bin/sh, -c, echo hidden-token]')
    .replace('settle_deadline: 5s', 'settle_deadline: 6s')
  writeFileSync(path, changed)
  running.child.kill('SIGHUP')
  await running.saw('"config_reloaded"')
  await running.saw('"restart_needed","keys":["listen","timeouts.settle_deadline"]')
  await running.saw('"upstream_proxy","upstream":"sim","proxy":"http://proxy.example:3128","source":"HTTPS_PROXY"')
  assert.deepEqual(await list(), ['first', 'second'])
  const count = (word: string) => running.stderr().split(word).length - 1
  const reload = async () => {
    const reloads = count('"config_reloaded"')
    running.child.kill('SIGHUP')
    await until(() => count('"config_reloaded"') > reloads)
  }
  // Compared with what runs, and not with what the last reload has read.
  await reload()
  await until(() => count('"restart_needed"') === 2)
  writeFileSync(
    path,
    changed.replace('listen: 127.0.0.1:1', 'listen: 127.0.0.1:0').replace('settle_deadline: 6s', 'settle_deadline: 5s'),
  )
  await reload()
  await reload()
  assert.equal(count('"restart_needed"'), 2)
  writeFileSync(path, 'catalog: [', { mode: 0o600 })
  running.child.kill('SIGHUP')
  await running.saw('"config_rejected"')
  assert.deepEqual(await list(), ['first', 'second'])
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  await running.saw('"stopped"')
  assert.doesNotMatch(running.stderr(), /hidden-|key_failed/)
  // What the log says goes to stderr, what a person asked for to stdout (ruling X4).
  assert.doesNotMatch(running.stdout(), /"event"/)
})

test('F-P4 a second signal ends a drain delay of an hour; the exit code stays 0', async () => {
  const folder = newFolder()
  const running = serve(['--config', configFile(folder, model('only'), { delay: '1h' })], folder)
  await running.saw('"listening"')
  running.child.kill('SIGTERM')
  await running.saw('"drain"')
  // Close together two would be one signal that arrives two ways, so it is sent until the program has left.
  await until(() => !running.child.kill('SIGTERM'), 'the program leaves')
  assert.equal(await running.exited, 0)
})

test('F-P12 a log that is not read keeps no process from ending', async () => {
  const running = serve(anyPorts)
  await running.saw('"listening"')
  const port = /"listening","address":"127\.0\.0\.1:(\d+)"/.exec(running.stderr())![1]!
  running.child.stderr!.pause()
  const asked = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(1_000)
  const { answers } = await raw(`http://127.0.0.1:${port}`, asked, { answers: 1_000 })
  for (const { status, body } of answers) assert.ok(status === 200 && body.length > 0, body)
  running.child.kill('SIGINT')
  assert.equal(await running.exited, 0)
})

for (const [script, hasEnded] of [
  ['node bin/triwire.mjs serve', true],
  ["'triwire'", true],
  ['triwire serve --config a.yaml', true],
  ['cross-env A=b node_modules/.bin/triwire serve', true],
  ['triwire serve &', false],
  ['node server.mjs --name not-triwire', false],
] as const)
  test(`NEW-19 F-P13 the server of the npm script "${script}" ${hasEnded ? 'ends with npm' : 'goes on'}`, async () => {
    const one = await serveFrom(script)
    // The other one ends. By then this one would have noticed the end of its shell too.
    const ending = hasEnded ? one : await serveFrom('triwire')
    one.shell.kill('SIGTERM')
    ending.shell.kill('SIGTERM')
    await until(() => ending.log().includes('"stopped"'), 'the server stops')
    if (hasEnded) return
    assert.doesNotMatch(one.log(), /"draining"|"stopped"/)
    process.kill(one.server, 'SIGTERM')
    await until(() => one.log().includes('"stopped"'), 'the server stops')
  })

/** Starts a server as npm does for a script: in a shell that tells its child nothing of its end. */
async function serveFrom(script: string) {
  const bin = fileURLToPath(new URL('../../bin/triwire.mjs', import.meta.url))
  const command = `"${process.execPath}" "${bin}" serve --listen 127.0.0.1:0 --admin-listen 127.0.0.1:0; true`
  const env = { ...process.env, npm_lifecycle_script: script }
  const shell = spawn('sh', ['-c', command], { cwd: newFolder(), env, stdio: ['ignore', 'ignore', 'pipe'] })
  let log = ''
  shell.stderr.on('data', (text) => {
    log += text
  })
  await until(() => log.includes('"listening"'), 'it listens')
  const [server] = childrenOf(shell.pid!)
  return { shell, server: server!, log: () => log }
}
