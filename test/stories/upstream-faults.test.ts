import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { answerNanos, answers, asks, frames, type Native, paths, readAll, startNative } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { type Answer, head, stream, whole } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative()
})
after(() => native.close())

const good = {
  messages: whole(answers.messages),
  chat: whole(answers.chat),
  responses: whole(answers.responses),
}
const terminator = { messages: 'message_stop', chat: '[DONE]', responses: 'response.completed' }
const errorFrame = { messages: 'event: error\n', chat: 'data: {"error":', responses: 'event: response.failed\n' }
/** How many frames are out when the answer is half shown. */
const half = { messages: 3, chat: 2, responses: 4 }

const reset: Answer = (socket) => void socket.resetAndDestroy()
const close: Answer = (socket) => void socket.end()

for (const [name, cut] of [
  ['reset', reset],
  ['closed', close],
] as const) {
  test(`U1 F-U6 a reused connection that is ${name} before any byte: one transparent retry`, async () => {
    for (const wire of clientWireNames) {
      native.upstream.play(good[wire], cut, good[wire])
      assert.equal((await native.ask(wire)).status, 200)
      native.gateway.rest()
      const second = await native.ask(wire)
      assert.equal(second.status, 200)
      assert.equal(native.upstream.requests.length, 3)
      assert.equal(native.upstream.requests[1]!.connection, native.upstream.requests[0]!.connection)
      assert.notEqual(native.upstream.requests[2]!.connection, native.upstream.requests[1]!.connection)
      assert.equal(native.gateway.store.findEntry(second.id)?.amountNanos, answerNanos)
    }
    await assertQuiet(native.gateway)
  })

  test(`U1 F-U5 a fresh connection that is ${name} before the head, even after a part of it: 502, no retry`, async () => {
    const partial: Answer = (socket, request) => {
      socket.write('HTTP/1.1 20', () => void cut(socket, request))
    }
    for (const play of [cut, partial]) {
      native.upstream.play((socket) => void socket.end(head(400, { connection: 'close', 'content-length': '0' })), play)
      await native.ask('chat')
      const { status, id } = await native.ask('chat')
      assert.equal(status, 502)
      assert.equal(native.upstream.requests.length, 2)
      assert.equal(native.gateway.store.findEntry(id), undefined)
    }
  })
}

test('U1 a reused connection that is reset twice is given up after two attempts', async () => {
  native.upstream.play(good.chat, reset)
  await native.ask('chat')
  native.gateway.rest()
  assert.equal((await native.ask('chat')).status, 502)
  assert.equal(native.upstream.requests.length, 3)
})

test('F-U1 a connection that is refused is a 502 and costs nothing', async () => {
  const refused = await startNative()
  await refused.upstream.close()
  const { status, id } = await refused.ask('messages')
  assert.equal(status, 502)
  assert.equal((await refused.gateway.logOf(id))['cause'], 'upstream_connect')
  await refused.gateway.close()
})

const json = { 'content-type': 'application/json' }
const unusable: [string, Answer][] = [
  ['F-U23 HTML', whole('<html></html>', 200, { 'content-type': 'text/html' })],
  ['F-U23 an empty body', whole('')],
  ['F-U23 204', (socket) => void socket.write(head(204, {}))],
  ['F-U24 truncated JSON', whole('{"id":"x","choices":[')],
  [
    'F-U24 a body shorter than declared',
    (socket) => void socket.end(`${head(200, { ...json, 'content-length': '99' })}{}`),
  ],
  ['F-U29 a redirect', whole('', 307, { location: 'https://x.example' })],
  ['F-U34 gzip', whole('xx', 200, { 'content-encoding': 'gzip' })],
  ['F-U30 headers above 16 KiB', whole('{}', 200, { 'x-big': 'a'.repeat(20_000) })],
  [
    'F-U30 two lengths',
    (socket) =>
      void socket.write(`${head(200, { ...json, 'content-length': '2' }).slice(0, -2)}content-length: 3\r\n\r\n{}`),
  ],
  ['F-U28 more than ten 1xx', (socket) => void socket.write('HTTP/1.1 103 Early\r\n\r\n'.repeat(12))],
  ['no HTTP', (socket) => void socket.end('SSH-2.0\r\n')],
]
for (const [name, play] of unusable) {
  test(`${name} is a 502 that reveals nothing of it and costs nothing, streamed or whole`, async () => {
    for (const wire of clientWireNames) {
      for (const isStream of [false, true]) {
        native.upstream.play(play)
        const { status, id, text } = await native.ask(wire, { stream: isStream })
        assert.equal(status, 502)
        assert.match(text, /server error\b.*: try again\./)
        assert.equal(native.gateway.store.findEntry(id), undefined)
      }
    }
    await assertQuiet(native.gateway)
  })
}

test('Y1 a stream received for JSON becomes one answer, and JSON received for a stream becomes a stream, billed the same', async () => {
  for (const wire of clientWireNames) {
    native.upstream.play(good[wire])
    const [json, told] = [await native.ask(wire), await native.ask(wire, { stream: true })]
    native.upstream.play(stream(frames[wire]))
    const [folded, streamed] = [await native.ask(wire), await native.ask(wire, { stream: true })]
    for (const { status, id } of [json, told, folded, streamed]) {
      assert.equal(status, 200)
      assert.equal(native.gateway.store.findEntry(id)?.amountNanos, answerNanos)
    }
    assert.match(folded.headers.get('content-type')!, /^application\/json/)
    assert.match(told.headers.get('content-type')!, /^text\/event-stream/)
    const [one, other] = [json, folded].map(({ text }) => JSON.parse(text))
    assert.deepEqual(
      [other.content, other.choices?.[0].message.content, other.output],
      [one.content, one.choices?.[0].message.content, one.output],
    )
    assert.deepEqual(other.usage, one.usage)
    for (const { text } of [told, streamed]) assert.ok(text.includes(terminator[wire]) && text.includes('Hé '))
  }
  await assertQuiet(native.gateway)
})

test('F-U33 a whole answer above 32 MiB is a 502 and the upstream is stopped', async () => {
  native.upstream.play(async (socket) => {
    socket.write(head(200, { ...json, 'content-length': `${64 * 1_048_576}` }))
    const piece = Buffer.alloc(1_048_576, 0x20)
    for (let i = 0; i < 64 && !socket.destroyed; i++) await new Promise((resolve) => socket.write(piece, resolve))
  })
  const { status, id } = await native.ask('chat')
  assert.equal(status, 502)
  assert.equal((await native.gateway.logOf(id))['cause'], 'upstream_oversize')
})

for (const [what, member] of [
  ['nested', `${'['.repeat(200_000)}${']'.repeat(200_000)}`],
  ['of nothing but brackets', `[${'[],'.repeat(400_000)}[]]`],
]) {
  test(`F-U33 a whole answer that is ${what} is a 502 before it is parsed`, async () => {
    const text = JSON.stringify(answers.chat).replace(/^\{/, `{"zz":${member},`)
    for (const wire of ['chat', 'messages'] as const) {
      native.upstream.play(whole(text))
      const response = await native.gateway.post(paths[wire], { ...asks[wire], model: 'native-chat' })
      assert.equal(response.status, 502)
      await response.text()
    }
    await assertQuiet(native.gateway)
  })
}

test('F-U28 up to ten 1xx responses are skipped', async () => {
  native.upstream.play(async (socket, request) => {
    socket.write('HTTP/1.1 103 Early\r\n\r\n'.repeat(10))
    await good.chat(socket, request)
  })
  assert.equal((await native.ask('chat')).status, 200)
})

test('F-U31 bytes after the declared body do not change the answer, and the connection is not used again', async () => {
  const text = JSON.stringify(answers.chat)
  native.upstream.play(
    (socket) =>
      void socket.write(
        `${head(200, { ...json, 'content-length': `${Buffer.byteLength(text)}` })}${text}HTTP/1.1 200 OK\r\n\r\n`,
      ),
    good.chat,
  )
  assert.equal((await native.ask('chat')).status, 200)
  native.gateway.rest()
  assert.equal((await native.ask('chat')).status, 200)
  const [first, second] = native.upstream.requests
  assert.notEqual(first!.connection, second!.connection)
})

test('Y14 an unrequested answer reaches no other request; the log and a metric report it without its text', async () => {
  const own = await startNative()
  const unasked = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 14\r\n\r\ncanary-surplus'
  for (const _ of [1, 2, 3]) {
    own.upstream.play(async (socket, request) => {
      await good.chat(socket, request)
      socket.write(unasked)
    }, good.chat)
    assert.equal((await own.ask('chat')).status, 200)
    await own.upstream.untilHeard()
    own.gateway.rest()
    const { status, text } = await own.ask('chat')
    assert.deepEqual([status, text.includes('canary-surplus')], [200, false])
  }
  const lines = (await own.gateway.logLines()).filter(({ event }) => event === 'upstream_unasked')
  assert.deepEqual(
    lines.map(({ time, place, ...line }) => line),
    [{ level: 'error', event: 'upstream_unasked', upstream: 'sim' }],
  )
  const metrics = await (await fetch(`${own.gateway.adminUrl}/metrics`)).text()
  assert.match(metrics, /^triwire_upstream_unasked_total\{upstream="sim"\} 3$/m)
  await own.gateway.close()
})

/** A connection to be reset once the client has the head. */
let toReset: Parameters<Answer>[0] | undefined

const cuts: [string, (wire: 'messages' | 'chat' | 'responses') => Answer][] = [
  [
    'F-U9 a reset',
    (wire) => async (socket, request) => {
      await stream(frames[wire].slice(0, half[wire]), { end: false })(socket, request)
      toReset = socket
    },
  ],
  ['F-U10 a clean end', (wire) => stream(frames[wire].slice(0, half[wire]))],
  [
    'F-U11 the end of the connection',
    (wire) => (socket) => {
      socket.end(
        head(200, { 'content-type': 'text/event-stream', connection: 'close' }) +
          frames[wire].slice(0, half[wire]).join(''),
      )
    },
  ],
  [
    'F-U27 an error event',
    (wire) =>
      stream([
        ...frames[wire].slice(0, half[wire]),
        'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"at https://x.example"}}\n\n',
      ]),
  ],
  [
    'F-U32 an event above 8 MiB',
    (wire) => stream([...frames[wire].slice(0, half[wire]), `data: ${'a'.repeat(9 * 1_048_576)}`]),
  ],
  [
    'F-U24 an event that is no JSON',
    (wire) =>
      stream([
        ...frames[wire].slice(0, half[wire]),
        wire === 'messages'
          ? 'event: content_block_stop\ndata: {x\n\n'
          : wire === 'chat'
            ? 'data: {x\n\n'
            : 'event: response.completed\ndata: {x\n\n',
      ]),
  ],
]
for (const [name, play] of cuts) {
  test(`spec 7.4.4 ${name} in the middle of a stream: an error frame, no terminator, the evidence is billed`, async () => {
    for (const wire of clientWireNames) {
      native.upstream.play(play(wire))
      toReset = undefined
      const response = await native.gateway.post(paths[wire], { ...asks[wire], stream: true })
      const { text } = await readAll(response, () => toReset?.resetAndDestroy())
      const id = response.headers.get('x-request-id')!
      assert.equal(response.status, 200)
      assert.ok(text.includes('Hé '), text)
      assert.ok(!text.includes(terminator[wire]), text)
      const last = text.trimEnd().split('\n\n').at(-1)!
      assert.ok(last.startsWith(errorFrame[wire]), last)
      assert.doesNotMatch(text, /x\.example|up-(messages|chat|responses)/)
      if (wire === 'responses') assert.match(last, /"sequence_number":4,.*"status":"failed"/)
      const entry = native.gateway.store.findEntry(id)!
      assert.equal(entry.bill!.outcome, 'upstream_cut')
      assert.notEqual(entry.bill!.usageSource, 'final')
      assert.ok(entry.bill!.usage.outputTokens > 0)
      assert.equal((await native.gateway.logOf(id))['outcome'], 'upstream_cut')
    }
    await assertQuiet(native.gateway)
  })
}
