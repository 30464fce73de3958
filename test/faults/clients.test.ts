import assert from 'node:assert/strict'
import { startFaultProxy } from '../support/fault-proxy.ts'
import { asks, chunk, named, paths } from '../support/native.ts'
import { openRaw, type RawAnswer } from '../support/raw.ts'
import { type Answer, writeChunk } from '../support/raw-upstream.ts'
import { passUntil, repeat, until, untilStill } from '../support/waiting.ts'
import { type Bench, canary, openRows, stream, type Told, type Way, ways } from './bench.ts'
import { deafPort } from './deaf.ts'

/* The rows F-C of docs/faults.md. What is below a model's wire is tried on the three wires of clients. */

const row = openRows()

const on = ways.slice(0, 3)
const ok: Told = { client: 'whole', ledger: 'final', log: { outcome: 'ok', status: 200 } }
const gone = (outcome: string, ledger: Told['ledger']): Told => ({ client: 'gone', ledger, log: { outcome } })
const refused = (status: number, code: string, more: object = {}): Told => ({
  client: status,
  ledger: 'none',
  log: { outcome: 'refused', code, status, ...more },
})
const badHttp = refused(400, 'invalid_body', { cause: 'bad_http' })

const bodyOf = ({ client }: Way, more: object = {}) =>
  JSON.stringify({ ...asks[client], model: `native-${client}`, ...more })

/** A request as bytes; `KEY` becomes the key. */
function post(way: Way, lines: readonly string[], rest: string, version = '1.1', host = 'host: x'): string {
  const head = [`POST ${paths[way.client]} HTTP/${version}`, host, 'authorization: Bearer KEY', ...lines]
  return `${head.filter(Boolean).join('\r\n')}\r\n\r\n${rest}`
}

const sized = (way: Way, body: string, lines: readonly string[] = []) =>
  post(way, [...lines, `content-length: ${Buffer.byteLength(body)}`], body)

/** One answer, its connection closed behind it, and no model asked. */
async function isRefused(bench: Bench, bytes: string | Buffer, told: Told): Promise<RawAnswer> {
  const asked = bench.upstream.requests.length
  const { answers, isClosed } = await bench.raw(bytes)
  assert.deepEqual([answers.length, isClosed], [1, true], JSON.stringify(bytes).slice(0, 300))
  await bench.check(answers[0]!, told)
  assert.equal(bench.upstream.requests.length, asked)
  return answers[0]!
}

/** The same on a connection that may go on. */
async function isAnswered(bench: Bench, bytes: string | Buffer, told: Told): Promise<RawAnswer> {
  const { answers } = await bench.raw(bytes, { answers: 1 })
  await bench.check(answers.find(({ status }) => status >= 200)!, told)
  return answers[0]!
}

const wholeOf = (answer: RawAnswer): void => {
  assert.equal(answer.status, 200, answer.body)
  assert.ok(answer.isWhole && /H\xc3\xa9/.test(answer.body), answer.body)
}

/** A good request as bytes: a whole answer, billed. */
async function isServed(bench: Bench, bytes: string, more: Partial<Told> = {}): Promise<RawAnswer> {
  const { answers } = await bench.raw(bytes, { answers: 1 })
  const answer = answers.find(({ status }) => status >= 200)!
  wholeOf(answer)
  await bench.check(answer, { ...ok, client: 'gone', ...more })
  return answer
}

const deadlines = { own: { config: { timeouts: { headers: '600ms', body: '600ms', body_gap: '400ms' } } } }

row(
  'F-C1',
  'headers a byte at a time: 408 or closed after `headers`',
  { ...deadlines, on, isSlow: true },
  async (bench, way) => {
    const slow = await startFaultProxy(bench.gateway.url)
    slow.play({ up: { slice: 1, latencyMs: 20 } })
    const { socket, write, read } = await openRaw(slow.url)
    write(post(way, ['content-length: 2'], '{}').replace('KEY', bench.gateway.key))
    const { answers, isClosed } = await read()
    assert.ok(isClosed)
    socket.destroy()
    await bench.check(answers[0]!, {
      client: 408,
      ledger: 'none',
      log: { outcome: 'client_timeout', cause: 'client_timeout' },
    })
  },
)

row(
  'F-C2',
  'a body a byte at a time, or one that stops half-way: 408 after `body`',
  { ...deadlines, on, isSlow: true },
  async (bench, way) => {
    const told: Told = { client: 408, ledger: 'none', log: { outcome: 'client_timeout' } }
    await isRefused(bench, post(way, ['content-length: 100'], '{"model":'), told)
    const { socket, write, read } = await openRaw(bench.gateway.url)
    write(post(way, ['content-length: 100000'], '').replace('KEY', bench.gateway.key))
    const trickle = repeat(() => socket.writable && write(' '))
    const { answers } = await read({ answers: 1 })
    trickle.stop()
    socket.destroy()
    await bench.check(answers[0]!, told)
    assert.equal(bench.upstream.requests.length, 0)
  },
)

row('F-C3', 'gone in the middle of its body: no model is asked', {}, async (bench, way) => {
  const line = await startFaultProxy(bench.gateway.url)
  for (const trouble of [{ resetAt: 300 }, { cutAt: 300 }]) {
    line.play({ up: trouble })
    const { write, socket } = await openRaw(line.url)
    write(post(way, ['content-length: 4000'], '{"model":').replace('KEY', bench.gateway.key) + 'x'.repeat(400))
    await bench.checkNext(gone('client_abort', 'none'))
    socket.destroy()
  }
  assert.equal(bench.upstream.requests.length, 0)
})

row(
  'F-C4',
  'gone before the model’s head: the usage is learned in the settle window, and billed',
  {},
  async (bench) => {
    for (const isStream of [false, true]) {
      let go = () => {}
      bench.upstream.play((socket, request) => {
        go = () => void (isStream ? bench.good.stream : bench.good.whole)(socket, request)
      })
      const client = bench.client({ stream: isStream })
      await bench.isAsked()
      client.reset()
      await isReadOn(bench)
      go()
      await bench.checkNext(gone('client_abort', 'final'))
    }
  },
)

row('F-C4', 'gone before a connection came about: nothing is sent or billed', { own: {} }, async (bench) => {
  const { port, hangUp } = await deafPort()
  const sim = { base_url: `http://127.0.0.1:${port}`, accounts: [{ name: 'a', key: 'upstream-key-a' }] }
  bench.gateway.reload({ upstreams: { ...bench.upstreams, sim }, timeouts: { connect: '60s' } })
  const client = bench.client()
  await until(() => bench.gateway.server.gateway.deliveries.size === 1)
  client.reset()
  await bench.checkNext(gone('client_abort', 'none'))
  assert.equal(bench.gateway.server.gateway.readers.count, 0)
  await hangUp()
})

for (const how of ['reset', 'end'] as const) {
  row(
    'F-C5',
    `gone in the middle of a stream, by ${how}: the model is let go, or read on for its figures`,
    {},
    async (bench, way) => {
      bench.upstream.play(stream(bench.shown, { end: false }))
      const client = bench.client({ stream: true })
      await client.saw('Hé')
      const { closed } = bench.upstream
      client[how]()
      // What tells its figures at the end is read on for ten seconds (C12).
      if (way.model !== 'messages') {
        await isReadOn(bench)
        bench.gateway.advance(10_000)
      }
      await bench.checkNext(gone('client_abort', 'evidence'))
      await until(() => bench.upstream.closed > closed)
    },
  )
}

row('F-C6', 'gone after the last byte was handed over: an ordinary answer', {}, async (bench) => {
  bench.upstream.play(bench.good.stream)
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  await until(() => bench.gateway.server.gateway.deliveries.size === 0)
  client.reset()
  await bench.checkNext(gone('ok', 'final'))
})

row('F-C7', 'only its sending half is closed behind the request: it counts as gone', {}, async (bench, way) => {
  bench.upstream.play(stream(bench.shown, { end: false }))
  const client = bench.client({ stream: true })
  await client.saw('Hé')
  client.end()
  if (way.model !== 'messages') {
    await isReadOn(bench)
    bench.gateway.advance(10_000)
  }
  await bench.checkNext(gone('client_abort', 'evidence'))
})

row(
  'F-C8',
  'a reader of 1 KB a second gets a whole answer, and memory stays bounded',
  { isSlow: true },
  async (bench) => {
    const slow = await startFaultProxy(bench.gateway.url)
    const text = `${canary} `.repeat(100)
    bench.upstream.play(stream([...bench.shown, ...moreOf(bench.way, text, 10), ...bench.rest.map(tellMore)]))
    slow.play({ down: { bytesPerSecond: 1_024 } })
    const before = process.memoryUsage().arrayBuffers
    const more = bench.way.client === 'messages' ? { max_tokens: 4_000 } : {}
    const got = await bench.ask({ stream: true, url: slow.url, more })
    assert.ok(got.text.length > 13_000, `${got.text.length}`)
    assert.ok(process.memoryUsage().arrayBuffers - before < 20_000_000)
    await bench.check(got, ok)
  },
)

row(
  'F-C9',
  'a client that reads nothing holds the model back, and is closed after `write_stall`',
  { isSlow: true },
  async (bench, way) => {
    let written = 0
    const piece = moreOf(way, 'Hello '.repeat(4_000), 1)[0]!
    bench.upstream.play(async (socket, request) => {
      await stream(bench.shown, { end: false })(socket, request)
      while (!socket.destroyed && written < 100_000_000) {
        writeChunk(socket, piece)
        await new Promise((done) => socket.write('', done))
        written += piece.length
      }
    })
    const client = bench.client({ stream: true })
    await client.saw('Hé')
    client.pause()
    await untilStill(() => written)
    assert.ok(written < 50_000_000, `${written}`)
    bench.gateway.advance(59_000)
    assert.equal(bench.gateway.server.gateway.deliveries.size, 1)
    await passUntil(bench.gateway, () => hasLetGo(bench))
    bench.gateway.advance(10_000)
    await bench.checkNext(gone('client_stall', 'evidence'))
  },
)

row(
  'F-C10',
  'a client that vanishes without a word is found by the stall deadline',
  { isSlow: true },
  async (bench, way) => {
    // The network takes nothing more from the gateway and tells it of no end: what is left when a cable is pulled.
    const line = await startFaultProxy(bench.gateway.url)
    line.play({ down: { stallAt: 60_000 }, up: { swallowsEnd: true } })
    let written = 0
    const piece = moreOf(way, 'Hello '.repeat(4_000), 1)[0]!
    bench.upstream.play(async (socket, request) => {
      await stream(bench.shown, { end: false })(socket, request)
      while (!socket.destroyed && written < 100_000_000) {
        writeChunk(socket, piece)
        await new Promise((done) => socket.write('', done))
        written += piece.length
      }
    })
    const client = bench.client({ stream: true, url: line.url })
    await client.saw('Hé')
    await untilStill(() => written)
    client.reset()
    await passUntil(bench.gateway, () => hasLetGo(bench))
    bench.gateway.advance(10_000)
    await bench.checkNext(gone('client_stall', 'evidence'))
    line.drop()
  },
)

row(
  'F-C11',
  'three requests at once on one connection: three answers in order, each with its id and bill',
  { on },
  async (bench, way) => {
    bench.upstream.play(bench.good.whole)
    const { answers } = await bench.raw(sized(way, bodyOf(way)).repeat(3), { answers: 3 })
    assert.equal(new Set(answers.map(({ headers }) => headers.get('x-request-id'))).size, 3)
    for (const answer of answers) {
      wholeOf(answer)
      await bench.check(answer, { ...ok, client: 'gone' })
    }
  },
)

row('F-C12', 'a second request behind a stream waits for its end, and nothing is mixed', { on }, async (bench, way) => {
  bench.upstream.play(bench.good.stream, bench.good.whole)
  const both = sized(way, bodyOf(way, { stream: true })) + sized(way, bodyOf(way))
  const { answers } = await bench.raw(both, { answers: 2 })
  assert.equal(answers[0]!.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  for (const answer of answers) {
    wholeOf(answer)
    await bench.check(answer, { ...ok, client: 'gone' })
  }
})

row('F-C13', 'chunks framed wrongly: 400, closed', { isSlow: true, on }, async (bench, way) => {
  const chunks = [
    '0x5\r\nhello\r\n',
    'ffffffffffffffffff\r\nhello',
    '5\r\nhelloX\r\n',
    '5\nhello\n',
    'g\r\n',
    '5\r\nhello0\r\n\r\n',
    ' \r\n',
  ]
  for (const bad of chunks) {
    const told = await bench.raw(post(way, ['transfer-encoding: chunked'], bad))
    assert.deepEqual([told.answers.length, told.isClosed], [1, true], bad)
    await bench.check(told.answers[0]!, refused(400, 'invalid_body'))
  }
})

row(
  'F-C14',
  'two lengths, a length beside chunks, lengths that are no plain number: 400, closed',
  { on },
  async (bench, way) => {
    const body = bodyOf(way)
    for (const value of ['', '+2', '-1', '0x10', '2,2', '1e1', '18446744073709551616']) {
      await isRefused(bench, post(way, [`content-length: ${value}`], body), badHttp)
    }
    await isRefused(bench, post(way, ['content-length: 2', 'content-length: 3'], body), badHttp)
    await isRefused(bench, post(way, ['content-length: 2', 'transfer-encoding: chunked'], '0\r\n\r\n'), badHttp)
  },
)

row('F-C15', '`transfer-encoding: gzip, chunked`: 400, closed', { on }, async (bench, way) => {
  for (const value of ['gzip, chunked', 'chunked, chunked', 'identity', 'xchunked']) {
    await isRefused(bench, post(way, [`transfer-encoding: ${value}`], '2\r\n{}\r\n0\r\n\r\n'), badHttp)
  }
})

row('F-C16', 'chunks on HTTP/1.0: 400, closed', { on }, async (bench, way) => {
  await isRefused(bench, post(way, ['transfer-encoding: chunked'], '2\r\n{}\r\n0\r\n\r\n', '1.0'), badHttp)
})

row('F-C17', 'no host, two of them, a request line without a version: 400, closed', { on }, async (bench, way) => {
  await isRefused(bench, post(way, ['content-length: 2'], '{}', '1.1', ''), badHttp)
  await isRefused(bench, post(way, ['host: y', 'content-length: 2'], '{}'), badHttp)
  await isRefused(bench, `POST ${paths[way.client]}\r\nhost: x\r\n\r\n`, badHttp)
})

row('F-C18', 'one credential header twice with two values: 400, closed', { on }, async (bench, way) => {
  await isRefused(bench, sized(way, bodyOf(way), ['authorization: Bearer other']), badHttp)
  await isRefused(bench, sized(way, bodyOf(way), ['x-api-key: a', 'x-api-key: b']), badHttp)
})

row('F-C19', 'both credential headers with different keys: the first valid one pays', { on }, async (bench, way) => {
  bench.upstream.play(bench.good.whole)
  const line = await isServed(bench, sized(way, bodyOf(way), ['x-api-key: sk-tri-other']))
  const id = line.headers.get('x-request-id')!
  assert.equal((await bench.gateway.logOf(id))['account'], 'tester')
})

row(
  'F-C20',
  'more than 100 headers, over 16 KiB of them, a URL of 20 KB: 431 with our headers',
  { on },
  async (bench, way) => {
    const many = Array.from({ length: 120 }, (_, i) => `x-${i}: 1`)
    const large = Array(17).fill(`big: ${'a'.repeat(1_000)}`)
    const long = post(way, [], '').replace(paths[way.client], `${paths[way.client]}?${'a'.repeat(20_000)}`)
    for (const bytes of [post(way, many, ''), post(way, large, ''), long]) {
      await isRefused(bench, bytes, refused(431, 'invalid_body', { cause: 'bad_http' }))
    }
  },
)

row(
  'F-C21',
  'control bytes and folded lines: 400; high bytes are legal, and the beta is passed on',
  { isSlow: true, on },
  async (bench, way) => {
    for (const line of ['x: a\x00b', 'x: a\rb', 'x: a\r\n folded', 'x-session-id: \x01']) {
      await isRefused(bench, post(way, [line, 'content-length: 2'], '{}'), badHttp)
    }
    bench.upstream.play(bench.good.whole)
    await isServed(bench, sized(way, bodyOf(way), ['msgwire-beta: b\xe9ta', 'x-session-id: s\xe9ssion']))
    const [request] = bench.upstream.requests
    assert.ok(!request!.headers.some(([, value]) => value.includes(bench.gateway.key)), 'the key never goes on')
    if (way.model === 'messages') assert.match(String(request!.header('anthropic-beta')), /b\xe9ta|b\xc3\xa9ta/)
  },
)

row('F-C22', 'chunk extensions, and trailers that carry a key, are ignored', { on }, async (bench, way) => {
  bench.upstream.play(bench.good.whole)
  const body = bodyOf(way)
  const chunked = `${body.length.toString(16)};x=y\r\n${body}\r\n0\r\nx-api-key: other\r\n\r\n`
  await isServed(bench, post(way, ['transfer-encoding: chunked'], chunked))
})

row('F-C23', '`expect: 100-continue` and a good request: 100, then the answer', { on }, async (bench, way) => {
  bench.upstream.play(bench.good.whole)
  const { answers } = await bench.raw(sized(way, bodyOf(way), ['expect: 100-continue']), { answers: 1 })
  assert.deepEqual(
    answers.map(({ status }) => status),
    [100, 200],
  )
  await bench.check(answers[1]!, { ...ok, client: 'gone' })
})

row('F-C24', 'the same with a bad key or too long a body: 401 or 413 without the 100', { on }, async (bench, way) => {
  const bad = sized(way, bodyOf(way), ['expect: 100-continue']).replace('KEY', 'sk-tri-bad')
  await isRefused(bench, bad, refused(401, 'invalid_api_key'))
  await isRefused(
    bench,
    post(way, ['expect: 100-continue', 'content-length: 6000000'], ''),
    refused(413, 'request_too_large'),
  )
})

row('F-C25', 'another `expect`: 417 with request id and envelope', { on }, async (bench, way) => {
  await isRefused(bench, sized(way, '{}', ['expect: tea']), refused(417, 'invalid_body', { cause: 'bad_http' }))
})

row(
  'F-C26',
  'upgrades, CONNECT, TRACE, OPTIONS *: an ordinary answer, 404 or 204; 426 for the WebSocket probe',
  { on },
  async (bench, way) => {
    bench.upstream.play(bench.good.whole)
    await isServed(bench, sized(way, bodyOf(way), ['connection: upgrade', 'upgrade: h2c']))
    await isServed(bench, sized(way, bodyOf(way), ['connection: upgrade', 'upgrade: websocket']))
    const asked = bench.upstream.requests.length
    for (const [bytes, status] of [
      ['CONNECT x:443 HTTP/1.1\r\nhost: x\r\n\r\n', 404],
      ['TRACE / HTTP/1.1\r\nhost: x\r\n\r\n', 404],
      [
        'GET /v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n',
        426,
      ],
    ] as const) {
      await isAnswered(bench, bytes, refused(status, 'unknown_url'))
    }
    const { answers } = await bench.raw('OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n', { answers: 1 })
    assert.equal(answers[0]!.status, 204)
    assert.equal(bench.upstream.requests.length, asked)
  },
)

row('F-C27', 'HTTP/1.0 asks for a stream: a whole one that ends with the connection', { on }, async (bench, way) => {
  bench.upstream.play(bench.good.stream)
  const body = bodyOf(way, { stream: true })
  const { answers, isClosed } = await bench.raw(post(way, [`content-length: ${body.length}`], body, '1.0'))
  assert.deepEqual([isClosed, answers[0]!.headers.get('transfer-encoding')], [true, undefined])
  assert.match(answers[0]!.body, way.client === 'chat' ? /\[DONE\]\n\n$/ : /(message_stop|response\.completed)/)
  await bench.check(answers[0]!, { ...ok, client: 'gone' })
})

row('F-C28', 'TLS, random bytes, HTTP/2 on the plain port: 400 or closed', { on: 'any' }, async (bench) => {
  const hello = Buffer.from('16030100c5010000c10303000102030405060708090a0b0c0d0e0f', 'hex')
  for (const bytes of [hello, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', '\x00\x01\x02\x03', 'hello there\r\n\r\n']) {
    await isRefused(bench, bytes, badHttp)
  }
})

row(
  'F-C29',
  'a declared length over 5 MB: 413 before key and body, and who goes on sending can read it',
  { isSlow: true, on },
  async (bench, way) => {
    const head = post(way, ['content-length: 6000000'], '').replace('KEY', 'sk-tri-bad')
    await isRefused(bench, head, refused(413, 'request_too_large'))
    await isRefused(bench, head + 'x'.repeat(6_000_000), refused(413, 'request_too_large'))
  },
)

row('F-C30', 'a chunked body that passes 5 MB: 413 at that byte', { isSlow: true, on }, async (bench, way) => {
  const piece = `100000\r\n${' '.repeat(0x100000)}\r\n`
  await isRefused(bench, post(way, ['transfer-encoding: chunked'], piece.repeat(6)), refused(413, 'request_too_large'))
})

row('F-C31', 'a compressed body: 400, and it is never inflated', { on }, async (bench, way) => {
  for (const coding of ['gzip', 'br', 'gzip, gzip']) {
    await isAnswered(bench, sized(way, 'xx', [`content-encoding: ${coding}`]), refused(400, 'invalid_body'))
  }
})

row('F-C32', 'an empty body, or JSON that is no object: 400', { on }, async (bench, way) => {
  for (const body of ['', 'null', '[]', '"x"', '1', 'true'])
    await isAnswered(bench, sized(way, body), refused(400, 'invalid_body'))
})

row(
  'F-C33',
  'bad UTF-8, another encoding, a mark or bytes around the JSON, comments, NaN, single quotes: 400',
  { isSlow: true, on },
  async (bench, way) => {
    const bodies = [
      '{"a":1,}',
      "{'a':1}",
      '{"a":NaN}',
      '{"a":1}\u0000',
      '{/**/}',
      '{"a":"\xff"}',
      '\xef\xbb\xbf{}',
      '{\x00}\x00',
    ]
    for (const body of bodies) {
      const bytes = Buffer.from(
        post(way, [`content-length: ${body.length}`], body).replace('KEY', bench.gateway.key),
        'latin1',
      )
      await isAnswered(bench, bytes, refused(400, 'invalid_body'))
    }
  },
)

row('F-C34', 'millions of nested arrays or objects: 400', { isSlow: true, on }, async (bench, way) => {
  for (const body of ['['.repeat(2_600_000), `{"model":${'['.repeat(2_600_000)}`, '{"a":'.repeat(870_000)]) {
    await isAnswered(bench, sized(way, body), refused(400, 'invalid_body'))
  }
})

row('F-C35', 'hundreds of thousands of keys, or of empty objects: 400', { isSlow: true, on }, async (bench, way) => {
  const keys = Array.from({ length: 400_000 }, (_, i) => `"k${i}":1`).join()
  for (const body of [`{${keys}}`, `{${keys.replaceAll('k', '')}}`, `{"a":[${'{},'.repeat(1_700_000)}{}]}`]) {
    await isAnswered(bench, sized(way, body), refused(400, 'invalid_body'))
  }
})

row(
  'F-C36',
  '`__proto__`, `constructor`, `toString` are data: 404 as models, passed on as keys',
  { isSlow: true, on },
  async (bench, way) => {
    for (const name of ['__proto__', 'constructor', 'toString']) {
      await isAnswered(bench, sized(way, bodyOf(way, { model: name })), refused(404, 'model_not_found'))
      bench.upstream.play(bench.good.whole)
      const body = bodyOf(way).replace(/\}$/, `,"metadata":{"${name}":"x"}}`)
      await isServed(bench, sized(way, body))
    }
  },
)

row('F-C37', 'a key twice: refused by its name, and no model is asked', { on }, async (bench, way) => {
  const twice = bodyOf(way).replace('{', '{"model":"nobody",')
  await isAnswered(bench, sized(way, twice), refused(400, 'invalid_body'))
  assert.equal(bench.upstream.requests.length, 0)
})

row('F-C38', 'half a surrogate pair in a text: answered, and the escape stays one', {}, async (bench, way) => {
  bench.upstream.play(bench.good.whole)
  const text = 'a \\ud83d b'
  const body = JSON.stringify({ ...asks[way.client], model: `native-${way.model}` }).replace('"Hi"', `"${text}"`)
  await isServed(bench, sized(way, body))
  assert.ok(bench.upstream.requests[0]!.body.toString().includes(text))
})

row('F-C39', 'numbers that a double cannot hold: the same bytes on the same wire', { on }, async (bench, way) => {
  bench.upstream.play(bench.good.whole)
  const number = '9007199254740993'
  const field = way.client === 'messages' ? '"metadata":{"x":' : '"metadata":{"x":'
  await isServed(bench, sized(way, bodyOf(way).replace(/\}$/, `,${field}${number}}}`)))
  assert.ok(bench.upstream.requests[0]!.body.toString().includes(number))
})

row('F-C40', 'caps that are negative, zero, fractional, text or huge: 400, or lowered', {}, async (bench, way) => {
  const cap = { messages: 'max_tokens', chat: 'max_tokens', responses: 'max_output_tokens' }[way.client]
  for (const bad of [-1, 0, 0.5, '100']) {
    await bench.check(await bench.ask({ more: { [cap]: bad } }), refused(400, 'invalid_body'))
  }
  bench.upstream.play(bench.good.whole)
  await bench.check(await bench.ask({ more: { [cap]: 1e15 } }), ok)
  const sent = bench.upstream.requests[0]!.json()
  const told = sent['max_tokens'] ?? sent['max_completion_tokens'] ?? sent['max_output_tokens']
  assert.equal(told, 8192)
})

row(
  'F-C41',
  'a million empty messages, ten thousand tools, one text of 5 MB: an answer or a refusal, in linear time',
  { isSlow: true },
  async (bench, way) => {
    const field = way.client === 'responses' ? 'input' : 'messages'
    const tools = Array.from({ length: 10_000 }, (_, i) => JSON.stringify(toolOf(way.client, `tool_${i}`))).join()
    const texts = [
      `{"model":"native-${way.model}","max_tokens":9,"${field}":[${'{},'.repeat(1_000_000)}{}]}`,
      `{"model":"native-${way.model}","max_tokens":9,"${field}":[{"role":"user","content":"${'x'.repeat(5_000_000)}"}]}`,
      `{"model":"native-${way.model}","max_tokens":9,"${field}":[{"role":"user","content":"Hi"}],"tools":[${tools}]}`,
    ]
    bench.upstream.play(bench.good.whole)
    for (const body of texts) {
      const { answers } = await bench.raw(sized(way, body), { answers: 1 })
      const { status } = answers[0]!
      assert.ok(status === 200 || status === 400, answers[0]!.body)
      await bench.check(answers[0]!, status === 200 ? { ...ok, client: 'gone' } : refused(400, 'invalid_body'))
    }
  },
)

row('F-C42', 'conversation keys of 256 characters pass, of 257 do not, whatever the characters', {}, async (bench) => {
  bench.upstream.play(bench.good.whole)
  for (const letter of ['a', 'é']) {
    const key = Buffer.from(letter.repeat(256)).toString('latin1')
    await bench.check(await bench.ask({ headers: { 'x-session-id': key } }), ok)
    await bench.check(await bench.ask({ headers: { 'x-session-id': `${key}a` } }), refused(400, 'invalid_cache_key'))
  }
})

row(
  'F-C43',
  'a thousand at once: exactly `requests_per_minute` are let in, the others 429 with retry-after',
  { isSlow: true, on: ways.slice(0, 3), own: { config: { limits: { requests_per_minute: 300 } } } },
  async (bench) => {
    bench.upstream.play(bench.good.whole)
    const count = 400
    const all = await Promise.all(Array.from({ length: count }, () => bench.ask()))
    const over = all.filter(({ status }) => status === 429)
    assert.equal(over.length, count - 300)
    for (const got of [over[0]!, over.at(-1)!]) {
      assert.ok(Number(got.headers['retry-after']) >= 1)
      await bench.check(got, refused(429, 'rate_limit_exceeded'))
    }
    await bench.check(all.find(({ status }) => status === 200)!, ok)
  },
)

row(
  'F-C44',
  'more than ten bad keys from one address or one /64: 429, and forging helps nobody',
  { on: ways.slice(0, 3), own: {} },
  async (bench) => {
    const bad = (from: string) =>
      bench.ask({ headers: { authorization: 'Bearer sk-tri-bad', 'x-forwarded-for': from } })
    for (let i = 0; i < 10; i++) await bench.check(await bad(`198.51.100.${i}`), refused(401, 'invalid_api_key'))
    for (let i = 0; i < 2; i++) {
      const got = await bad(`203.0.113.${i}`)
      assert.ok(Number(got.headers['retry-after']) >= 1)
      await bench.check(got, refused(429, 'too_many_failed_auth'))
    }
    // Behind a proxy that is trusted its word counts, and a /64 is one address.
    bench.gateway.reload({ trusted_proxies: ['127.0.0.0/8'] })
    for (let i = 0; i < 10; i++) await bench.check(await bad(`2001:db8::${i}`), refused(401, 'invalid_api_key'))
    await bench.check(await bad('2001:db8::ff:1'), refused(429, 'too_many_failed_auth'))
    await bench.check(await bad('2001:db8:0:1::1'), refused(401, 'invalid_api_key'))
  },
)

for (const how of ['key revoked', 'account suspended'] as const) {
  row(
    'F-C45',
    `${how} while its stream runs: it ends normally, the next request is 401`,
    { isSlow: true, own: {} },
    async (bench) => {
      const { store, ledger } = bench.gateway
      bench.upstream.play(held(bench))
      const client = bench.client({ stream: true })
      await client.saw('Hé')
      const [account] = [...ledger.accounts.keys()]
      if (how === 'key revoked') store.revokeKey(bench.gateway.key.slice(0, 15))
      else store.updateAccount('tester', { state: 'suspended' })
      let next = await bench.ask()
      await until(async () => {
        if (next.status === 401) return true
        next = await bench.ask()
        return next.status === 401
      }, 'the gateway hears of it')
      await bench.check(next, refused(401, how === 'key revoked' ? 'invalid_api_key' : 'account_suspended'))
      assert.ok(account)
      letGo(bench)
      await bench.check(await client.got, ok)
    },
  )
}

row(
  'F-C46',
  'a balance that reaches zero while a stream runs: it ends normally, the next request is 402',
  { own: { credit: '0.00002' } },
  async (bench) => {
    bench.upstream.play(held(bench))
    const client = bench.client({ stream: true })
    await client.saw('Hé')
    letGo(bench)
    await bench.check(await client.got, ok)
    await bench.check(await bench.ask(), refused(402, 'insufficient_credits'))
  },
)

row(
  'F-C47',
  'many at once on a balance for few: overdraft within its bound, the others are 402',
  { isSlow: true, own: { credit: '0.01' } },
  async (bench) => {
    bench.upstream.play(bench.good.whole)
    const all = await Promise.all(Array.from({ length: 100 }, () => bench.ask()))
    const served = all.filter(({ status }) => status === 200)
    const over = all.filter(({ status }) => status === 402)
    assert.ok(
      served.length > 0 && over.length > 0 && served.length + over.length === 100,
      `${served.length} ${over.length}`,
    )
    await bench.check(served[0]!, ok)
    await bench.check(over[0]!, refused(402, 'insufficient_credits'))
    const { accounts, balances } = bench.gateway.ledger
    for (const id of accounts.keys()) assert.ok(balances.get(id)!.balanceNanos > -20_000_000n)
  },
)

row(
  'F-C48',
  'a request on a connection that is being closed as idle is answered, or closed with nothing done',
  { on, isSlow: true, own: { config: { timeouts: { keep_alive: '1100ms' } } } },
  async (bench, way) => {
    bench.upstream.play(bench.good.whole)
    const connections = await Promise.all(Array.from({ length: 40 }, () => openRaw(bench.gateway.url)))
    const bytes = sized(way, bodyOf(way)).replace('KEY', bench.gateway.key)
    for (const { write } of connections) write(bytes)
    for (const { read } of connections) await read({ answers: 1 })
    const announced = (await connections[0]!.read({ answers: 1 })).answers[0]!.headers.get('keep-alive')
    assert.equal(announced, 'timeout=1')
    const [watched, ...others] = connections
    const start = performance.now()
    let next = 0
    // One after the other, through the moment at which they are closed.
    const writing = repeat(() => {
      if (performance.now() - start > 900 && next < others.length) others[next++]!.write(bytes)
    })
    assert.equal((await watched!.read()).isClosed, true)
    await until(() => next === others.length)
    writing.stop()
    let answered = 0
    for (const { read, socket } of others) {
      const { answers, isClosed } = await read({ answers: 2 })
      assert.ok(answers.length === 2 || isClosed)
      for (const answer of answers) wholeOf(answer)
      if (answers.length === 2) await bench.check(answers[1]!, { ...ok, client: 'gone' })
      answered += answers.length
      socket.destroy()
    }
    assert.equal(bench.upstream.requests.length, answered + 1, 'what was not answered was not done')
  },
)

row(
  'F-C49',
  'idle connections at the limit: the oldest make room, live ones stay',
  { isSlow: true, on, own: { config: { limits: { connections_max: 20, requests_per_minute: 10_000 } } } },
  async (bench, way) => {
    bench.upstream.play(held(bench))
    const busy = await openRaw(bench.gateway.url)
    busy.write(sized(way, bodyOf(way, { stream: true })).replace('KEY', bench.gateway.key))
    await bench.isAsked()
    const idle = []
    for (let i = 0; i < 24; i++) idle.push(await openRaw(bench.gateway.url))
    for (const { read, socket } of idle.slice(0, 5)) {
      assert.equal((await read()).isClosed, true)
      socket.destroy()
    }
    letGo(bench)
    const { answers } = await busy.read({ answers: 1 })
    wholeOf(answers[0]!)
    await bench.check(answers[0]!, { ...ok, client: 'gone' })
    for (const { socket } of idle) socket.destroy()
  },
)

row(
  'F-C50',
  'a preflight with unusual headers: 204 that allows what was asked, without a key',
  { on },
  async (bench, way) => {
    const { answers } = await bench.raw(
      `OPTIONS ${paths[way.client]} HTTP/1.1\r\nhost: x\r\norigin: https://a.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: x-odd, x-stainless-os\r\n\r\n`,
      { answers: 1 },
    )
    assert.equal(answers[0]!.status, 204)
    assert.equal(answers[0]!.headers.get('access-control-allow-headers'), 'x-odd, x-stainless-os')
    await bench.check(answers[0]!, gone('ok', 'none'))
  },
)

function toolOf(wire: Way['client'], name: string): object {
  const parameters = { type: 'object', properties: {} }
  if (wire === 'messages') return { name, input_schema: parameters }
  return wire === 'chat' ? { type: 'function', function: { name, parameters } } : { type: 'function', name, parameters }
}

/** The end of an answer that has told far more than three tokens. */
function tellMore(frame: string): string {
  return frame
    .replace(/("(?:output|completion)_tokens":)3\b/, '$14000')
    .replace('"total_tokens":12', '"total_tokens":4009')
}

async function isReadOn(bench: Bench): Promise<void> {
  await until(() => bench.gateway.server.gateway.readers.count > 0, 'it is read on')
}

/** Frames that go on with a text. */
function moreOf({ model }: Way, text: string, times: number): string[] {
  const part = { item_id: 'msg_up1', output_index: 0, content_index: 0 }
  const frame = {
    messages: () => named({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }),
    chat: () => chunk({ choices: [{ index: 0, delta: { content: text }, finish_reason: null }] }),
    responses: () =>
      named({ type: 'response.output_text.delta', sequence_number: 4, ...part, delta: text, logprobs: [] }),
  }[model]
  return Array.from({ length: times }, frame)
}

let rest = () => {}

/** Streams that show something of their answer and wait; anything else is answered at once. */
function held(bench: Bench): Answer {
  return async (socket, request) => {
    if (request.json()['stream'] !== true) return bench.good.whole(socket, request)
    await stream(bench.shown, { end: false })(socket, request)
    rest = () => {
      for (const frame of bench.rest) writeChunk(socket, frame)
      socket.write('0\r\n\r\n')
    }
  }
}

/** Its client is given up: what its model still says is read on for the bill, or it is over. */
function hasLetGo({ gateway }: Bench): boolean {
  const { readers, deliveries } = gateway.server.gateway
  return readers.count > 0 || deliveries.size === 0
}

function letGo(_bench: Bench): void {
  rest()
}
