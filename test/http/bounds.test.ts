import assert from 'node:assert/strict'
import test from 'node:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { frames } from '../support/native.ts'
import { openRaw } from '../support/raw.ts'
import { startRawUpstream, stream } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

const counter = '/v1/messages/count_tokens'

/** A request to a path of which all but the last byte of the body has come. */
async function stopShort(gateway: TestGateway, path: string, bytes: number) {
  const connection = await openRaw(gateway.url)
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.key}\r\n`
  connection.write(`${head}content-length: ${bytes + 1}\r\n\r\n${' '.repeat(bytes)}`)
  return connection
}

test('R18 B6 an account may run two count_tokens requests at a time; a third gets 429 with retry-after 1, and costs nothing', async () => {
  const gateway = await startTestGateway()
  const body = { model: 'native-messages', messages: [{ role: 'user', content: 'Hi' }] }
  const slow = [await stopShort(gateway, counter, 100), await stopShort(gateway, counter, 100)]
  await until(() => gateway.server.gateway.bodies.held === 200, 'both bodies have come but for a byte')
  const third = await gateway.post(counter, body)
  assert.deepEqual(
    [third.status, third.headers.get('retry-after'), third.headers.get('x-should-retry')],
    [429, '1', 'true'],
  )
  assert.equal(((await third.json()) as { error: { type: string } }).error.type, 'rate_limit_error')
  // Whoever pays is served all the same.
  const served = await gateway.post('/v1/messages', { ...body, max_tokens: 9 })
  assert.equal(served.status, 200)
  slow[0]!.write('}')
  assert.equal((await slow[0]!.read({ answers: 1 })).answers[0]?.status, 400)
  assert.equal((await gateway.post(counter, body)).status, 200)
  const debits = gateway.store.listEntries({ limit: 9 }).filter(({ kind }) => kind === 'debit')
  assert.equal(debits.length, 1)
  for (const { socket } of slow) socket.destroy()
  await gateway.close()
})

test('R18 B6 while the event loop is strained count_tokens gets a 429, and inference is served', async () => {
  const gateway = await startTestGateway()
  const body = { model: 'native-messages', messages: [{ role: 'user', content: 'Hi' }] }
  gateway.server.gateway.isStrained = () => true
  const counted = await gateway.post(counter, body)
  assert.deepEqual([counted.status, counted.headers.get('retry-after')], [429, '1'])
  assert.equal((await gateway.post('/v1/messages', { ...body, max_tokens: 9 })).status, 200)
  await gateway.close()
})

test('R18 B6 bodies beyond the bound of all bodies get a readable 429, and any end of a request releases what it held', async () => {
  const gateway = await startTestGateway({ bodiesBytesMax: 400_000 })
  const { bodies } = gateway.server.gateway
  const slow = await stopShort(gateway, '/v1/chat/completions', 60_000)
  await until(() => bodies.held === 60_000, 'the body has come but for a byte')
  const more = await stopShort(gateway, '/v1/chat/completions', 60_000)
  const { answers, isClosed } = await more.read()
  assert.deepEqual([answers[0]?.status, answers[0]?.headers.get('retry-after'), isClosed], [429, '1', true])
  assert.equal(bodies.held, 60_000)
  slow.socket.destroy()
  await until(() => bodies.held === 0, 'who left holds nothing')
  const ask = { model: 'native-chat', messages: [{ role: 'user', content: 'x'.repeat(50_000) }] }
  for (const stream of [false, true]) {
    assert.equal((await (await gateway.post('/v1/chat/completions', { ...ask, stream })).text()).length > 0, true)
  }
  assert.equal((await gateway.post('/v1/chat/completions', { ...ask, model: 'nobody' })).status, 404)
  assert.equal(bodies.held, 0)
  await gateway.close()
})

test('R18 a body is held until its answer begins, and not while it streams', async () => {
  const upstream = await startRawUpstream()
  const gateway = await startTestGateway({ upstreamUrl: upstream.url, bodiesBytesMax: 400_000 })
  const held = Promise.withResolvers<void>()
  upstream.play(async (socket, request) => {
    await held.promise
    await stream(frames.chat.slice(0, 2), { end: false })(socket, request)
  })
  const ask = { model: 'native-chat', stream: true, messages: [{ role: 'user', content: 'x'.repeat(50_000) }] }
  const asking = gateway.post('/v1/chat/completions', ask)
  await until(() => upstream.requests.length === 1, 'the upstream is asked')
  assert.ok(gateway.server.gateway.bodies.held > 50_000)
  held.resolve()
  const response = await asking
  assert.equal(gateway.server.gateway.bodies.held, 0)
  await response.body?.cancel()
  await gateway.close()
})
