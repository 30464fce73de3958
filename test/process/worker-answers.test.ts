import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import test from 'node:test'
import type { UpstreamState } from '../../src/operations/shapes.ts'
import { askWorkers, mergeUpstreams } from '../../src/workers/answers.ts'
import { startBareAdmin } from '../operations/bare-admin.ts'
import { listen } from '../support/listen.ts'
import { raw } from '../support/raw.ts'
import { configFile, model, newFolder, serve } from '../support/serve.ts'
import { until } from '../support/waiting.ts'

/* One admin listener speaks for all workers (ruling X9). */

type Told = Record<string, [status: number, body: unknown]>

async function worker(told: Told): Promise<string> {
  const server = createServer((request, response) => {
    const [status, body] = told[request.url!] ?? [404, {}]
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  return `http://127.0.0.1:${await listen(server)}`
}

async function workers(...told: Told[]) {
  const origins = await Promise.all(told.map(worker))
  return askWorkers(
    () => origins,
    (bug) => assert.fail(bug),
  )
}

test('X9: ready while one worker takes requests, and no longer', async () => {
  const [yes, no]: Told[] = [{ '/readyz': [200, {}] }, { '/readyz': [503, {}] }]
  assert.equal(await (await workers(no!, yes!)).isReady(), true)
  assert.equal(await (await workers(no!, no!)).isReady(), false)
})

test('X9 Y15: why no worker is ready is passed on, and what one that is ready says beside', async () => {
  const no: Told = { '/readyz': [503, { status: 'not_ready', why: 'the clock is in doubt' }] }
  const noted: Told = { '/readyz': [200, { status: 'ready', note: 'an entry is ahead' }] }
  assert.equal(await (await workers(no, no)).isReady(), 'the clock is in doubt')
  assert.deepEqual(await (await workers(no, noted)).isReady(), { note: 'an entry is ahead' })
})

test('X9: a worker that hangs keeps no probe waiting while another takes requests', async () => {
  const held: ServerResponse[] = []
  const hanging = `http://127.0.0.1:${await listen(createServer((_, response) => void held.push(response)))}`
  const origins = [hanging, await worker({ '/readyz': [200, {}] })]
  const asked = askWorkers(
    () => origins,
    (bug) => assert.fail(bug),
  )
  assert.equal(await asked.isReady(), true)
  await until(() => held.length === 1)
  assert.equal(held[0]!.headersSent, false)
  held[0]!.end()
})

test('X9: a worker that is gone makes nobody wait and nothing fail', async () => {
  const gone = askWorkers(
    () => ['http://127.0.0.1:9', 'http://127.0.0.1:9'],
    (bug) => assert.fail(bug),
  )
  assert.equal(await gone.isReady(), false)
  assert.equal(await gone.explain('req_1'), 'unknown')
  assert.deepEqual(await gone.listUpstreams(), [])
  // What only a worker knows is not told as if one had said it, and is no bug.
  await assert.rejects(async () => gone.readStatus(), { problem: 'store_unavailable', message: /No worker answers/ })
  assert.equal(await gone.writeTraffic(), false)
})

test('X9 Y16: of accounts that are blocked the most are told that a worker has, since they may be the same', async () => {
  const ledger = { writable: true, queued: 1, spooled: 2, oldest_ms: 3, blocked_accounts: 1 }
  const told = (blocked_accounts: number): Told => ({
    '/internal/readStatus': [
      200,
      { started: '2026-11-21', ready: true, heard: [], ledger: { ...ledger, blocked_accounts } },
    ],
  })
  const status = await (await workers(told(1), told(3), told(2))).readStatus()
  assert.deepEqual(status.ledger, { writable: true, queued: 3, spooled: 6, oldest_ms: 3, blocked_accounts: 3 })
})

test('X9: a request is explained by the worker that served it, else by who can read its debit', async () => {
  const path = '/api/v1/requests/req_1/explain'
  const fromLedger: Told = { [path]: [200, { request_id: 'req_1', attempts: null }] }
  const fromMemory: Told = { [path]: [200, { request_id: 'req_1', attempts: [] }] }
  const silent: Told = { [path]: [503, {}] }
  assert.deepEqual(await (await workers(fromLedger, fromMemory)).explain('req_1'), {
    request_id: 'req_1',
    attempts: [],
  })
  assert.deepEqual(await (await workers({}, fromLedger)).explain('req_1'), { request_id: 'req_1', attempts: null })
  assert.equal(await (await workers({}, silent)).explain('req_1'), 'silent')
  assert.equal(await (await workers({}, {})).explain('req_1'), 'unknown')
})

test('X9: an upstream account is as bad as the worst of the workers has it', () => {
  const ready: UpstreamState = {
    model: 'm',
    upstream: 'u',
    account: 'a',
    priority: 1,
    state: 'ready',
    cause: null,
    heard: false,
    wait_ms: null,
    failures: 0,
    retries_left: 7,
  }
  const cooling: UpstreamState = { ...ready, state: 'cooling', cause: 'upstream_429', wait_ms: 900, failures: 3 }
  const merged = mergeUpstreams([
    [ready, { ...ready, account: 'b' }],
    [cooling, { ...ready, account: 'b' }],
  ])
  assert.deepEqual(merged, [
    { ...cooling, retries_left: 14 },
    { ...ready, account: 'b', retries_left: 14 },
  ])
  // What all of them were told the server has met nowhere.
  const told = { ...cooling, heard: true }
  assert.deepEqual(
    [
      [ready, told],
      [told, cooling],
      [told, told],
    ].map((rows) => mergeUpstreams(rows.map((row) => [row]))[0]!.heard),
    [true, false, true],
  )
  assert.deepEqual(mergeUpstreams([]), [])
})

test('X9: a played request is answered by a worker byte for byte, whole or as a stream; who leaves is gone for the worker too', async () => {
  const text = 'data: {"text":"é 😀"}\n\n'
  const own = { 'content-type': 'text/plain; charset=utf-8', 'x-request-id': 'req_1', 'cache-control': 'no-store' }
  let gone = 0
  const asked: unknown[] = []
  const answers: ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(402, { ...own, 'content-length': Buffer.byteLength(text) }).end(text),
    (response) => {
      response.writeHead(200, own).write(text)
      response.end(text)
    },
    (response) => {
      response.on('close', () => gone++)
      response.writeHead(200, own).write(text)
    },
    (response) => response.destroy(),
  ]
  const server = createServer(async (request, response) => {
    asked.push([
      request.url,
      request.headers.authorization,
      JSON.parse(Buffer.concat(await request.toArray()).toString()),
    ])
    answers.shift()!(response)
  })
  const origin = `http://127.0.0.1:${await listen(server)}`
  const workers = askWorkers(() => (answers.length > 0 ? [origin] : []), assert.ifError, { token: 'tri-parent' })
  const play = { account: {}, wire: 'chat', body: '{}' } as never
  const url = await startBareAdmin({
    async metrics({ exchange }) {
      workers.play(exchange, play, { requestId: 'req_1', ip: '::1' })
      return undefined
    },
  })
  const ask = 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'
  for (const [status, length] of [
    [402, String(Buffer.byteLength(text))],
    [200, undefined],
  ] as const) {
    const [answer] = (await raw(url, ask, { answers: 1 })).answers
    const body = Buffer.from(answer!.body, 'latin1').toString()
    assert.deepEqual([answer!.status, answer!.headers.get('content-length'), answer!.isWhole], [status, length, true])
    assert.equal(body, length === undefined ? text + text : text)
    for (const [name, value] of Object.entries(own)) assert.equal(answer!.headers.get(name), value)
    assert.equal(answer!.headers.get('connection'), 'keep-alive')
  }
  await raw(url, ask, { until: /😀|\xf0\x9f/ })
  await until(() => gone === 1, 'the worker sees that the operator has left')
  const lost = await raw(url, ask)
  assert.deepEqual([lost.answers.length, lost.isClosed], [0, true])
  assert.equal((await raw(url, ask, { answers: 1 })).answers[0]!.status, 503)
  assert.deepEqual(asked[0], ['/internal/play', 'Bearer tri-parent', { play, requestId: 'req_1', ip: '::1' }])
})

test('X7: --workers with SQLite is refused with why, and nothing is opened', async () => {
  const folder = newFolder()
  const { exited, stderr } = serve(['--workers', '2', '--config', configFile(folder, model('m'))], folder)
  assert.equal(await exited, 1)
  assert.match(stderr(), /^triwire: --workers needs a store that several processes can serve from, and with SQLite/)
  assert.deepEqual(readdirSync(folder), ['triwire.yaml'])
})
