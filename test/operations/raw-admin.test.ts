import assert from 'node:assert/strict'
import test from 'node:test'
import { Secret } from '../../src/config/config.ts'
import { createAuthority } from '../support/certificates.ts'
import { openRaw, type RawConnection, raw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'
import { startApi } from './api.ts'
import { createBareApi, startBareAdmin } from './bare-admin.ts'

const crlf = (lines: readonly string[], body = '') => `${lines.join('\r\n')}\r\n\r\n${body}`

async function start() {
  const api = await startApi()
  const { host, port } = new URL(api.gateway.adminUrl)
  const own = [`Host: ${host}`, `Authorization: Bearer ${api.admin}`]
  const send = (bytes: string, options = {}) => raw(api.gateway.adminUrl, bytes, { answers: 1, ...options })
  return { ...api, host, port, own, send }
}

test('operate §6 the Host header is checked first: only a loopback name with its port is accepted', async () => {
  const { send, host, port, gateway } = await start()
  const by = async (...lines: string[]) => (await send(crlf(['GET /api/v1/me HTTP/1.1', ...lines]))).answers[0]!.status
  for (const good of [host, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`, `127.1.2.3:${port}`])
    assert.equal(await by(`Host: ${good}`), 401, good)
  for (const bad of [
    `rebound.example:${port}`,
    'rebound.example',
    `localhost.evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    '127.0.0.1',
    `127.0.0.1:${Number(port) + 1}`,
    `10.0.0.1:${port}`,
    `2130706433:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    '',
  ])
    assert.equal(await by(`Host: ${bad}`), 421, bad)
  for (const none of [`user@127.0.0.1:${port}`, `127.0.0.1:${port}@evil.example`, `127.0.0.1:${port}, evil.example`])
    assert.equal(await by(`Host: ${none}`), 400, none)
  assert.equal(await by('X: y'), 400)
  const health = await send(crlf(['GET /healthz HTTP/1.1', 'Host: anything.example']))
  assert.equal(health.answers[0]!.status, 200)
  // What it is to an orchestrator says nothing of the API.
  assert.equal((await fetch(`${gateway.adminUrl}/api/v1`)).status, 404)
})

test('operate §6 raw requests that are not what they seem are refused, and change nothing', async () => {
  const { send, own, gateway } = await start()
  const before = gateway.store.listAccounts().length
  const body = '{"name":"smuggled"}'
  const json = 'Content-Type: application/json'
  const cases: [lines: string[], body: string, status: number][] = [
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 5', 'Transfer-Encoding: chunked'], body, 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 19', 'Content-Length: 18'], body, 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: -1'], body, 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 65537'], body, 413],
    [['POST /api/v1/accounts HTTP/1.1', ...own, 'Content-Type: text/plain', 'Content-Length: 19'], body, 415],
    [['POST /api/v1/accounts HTTP/1.1', ...own, 'Content-Type: application/jsonp', 'Content-Length: 19'], body, 415],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 18'], body, 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 4'], '[{}]', 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 4'], 'null', 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 12'], '{"name":"\xff"}', 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Content-Length: 17'], '{"name":"\\u0000"}', 400],
    [['POST /api/v1/accounts HTTP/1.1', ...own, json], '', 400],
    [['GET /api/v1/accounts/%zz HTTP/1.1', ...own], '', 404],
    [['GET /api/v1/accounts/%2e%2e HTTP/1.1', ...own], '', 404],
    [['GET /api/v1/../v1/accounts HTTP/1.1', ...own], '', 404],
    [['GET /api/v1/accounts/ HTTP/1.1', ...own], '', 404],
    [['GET /api/v1//accounts HTTP/1.1', ...own], '', 404],
    [['GET /api/v1/accountsX HTTP/1.1', ...own], '', 404],
    [['GET /api/v1/openapixjson HTTP/1.1', ...own], '', 404],
    [['TRACE /api/v1/accounts HTTP/1.1', ...own], '', 405],
    [['OPTIONS /api/v1/accounts HTTP/1.1', ...own], '', 405],
    [['GET /api/v1/accounts?__proto__=1&constructor=2 HTTP/1.1', ...own], '', 400],
    [['GET /api/v1/accounts HTTP/1.1', own[0]!, 'Authorization: Basic YTpi'], '', 401],
    [['GET /api/v1/accounts HTTP/1.1', own[0]!, 'Authorization: Bearer'], '', 401],
    [['GET /api/v1/accounts HTTP/1.1', own[0]!, 'Cookie: triwire=; triwire=x'], '', 401],
    [['GET /api/v1/accounts HTTP/1.1', ...own, `X-Long: ${'x'.repeat(20_000)}`], '', 431],
  ]
  for (const [lines, text, status] of cases) {
    const { answers } = await send(crlf(lines, text))
    assert.equal(answers[0]?.status, status, `${lines.join(' | ')} ${text}`)
  }
  assert.equal(gateway.store.listAccounts().length, before)
  const deep = `{"name":${'['.repeat(30_000)}${']'.repeat(30_000)}}`
  const nested = await send(
    crlf(['POST /api/v1/accounts HTTP/1.1', ...own, json, `Content-Length: ${deep.length}`], deep),
  )
  assert.equal(nested.answers[0]!.status, 400)
  const large = `{"name":"${'x'.repeat(70_000)}"}`
  const chunked = `${large.length.toString(16)}\r\n${large}\r\n0\r\n\r\n`
  const told = await send(crlf(['POST /api/v1/accounts HTTP/1.1', ...own, json, 'Transfer-Encoding: chunked'], chunked))
  assert.equal(told.answers[0]!.status, 413)
  assert.deepEqual(
    (await gateway.logLines()).filter(({ event }) => event === 'bug'),
    [],
  )
})

test('operate §6 no answer may be cached or framed', async () => {
  const { send, own } = await start()
  for (const path of ['/api/v1/me', '/api/v1/none']) {
    const { headers } = (await send(crlf([`GET ${path} HTTP/1.1`, ...own]))).answers[0]!
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
    assert.match(headers.get('content-security-policy')!, /default-src 'none'; frame-ancestors 'none'/)
  }
})

test('operate §6 a client that leaves in the middle of an export leaves nothing running', async () => {
  const { own, send, gateway, ask } = await start()
  for (let at = 0; at < 6; at++) {
    const lines = ['GET /api/v1/ledger HTTP/1.1', ...own, 'Accept: text/csv']
    await send(crlf(lines), { answers: undefined, until: /HTTP\/1\.1 (200|429)/ })
  }
  await until(async () => (await ask('GET', '/ledger', { headers: { accept: 'text/csv' } })).status === 200)
  assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200)
})

test('operate §6 a request that two readers could take for two different requests is refused, and the connection closed', async () => {
  const { send, own, gateway } = await start()
  const before = gateway.store.listAccounts().length
  const body = '{"name":"smuggled"}'
  const json = 'Content-Type: application/json'
  const post = 'POST /api/v1/accounts HTTP/1.1'
  const chunked = `13\r\n${body}\r\n0\r\n\r\n`
  const cases: [name: string, bytes: string][] = [
    ['two hosts', crlf([post, own[0]!, ...own, json, 'Content-Length: 19'], body)],
    ['length and chunks', crlf([post, ...own, json, 'Content-Length: 4', 'Transfer-Encoding: chunked'], chunked)],
    ['another coding', crlf([post, ...own, json, 'Transfer-Encoding: gzip, chunked'], chunked)],
    ['chunked twice', crlf([post, ...own, json, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], chunked)],
    ['a coding with a tab', crlf([post, ...own, json, 'Transfer-Encoding:\tchunked\x0b'], chunked)],
    [
      'chunks of HTTP/1.0',
      crlf(['POST /api/v1/accounts HTTP/1.0', ...own, json, 'Transfer-Encoding: chunked'], chunked),
    ],
    ['a folded header', crlf([post, ...own, json, 'X-A: b\r\n Content-Length: 19'], body)],
    ['a blank before the colon', crlf([post, ...own, json, 'Content-Length : 19'], body)],
    ['bare line feeds', [post, ...own, json, 'Content-Length: 19', '', body].join('\n')],
    ['two tokens', crlf([post, ...own, 'Authorization: Bearer x', json, 'Content-Length: 19'], body)],
    ['a length in hex', crlf([post, ...own, json, 'Content-Length: 0x13'], body)],
    ['two lengths in one', crlf([post, ...own, json, 'Content-Length: 19, 19'], body)],
    [
      'a chunk size that lies',
      crlf([post, ...own, json, 'Transfer-Encoding: chunked'], `13;a\nb\r\n${body}\r\n0\r\n\r\n`),
    ],
    ['no version', `POST /api/v1/accounts\r\n${own[0]}\r\n\r\n`],
    ['a name of a header with a NUL', crlf([post, ...own, json, 'X\0: a', 'Content-Length: 19'], body)],
  ]
  for (const [name, bytes] of cases) {
    const { answers, isClosed } = await send(bytes, { answers: undefined, fin: true })
    assert.ok(answers.length <= 1 && (answers[0]?.status ?? 400) >= 400, `${name}: ${answers[0]?.status}`)
    assert.ok(isClosed, name)
  }
  const many = Array.from({ length: 101 }, (_, at) => `X-${at}: a`)
  const told = await send(crlf([post, ...own, json, ...many, 'Content-Length: 19'], body))
  assert.equal(told.answers[0]!.status, 431)
  const long = await send(crlf([`GET /api/v1/accounts?q=${'x'.repeat(9_000)} HTTP/1.1`, ...own]))
  assert.equal(long.answers[0]!.status, 431)
  assert.equal(gateway.store.listAccounts().length, before)
  assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200)
})

test('operate §6 pipelined requests are answered one by one, in their order', async () => {
  const { own, send, gateway } = await start()
  const one = (path: string, lines = own) => crlf([`GET ${path} HTTP/1.1`, ...lines])
  const bytes = [one('/api/v1/me'), one('/api/v1/me', [own[0]!]), one('/healthz'), one('/api/v1/none')].join('')
  const { answers } = await send(bytes, { answers: 4 })
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 401, 200, 404],
  )
  assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200)
})

test('operate §6 a client that sends its request slowly is disconnected, and delays no other', async () => {
  const url = await startBareAdmin({ api: createBareApi({}), limits: { headersMs: 40, bodyMs: 80, lingerMs: 80 } })
  const json = `Host: ${new URL(url).host}\r\nContent-Type: application/json`
  const slow = [
    'GET /healthz HTTP/1.1\r\nHost: x\r\nX-',
    `POST /api/v1/session HTTP/1.1\r\n${json}\r\nContent-Length: 9\r\n\r\n{`,
  ]
  const health = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
  let quick!: RawConnection
  // On a busy machine the time may be over between the connection and its first bytes; behind those there is no such gap.
  await until(async () => {
    quick = await openRaw(url)
    quick.write(health)
    return (await quick.read({ answers: 1 })).answers[0]?.status === 200
  }, 'somebody is connected')
  const read = slow.map((bytes) => raw(url, bytes))
  quick.write(health)
  assert.equal((await quick.read({ answers: 2 })).answers[1]?.status, 200)
  for (const { isClosed, answers } of await Promise.all(read)) {
    assert.ok(isClosed)
    assert.deepEqual([answers[0]?.status, answers[0]?.headers.get('content-type')], [408, 'application/problem+json'])
  }
})

test('operate §6 a client that does not read its answer is disconnected, and so is one that never starts TLS', async () => {
  const pieces = async function* () {
    for (;;) yield 'canary '.repeat(10_000)
  }
  let left = 0
  const metrics = async () => ({ status: 200, headers: {}, pieces: pieces(), onClose: () => left++ })
  const { socket, write } = await openRaw(await startBareAdmin({ metrics, limits: { stallMs: 100 } }))
  socket.pause()
  write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => left === 1, 'it is closed')
  const { cert, key } = createAuthority().issue('admin.example')
  const tls = { cert, key: new Secret(key) }
  const silent = await openRaw(await startBareAdmin({ tls, limits: { headersMs: 100 } }))
  assert.equal((await silent.read()).isClosed, true)
})

test('issue 13 R18: large bodies of operators count towards the bound of all bodies, and any end releases what they hold', async () => {
  const { gateway, admin, ask } = await startApi({ bodiesBytesMax: 400_000 })
  const { bodies } = gateway.server.gateway
  const { host } = new URL(gateway.adminUrl)
  const body = { model: 'native-chat', messages: [{ role: 'user', content: 'x'.repeat(60_000) }] }
  for (const [path, asked] of [
    ['translate', { from: 'chat', body }],
    ['playground', { account: 'b', wire: 'chat', body }],
  ] as const) {
    const text = JSON.stringify(asked)
    const head = [
      `POST /api/v1/${path} HTTP/1.1`,
      `host: ${host}`,
      `authorization: Bearer ${admin}`,
      'content-type: application/json',
      `content-length: ${text.length}`,
    ].join('\r\n')
    const begin = async (bytes: number) => {
      const connection = await openRaw(gateway.adminUrl)
      connection.write(`${head}\r\n\r\n${text.slice(0, bytes)}`)
      return connection
    }
    const slow = await begin(text.length - 1)
    await until(() => bodies.held === text.length - 1, `${path}: its body has come but for a byte`)
    const refused = await begin(20_000)
    await until(() => bodies.held === text.length + 19_999, `${path}: a third of another has come`)
    refused.write(text.slice(20_000, -1))
    const { answers } = await refused.read({ answers: 1 })
    assert.deepEqual([answers[0]?.status, answers[0]?.headers.get('retry-after')], [429, '1'], path)
    assert.equal(
      bodies.held,
      text.length - 1,
      `${path}: who was refused holds nothing, though the rest is still awaited`,
    )
    slow.socket.destroy()
    await until(() => bodies.held === 0, `${path}: who left holds nothing`)
    const whole = await raw(gateway.adminUrl, `${head}\r\nconnection: close\r\n\r\n${text}`)
    assert.equal(whole.answers[0]?.status, 200, path)
    await until(() => bodies.held === 0, `${path}: who has its answer holds nothing`)
    // Nor on a connection that stays.
    assert.equal((await ask('POST', `/${path}`, { body: asked })).status, 200)
    await until(() => bodies.held === 0, `${path}: who has its answer holds nothing, whatever comes behind it`)
  }
})
