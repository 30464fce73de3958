import assert from 'node:assert/strict'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { createServer, type Socket } from 'node:net'
import test from 'node:test'
import { atEnd } from '../support/at-end.ts'
import { listen } from '../support/listen.ts'
import { gatewayEnd, untilRead } from '../support/peer.ts'
import { type RawUpstream, startRawUpstream, whole } from '../support/raw-upstream.ts'
import { until, within } from '../support/waiting.ts'
import { type Heard, openWay, type Way } from './flights.ts'

/* Connections that serve again: which of them, when, and what it means that one of them breaks. */

async function open(): Promise<{ upstream: RawUpstream; way: Way }> {
  const upstream = await startRawUpstream()
  return { upstream, way: openWay(upstream.url) }
}

const isRace = (heard: Heard) => heard.faults.map(({ isReuseRace }) => isReuseRace)

for (const [name, passedMs, races] of [
  ['at once is a race', 0, true],
  ['after it had time to begin is none: whoever asked again could pay twice', 2_000, false],
] as const)
  test(`U1 F-U5 F-U6 a kept connection that is reset ${name}`, async () => {
    const { upstream, way } = await open()
    let kept!: Socket
    upstream.play(
      (...asked) => {
        kept = asked[0]
        return whole('{}')(...asked)
      },
      () => {},
    )
    await way.send().untilOver()
    way.pass()
    const heard = way.send()
    await until(() => upstream.requests.length === 2)
    assert.equal(upstream.connections, 1)
    way.pass(passedMs)
    kept.resetAndDestroy()
    await heard.untilOver()
    assert.deepEqual(isRace(heard), [races])
  })

test('F-U6 after a race a fresh connection is used, because connections that were idle longer are closed as well', async () => {
  const { upstream, way } = await open()
  upstream.play((socket, request) =>
    upstream.requests.length > 3 && request.connection <= 3
      ? void socket.resetAndDestroy()
      : whole('{}')(socket, request),
  )
  await Promise.all(Array.from({ length: 3 }, () => way.send().untilOver()))
  way.pass()
  const heard = way.send()
  await heard.untilOver()
  const again = way.send()
  await again.untilOver()
  assert.deepEqual([isRace(heard), again.text, upstream.connections], [[true], '{}', 4])
})

test('F-U6 a request that requires a fresh connection gets none that has served', async () => {
  const { upstream, way } = await open()
  upstream.play(whole('{}'))
  await Promise.all([way.send().untilOver(), way.send().untilOver()])
  way.pass()
  // After this request, the other connection is known to have no unread bytes, so that it may serve at once.
  await way.send().untilOver()
  assert.equal(upstream.connections, 2)
  await way.send({ isFresh: true }).untilOver()
  assert.equal(upstream.connections, 3)
})

test('F-U6 cancelling a request on a kept connection closes that one and no other', async () => {
  const { upstream, way } = await open()
  upstream.play(whole('{}'))
  await Promise.all(Array.from({ length: 3 }, () => way.send().untilOver()))
  way.pass()
  upstream.play(() => {}, whole('{}'))
  const given = way.send()
  await until(() => upstream.requests.length === 1)
  given.flight.abort()
  await until(() => upstream.closed === 1)
  await Promise.all([way.send().untilOver(), way.send().untilOver()])
  assert.deepEqual([upstream.connections, upstream.closed], [3, 1])
})

test('decision 59 delivered parts of an answer stay unchanged when the next piece is read', async () => {
  const { upstream, way } = await open()
  const rest = Promise.withResolvers<void>()
  upstream.play(async (socket) => {
    socket.write('HTTP/1.1 200 OK\r\ncontent-length: 102\r\n\r\nab')
    await rest.promise
    socket.write('c'.repeat(100))
  })
  const pieces: Buffer[] = []
  const heard = way.send({}, { onData: (piece) => void pieces.push(piece) })
  await until(() => pieces.length === 1)
  rest.resolve()
  await heard.untilOver()
  assert.equal(Buffer.concat(pieces).toString(), `ab${'c'.repeat(100)}`)
})

/** Of an answer that is held back all has come. */
async function holdBack({ upstream, way }: Awaited<ReturnType<typeof open>>): Promise<[heard: Heard, socket: Socket]> {
  let socket!: Socket
  upstream.play((its) => {
    socket = its
    its.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nab')
  }, whole('{}'))
  const heard = way.send()
  heard.flight.pause()
  await until(() => heard.heads === 1)
  await untilRead(socket)
  return [heard, socket]
}

test('F-C9 decision 59 unread bytes after a paused answer never reach another request', async () => {
  const { upstream, way } = await open()
  const [heard, socket] = await holdBack({ upstream, way })
  await new Promise((written) => socket.write('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray', written))
  // Where clients are heard too: what is sent now leaves before anything is read again.
  await stat('.')
  heard.flight.resume()
  way.pass()
  const next = way.send()
  await next.untilOver()
  assert.deepEqual([heard.text, next.text, next.faults, upstream.connections], ['ab', '{}', [], 2])
  assert.deepEqual(way.unasked, [['sim', 'idle']])
})

test('F-C9 decision 59 a connection whose answer was paused serves again', async () => {
  const { upstream, way } = await open()
  const [heard] = await holdBack({ upstream, way })
  heard.flight.resume()
  await heard.untilOver()
  way.pass()
  const next = way.send()
  await next.untilOver()
  assert.deepEqual([heard.text, next.text, upstream.connections], ['ab', '{}', 1])
})

test('F-C9 X9 decision 59 an answer that is whole and paused stays whole when its connection breaks', async () => {
  const { upstream, way } = await open()
  const [heard, socket] = await holdBack({ upstream, way })
  gatewayEnd(socket).destroy(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
  await until(() => upstream.closed === 1)
  heard.flight.resume()
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.ends, heard.faults], ['ab', 1, []])
})

test('decision 59 connections are closed even before a request has been sent on them', async () => {
  const { upstream, way } = await open()
  const heard = way.send()
  await within(way.upstreams.close(), 'its connections are closed')
  assert.deepEqual([heard.faults.length, upstream.connections], [1, 0])
})

test('F-C7 decision 59 a request that is cancelled before its connection is open does not wait for it', async () => {
  const server = createServer()
  const way = openWay(`https://localhost:${await listen(server)}`, {}, { connectMs: 60_000 })
  const heard = way.send()
  const [socket] = (await once(server, 'connection')) as [Socket]
  atEnd(() => socket.destroy())
  socket.on('error', () => {}).resume()
  heard.flight.abort()
  await within(once(socket, 'close'), 'its connection is closed')
  assert.deepEqual([heard.ends, heard.faults], [0, []])
})
