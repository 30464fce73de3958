import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import test from 'node:test'
import { Bodies } from '../../src/gateway/fairness/places.ts'
import { readBody } from '../../src/http/body.ts'
import { Connection, type ListenerHost } from '../../src/http/connection.ts'
import type { HttpExchange } from '../../src/http/http-exchange.ts'
import { atEnd } from '../support/at-end.ts'
import { collect } from '../support/garbage.ts'
import { listen } from '../support/listen.ts'
import { turn, until, within } from '../support/waiting.ts'

/* One client's connection, before a gateway that answers as the test says. */

const asked = 'GET / HTTP/1.1\r\nhost: x\r\n\r\n'

type Exchanges = { admitted: HttpExchange[]; isDraining: boolean; host: ListenerHost }

function openHouse(onAdmit: (exchange: HttpExchange) => void = () => {}): Exchanges {
  const house: Exchanges = {
    admitted: [],
    isDraining: false,
    host: {
      ...{ headerBytesMax: 16_384, headersMax: 100, keepAliveSeconds: 60, second: 0 },
      get isDraining() {
        return house.isDraining
      },
      admit(_, exchange) {
        house.admitted.push(exchange)
        onAdmit(exchange)
      },
      release() {},
      refuse: () => assert.fail('a request is refused'),
    },
  }
  return house
}

/** Both ends of connections to a gateway. */
async function connectTo({ host }: Exchanges): Promise<() => Promise<{ client: Socket; server: Socket }>> {
  const listener = createServer({ noDelay: true, highWaterMark: 16_384 })
  const port = await listen(listener)
  return async () => {
    const client = connect(port, '127.0.0.1')
    const [server] = (await once(listener, 'connection')) as [Socket]
    new Connection(server, host)
    client.on('error', () => {})
    atEnd(() => void client.destroy())
    return { client, server }
  }
}

/** A connection whose client is the test, which pushes what arrives. */
function connectDuplex({ host }: Exchanges): { socket: Duplex; connection: Connection } {
  const socket = new Duplex({ read() {}, write: (_, __, done) => done() })
  return { socket, connection: new Connection(socket as unknown as Socket, host) }
}

test('C3 decision 58 a request after an answer that could not be written is not begun', async () => {
  const house = openHouse((exchange) => exchange.answer(200, '', '{}'))
  const socket = new Duplex({ read() {}, write: (_, __, done) => done(new Error('EPIPE')) })
  new Connection(socket as unknown as Socket, house.host)
  socket.push(asked + asked)
  await until(() => socket.closed)
  assert.equal(house.admitted.length, 1)
})

test('RFC 9112 2.2 empty lines before a request do not count as its headers', async () => {
  const house = openHouse()
  const { socket } = connectDuplex(house)
  socket.push(`${'\r\n'.repeat(5_000)}GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(8_000)}\r\n\r\n`)
  await until(() => house.admitted.length === 1)
})

test('R11 F-C1 the time for a head counts from its first bytes, or from the start of the connection; later bytes do not restart it', async () => {
  const house = openHouse((exchange) => exchange.answer(200, '', '{}'))
  const { socket, connection } = connectDuplex(house)
  for (const [answered, seconds] of [
    [1, 15],
    [2, 5],
  ] as const) {
    for (const [passed, text] of [
      [10, asked.slice(0, 9)],
      [3, asked.slice(9, 20)],
      [2, asked.slice(20, -2)],
    ] as const) {
      Object.assign(house.host, { second: house.host.second + passed })
      socket.push(text)
      await turn()
    }
    assert.deepEqual(connection.waited, { for: 'head', seconds })
    socket.push(asked.slice(-2))
    await until(() => house.admitted.length === answered && connection.isIdle)
  }
})

test('R18 decision 58 keeping part of a read does not keep the whole of it', async () => {
  const openOne = await connectTo(openHouse())
  const before = arrayBufferBytes()
  const pairs: Awaited<ReturnType<typeof openOne>>[] = []
  while (pairs.length < 50) pairs.push(await openOne())
  const sent = Buffer.from(`${'\r\n'.repeat(8_000)}G`)
  for (const { client } of pairs) client.write(sent)
  await until(() => pairs.every(({ server }) => server.bytesRead === sent.length))
  // The engine counts what it has collected when its threads have given it back.
  await until(() => (arrayBufferBytes() - before) / pairs.length < 4_000, 'less than 4,000 bytes are kept for one')
})

function arrayBufferBytes(): number {
  collect()
  return process.memoryUsage().arrayBuffers
}

test('decision 58 RFC 9112 9.6 the last answer arrives whole at a client that has sent more than was read', async () => {
  const house = openHouse()
  const { client } = await (await connectTo(house))()
  client.write(asked + asked + 'x'.repeat(4 * 1_048_576))
  await until(() => house.admitted[0]?.socket.isPaused())
  house.isDraining = true
  const body = Buffer.alloc(1_048_576, 'y')
  house.admitted[0]!.answer(200, '', body)
  const read: Buffer[] = []
  // The rest of what it sends is read, so that unread bytes do not delay the answer.
  client.on('data', (bytes: Buffer) => read.push(bytes))
  await within(once(client, 'end'), 'all of it is told')
  const text = Buffer.concat(read).toString('latin1')
  assert.ok(text.endsWith('\r\n\r\n'.concat(body.toString('latin1'))), `${text.length} bytes came`)
  assert.equal(house.admitted.length, 1)
})

test('reliability §7 an answer that begins while the server closes announces the end of its connection, whenever it was asked', async () => {
  const house = openHouse()
  const { client } = await (await connectTo(house))()
  client.write(asked)
  await until(() => house.admitted.length === 1)
  house.isDraining = true
  house.admitted[0]!.answer(200, '', '{}')
  const [bytes] = (await once(client, 'data')) as [Buffer]
  assert.match(bytes.toString(), /\r\nconnection: close\r\n/)
  await within(once(client, 'close'), 'its connection is closed')
})

test('reliability §4 a client that sends many quickly answered requests at once lets others have their turn', async () => {
  const atOnce: number[] = []
  let inThisTurn = 0
  const house = openHouse((exchange) => {
    if (inThisTurn++ === 0)
      setImmediate(() => {
        atOnce.push(inThisTurn)
        inThisTurn = 0
      })
    exchange.answer(200, '', '{}')
  })
  const { client } = await (await connectTo(house))()
  client.resume().write(asked.repeat(500))
  await until(() => house.admitted.length === 500)
  assert.ok(Math.max(...atOnce) <= 17, `${Math.max(...atOnce)} in one turn`)
})

test('R18 a body that comes octet by octet takes no more memory than its bytes, and is complete', async () => {
  const house = openHouse()
  const socket = new Duplex({ read() {}, write: (_, __, done) => done() })
  new Connection(socket as unknown as Socket, house.host)
  const count = 60_000
  socket.push(`POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${count}\r\n\r\n`)
  await until(() => house.admitted.length === 1)
  const [exchange] = house.admitted
  const limits = { bodyBytesMax: count, bodyMs: 60_000, bodyGapMs: 60_000 }
  const body = readBody(exchange!, limits, new Bodies(10 * count).enter('a'))
  collect()
  const before = process.memoryUsage().heapUsed
  const feed = (from: number, to: number) => {
    for (let i = from; i < to; i++) exchange!.body.feed(Buffer.from([i % 251]), 0)
  }
  feed(0, count - 1)
  collect()
  const kept = process.memoryUsage().heapUsed - before
  assert.ok(kept < 10 * count, `${kept} bytes are kept`)
  feed(count - 1, count)
  assert.deepEqual(await body, Buffer.from(Array.from({ length: count }, (_, i) => i % 251)))
})

/** A body of so many bytes as each framing sends it, in pieces of 16,000 bytes. */
const framings: Record<string, (count: number) => { field: string; pieces: Buffer[] }> = {
  'content-length': (count) => ({
    field: `content-length: ${count}`,
    pieces: Array.from({ length: count / 16_000 }, (_, n) => Buffer.alloc(16_000, 97 + n)),
  }),
  chunked: (count) => ({
    field: 'transfer-encoding: chunked',
    pieces: [
      ...Array.from({ length: count / 16_000 }, (_, n) =>
        Buffer.from(`3e80\r\n${String.fromCharCode(97 + n).repeat(16_000)}\r\n`),
      ),
      Buffer.from('0\r\n\r\n'),
    ],
  }),
}

for (const [framing, frame] of Object.entries(framings))
  test(`R18 after 65,536 bytes of a ${framing} body that is not read yet, its connection waits, and continues when it is read`, async () => {
    const house = openHouse()
    let read = 0
    const { field, pieces } = frame(160_000)
    const socket = new Duplex({
      highWaterMark: 1,
      // The next piece comes in a turn of its own, as from a network.
      read: () => void setImmediate(() => void (read < pieces.length && socket.push(pieces[read++]))),
      write: (_, __, done) => done(),
    })
    new Connection(socket as unknown as Socket, house.host)
    socket.unshift(Buffer.from(`POST / HTTP/1.1\r\nhost: x\r\n${field}\r\n\r\n`))
    await until(() => socket.isPaused() || read === pieces.length)
    // The fifth piece takes it past the bound; the stream itself may have one more.
    assert.ok(read === 5 || read === 6, `${read} pieces are read`)
    const limits = { bodyBytesMax: 160_000, bodyMs: 60_000, bodyGapMs: 60_000 }
    const body = await readBody(house.admitted[0]!, limits, new Bodies(10 * 160_000).enter('a'))
    assert.equal(
      body.toString(),
      Array.from({ length: 10 }, (_, n) => String.fromCharCode(97 + n).repeat(16_000)).join(''),
    )
  })

test('an exchange ends once: when its answer is taken or its client is gone; later callers are notified at once', async () => {
  const over: string[] = []
  const house = openHouse((exchange) => {
    exchange.whenOver(() => over.push('first'))
    exchange.whenOver(() => over.push('second'))
  })
  const openOne = await connectTo(house)
  for (const end of ['taken', 'gone']) {
    const { client } = await openOne()
    client.resume().write(asked)
    await until(() => house.admitted.length === 1)
    const [exchange] = house.admitted.splice(0)
    assert.equal(over.length, 0)
    if (end === 'taken') exchange!.answer(200, '', '{}')
    else client.destroy()
    await until(() => over.length === 2, end)
    exchange!.whenOver(() => over.push('late'))
    client.destroy()
    await until(() => exchange!.socket.destroyed)
    assert.deepEqual(over.splice(0), ['first', 'second', 'late'], end)
  }
})
