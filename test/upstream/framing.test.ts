import assert from 'node:assert/strict'
import { createServer, type Socket } from 'node:net'
import test from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import fc from 'fast-check'
import { deafPort } from '../faults/deaf.ts'
import { readByNode } from '../http1/node-parser.ts'
import { atEnd } from '../support/at-end.ts'
import { createAuthority } from '../support/certificates.ts'
import { listen } from '../support/listen.ts'
import { gatewayEnd } from '../support/peer.ts'
import { type RawUpstream, startRawUpstream, whole } from '../support/raw-upstream.ts'
import { runsUpTo } from '../support/runs.ts'
import { turn, until } from '../support/waiting.ts'
import { openWay, type Way } from './flights.ts'

/* The client's own HTTP/1.1, before upstreams that are broken or hostile: an answer has one meaning, or it is none. */

const head = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n'
const chunked = `${head}transfer-encoding: chunked\r\n\r\n`

async function open(more: Parameters<typeof openWay>[2] = {}): Promise<{ upstream: RawUpstream; way: Way }> {
  const upstream = await startRawUpstream()
  return { upstream, way: openWay(upstream.url, {}, more) }
}

/** Written as it is; the connection stays open, unless it is to end behind it. */
const say =
  (bytes: string, ends = false) =>
  (socket: Socket) => {
    socket.write(bytes, 'latin1')
    if (ends) socket.end()
  }

const broken: Record<string, string> = {
  'two lengths': `${head}content-length: 2\r\ncontent-length: 3\r\n\r\nabc`,
  'the same length twice': `${head}content-length: 2\r\ncontent-length: 2\r\n\r\nab`,
  'a list of lengths': `${head}content-length: 2, 2\r\n\r\nab`,
  'a length with a sign': `${head}content-length: +2\r\n\r\nab`,
  'a length in hexadecimal': `${head}content-length: 0x2\r\n\r\nab`,
  'a length that no number holds': `${head}content-length: 99999999999999999999\r\n\r\nab`,
  'an empty length': `${head}content-length:\r\n\r\nab`,
  'a length beside chunks': `${head}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
  'another encoding': `${head}transfer-encoding: gzip\r\n\r\nab`,
  'another encoding before chunks': `${head}transfer-encoding: gzip, chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
  'chunks twice': `${head}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
  'chunks of HTTP/1.0': `${chunked.replace('1.1', '1.0')}2\r\nab\r\n0\r\n\r\n`,
  'a blank before a colon': `${head}content-length : 2\r\n\r\nab`,
  'a folded line': `${head}x: a\r\n b\r\ncontent-length: 2\r\n\r\nab`,
  'a line feed alone': `${head.replaceAll('\r\n', '\n')}content-length: 2\n\nab`,
  'a carriage return alone': `${head}x: a\rb\r\ncontent-length: 2\r\n\r\nab`,
  'a zero octet': `${head}x: \x00\r\ncontent-length: 2\r\n\r\nab`,
  'no name': `${head}: 1\r\ncontent-length: 2\r\n\r\nab`,
  'no colon': `${head}nothing\r\ncontent-length: 2\r\n\r\nab`,
  'another version': `${head.replace('1.1', '2.0')}content-length: 2\r\n\r\nab`,
  'a status of two digits': `${head.replace('200', '20')}content-length: 2\r\n\r\nab`,
  'a status of four digits': `${head.replace('200', '2000')}content-length: 2\r\n\r\nab`,
  'a thousand fields': `${head}${'x: y\r\n'.repeat(1_000)}content-length: 2\r\n\r\nab`,
  'another protocol': 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
  'no HTTP': 'SSH-2.0-x\r\n',
  'HTTP in small letters': head.toLowerCase(),
}
for (const [name, bytes] of Object.entries(broken))
  test(`F-U30 decision 59 an answer with ${name} is upstream_protocol, and its connection is closed`, async () => {
    const { upstream, way } = await open()
    upstream.play(say(bytes))
    const heard = way.send()
    await heard.untilOver()
    assert.deepEqual([heard.heads, heard.text, heard.ends], [0, '', 0])
    assert.deepEqual(heard.faults, [{ cause: 'upstream_protocol', isReuseRace: false }])
    await until(() => upstream.closed === 1)
  })

for (const bad of ['0x2', '-2', '2 ', ' 2', '2_', '', 'g', 'ffffffffffffffff', '2\n'])
  test(`F-U30 decision 59 a chunk of size ${JSON.stringify(bad)} cuts the answer at that point`, async () => {
    const { upstream, way } = await open()
    upstream.play(say(`${chunked}1\r\na\r\n${bad}\r\nbc\r\n0\r\n\r\n`))
    const heard = way.send()
    await heard.untilOver()
    assert.deepEqual([heard.heads, heard.text, heard.ends, heard.faults.length], [1, 'a', 0, 1])
    assert.equal(heard.faults[0]!.cause, 'upstream_protocol')
    await until(() => upstream.closed === 1)
  })

type Good = { bytes: string; text: string; isKept: boolean; ends?: boolean }
const good: Record<string, Good> = {
  'a length': { bytes: `${head}content-length: 2\r\n\r\nab`, text: 'ab', isKept: true },
  'no body': { bytes: `${head}content-length: 0\r\n\r\n`, text: '', isKept: true },
  'a status without words': { bytes: 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nab', text: 'ab', isKept: true },
  'chunks, extensions and a trailer': {
    bytes: `${chunked}1;x=y\r\na\r\n01\r\nb\r\n0\r\nx: content-length\r\n\r\n`,
    text: 'ab',
    isKept: true,
  },
  'interim answers before it': {
    bytes: `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\ncontent-length: 9\r\n\r\n${head}content-length: 2\r\n\r\nab`,
    text: 'ab',
    isKept: true,
  },
  'status 204, whatever length it tells': {
    bytes: 'HTTP/1.1 204 No\r\ncontent-length: 2\r\n\r\n',
    text: '',
    isKept: true,
  },
  'its last word': { bytes: `${head}connection: x, Close\r\ncontent-length: 2\r\n\r\nab`, text: 'ab', isKept: false },
  'the end of its connection': { bytes: `${head}\r\nab`, text: 'ab', isKept: false, ends: true },
  'HTTP/1.0': { bytes: 'HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nab', text: 'ab', isKept: false },
  'HTTP/1.0 that stays': {
    bytes: 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nab',
    text: 'ab',
    isKept: true,
  },
  'a time in which it may be closed': {
    bytes: `${head}keep-alive: timeout=1\r\ncontent-length: 2\r\n\r\nab`,
    text: 'ab',
    isKept: false,
  },
  'something behind it': {
    bytes: `${head}content-length: 2\r\n\r\nabHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged`,
    text: 'ab',
    isKept: false,
  },
  'something behind its chunks': { bytes: `${chunked}2\r\nab\r\n0\r\n\r\nx`, text: 'ab', isKept: false },
}
for (const [name, { bytes, text, isKept, ends }] of Object.entries(good))
  test(`F-U31 decision 59 an answer with ${name} is whole wherever it is cut, and its connection ${isKept ? 'serves again' : 'does not serve again'}`, async () => {
    const { upstream, way } = await open()
    const check = async (sizes: readonly number[]) => {
      upstream.play(async (socket) => {
        socket.setNoDelay()
        let at = 0
        for (const size of [...sizes, bytes.length]) {
          socket.write(bytes.slice(at, at + size), 'latin1')
          at += size
          // What is written in two turns is mostly read in two.
          await new Promise(setImmediate)
        }
        if (ends) socket.end()
      }, whole('{}'))
      const heard = way.send()
      await heard.untilOver()
      assert.deepEqual([heard.heads, heard.text, heard.ends, heard.faults], [1, text, 1, []])
      const before = upstream.requests.at(-1)!.connection
      way.pass()
      await way.send().untilOver()
      way.pass()
      assert.equal(upstream.requests.at(-1)!.connection === before, isKept)
    }
    await check([])
    await fc.assert(fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 20 }), { maxLength: 10 }), check), {
      numRuns: runsUpTo(15),
    })
  })

for (const [name, bytes] of Object.entries({
  'a head': 'HTTP/1.1 200 OK\r\ncontent-len',
  'a length': `${head}content-length: 3\r\n\r\nab`,
  'a chunk': `${chunked}3\r\nab`,
  'the last chunk': `${chunked}2\r\nab\r\n`,
  'a trailer': `${chunked}2\r\nab\r\n0\r\nx: y\r\n`,
}))
  test(`F-U9 decision 59 a connection that ends within ${name} has delivered no whole answer`, async () => {
    const { upstream, way } = await open()
    upstream.play(say(bytes, true))
    const heard = way.send()
    await heard.untilOver()
    assert.deepEqual([heard.ends, heard.faults], [0, [{ cause: 'upstream_reset', isReuseRace: false }]])
  })

test('decision 59 bytes on a connection without a request are not taken as the answer to the next request', async () => {
  const { upstream, way } = await open()
  let kept!: Socket
  upstream.play((socket, request) => {
    kept = socket
    return whole('{}')(socket, request)
  })
  await way.send().untilOver()
  const end = gatewayEnd(kept)
  kept.write(`${head}content-length: 6\r\n\r\nforged`)
  await until(() => end.destroyed, 'it is closed')
  const heard = way.send()
  await heard.untilOver()
  assert.deepEqual([heard.text, upstream.connections], ['{}', 2])
})

test('U1 decision 59 a connection on which an upstream answered before reading the whole request is not used again', async () => {
  let connections = 0
  const server = createServer((socket) => {
    connections++
    socket.on('error', () => {})
    socket.once('data', () => {
      if (connections === 1) socket.pause()
      socket.write(`${head}content-length: 2\r\n\r\nab`)
    })
  })
  atEnd(() => server.close())
  const way = openWay(`http://127.0.0.1:${await listen(server)}`)
  const early = way.send({ body: Buffer.alloc(30_000_000) })
  await early.untilOver()
  const next = way.send()
  await next.untilOver()
  assert.deepEqual([early.text, early.ends, next.text, connections], ['ab', 1, 'ab', 2])
})

test('F-U6 decision 59 if an upstream ends an idle connection, another one is used, which does not count as an attempt', async () => {
  const { upstream, way } = await open()
  let kept!: Socket
  upstream.play((socket, request) => {
    kept = socket
    return whole('{}')(socket, request)
  })
  await way.send().untilOver()
  const end = gatewayEnd(kept)
  // As soon as its end is known.
  const asked = new Promise<ReturnType<Way['send']>>((resolve) => end.once('end', () => resolve(way.send())))
  kept.end()
  const heard = await asked
  await heard.untilOver()
  assert.deepEqual([heard.text, heard.faults, upstream.connections], ['{}', [], 2])
})

for (const [name, ending] of Object.entries({
  'the end of its connection': '\r\n',
  'a length': 'content-length: 2\r\n\r\n',
}))
  test(`F-C9 X9 decision 59 an answer with ${name} that is paused is whole, though its upstream has closed, over TLS too`, async () => {
    const authority = createAuthority()
    const answer = (socket: Socket) => {
      socket.on('error', () => {})
      socket.once('data', () => socket.end(`${head}${ending}ab`))
    }
    const plain = createServer(answer)
    const secured = createTlsServer(authority.issue('localhost'), answer)
    for (const [scheme, server] of [
      ['http', plain],
      ['https', secured],
    ] as const) {
      atEnd(() => server.close())
      const way = openWay(`${scheme}://localhost:${await listen(server)}`, { ca: authority.ca })
      const heard = way.send()
      heard.flight.pause()
      await until(() => heard.heads === 1)
      // Others are answered meanwhile.
      for (let i = 0; i < 5; i++) await way.send().untilOver()
      assert.deepEqual([heard.text, heard.ends, heard.faults], ['', 0, []], scheme)
      heard.flight.resume()
      await heard.untilOver()
      assert.deepEqual([heard.text, heard.ends, heard.faults], ['ab', 1, []], scheme)
    }
  })

test('decision 59 closing all connections does not wait for one that is being opened', async () => {
  const way = openWay(`http://127.0.0.1:${(await deafPort()).port}`, {}, { connectMs: 60_000 })
  const heard = way.send()
  await turn()
  await way.upstreams.close()
  assert.equal(heard.faults.length, 1)
})

test('F-U28 F-U30 decision 59 the configured limit of heads holds, whatever the pieces they arrive in', async () => {
  const { upstream, way } = await open({ headerBytesMax: 1_000 })
  const long = (length: number) => `${head}x: ${'a'.repeat(length)}\r\ncontent-length: 2\r\n\r\nab`
  for (const [length, faults] of [
    [800, 0],
    [1_000, 1],
  ] as const) {
    upstream.play(async (socket) => {
      for (const piece of long(length).match(/.{1,97}/gs)!) {
        socket.write(piece)
        await new Promise(setImmediate)
      }
    })
    const heard = way.send()
    await heard.untilOver()
    assert.equal(heard.faults.length, faults)
  }
  for (const [fields, faults] of [
    [500, 0],
    [501, 1],
  ] as const) {
    const many = await open({ headerBytesMax: 20_000 })
    many.upstream.play(say(`HTTP/1.1 200 OK\r\n${'x: 1\r\n'.repeat(fields - 1)}content-length: 2\r\n\r\nab`))
    const heard = many.way.send()
    await heard.untilOver()
    assert.equal(heard.faults.length, faults, `${fields} fields`)
  }
  upstream.play(say(`HTTP/1.1 200 OK\r\nx: ${'a'.repeat(2_000)}`))
  const endless = way.send()
  await endless.untilOver()
  assert.equal(endless.faults[0]!.cause, 'upstream_protocol')
})

test('decision 59 a header that could become two is an error, and nothing is sent', async () => {
  const { upstream, way } = await open()
  for (const value of ['a\r\nx: y', 'a\nb', '\u010a', '\x00']) {
    const heard = way.send({ headers: [['x-a', value]] })
    await heard.untilOver()
    assert.deepEqual(heard.faults, [{ cause: 'upstream_protocol', isReuseRace: false }])
  }
  assert.equal(upstream.connections, 0)
})

test('F-U30 decision 59 Node reads every accepted answer in the same way, whatever was mutated in it', async () => {
  const { upstream, way } = await open()
  const octets = fc.constantFrom(...'\r\n\t :;,\x00\xff 0129aZ', '\r\n', '0\r\n\r\n', 'content-length: 1\r\n')
  const edits = fc.array(fc.tuple(fc.nat(160), fc.nat(2), octets), { maxLength: 3 })
  let taken = 0
  const check = async ({ bytes }: Good, changes: [number, number, string][]) => {
    const changed = changes.reduce((text, [at, cut, put]) => text.slice(0, at) + put + text.slice(at + cut), bytes)
    upstream.play(say(changed, true))
    const heard = way.send()
    await heard.untilOver()
    if (heard.ends === 0) return
    taken++
    // Node tells the interim answers too: what is compared is the last of its heads.
    const other = readByNode('response', Buffer.from(changed.replace(/^(HTTP\/1\.1 1\d\d.*?\r\n\r\n)+/s, ''), 'latin1'))
    // Of extensions, which both only read over, it takes fewer.
    if (other.isFault && changed.includes(';')) return
    assert.deepEqual(
      [heard.head!.status, heard.text],
      [other.head!.status, Buffer.from(other.body, 'latin1').toString()],
      JSON.stringify(changed),
    )
  }
  await fc.assert(fc.asyncProperty(fc.constantFrom(...Object.values(good)), edits, check), { numRuns: runsUpTo(400) })
  assert.ok(taken > runsUpTo(50), `${taken} were taken`)
})

test('X9 F-U31 decision 59 over TLS the same code reads the same answers, and a connection serves again', async () => {
  const authority = createAuthority()
  const { cert, key } = authority.issue('localhost')
  let connections = 0
  let answer: Good
  const server = createTlsServer({ cert, key }, (socket) => {
    connections++
    socket.on('error', () => {})
    socket.on('data', () => {
      socket.write(answer.bytes, 'latin1')
      if (answer.ends) socket.end()
    })
  })
  atEnd(() => server.close())
  const way = openWay(`https://localhost:${await listen(server)}`, { ca: authority.ca })
  for (const [name, each] of Object.entries(good)) {
    answer = each
    const before = connections
    for (let i = 0; i < 2; i++) {
      const heard = way.send()
      await heard.untilOver()
      assert.deepEqual([heard.text, heard.ends, heard.faults], [each.text, 1, []], name)
      way.pass()
    }
    assert.ok(connections - before <= (each.isKept ? 1 : 2), name)
    if (!each.isKept) assert.ok(connections > before, name)
  }
  answer = { bytes: `${chunked}1\r\na\r\n2 \r\nbc\r\n0\r\n\r\n`, text: '', isKept: false }
  const broken = way.send()
  await broken.untilOver()
  assert.deepEqual([broken.text, broken.faults[0]?.cause], ['a', 'upstream_protocol'])
})
