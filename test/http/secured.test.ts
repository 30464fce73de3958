import assert from 'node:assert/strict'
import { copyFileSync } from 'node:fs'
import { connect as connectPlainly } from 'node:net'
import { join } from 'node:path'
import test, { after, before } from 'node:test'
import { connect, type SecureVersion, type TLSSocket } from 'node:tls'
import { atEnd } from '../support/at-end.ts'
import { createAuthority, type Pair } from '../support/certificates.ts'
import { testFolder } from '../support/folder.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { createHeld } from '../support/held.ts'
import { startNative } from '../support/native.ts'
import { openRaw, type RawResult, raw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'

/*
 * The public listener over TLS (X9). All of test/http/framing is sent over TLS too; of test/http/edge here are rows that touch
 * what is different: sockets that are wrapped, connections that are counted, ends that are told, bytes that come together.
 */

const authority = createAuthority()
const [first, second] = [authority.issue('gateway.example'), authority.issue('gateway.example')]
const folder = testFolder('pair')
const tls = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') }
const put = (pair: Pair) => {
  copyFileSync(pair.certFile, tls.cert)
  copyFileSync(pair.keyFile, tls.key)
}
put(first)

let gateway: TestGateway
/** Of the same, with short deadlines: they bound the handshakes too, which take their time on a busy machine. */
let hasty: TestGateway
before(async () => {
  const limits = { requests_per_minute: 100_000, failed_auth_per_minute: 1_000 }
  gateway = await startTestGateway({ config: { tls, limits } })
  hasty = await startTestGateway({ config: { tls, limits, timeouts: { headers: 1_000, body: 600, body_gap: 250 } } })
})
after(() => Promise.all([gateway.close(), hasty.close()]))

const chat = '/v1/chat/completions'
const question = '{"model":"native-chat","messages":[{"role":"user","content":"canary-secured"}]}'
const streamed = question.replace('{', '{"stream":true,')

function head(path: string, lines: readonly string[], version = '1.1', key = gateway.key): string {
  return [`POST ${path} HTTP/${version}`, 'host: x', `authorization: Bearer ${key}`, ...lines, '', ''].join('\r\n')
}

function post(body: string, lines: readonly string[] = [], version = '1.1', key = gateway.key): string {
  return head(chat, [...lines, `content-length: ${Buffer.byteLength(body)}`], version, key) + body
}

function told({ answers }: RawResult): (string | number)[] {
  return answers.map(({ status, body }) => {
    const error = body.startsWith('{') ? (JSON.parse(body) as { error?: { code?: string; type: string } }).error : null
    return error ? `${status} ${error.code ?? error.type}` : status
  })
}

test('F-C11 F-C12 over TLS: pipelined requests after a stream get their answers in order, each with its own id', async () => {
  const bytes = `${post(streamed) + post(question) + head('/v1/nowhere', ['content-length: 0'])}GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n`
  const result = await raw(gateway.url, bytes, { answers: 4 })
  assert.deepEqual(told(result), [200, 200, '404 unknown_url', 200])
  assert.match(result.answers[0]!.body, /data: \[DONE\]\n\n$/)
  assert.equal(new Set(result.answers.map(({ headers }) => headers.get('x-request-id'))).size, 4)
})

test('F-C12 F-C22 F-C27 over TLS: garbage after a stream, chunk extensions and trailers, HTTP/1.0', async () => {
  const garbage = await raw(gateway.url, `${post(streamed)}\x00garbage\r\n\r\n`)
  assert.deepEqual([told(garbage), garbage.answers[0]!.isWhole, garbage.isClosed], [[200], true, true])
  const chunked = `${question.length.toString(16)};a=b\r\n${question}\r\n0\r\nx-api-key: other\r\n\r\n`
  const trailed = await raw(gateway.url, head(chat, ['transfer-encoding: chunked']) + chunked, { answers: 1 })
  assert.deepEqual(told(trailed), [200])
  const old = await raw(gateway.url, post(streamed, [], '1.0'))
  assert.deepEqual([told(old), old.isClosed], [[200], true])
})

test('F-C23 F-C24 F-C25 over TLS: 100-continue if it is due, otherwise a refusal and the end of the connection', async () => {
  const connection = await openRaw(gateway.url)
  connection.write(head(chat, ['expect: 100-continue', `content-length: ${question.length}`]))
  await connection.read({ until: /100 Continue\r\n\r\n/ })
  connection.write(question)
  assert.deepEqual(told(await connection.read({ answers: 1 })), [100, 200])
  connection.socket.destroy()
  const refused = await raw(gateway.url, head(chat, ['expect: 100-continue', 'content-length: 5242881']))
  assert.deepEqual([told(refused), refused.isClosed], [['413 request_too_large'], true])
  assert.deepEqual(told(await raw(gateway.url, post(question, ['expect: 200-maybe']))), ['417 invalid_body'])
})

test('R11 F-C13–F-C21 over TLS: one of each kind of bad framing is refused once and closes, whatever is hidden after it', async () => {
  const asked = gateway.simulator.requests.length
  const chunk = 'transfer-encoding: chunked'
  const bad = [
    head(chat, ['content-length: 2, 3']) + question,
    head(chat, [`content-length: ${question.length}`, 'Content-Length: 1']) + question,
    head(chat, [`content-length: ${question.length}`, chunk]) + question,
    head(chat, ['transfer-encoding: gzip, chunked']) + question,
    head(chat, [chunk], '1.0') + question,
    `${head(chat, [chunk])}5g\r\nhello\r\n`,
    head(chat, ['name: a\r\n folded', `content-length: ${question.length}`]) + question,
    'POST /v1/messages HTTP/0.9\r\nhost: x\r\n\r\n',
    '\x16\x03\x01\x00\xc5\x01\x00\x00\xc1\x03\x03',
  ]
  const results = await Promise.all(
    bad.map((bytes) => raw(gateway.url, `${bytes}GET /hidden HTTP/1.1\r\nhost: x\r\n\r\n`)),
  )
  for (const [index, { answers, isClosed, text }] of results.entries()) {
    assert.deepEqual([answers.length, answers[0]?.status, isClosed], [1, 400, true], `${bad[index]}: ${text}`)
    assert.match(answers[0]!.headers.get('x-request-id') ?? '', /^req_/)
  }
  const many = Array.from({ length: 120 }, (_, i) => `x-${i}: 1`)
  assert.deepEqual(told(await raw(gateway.url, head(chat, many))), ['431 invalid_body'])
  assert.deepEqual(told(await raw(gateway.url, 'CONNECT a:443 HTTP/1.1\r\nhost: a\r\n\r\n')), ['404 unknown_url'])
  assert.equal(gateway.simulator.requests.length, asked)
})

test('R11 F-C1 F-C2 F-C30 over TLS: missing headers or bodies get 408, and too long a body gets 413 while it is sent', async () => {
  const slow = await openRaw(hasty.url)
  slow.write('POST /v1/messages HTTP/1.1\r\nhost: x\r\n')
  const stops = raw(hasty.url, `${head('/v1/messages', ['content-length: 100'], '1.1', hasty.key)}{"model":`)
  assert.deepEqual([told(await slow.read()), told(await stops)], [['408 api_error'], ['408 api_error']])
  // Seven megabytes have their time on a busy machine.
  const patient = await startTestGateway({ config: { tls, timeouts: { linger: 60_000 } } })
  const piece = `100000\r\n${' '.repeat(1_048_576)}\r\n`
  const begin = head(chat, ['transfer-encoding: chunked'], '1.1', patient.key)
  const long = await raw(patient.url, begin + piece.repeat(7), { answers: 1 })
  assert.deepEqual([told(long), long.answers[0]!.headers.get('connection')], [['413 request_too_large'], 'close'])
})

test('F-C3 over TLS: a client that leaves in the middle of its body is logged as gone', async () => {
  const { socket, write } = await openRaw(gateway.url)
  const begun = gateway.begun()
  write(head(chat, ['content-length: 100']) + question.slice(0, 10))
  await until(() => gateway.begun() > begun)
  socket.destroy()
  await gateway.logWith({ outcome: 'client_abort' })
})

/** A handshake, to its end or its failure. */
function shake(options: { maxVersion?: SecureVersion; minVersion?: SecureVersion } = {}): Promise<TLSSocket | string> {
  return new Promise((resolve) => {
    const socket = connect({
      port: gateway.server.address.port,
      host: '127.0.0.1',
      servername: 'gateway.example',
      ca: authority.ca,
      // The client of a test may be as old as it likes.
      ciphers: 'DEFAULT@SECLEVEL=0',
      ...options,
    })
    atEnd(() => socket.destroy())
    socket.once('secureConnect', () => resolve(socket))
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}

const shown = async () => ((await shake()) as TLSSocket).getPeerX509Certificate()!.toString()

test('X9 TLS 1.2 and 1.3 are accepted, and 1.1 is not', async () => {
  for (const version of ['TLSv1.2', 'TLSv1.3'] as const) {
    const socket = (await shake({ minVersion: version, maxVersion: version })) as TLSSocket
    assert.deepEqual([socket.getProtocol(), socket.authorized], [version, true])
  }
  assert.match(`${await shake({ minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1' })}`, /ALERT|UNSUPPORTED|VERSION/)
})

test('U14 a reload applies renewed files to new connections; open ones go on, and a pair that does not match changes nothing', async () => {
  const before = await openRaw(gateway.url)
  before.write(post(question))
  await before.read({ answers: 1 })
  assert.equal(await shown(), first.cert)
  put(second)
  gateway.reload({})
  assert.equal(await shown(), second.cert)
  before.write(post(question))
  assert.deepEqual(told(await before.read({ answers: 2 })), [200, 200])
  copyFileSync(first.keyFile, tls.key)
  assert.throws(() => gateway.reload({}), /tls\.key is not the key of the first certificate in `tls\.cert`/)
  assert.equal(await shown(), second.cert)
  put(second)
})

test('Y19 X10 after a reload without tls, which waits for a restart, pages for people answer under the names of the certificate', async () => {
  const { port } = new URL(gateway.url)
  const ask = async () => {
    const lines = [
      `GET /console/api/me HTTP/1.1`,
      `host: gateway.example:${port}`,
      `authorization: Bearer ${gateway.key}`,
    ]
    return (await raw(gateway.url, `${lines.join('\r\n')}\r\n\r\n`, { answers: 1 })).answers[0]!.status
  }
  gateway.reload({ own_pages: true })
  assert.equal(await ask(), 200)
  gateway.reload({ own_pages: true, tls: undefined })
  assert.equal(await ask(), 200)
  gateway.reload({})
})

test('a client that sends no TLS, or nothing at all, is disconnected and logs nothing; its place is free again', async () => {
  const { port } = hasty.server.address
  const lines = (await hasty.logLines()).length
  const plain = connectPlainly(port, '127.0.0.1')
  const mute = connectPlainly(port, '127.0.0.1')
  let closed = 0
  for (const socket of [plain, mute]) {
    atEnd(() => socket.destroy())
    socket.on('error', () => {}).on('close', () => closed++)
    socket.resume()
  }
  plain.write('GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n')
  await until(() => closed === 2, 'both are hung up on')
  assert.deepEqual(told(await raw(hasty.url, post(question, [], '1.1', hasty.key), { answers: 1 })), [200])
  const said = (await hasty.logLines()).slice(lines).map(({ outcome, event }) => event ?? outcome)
  assert.deepEqual(said, ['ok'])
})

test('F-C49 over TLS: at the limit unfinished handshakes are closed first, then idle connections; a running answer is complete', async () => {
  const native = await startNative({ config: { tls, limits: { connections_max: 3 } } })
  const { gateway: small, upstream } = native
  const { answer, letGo } = createHeld()
  upstream.play(answer)
  const busy = await openRaw(small.url)
  busy.write(head(chat, [`content-length: ${streamed.length}`], '1.1', small.key) + streamed)
  await upstream.untilHeard()
  const greeting = connectPlainly(small.server.address.port, '127.0.0.1')
  let isClosed = false
  greeting.on('error', () => {}).on('close', () => (isClosed = true))
  greeting.resume()
  await new Promise((resolve) => greeting.once('connect', resolve))
  const models = 'GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n'
  const one = await openRaw(small.url)
  one.write(models)
  assert.deepEqual(told(await one.read({ answers: 1 })), [200])
  assert.equal(isClosed, false)
  const two = await openRaw(small.url)
  two.write(models)
  assert.deepEqual(told(await two.read({ answers: 1 })), [200])
  await until(() => isClosed)
  const three = await openRaw(small.url)
  assert.equal((await one.read()).isClosed, true)
  three.write(models)
  assert.deepEqual(told(await three.read({ answers: 1 })), [200])
  letGo()
  assert.match((await busy.read({ answers: 1 })).answers[0]!.body, /data: \[DONE\]\n\n$/)
  // The drain closes what is idle, and waits for nothing.
  await native.close()
})
