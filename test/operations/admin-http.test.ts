import assert from 'node:assert/strict'
import { METHODS, STATUS_CODES } from 'node:http'
import test, { after, before } from 'node:test'
import type { ApiAnswer } from '../../src/admin/answer.ts'
import { guardHeaders } from '../../src/admin/guard.ts'
import { createUnderWay } from '../../src/admin/under-way.ts'
import { errorTable } from '../../src/errors.ts'
import { answerHead } from '../../src/http/headers.ts'
import { type ProblemError, problems } from '../../src/operations/problem.ts'
import { openRaw, raw } from '../support/raw.ts'
import { until, within } from '../support/waiting.ts'
import { startApi } from './api.ts'
import { startBareAdmin } from './bare-admin.ts'

/* The admin listener speaks the HTTP of the clients' listener, with limits and error answers of its own (ruling X3). */

let api: Awaited<ReturnType<typeof startApi>>
let own: string
before(async () => {
  api = await startApi()
  own = `Host: ${new URL(api.gateway.adminUrl).host}\r\nAuthorization: Bearer ${api.admin}\r\n`
})
after(() => api.gateway.close())

/** Everything that comes back on one connection, until the server closes it. */
async function textOf(url: string, bytes: string): Promise<string> {
  const { socket, write } = await openRaw(url)
  const pieces: Buffer[] = []
  socket.on('data', (piece: Buffer) => pieces.push(piece))
  const closed = new Promise((resolve) => socket.once('close', resolve))
  write(bytes)
  await within(closed, 'the connection is closed')
  return Buffer.concat(pieces).toString('latin1')
}

function headersOf(head: string): Map<string, string> {
  return new Map(head.split('\r\n').map((line) => line.split(': ', 2) as [string, string]))
}

const last = 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

test('X3 RFC 9110 9.3.2 a HEAD has the headers of its GET and no body, and its connection takes the next request', async () => {
  const page = await (await fetch(`${api.gateway.adminUrl}/console/`)).text()
  const asset = `/console/${/assets\/[\w.-]+\.css/.exec(page)![0]}`
  const csv = 'Accept: text/csv\r\n'
  const cases = [
    ['/healthz'],
    ['/none'],
    ['/metrics'],
    ['/api/v1/me'],
    ['/api/v1/none'],
    ['/console/'],
    [asset],
    [asset, `If-None-Match: "${asset.split('/').at(-1)}"\r\n`],
    ['/api/v1/ledger', csv],
  ] as const
  for (const [path, more = ''] of cases) {
    const ask = (method: string) =>
      textOf(api.gateway.adminUrl, `${method} ${path} HTTP/1.1\r\n${own}${more}\r\n${last}`)
    const [got, headed] = [await ask('GET'), await ask('HEAD')]
    const [head, behind] = headed.split(/\r\n\r\n(.*)/s) as [string, string]
    const whole = got.slice(0, got.indexOf('\r\n\r\n'))
    // Each scrape is another; a stream says its chunks with them alone.
    const plain = (text: string) => text.replace(/\r\n(date|x-request-id|transfer-encoding|content-length): .*/g, '')
    assert.equal(plain(head), plain(whole), path)
    if (path !== '/metrics')
      assert.equal(headersOf(head).get('content-length'), headersOf(whole).get('content-length'), path)
    assert.equal(headersOf(head).has('transfer-encoding'), false)
    assert.match(behind, /^HTTP\/1\.1 200 OK\r\n/, `${path}: ${headed}`)
  }
})

test('X3 RFC 9110 8.6 a 204 and a 304 have no length and no body', async () => {
  for (const status of [204, 304]) {
    const url = await startBareAdmin({ metrics: async () => ({ status, headers: {} }) })
    const text = await textOf(url, `GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n${last}`)
    assert.match(text, new RegExp(`^HTTP/1.1 ${status} [^]*?\r\n\r\nHTTP/1.1 200 OK\r\n`))
    assert.doesNotMatch(text.split('\r\n\r\n')[0]!, /content-length|transfer-encoding/)
  }
})

test('X3 a client of HTTP/1.0 gets no chunks, and keeps its connection only if it asks and the answer has a length', async () => {
  const keep = 'Connection: keep-alive\r\n'
  const csv = 'Accept: text/csv\r\n'
  for (const [path, more, connection] of [
    ['/api/v1/me', '', 'close'],
    ['/api/v1/me', keep, 'keep-alive'],
    ['/api/v1/ledger', csv, 'close'],
    ['/api/v1/ledger', csv + keep, 'close'],
  ] as const) {
    const asked = `GET ${path} HTTP/1.0\r\n${own}${more}\r\n`
    const { answers, isClosed } = await raw(api.gateway.adminUrl, asked, connection === 'close' ? {} : { answers: 1 })
    const [{ status, headers, body, isWhole }] = answers as [(typeof answers)[0]]
    assert.deepEqual([status, headers.get('connection'), isWhole], [200, connection, true], `${path} ${more}`)
    assert.equal(headers.has('transfer-encoding'), false)
    if (more.includes(csv)) assert.match(body, /^account,account_name,/)
    assert.equal(isClosed, connection === 'close')
  }
})

test('X3 a client that waits for 100 Continue gets it once its token is accepted, and otherwise only the refusal', async () => {
  const body = '{"name":"awaited"}'
  const post = (headers: string) =>
    `POST /api/v1/accounts HTTP/1.1\r\n${headers}Content-Type: application/json\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`
  const good = await openRaw(api.gateway.adminUrl)
  good.write(post(own))
  assert.deepEqual(
    (await good.read({ until: /100 Continue/ })).answers.map(({ status }) => status),
    [100],
  )
  good.write(body)
  assert.deepEqual(
    (await good.read({ answers: 1 })).answers.map(({ status }) => status),
    [100, 201],
  )
  const bad = await openRaw(api.gateway.adminUrl)
  bad.write(post(`${own.split('\r\n')[0]}\r\n`))
  const { answers } = await bad.read({ answers: 1 })
  assert.deepEqual([answers.length, answers[0]!.status, answers[0]!.headers.get('connection')], [1, 401, 'close'])
})

test('X3 reliability §2 a request that is refused before it is read is answered with a problem, and the connection closes', async () => {
  const get = 'GET /healthz HTTP/1.1\r\n'
  const post = `POST /api/v1/accounts HTTP/1.1\r\n${own}Content-Type: application/json\r\n`
  const cases: [bytes: string, status: number, problem: string][] = [
    ['abc\r\n\r\n', 400, 'invalid_request'],
    [`BREW / HTTP/1.1\r\n${own}\r\n`, 400, 'invalid_request'],
    ['GET /healthz\r\nHost: x\r\n\r\n', 400, 'invalid_request'],
    [`${get}\r\n`, 400, 'invalid_request'],
    [`${get}Host: a b\r\n\r\n`, 400, 'invalid_request'],
    [`${get}Host: x\r\nX: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'invalid_request'],
    [`${get}Host: x\r\nX: ${'y'.repeat(9_000)}\r\n\r\n`, 431, 'invalid_request'],
    [`${get}Host: x\r\n${'X: y\r\n'.repeat(100)}\r\n`, 431, 'invalid_request'],
    [`${get}Host: x\r\nExpect: 200-ok\r\n\r\n`, 417, 'invalid_request'],
    [`${post}Content-Length: 70000\r\n\r\n${'x'.repeat(70_000)}`, 413, 'payload_too_large'],
    [`${post}Transfer-Encoding: chunked\r\n\r\n11170\r\n${'x'.repeat(70_000)}\r\n0\r\n\r\n`, 413, 'payload_too_large'],
    [`${post}Transfer-Encoding: chunked\r\n\r\nx\r\n`, 400, 'invalid_request'],
    [`CONNECT x:1 HTTP/1.1\r\n${own}\r\n`, 404, 'not_found'],
    [`${post}Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}`, 400, 'invalid_request'],
  ]
  for (const [bytes, status, problem] of cases) {
    const { answers, isClosed } = await raw(api.gateway.adminUrl, bytes)
    const [{ headers, body, ...told }] = answers as [(typeof answers)[0]]
    const name = bytes.slice(0, 60)
    assert.ok(isClosed, name)
    const { type, status: said, request_id, detail } = JSON.parse(body)
    assert.deepEqual([told.status, said, type], [status, status, `urn:triwire:problem:${problem}`], name)
    assert.deepEqual(
      [headers.get('content-type'), headers.get('connection')],
      ['application/problem+json', 'close'],
      name,
    )
    assert.equal(headers.get('x-request-id'), request_id, name)
    assert.match(request_id, /^req_\w+$/)
    assert.match(headers.get('content-security-policy')!, /default-src 'none'/)
    assert.ok(detail.length > 10, name)
  }
})

test('X3 an absolute URL as the target counts by its path, and an upgrade request is ignored', async () => {
  const { host } = new URL(api.gateway.adminUrl)
  const ask = async (target: string, more = '') =>
    (await raw(api.gateway.adminUrl, `GET ${target} HTTP/1.1\r\n${own}${more}\r\n`, { answers: 1 })).answers[0]!.status
  assert.equal(await ask(`http://${host}/api/v1/accounts?limit=1`), 200)
  assert.equal(await ask(`http://${host}/api/v1/accounts?limit=x`), 400)
  assert.equal(await ask(`http://${host}`), 404)
  assert.equal(await ask('/api/v1/me', 'Connection: upgrade\r\nUpgrade: websocket\r\n'), 200)
})

test('issue 13 only the body of an operator’s playground request is passed on, and its answer has the headers of the API', async () => {
  const headers = { 'anthropic-beta': 'canary-beta', 'x-api-key': 'canary-key', 'session-id': 'canary-session' }
  for (const isStream of [false, true]) {
    const body = {
      model: 'native-messages',
      max_tokens: 9,
      stream: isStream,
      messages: [{ role: 'user', content: 'x' }],
    }
    const played = await api.ask('POST', '/playground', { body: { account: 'b', wire: 'messages', body }, headers })
    assert.equal(played.status, 200, played.text)
    for (const [name, value] of Object.entries(guardHeaders))
      assert.match(played.headers.get(name)!, new RegExp(`(^|, )${value}$`), name)
    for (const name of ['access-control-allow-origin', 'x-ratelimit-limit-requests', 'vary'])
      assert.equal(played.headers.get(name), null, name)
    assert.doesNotMatch(JSON.stringify(api.gateway.simulator.requests.at(-1)), /canary/)
  }
})

test('a prefix is removed from the path, in each form of a target, and from no other path', async () => {
  const paths: string[] = []
  const metrics = async ({ path, query }: { path: string; query: string }): Promise<ApiAnswer> => {
    paths.push(path + query)
    return { status: 200, headers: {} }
  }
  const url = await startBareAdmin({ metrics, prefix: '/triwire' })
  const ask = async (target: string) =>
    (await raw(url, `GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`, { answers: 1 })).answers[0]!.status
  for (const good of ['/metrics?a=/b', '/triwire/metrics?a=/b', 'http://x/triwire/metrics?a=/b'])
    assert.equal(await ask(good), 200, good)
  for (const bad of ['/triwiremetrics', '/triwire', '/triwire/triwire/metrics', '/x?/triwire/metrics'])
    assert.equal(await ask(bad), 404, bad)
  assert.deepEqual(paths, ['/metrics?a=/b', '/metrics?a=/b', '/metrics?a=/b'])
})

test('R7 a token that is sent twice with the same value counts as one, and cookies may come in several lines', async () => {
  const me = async (lines: string) =>
    (
      await raw(api.gateway.adminUrl, `GET /api/v1/me HTTP/1.1\r\n${own.split('\r\n')[0]}\r\n${lines}\r\n`, {
        answers: 1,
      })
    ).answers[0]!.status
  const bearer = `Authorization: Bearer ${api.admin}\r\n`
  assert.equal(await me(bearer + bearer), 200)
  const signedIn = await api.ask('POST', '/session', { token: '', body: { token: api.admin } })
  const cookie = /^triwire=[^;]+/.exec(signedIn.headers.get('set-cookie')!)![0]
  assert.equal(await me(`Cookie: a=b\r\nCookie: ${cookie}\r\n`), 200)
  assert.equal(await me(`Cookie: ${cookie}; a=b\r\n`), 200)
  assert.equal(await me('Cookie: a=b\r\nCookie: triwire=\r\n'), 401)
})

test('X3 the accepted methods are those of Node, and each status is sent with the phrase of Node', async () => {
  const url = await startBareAdmin({})
  for (const method of METHODS.filter((one) => one !== 'CONNECT')) {
    const text = await textOf(url, `${method} /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`)
    assert.match(text, /^HTTP\/1\.1 404 Not Found\r\n/, method)
  }
  const own = [200, 201, 204, 304, 307, 408, 417, 422, 426, 431]
  const refused = [
    ...Object.values(errorTable).map(({ status }) => status),
    ...Object.values(problems).map(([status]) => status),
  ]
  for (const status of [...own, ...refused])
    assert.equal(answerHead(status, '', '').split('\r\n')[0], `HTTP/1.1 ${status} ${STATUS_CODES[status]}`)
})

test('F-C9 pieces are made no faster than they are read: a client that stops is cut off, one whose stream is silent is not', async () => {
  let made = 0
  let left = 0
  let release = () => {}
  const pieces = async function* () {
    for (;;) {
      made++
      yield 'canary '.repeat(10_000)
    }
  }
  const silent = async function* () {
    yield 'a'
    await new Promise<void>((resolve) => {
      release = resolve
    })
    yield 'b'
  }
  const tell = (texts: () => AsyncIterable<string>) => async () => ({
    ...{ status: 200, headers: {}, pieces: texts() },
    onClose: () => left++,
  })
  const url = await startBareAdmin({ metrics: tell(pieces), pages: tell(silent), limits: { stallMs: 100 } })
  const quiet = await openRaw(url)
  quiet.write('GET /console HTTP/1.1\r\nHost: x\r\n\r\n')
  await quiet.read({ until: /\r\na\r\n/ })
  const stopped = await openRaw(url)
  stopped.socket.pause()
  stopped.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => left === 1, 'the client that stopped is cut')
  // What the system holds for both ends of a connection is some megabytes.
  assert.ok(made * 70_000 < 32_000_000, `${made} pieces were made`)
  release()
  const { answers } = await quiet.read({ answers: 1 })
  assert.deepEqual([answers[0]!.body, answers[0]!.isWhole], ['ab', true])
  await until(() => left === 2, 'the other one is over')
})

test('a client that leaves ends the pieces at once, even pending ones; an error in a piece cuts the answer off', async () => {
  const heard: string[] = []
  let fail = () => {}
  const begun = new Promise<void>((resolve) => {
    fail = resolve
  })
  const endless: AsyncIterable<string> = {
    [Symbol.asyncIterator]: () => ({
      next: () => new Promise(() => heard.push('next')),
      async return() {
        heard.push('return')
        throw new Error('a reader that fails when it ends')
      },
    }),
  }
  const failing = async function* () {
    yield 'a,b\n'
    await begun
    throw new Error('the store is silent')
  }
  const url = await startBareAdmin({
    metrics: async () => ({ status: 200, headers: {}, pieces: endless, onClose: () => heard.push('closed') }),
    pages: async () => ({ status: 200, headers: {}, pieces: failing() }),
  })
  const { socket, write } = await openRaw(url)
  write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(() => heard.length === 1)
  socket.destroy()
  await until(() => heard.length === 3, 'its end is told')
  assert.deepEqual(heard.toSorted(), ['closed', 'next', 'return'])
  const reader = await openRaw(url)
  reader.write('GET /console HTTP/1.1\r\nHost: x\r\n\r\n')
  await reader.read({ until: /a,b/ })
  fail()
  const { answers, isClosed } = await reader.read()
  assert.deepEqual([answers[0]!.body, answers[0]!.isWhole, isClosed], ['a,b\n', false, true])
})

test('an operator who reads exports slowly leaves a place to each of two others, and gets a 429 that says what to do', async () => {
  const { exportRows } = createUnderWay(() => 0)
  const begin = async (actor: string) => {
    const answer = exportRows(
      (async function* () {
        yield 'row'
      })(),
      {},
      actor,
    )
    return answer.catch((error: ProblemError) => error)
  }
  const end = (one: Awaited<ReturnType<typeof begin>>) => (one as ApiAnswer).onClose!()
  const slow = [await begin('vic'), await begin('vic')]
  for (const one of slow) assert.equal((one as ApiAnswer).status, 200)
  const refused = (await begin('vic')) as ProblemError
  assert.deepEqual([refused.status, refused.headers['retry-after']], [429, '5'])
  assert.match(refused.message, /^You export .*: finish or cancel an export/)
  const others = [await begin('ann'), await begin('fay')]
  for (const one of others) assert.equal((one as ApiAnswer).status, 200)
  assert.match(((await begin('max')) as ProblemError).message, /^Others export now/)
  end(slow[0]!)
  assert.equal(((await begin('max')) as ApiAnswer).status, 200)
})

test('a stream beside an unread body closes its connection, as its headers say', async () => {
  const pieces = async function* () {
    yield 'a'
  }
  const url = await startBareAdmin({ metrics: async () => ({ status: 200, headers: {}, pieces: pieces() }) })
  const { answers, isClosed } = await raw(url, 'GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n')
  assert.deepEqual([answers[0]!.body, answers[0]!.isWhole, isClosed], ['a', true, true])
  assert.equal(answers[0]!.headers.get('connection'), 'close')
})

test('a bug of ours in a handler is logged, and its connection closes without an answer', async () => {
  const bugs: Error[] = []
  const bug = new Error('a bug')
  const metrics = () => Promise.reject(bug)
  const url = await startBareAdmin({ metrics, reportBug: (one) => void bugs.push(one) })
  const { answers, isClosed } = await raw(url, 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
  assert.deepEqual([answers.length, isClosed, bugs], [0, true, [bug]])
})

test('F-C49 if all connections are in use, an idle one is closed for a new one', async () => {
  const url = await startBareAdmin({ limits: { connectionsMax: 1 } })
  const ask = 'GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n'
  const idle = await openRaw(url)
  idle.write(ask)
  assert.equal((await idle.read({ answers: 1 })).answers[0]!.status, 200)
  assert.equal((await raw(url, ask, { answers: 1 })).answers[0]!.status, 200)
  assert.equal((await idle.read()).isClosed, true)
})
