import assert from 'node:assert/strict'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { openRaw } from '../support/raw.ts'

async function startSlow(delayMs: number): Promise<TestGateway> {
  const gateway = await startTestGateway({
    models: (['messages', 'chat', 'responses'] as const).map((wire) =>
      testModel(`slow-${wire}`, wire, { upstream_model: 'script:slow' }),
    ),
  })
  gateway.simulator.script('slow', { reply: 'one two three four five six', delay_ms: delayMs })
  return gateway
}

const messages = [{ role: 'user', content: 'canary-drain' }]
const asked = {
  messages: { path: '/v1/messages', body: { max_tokens: 99, messages }, end: /event: message_stop\ndata: [^\n]+\n\n$/ },
  chat: { path: '/v1/chat/completions', body: { messages }, end: /data: \[DONE\]\n\n$/ },
  responses: {
    path: '/v1/responses',
    body: { input: 'canary-drain' },
    end: /event: response.completed\ndata: [^\n]+\n\n$/,
  },
} as const
type Wire = keyof typeof asked
const wires = Object.keys(asked) as Wire[]

function ask(gateway: TestGateway, wire: Wire): Promise<Response> {
  return gateway.post(asked[wire].path, { ...asked[wire].body, model: `slow-${wire}`, stream: true })
}

async function isReady(gateway: TestGateway): Promise<number> {
  return (await fetch(`${gateway.adminUrl}/readyz`)).status
}

async function closeRest(gateway: TestGateway): Promise<void> {
  await gateway.ledger.close()
  gateway.store.close()
  await gateway.simulator.close()
}

test('F-P2 a drain: not ready, new requests served during the delay with connection: close, then none; every stream ends whole', async () => {
  const gateway = await startSlow(60)
  assert.equal(await isReady(gateway), 200)
  const running = await Promise.all(wires.map((wire) => ask(gateway, wire)))
  const idle = await openRaw(gateway.url)
  const drained = gateway.server.drain(150, 5_000)
  assert.equal(await isReady(gateway), 503)
  const late = await fetch(`${gateway.url}/v1/models`)
  assert.deepEqual([late.status, late.headers.get('connection')], [200, 'close'])
  await late.arrayBuffer()
  const lateStream = await ask(gateway, 'chat')
  assert.deepEqual([lateStream.status, lateStream.headers.get('connection')], [200, 'close'])
  await sleep(200)
  await assert.rejects(openRaw(gateway.url), /ECONNREFUSED/)
  const texts = await Promise.all([...running, lateStream].map((response) => response.text()))
  for (const [i, wire] of [...wires, 'chat' as const].entries()) assert.match(texts[i]!, asked[wire].end)
  await drained
  for (const response of [...running, lateStream]) {
    const id = response.headers.get('x-request-id')!
    assert.equal((await gateway.logOf(id))['outcome'], 'ok')
    assert.equal(gateway.store.findEntry(id)?.bill?.usageSource, 'final')
  }
  idle.socket.destroy()
  await closeRest(gateway)
})

for (const [title, hurry] of [
  ['F-P3 at the deadline of a drain', false],
  ['F-P4 at a second signal', true],
] as const) {
  test(`${title} streams are cut without a terminator and billed once, durably`, async () => {
    const gateway = await startSlow(400)
    const running = await Promise.all(wires.map((wire) => ask(gateway, wire)))
    const drained = gateway.server.drain(hurry ? 5_000 : 0, hurry ? 60_000 : 100)
    const texts = Promise.all(running.map((response) => response.text()))
    if (hurry) {
      await sleep(50)
      gateway.server.hurry()
    }
    const started = performance.now()
    await drained
    assert.ok(performance.now() - started < 5_000)
    for (const [i, text] of (await texts).entries()) {
      const wire = wires[i]!
      assert.doesNotMatch(text, asked[wire].end)
      assert.match(text, wire === 'responses' ? /event: response\.failed/ : /"error"/)
      const id = running[i]!.headers.get('x-request-id')!
      assert.equal((await gateway.logOf(id))['outcome'], 'shutdown')
      assert.equal(gateway.store.findEntry(id)?.bill?.outcome, 'shutdown')
    }
    const events = (await gateway.logLines()).map((line) => line['event'])
    assert.ok(events.includes('drain_cut'))
    await closeRest(gateway)
  })
}

test('F-P2 a large JSON answer that its client is still reading is not cut by the end of a drain', async () => {
  const gateway = await startTestGateway({ models: [testModel('large', 'chat', { upstream_model: 'script:large' })] })
  gateway.simulator.script('large', { reply: 'canary-large '.repeat(600_000) })
  const body = JSON.stringify({ model: 'large', messages })
  const { socket, write, read } = await openRaw(gateway.url)
  socket.pause()
  write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-api-key: ${gateway.key}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  )
  for (let i = 0; i < 200 && (await gateway.logLines()).every((line) => line['outcome'] !== 'ok'); i++) await sleep(10)
  const drained = gateway.server.drain(0, 5_000)
  await sleep(100)
  socket.resume()
  const { answers } = await read({ answers: 1 })
  assert.deepEqual([answers[0]!.status, answers[0]!.isWhole], [200, true])
  socket.destroy()
  await drained
  await closeRest(gateway)
})
