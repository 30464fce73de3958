import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { asks, frames, type Native, paths, readAll, startNative } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type Answer, stream, writeChunk } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

const terminator = { messages: 'message_stop', chat: '[DONE]', responses: 'response.completed' }
const errorFrame = { messages: 'event: error\n', chat: 'data: {"error":', responses: 'event: response.failed\n' }
/** How many frames are out when the answer is half shown. */
const half = { messages: 3, chat: 2, responses: 4 }

/** Sends a streaming request and waits until the upstream has it. */
async function begin(
  wire: 'messages' | 'chat' | 'responses',
  play: Answer,
  more: Record<string, unknown> = { stream: true },
) {
  native.upstream.play(play)
  const answer = native.gateway.post(paths[wire], { ...asks[wire], ...more })
  await native.upstream.untilHeard()
  return { answer }
}

const never: Answer = () => {}
const headOnly = stream([], { end: false })

async function statusAfter(ms: number, play: Answer, more?: Record<string, unknown>): Promise<number> {
  native.upstream.play(play)
  const answer = native.gateway.post(paths.chat, { ...asks.chat, stream: true, ...more })
  await native.upstream.untilHeard()
  native.gateway.advance(ms - 1_000)
  assert.equal(native.gateway.server.gateway.deliveries.size, 1, 'too early')
  native.gateway.advance(1_000)
  const response = await answer
  await response.text()
  return response.status
}

test('U6 F-U7 without a head: 300 s for a stream, 600 s for JSON, then 502, and nothing is billed', async () => {
  assert.equal(await statusAfter(300_000, never), 502)
  assert.equal(await statusAfter(600_000, never, { stream: false }), 502)
  await assertQuiet(native.gateway)
})

test('F-U8 reliability §3 silence after the head: 502 after 120 s', async () => {
  assert.equal(await statusAfter(120_000, headOnly), 502)
})

const commented = [
  { name: 'a stream', wire: 'chat', stream: true },
  { name: 'a translated stream', wire: 'messages', stream: true },
  { name: 'a JSON answer that is folded from a stream', wire: 'messages', stream: false },
  { name: 'a JSON answer of responses that is folded from a stream', wire: 'responses', stream: false },
] as const
for (const { name, wire, stream } of commented) {
  test(`F-U15 nothing but comments before ${name}: 502 after 300 s`, async () => {
    let say = () => {}
    const asked = { ...asks[wire], model: 'native-chat', stream }
    const { answer } = await begin(
      wire,
      async (socket, request) => {
        await headOnly(socket, request)
        say = () => void writeChunk(socket, ': alive\n\n')
      },
      asked,
    )
    for (let i = 0; i < 30; i++) {
      assert.equal(native.gateway.server.gateway.deliveries.size, 1, `${i * 10} s`)
      say()
      await native.upstream.untilHeard()
      native.gateway.advance(10_000)
    }
    assert.equal(native.gateway.server.gateway.deliveries.size, 0, '300 s')
    const response = await answer
    assert.equal(response.status, 502)
    const id = response.headers.get('x-request-id')!
    assert.equal((await native.gateway.logOf(id))['outcome'], 'upstream_stall')
    assert.equal(native.gateway.store.findEntry(id), undefined)
    await response.text()
  })
}

test('translation 4.1 the head is sent 10 s after a live upstream’s; a failure after that costs nothing', async () => {
  for (const wire of clientWireNames) {
    let socket!: Parameters<Answer>[0]
    const begun = await begin(wire, async (raw, request) => {
      socket = raw
      await stream(frames[wire].slice(0, 1), { end: false })(raw, request)
    })
    const { answer } = begun
    let isTold = false
    void answer.then(() => {
      isTold = true
    })
    native.gateway.advance(9_000)
    // Whatever was written to the client by now is read before the answer to a later request.
    await (await fetch(`${native.gateway.url}/v1/models`)).text()
    assert.equal(isTold, false)
    native.gateway.advance(1_000)
    const response = await answer
    assert.equal(response.status, 200)
    socket.resetAndDestroy()
    const { text } = await readAll(response)
    assert.ok(text.includes(errorFrame[wire]), text)
    assert.equal(native.gateway.store.findEntry(response.headers.get('x-request-id')!), undefined)
  }
  await assertQuiet(native.gateway)
})

test('U4 F-U8 a started stream that falls silent: keep-alives every 10 s, cut and billed after 120 s', async () => {
  const ping = { messages: 'event: ping\ndata: {"type":"ping"}\n\n', chat: ': ping\n\n', responses: ': ping\n\n' }
  for (const wire of clientWireNames) {
    const response = await (await begin(wire, stream(frames[wire].slice(0, half[wire]), { end: false }))).answer
    for (let i = 0; i < 12; i++) {
      native.gateway.advance(10_000)
    }
    const { text } = await readAll(response)
    assert.equal(text.split(ping[wire]).length - 1, 11)
    assert.ok(!text.includes(terminator[wire]))
    const entry = native.gateway.store.findEntry(response.headers.get('x-request-id')!)!
    assert.equal(entry.bill!.outcome, 'upstream_stall')
  }
  await assertQuiet(native.gateway)
})

test('reliability §3 no answer takes longer than 60 minutes', async () => {
  let say = () => {}
  const { answer } = await begin('chat', async (socket, request) => {
    await stream(frames.chat.slice(0, 2), { end: false })(socket, request)
    say = () => void writeChunk(socket, frames.chat[1]!)
  })
  for (let i = 0; i < 60; i++) {
    assert.equal(native.gateway.server.gateway.deliveries.size, 1, `${i} minutes`)
    say()
    await native.upstream.untilHeard()
    native.gateway.advance(60_000)
  }
  const { text } = await readAll(await answer)
  assert.ok(text.includes('"error"'))
  await assertQuiet(native.gateway)
})
