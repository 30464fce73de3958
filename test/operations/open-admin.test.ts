import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import test from 'node:test'
import { parse, stringify } from 'yaml'
import type { Readiness } from '../../src/admin/listener.ts'
import { addressBeside, isLoopback } from '../../src/config/values.ts'
import { runWarm } from '../cli/run.ts'
import { startTestGateway } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'
import { raw } from '../support/raw.ts'
import { startApi } from './api.ts'
import { startBareAdmin } from './bare-admin.ts'

/* NEW-7: an admin listener that other machines reach in clear. */

const untouched = async () => assert.fail('a request came through')
const metrics = async () => ({ status: 200, headers: {}, body: 'the metrics' })

function startOpenAdmin(isReady: () => Promise<Readiness> = async () => true): Promise<string> {
  return startBareAdmin({
    ...{ isReady, metrics, api: untouched, pages: untouched, door: { path: '/internal/', answer: untouched } },
    ...{ prefix: '/triwire', besideOf: () => '127.0.0.1:8082' },
  })
}

const readiness: [name: string, ready: Readiness, status: number, word: string][] = [
  ['ready', true, 200, 'ok\n'],
  ['ready, with a note for operators', { note: 'canary-note' }, 200, 'ok\n'],
  ['not ready', false, 503, 'unready\n'],
  ['not ready, for a reason', 'canary-reason', 503, 'unready\n'],
]

for (const [name, ready, status, word] of readiness)
  test(`NEW-7 in clear from other machines, health is one word for every caller: ${name}`, async () => {
    const url = await startOpenAdmin(async () => ready)
    for (const [path, expected] of [
      ['/readyz', [status, word]],
      ['/triwire/readyz', [status, word]],
      ['/readyz?verbose', [status, word]],
      ['/healthz', [200, 'ok\n']],
    ] as const) {
      const got = await fetch(url + path, { headers: { host: 'any.example' } })
      assert.deepEqual([got.status, await got.text()], expected, path)
      assert.equal(got.headers.get('content-type'), 'text/plain')
      assert.equal((await fetch(url + path, { method: 'HEAD' })).status, expected[0])
    }
  })

const refused = [
  ...[
    'GET /',
    'POST /healthz',
    'DELETE /readyz',
    'GET /healthz/',
    'GET /console',
    'GET /console/',
    'GET /console/app.js',
  ],
  ...[
    'GET /api/v1/me',
    'POST /api/v1/session',
    'POST /api/v1/accounts',
    'GET /api/v1/openapi.json',
    'OPTIONS /api/v1/me',
  ],
  ...[
    'GET /triwire/api/v1/me',
    'POST /internal/ask',
    'GET /internal/',
    'GET /metricsx',
    'GET /v1/models',
    'GET /favicon.ico',
  ],
  ...[
    'GET http://x.example/api/v1/me',
    'GET /%61pi/v1/me',
    'GET //api/v1/me',
    'GET /healthz/../api/v1/me',
    'GET /triwire/../console/',
    'GET /healthz%2f',
  ],
]

for (const line of refused)
  test(`NEW-7 in clear from other machines, ${line} gets a 403 whose text has the cure`, async () => {
    const url = await startOpenAdmin()
    const body = line.startsWith('POST') ? '{"token":"canary-token"}' : ''
    const head = [
      `${line} HTTP/1.1`,
      'Host: 127.0.0.1',
      'Authorization: Bearer canary-token',
      'Cookie: triwire=canary-cookie',
    ]
    const { answers } = await raw(url, `${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`, {
      answers: 1,
    })
    assert.equal(answers[0]!.status, 403)
    const problem = JSON.parse(answers[0]!.body)
    assert.equal(problem.type, 'urn:triwire:problem:forbidden')
    assert.match(problem.detail, /only \/healthz, \/readyz and \/metrics\. .*admin\.tls.*http:\/\/127\.0\.0\.1:8082/)
    assert.doesNotMatch(answers[0]!.body, /canary/)
  })

// The system treats this name as loopback, and we do not, as for every name but localhost: no other machine reaches this test.
const elsewhere = '127.1'

test('NEW-7 a server with an admin listener in clear for others also answers everything on loopback, commands included', async () => {
  assert.equal(isLoopback({ host: elsewhere, port: 0 }), false)
  const config = { admin_listen: `${elsewhere}:0`, metrics: { token: 'scrape-me-0123456789' } }
  const { admin, gateway } = await startApi({ config })
  const status = async (path: string, token?: string) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
    return (await fetch(gateway.adminUrl + path, { headers })).status
  }
  assert.deepEqual(
    [
      await status('/healthz'),
      await status('/readyz'),
      await status('/metrics'),
      await status('/metrics', admin),
      await status('/metrics', 'scrape-me-0123456789'),
      await status('/api/v1/status', admin),
      await status('/console/'),
      await status('/internal/x', admin),
    ],
    [200, 200, 401, 401, 200, 403, 403, 403],
  )
  const { detail } = (await (await fetch(`${gateway.adminUrl}/api/v1/me`)).json()) as { detail: string }
  const beside = /http:\/\/127\.0\.0\.1:\d+/.exec(detail)![0]
  const whole = (path: string) => fetch(beside + path, { headers: { authorization: `Bearer ${admin}` } })
  assert.deepEqual(
    [(await whole('/api/v1/me')).status, (await whole('/console/')).status, (await whole('/readyz')).status],
    [200, 200, 200],
  )
  // A command finds the loopback address from the file, which has the server's port.
  const port = Number(new URL(beside).port) - 1
  assert.deepEqual(addressBeside({ host: '0.0.0.0', port }), { host: '127.0.0.1', port: port + 1 })
  const file = { ...parse(readFileSync(gateway.configPath, 'utf8')), admin_listen: `0.0.0.0:${port}` }
  writeFileSync(gateway.configPath, stringify(file))
  const printed = await runWarm(['upstreams', '--config', gateway.configPath])
  assert.equal(printed.code, 0, printed.stderr)
})

test('NEW-7 without metrics.token the metrics are not readable in clear from other machines', async () => {
  const { admin, gateway } = await startApi({ config: { admin_listen: `${elsewhere}:0` } })
  for (const authorization of ['', `Bearer ${admin}`, 'Bearer '])
    assert.equal((await fetch(`${gateway.adminUrl}/metrics`, { headers: { authorization } })).status, 401)
})

test('NEW-7 a server in clear does not start if another program has the port to which commands send tokens', async () => {
  const port = await listen(createServer())
  await assert.rejects(startTestGateway({ config: { admin_listen: `${elsewhere}:${port - 1}` } }), /in use|EADDRINUSE/)
})
