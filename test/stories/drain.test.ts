import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { createHeld } from '../support/held.ts'
import { asks, type Native, paths, startNative } from '../support/native.ts'
import { openRaw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'

type Wire = (typeof clientWireNames)[number]

const end = {
  messages: /event: message_stop\ndata: [^\n]+\n\n$/,
  chat: /data: \[DONE\]\n\n$/,
  responses: /event: response.completed\ndata: [^\n]+\n\n$/,
}

/** What each wire says of an answer that the service itself ended. */
const cut = {
  messages: /event: error\ndata: \{"type":"error","error":\{"type":"api_error",/,
  chat: /data: \{"error":.*"code":"internal_error"\}\}\n\n$/,
  responses: /event: response\.failed\n.*"code":"server_error"/,
}

/** A gateway whose streams show something and then wait until they are let go on. */
async function startHeld(): Promise<Native & { letGo(): void }> {
  const native = await startNative()
  const { answer, letGo } = createHeld()
  native.upstream.play(answer)
  return { ...native, letGo }
}

function ask({ gateway }: Native, wire: Wire, model = `native-${wire}`): Promise<Response> {
  return gateway.post(paths[wire], { ...asks[wire], model, stream: true })
}

async function isReady(gateway: TestGateway): Promise<number> {
  return (await fetch(`${gateway.adminUrl}/readyz`)).status
}

/** Until nothing listens any more. */
async function untilClosed(gateway: TestGateway): Promise<void> {
  await until(async () => {
    try {
      const { socket } = await openRaw(gateway.url)
      socket.destroy()
      return false
    } catch (error) {
      // What was about to be accepted is reset.
      assert.match(String(error), /ECONNREFUSED|ECONNRESET/)
      return String(error).includes('ECONNREFUSED')
    }
  }, 'the listener closes')
}

test('F-P2 a drain: not ready, requests served during the delay with connection: close, then none; every stream ends whole', async () => {
  const native = await startHeld()
  const { gateway } = native
  assert.equal(await isReady(gateway), 200)
  const running = await Promise.all(clientWireNames.map((wire) => ask(native, wire)))
  await openRaw(gateway.url)
  const drained = gateway.server.drain(60_000, 600_000)
  assert.equal(await isReady(gateway), 503)
  const late = await fetch(`${gateway.url}/v1/models`)
  assert.deepEqual([late.status, late.headers.get('connection')], [200, 'close'])
  await late.arrayBuffer()
  const lateStream = await ask(native, 'chat')
  assert.deepEqual([lateStream.status, lateStream.headers.get('connection')], [200, 'close'])
  gateway.advance(60_000)
  await untilClosed(gateway)
  native.letGo()
  const texts = await Promise.all([...running, lateStream].map((response) => response.text()))
  for (const [i, wire] of [...clientWireNames, 'chat' as const].entries()) assert.match(texts[i]!, end[wire])
  await drained
  for (const response of [...running, lateStream]) {
    const id = response.headers.get('x-request-id')!
    assert.equal((await gateway.logOf(id))['outcome'], 'ok')
    assert.equal(gateway.store.findEntry(id)?.bill?.usageSource, 'final')
  }
  await native.close()
})

test('C12: a drain does not wait for usage figures: answers of clients that left are ended and billed by their evidence', async () => {
  const native = await startHeld()
  const { gateway } = native
  const leaving = new AbortController()
  const response = await fetch(gateway.url + paths.chat, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify({ ...asks.chat, stream: true }),
    signal: leaving.signal,
  })
  leaving.abort()
  const { readers, deliveries } = gateway.server.gateway
  await until(() => readers.count > 0)
  await gateway.server.drain(0, 600_000)
  assert.deepEqual([readers.count, deliveries.size], [0, 0])
  const id = response.headers.get('x-request-id')!
  const { bill } = gateway.store.findEntry(id)!
  assert.deepEqual([bill!.outcome, bill!.usageSource], ['client_abort', 'estimated'])
  await native.close()
})

for (const [title, hurry] of [
  ['F-P3 at the deadline of a drain', false],
  ['F-P4 at a second signal', true],
] as const) {
  test(`${title} streams are cut without a terminator, with the real cause (SCA-11), and billed once, durably`, async () => {
    const native = await startHeld()
    const { gateway } = native
    const pairs = clientWireNames.flatMap((wire) => clientWireNames.map((model) => [wire, `native-${model}`] as const))
    const running = await Promise.all(pairs.map(([wire, model]) => ask(native, wire, model)))
    const drained = gateway.server.drain(hurry ? 5_000_000 : 0, 60_000)
    const texts = Promise.all(running.map((response) => response.text()))
    if (hurry) gateway.server.hurry()
    else {
      await untilClosed(gateway)
      gateway.advance(59_000)
      assert.equal(gateway.server.gateway.deliveries.size, pairs.length)
      gateway.advance(1_000)
    }
    await drained
    for (const [i, text] of (await texts).entries()) {
      const [wire] = pairs[i]!
      assert.doesNotMatch(text, end[wire])
      assert.match(text, cut[wire])
      const id = running[i]!.headers.get('x-request-id')!
      // SCA-11: the client and the log are given the real cause, and the model is not blamed.
      assert.match(text, /The service is shutting down and ended this answer/)
      assert.doesNotMatch(text, /The model|upstream_error/)
      const { outcome, cause, code } = await gateway.logOf(id)
      assert.deepEqual([outcome, cause, code], ['shutdown', 'shutdown', 'internal_error'])
      assert.equal(gateway.store.findEntry(id)?.bill?.outcome, 'shutdown')
    }
    assert.equal((await gateway.logWith({ event: 'drain_cut' }))['live'], pairs.length)
    await native.close()
  })
}

test('F-P2 a large JSON answer that its client is still reading is not cut when a drain ends', async () => {
  const gateway = await startTestGateway({ models: [testModel('large', 'chat', { upstream_model: 'script:large' })] })
  gateway.simulator.script('large', { reply: 'canary-large '.repeat(600_000) })
  const body = JSON.stringify({ model: 'large', messages: [{ role: 'user', content: 'canary-drain' }] })
  const { socket, write, read } = await openRaw(gateway.url)
  socket.pause()
  write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  await gateway.logWith({ outcome: 'ok' })
  const drained = gateway.server.drain(0, 5_000_000)
  await untilClosed(gateway)
  socket.resume()
  const { answers } = await read({ answers: 1 })
  assert.deepEqual([answers[0]!.status, answers[0]!.isWhole], [200, true])
  socket.destroy()
  await drained
})
