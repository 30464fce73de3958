import assert from 'node:assert/strict'
import test from 'node:test'
import { apiKeyHeader, bearer } from '../../src/catalog/credentials.ts'
import { collect } from '../support/garbage.ts'
import { type Answer, head, startRawUpstream, stream, whole, writeChunk } from '../support/raw-upstream.ts'
import { turn, until } from '../support/waiting.ts'
import { openWay } from './flights.ts'

/** Begins an answer and leaves it open. */
const open: Answer = stream(['begun'], { end: false })

test('P4 U14 decision 13 a request has our headers, the upstream’s, the credential and its own, each once, and no others', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}'))
  const headers = new Map([['x-of-upstream', 'one']])
  const { send } = openWay(upstream.url, { headers })
  const body = Buffer.from('{"a":"é"}')
  await send({
    path: '/behind/here/v1/messages?v=1',
    headers: [['x-of-wire', 'two']],
    credential: apiKeyHeader,
    body,
  }).untilOver()
  const [request] = upstream.requests
  assert.deepEqual([request!.method, request!.path], ['POST', '/behind/here/v1/messages?v=1'])
  assert.deepEqual(request!.headers.filter(([name]) => name !== 'connection').sort(), [
    ['accept-encoding', 'identity'],
    ['content-length', '10'],
    ['content-type', 'application/json'],
    ['host', upstream.url.slice('http://'.length)],
    ['user-agent', 'triwire'],
    ['x-api-key', 'upstream-key-1'],
    ['x-of-upstream', 'one'],
    ['x-of-wire', 'two'],
  ])
  assert.deepEqual(request!.body, body)
})

test('a configured header replaces the header of the gateway, and configured betas stand before those of the client', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}'))
  const names = { 'user-agent': 'acme', 'anthropic-version': '2026-01-01', 'anthropic-beta': 'ours' }
  const { send } = openWay(upstream.url, { headers: new Map(Object.entries(names)) })
  const versions = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'theirs' }
  await send({ headers: Object.entries(versions), credential: apiKeyHeader, body: Buffer.from('{}') }).untilOver()
  const sent = upstream.requests[0]!.headers.filter(([name]) => Object.hasOwn(names, name))
  assert.deepEqual(sent.sort(), [
    ['anthropic-beta', 'ours,theirs'],
    ['anthropic-version', '2026-01-01'],
    ['user-agent', 'acme'],
  ])
})

test('U14 an account without a key sends no credential, and a bare host has the wire’s path', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}'))
  const { send } = openWay(upstream.url, { accounts: [] })
  const heard = send({ path: '/v1/chat/completions' })
  await heard.untilOver()
  const [request] = upstream.requests
  assert.equal(request!.path, '/v1/chat/completions')
  assert.deepEqual([request!.header('authorization'), request!.header('x-api-key')], [undefined, undefined])
  assert.deepEqual([heard.heads, heard.text, heard.ends, heard.faults], [1, '{}', 1, []])
})

test('reliability §1.6 a target of another configuration is rejected, and nothing is sent', async () => {
  const upstream = await startRawUpstream()
  const { upstreams, target } = openWay(upstream.url)
  const other = { ...target, upstream: { ...target.upstream, name: 'other' } }
  const request = { path: '/v1/x', headers: [], credential: bearer, body: Buffer.from('{}') }
  const listener = { onHead() {}, onData() {}, onEnd() {}, onError() {} }
  assert.throws(
    () => upstreams.send(other, request, listener),
    /^Error: other is not an upstream of this configuration$/,
  )
  assert.equal(upstream.connections, 0)
})

test('H-F4 a stream does not keep its request body in memory', async () => {
  const upstream = await startRawUpstream()
  const { send } = openWay(upstream.url)
  const ask = async (length: number) => {
    upstream.play(open)
    const body = Buffer.alloc(length, 'a')
    const heard = send({ body })
    await until(() => heard.text === 'begun')
    assert.deepEqual(upstream.requests.at(-1)!.body, body)
    assert.equal(upstream.requests.at(-1)!.header('content-length'), `${length}`)
    return new WeakRef(body)
  }
  for (const length of [1_000, 100_000]) {
    const body = await ask(length)
    await until(() => {
      collect()
      return body.deref() === undefined
    }, `a body of ${length} is collected`)
  }
})

const types: [name: string, lines: string, contentType: string][] = [
  ['its parameters and case', 'Content-Type: Text/Event-Stream ; charset=UTF-8; x=y\r\n', 'text/event-stream'],
  ['no content type', '', ''],
  ['two content types', 'content-type: text/html\r\ncontent-type: application/json\r\n', 'text/html'],
]
for (const [name, lines, contentType] of types) {
  test(`F-U23 an answer with ${name} is reported as ${contentType || 'having none'}`, async () => {
    const upstream = await startRawUpstream()
    upstream.play((socket) => void socket.write(`HTTP/1.1 200 OK\r\n${lines}content-length: 2\r\n\r\nhi`))
    const heard = openWay(upstream.url).send()
    await heard.untilOver()
    assert.equal(heard.head!.contentType, contentType)
    assert.deepEqual([heard.head!.status, heard.heads, heard.text, heard.ends], [200, 1, 'hi', 1])
  })
}

test('F-U28 ten interim responses are skipped, and the listener gets none of them', async () => {
  const upstream = await startRawUpstream()
  upstream.play((socket) => {
    socket.write('HTTP/1.1 103 Early\r\n\r\n'.repeat(10))
    socket.write(`${head(201, { 'content-length': '2' })}hi`)
  })
  const heard = openWay(upstream.url).send()
  await heard.untilOver()
  assert.deepEqual([heard.head?.status, heard.heads, heard.text, heard.ends, heard.faults], [201, 1, 'hi', 1, []])
})

test('F-U28 the eleventh interim response is the only reported fault, and its connection is closed', async () => {
  const upstream = await startRawUpstream()
  upstream.play((socket) => {
    socket.write('HTTP/1.1 103 Early\r\n\r\n'.repeat(11))
  })
  const heard = openWay(upstream.url).send()
  await heard.untilOver()
  await until(() => upstream.closed === 1)
  await turn()
  assert.deepEqual([heard.heads, heard.text, heard.ends], [0, '', 0])
  assert.deepEqual(heard.faults, [{ cause: 'upstream_protocol', isReuseRace: false }])
})

test('F-U30 heads are limited to the configured size', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}', 200, { 'x-big': 'a'.repeat(20_000) }))
  const generous = openWay(upstream.url, {}, { headerBytesMax: 32_768 }).send()
  await generous.untilOver()
  assert.deepEqual([generous.head?.status, generous.ends], [200, 1])
  const strict = openWay(upstream.url, {}, { headerBytesMax: 16_384 }).send()
  await strict.untilOver()
  assert.deepEqual([strict.heads, strict.faults], [0, [{ cause: 'upstream_protocol', isReuseRace: false }]])
})

test('F-C9 a flight that is paused before its connection is open delivers the head and keeps the rest', async () => {
  const upstream = await startRawUpstream()
  upstream.play(open)
  const heard = openWay(upstream.url).send()
  heard.flight.pause()
  await until(() => heard.heads === 1)
  await upstream.untilHeard()
  await turn()
  assert.equal(heard.text, '')
  heard.flight.resume()
  await until(() => heard.text === 'begun')
})

test('F-C9 a flight that resumes before its connection is open is not paused', async () => {
  const upstream = await startRawUpstream()
  upstream.play(stream(['all of it']))
  const heard = openWay(upstream.url).send()
  heard.flight.pause()
  heard.flight.resume()
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.ends], ['all of it', 1])
})

test('F-C9 a flight that is paused within its answer delivers at most one more piece until it resumes', async () => {
  const upstream = await startRawUpstream()
  let more = () => {}
  upstream.play(async (socket, request) => {
    await open(socket, request)
    more = () => {
      for (const piece of [', one', ', two', ', three']) writeChunk(socket, piece)
      socket.write('0\r\n\r\n')
    }
  })
  const { send } = openWay(upstream.url)
  const heard = send()
  await until(() => heard.text === 'begun')
  heard.flight.pause()
  more()
  // Behind it others are answered.
  upstream.play(whole('{}'))
  await send().untilOver()
  assert.ok(['begun', 'begun, one'].includes(heard.text), heard.text)
  assert.equal(heard.ends, 0)
  heard.flight.resume()
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.ends], ['begun, one, two, three', 1])
})

test('F-U45 a flight that is cancelled before its connection is open sends and delivers nothing', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}'))
  const { send } = openWay(upstream.url)
  const first = send({ path: '/first' })
  first.flight.abort()
  const second = send({ path: '/second' })
  await second.untilOver()
  assert.deepEqual(
    upstream.requests.map(({ path }) => path),
    ['/second'],
  )
  assert.deepEqual([first.heads, first.text, first.ends, first.faults], [0, '', 0, []])
})

test('F-C5 F-U45 a flight that is cancelled within its answer closes its connection and delivers nothing more', async () => {
  const upstream = await startRawUpstream()
  upstream.play(open)
  const heard = openWay(upstream.url).send()
  await until(() => heard.text === 'begun')
  heard.flight.abort()
  await until(() => upstream.closed === 1)
  await turn()
  assert.deepEqual([heard.heads, heard.text, heard.ends, heard.faults], [1, 'begun', 0, []])
})

test('F-U45 bytes that arrive in the same piece after a flight is cancelled are not delivered', async () => {
  const upstream = await startRawUpstream()
  upstream.play((socket) => void socket.write(`${head(200, { 'content-length': '2' })}hi`))
  const { send } = openWay(upstream.url)
  const atHead = send({}, { onHead: () => atHead.flight.abort() })
  await until(() => upstream.closed === 1)
  const atData = send({}, { onData: () => atData.flight.abort() })
  await until(() => upstream.closed === 2)
  await turn()
  assert.deepEqual([atHead.text, atHead.ends, atHead.faults], ['', 0, []])
  assert.deepEqual([atData.heads, atData.ends, atData.faults], [1, 0, []])
})

test('reliability §1.1 an exception of a listener at the end of an answer causes no second end', async () => {
  const upstream = await startRawUpstream()
  upstream.play(whole('{}'))
  let ends = 0
  const onEnd = () => {
    ends++
    throw new Error('a bug of ours')
  }
  const { send, bugs } = openWay(upstream.url)
  const heard = send({}, { onEnd })
  await until(() => ends > 0)
  await send().untilOver()
  assert.deepEqual([ends, heard.faults], [1, []])
  // Style: it is told whole, and not taken for a connection that broke.
  assert.deepEqual(
    bugs.map(({ message }) => message),
    ['a bug of ours'],
  )
})

test('F-U42 retired connections let running requests end, and are closed then', async () => {
  const upstream = await startRawUpstream()
  let end = () => {}
  upstream.play(async (socket, request) => {
    await open(socket, request)
    end = () => void socket.write('0\r\n\r\n')
  })
  const { upstreams, send } = openWay(upstream.url)
  const heard = send()
  await until(() => heard.text === 'begun')
  let isRetired = false
  const retired = upstreams.retire().then(() => {
    isRetired = true
  })
  await turn()
  assert.deepEqual([isRetired, heard.ends, heard.faults, upstream.closed], [false, 0, [], 0])
  end()
  await retired
  assert.deepEqual([heard.text, heard.ends, heard.faults], ['begun', 1, []])
  await until(() => upstream.closed === 1)
})

test('reliability §1.1 closing cuts running requests, and each listener is called once for that', async () => {
  const upstream = await startRawUpstream()
  upstream.play(open)
  const { upstreams, send } = openWay(upstream.url)
  const heard = send()
  await until(() => heard.text === 'begun')
  await upstreams.close()
  await until(() => upstream.closed === 1)
  assert.deepEqual([heard.ends, heard.faults.length], [0, 1])
})
