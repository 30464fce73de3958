import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { createHeld } from '../support/held.ts'
import { answers, asks, paths, startNative } from '../support/native.ts'
import { raw } from '../support/raw.ts'
import { whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/*
 * What a reload leaves alone: what runs keeps the configuration it began with, and what was counted stays counted.
 */

const end = { messages: /event: message_stop\n/, chat: /data: \[DONE\]\n/, responses: /event: response\.completed\n/ }

test('U14 a reload lets running answers end on their connections, and closes these afterwards', async () => {
  const native = await startNative()
  const { gateway, upstream } = native
  const { answer, letGo } = createHeld()
  let tell = () => {}
  upstream.play((socket, asked) => {
    if (asked.json()['stream']) return answer(socket, asked)
    tell = () => void whole(answers.chat)(socket, asked)
  })
  const streams = await Promise.all(
    clientWireNames.map((wire) => gateway.post(paths[wire], { ...asks[wire], stream: true })),
  )
  const waiting = native.ask('chat')
  await upstream.untilHeard(4)
  gateway.reload({ timeouts: { idle: '90s' } })
  assert.equal(upstream.closed, 0)
  letGo()
  tell()
  for (const [i, wire] of clientWireNames.entries()) assert.match(await streams[i]!.text(), end[wire])
  assert.equal((await waiting).status, 200)
  await until(() => upstream.closed === 4, 'the old connections close')
  // Whoever asks now comes on a connection of the new configuration.
  const before = upstream.connections
  upstream.play(whole(answers.chat))
  assert.equal((await native.ask('chat')).status, 200)
  assert.deepEqual([upstream.connections, upstream.requests[0]!.connection], [before + 1, before + 1])
  await native.close()
})

test('U14 a running request keeps its deadlines after a reload; the next one has the new ones', async () => {
  const native = await startNative()
  const { gateway, upstream } = native
  const running = () => gateway.server.gateway.deliveries.size
  upstream.play(() => {})
  const old = native.ask('chat', { stream: true })
  await upstream.untilHeard()
  gateway.reload({ timeouts: { first_byte_stream: '10s' } })
  gateway.advance(20_000)
  assert.equal(running(), 1)
  const next = native.ask('chat', { stream: true })
  await upstream.untilHeard(2)
  gateway.advance(10_000)
  assert.equal((await next).status, 502)
  assert.equal(running(), 1)
  gateway.advance(269_000)
  assert.equal(running(), 1)
  gateway.advance(1_000)
  assert.equal((await old).status, 502)
  await native.close()
})

test('U14 a running answer keeps its limit of silence after a reload', async () => {
  const native = await startNative()
  const { gateway, upstream } = native
  const { answer, letGo } = createHeld()
  upstream.play(answer)
  const response = await gateway.post(paths.chat, { ...asks.chat, stream: true })
  await upstream.untilHeard()
  gateway.reload({ timeouts: { idle: '10s', ping: '5s' } })
  gateway.advance(60_000)
  letGo()
  assert.match(await response.text(), end.chat)
  await native.close()
})

test('reliability §4 a reload empties no window, and applies a changed limit to what is counted', async () => {
  const limits = { requests_per_minute: 2, failed_auth_per_minute: 2 }
  const native = await startNative({ config: { limits } })
  const { gateway, upstream } = native
  upstream.play(whole(answers.chat))
  const bad = { authorization: 'Bearer sk-tri-bad' }
  const statuses = async (headers = {}) => [
    (await native.ask('chat', {}, headers)).status,
    (await native.ask('chat', {}, headers)).status,
  ]
  assert.deepEqual(await statuses(), [200, 200])
  assert.deepEqual(await statuses(bad), [401, 401])
  gateway.reload({ limits, timeouts: { idle: '90s' } })
  assert.deepEqual(await statuses(), [429, 429])
  assert.deepEqual(await statuses(bad), [429, 429])
  gateway.reload({ limits: { ...limits, requests_per_minute: 3 } })
  assert.deepEqual(await statuses(), [200, 429])
  assert.deepEqual(await statuses(bad), [429, 429])
  gateway.reload({ limits: { requests_per_minute: 3, failed_auth_per_minute: 3 } })
  assert.deepEqual(await statuses(bad), [401, 429])
  await native.close()
})

test('U14 a reload changes how long the rest of every refused body is read', async () => {
  const { gateway, close } = await startNative({ config: { timeouts: { linger: '1h' } } })
  gateway.reload({ timeouts: { linger: '1ms' } })
  for (const refused of ['POST /nowhere HTTP/1.1', 'POST /v1/messages HTTP/1.1\r\nexpect: 200-maybe']) {
    const { isClosed } = await raw(gateway.url, `${refused}\r\nhost: x\r\ncontent-length: 9\r\n\r\n`)
    assert.equal(isClosed, true)
  }
  await close()
})
