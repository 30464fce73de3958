import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import test, { type TestContext } from 'node:test'
import { free } from '../../src/bytes/memory.ts'
import { Outgoing } from '../../src/gateway/exchange.ts'
import type { BodyShare } from '../../src/gateway/fairness/places.ts'
import { HttpCall } from '../../src/http/routes.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'
import { answers, frames, paths } from '../support/native.ts'
import { head, startRawUpstream, whole, writeChunk } from '../support/raw-upstream.ts'
import { until, within } from '../support/waiting.ts'

/*
 * Memory outside of the heap is given back when its last reader is done, and not when the collector comes by (decision 49): what is
 * freed too early would be an empty body at an upstream, what is not is a collection for every few dozen requests.
 */

const content = 'canary-large '.repeat(20_000)
const messages = [{ role: 'user', content }]

test('free empties a buffer that owns its memory; one with shared memory and a small one stay unchanged', () => {
  const own = Buffer.from('x'.repeat(100_000))
  free(own)
  assert.equal(own.length, 0)
  const slab = Buffer.alloc(100_000, 'y')
  free(slab.subarray(1))
  free(slab.subarray(0, 50_000))
  const small = Buffer.from('z'.repeat(1_000))
  free(small)
  assert.deepEqual([slab.length, slab[99_999], small.length], [100_000, 0x79, 1_000])
})

const models = [
  testModel('renamed', 'chat'),
  testModel('alike', 'chat', { upstream_model: 'alike' }),
  testModel('translated', 'messages'),
  testModel('of-two', 'chat', {
    upstream: [
      { name: 'sim', priority: 1 },
      { name: 'other', priority: 2, profile: { extends: 'openai' } },
    ],
  }),
]

/** How a request is sent on: whether what is sent was made anew, and nobody may want it made once more. */
const ways = [
  { model: 'renamed', wire: 'chat', isMadeAnew: true },
  { model: 'alike', wire: 'chat', isMadeAnew: false },
  { model: 'translated', wire: 'messages', isMadeAnew: true },
  { model: 'of-two', wire: 'chat', isMadeAnew: false },
] as const

async function start(t: TestContext) {
  const upstream = await startRawUpstream()
  const at = { base_url: upstream.url, accounts: [{ name: 'a', key: 'upstream-key-1' }] }
  const gateway = await startTestGateway({ models, upstream: () => ({ upstreams: { sim: at, other: at } }) })
  t.after(() => gateway.close().finally(() => upstream.close()))
  return { upstream, gateway, ask: (model: string) => gateway.post(paths.chat, { model, messages }) }
}

test('P1 the client’s body is freed when the upstream’s body has been made from it, which is sent whole in every way', async (t) => {
  const { upstream, ask } = await start(t)
  const { readBody } = HttpCall.prototype
  const read: Buffer[] = []
  t.mock.method(HttpCall.prototype, 'readBody', async function (this: HttpCall, share: BodyShare) {
    const bytes = await readBody.call(this, share)
    read.push(bytes)
    return bytes
  })
  for (const { model, wire, isMadeAnew } of ways) {
    let wasFreed: boolean | undefined
    upstream.play((socket, request) => {
      wasFreed = read.at(-1)!.length === 0
      return whole(answers[wire])(socket, request)
    })
    const response = await ask(model)
    assert.equal(response.status, 200, await response.text())
    assert.equal(wasFreed, isMadeAnew, model)
    assert.ok(upstream.requests.at(-1)!.body.includes(content), model)
  }
})

test('U1 a large request arrives whole at a second upstream whose profile needs a different body', async (t) => {
  const { upstream, ask } = await start(t)
  upstream.play(whole({ error: { message: 'down' } }, 500), whole(answers.chat))
  const response = await ask('of-two')
  assert.equal(response.status, 200, await response.text())
  const asked = upstream.requests.map(({ body }) => body.includes(content))
  assert.deepEqual(asked, [true, true])
})

/** What goes to upstreams from here on, as it is then. */
function watchSent(t: TestContext): Buffer[] {
  const sent: Buffer[] = []
  const { bodyFor } = Outgoing.prototype
  t.mock.method(Outgoing.prototype, 'bodyFor', function (this: Outgoing, target: Parameters<typeof bodyFor>[0]) {
    const body = bodyFor.call(this, target)
    sent.push(body)
    return body
  })
  return sent
}

test('a sent body is freed after its answer, also with several targets; one that was sent twice is left to the collector', async (t) => {
  const { upstream, ask } = await start(t)
  const sent = watchSent(t)
  for (const { model, wire } of ways) {
    upstream.play(whole(answers[wire]))
    const response = await ask(model)
    assert.equal(response.status, 200, await response.text())
    assert.equal(sent.at(-1)!.length, 0, model)
    assert.ok(upstream.requests.at(-1)!.body.includes(content), model)
  }
  upstream.play(whole({ error: { message: 'down' } }, 500), whole(answers.chat))
  assert.equal((await ask('of-two')).status, 200)
  assert.ok(sent.slice(-2).every(({ length }) => length > content.length))
})

test('the body of a streamed request is freed when the head of the answer arrives', async (t) => {
  const { upstream, gateway } = await start(t)
  const sent = watchSent(t)
  const go = Promise.withResolvers<void>()
  upstream.play(async (socket) => {
    socket.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }))
    await go.promise
    for (const frame of frames.chat) writeChunk(socket, frame)
    socket.write('0\r\n\r\n')
  })
  const response = gateway.post(paths.chat, { model: 'renamed', messages, stream: true })
  await until(() => sent[0]?.length === 0, 'it is freed')
  go.resolve()
  assert.match(await (await response).text(), /Hé/)
})

test('U1 a body whose answer begins before the upstream has read it is not freed, and arrives whole', async (t) => {
  // More than the sockets of both sides take.
  const long = 'canary-long '.repeat(1_500_000)
  const shown = frames.chat.slice(0, frames.chat.findIndex((frame) => frame.includes('Hé')) + 1)
  let got = 0
  let isWhole = false
  let reading: Socket | undefined
  const server = createServer((socket) => {
    reading = socket
    const pieces: Buffer[] = []
    socket.on('error', () => {})
    let due = 0
    socket.once('data', (piece: Buffer) => {
      socket.pause()
      const [, length] = /content-length: (\d+)/.exec(piece.toString('latin1'))!
      due = piece.indexOf('\r\n\r\n') + 4 + Number(length)
      socket.write(head(200, { 'content-type': 'text/event-stream', 'transfer-encoding': 'chunked' }))
      for (const frame of shown) writeChunk(socket, frame)
    })
    socket.on('data', (piece: Buffer) => {
      pieces.push(piece)
      got += piece.length
      if (got < due) return
      isWhole = Buffer.concat(pieces).includes(long)
      for (const frame of frames.chat.slice(shown.length)) writeChunk(socket, frame)
      socket.write('0\r\n\r\n')
    })
  })
  const at = { base_url: `http://127.0.0.1:${await listen(server)}`, accounts: [{ name: 'a', key: 'upstream-key-1' }] }
  const limits = { body_bytes_max: 32 * 1_048_576 }
  const gateway = await startTestGateway({ models, upstream: () => ({ limits, upstreams: { sim: at, other: at } }) })
  t.after(() => gateway.close().finally(() => server.close()))
  const sent = watchSent(t)
  const request = { stream: true, model: 'renamed', messages: [{ role: 'user', content: long }] }
  const response = await within(gateway.post(paths.chat, request), 'its head comes')
  assert.equal(response.status, 200)
  assert.ok(got < long.length / 2, `${got} bytes were read`)
  assert.ok(sent[0]!.length > long.length)
  reading!.resume()
  assert.match(await response.text(), /Hé/)
  assert.ok(isWhole)
})
