import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { ApiAnswer } from '../../src/admin/answer.ts'
import { createSide } from '../../src/admin/side.ts'
import type { CallRecord } from '../../src/gateway/record.ts'
import { createRouter } from '../../src/http/routes.ts'
import { createEdge } from '../../src/http/server.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { listen } from '../support/listen.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ config: { own_pages: true } })
})
after(() => gateway.close())

test('Y19 requests for pages are logged, and appear in no list or report of requests', async () => {
  const answer = await fetch(`${gateway.url}/console/nothing/at/all`, { headers: { 'user-agent': 'x' } })
  assert.equal(answer.status, 404)
  const line = await gateway.logWith({ path: '/console/nothing/at/all' })
  assert.deepEqual([line['status'], line['outcome']], [404, 'refused'])
  const listed = (await (await gateway.askAdmin('/api/v1/requests')).json()) as { items: unknown[] }
  assert.deepEqual(listed.items, [])
})

test('Y19 pages exist only with own_pages, and a reload turns them on and off', async () => {
  for (const [isOn, status] of [
    [true, 200],
    [false, 404],
    [true, 200],
  ] as const) {
    gateway.reload({ own_pages: isOn })
    const page = await fetch(`${gateway.url}/console/`)
    assert.equal(page.status, status)
    if (!isOn) assert.equal(((await page.json()) as { error: { code: string } }).error.code, 'unknown_url')
    else assert.match(await page.text(), /<div id="console">/)
  }
})

test('CON-16 browsers that open the bare address get to the console, on both listeners; programs get the previous answer', async () => {
  gateway.reload({ own_pages: true })
  for (const url of [gateway.url, gateway.adminUrl]) {
    const ask = (accept: string, method = 'GET') =>
      fetch(`${url}/`, { method, headers: { accept }, redirect: 'manual' })
    const page = await ask('text/html,application/xhtml+xml,*/*;q=0.8')
    assert.deepEqual([page.status, page.headers.get('location')], [307, 'console/'])
    assert.equal((await ask('*/*')).status, 404)
    assert.equal((await ask('text/html', 'POST')).status, 404)
  }
  gateway.reload({ own_pages: false })
  assert.equal((await fetch(`${gateway.url}/`, { headers: { accept: 'text/html' } })).status, 404)
})

test('Y19 the longest matching path answers; paths of models, and those that are off, never reach it', async () => {
  const tell = (body: string) => async (): Promise<ApiAnswer> => ({ status: 200, headers: {}, body })
  const isOn = () => true
  const records: CallRecord[] = []
  const side = createSide(
    [
      { path: '/console/', answer: tell('all'), isOn },
      { path: '/console/api/', answer: tell('api'), isOn },
      { path: '/console/device', answer: tell('device'), isOn },
      { path: '/v1/logs', answer: tell('logs'), isOn },
      { path: '/oauth/token', answer: tell('token'), isOn: () => false },
      { path: '/v1/messages', answer: tell('taken'), isOn },
      {
        path: '/broken',
        answer: async () => {
          throw new Error('a bug')
        },
        isOn,
      },
    ],
    [(record) => records.push(record)],
  )
  const edge = createEdge({
    limits: {
      headersMs: 5_000,
      keepAliveMs: 5_000,
      lingerMs: 500,
      connectionsMax: 10,
      headerBytesMax: 16_384,
      headersMax: 100,
    },
    handle: createRouter(gateway.server.gateway, [], side),
    formError: () => ({ lines: '', body: '' }),
  })
  const url = `http://127.0.0.1:${await listen(edge)}`
  const ask = async (path: string, method = 'GET') => {
    const answer = await fetch(url + path, { method, ...(method === 'POST' && { body: '{}' }) })
    return [answer.status, await answer.text()] as const
  }
  assert.deepEqual(await ask('/console/x/y?z=/console/device'), [200, 'all'])
  assert.deepEqual(await ask('/console/api/me'), [200, 'api'])
  assert.deepEqual(await ask('/console/device'), [200, 'device'])
  assert.deepEqual(await ask('/console/device', 'OPTIONS'), [200, 'device'])
  assert.deepEqual(await ask('/console/device/'), [200, 'all'])
  assert.deepEqual(await ask('/v1/logs', 'POST'), [200, 'logs'])
  for (const path of ['/oauth/token', '/console', '/v1/log', '/']) assert.equal((await ask(path))[0], 404, path)
  assert.equal((await ask('/v1/messages', 'POST'))[0], 401)
  assert.equal((await ask('/broken'))[0], 500)
  assert.deepEqual(
    records.map(({ path, outcome = 'ok' }) => `${path} ${outcome}`),
    [
      ...['/console/x/y ok', '/console/api/me ok', '/console/device ok', '/console/device ok', '/console/device/ ok'],
      ...['/v1/logs ok', '/broken internal_error'],
    ],
  )
})
