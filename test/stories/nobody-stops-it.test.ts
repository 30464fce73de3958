import assert from 'node:assert/strict'
import { existsSync, readFileSync, renameSync, rmSync, truncateSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import test from 'node:test'
import { verifyOptions } from '../store/fixtures.ts'
import { atEnd } from '../support/at-end.ts'
import { createHeld } from '../support/held.ts'
import { holdStore } from '../support/hold-store.ts'
import { answers } from '../support/native.ts'
import { openStore } from '../support/operator.ts'
import { openRaw } from '../support/raw.ts'
import { head, startRawUpstream, whole, writeChunk } from '../support/raw-upstream.ts'
import { anyPorts, configFile, model, newFolder, type Served, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

/* What attackers and accidents did to the running program (docs/review.md), tried on the program as it is started.
 */

const isLinux = process.platform === 'linux'

/** A folder with a store in it, and a key of an account with credit. */
function newStore(): { folder: string; path: string; key: string } {
  const folder = newFolder()
  const path = join(folder, 'triwire.db')
  const store = openStore(path)
  store.createAccount('one', 10n ** 12n)
  const { key } = store.createKey('one')
  store.close()
  return { folder, path, key }
}

async function ask(running: Served, key: string, more: Record<string, unknown> = {}): Promise<Response> {
  return fetch(`${await running.url()}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'plain', messages: [{ role: 'user', content: 'Hi' }], ...more }),
  })
}

async function modelsOf(running: Served): Promise<string[]> {
  const list = (await (await fetch(`${await running.url()}/v1/models`)).json()) as { data: { id: string }[] }
  return list.data.map(({ id }) => id)
}

test('B3 U14 an upstream removed by a reload that resets its connection serves the retry or is a 502, and the server goes on', async () => {
  const upstream = await startRawUpstream()
  const { folder, key } = newStore()
  const two = { gone: upstream.url, left: upstream.url }
  const running = serve(['--config', configFile(folder, model('plain', 'gone'), { upstreams: two })], folder)
  let reloads = 0
  const resetAfterReload = async (socket: Socket) => {
    configFile(folder, model('plain', 'left'), { upstreams: { left: upstream.url } })
    running.child.kill('SIGHUP')
    await running.saw('"config_reloaded"', ++reloads)
    socket.resetAndDestroy()
  }
  const good = whole(answers.chat)
  upstream.play(good, resetAfterReload, good)
  assert.equal((await ask(running, key)).status, 200)
  // A connection that has not rested yet does not serve again (Y14): the request is then on a new one, and not repeated.
  assert.equal((await ask(running, key)).status, upstream.requests.length === 3 ? 200 : 502)

  configFile(folder, model('plain', 'gone'), { upstreams: two })
  running.child.kill('SIGHUP')
  await running.saw('"config_reloaded"', ++reloads)
  upstream.play(good, resetAfterReload, (socket) => void socket.resetAndDestroy())
  assert.equal((await ask(running, key)).status, 200)
  assert.equal((await ask(running, key)).status, 502)
  upstream.play(good)
  assert.equal((await ask(running, key)).status, 200)
  assert.doesNotMatch(running.stderr(), /"(uncaught|bug)"/)
  running.child.kill('SIGINT')
  assert.equal(await running.exited, 0)
})

test('B3 X10 after an uncaught error the drain takes seconds, whatever drain_deadline says', async () => {
  if (!isLinux) return
  const upstream = await startRawUpstream()
  const { folder, key } = newStore()
  const options = { upstreams: { sim: upstream.url }, deadline: '1h' }
  // As a bug of ours would, outside of every request.
  const bug = "process.on('SIGUSR2', () => { throw new Error('canary-bug') })"
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(bug)}` }
  const running = serve(['--config', configFile(folder, model('plain'), options)], folder, { env })
  upstream.play((socket) => {
    socket.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }))
    const choices = [{ index: 0, delta: { role: 'assistant', content: 'Hi' }, finish_reason: null }]
    const first = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'up', choices }
    writeChunk(socket, `data: ${JSON.stringify(first)}\n\n`)
  })
  const stream = await ask(running, key, { stream: true })
  running.child.kill('SIGUSR2')
  await assert.rejects(async () => {
    const text = await stream.text()
    if (!text.includes('[DONE]')) throw new Error(`cut: ${text}`)
  })
  assert.equal(await running.exited, 1)
  assert.match(running.stderr(), /"uncaught".*canary-bug/)
  assert.match(running.stderr(), /"outcome":"shutdown"/)
})

for (const [how, args] of [
  ['named', ['--config', 'triwire.yaml']],
  ['found in the folder', []],
] as const) {
  test(`B4 X10 a reload that does not find the file read at the start (${how}) changes nothing`, async () => {
    const folder = newFolder()
    const path = configFile(folder, model('mine'))
    const running = serve(args, folder)
    assert.deepEqual(await modelsOf(running), ['mine'])
    renameSync(path, `${path}.away`)
    running.child.kill('SIGHUP')
    await running.saw('"config_rejected"')
    assert.match(running.stderr(), /cannot read the configuration file .*triwire\.yaml \(ENOENT\)/)
    assert.deepEqual(await modelsOf(running), ['mine'])
    renameSync(`${path}.away`, path)
    running.child.kill('SIGHUP')
    await running.saw('"config_reloaded"')
    assert.deepEqual(await modelsOf(running), ['mine'])
  })
}

for (const [how, length] of [
  ['emptied', 0],
  ['cut before its catalog', 'listen: 127.0.0.1:0'.length],
] as const) {
  test(`B4 X10 a reload of a file that was ${how} does not replace the service by the demo`, async () => {
    const folder = newFolder()
    const path = configFile(folder, model('mine'))
    const running = serve(['--config', path], folder)
    assert.deepEqual(await modelsOf(running), ['mine'])
    truncateSync(path, length)
    running.child.kill('SIGHUP')
    await running.saw('"config_rejected"')
    assert.match(running.stderr(), /has no catalog any more: put it back; only a restart serves the built-in one/)
    assert.deepEqual(await modelsOf(running), ['mine'])
  })
}

test('B4 X10 a server that was started without a file reads none at a reload, and says which command does', async () => {
  const folder = newFolder()
  const running = serve(anyPorts, folder)
  const before = await modelsOf(running)
  configFile(folder, model('mine'))
  running.child.kill('SIGHUP')
  await running.saw('"config_rejected"')
  assert.match(running.stderr(), /triwire\.yaml was not there when the server started: restart it/)
  assert.deepEqual(await modelsOf(running), before)
})

test('B3: signals soon after a reload lead to one more reload, with the file as it was at the last of them', async () => {
  const folder = newFolder()
  const running = serve(['--config', configFile(folder, model('first'))], folder)
  assert.deepEqual(await modelsOf(running), ['first'])
  const started = performance.now()
  for (const id of ['second', 'third', 'fourth', 'last']) {
    configFile(folder, model(id))
    running.child.kill('SIGHUP')
    // Answered behind the signal, which has been heard then.
    await modelsOf(running)
  }
  await until(async () => (await modelsOf(running))[0] === 'last', 'the last one is in force')
  // Its line may come behind the answer that shows it.
  await running.saw('"config_reloaded"')
  // As many as begin a second after each other in that time: on a busy machine it may be more than two.
  const most = 1 + Math.floor((performance.now() - started) / 1_000)
  const told = running.stderr().split('"config_reloaded"').length - 1
  assert.ok(told >= 1 && told <= most, `${told} reloads, at most ${most}`)
  configFile(folder, 'catalog: nothing')
  running.child.kill('SIGHUP')
  await running.saw('"config_rejected"')
  assert.deepEqual(await modelsOf(running), ['last'])
  running.child.kill('SIGINT')
  assert.equal(await running.exited, 0)
})

test('B24 X11 a SIGHUP during the start is kept until the start has ended', async () => {
  const { folder, path } = newStore()
  rmSync(`${path}.lock`, { force: true })
  const running = serve(['--config', configFile(folder, model('mine'))], folder)
  // The lock is taken long before it listens.
  await until(() => existsSync(`${path}.lock`))
  running.child.kill('SIGHUP')
  await running.saw('"config_reloaded"')
  assert.deepEqual(await modelsOf(running), ['mine'])
})

test('B24 F-P5 a SIGTERM during the start ends it normally', async () => {
  const { folder, path } = newStore()
  const running = serve(['--config', configFile(folder, model('mine'))], folder)
  await until(() => existsSync(`${path}.lock`))
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  assert.match(running.stderr(), /"stopped"/)
})

test('B24 F-P11 a server without free descriptors reports it, goes on, and reports when it has some again', async () => {
  if (!isLinux) return
  const upstream = await startRawUpstream()
  upstream.play(whole(answers.chat, 200, { connection: 'close' }))
  const { folder, key } = newStore()
  const config = configFile(folder, model('plain'), { upstreams: { sim: upstream.url } })
  const running = serve(['--config', config], folder, { under: 'ulimit -n 80' })
  const open = await openRaw(await running.url())
  const body = JSON.stringify({ model: 'plain', messages: [] })
  const request = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`
  const statuses = async (count: number) => (await open.read({ answers: count })).answers.map(({ status }) => status)
  open.write(request)
  assert.deepEqual(await statuses(1), [200])
  const { hostname, port } = new URL(await running.url())
  await running.saw('"descriptors_few","limit":80,"needed":60100,"connections_max":20000')
  const sockets = Array.from({ length: 120 }, () => connect(Number(port), hostname).on('error', () => {}))
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
  })
  await running.saw('"descriptors_exhausted","code":"EMFILE","limit":80')
  // Who is connected is told; it is no fault of the upstream's.
  open.write(request)
  assert.deepEqual(await statuses(2), [200, 502])
  await running.saw('"cause":"no_descriptors"')
  for (const socket of sockets) socket.destroy()
  await running.saw('"descriptors_back"')
  open.write(request)
  assert.deepEqual(await statuses(3), [200, 502, 200])
  assert.equal((await ask(running, key)).status, 200)
  running.child.kill('SIGINT')
  assert.equal(await running.exited, 0)
})

test('B14 SIGTERM ends the server while another process holds the database; nothing is lost or doubled', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole(answers.chat))
  const { folder, path, key } = newStore()
  const config = configFile(folder, model('plain'), { upstreams: { sim: upstream.url }, settle: '300ms' })
  const running = serve(['--config', config], folder)
  const before = await ask(running, key)
  const holder = holdStore(path)
  atEnd(() => holder.close())
  // They are answered together: who comes when another has waited in vain is not let in.
  upstream.play(async (socket, request) => {
    await until(() => upstream.requests.length === 8, 'all eight are let in')
    await whole(answers.chat)(socket, request)
  })
  const held = await Promise.all(Array.from({ length: 8 }, () => ask(running, key)))
  const paid = [before, ...held].map((response) => {
    assert.equal(response.status, 200)
    return response.headers.get('x-request-id')!
  })
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  holder.exec('ROLLBACK')

  const next = serve(['--config', config], folder)
  await next.saw('"crash_recovery"')
  await next.saw('"listening"')
  const store = openStore(path)
  atEnd(() => store.close())
  const booked = [...store.eachEntry()].flatMap(({ bill }) => (bill ? [bill.requestId] : []))
  assert.deepEqual(booked.sort(), paid.sort())
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B7 F-S4 a server on a store that is read-only starts, is not ready, asks no model, and ends on request', async () => {
  if (!isLinux) return
  const upstream = await startRawUpstream()
  const { folder, path, key } = newStore()
  const config = configFile(folder, model('plain'), { upstreams: { sim: upstream.url }, settle: '300ms' })
  // Its log is there and open, so that nothing has to be made: only what is written behind its first KiB fails.
  const store = openStore(path)
  atEnd(() => store.close())
  store.createKey('one')
  const running = serve(['--config', config], folder, { under: 'ulimit -f 2' })
  assert.equal((await fetch(`${await running.adminUrl()}/readyz`)).status, 503)
  assert.equal((await ask(running, key)).status, 500)
  assert.equal(upstream.requests.length, 0)
  await running.saw('"ledger_trouble"')
  running.child.kill('SIGTERM')
  assert.equal(await running.exited, 0)
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B15 X11 a log removed under a running server: not ready, the stream ends whole and paid, exit 1, nothing lost', async () => {
  const upstream = await startRawUpstream()
  const { folder, path, key } = newStore()
  const options = { upstreams: { sim: upstream.url }, deadline: '1h' }
  const config = configFile(folder, model('plain'), options)
  const running = serve(['--config', config], folder)
  const ready = async () => (await fetch(`${await running.adminUrl()}/readyz`)).status
  upstream.play(whole(answers.chat))
  const before = await ask(running, key)
  const { answer, letGo } = createHeld()
  upstream.play(answer)
  const stream = await ask(running, key, { stream: true })
  assert.equal(await ready(), 200)
  rmSync(`${path}-wal`)
  await running.saw('"ledger_lost"')
  assert.equal(await ready(), 503)
  letGo()
  assert.match(await stream.text(), /data: \[DONE\]\n\n$/)
  assert.equal(await running.exited, 1)
  assert.match(running.stderr(), /triwire\.db-wal was removed or replaced while the server runs/)

  const next = serve(['--config', config], folder)
  await next.saw('"listening"')
  const store = openStore(path)
  atEnd(() => store.close())
  const paid = [before, stream].map((response) => response.headers.get('x-request-id')!)
  const booked = [...store.eachEntry()].flatMap(({ bill }) => (bill ? [bill.requestId] : []))
  assert.deepEqual(booked.sort(), paid.sort())
  assert.deepEqual(store.verify(verifyOptions), [])
})

test('B17 SIGUSR1 opens no debugger, and core dumps are disabled', async () => {
  if (!isLinux) return
  const running = serve(anyPorts)
  await running.saw('"listening"')
  running.child.kill('SIGUSR1')
  running.child.kill('SIGHUP')
  await running.saw('"config_reloaded"')
  assert.equal((await modelsOf(running)).length > 0, true)
  assert.equal(readFileSync(`/proc/${running.child.pid}/coredump_filter`, 'utf8').trim(), '00000000')
  running.child.kill('SIGINT')
  assert.equal(await running.exited, 0)
  assert.doesNotMatch(running.stderr(), /debugger|inspector/i)
})
