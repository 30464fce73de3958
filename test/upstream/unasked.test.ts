import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import test from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import fc from 'fast-check'
import { atEnd } from '../support/at-end.ts'
import { createAuthority } from '../support/certificates.ts'
import { listen } from '../support/listen.ts'
import { gatewayEnd, untilRead } from '../support/peer.ts'
import { type RawUpstream, startRawUpstream, whole } from '../support/raw-upstream.ts'
import { runsUpTo } from '../support/runs.ts'
import { until } from '../support/waiting.ts'
import { type Heard, openWay, type Way } from './flights.ts'

/* Bytes that nobody asked for, and the rest that makes them recognisable (ruling Y14, decision 59). */

type Opened = { upstream: RawUpstream; way: Way; sockets: Socket[] }

/** An upstream that answers `{}`, and the sockets of its requests in turn. */
async function open(more: Parameters<typeof openWay>[1] = {}): Promise<Opened> {
  const upstream = await startRawUpstream()
  const sockets: Socket[] = []
  upstream.play((socket, request) => {
    sockets.push(socket)
    return whole('{}')(socket, request)
  })
  return { upstream, way: openWay(upstream.url, more), sockets }
}

/** So many requests at once, each on a connection of its own, which are idle afterwards. */
async function openIdle({ way }: Opened, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => way.send({ isFresh: true }).untilOver()))
}

/** On which connection the next request is sent. */
async function next({ way, upstream }: Opened): Promise<number> {
  const heard = way.send()
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.faults], ['{}', []])
  return upstream.requests.at(-1)!.connection
}

const json = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n[]'
const closing408 = 'HTTP/1.1 408 Request Time-out\r\nconnection: close\r\ncontent-length: 0\r\n\r\n'
const surplus: Record<string, string> = {
  'a JSON answer': json,
  'a stream': 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\n\r\n',
  'a late 504': 'HTTP/1.1 504 Late\r\ncontent-length: 0\r\n\r\n',
  "a load balancer's 408": closing408,
  'an interim response': 'HTTP/1.1 103 Early\r\n\r\n',
  'a line end': '\r\n',
  'one byte': 'x',
}
for (const [name, bytes] of Object.entries(surplus)) {
  test(`Y14 ${name} on an idle connection is one event, closes all idle ones, and reaches no request`, async () => {
    const opened = await open()
    await openIdle(opened, 3)
    opened.way.pass()
    opened.sockets[1]!.write(bytes, 'latin1')
    await until(() => opened.upstream.closed === 3)
    assert.deepEqual(opened.way.unasked, [['sim', 'idle']])
    assert.equal(await next(opened), 4)
  })

  test(`Y14 ${name} in the piece that ends an answer is one event, closes all idle ones, and leaves the answer whole`, async () => {
    const opened = await open()
    await openIdle(opened, 2)
    opened.upstream.play((socket) => void socket.write(`${json.replace('[]', '{}')}${bytes}`, 'latin1'), whole('{}'))
    const heard = opened.way.send({ isFresh: true })
    await heard.untilOver()
    assert.deepEqual([heard.text, heard.ends, heard.faults], ['{}', 1, []])
    await until(() => opened.upstream.closed === 3)
    assert.deepEqual(opened.way.unasked, [['sim', 'behind_answer']])
    assert.equal(await next(opened), 4)
  })
}

test('Y14 bytes after a paused answer are one event, and the answer stays whole', async () => {
  const { way, upstream } = await open()
  let socket!: Socket
  upstream.play((asked) => {
    socket = asked
    asked.write('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n')
  })
  const heard = way.send({}, { onHead: () => heard.flight.pause() })
  await until(() => socket)
  await untilRead(socket)
  // The body is whole, and its end is not told yet: the socket is read on until it is paused.
  gatewayEnd(socket).resume()
  for (const piece of [json, json]) {
    await new Promise((written) => socket.write(piece, written))
    await untilRead(socket)
  }
  heard.flight.resume()
  await heard.untilOver()
  assert.deepEqual([heard.ends, heard.faults, way.unasked], [1, [], [['sim', 'behind_answer']]])
})

for (const [name, end] of [
  ['ends', (socket: Socket) => void socket.end()],
  ['is reset', (socket: Socket) => void socket.resetAndDestroy()],
] as const)
  test(`Y14 an idle connection that ${name} is not an event, and the others continue to serve`, async () => {
    const opened = await open()
    await openIdle(opened, 2)
    opened.way.pass()
    end(opened.sockets[0]!)
    await until(() => opened.upstream.closed === 1)
    assert.equal(await next(opened), 2)
    assert.deepEqual(opened.way.unasked, [])
  })

test('Y14 over TLS a closed connection is not an event, and unrequested bytes are one', async () => {
  const authority = createAuthority()
  const { cert, key } = authority.issue('localhost')
  const sockets: Socket[] = []
  const server = createTlsServer({ cert, key }, (socket) => {
    sockets.push(socket)
    socket.on('error', () => {}).on('data', () => void socket.write(json))
  })
  atEnd(() => server.close())
  const way = openWay(`https://localhost:${await listen(server)}`, { ca: authority.ca })
  await way.send().untilOver()
  // It says close_notify.
  sockets[0]!.end()
  await until(() => sockets[0]!.destroyed)
  way.pass()
  await way.send().untilOver()
  assert.deepEqual([way.unasked, sockets.length], [[], 2])
  sockets[1]!.write(json)
  await until(() => way.unasked.length > 0)
  assert.deepEqual(way.unasked, [['sim', 'idle']])
})

/** Answers when the clock was turned by so much. */
async function answerAfter({ way, upstream }: Opened, ms: number, request = {}): Promise<Heard> {
  const begun = upstream.requests.length
  let answer = () => {}
  upstream.play((socket, asked) => {
    answer = () => void whole('{}', 200, { 'keep-alive': 'timeout=600' })(socket, asked)
  })
  upstream.requests.length = begun
  const heard = way.send(request)
  await until(() => upstream.requests.length === begun + 1)
  way.pass(ms)
  answer()
  await heard.untilOver()
  return heard
}

test('Y14 a connection rests as long as the slowest first byte of its last eight answers, and at least 1 ms', async () => {
  const times = fc.array(fc.constantFrom(0, 0.5, 5, 20, 40), { minLength: 1, maxLength: 11 })
  const check = async (firstBytes: readonly number[], isRested: boolean) => {
    const opened = await open()
    for (const ms of firstBytes) {
      opened.way.pass(40)
      await answerAfter(opened, ms)
    }
    const restMs = Math.max(1, ...firstBytes.slice(-8))
    opened.way.pass(isRested ? restMs : restMs - 0.01)
    opened.upstream.play(whole('{}'))
    assert.equal(await next(opened), isRested ? 1 : 2)
  }
  for (const isRested of [true, false]) {
    await check([40, 0, 0, 0, 0, 0, 0, 0], isRested)
    await check([40, 0, 0, 0, 0, 0, 0, 0, 0], isRested)
  }
  await fc.assert(fc.asyncProperty(times, fc.boolean(), check), { numRuns: runsUpTo(10) })
})

test('Y14 an interim response does not count as the first byte of its answer', async () => {
  const opened = await open()
  const { way, upstream } = opened
  upstream.play(async (socket, request) => {
    socket.write('HTTP/1.1 103 Early\r\n\r\n')
    await untilRead(socket)
    way.pass(50)
    await whole('{}')(socket, request)
  }, whole('{}'))
  await way.send().untilOver()
  way.pass(49)
  assert.equal(await next(opened), 2)
})

test('Y14 the connection that has rested longest serves first', async () => {
  const opened = await open()
  await openIdle(opened, 4)
  opened.way.pass()
  // Each rests anew at the end of the line.
  const served = []
  for (let i = 0; i < 6; i++) {
    served.push(await next(opened))
    opened.way.pass()
  }
  assert.deepEqual(served, [1, 2, 3, 4, 1, 2])
})

test('Y14 a connection with a longer rest delays no other', async () => {
  const opened = await open()
  await answerAfter(opened, 20, { isFresh: true })
  await answerAfter(opened, 5, { isFresh: true })
  opened.upstream.play(whole('{}'))
  opened.way.pass(5)
  assert.equal(await next(opened), 2)
  // The first one has 15 ms to go.
  opened.way.pass(14)
  assert.equal(await next(opened), 2)
  opened.way.pass(1)
  assert.equal(await next(opened), 1)
})

for (const [name, ms, keepAlive, isKept] of [
  ['30 s is kept', 30_000, 'timeout=600', true],
  ['longer than 30 s is closed', 30_001, 'timeout=600', false],
  ['as long as its server keeps it is closed', 3_000, 'timeout=5', false],
  ['less than its server keeps it is kept', 2_999, 'timeout=5', true],
] as const)
  test(`Y14 a connection that would rest ${name}`, async () => {
    const { way, upstream } = await open()
    upstream.play(async (socket, request) => {
      way.pass(ms)
      await whole('{}', 200, { 'keep-alive': keepAlive })(socket, request)
    })
    await way.send().untilOver()
    if (!isKept) await until(() => upstream.closed === 1)
    way.pass(ms)
    await way.send().untilOver()
    assert.equal(upstream.connections, isKept ? 1 : 2)
  })

test('Y14 with reuse: false each connection has one request, even if its server would keep it open', async () => {
  const opened = await open({ reuses: false })
  for (const connection of [1, 2, 3]) {
    assert.equal(await next(opened), connection)
    await until(() => opened.upstream.closed === connection)
    opened.way.pass()
  }
  assert.deepEqual(
    opened.upstream.requests.map((request) => request.header('connection')),
    ['close', 'close', 'close'],
  )
  assert.deepEqual(opened.way.unasked, [])
})

test('Y14 bytes that arrived during the rest are read before the connection serves, however long the loop was busy', async () => {
  const opened = await open()
  const { way, sockets, upstream } = opened
  await openIdle(opened, 1)
  // It is in the gateway's socket, and nothing is read before the request would leave.
  sockets[0]!.write(json)
  way.pass(1_000)
  const heard = way.send()
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.faults, way.unasked], ['{}', [], [['sim', 'idle']]])
  assert.equal(upstream.requests.at(-1)!.connection, 2)
})

test('Y14 while all connections rest, each request opens its own, and none waits', async () => {
  const { way, upstream } = await open()
  // The clock stands still: no connection has rested.
  for (let i = 0; i < 40; i++) await way.send().untilOver()
  assert.deepEqual([upstream.connections, upstream.closed], [40, 0])
  way.pass()
  // Now forty have rested, and forty serve: a request more has a fresh one.
  const all = Array.from({ length: 41 }, () => way.send())
  await Promise.all(all.map((heard) => heard.untilOver()))
  assert.deepEqual([upstream.connections, all.flatMap(({ faults }) => faults)], [41, []])
})

test('Y14 a request waits one turn of the loop for a connection whose rest has just ended, and not a second one', async () => {
  const opened = await open()
  const { way, upstream } = opened
  await answerAfter(opened, 1, { isFresh: true })
  await answerAfter(opened, 2, { isFresh: true })
  upstream.play(whole('{}'))
  // The first one has rested; the second one has when the next turn comes.
  way.pass(1.5)
  const both = [way.send(), way.send()]
  setImmediate(() => way.pass())
  await Promise.all(both.map((heard) => heard.untilOver()))
  assert.equal(upstream.connections, 3)
})

/** A server that reads what fits into its buffer, and answers the second request of each connection before it has the rest. */
async function openEarly(status: number): Promise<{ way: Way; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    let requests = 0
    socket
      .on('error', () => {})
      .on('data', (bytes) => {
        if (!bytes.includes('POST ')) return
        requests++
        socket.write(`HTTP/1.1 ${status} Said\r\ncontent-length: 2\r\n\r\n{}`)
        if (requests === 2 || bytes.length > 10_000) socket.pause()
      })
  })
  atEnd(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { way: openWay(`http://127.0.0.1:${await listen(server)}`), sockets }
}

const large = Buffer.alloc(64 * 1_048_576, 0x20)
for (const [name, status, isKept, events] of [
  ['a success on a kept connection is an event', 200, true, [['sim', 'before_sent']]],
  ['a refusal may be about what came so far, and is none', 413, true, []],
  ['a success on a fresh connection is none', 200, false, []],
] as const)
  test(`Y14 answers that end before their request is sent: ${name}`, async () => {
    const { way, sockets } = await openEarly(status)
    if (isKept) await way.send().untilOver()
    way.pass()
    const heard = way.send({ body: large })
    await heard.untilOver()
    assert.deepEqual([heard.head!.status, heard.ends, sockets.length], [status, 1, 1])
    sockets[0]!.resume()
    await until(() => sockets[0]!.destroyed)
    assert.ok(sockets[0]!.bytesRead < large.length)
    assert.deepEqual(way.unasked, events)
  })

const haproxy408 = 'HTTP/1.0 408 Request Time-out\r\ncache-control: no-cache\r\nconnection: close\r\n\r\n<html>'
const keeping408 = closing408.replace('connection: close\r\n', '')
const reuseRace = [{ cause: 'upstream_reset', isReuseRace: true }]
for (const [name, bytes, isKept, passedMs, faults, events] of [
  ['that closes a kept connection is a race and an event', closing408, true, 1_999, reuseRace, [['sim', 'timeout']]],
  ['without a length, as HAProxy sends it, too', haproxy408, true, 0, reuseRace, [['sim', 'timeout']]],
  ['that comes later is an answer', closing408, true, 2_000, [], []],
  ['on a fresh connection is an answer', closing408, false, 0, [], []],
  ['that keeps its connection is an answer', keeping408, true, 0, [], []],
] as const)
  test(`Y14 F-U22 a 408 ${name}`, async () => {
    const opened = await open()
    const { way, upstream } = opened
    if (isKept) await openIdle(opened, 1)
    way.pass()
    upstream.play((socket) => {
      way.pass(passedMs)
      socket.write(bytes)
    })
    const heard = way.send()
    await heard.untilOver()
    assert.deepEqual([heard.faults, heard.head?.status], [faults, faults.length > 0 ? undefined : 408])
    assert.deepEqual(way.unasked, events)
  })

/** Surplus answers that are sent while the next request is under way: nobody can tell them from its own. */
test('Y14 a surplus answer that reaches a request is an event that names the request’s own answer', async () => {
  const opened = await open()
  const { way, upstream } = opened
  await openIdle(opened, 2)
  way.pass()
  let own = () => {}
  upstream.play((socket, request) => {
    socket.write(json)
    own = () => void whole('{}')(socket, request)
  }, whole('{}'))
  const hurt = way.send()
  await hurt.untilOver()
  assert.deepEqual([hurt.text, way.unasked], ['[]', []])
  own()
  await until(() => upstream.closed === 2)
  assert.deepEqual(way.unasked, [['sim', 'idle']])
  assert.equal(await next(opened), 3)
})
