import assert from 'node:assert/strict'
import test from 'node:test'
import { createToken } from '../../src/accounts/operators.ts'
import { run, runWarm } from '../cli/run.ts'
import { raw } from '../support/raw.ts'
import { problemOf, startApi, type Told } from './api.ts'

function cookieOf({ headers }: Told): string {
  return headers.get('set-cookie')!.split(';')[0]!
}

test('reliability §3 a body of an operator is measured like one of a client before it is parsed', async () => {
  const { ask, viewer } = await startApi()
  const nested = (depth: number) =>
    `{"from":"chat","model":"native-chat","body":${'['.repeat(depth)}${']'.repeat(depth)}}`
  for (const body of [nested(200), nested(500_000), `{"from":[${'[],'.repeat(200_000)}[]]}`]) {
    const told = await ask('POST', '/translate', { token: viewer, body })
    assert.deepEqual([problemOf(told), told.text.includes('not a JSON object')], ['invalid_request', true])
  }
})

test('operate §6 a body may begin with a byte order mark, as some shells write files', async () => {
  const { ask, viewer } = await startApi()
  const told = await ask('POST', '/translate', {
    token: viewer,
    body: '\ufeff{"from":"chat","model":"native-chat","body":"{}"}',
  })
  assert.equal(told.status, 200)
})

test('operate §6 a body or a query that names a field twice is refused, and changes nothing', async () => {
  const { gateway, admin, ask } = await startApi()
  const headers = { authorization: `Bearer ${admin}`, 'content-type': 'application/json' }
  for (const [path, body] of [
    ['/accounts', '{"name":"a","name":"b"}'],
    ['/accounts', '{"name":"a","credit":"5","\\u0063redit":"500"}'],
    ['/accounts/tester/credits', '{"credits":"5","reference":"r","credits":"500"}'],
  ] as const) {
    const response = await fetch(`${gateway.adminUrl}/api/v1${path}`, { method: 'POST', headers, body })
    assert.equal(response.status, 400, body)
    assert.match(((await response.json()) as { detail: string }).detail, /^"(name|credits?)" is there twice\.$/)
  }
  assert.equal((await ask('GET', '/accounts?limit=1&limit=2')).status, 400)
  assert.equal((await ask('GET', '/accounts/tester')).body['balance'], '100')
  assert.equal((await ask('GET', '/accounts/a')).status, 404)
})

test('operate §6 a token becomes a cookie that scripts cannot read, new at each sign-in, and that ends with its operator', async () => {
  const { ask, books, gateway, admin, viewer, keyA } = await startApi()
  const signIn = (token: string, headers = {}) => ask('POST', '/session', { token: '', body: { token }, headers })
  const by = (cookie: string, path = '/me') => ask('GET', path, { token: '', headers: { cookie } })
  const first = await signIn(admin)
  assert.match(
    first.headers.get('set-cookie')!,
    /^triwire=tri-op-\w{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=86400$/,
  )
  const cookie = cookieOf(first)
  const fixed = await signIn(viewer, { cookie })
  assert.notEqual(cookieOf(fixed), cookie)
  assert.equal((await by(cookie)).body['name'], 'ann')
  assert.equal((await by(cookieOf(fixed))).body['name'], 'vic')
  assert.equal(problemOf(await by(cookieOf(fixed).replace(/.{5}$/, 'AAAAA'))), 'unauthenticated')
  // What a cookie says is no token for anything else, nor the other way round.
  assert.equal(problemOf(await ask('GET', '/me', { token: cookie.slice(8) })), 'unauthenticated')
  assert.equal(problemOf(await by(`triwire=${admin}`)), 'unauthenticated')
  const owner = cookieOf(await signIn(keyA))
  assert.equal((await by(owner)).body['kind'], 'owner')
  assert.equal(problemOf(await by(owner, '/accounts')), 'forbidden')
  // A token that is shown wins over the cookie.
  const both = await ask('GET', '/me', { token: viewer, headers: { cookie } })
  assert.equal(both.body['name'], 'vic')
  const out = await ask('DELETE', '/session', { token: '', headers: { cookie } })
  assert.equal(out.status, 204)
  assert.match(out.headers.get('set-cookie')!, /^triwire=; .*Max-Age=0/)
  assert.equal(out.headers.get('clear-site-data'), null, 'cookies of other applications stay')
  gateway.advance(60_000)
  assert.equal(problemOf(await by(cookie)), 'unauthenticated')
  const third = cookieOf(await signIn(admin))
  await books.revokeOperator('ann')
  assert.equal(problemOf(await by(third)), 'unauthenticated')
  assert.equal(problemOf(await signIn(admin)), 'unauthenticated')
  gateway.store.revokeKey(keyA)
  assert.equal(problemOf(await by(owner)), 'unauthenticated')
})

test('X14 a cookie stands for the key that it was made for, whatever name another key has', async () => {
  const { ask, keyB, gateway } = await startApi()
  const cookie = cookieOf(await ask('POST', '/session', { token: '', body: { token: keyB } }))
  const nameOf = async () => (await ask('GET', '/me', { token: '', headers: { cookie } })).body['name']
  assert.equal(await nameOf(), 'b')
  const [own] = gateway.store.listKeys('b')
  const [older] = gateway.store.listKeys('tester')
  await ask('PATCH', `/keys/${older!.id}`, { body: { label: own!.id }, headers: { 'if-match': '*' } })
  assert.equal(await nameOf(), 'b')
})

test('operate §6 a cookie ends after twelve hours without use, and after seven days', async () => {
  const { ask, books, gateway } = await startApi()
  const hour = 3_600_000
  const { token } = await books.createOperator('dan', 'viewer', gateway.nowMs() + 1_000 * hour)
  const cookie = cookieOf(await ask('POST', '/session', { token: '', body: { token } }))
  const name = async () => {
    const told = await ask('GET', '/me', { token: '', headers: { cookie } })
    return told.status === 200 ? told.body['name'] : problemOf(told)
  }
  for (let hours = 0; hours < 160; hours += 10) {
    assert.equal(await name(), 'dan')
    gateway.advance(10 * hour)
  }
  assert.equal(await name(), 'dan')
  gateway.advance(9 * hour)
  assert.equal(await name(), 'unauthenticated')
  const idle = cookieOf(await ask('POST', '/session', { token: '', body: { token } }))
  gateway.advance(12 * hour)
  assert.equal(problemOf(await ask('GET', '/me', { token: '', headers: { cookie: idle } })), 'unauthenticated')
})

test('operate §6 a request that a page of another site makes a browser send changes nothing', async () => {
  const { ask, admin, gateway } = await startApi()
  const cookie = cookieOf(await ask('POST', '/session', { token: '', body: { token: admin } }))
  const { origin } = new URL(gateway.adminUrl)
  let count = 0
  const make = (headers: Record<string, string>, token = '') =>
    ask('POST', '/accounts', { token, body: { name: `n${count++}` }, headers: { cookie, ...headers } })
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-site': 'cross-site', origin },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: origin.replace(/\d+$/, '1') },
  ] as Record<string, string>[])
    assert.equal(problemOf(await make(headers)), 'cross_site', JSON.stringify(headers))
  assert.equal((await make({ 'sec-fetch-site': 'same-origin' })).status, 201)
  assert.equal((await make({ origin })).status, 201)
  assert.equal((await make({ 'sec-fetch-site': 'cross-site' }, admin)).status, 201)
  const form = { 'content-type': 'text/plain', 'sec-fetch-site': 'same-origin' }
  assert.equal(problemOf(await make(form)), 'unsupported_media_type')
  const signIn = await ask('POST', '/session', {
    token: '',
    body: { token: admin },
    headers: { origin: 'https://e.example' },
  })
  assert.equal(problemOf(signIn), 'cross_site')
  const read = await ask('GET', '/me', { token: '', headers: { cookie, origin: 'https://evil.example' } })
  assert.deepEqual([read.status, read.headers.get('access-control-allow-origin')], [200, null])
})

test('operate §6 after five wrong tokens in a minute an address must wait, except for a request with a valid token', async () => {
  const { ask, gateway, viewer } = await startApi()
  const told: string[] = []
  for (let at = 0; at < 5; at++) told.push(problemOf(await ask('GET', '/me', { token: createToken().token })))
  for (const token of ['x', createToken().token, `sk-tri-${'a'.repeat(46)}`])
    told.push(problemOf(await ask('GET', '/me', { token })))
  told.push(problemOf(await ask('POST', '/session', { token: '', body: { token: 'x' } })))
  assert.deepEqual(told, [...Array(5).fill('unauthenticated'), ...Array(4).fill('rate_limited')])
  const waits = await ask('GET', '/me', { token: 'x' })
  assert.match(waits.headers.get('retry-after')!, /^\d+$/)
  assert.equal((await ask('GET', '/me', { token: viewer })).status, 200)
  // Who shows nothing guesses nothing.
  assert.equal(problemOf(await ask('GET', '/me', { token: '' })), 'unauthenticated')
  gateway.advance(60_000)
  assert.equal(problemOf(await ask('GET', '/me', { token: 'x' })), 'unauthenticated')
})

test('operate §6 an ended cookie is no wrong token: operators of one address who come back in the morning are asked to sign in', async () => {
  const { ask, viewer } = await startApi()
  const told: string[] = []
  for (let at = 0; at < 7; at++) {
    const cookie = cookieOf(await ask('POST', '/session', { token: '', body: { token: viewer } }))
    await ask('DELETE', '/session', { token: '', headers: { cookie } })
    told.push(problemOf(await ask('GET', '/me', { token: '', headers: { cookie } })))
  }
  told.push(problemOf(await ask('GET', '/me', { token: createToken().token })))
  assert.deepEqual(told, Array(8).fill('unauthenticated'))
})

test('operate §6 ten thousand wrong tokens open nothing, and a valid one still passes', async () => {
  const { ask, viewer, gateway } = await startApi()
  const { host } = new URL(gateway.adminUrl)
  const statuses = new Set<number>()
  for (let round = 0; round < 20; round++) {
    const asked = Array.from({ length: 500 }, (_, at) => {
      const token = at % 2 ? createToken().token : `tri-op-${at}`
      return `GET /api/v1/me HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${token}\r\n\r\n`
    })
    const { answers } = await raw(gateway.adminUrl, asked.join(''), { answers: asked.length })
    for (const { status } of answers) statuses.add(status)
  }
  assert.deepEqual([...statuses].sort(), [401, 429])
  assert.equal((await ask('GET', '/me', { token: viewer })).status, 200)
})

test('operate §4 an operator may send 600 requests a minute', async () => {
  const { ask, viewer, keyA, gateway } = await startApi()
  const asked = `GET /api/v1/me HTTP/1.1\r\nHost: ${new URL(gateway.adminUrl).host}\r\nAuthorization: Bearer ${viewer}\r\n\r\n`
  const { answers } = await raw(gateway.adminUrl, asked.repeat(599), { answers: 599 })
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  assert.equal((await ask('GET', '/me', { token: viewer })).status, 200)
  assert.equal(problemOf(await ask('GET', '/me', { token: viewer })), 'rate_limited')
  assert.equal((await ask('GET', '/me')).status, 200)
  const owned = await Promise.all(
    Array.from({ length: 61 }, async () => (await ask('GET', '/me', { token: keyA })).status),
  )
  assert.equal(owned.filter((status) => status === 429).length, 1)
})

test('operate §6 one token may have twenty cookies: a further sign-in ends the oldest', async () => {
  const { ask, viewer, gateway } = await startApi()
  const cookies: string[] = []
  for (let at = 0; at < 22; at++) {
    gateway.advance(1)
    cookies.push(cookieOf(await ask('POST', '/session', { token: '', body: { token: viewer } })))
  }
  const told: number[] = []
  for (const cookie of cookies) told.push((await ask('GET', '/me', { token: '', headers: { cookie } })).status)
  assert.deepEqual(told, [401, 401, ...Array(20).fill(200)])
})

test('U5 no token and no key appears in answers, the log or the store', async () => {
  const { ask, gateway, admin, keyA } = await startApi()
  for (const path of [
    `/accounts/${keyA}`,
    `/keys/${keyA}x`,
    `/ledger?account=${keyA}`,
    `/ledger?key=${keyA}0`,
    `/ledger?${admin}=1`,
  ]) {
    const { text } = await ask('GET', path)
    assert.ok(!text.includes(keyA) && !text.includes(admin), `${path}: ${text}`)
  }
  const named = await ask('POST', '/accounts', { body: { [admin]: 1, name: 'x' } })
  assert.ok(!named.text.includes(admin), named.text)
  assert.equal(problemOf(await ask('POST', '/operators', { body: { name: admin, role: 'admin' } })), 'invalid_request')
  assert.equal(problemOf(await ask('POST', '/accounts/b/keys', { body: { label: admin } })), 'invalid_request')
  const log = JSON.stringify(await gateway.logLines())
  assert.ok(!log.includes(admin) && !log.includes(keyA))
})

test('issue 13: operators are managed at the command line; a command to a server shows TRIWIRE_TOKEN or a one-minute token', async () => {
  const { gateway, ask, viewer } = await startApi()
  const config = ['--config', gateway.configPath]
  const server = [...config, '--admin-listen', new URL(gateway.adminUrl).host]
  const made = await run(['operator', 'create', 'eve', '--role', 'admin', '--expires', '2h', '--json', ...config])
  const { token, expires, ...rest } = made.json
  assert.deepEqual(rest, { name: 'eve', role: 'admin' })
  assert.match(expires!, /^\d{4}-.*Z$/)
  assert.equal((await ask('GET', '/accounts', { token })).status, 200)
  const plain = await runWarm(['operator', 'create', 'fred', '--role', 'viewer', ...config])
  assert.match(plain.stdout, /^tri-op-\w{43}\n$/)
  const wrong = [
    [['operator', 'create', 'eve', '--role', 'admin'], 1, /There is already an operator named "eve"/],
    [['operator', 'create', ' x', '--role', 'admin'], 1, /1 to 64 letters/],
    [['operator', 'create', 'gus', '--role', 'root'], 2, /Allowed choices are admin, viewer/],
    [['operator', 'create', 'gus'], 2, /required option '--role <role>'/],
    [['operator', 'revoke', 'gus'], 1, /There is no operator "gus": see triwire operator list/],
  ] as const
  for (const [args, code, says] of wrong) {
    const told = await runWarm([...args, ...config])
    assert.deepEqual([told.code, told.stdout], [code, ''])
    assert.match(told.stderr, says)
  }
  const listed = await runWarm(['operator', 'list', ...config])
  assert.match(listed.stdout, /^eve +admin +tri-op-\w{6} /m)
  assert.ok(!listed.stdout.includes(token!))
  assert.equal((await runWarm(['operator', 'revoke', 'eve', ...config])).stdout, 'the token of eve is revoked\n')
  assert.equal(problemOf(await ask('GET', '/accounts', { token })), 'unauthenticated')
  // The name of a revoked operator may be used again.
  assert.equal((await runWarm(['operator', 'create', 'eve', '--role', 'viewer', ...config])).code, 0)
  assert.equal((await runWarm(['upstreams', ...server])).code, 0)
  assert.equal((await runWarm(['upstreams', ...server], { env: { TRIWIRE_TOKEN: viewer } })).code, 0)
  const refused = await runWarm(['upstreams', ...server], { env: { TRIWIRE_TOKEN: token! } })
  assert.match(refused.stderr, /does not take the token of TRIWIRE_TOKEN/)
  const storeless = await runWarm(['upstreams', ...server, '--store', '/nowhere/x.db'])
  assert.match(storeless.stderr, /the server wants a token: set TRIWIRE_TOKEN, or name its store/)
})

test('X9 operate §6 behind a proxy with TLS the listener answers under its public name, with cookies for TLS only', async () => {
  const { ask, viewer, gateway } = await startApi({
    config: { admin: { public_url: 'https://admin.example' }, trusted_proxies: ['127.0.0.1'] },
  })
  const { port } = new URL(gateway.adminUrl)
  const by = async (host: string, ...lines: string[]) => {
    const head = ['POST /api/v1/session HTTP/1.1', `Host: ${host}`, 'Content-Type: application/json', ...lines]
    const body = JSON.stringify({ token: viewer })
    const text = `${[...head, `Content-Length: ${body.length}`].join('\r\n')}\r\n\r\n${body}`
    return (await raw(gateway.adminUrl, text, { answers: 1 })).answers[0]!
  }
  const { status, headers } = await by('admin.example', 'Origin: https://admin.example')
  assert.equal(status, 200)
  assert.match(
    headers.get('set-cookie')!,
    /^__Host-triwire=tri-op-\w+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/,
  )
  assert.equal((await by('admin.example:443')).status, 200)
  assert.equal((await by(`127.0.0.1:${port}`)).status, 200)
  for (const other of ['example', 'evil.admin.example', 'admin.example:8443', 'admin.example.evil.example'])
    assert.equal((await by(other)).status, 421, other)
  assert.equal((await by('admin.example', 'Origin: http://evil.example')).status, 403)
  // Clients behind a proxy are distinguished by the address that it names.
  for (let at = 0; at < 5; at++) await ask('GET', '/me', { token: 'x', headers: { 'x-forwarded-for': '192.0.2.1' } })
  const wrong = (from: string) => ask('GET', '/me', { token: 'x', headers: { 'x-forwarded-for': from } })
  assert.equal(problemOf(await wrong('192.0.2.1')), 'rate_limited')
  assert.equal(problemOf(await wrong('192.0.2.2')), 'unauthenticated')
})
