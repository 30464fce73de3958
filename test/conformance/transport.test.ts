import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import type { ModelScript, Wire } from '../../conformance/src/case.ts'
import { type BuiltRequest, buildRequest, send } from '../../conformance/src/client.ts'
import { type Lane, startModel } from '../../conformance/src/model.ts'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'

const target = { origin: 'http://127.0.0.1:9', key: 'k', model: 'm' }
const build = (request: Parameters<typeof buildRequest>[1]) => buildRequest('chat', request, target, new Map())

test('a request with a body is a POST, else a GET, unless it names its method; a null header is left out', () => {
  const { method, path, headers, body } = build({ body: { model: '$model' } })
  assert.deepEqual([method, path, `${body}`], ['POST', '/v1/chat/completions', '{"model":"m"}'])
  assert.deepEqual(headers, { authorization: 'Bearer k', 'content-type': 'application/json' })
  const list = build({ path: '/v1/models/$model', headers: { authorization: null } })
  assert.deepEqual([list.method, list.path, list.headers, list.body], ['GET', '/v1/models/m', {}, undefined])
  assert.equal(build({ method: 'DELETE', body: {} }).method, 'DELETE')
  assert.equal(build({ method: 'DELETE' }).method, 'DELETE')
  assert.equal(`${build({ raw: '{"model":"$model"' }).body}`, '{"model":"m"')
  assert.deepEqual(build({ base64: '/w==' }).body, Buffer.from([0xff]))
})

/** Sends to a server that answers as `answer` says. */
async function observe(answer: RequestListener, more: Partial<Parameters<typeof send>[2]> = {}) {
  const origin = `http://127.0.0.1:${await listen(createServer(answer))}`
  return send('chat', build({ body: {} }), { origin, limitMs: 20_000, ...more })
}

const chunk = (text: string) => `data: {"choices":[{"index":0,"delta":{"content":"${text}"}}]}\n\n`
const stream = { 'content-type': 'text/event-stream' }

test('an answer is complete, cut, left or late, depending on what ended it', async () => {
  const whole = await observe((_, response) => response.writeHead(200, stream).end(`${chunk('a')}data: [DONE]\n\n`))
  assert.deepEqual([whole.ended, whole.done, whole.text, whole.status], ['complete', true, 'a', 200])
  const short = await observe((_, response) => {
    response.writeHead(200, { 'content-length': '10' })
    response.write('1', () => response.destroy())
  })
  assert.deepEqual([short.ended, short.raw, short.done], ['cut', '1', false])
  const none = await observe((request) => request.socket.destroy())
  assert.deepEqual([none.ended, none.status], ['cut', 0])
  const held: RequestListener = (_, response) => {
    response.writeHead(200, stream)
    response.write(chunk('a') + chunk('b'))
  }
  const late = await observe(held, { limitMs: 300 })
  assert.deepEqual([late.ended, late.text], ['late', 'ab'])
  const left = await observe(held, { leaveAfter: { events: 2 } })
  assert.deepEqual([left.ended, left.events.length], ['left', 2])
  assert.equal((await observe(held, { leaveAfter: { ms: 30 } })).ended, 'left')
  assert.equal((await observe(held, { leaveAfter: { events: 3 }, limitMs: 300 })).ended, 'late')
})

test('an https address is asked over TLS', async () => {
  const first = Promise.withResolvers<number>()
  const server = createTcpServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', (bytes: Buffer) => {
      first.resolve(bytes[0]!)
      socket.destroy()
    })
  })
  const origin = `https://127.0.0.1:${await listen(server)}`
  const seen = await send('chat', build({ body: {} }), { origin, limitMs: 20_000 })
  // The type of a record of TLS that begins a connection: handshake (RFC 8446, section 5.1).
  assert.equal(await first.promise, 22)
  assert.deepEqual([seen.ended, seen.status], ['cut', 0])
})

/** Starts a model and one of its lanes, and asks it. */
async function play(wire: Wire, script: ModelScript | undefined) {
  const model = await startModel(0)
  atEnd(() => model.close())
  const origin = `http://127.0.0.1:${model.port}`
  const lane = model.begin(1, wire, script)
  const ask = (change: Partial<BuiltRequest> = {}, more: Partial<Parameters<typeof send>[2]> = {}) =>
    send(
      wire,
      { ...buildRequest(wire, { body: { model: 'm' } }, target, new Map()), ...change },
      { origin, limitMs: 20_000, ...more },
    )
  return { lane: lane as Lane, ask, model }
}

const streamed = (text: string) => ({ body: Buffer.from(`{"model":"m","stream":true${text}}`) })

test('a script is played by its form: an answer or events, as a stream or whole, and its last reply is repeated', async () => {
  const { lane, ask } = await play('chat', {
    exchanges: [
      { reply: { answer: { text: 'one', usage: { input: 1, output: 2 } } } },
      { reply: { events: [{ data: { id: 'x', choices: [{ index: 0, delta: { content: 'two' } }] } }] } },
    ],
  })
  const first = await ask()
  assert.deepEqual([first.text, first.headers['content-type']], ['one', 'application/json'])
  assert.deepEqual([lane.seen[0]!.body, lane.seen[0]!.raw], [{ model: 'm' }, '{"model":"m"}'])
  const second = await ask()
  assert.equal(second.text, 'two', 'events are put together for a client of no stream')
  const third = await ask(streamed(''))
  assert.deepEqual([third.text, third.headers['content-type']], ['two', 'text/event-stream'])
  assert.deepEqual(
    lane.seen.map(({ path, left }) => [path, left]),
    Array.from({ length: 3 }, () => ['/v1/chat/completions', false]),
  )
})

test('a stream has its usage only if it is asked for, and a refusal is never a stream', async () => {
  const { ask } = await play('chat', {
    exchanges: [{ reply: { answer: { text: 'a', usage: { input: 1, output: 2 } } } }],
  })
  assert.equal((await ask(streamed(''))).usage, undefined)
  assert.equal((await ask(streamed(',"stream_options":{"include_usage":true}'))).usage?.output, 2)
  const refusal = await play('chat', { exchanges: [{ reply: { status: 400, json: { error: { message: 'no' } } } }] })
  const refused = await refusal.ask(streamed(''))
  assert.deepEqual(
    [refused.status, refused.headers['content-type'], refused.error?.message],
    [400, 'application/json', 'no'],
  )
})

test('an error status with events is sent as a stream; bytes, pieces and cuts are sent as written', async () => {
  const sent = await play('chat', {
    exchanges: [{ reply: { status: 400, events: [{ data: { error: { message: 'e' } } }] } }],
  })
  const failed = await sent.ask()
  assert.deepEqual(
    [failed.status, failed.headers['content-type'], failed.error?.message],
    [400, 'text/event-stream', 'e'],
  )
  const bytes = await play('chat', { exchanges: [{ reply: { base64: '/w==', headers: { 'content-type': 'a/b' } } }] })
  const odd = await bytes.ask()
  assert.deepEqual([odd.headers['content-type'], odd.raw], ['a/b', '\ufffd'])
  const paused = await play('chat', { exchanges: [{ reply: { raw: '{}', pauseMs: 200 } }] })
  assert.deepEqual((await paused.ask({}, { leaveAfter: { ms: 100 } })).status, 0)
  const cut = await play('chat', { exchanges: [{ reply: { raw: 'abcdef', splitBytes: 2, cutAfterBytes: 3 } }] })
  const broken = await cut.ask()
  assert.deepEqual([broken.ended, broken.raw], ['cut', 'abc'])
  await cut.model.settle(cut.lane, 2_000)
  assert.equal(cut.lane.seen[0]!.left, false, 'the script closed it')
})

test('a body is streamed if the client asks for it, and the text of an event is sent unchanged', async () => {
  const json = {
    id: 'x',
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: 'a' } }],
  }
  const whole = await play('chat', { exchanges: [{ reply: { json } }] })
  assert.equal((await whole.ask(streamed(''))).text, 'a')
  const texts = await play('chat', { exchanges: [{ reply: { events: [{ data: 'a "b"' }, { event: 'c', data: 1 }] } }] })
  assert.equal((await texts.ask(streamed(''))).raw, 'data: a "b"\n\nevent: c\ndata: 1\n\n')
})

test('a script that cannot be played ends its own answer and no other', async () => {
  const bad = await play('chat', {
    exchanges: [{ reply: { raw: 'x', headers: { 'a b': 'c' } } }, { reply: { raw: '{}' } }],
  })
  assert.equal((await bad.ask()).ended, 'cut')
  assert.equal((await bad.ask()).raw, '{}')
})

test('a client that leaves is noticed; unknown paths and lanes, cases without a model and the list of models are answered', async () => {
  const { lane, ask, model } = await play('chat', {
    exchanges: [{ reply: { events: [{ data: {} }, { hang: true }] } }],
  })
  const hung = ask(streamed(''))
  while (lane.open.size === 0) await new Promise(setImmediate)
  await model.settle(lane, 1)
  assert.equal((await hung).ended, 'cut', 'the answer that hangs is ended')
  lane.seen.length = 0
  await ask(streamed(''), { leaveAfter: { events: 1 } })
  await model.settle(lane, 2_000)
  assert.equal(lane.seen[0]!.left, true)
  assert.equal((await ask({ path: '/odd', ...streamed('') }, { leaveAfter: { events: 1 } })).status, 200)
  assert.equal(lane.wrongWire, undefined)
  assert.equal((await ask({ path: '/v1/messages?a=b', ...streamed('') }, { leaveAfter: { events: 1 } })).status, 200)
  assert.equal(lane.wrongWire, 'messages')
  const nowhere = await ask({ body: Buffer.from('{"model":"m-7"}') })
  assert.deepEqual([nowhere.status, /"no case runs here"/.test(nowhere.raw)], [503, true])
  assert.equal((await ask({ method: 'GET', body: undefined as never })).raw, '{"object":"list","data":[]}')
  const answered = await play('chat', { exchanges: [{ reply: { answer: { text: 'a' } } }] })
  assert.match((await answered.ask({ path: '/v1/messages' })).raw, /"type":"message"/)
  assert.match((await answered.ask({ path: '/odd' })).raw, /"object":"chat\.completion"/)
  const none = await play('chat', undefined)
  const unasked = await none.ask()
  const error = { type: 'invalid_request_error', message: 'no model may be asked' }
  assert.deepEqual([unasked.status, unasked.body], [400, { error }])
  assert.equal(none.lane.seen.length, 1)
})
