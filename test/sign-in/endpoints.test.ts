import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test, { after, before } from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import type { Books } from '../../src/accounts/books.ts'
import type { SignedIn } from '../../src/accounts/sign-in/rows.ts'
import type { SideRequest } from '../../src/admin/side.ts'
import { loadConfig } from '../../src/config/load.ts'
import { createSignInLimits } from '../../src/sign-in/limits.ts'
import { createOAuth } from '../../src/sign-in/oauth.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import { booksOf, hourMs, tokensOf } from '../support/sessions.ts'
import { until } from '../support/waiting.ts'

const signIn = { issuer: 'https://idp.example', client_id: 'triwire', rules: [{ groups: ['dev'], account: 'tester' }] }
const dev: SignedIn = {
  issuer: signIn.issuer,
  subject: 'u-1',
  account: 'tester',
  role: 'member',
  email: 'dev@corp.test',
}

let gateway: TestGateway
let books: Books
before(async () => {
  gateway = await startTestGateway({
    config: { sign_in: signIn, trusted_proxies: ['127.0.0.0/8'], credits: { name: 'EUR' } },
  })
  books = booksOf(gateway)
})
after(() => gateway.close())

let addresses = 0
/** Each test has an address of its own, because limits are by address. */
const newAddress = () => `198.51.100.${++addresses}`

type Answer = { status: number; headers: Headers; body: Record<string, never> & Record<string, unknown> }

async function post(path: string, form: Record<string, string>, from = newAddress()): Promise<Answer> {
  const answer = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'x-forwarded-for': from },
    body: new URLSearchParams(form),
  })
  const text = await answer.text()
  return { status: answer.status, headers: answer.headers, body: text === '' ? {} : JSON.parse(text) }
}

const deviceCode = 'urn:ietf:params:oauth:grant-type:device_code'
const begin = (from?: string) => post('/oauth/device_authorization', { surface: 'claude_code' }, from)
const poll = (code: unknown, from?: string) =>
  post('/oauth/token', { grant_type: deviceCode, device_code: `${code}` }, from)
const refresh = (token: unknown, from?: string) =>
  post('/oauth/token', { grant_type: 'refresh_token', refresh_token: `${token}` }, from)

async function approve(userCode: unknown, more: Partial<SignedIn> = {}) {
  const grant = await books.findGrant(`${userCode}`)
  await books.decideGrant(grant!.id, { ...dev, ...more })
}

async function signInFrom(from = newAddress(), more: Partial<SignedIn> = {}) {
  const { body } = await begin(from)
  await approve(body.user_code, more)
  const tokens = await poll(body.device_code, from)
  assert.equal(tokens.status, 200, JSON.stringify(tokens.body))
  return tokens.body as unknown as { access_token: string; refresh_token: string; expires_in: number }
}

const withBearer = (token: string, more: RequestInit = {}) => ({
  ...more,
  headers: { authorization: `Bearer ${token}` },
})

test('Y19 without sign_in its paths are unknown, and with it the discovery document names them', async () => {
  const plain = await startTestGateway()
  const paths = [
    '/.well-known/oauth-authorization-server',
    '/.well-known/opencode',
    '/managed/settings',
    '/api/oauth/usage',
  ]
  for (const path of paths) assert.equal((await fetch(plain.url + path)).status, 404)
  for (const path of [
    '/oauth/token',
    '/oauth/revoke',
    '/oauth/device_authorization',
    '/v1/logs',
    '/v1/metrics',
    '/v1/traces',
  ])
    assert.equal(
      ((await (await fetch(plain.url + path, { method: 'POST', body: '' })).json()) as { error: { code: string } })
        .error.code,
      'unknown_url',
    )
  const answer = await fetch(gateway.url + paths[0])
  const document = (await answer.json()) as Record<string, unknown>
  assert.deepEqual(
    [
      document['issuer'],
      document['token_endpoint'],
      document['device_authorization_endpoint'],
      document['revocation_endpoint'],
      document['authorization_endpoint'],
      document['gateway_protocol_version'],
    ],
    [
      gateway.url,
      `${gateway.url}/oauth/token`,
      `${gateway.url}/oauth/device_authorization`,
      `${gateway.url}/oauth/revoke`,
      `${gateway.url}/console/authorize`,
      1,
    ],
  )
  const opencode = (await (await fetch(gateway.url + paths[1])).json()) as {
    auth: { command: string[] }
    config: object
  }
  assert.deepEqual(opencode.auth.command, ['triwire', 'token', '--named', 'opencode', gateway.url])
  assert.match(JSON.stringify(opencode.config), /native-messages/)
  gateway.reload({ api_url: 'https://llm.example/base/' })
  const moved = (await (await fetch(gateway.url + paths[0])).json()) as Record<string, unknown>
  assert.equal(moved['token_endpoint'], 'https://llm.example/base/oauth/token')
  gateway.reload({})
})

test('Y19 opencode gets every id of the list of models, also further names and chains', async () => {
  const models = [
    testModel('one', 'chat', { also: ['other'] }),
    testModel('two', 'messages'),
    { id: 'both', chain: ['one', 'two'] },
  ]
  gateway.reload({ catalog: { pinned: '2026-11-01', models } })
  const { config } = (await (await fetch(`${gateway.url}/.well-known/opencode`)).json()) as {
    config: { provider: { triwire: { models: object } } }
  }
  const { data } = (await (await fetch(`${gateway.url}/v1/models`)).json()) as { data: { id: string }[] }
  assert.deepEqual(
    Object.keys(config.provider.triwire.models),
    data.map(({ id }) => id),
  )
  assert.equal(data.length, 4)
  gateway.reload({})
})

test('Y20 the exchange of sign-in.md 1.3 works: device code, poll, tokens, settings, a request, refresh, sign-out', async () => {
  const from = newAddress()
  const device = await begin(from)
  assert.equal(device.status, 200)
  assert.deepEqual(
    { ...device.body, device_code: '', user_code: '' },
    {
      device_code: '',
      user_code: '',
      verification_uri: `${gateway.url}/console/device`,
      verification_uri_complete: `${gateway.url}/console/device?user_code=${device.body.user_code}`,
      expires_in: 600,
      interval: 5,
    },
  )
  const pending = await poll(device.body.device_code, from)
  assert.deepEqual([pending.status, pending.body.error], [400, 'authorization_pending'])
  await approve(device.body.user_code)
  const tokens = await poll(device.body.device_code, from)
  assert.deepEqual(
    { ...tokens.body, access_token: '', refresh_token: '' },
    { access_token: '', token_type: 'Bearer', expires_in: 3600, refresh_token: '', email: 'dev@corp.test' },
  )
  assert.equal(tokens.headers.get('cache-control'), 'no-store')
  const [created] = await books.listAudit({ limit: 1 })
  assert.deepEqual([created?.operation, created?.actor, created?.address], ['session.create', 'sign_in', from])
  const access = `${tokens.body.access_token}`
  assert.equal((await fetch(`${gateway.url}/managed/settings`, withBearer(access))).status, 404)
  assert.equal((await fetch(`${gateway.url}/managed/settings`)).status, 404)
  const ask = (token: string) =>
    fetch(
      `${gateway.url}/v1/messages?beta=true`,
      withBearer(token, {
        method: 'POST',
        body: '{"model":"native-messages","max_tokens":5,"messages":[{"role":"user","content":"canary"}]}',
      }),
    )
  assert.equal((await ask(access)).status, 200)
  gateway.advance(hourMs - 300_000)
  const next = await refresh(tokens.body.refresh_token, from)
  assert.deepEqual([next.status, next.body.expires_in], [200, 3600])
  assert.equal((await ask(`${next.body.access_token}`)).status, 200)
  assert.equal((await ask(access)).status, 200, 'the token before it goes on to its end')
  for (const token of [next.body.access_token, next.body.refresh_token, 'unknown', ''])
    assert.deepEqual([(await post('/oauth/revoke', { token: `${token}` })).status], [200])
  await until(async () => (await ask(access)).status === 401, 'signed out')
  assert.deepEqual([(await refresh(next.body.refresh_token)).body.error], ['invalid_grant'])
})

test('issue 47 a refused refresh says only why the session ended, because triwire token says itself that it has, and the cure', async () => {
  const whys = {
    ended: 'An operator ended it, or you did in the console.',
    signed_out: 'You signed out.',
    revoked: 'Its key was revoked.',
    reuse: 'An old token of it was used again.',
    provider: 'Your organisation does not confirm it any more.',
    person_erased: 'The data of its person were erased.',
  }
  for (const [why, text] of Object.entries(whys)) {
    // The newest session is the first of the list.
    gateway.advance(1)
    const { refresh_token } = await signInFrom()
    const [session] = await books.pageSessions({ limit: 1 })
    await books.endSession({ id: session!.id }, why as keyof typeof whys)
    const { body } = await refresh(refresh_token)
    assert.deepEqual([body.error, body.error_description], ['invalid_grant', text])
  }
  const { refresh_token } = await signInFrom()
  gateway.advance(10_000 * hourMs)
  for (const token of ['unknown', refresh_token])
    assert.doesNotMatch(`${(await refresh(token)).body.error_description}`, /has ended|sign in/)
  gateway.advance(-10_000 * hourMs)
})

test('Y20 every refusal of the token endpoint is the error of its RFC, with a sentence', async () => {
  const denied = await begin()
  const paced = await begin()
  await poll(paced.body.device_code)
  await books.decideGrant((await books.findGrant(`${denied.body.user_code}`))!.id, 'denied')
  const used = await begin()
  await approve(used.body.user_code)
  await poll(used.body.device_code)
  const old = await signInFrom()
  const rows: readonly (readonly [Record<string, string>, number, string])[] = [
    [{}, 400, 'invalid_request'],
    [{ grant_type: '' }, 400, 'invalid_request'],
    [{ grant_type: 'password', username: 'a' }, 400, 'unsupported_grant_type'],
    [{ grant_type: deviceCode }, 400, 'invalid_request'],
    [{ grant_type: 'refresh_token' }, 400, 'invalid_request'],
    [{ grant_type: 'authorization_code' }, 400, 'invalid_request'],
    [{ grant_type: deviceCode, device_code: 'unknown' }, 400, 'expired_token'],
    [{ grant_type: deviceCode, device_code: `${used.body.device_code}` }, 400, 'expired_token'],
    [{ grant_type: deviceCode, device_code: `${paced.body.device_code}` }, 429, 'slow_down'],
    [{ grant_type: deviceCode, device_code: `${denied.body.device_code}` }, 400, 'access_denied'],
    [{ grant_type: deviceCode, device_code: `${denied.body.device_code}` }, 400, 'expired_token'],
    [{ grant_type: 'authorization_code', code: 'unknown', code_verifier: 'v' }, 400, 'invalid_grant'],
    [{ grant_type: 'refresh_token', refresh_token: 'unknown' }, 400, 'invalid_grant'],
    [{ grant_type: 'refresh_token', refresh_token: old.access_token }, 400, 'invalid_grant'],
    [{ grant_type: 'refresh_token', refresh_token: gateway.key }, 400, 'invalid_grant'],
  ]
  for (const [form, status, error] of rows) {
    const { body, ...answer } = await post('/oauth/token', { ...form, unknown_field: 'x' })
    assert.deepEqual([answer.status, body.error], [status, error], JSON.stringify(form))
    assert.match(`${body.error_description}`, /^[A-Z].*\.$/)
    assert.equal(answer.headers.get('cache-control'), 'no-store')
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
  }
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/device_authorization'])
    for (const method of ['GET', 'PUT', 'OPTIONS']) {
      const answer = await fetch(gateway.url + path, { method })
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, 'POST'])
      assert.match(`${answer.headers.get('x-request-id')}`, /^req_/)
    }
})

test('Y19 a form above 16 KB is refused like any other body, declared or not, and one of 16 KB is read', async () => {
  const streamed = (size: number): RequestInit => ({
    body: new Blob(['a'.repeat(size)]).stream(),
    ...({ duplex: 'half' } as object),
  })
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/device_authorization'])
    for (const form of [(size: number): RequestInit => ({ body: 'a'.repeat(size) }), streamed]) {
      const large = await fetch(gateway.url + path, { method: 'POST', ...form(16_385) })
      const told = (await large.json()) as Record<string, unknown>
      assert.deepEqual(
        [large.status, told, large.headers.get('content-type'), large.headers.get('cache-control')],
        [
          413,
          { error: 'invalid_request', error_description: 'The form is larger than 16384 bytes.' },
          'application/json',
          'no-store',
        ],
      )
      assert.equal(large.headers.get('access-control-allow-origin'), null)
      assert.match(`${large.headers.get('x-request-id')}`, /^req_/)
      const whole = await fetch(gateway.url + path, { method: 'POST', ...form(16_384) })
      assert.equal(whole.status, path === '/oauth/token' ? 400 : 200)
      await whole.text()
    }
})

test('Y20 an authorization code is redeemed with its verifier, at its address', async () => {
  const verifier = 'v'.repeat(43)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const redirectUri = 'http://127.0.0.1:9/callback'
  const { id, code } = await books.beginGrant({ kind: 'code', challenge, redirectUri, agent: 'triwire' })
  await books.decideGrant(id, dev)
  const form = { grant_type: 'authorization_code', code, redirect_uri: redirectUri, code_verifier: verifier }
  assert.equal((await post('/oauth/token', form)).status, 200)
  assert.equal((await post('/oauth/token', form)).body.error, 'invalid_grant')
})

test('Y19 sixty people at one address sign in, sixty tokens expire at once, and no request is refused or throttled', async () => {
  const from = newAddress()
  const people = await Promise.all(Array.from({ length: 60 }, (_, n) => signInFrom(from, { subject: `office-${n}` })))
  gateway.advance(hourMs + 1_000)
  const ask = (token: string) =>
    fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'x-forwarded-for': from },
      body: '{"model":"native-messages","max_tokens":5,"messages":[{"role":"user","content":"canary"}]}',
    })
  const statuses = await Promise.all(people.map(async (one) => (await ask(one.access_token)).status))
  assert.deepEqual(new Set(statuses), new Set([401]))
  const refreshed = await Promise.all(people.map((one) => refresh(one.refresh_token, from)))
  assert.deepEqual(new Set(refreshed.map(({ status }) => status)), new Set([200]))
  const after = await Promise.all(refreshed.map(async ({ body }) => (await ask(`${body.access_token}`)).status))
  assert.deepEqual(new Set(after), new Set([200]))
})

test('Y20 twenty concurrent refreshes with one token get one successor', async () => {
  const { refresh_token } = await signInFrom()
  const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(refresh_token)))
  assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1)
  assert.equal(answers[0]?.status, 200)
})

test('Y19 an address may leave a limited number of sign-ins unfinished and mistype a limited number of codes; finished ones do not count', async () => {
  const limits = { grants: 5, codes: 4 }
  gateway.reload({ sign_in: { ...signIn, limits } })
  const from = newAddress()
  for (let n = 0; n < 10; n++) await signInFrom(from)
  const left = await Promise.all(Array.from({ length: 5 }, () => begin(from)))
  const refused = await begin(from)
  assert.deepEqual([refused.status, refused.body.error], [429, 'slow_down'])
  assert.match(`${refused.body.error_description}`, /Too many sign-ins were begun from your address/)
  assert.equal((await begin(newAddress())).status, 200)
  await approve(left[0]?.body.user_code)
  assert.equal((await poll(left[0]?.body.device_code, from)).status, 200)
  assert.equal((await begin(from)).status, 200)
  const good = await signInFrom()
  for (let n = 0; n < 4; n++) assert.equal((await poll('unknown', from)).body.error, 'expired_token')
  for (const wrong of [await poll('unknown', from), await refresh('unknown', from)])
    assert.deepEqual([wrong.status, wrong.body.error], [429, 'slow_down'])
  assert.equal((await refresh(good.refresh_token, from)).status, 200, 'a right token passes')
  gateway.advance(600_000)
  assert.equal((await begin(from)).status, 200)
  assert.equal((await poll('unknown', from)).body.error, 'expired_token')
  gateway.reload({})
})

test('Y19 telemetry is accepted only from sessions, and not read', async () => {
  const { access_token } = await signInFrom()
  for (const path of ['/v1/logs', '/v1/metrics', '/v1/traces']) {
    const body = 'canary-telemetry'.repeat(1_000)
    const answer = await fetch(gateway.url + path, withBearer(access_token, { method: 'POST', body }))
    assert.deepEqual([answer.status, await answer.text()], [200, ''])
    const nobody = await fetch(gateway.url + path, { method: 'POST', body: 'x' })
    assert.deepEqual([nobody.status, nobody.headers.get('x-should-retry')], [401, 'false'])
    assert.equal(((await nobody.json()) as { type: string }).type, 'error')
    assert.equal((await fetch(gateway.url + path, withBearer(access_token))).status, 404)
  }
})

test('Y19 a body above the limit of the listener is refused on each path in the form of its own errors', async () => {
  const { access_token } = await signInFrom()
  const send = async (method: string, path: string, bytes: number) => {
    const head = `${method} ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${access_token}\r\n`
    const { answers } = await raw(gateway.url, `${head}content-length: ${bytes}\r\n\r\n`, { answers: 1 })
    return { status: answers[0]!.status, body: JSON.parse(answers[0]!.body || '{}'), headers: answers[0]!.headers }
  }
  for (const path of ['/oauth/token', '/oauth/revoke', '/oauth/device_authorization']) {
    const { status, body } = await send('POST', path, 400_000_000)
    const text = 'The form is larger than 16384 bytes.'
    assert.deepEqual([status, body], [413, { error: 'invalid_request', error_description: text }])
  }
  for (const path of ['/v1/logs', '/v1/metrics', '/v1/traces'])
    for (const bytes of [5_242_881, 400_000_000]) {
      const { status, body, headers } = await send('POST', path, bytes)
      assert.deepEqual([status, body.type, body.error.type], [413, 'error', 'request_too_large'])
      assert.match(body.error.message, /5242880 bytes/)
      assert.equal(headers.get('connection'), 'close')
    }
  const settings = await send('GET', '/managed/settings', 400_000_000)
  assert.deepEqual([settings.status, settings.body.type], [404, 'error'])
  assert.equal((await send('GET', '/.well-known/opencode', 400_000_000)).status, 200)
  const chat = await send('POST', '/v1/chat/completions', 400_000_000)
  assert.deepEqual([chat.status, chat.body.error.type], [413, 'invalid_request_error'])
})

test('Y19 sign-ins that failed because the store did not respond do not count for their address', async () => {
  let isSilent = true
  const begun = () => Promise.resolve(booksOf(gateway))
  const oauth = createOAuth({
    books: () => (isSilent ? Promise.reject(new StoreSilent()) : begun()),
    tokens: tokensOf(gateway),
    limits: createSignInLimits({ limits: () => ({ codes: 1, grants: 1 }), clockMs: () => 0 }),
    settings: () => assert.fail('nothing is asked of them'),
    baseOf: () => gateway.url,
    nowMs: gateway.nowMs,
  })
  const request = {
    exchange: { method: 'POST', header: () => undefined },
    record: { ip: newAddress() },
    readBody: async () => Buffer.from('surface=claude_code'),
  } as unknown as SideRequest
  const ask = async () => (await oauth['/oauth/device_authorization'](request)).status
  assert.deepEqual([await ask(), await ask()], [503, 503])
  isSilent = false
  assert.deepEqual([await ask(), await ask()], [200, 429])
})

test('Y20 an answer has the lifetimes that are set, although some milliseconds pass before it', async () => {
  const { refresh_token: token } = await signInFrom()
  const oauth = createOAuth({
    books: async () => booksOf(gateway),
    tokens: tokensOf(gateway),
    limits: createSignInLimits({ limits: () => ({ codes: 1, grants: 1 }), clockMs: () => 0 }),
    settings: () => loadConfig({ config: gateway.configPath }).signIn!,
    baseOf: () => gateway.url,
    nowMs: () => gateway.nowMs() + 40,
  })
  for (const [path, form, seconds] of [
    ['/oauth/device_authorization', 'surface=claude_code', 600],
    ['/oauth/token', `grant_type=refresh_token&refresh_token=${token}`, 3600],
  ] as const) {
    const request = {
      exchange: { method: 'POST', header: () => undefined },
      record: { ip: newAddress() },
      readBody: async () => Buffer.from(form),
    } as unknown as SideRequest
    const { body } = await oauth[path](request)
    assert.equal((JSON.parse(`${body}`) as { expires_in: number }).expires_in, seconds, path)
  }
})
