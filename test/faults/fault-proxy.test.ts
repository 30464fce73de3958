import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import test from 'node:test'
import { type Faults, startFaultProxy } from '../support/fault-proxy.ts'
import { listen } from '../support/listen.ts'
import { openRaw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'

/* The network that other tests are tried on. Its time is the test's: what it waits is noted, and over at once. */

type Heard = { text: string; pieces: number[]; ended: boolean; error: string | undefined; closed: boolean }

/** A client and a server with the proxy between them, and what each of them hears. */
async function between(faults: Faults) {
  const servers: Socket[] = []
  const at = { server: listenTo(), client: listenTo() }
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    servers.push(socket)
    hear(socket, at.server)
  })
  const waits: number[] = []
  const proxy = await startFaultProxy(`http://127.0.0.1:${await listen(server)}`, async (ms) => {
    waits.push(ms)
    // What is written by then arrives as a piece of its own.
    const { up, down } = proxy.passed
    await until(() => at.server.text.length === up && at.client.text.length === down)
  })
  proxy.play(faults)
  const { socket: client } = await openRaw(proxy.url)
  hear(client, at.client)
  if (!faults.isHalfOpen) await until(() => servers.length === 1)
  return { proxy, client, server: servers[0]!, at, waits }
}

const listenTo = (): Heard => ({ text: '', pieces: [], ended: false, error: undefined, closed: false })

function hear(socket: Socket, heard: Heard): void {
  socket.on('data', (chunk: Buffer) => {
    heard.text += chunk
    heard.pieces.push(chunk.length)
  })
  socket.on('end', () => {
    heard.ended = true
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    heard.error = error.code
  })
  socket.on('close', () => {
    heard.closed = true
  })
}

test('the fault proxy without faults passes bytes and ends in both directions', async () => {
  const { client, server, at, proxy } = await between({})
  client.write('ask')
  await until(() => at.server.text === 'ask')
  server.write('answer')
  await until(() => at.client.text === 'answer')
  client.end()
  await until(() => at.server.ended)
  assert.equal(at.client.ended, false, 'each direction ends by itself')
  server.end()
  await until(() => at.client.ended && at.client.closed)
  assert.deepEqual(proxy.passed, { up: 3, down: 6 })
  await until(() => proxy.open === 0)
})

test('the fault proxy forwards a reset of one end to the other', async () => {
  const { client, at } = await between({})
  client.resetAndDestroy()
  await until(() => at.server.error === 'ECONNRESET')
})

test('the fault proxy slices one direction and delays each piece', async () => {
  const { client, at, waits } = await between({ up: { slice: 2, latencyMs: 30 } })
  client.write('abcde')
  await until(() => at.server.text === 'abcde')
  assert.deepEqual(waits, [30, 30, 30])
  assert.deepEqual(at.server.pieces, [2, 2, 1])
})

test('the fault proxy limits the bytes a second of one direction, and leaves the other unchanged', async () => {
  const { client, server, at, waits } = await between({ down: { bytesPerSecond: 1_000 } })
  client.write('x'.repeat(3_000))
  await until(() => at.server.text.length === 3_000)
  assert.deepEqual(waits, [])
  server.write('x'.repeat(2_500))
  await until(() => at.client.text.length === 2_500)
  assert.equal(
    waits.reduce((sum, ms) => sum + ms, 0),
    2_500,
  )
})

for (const at of [0, 3]) {
  test(`the fault proxy resets both ends at byte ${at}`, async () => {
    const { client, server, at: heard } = await between({ down: { resetAt: at } })
    client.write('ask')
    await until(() => heard.server.text === 'ask')
    server.write('answer')
    await until(() => heard.client.error === 'ECONNRESET' && heard.server.error === 'ECONNRESET')
    assert.ok('ans'.slice(0, at).startsWith(heard.client.text))
  })

  test(`the fault proxy closes both sides normally at byte ${at}`, async () => {
    const { client, server, at: heard } = await between({ down: { cutAt: at } })
    client.write('ask')
    await until(() => heard.server.text === 'ask')
    server.write('answer')
    await until(() => heard.client.ended && heard.server.ended)
    assert.deepEqual([heard.client.text, heard.client.error], ['ans'.slice(0, at), undefined])
  })

  test(`the fault proxy stalls at byte ${at}: nothing passes, and nothing ends`, async () => {
    const { client, server, at: heard } = await between({ down: { stallAt: at } })
    client.write('ask')
    await until(() => heard.server.text === 'ask')
    server.write('answer')
    server.end()
    await until(() => heard.client.text.length === at)
    // The other direction is alive, so that time has passed.
    client.write('more')
    await until(() => heard.server.text === 'askmore')
    assert.deepEqual([heard.client.text, heard.client.ended], ['ans'.slice(0, at), false])
  })
}

test('the fault proxy is half-open: it accepts a connection and never answers', async () => {
  const { client, at, proxy } = await between({ isHalfOpen: true })
  client.write('ask')
  await until(() => client.bytesWritten === 3)
  const { socket: second } = await openRaw(proxy.url)
  second.write('ask')
  await until(() => proxy.connections === 2)
  assert.deepEqual([at.client.text, at.client.ended, proxy.passed], ['', false, { up: 0, down: 0 }])
})

for (const how of ['end', 'resetAndDestroy'] as const) {
  test(`the fault proxy swallows the end of a side: ${how}`, async () => {
    const { client, server, at } = await between({ up: { swallowsEnd: true } })
    client.write('ask')
    await until(() => at.server.text === 'ask')
    client[how]()
    server.write('answer')
    if (how === 'end') await until(() => at.client.text === 'answer')
    else await until(() => at.client.closed)
    assert.deepEqual([at.server.ended, at.server.error], [false, undefined])
  })
}

test('the fault proxy gives each connection its next fault, and repeats the last one', async () => {
  const { proxy } = await between({})
  proxy.play({ down: { cutAt: 0 } }, { isHalfOpen: true })
  const [first, second, third] = [await openRaw(proxy.url), await openRaw(proxy.url), await openRaw(proxy.url)]
  for (const { socket } of [first, second, third]) socket.write('x')
  await until(() => proxy.connections === 4 && proxy.passed.up === 1)
  first.socket.resetAndDestroy()
  await until(() => proxy.open === 3)
  proxy.drop()
  await until(() => proxy.open === 0)
})
