import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { connect } from 'node:net'
import test, { after, before } from 'node:test'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { createHeld } from '../support/held.ts'
import { startNative } from '../support/native.ts'
import { openRaw, type RawResult, raw } from '../support/raw.ts'
import { repeat, until } from '../support/waiting.ts'

let gateway: TestGateway
/** Of the same, with all the time that megabytes take on a busy machine. */
let patient: TestGateway
/** Of the same, with deadlines that only those tests have that are about them. */
let hasty: TestGateway
before(async () => {
  patient = await startTestGateway({ config: { timeouts: { linger: 60_000 } } })
  gateway = await startTestGateway({
    config: { limits: { requests_per_minute: 100_000, failed_auth_per_minute: 1_000 } },
  })
  hasty = await startTestGateway({ config: { timeouts: { headers: 1_000, body: 600, body_gap: 250 } } })
})
after(() => Promise.all([gateway.close(), patient.close(), hasty.close()]))

const chat = '/v1/chat/completions'
const question = '{"model":"native-chat","messages":[{"role":"user","content":"canary-edge"}]}'
const streamed = '{"model":"native-chat","stream":true,"messages":[{"role":"user","content":"canary-edge"}]}'

function head(path: string, lines: readonly string[], version = '1.1', key = gateway.key): string {
  return [`POST ${path} HTTP/${version}`, 'host: x', `authorization: Bearer ${key}`, ...lines, '', ''].join('\r\n')
}

function post(body: string, lines: readonly string[] = [], version = '1.1'): string {
  return head(chat, [...lines, `content-length: ${Buffer.byteLength(body)}`], version) + body
}

function chunk(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`
}

/** Status and code of each answer, informational ones too. */
function told({ answers }: RawResult): (string | number)[] {
  return answers.map(({ status, body }) => {
    const error = body.startsWith('{') ? (JSON.parse(body) as { error?: { code?: string; type: string } }).error : null
    return error ? `${status} ${error.code ?? error.type}` : status
  })
}

/** What each answer says of its connection. That it is closed indeed, other tests see. */
function closesOf({ answers }: RawResult): (string | undefined)[] {
  return answers.map(({ headers }) => headers.get('connection'))
}

test('F-C11 three pipelined requests get three answers in order, each with its own id', async () => {
  const bytes = `${post(question) + head('/v1/nowhere', ['content-length: 0'])}GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n`
  const result = await raw(gateway.url, bytes, { answers: 3 })
  assert.deepEqual(told(result), [200, '404 unknown_url', 200])
  assert.match(result.answers[0]!.body, /^\{"id":"chatcmpl-/)
  assert.match(result.answers[2]!.body, /^\{"object":"list"/)
  assert.equal(new Set(result.answers.map(({ headers }) => headers.get('x-request-id'))).size, 3)
  for (const { headers } of result.answers) await gateway.logOf(headers.get('x-request-id')!)
})

test('F-C12 a request pipelined after a stream waits for its end', async () => {
  const result = await raw(gateway.url, post(streamed) + post(question), { answers: 2 })
  assert.deepEqual(told(result), [200, 200])
  assert.match(result.answers[0]!.body, /data: \[DONE\]\n\n$/)
  assert.match(result.answers[1]!.body, /^\{"id":"chatcmpl-/)
})

test('F-C12 garbage after a request does not spoil its answer, and the connection closes', async () => {
  for (const body of [question, streamed]) {
    const result = await raw(gateway.url, `${post(body)}\x00garbage\r\n\r\n`)
    assert.deepEqual([told(result), result.isClosed], [[200], true])
    assert.equal(result.answers[0]!.isWhole, true)
  }
})

test('F-C12 garbage that arrives while a request is answered spoils nothing either', async () => {
  const native = await startNative()
  const { answer, letGo } = createHeld()
  native.upstream.play(answer)
  const { write, read } = await openRaw(native.gateway.url)
  write(head(chat, [`content-length: ${streamed.length}`], '1.1', native.gateway.key) + streamed)
  await native.upstream.untilHeard()
  write('{"a":1}')
  // Another request comes after it in the loop, so that it was read.
  assert.equal((await fetch(`${native.gateway.url}/v1/models`)).status, 200)
  letGo()
  const result = await read()
  assert.deepEqual([told(result), result.answers[0]!.isWhole, result.isClosed], [[200], true, true])
  await native.close()
})

test('F-C22 chunk extensions and trailers are ignored, a key in a trailer too', async () => {
  const trailed = (key: string, trailer: string) =>
    `${head(chat, ['transfer-encoding: chunked'], '1.1', key)}${chunk(question).replace('\r\n', ';a=b;c="d"\r\n')}0\r\n${trailer}\r\n\r\n`
  assert.deepEqual(told(await raw(gateway.url, trailed(gateway.key, 'x-api-key: other'), { answers: 1 })), [200])
  const spoofed = await raw(gateway.url, trailed('sk-tri-bad', `x-api-key: ${gateway.key}`), { answers: 1 })
  assert.deepEqual(told(spoofed), ['401 invalid_api_key'])
})

test('F-C23 expect: 100-continue gets its 100 once key and size are accepted', async () => {
  const connection = await openRaw(gateway.url)
  connection.write(head(chat, ['expect: 100-continue', `content-length: ${question.length}`]))
  await connection.read({ until: /100 Continue\r\n\r\n/ })
  connection.write(question)
  const result = await connection.read({ answers: 1 })
  assert.deepEqual(told(result), [100, 200])
  connection.socket.destroy()
})

test('F-C24 with a bad key, a body too large or no body to read there is no 100, and the connection closes', async () => {
  const expect = 'expect: 100-continue'
  const refused = {
    '401 invalid_api_key': head(chat, [expect, 'content-length: 10'], '1.1', 'sk-tri-bad'),
    '413 request_too_large': head(chat, [expect, 'content-length: 5242881']),
    '404 unknown_url': head('/v1/x', [expect, 'content-length: 10']),
    '400 invalid_body': head(chat, [expect, 'content-encoding: gzip', 'content-length: 10']),
  }
  const results = await Promise.all(Object.values(refused).map((bytes) => raw(gateway.url, bytes)))
  assert.deepEqual(
    results.map(told),
    Object.keys(refused).map((one) => [one]),
  )
})

test('R11 F-C25 another expectation is 417 with our envelope and id', async () => {
  const result = await raw(gateway.url, post(question, ['expect: 200-maybe']))
  assert.deepEqual(told(result), ['417 invalid_body'])
  assert.match(result.answers[0]!.headers.get('x-request-id') ?? '', /^req_/)
})

test('R3 F-C26 upgrades are ignored, CONNECT and TRACE unknown, OPTIONS * a preflight', async () => {
  const h2c = ['connection: upgrade, http2-settings', 'upgrade: h2c', 'http2-settings: AAMAAABkAAQAAP__']
  assert.deepEqual(told(await raw(gateway.url, post(question, h2c), { answers: 1 })), [200])
  const websocket = [
    'connection: upgrade',
    'upgrade: websocket',
    'sec-websocket-key: eA==',
    'sec-websocket-version: 13',
  ]
  const probe = (path: string) =>
    `${['GET', path, 'HTTP/1.1\r\nhost: x'].join(' ')}\r\n${websocket.join('\r\n')}\r\n\r\n`
  const told426 = await raw(gateway.url, probe('/v1/responses'), { answers: 1 })
  const told404 = await raw(gateway.url, probe('/v1/chat/completions'), { answers: 1 })
  assert.deepEqual([told(told426), told(told404)], [['426 unknown_url'], ['404 unknown_url']])
  assert.equal(told426.answers[0]!.body, told404.answers[0]!.body)
  assert.deepEqual(told(await raw(gateway.url, probe('/v1/nowhere'), { answers: 1 })), ['404 unknown_url'])
  assert.deepEqual(told(await raw(gateway.url, 'CONNECT a.example:443 HTTP/1.1\r\nhost: a\r\n\r\n')), [
    '404 unknown_url',
  ])
  const trace = await raw(gateway.url, 'TRACE /v1/messages HTTP/1.1\r\nhost: x\r\nx-a: canary-trace\r\n\r\n', {
    answers: 1,
  })
  assert.deepEqual(told(trace), ['404 unknown_url'])
  assert.doesNotMatch(trace.text, /canary/)
  const options = await raw(gateway.url, 'OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n', { answers: 1 })
  assert.deepEqual(told(options), [204])
  assert.match(options.answers[0]!.headers.get('x-request-id') ?? '', /^req_/)
})

test('F-C26 a CONNECT that is reset before its answer has no effect on others', async () => {
  for (let i = 0; i < 20; i++) {
    const { socket, write } = await openRaw(gateway.url)
    write('CONNECT a.example:443 HTTP/1.1\r\nhost: a\r\n\r\n')
    socket.resetAndDestroy()
  }
  assert.equal((await fetch(`${gateway.url}/v1/models`)).status, 200)
})

test('R3 an absolute-form target counts by its path', async () => {
  const bytes = post(question).replace(chat, `http://elsewhere.example${chat}?a=b`)
  assert.deepEqual(told(await raw(gateway.url, bytes, { answers: 1 })), [200])
  const none = 'GET http://elsewhere.example HTTP/1.1\r\nhost: x\r\n\r\n'
  assert.deepEqual(told(await raw(gateway.url, none, { answers: 1 })), ['404 unknown_url'])
  // The text after `?` or `#` is not part of the path, whatever it looks like (RFC 3986 3.3).
  for (const mark of ['?x=', '#'])
    assert.deepEqual(
      told(await raw(gateway.url, none.replace('.example', `.example${mark}/v1/models`), { answers: 1 })),
      ['404 unknown_url'],
    )
  for (const target of ['http:///v1/models', 'foo://a/v1/models'])
    assert.deepEqual(told(await raw(gateway.url, `GET ${target} HTTP/1.1\r\nhost: x\r\n\r\n`, { answers: 1 })), [
      '400 invalid_body',
    ])
})

test('R11 a Host header has one host with its port', async () => {
  const ask = (host: string) => raw(gateway.url, `GET /v1/models HTTP/1.1\r\nhost: ${host}\r\n\r\n`, { answers: 1 })
  // Forms of RFC 3986 3.2.2 and 3.2.3, in both places.
  const valid = [
    'a',
    'a.example:80',
    '127.0.0.1:',
    '[::1]:8080',
    'a_b%20c',
    '[::ffff:127.0.0.1]',
    "!$&'()*+,;=",
    'a:65535',
  ]
  const invalid = ['a b', 'a, b', 'a:1:2', 'a@b', 'a:b@c', '@', '[::1', '::1', 'a:b', 'a%zz', 'a%4', 'a%', '[]', '[zz]']
  invalid.push('[:::]', '[1:2:3:4:5:6:7:8:9]', '[1.2.3.4]', '[::ffff:1.2.3.400]', '[fe80::1%eth0]', '[fe80::1%25eth0]')
  invalid.push('[::1]x', 'a[::1]', '[a@b]', 'a:65536', 'a:-1', 'a:+1', 'a\\b', 'a"b', 'a|b', '\xe9')
  for (const host of ['', ':80', ...valid]) assert.deepEqual(told(await ask(host)), [200], host)
  for (const host of [...invalid, 'a/b', 'a?b']) assert.deepEqual(told(await ask(host)), ['400 invalid_body'], host)
  const askWhole = (authority: string) =>
    raw(gateway.url, `GET http://${authority}/none HTTP/1.1\r\nhost: a\r\n\r\n`, { answers: 1 })
  for (const authority of valid) assert.deepEqual(told(await askWhole(authority)), ['404 unknown_url'], authority)
  for (const authority of [...invalid, '', ':80'])
    assert.deepEqual(told(await askWhole(authority)), ['400 invalid_body'], authority)
})

test('decision 47 chunks are framed by their bytes, on the same wire and translated, and an answer after the last one is read', async () => {
  for (const model of ['native-chat', 'native-messages']) {
    const asked = `{"model":"${model}","stream":true,"messages":[{"role":"user","content":"canary \\u6f22\\ud83e\\udd8a"}]}`
    const { answers, text } = await raw(gateway.url, post(asked) + post(question), { answers: 2 })
    assert.deepEqual(
      answers.map(({ status, isWhole }) => [status, isWhole]),
      [
        [200, true],
        [200, true],
      ],
    )
    assert.equal(answers[0]!.headers.get('transfer-encoding'), 'chunked')
    const said = Buffer.from(answers[0]!.body, 'latin1').toString('utf8')
    assert.match(said, /漢.*🦊.*data: \[DONE\]\n\n$/s)
    assert.match(text, /\r\n0\r\n\r\nHTTP\/1\.1 200/)
  }
})

test('F-C27 a client of HTTP/1.0 gets a stream that ends with the connection', async () => {
  const { answers, isClosed } = await raw(gateway.url, post(streamed, [], '1.0'))
  assert.deepEqual([answers.length, answers[0]!.status, isClosed], [1, 200, true])
  assert.equal(answers[0]!.headers.get('transfer-encoding'), undefined)
  assert.match(answers[0]!.body, /data: \[DONE\]\n\n$/)
})

test('spec 8 F-C29 a declared length over 5 MB is 413 before the key, and readable while the client still sends', async () => {
  const piece = Buffer.alloc(65_536, 'x')
  const send = async (path: string) => {
    const connection = await openRaw(patient.url)
    connection.write(`POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-length: 5242881\r\n\r\n`)
    for (let i = 0; i < 80; i++) connection.write(piece)
    const result = await connection.read({ answers: 1 })
    assert.deepEqual([told(result), closesOf(result)], [['413 request_too_large'], ['close']], path)
    connection.socket.destroy()
  }
  await Promise.all([chat, '/v1/messages', '/v1/models', '/nowhere'].map(send))
  const left = await raw(gateway.url, head(chat, ['content-length: 5242881']))
  assert.deepEqual([told(left), left.isClosed], [['413 request_too_large'], true])
  const exactly = head(chat, ['content-length: 5242880'], '1.1', patient.key) + question.padEnd(5_242_880)
  const exact = await raw(patient.url, exactly, { answers: 1 })
  assert.deepEqual(told(exact), [200])
})

test('spec 8 F-C30 a chunked body over 5 MB gets a readable 413 at the byte that crosses the limit', async () => {
  const full = chunk(question.padEnd(1_048_576))
  const pad = chunk(' '.repeat(1_048_576))
  const begin = head(chat, ['transfer-encoding: chunked'], '1.1', patient.key)
  const fits = await raw(patient.url, `${begin}${full}${pad.repeat(4)}0\r\n\r\n`, { answers: 1 })
  assert.deepEqual(told(fits), [200])
  const before = patient.simulator.requests.length
  // Neither body has an end.
  for (const pieces of [`${pad.repeat(4)}1\r\n \r\n`, pad.repeat(12)]) {
    const over = await raw(patient.url, begin + full + pieces, { answers: 1 })
    assert.deepEqual([told(over), closesOf(over)], [['413 request_too_large'], ['close']])
  }
  assert.equal(patient.simulator.requests.length, before)
})

test('F-C29 F-C30 a client that writes its whole chunked body of 30 MB before it reads gets the 413, and no reset', async () => {
  const piece = chunk(' '.repeat(1_048_576))
  const socket = connect(Number(new URL(patient.url).port), '127.0.0.1')
  const faults: Error[] = []
  socket.on('error', (error) => faults.push(error))
  socket.pause()
  socket.write(head(chat, ['transfer-encoding: chunked'], '1.1', patient.key))
  for (let i = 0; i < 30; i++)
    if (!socket.write(piece)) await Promise.race([once(socket, 'drain'), once(socket, 'close')])
  await new Promise((resolve) => socket.write('0\r\n\r\n', resolve))
  const answer = (await socket.setEncoding('utf8').toArray()).join('')
  assert.deepEqual(faults, [])
  assert.match(answer, /^HTTP\/1\.1 413 /)
})

test('R11 RFC 9112 9.6 a client with broken chunks that keeps writing before it reads gets the 400, and no reset', async () => {
  const socket = connect(Number(new URL(patient.url).port), '127.0.0.1')
  const faults: Error[] = []
  socket.on('error', (error) => faults.push(error))
  socket.pause()
  socket.write(head(chat, ['transfer-encoding: chunked'], '1.1', patient.key))
  await new Promise((resolve) => socket.write(`no size\r\n${' '.repeat(4 * 1_048_576)}`, resolve))
  const answer = (await socket.setEncoding('utf8').toArray()).join('')
  assert.deepEqual(faults, [])
  assert.match(answer, /^HTTP\/1\.1 400 .*"code":"invalid_body"/s)
})

test('B6 B21 R11 connections whose requests were refused while they arrived are read again, however many there are at once', async () => {
  const list = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
  const ask = async (length: number) => {
    const { socket, write, read } = await openRaw(patient.url)
    write(head('/v1/nowhere', [`content-length: ${length}`]) + 'x'.repeat(length))
    const { answers } = await read({ answers: 1 })
    assert.equal(answers[0]!.headers.get('connection'), 'keep-alive')
    write(list)
    assert.deepEqual(told(await read({ answers: 2 })), ['404 unknown_url', 200])
    socket.destroy()
  }
  // Alone some of them end with the piece that is the last for a turn of the event loop.
  for (let length = 520_000; length < 600_000; length += 10_000) await ask(length)
  await Promise.all(Array.from({ length: 60 }, (_, i) => ask(500_000 + 8_192 * i)))
})

test('F-C31 a compressed body is refused without being inflated', async () => {
  for (const encoding of ['gzip', 'br', 'deflate', 'gzip, gzip', 'x-unknown']) {
    const result = await raw(gateway.url, post(question, [`content-encoding: ${encoding}`]), { answers: 1 })
    assert.deepEqual(told(result), ['400 invalid_body'], encoding)
  }
  for (const encoding of ['Identity', '']) {
    const result = await raw(gateway.url, post(question, [`content-encoding: ${encoding}`]), { answers: 1 })
    assert.deepEqual(told(result), [200], encoding)
  }
})

test('R11 spec 7.1 F-C1 headers that do not arrive get 408 in the envelope of their path, as far as it is known', async () => {
  const connection = await openRaw(hasty.url)
  connection.write('POST /v1/messages HTTP/1.1\r\nhost: x\r\n')
  const result = await connection.read()
  assert.deepEqual([told(result), result.isClosed], [['408 api_error'], true])
  const id = result.answers[0]!.headers.get('x-request-id')!
  assert.equal((await hasty.logOf(id))['outcome'], 'client_timeout')
})

test('R11 F-C1 half an empty line after an answer is not a head that must arrive in time', async () => {
  const { socket, write, read } = await openRaw(hasty.url)
  const list = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
  write(list)
  await read({ answers: 1 })
  socket.setNoDelay()
  write('\r')
  // By then the first half was read, and a deadline of its own would have ended with that of another.
  await raw(hasty.url, list, { answers: 1 })
  write('\n')
  const late = await openRaw(hasty.url)
  late.write('GET ')
  await late.read()
  write(list)
  assert.deepEqual(told(await read({ answers: 2 })), [200, 200])
  socket.destroy()
})

test('R11 F-C2 a body that stops, or trickles past its deadline, gets 408 in the envelope of its path', async () => {
  const before = hasty.simulator.requests.length
  const stopping = raw(hasty.url, `${head('/v1/messages', ['content-length: 100'], '1.1', hasty.key)}{"model":`)
  const connection = await openRaw(hasty.url)
  connection.write(head(chat, ['content-length: 1000000'], '1.1', hasty.key))
  const trickle = repeat(() => connection.write(' '))
  const stops = await stopping
  assert.deepEqual([told(stops), stops.isClosed], [['408 api_error'], true])
  const id = stops.answers[0]!.headers.get('x-request-id')!
  assert.equal((await hasty.logOf(id))['outcome'], 'client_timeout')
  const result = await connection.read()
  trickle.stop()
  assert.deepEqual(told(result), ['408 invalid_body'])
  assert.equal(hasty.simulator.requests.length, before)
})

test('reliability §3 a refused request whose body never comes does not keep its connection', async () => {
  const begins = [head('/v1/x', ['content-length: 9']), 'OPTIONS /x HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n']
  const results = await Promise.all(begins.map((begin) => raw(gateway.url, `${begin}1234`)))
  assert.deepEqual(
    results.map(({ answers, isClosed }) => [answers.length, isClosed]),
    [
      [1, true],
      [1, true],
    ],
  )
})

test('R11 RFC 9110 9.3.2 a refused HEAD gets the status and the length of the body, without the body', async () => {
  const client = connect(Number(new URL(gateway.url).port), '127.0.0.1')
  client.write('HEAD /v1/models HTTP/1.1\r\n\r\n')
  let text = ''
  client.on('data', (bytes: Buffer) => {
    text += bytes
  })
  await once(client, 'end')
  assert.match(text, /^HTTP\/1\.1 400 .*\r\ncontent-length: [1-9]\d*\r\ndate: [^\r]+\r\nconnection: close\r\n\r\n$/s)
})

test('F-C3 a client that leaves in the middle of its body is logged as gone, and no model is asked', async () => {
  const before = patient.simulator.requests.length
  const { socket, write } = await openRaw(patient.url)
  const begun = patient.begun()
  const aborts = async () => (await patient.logLines()).filter((line) => line['outcome'] === 'client_abort').length
  const abortsBefore = await aborts()
  const half = head(chat, ['content-length: 100'], '1.1', patient.key) + question.slice(0, 10)
  write(half)
  await until(() => patient.begun() > begun)
  socket.resetAndDestroy()
  await until(async () => (await aborts()) === abortsBefore + 1, 'the reset is logged')
  const fin = await raw(patient.url, half, { fin: true })
  assert.equal(fin.answers.length, 0)
  await until(async () => (await aborts()) === abortsBefore + 2, 'the end is logged')
  assert.equal(patient.simulator.requests.length, before)
})

test('F-C21 bytes above 0x7f in headers are legal: the beta header travels as it came', async () => {
  const body = '{"model":"native-messages","max_tokens":9,"messages":[{"role":"user","content":"canary-bytes"}]}'
  const lines = ['msgwire-beta: caf\xe9', 'x-session-id: \xff\xfe', `content-length: ${body.length}`]
  assert.deepEqual(told(await raw(gateway.url, head('/v1/messages', lines) + body, { answers: 1 })), [200])
  assert.equal(gateway.simulator.requests.at(-1)!.headers['anthropic-beta'], 'caf\xe9')
})

test('F-C49 at the limit of connections the oldest idle one is closed; those in use are untouched', async () => {
  const native = await startNative({ config: { limits: { connections_max: 3 } } })
  const { gateway: small, upstream } = native
  const { answer, letGo } = createHeld()
  upstream.play(answer)
  const busy = await openRaw(small.url)
  busy.write(head(chat, [`content-length: ${streamed.length}`], '1.1', small.key) + streamed)
  await upstream.untilHeard()
  const [oldest, second, third] = [await openRaw(small.url), await openRaw(small.url), await openRaw(small.url)]
  assert.equal((await oldest.read()).isClosed, true)
  for (const { write, read, socket } of [second, third]) {
    write('GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    assert.deepEqual(told(await read()), [200])
    socket.destroy()
  }
  letGo()
  const { answers } = await busy.read({ answers: 1 })
  assert.match(answers[0]!.body, /data: \[DONE\]\n\n$/)
  await native.close()
})

test('F-C49 connections without a request are closed before those that were answered, and of these the longest idle first', async () => {
  const small = await startTestGateway({ config: { limits: { connections_max: 3 } } })
  const list = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
  const [first, second] = [await openRaw(small.url), await openRaw(small.url)]
  for (const { client, answers } of [
    { client: first, answers: 1 },
    { client: second, answers: 1 },
    { client: first, answers: 2 },
  ]) {
    client.write(list)
    await client.read({ answers })
  }
  const flood = [await openRaw(small.url), await openRaw(small.url), await openRaw(small.url)]
  for (const { read } of flood.slice(0, 2)) assert.equal((await read()).isClosed, true)
  for (const { write, read } of flood.slice(2)) {
    write(list)
    assert.deepEqual(told(await read({ answers: 1 })), [200])
  }
  const last = await openRaw(small.url)
  assert.equal((await second.read()).isClosed, true)
  first.write(list)
  assert.deepEqual(told(await first.read({ answers: 3 })), [200, 200, 200])
  for (const { socket } of [first, last, ...flood]) socket.destroy()
  await small.close()
})

test('F-C49, B25: connections refused before their request was complete are closed first, before those of paid requests', async () => {
  const small = await startTestGateway({ config: { limits: { connections_max: 4 } } })
  const list = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
  const kept = await openRaw(small.url)
  kept.write(list)
  await kept.read({ answers: 1 })
  const refused = []
  for (let i = 0; i < 6; i++) {
    const client = await openRaw(small.url)
    client.write(head(chat, ['content-length: 3000000'], '1.1', 'sk-none'))
    client.write('x'.repeat(10_000))
    assert.deepEqual(told(await client.read({ answers: 1 })), ['401 invalid_api_key'])
    refused.push(client)
  }
  for (const { read } of refused.slice(0, 3)) assert.equal((await read()).isClosed, true)
  kept.write(list)
  assert.deepEqual(told(await kept.read({ answers: 2 })), [200, 200])
  for (const { socket } of [kept, ...refused]) socket.destroy()
  await small.close()
})

test('F-C49 at the limit, requests that ask no model give way to clients, though their bodies or answers stall', async () => {
  const small = await startTestGateway({ config: { own_pages: true, limits: { connections_max: 3 } } })
  const { host } = new URL(small.url)
  const stalled = []
  for (let i = 0; i < 3; i++) {
    const client = await openRaw(small.url)
    client.write(
      `POST /console/api/session HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\nexpect: 100-continue\r\ncontent-length: 99\r\n\r\n`,
    )
    // The handler waits for the body.
    await client.read({ until: /100 Continue/ })
    stalled.push(client)
  }
  const paying = await openRaw(small.url)
  paying.write(head(chat, [`content-length: ${question.length}`], '1.1', small.key) + question)
  assert.deepEqual(told(await paying.read({ answers: 1 })), [200])
  assert.equal((await stalled[0]!.read()).isClosed, true)
  for (const { socket } of [paying, ...stalled]) socket.destroy()
  await small.close()
})

test('F-C49 a connection is read once more before it is closed: a request unread while the loop was busy is answered', async () => {
  const small = await startTestGateway({ config: { limits: { connections_max: 2 } } })
  const list = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
  const kept = await openRaw(small.url)
  kept.write(list)
  await kept.read({ answers: 1 })
  let accepted = 0
  const count = () => void accepted++
  subscribe('net.server.socket', count)
  const silent = await openRaw(small.url)
  await until(() => accepted === 1, 'it is accepted')
  unsubscribe('net.server.socket', count)
  // All in one turn, so that the gateway sees a new connection first, and then the requests.
  const opening = openRaw(small.url)
  process.nextTick(() => {
    silent.write(list)
    kept.write(list)
  })
  const fresh = await opening
  assert.deepEqual(told(await silent.read({ answers: 1 })), [200])
  assert.deepEqual(told(await kept.read({ answers: 2 })), [200, 200])
  for (const { socket } of [kept, silent, fresh]) socket.destroy()
  await small.close()
})

for (const isChatty of [false, true])
  test(`F-C9 a client that does not read its JSON answer is not waited for indefinitely${isChatty ? ', though it goes on sending' : ''}`, async () => {
    const models = [testModel('large', 'chat', { upstream_model: 'script:large' })]
    const other = await startTestGateway({ models, config: { timeouts: { write_stall: 200 } } })
    other.simulator.script('large', { reply: 'canary-large '.repeat(600_000) })
    const body = question.replace('native-chat', 'large')
    const { socket, write, read } = await openRaw(other.url)
    socket.pause()
    write(head(chat, [`content-length: ${body.length}`], '1.1', other.key) + body)
    await other.logWith({ outcome: 'ok' })
    const sending = isChatty ? repeat(() => socket.writable && write('a')) : undefined
    await until(() => other.unended() === 0, 'the gateway gives up')
    sending?.stop()
    socket.resume()
    const { answers, isClosed } = await read()
    // What is sent to a closed connection resets it, which may take away what was received and not read yet.
    const cut = answers.map(({ status, isWhole }) => [status, isWhole])
    assert.deepEqual([cut, isClosed], [isChatty && cut.length === 0 ? [] : [[200, false]], true])
    await other.close()
  })

test('N3 the version and beta headers of the messages wire are accepted in both spellings, ours first, and the version is always sent', async () => {
  const body = { model: 'native-messages', max_tokens: 9, messages: [{ role: 'user', content: 'canary-version' }] }
  const sent = async (headers: Record<string, string>) => {
    await (await gateway.post('/v1/messages', body, headers)).text()
    const { headers: got } = gateway.simulator.requests.at(-1)!
    return [got['anthropic-version'], got['anthropic-beta'], got['msgwire-version'], got['msgwire-beta']]
  }
  assert.deepEqual(await sent({}), ['2023-06-01', undefined, undefined, undefined])
  assert.deepEqual(await sent({ 'anthropic-version': '2024-01-01' }), ['2024-01-01', undefined, undefined, undefined])
  const both = { 'msgwire-version': 'v9', 'anthropic-version': 'v1', 'msgwire-beta': 'a,b', 'anthropic-beta': 'c' }
  assert.deepEqual(await sent(both), ['v9', 'a,b', undefined, undefined])
})

test('F-C48 an idle connection is kept open for as long as announced', async () => {
  const response = await gateway.post(chat, question)
  await response.text()
  assert.equal(response.headers.get('keep-alive'), 'timeout=65')
})
