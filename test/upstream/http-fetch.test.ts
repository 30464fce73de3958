import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import test from 'node:test'
import { createServer as createTlsServer } from 'node:tls'
import { ProxyRefusal } from '../../src/upstream/dial.ts'
import { fetchHttp } from '../../src/upstream/http-fetch.ts'
import { createAuthority } from '../support/certificates.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { listen } from '../support/listen.ts'
import { head, startRawUpstream, stream, whole } from '../support/raw-upstream.ts'
import { until } from '../support/waiting.ts'

/* The one function of src that asks a server that is no upstream: webhooks, collectors, the command line (issue 44). */

test('issue 44 a GET has no body and the headers of its caller, and its response is read as text', async () => {
  const server = await startRawUpstream()
  server.play(whole({ a: 'é' }, 200, { 'X-Of-Server': 'one' }))
  const response = await fetchHttp(`${server.url}/a/b?c=d%20e`, { headers: { Accept: 'application/json', 'x-a': 'b' } })
  assert.deepEqual([response.status, response.ok, response.headers.get('x-of-server')], [200, true, 'one'])
  assert.equal(await response.text(), '{"a":"é"}')
  const [request] = server.requests
  assert.deepEqual([request!.method, request!.path], ['GET', '/a/b?c=d%20e'])
  assert.deepEqual(request!.headers, [
    ['host', server.url.slice('http://'.length)],
    ['connection', 'close'],
    ['accept', 'application/json'],
    ['accept-encoding', 'identity'],
    ['user-agent', 'triwire'],
    ['x-a', 'b'],
  ])
  await until(() => server.closed === 1, 'the connection is closed')
})

for (const [method, body] of [
  ['POST', 'é'],
  ['PATCH', Buffer.from('é')],
  ['DELETE', undefined],
] as const)
  test(`issue 44 ${method} sends its body with its length`, async () => {
    const server = await startRawUpstream()
    server.play(whole('', 204))
    const response = await fetchHttp(server.url, { method, ...(body && { body }) })
    assert.deepEqual([response.status, response.ok, await response.text()], [204, true, ''])
    const [request] = server.requests
    const length = body === undefined ? 0 : 2
    assert.deepEqual([request!.method, request!.header('content-length')], [method, `${length}`])
    assert.equal(request!.body.toString(), body === undefined ? '' : 'é')
  })

test('issue 44 a redirect is returned as an ordinary response, and not followed', async () => {
  const server = await startRawUpstream()
  server.play(whole('', 302, { location: '/elsewhere' }))
  const response = await fetchHttp(server.url)
  assert.deepEqual([response.status, response.ok, response.headers.get('location')], [302, false, '/elsewhere'])
  assert.equal(await response.text(), '')
  assert.equal(server.requests.length, 1)
})

for (const [name, isLong] of [
  ['a declared length', false],
  ['chunks', true],
] as const)
  test(`issue 44 a body longer than its limit is an error, and its connection is closed: ${name}`, async () => {
    const server = await startRawUpstream()
    server.play(isLong ? stream(['a'.repeat(600), 'b'.repeat(600)], { end: false }) : whole('a'.repeat(1_200)))
    const response = await fetchHttp(server.url)
    await assert.rejects(response.text(1_000), new Error('the answer is longer than 1000 bytes'))
    await until(() => server.closed === 1, 'the connection is closed')
  })

test('issue 44 a body is streamed: a reader that stops pauses the server, and reads all of it later', async () => {
  const server = await startRawUpstream()
  const piece = Buffer.alloc(1 << 20, 'a')
  let peer!: Socket
  server.play((socket) => {
    peer = socket
    socket.write(head(200, { 'content-length': `${32 * piece.length}` }))
    for (let i = 0; i < 32; i++) socket.write(piece)
  })
  const response = await fetchHttp(server.url)
  const { body } = response
  await until(() => body.readableLength >= body.readableHighWaterMark, 'the reader has enough')
  // Others are answered meanwhile.
  server.play(whole('{}'))
  for (let i = 0; i < 5; i++) await (await fetchHttp(server.url)).text()
  assert.ok(body.readableLength < piece.length, `${body.readableLength} bytes were read ahead`)
  assert.ok(peer.writableLength > 16 * piece.length, 'the server is held back')
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) bytes += chunk.length
  assert.equal(bytes, 32 * piece.length)
})

test('issue 44 destroying a body closes the connection', async () => {
  const server = await startRawUpstream()
  server.play(stream(['begun'], { end: false }))
  const response = await fetchHttp(server.url)
  response.body.destroy()
  await until(() => server.closed === 1, 'the connection is closed')
})

test('issue 44 a signal ends a request with its reason, before the head and within the body', async () => {
  const server = await startRawUpstream()
  const reason = new Error('enough')
  server.play(() => {}, stream(['begun'], { end: false }))
  const first = new AbortController()
  const asked = fetchHttp(server.url, { signal: first.signal })
  await until(() => server.requests.length === 1)
  first.abort(reason)
  await assert.rejects(asked, reason)
  const second = new AbortController()
  const response = await fetchHttp(server.url, { signal: second.signal })
  const read = response.text()
  second.abort(reason)
  await assert.rejects(read, reason)
  await until(() => server.closed === 2, 'both connections are closed')
  await assert.rejects(fetchHttp(server.url, { signal: second.signal }), reason)
  assert.equal(server.connections, 2)
})

for (const [name, answer, code] of [
  ['bytes that are no HTTP', 'SSH-2.0-x\r\n', 'EBADMSG'],
  ['an end before the head', '', 'ECONNRESET'],
] as const)
  test(`issue 44 ${name} is an error with ${code}`, async () => {
    const server = await startRawUpstream()
    server.play((socket) => void socket.end(answer))
    await assert.rejects(fetchHttp(server.url), { code })
  })

test('issue 44 an end within a body is an error of the body', async () => {
  const server = await startRawUpstream()
  server.play((socket) => void socket.end(`${head(200, { 'content-length': '9' })}half`))
  const response = await fetchHttp(server.url)
  await assert.rejects(response.text(), { code: 'ECONNRESET' })
})

for (const [url, message] of [
  ['ftp://127.0.0.1/', 'ftp: is neither http: nor https:'],
  ['http://ann:secret@127.0.0.1/', 'the address has credentials in it'],
] as const)
  test(`issue 44 a request to ${url} is rejected`, () => assert.rejects(fetchHttp(url), new Error(message)))

test('issue 44 a header that could become two is not sent', async () => {
  const server = await startRawUpstream()
  await assert.rejects(fetchHttp(server.url, { headers: { 'x-a': 'b\r\nx-c: d' } }), /header/)
  assert.equal(server.connections, 0)
})

/** TLS in front of a port. @returns its port */
async function secure(port: number, { cert, key }: { cert: string; key: string }): Promise<number> {
  const server = createTlsServer({ cert, key }, (socket) => {
    const onward = connect(port, '127.0.0.1')
    for (const one of [socket, onward]) one.on('error', () => {})
    socket.pipe(onward).pipe(socket)
  })
  server.on('tlsClientError', () => {})
  return listen(server)
}

test('issue 44 a certificate by a trusted authority must match the host name; a pinned certificate need not', async () => {
  const server = await startRawUpstream()
  server.play(whole('{}'))
  const authority = createAuthority()
  const pair = authority.issue('localhost')
  const port = await secure(Number(new URL(server.url).port), pair)
  const statusOf = async (host: string, trust: object) => (await fetchHttp(`https://${host}:${port}`, trust)).status
  assert.equal(await statusOf('localhost', { ca: authority.ca }), 200)
  assert.equal(await statusOf('127.0.0.1', { ca: pair.cert, isPinned: true }), 200)
  await assert.rejects(statusOf('127.0.0.1', { ca: authority.ca }), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' })
  await assert.rejects(statusOf('localhost', {}), { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' })
  const other = createAuthority().issue('localhost')
  await assert.rejects(statusOf('127.0.0.1', { ca: other.cert, isPinned: true }), /certificate/)
})

test('issue 44 a proxy is asked for a tunnel or in absolute form, and its refusals are reported as its own', async () => {
  const [server, proxy] = [await startRawUpstream(), await startEgressProxy()]
  server.play(whole('{}'))
  const authority = createAuthority()
  const port = await secure(Number(new URL(server.url).port), authority.issue('localhost'))
  const route = { proxy: new URL(proxy.url.replace('//', '//ann:secret@')), ca: authority.ca }
  const secured = `https://localhost:${port}`
  for (const url of [`${server.url}/a`, secured]) assert.equal((await fetchHttp(url, route)).status, 200)
  assert.deepEqual(proxy.asked, [`GET ${server.url}/a`, `CONNECT localhost:${port}`])
  assert.equal(new Set(proxy.credentials).size, 1)
  proxy.refuse(407)
  for (const url of [server.url, secured])
    await assert.rejects(fetchHttp(url, route), (error) => error instanceof ProxyRefusal && error.status === 407)
})
