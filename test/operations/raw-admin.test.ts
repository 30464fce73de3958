import assert from 'node:assert/strict'
import test from 'node:test'
import { raw } from '../support/raw.ts'
import { until } from '../support/waiting.ts'
import { startApi } from './api.ts'

const crlf = (lines: readonly string[], body = '') => `${lines.join('\r\n')}\r\n\r\n${body}`

async function start() {
  const api = await startApi()
  const { host, port } = new URL(api.gateway.adminUrl)
  const own = [`Host: ${host}`, `Authorization: Bearer ${api.admin}`]
  const send = (bytes: string, options = {}) => raw(api.gateway.adminUrl, bytes, { answers: 1, ...options })
  return { ...api, host, port, own, send }
}

test('operate §6 the Host header is looked at first: no name but a loopback one with its port', async () => {
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
    `user@127.0.0.1:${port}`,
    `127.0.0.1:${port}@evil.example`,
    `127.0.0.1:${port}, evil.example`,
    `10.0.0.1:${port}`,
    `2130706433:${port}`,
    `[::ffff:127.0.0.1]:${port}`,
    '',
  ])
    assert.equal(await by(`Host: ${bad}`), 421, bad)
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

test('operate §6 each answer may be kept and framed by nobody', async () => {
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

test('operate §6 who leaves in the middle of an export leaves nothing behind', async () => {
  const { own, send, gateway, ask } = await start()
  for (let at = 0; at < 6; at++) {
    const lines = ['GET /api/v1/ledger HTTP/1.1', ...own, 'Accept: text/csv']
    await send(crlf(lines), { answers: undefined, until: /HTTP\/1\.1 (200|429)/ })
  }
  await until(async () => (await ask('GET', '/ledger', { headers: { accept: 'text/csv' } })).status === 200)
  assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200)
})
