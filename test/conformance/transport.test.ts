import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect, createServer as createTcpServer } from 'node:net'
import { test } from 'node:test'
import type { Case, Json, ModelScript, Wire } from '../../conformance/src/case.ts'
import { type BuiltRequest, buildRequest, observe as read, send } from '../../conformance/src/client.ts'
import { type Lane, startModel } from '../../conformance/src/model.ts'
import { askOnce, isKeptAway, whyUnreachable } from '../../conformance/src/reach.ts'
import type { Subject } from '../../conformance/src/run.ts'
import { runCase, type Stage } from '../../conformance/src/run-case.ts'
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

test('a request has the headers of its wire, of the gateway and of its case, and the values that were seen', () => {
  const more = { ...target, headers: { 'x-a': '1', 'x-b': '2' } }
  const bindings = new Map<string, Json>([['id', { a: [1] }]])
  const built = buildRequest(
    'messages',
    {
      body: { model: '$model', $use: 'id', list: [{ $use: 'id' }, { $use: 1 }, '$model', 'a $model', null, 1] },
      headers: { 'x-b': '3', 'x-api-key': null },
      path: '/v1/$model/x$model',
    },
    more,
    bindings,
  )
  assert.deepEqual(
    { ...built, body: JSON.parse(String(built.body)) },
    {
      method: 'POST',
      path: '/v1/m/xm',
      headers: { 'anthropic-version': '2023-06-01', 'x-a': '1', 'x-b': '3', 'content-type': 'application/json' },
      body: { a: [1] },
    },
  )
  const listed = build({ body: [{ $use: 1 }, '$model', { a: 'a $model', b: null }, 1] })
  assert.equal(String(listed.body), '[{"$use":1},"m",{"a":"a m","b":null},1]')
  assert.deepEqual(Object.keys(build({})), ['method', 'path', 'headers'])
  assert.equal(
    String(build({ ask: { text: 'a' }, body: 1 }).body),
    '{"model":"m","messages":[{"role":"user","content":"a"}]}',
  )
  assert.equal(build({ raw: '' }).method, 'POST')
  assert.throws(() => build({ body: [{ $use: 'x' }] }), {
    message: 'nothing was seen for "x", which a later request needs',
  })
})

test('what came is read whole: a body, a stream, and the error in either', () => {
  const seen = { status: 200, headers: {}, raw: '', events: [] }
  const nothing = { text: '', reasoning: '', refusal: '', calls: [], stop: null }
  const rest = { ...seen, done: false, ended: 'complete' }
  const of = (raw: string) => read('chat', { ...seen, raw }, 'complete')
  assert.deepEqual(of('x'), { ...rest, raw: 'x' })
  assert.deepEqual(of('[{}]'), { ...rest, raw: '[{}]', body: [{}] })
  assert.deepEqual(of('{}'), { ...rest, ...nothing, raw: '{}', body: {} })
  const error = { message: 'e' }
  const raw = '{"error":"e"}'
  assert.deepEqual(of(raw), { ...rest, raw, body: { error: 'e' }, error })
  const chunk = { object: 'chat.completion.chunk', choices: [{ delta: { content: 'a' } }] }
  const stream = (ended: 'cut' | 'complete', ...datas: Json[]) =>
    read('chat', { ...seen, raw: '{}', events: datas.map((data) => ({ data })) }, ended)
  const events = (...datas: Json[]) => ({ ...rest, ...nothing, raw: '{}', events: datas.map((data) => ({ data })) })
  assert.deepEqual(stream('cut', chunk), { ...events(chunk), ended: 'cut', text: 'a' })
  assert.deepEqual(stream('complete', chunk, { error: 'e' }, '[DONE]'), {
    ...events(chunk, { error: 'e' }, '[DONE]'),
    done: true,
    text: 'a',
    error,
  })
  assert.deepEqual(stream('complete', '[DONE]'), {
    ...events('[DONE]'),
    done: true,
    disorder: '[DONE] comes without a finish_reason',
  })
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
  const plain = await observe((_, response) => response.writeHead(200, { 'x-a': 'b' }).end('data: x\n\n'))
  assert.deepEqual([plain.events, plain.raw, plain.done, plain.headers['x-a']], [[], 'data: x\n\n', false, 'b'])
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
  await none.ask({ path: '/v1/messages' })
  assert.deepEqual(
    [none.lane.seen.length, none.lane.wrongWire],
    [2, undefined],
    'no wire is right if none may be asked',
  )
})

test('the model reads the lane from the end of its own name, and the wire from the path', async () => {
  const { ask, model, lane } = await play('chat', { exchanges: [{ reply: { json: { id: '$model' } } }] })
  const second = model.begin(12, 'messages', { exchanges: [{ reply: { raw: '$model' } }] })
  const named = (name: string, more: object = {}) =>
    ask({ body: Buffer.from(JSON.stringify({ model: name, ...more })) })
  assert.deepEqual((await named('m')).body, { id: 'm' })
  assert.equal((await named('m-12', { system: 's' })).raw, 'm-12')
  for (const name of ['m-12-x', '12', '']) assert.deepEqual((await named(name)).body, { id: name })
  const { headers, ...seen } = second.seen[0]!
  assert.deepEqual(seen, {
    method: 'POST',
    path: '/v1/chat/completions',
    body: { model: 'm-12', system: 's' },
    raw: '{"model":"m-12","system":"s"}',
    asked: { model: 'm-12', stream: false, system: '', turns: [], tools: [] },
    left: false,
  })
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(second.wrongWire, 'chat')
  const none = await named('m-3')
  const error = { type: 'server_error', message: 'no case runs here' }
  assert.deepEqual([none.status, none.headers['content-type'], none.body], [503, 'application/json', { error }])
  lane.seen.length = 0
  for (const [path, wire] of [
    ['/chat/completions?x=1\n2', undefined],
    ['/a/responses', 'responses'],
    ['/v1/responses/compact', 'responses'],
    ['/v1/messages/count_tokens', 'messages'],
    ['/v1/messages/batches', undefined],
    ['/v1/responses/x', undefined],
    ['/xmessages', undefined],
  ] as const) {
    delete lane.wrongWire
    await ask({ path: encodeURI(path), body: Buffer.from('x') })
    assert.equal(lane.wrongWire, wire, path)
  }
  assert.deepEqual([lane.seen[0]!.path, 'body' in lane.seen[0]!], ['/chat/completions', false])
})

test('the headers and the bytes of each form of a reply are those of its wire, unless the script has others', async () => {
  const reply = async (script: object, stream = false, wire: Wire = 'chat') => {
    const { ask } = await play(wire, { exchanges: [{ reply: script }] })
    const { status, headers, raw } = await ask(stream ? streamed('') : {})
    return [status, headers['content-type'], headers['cache-control'], raw]
  }
  const events = ['text/event-stream', 'no-cache']
  const json = ['application/json', undefined]
  assert.deepEqual(await reply({ json: { a: 1 } }), [200, ...json, '{"a":1}'])
  assert.deepEqual(await reply({ json: null, status: 399 }, true), [399, ...events, 'data: null\n\n'])
  assert.deepEqual(await reply({ json: null, status: 400 }, true), [400, ...json, 'null'])
  assert.deepEqual(await reply({ raw: 'x', status: 201 }, true), [201, ...json, 'x'])
  const headers = { 'content-type': 'a/b', 'cache-control': 'c' }
  assert.deepEqual(await reply({ raw: 'x', headers }), [200, 'a/b', 'c', 'x'])
  assert.deepEqual(await reply({ json: {}, headers }), [200, 'a/b', 'c', '{}'])
  assert.deepEqual(await reply({ events: [{ data: {} }], headers }, true), [200, 'a/b', 'c', 'data: {}\n\n'])
  const parts = [
    { data: { type: 'a' } },
    { event: 'b', data: { type: 'c' } },
    { data: { type: 1 } },
    { pauseMs: 1 },
    { raw: 'é' },
    { base64: 'eA==' },
    { data: '[DONE]' },
  ]
  const bytes = 'event: a\ndata: {"type":"a"}\n\nevent: b\ndata: {"type":"c"}\n\ndata: {"type":1}\n\néxdata: [DONE]\n\n'
  assert.deepEqual(await reply({ events: parts }, true), [200, ...events, bytes])
  assert.deepEqual(await reply({ events: parts, splitBytes: 1 }, true), [200, ...events, bytes])
  assert.deepEqual(await reply({ events: parts, cutAfterBytes: 12 }, true), [200, ...events, bytes.slice(0, 12)])
  assert.deepEqual(await reply({ events: parts.slice(3, 5) }), [
    200,
    ...json,
    '{"object":"chat.completion","choices":[]}',
  ])
  assert.deepEqual(await reply({ events: [{ data: 'x' }, { cut: true }, { data: 'y' }] }, true), [
    200,
    ...events,
    'data: x\n\n',
  ])
  assert.deepEqual(await reply({ json: { a: 1 }, events: [{ data: 1 }] }), [200, ...json, '{"a":1}'])
  assert.deepEqual(await reply({ json: { a: 1 }, events: [{ data: 1 }] }, true), [200, ...events, 'data: 1\n\n'])
  assert.deepEqual(await reply({}), [200, ...json, '{"object":"chat.completion","choices":[]}'])
  assert.deepEqual(await reply({}, false, 'messages'), [200, ...json, '{"content":[],"usage":{}}'])
})

test('the pieces of a scripted answer are counted in its stream, and its model is the one that was asked', async () => {
  const { ask } = await play('chat', { exchanges: [{ reply: { answer: { text: 'abcdef', pieces: 3 } } }] })
  const { events, model } = await ask(streamed(''))
  assert.deepEqual([events.length, model], [6, 'm'])
})

test('the model is there on one address only, until it is closed, which ends what hangs', async () => {
  const { ask, model } = await play('chat', { exchanges: [{ reply: { events: [{ hang: true }] } }] })
  await assert.rejects(fetch(`http://127.0.0.2:${model.port}`))
  const hung = ask(streamed(''))
  const left = await ask(streamed(''), { leaveAfter: { ms: 60 } })
  assert.equal(left.status, 200, 'the headers are sent before the first event')
  await model.close()
  assert.equal((await hung).ended, 'cut')
  await assert.rejects(fetch(`http://127.0.0.1:${model.port}`))
})

test('a pause between events is kept, and a client that leaves in it gets no more', async () => {
  const events = [{ data: 'a' }, { pauseMs: 150 }, { data: 'b' }, { data: 'c' }]
  const { ask, lane, model } = await play('chat', { exchanges: [{ reply: { events } }] })
  assert.deepEqual((await ask(streamed(''), { leaveAfter: { ms: 75 } })).events, [{ data: 'a' }])
  assert.equal((await ask(streamed(''))).raw, 'data: a\n\ndata: b\n\ndata: c\n\n')
  await model.settle(lane, 2_000)
  assert.deepEqual(
    lane.seen.map(({ left }) => left),
    [true, false],
  )
})

test('each piece of an answer that is split comes in a packet of its own', async () => {
  const count = async (reply: object) => {
    const { model } = await play('chat', { exchanges: [{ reply: { raw: 'abcdef', ...reply } }] })
    let packets = 0
    const socket = connect(model.port, '127.0.0.1').on('data', () => packets++)
    socket.write('POST /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}')
    await once(socket, 'close')
    return packets
  }
  assert.ok((await count({ splitBytes: 1 })) > (await count({})) + 2)
})

test('a gateway that leaves is seen as having left, and one whose answer the script ended is not', async () => {
  const { ask, lane, model } = await play('chat', { exchanges: [{ reply: { raw: 'x', pauseMs: 400 } }] })
  await ask({}, { leaveAfter: { ms: 150 } })
  await ask()
  await model.settle(lane, 2_000)
  assert.deepEqual(
    lane.seen.map(({ left }) => left),
    [true, false],
  )
  assert.equal(lane.open.size, 0)
})

/** A gateway that passes requests for some models on, without a change, and answers others as `instead` says. */
async function startPasser(passes: readonly string[], instead: RequestListener) {
  const model = await startModel(0)
  atEnd(() => model.close())
  const origin = `http://127.0.0.1:${await listen(
    createServer(async (request, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = Buffer.concat(chunks).toString()
      if (!passes.some((name) => body.includes(`"${name}"`))) return instead(request, response)
      const answer = await fetch(`http://127.0.0.1:${model.port}${request.url}`, { method: 'POST', body })
      response.writeHead(answer.status).end(await answer.text())
    }),
  )}`
  const names = (wire: Wire) => ({ client: `c-${wire}`, upstream: `c-${wire}` })
  return { origin, key: 'k', model, names } as unknown as Subject
}

const refuse: RequestListener = (request, response) => {
  const text = `${request.url} ${request.headers['x-api-key'] ?? request.headers.authorization} `
  response.writeHead(401).end(text.padEnd(300, 'x'))
}
const start = (path: string, key: string) => `${path} ${key} `.padEnd(200, 'x')
const refusal = {
  chat: `on chat: 401 ${start('/v1/chat/completions', 'Bearer k')}`,
  responses: `on responses: 401 ${start('/v1/responses', 'Bearer k')}`,
  messages: `on messages: 401 ${start('/v1/messages', 'k')}`,
}

test('models that a gateway does not ask are reported, each with the answer to the client of its wire', async () => {
  const some = await startPasser(['c-chat'], refuse)
  assert.deepEqual(await askOnce(some, ['chat']), { failed: '', isAll: false })
  assert.deepEqual(await askOnce(some, ['chat', 'messages', 'responses']), {
    failed: `The gateway does not ask the model:
  c-messages ${refusal.messages}
  c-responses ${refusal.responses}
Configure it, or leave it out with --wires.`,
    isAll: false,
  })
  assert.deepEqual(await askOnce(some, ['messages']), {
    failed: `The gateway does not ask the model:
  c-messages ${refusal.messages}
Check --key, and that the models above are configured.`,
    isAll: true,
  })
  const silent = await startPasser([], (request) => request.socket.destroy())
  assert.match((await askOnce(silent, ['chat'])).failed, /\n {2}c-chat on chat: no answer\n/)
  const other = await startPasser([], (request, response) => {
    if (request.url !== '/v1/responses') return response.writeHead(404).end()
    return fetch(`http://127.0.0.1:${other.model.port}/v1/messages`, { method: 'POST', body: '{"model":"c-messages"}' })
      .then((answer) => answer.text())
      .then((text) => response.end(text))
  })
  assert.deepEqual(await askOnce(other, ['messages']), { failed: '', isAll: false }, 'by a client of another wire')
  const broken = await startPasser([], (_, response) =>
    fetch(`http://127.0.0.1:${broken.model.port}/v1/messages`, { method: 'POST', body: '{}' })
      .then((answer) => answer.text())
      .then(() => response.writeHead(500).end()),
  )
  assert.deepEqual(await askOnce(broken, ['messages']), { failed: '', isAll: false }, 'whatever it makes of the answer')
})

test('an endpoint needs one answer, on any wire; else its answers on all three are reported', async () => {
  const none = await startPasser([], refuse)
  assert.deepEqual(await askOnce(none, undefined), {
    failed: `The endpoint gives no answer:
  c-chat ${refusal.chat}
  c-chat ${refusal.responses}
  c-chat ${refusal.messages}
Check --key and --model.`,
    isAll: true,
  })
  const asked: string[] = []
  const last = await startPasser([], (request, response) => {
    asked.push(request.url!)
    response.writeHead(request.url === '/v1/messages' ? 200 : 404).end('{}')
  })
  assert.deepEqual(await askOnce(last, undefined), { failed: '', isAll: false })
  assert.deepEqual(asked, ['/v1/chat/completions', '/v1/responses', '/v1/messages'])
})

test('an address with any answer can be reached; for another one the reason is returned', async () => {
  const origin = `http://127.0.0.1:${await listen(createServer((_, response) => response.writeHead(500).end('x')))}`
  assert.equal(await whyUnreachable(origin), undefined)
  const broken = `http://127.0.0.1:${await listen(createServer((request) => request.socket.destroy()))}`
  assert.equal(await whyUnreachable(broken), 'other side closed')
  const empty = `http://127.0.0.1:${await listen(createServer((_, response) => response.writeHead(204).end()))}`
  assert.equal(await whyUnreachable(empty), undefined)
  assert.equal(await whyUnreachable('x:'), 'unknown scheme')
  assert.match((await whyUnreachable('http://a:b@127.0.0.1'))!, /includes credentials/)
})

test('a failure without a request to the model is one of a gateway that keeps the model away', () => {
  const is = (verdict: string, ...differences: string[]) => isKeptAway({ verdict, differences } as never)
  const none = 'model: requests is 0; expected at least 1'
  assert.deepEqual(
    [is('fail', 'client: x', none), is('fail', `client: ${none}`), is('fail', 'x'), is('flaky', none), is('fail')],
    [true, false, false, false, false],
  )
})

test('a bill is read until it has changed and stays the same, at most 5 s, and its sum is rounded', async () => {
  const subject = await startPasser(['c-chat'], refuse)
  const one = {
    client: { chat: { steps: [{ request: { ask: {} } }] } },
    model: { chat: { exchanges: [{ reply: { answer: {} } }] } },
    bill: { amount: 1 },
  } as unknown as Case
  const pair = { client: 'chat', model: 'chat' } as const
  const { now } = Date
  atEnd(() => Object.assign(Date, { now }))
  /** Reads these sums, the last one again and again; each reading takes so much time. @returns the bill and the readings */
  const spend = async (sums: number[], takesMs: number, more: Partial<Case> = {}) => {
    let reads = 0
    Object.assign(Date, { now: () => now() + reads * takesMs })
    const readSpent = async () => sums[Math.min(reads++, sums.length - 1)]!
    const stage = {
      ...subject,
      lane: 1,
      names: { client: 'c-chat', upstream: 'c-chat' },
      readSpent,
    } as unknown as Stage
    const { bill } = await runCase({ ...one, ...more } as Case, pair, stage)
    return [bill, reads]
  }
  assert.deepEqual(await spend([5, 5.1, 5.3], 0), [0.3, 4])
  assert.deepEqual(await spend([5, 5, 5, 5.2], 0), [0.2, 5])
  assert.deepEqual(await spend([5], 1_000), [0, 6])
  assert.deepEqual(await spend([5, 6, 7, 8, 9, 10, 11, 12, 13], 1_000), [5, 6], 'it changes all the time')
  assert.deepEqual(await spend([5], 0, { bill: undefined as never }), [undefined, 0])
})

test('a gateway gets its own headers for the wire of the model, and a case its time', async () => {
  const seen: unknown[] = []
  const subject = await startPasser([], (request, response) => {
    seen.push(request.headers['x-of'])
    if (seen.length === 1) response.end('{}')
  })
  const stage = {
    ...subject,
    lane: 1,
    names: { client: 'm', upstream: 'm' },
    headers: (wire: Wire) => ({ 'x-of': wire }),
  } as unknown as Stage
  const step = { request: { ask: {} } }
  const one = { client: { chat: { steps: [step, step, step] } }, timeLimitMs: 200 } as unknown as Case
  const started = performance.now()
  const trace = await runCase(one, { client: 'chat', model: 'messages' }, stage)
  const { steps, asked } = trace
  assert.deepEqual(
    steps.map(({ ended }) => ended),
    ['complete', 'late', 'late'],
  )
  assert.ok(performance.now() - started < 2_000, 'the limit is that of all steps')
  assert.deepEqual([seen[0], asked, Object.keys(trace)], ['messages', [], ['steps', 'asked']])
})
