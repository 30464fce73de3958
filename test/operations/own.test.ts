import assert from 'node:assert/strict'
import { request } from 'node:http'
import test from 'node:test'
import fc from 'fast-check'
import type { Books } from '../../src/accounts/books.ts'
import { isOurHost } from '../../src/admin/guard.ts'
import { allOperations, pathFields } from '../../src/operations/openapi.ts'
import type { TestGateway, TestOptions } from '../support/gateway.ts'
import { testModel } from '../support/gateway.ts'
import { openRaw } from '../support/raw.ts'
import { runsUpTo } from '../support/runs.ts'
import { until } from '../support/waiting.ts'
import { startApi } from './api.ts'

const question = { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] }

type Answer = { status: number; headers: Record<string, string | string[] | undefined>; text: string; body: never }

/** Asks the listener of clients as it is asked by programs that choose every header. */
function askOwn(
  { url }: TestGateway,
  path: string,
  { method = 'GET', body, headers = {} }: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const { hostname, port } = new URL(url)
  const text = body === undefined ? undefined : JSON.stringify(body)
  const type = text === undefined ? {} : { 'content-type': 'application/json' }
  return new Promise((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers: { ...type, ...headers } }, (response) => {
      const pieces: Buffer[] = []
      response.on('data', (piece: Buffer) => pieces.push(piece))
      response.on('end', () => {
        const told = String(Buffer.concat(pieces))
        const isJson = /json/.test(response.headers['content-type'] ?? '') && told !== ''
        const { statusCode = 0, headers } = response
        resolve({ status: statusCode, headers, text: told, body: (isJson ? JSON.parse(told) : undefined) as never })
      })
    })
    asked.on('error', reject)
    asked.end(text)
  })
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` })

async function startOwn(options: TestOptions = {}) {
  const api = await startApi({ ...options, config: { own_pages: true, ...options.config } })
  const { gateway } = api
  await gateway.untilKnown(api.keyB)
  const signIn = async (token: string, headers: Record<string, string> = {}) => {
    const told = await askOwn(gateway, '/console/api/session', { method: 'POST', body: { token }, headers })
    return { ...told, cookie: `${told.headers['set-cookie']}`.split(';')[0]! }
  }
  return { ...api, signIn, own: (...asked: Asked) => askOwn(gateway, ...asked) }
}

type Asked = Parameters<typeof askOwn> extends [unknown, ...infer Rest] ? Rest : never

test('Y19 Y22 the owner of a key signs in at the client listener, with a cookie that is theirs alone', async () => {
  const { gateway, own, signIn, keyB, admin } = await startOwn()
  const { status, headers, cookie } = await signIn(keyB)
  assert.equal(status, 200)
  assert.match(
    `${headers['set-cookie']}`,
    /^__Host-triwire-own=[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/,
  )
  const me = await own('/console/api/me', { headers: { cookie } })
  assert.deepEqual([me.status, (me.body as { name: string }).name], [200, 'b'])
  assert.equal(me.text.includes(keyB), false)
  // An operator's token is a wrong key here, whether it is shown or signed in with.
  assert.equal((await signIn(admin)).status, 401)
  assert.equal((await own('/console/api/me', { headers: bearer(admin) })).status, 401)
  // Neither listener takes the cookie of the other one.
  const onAdmin = await fetch(`${gateway.adminUrl}/api/v1/me`, { headers: { cookie } })
  assert.equal(onAdmin.status, 401)
  const ended = await own('/console/api/session', { method: 'DELETE', headers: { cookie } })
  assert.equal(ended.status, 204)
  assert.equal((await own('/console/api/me', { headers: { cookie } })).status, 401)
  const line = await gateway.logWith({ path: '/console/api/me', status: 200 })
  assert.deepEqual([line['account'], line['key']], ['b', keyB.slice(0, 15)])
})

test('F-C2 own pages answer while the bodies of forty other requests are missing', async () => {
  const { gateway, own, keyB } = await startOwn()
  const body = JSON.stringify({ token: keyB })
  const slow = await Promise.all(
    Array.from({ length: 40 }, async () => {
      const connection = await openRaw(gateway.url)
      const head = `POST /console/api/session HTTP/1.1\r\nhost: ${new URL(gateway.url).host}\r\nexpect: 100-continue`
      connection.write(`${head}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`)
      // The handler waits for the body.
      await connection.read({ until: /100 Continue/ })
      return connection
    }),
  )
  const me = await own('/console/api/me', { headers: bearer(keyB) })
  assert.equal(me.status, 200, me.text)
  for (const connection of slow) connection.write(body)
  const answers = await Promise.all(
    slow.map(async (connection) => (await connection.read({ answers: 1 })).answers.at(-1)!),
  )
  const statuses = new Set(answers.map(({ status }) => status))
  assert.ok(statuses.has(200) && statuses.difference(new Set([200, 429])).size === 0, [...statuses].join())
  assert.equal((await own('/console/api/me', { headers: bearer(keyB) })).status, 200)
})

test('Y19 forty slow requests of two keys of an account leave own pages to other accounts, and the account gets a 429', async () => {
  const { gateway, own, keyA, keyB } = await startOwn()
  const other = gateway.store.createKey('b').key
  await Promise.all([keyA, other].map((key) => gateway.untilKnown(key)))
  const found = Promise.withResolvers<undefined>()
  gateway.ledger.findDebit = () => found.promise
  const answers: Answer[] = []
  const slow = Array.from({ length: 40 }, async (_, at) => {
    const headers = bearer(at % 2 === 0 ? keyB : other)
    answers.push(await own(`/console/api/requests/req_${at}/explain`, { headers }))
  })
  await until(() => answers.length === 24, 'half of the places are taken')
  for (const { status, headers } of answers) assert.deepEqual([status, headers['retry-after']], [429, '2'])
  const refused = await own('/console/api/me', { headers: bearer(keyB) })
  assert.equal(refused.status, 429)
  assert.match((refused.body as { detail: string }).detail, /^Your account asks .*: ask again when answers have come/)
  const me = await own('/console/api/me', { headers: bearer(keyA) })
  assert.equal(me.status, 200, me.text)
  found.resolve(undefined)
  await Promise.all(slow)
  assert.equal(answers.filter(({ status }) => status === 404).length, 16)
  assert.equal((await own('/console/api/me', { headers: bearer(keyB) })).status, 200)
})

test('issue 47: cookies of sixty people at one address that ended overnight do not count as wrong keys', async () => {
  const { own, signIn, keyA, keyB } = await startOwn()
  const { cookie } = await signIn(keyB)
  await own('/console/api/session', { method: 'DELETE', headers: { cookie } })
  for (let person = 0; person < 60; person++)
    assert.equal((await own('/console/api/me', { headers: { cookie } })).status, 401)
  assert.equal((await own('/console/api/me', { headers: bearer('sk-tri-wrong') })).status, 401)
  assert.equal((await signIn(keyA)).status, 200)
})

test('Y19 the API of owners has exactly the operations that serve an owner, and refuses foreign hosts and sites', async () => {
  const { gateway, own, signIn, keyA } = await startOwn()
  const served = ['anyone', 'owner', 'own']
  const ofOwners = allOperations.filter(({ role }) => served.includes(role)).map(({ method, path }) => method + path)
  for (const one of allOperations) {
    // Below `/console/api` the operation of an owner takes the path of the operators'.
    if (!served.includes(one.role) && ofOwners.includes(`${one.method}/me${one.path}`)) continue
    const path = `/console/api${one.path.replace(/\{\w+\}/g, 'x')}`
    const { status } = await own(path, { method: one.method, headers: bearer(keyA) })
    const isUnknown = status === 404 || status === 405
    if (one.role === 'lead') assert.equal(status, 403, one.id)
    else if (!served.includes(one.role)) assert.ok(isUnknown, `${one.id} ${status}`)
    else if (pathFields(one).length === 0) assert.ok(!isUnknown, `${one.id} ${status}`)
    gateway.advance(1_000)
  }
  for (const path of ['/requests', '/models', '/usage', '/me/requests', '/me/models', '/me/usage', '/setup'])
    assert.equal((await own(`/console/api${path}`, { headers: bearer(keyA) })).status, 200, path)
  const { cookie } = await signIn(keyA)
  const foreign = { cookie, 'sec-fetch-site': 'cross-site' }
  const playing = { method: 'POST', body: { wire: 'chat', body: question } }
  assert.equal((await own('/console/api/playground', { ...playing, headers: foreign })).status, 403)
  assert.equal((await signIn(keyA, { 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.equal((await own('/console/api/me', { headers: { ...bearer(keyA), host: 'evil.example' } })).status, 421)
  assert.equal((await own('/console/', { headers: { host: 'evil.example' } })).status, 421)
  assert.equal((await own('/console/api/me')).status, 401)
  assert.equal((await own('/console/api/me', { method: 'OPTIONS', headers: bearer(keyA) })).status, 405)
})

test('Y19 pages answer under the name of api_url, and have their own limits, which do not affect model requests', async () => {
  const { gateway, own, keyA } = await startOwn({ config: { api_url: 'https://gw.example/v1' } })
  assert.equal((await own('/console/api/me', { headers: { ...bearer(keyA), host: 'gw.example' } })).status, 200)
  for (let wrong = 0; wrong < 10; wrong++)
    assert.equal((await own('/console/api/me', { headers: bearer('sk-tri-wrong') })).status, 401)
  const throttled = await own('/console/api/me', { headers: bearer('sk-tri-wrong') })
  assert.deepEqual([throttled.status, throttled.headers['retry-after'] !== undefined], [429, true])
  const asked = await Promise.all(Array.from({ length: 260 }, () => own('/console/api/me', { headers: bearer(keyA) })))
  assert.ok(asked.some(({ status }) => status === 429))
  assert.equal((await gateway.post('/v1/chat/completions', question)).status, 200)
})

test('Y19 the name of api_url may have the usual port of its scheme, which some proxies add', () => {
  for (const [url, ours, other] of [
    ['https://gw.example', 'gw.example:443', 'gw.example:80'],
    ['http://gw.example', 'gw.example:80', 'gw.example:443'],
    ['http://gw.example:8080', 'gw.example:8080', 'gw.example:80'],
  ] as const) {
    const site = { port: 9_999, isSecure: false, publicUrl: new URL(url) }
    assert.deepEqual([isOurHost(ours, site), isOurHost(other, site)], [true, false], url)
  }
})

test('Y19 a sign-in, which needs no key, has a body of at most 4 KiB', async () => {
  const { own, keyB } = await startOwn()
  const status = async (bytes: number) => {
    const space = bytes - JSON.stringify({ token: keyB }).length
    const headers = { 'content-type': 'application/json' }
    return (await own('/console/api/session', { method: 'POST', headers, body: { token: keyB + ' '.repeat(space) } }))
      .status
  }
  assert.deepEqual([await status(300), await status(4_097)], [200, 413])
})

test('R4 sign-ins and sign-outs of one IPv6 network count together', async () => {
  const { own } = await startOwn({ config: { trusted_proxies: ['127.0.0.1'] } })
  const signOut = async (address: string) =>
    (await own('/console/api/session', { method: 'DELETE', headers: { 'x-forwarded-for': address } })).status
  for (let host = 1; host <= 240; host++) assert.equal(await signOut(`2001:db8:1:2::${host.toString(16)}`), 204)
  assert.deepEqual([await signOut('2001:db8:1:2:3::'), await signOut('2001:db8:1:3::1')], [429, 204])
})

test('Y22 the playground of an owner is paid by their key and runs within its limits', async () => {
  const { gateway, own } = await startOwn()
  const { key, id } = gateway.store.createKey('b', {
    models: ['native-chat'],
    budget: { nanos: 100_000n, per: undefined },
  })
  await gateway.untilKnown(key)
  const play = (body: object) =>
    own('/console/api/playground', { method: 'POST', headers: bearer(key), body: { wire: 'chat', body } })
  assert.equal((await play({ ...question, model: 'native-messages' })).status, 404)
  const played = await play(question)
  assert.equal(played.status, 200, played.text)
  const requestId = `${played.headers['x-request-id']}`
  const lines = (await gateway.logLines()).filter((line) => line['id'] === requestId)
  assert.deepEqual(
    lines.map(({ path, key_id }) => [path, key_id]),
    [['/v1/chat/completions', id]],
  )
  const { items } = (await own('/console/api/requests', { headers: bearer(key) })).body as {
    items: { request_id: string; key: { id: string } }[]
  }
  assert.deepEqual(
    items.map((row) => [row.request_id === requestId, row.key.id]),
    [
      [true, id],
      [false, id],
    ],
  )
  const spent = await play(question)
  assert.equal(spent.status, 402, spent.text)
  const told = await own(`/console/api/requests/${spent.headers['x-request-id']}/explain`, { headers: bearer(key) })
  const explained = told.body as Record<string, string>
  assert.deepEqual(
    [explained['status'], explained['code'], explained['reason'], explained['why']],
    [402, 'insufficient_credits', 'budget_spent', 'This key has spent its budget.'],
  )
  assert.match(explained['message']!, /has spent its budget of 0\.0001 credits/)
  assert.match(explained['cure']!, /Wait until it renews/)
})

test('R18 large bodies that keys and people of one account send to the playground share the part of the account', async () => {
  const { gateway, own, keyB } = await startOwn({ bodiesBytesMax: 400_000 })
  const { bodies, turns } = gateway.server.gateway
  const other = gateway.store.createKey('b').key
  await gateway.untilKnown(other)
  const text = JSON.stringify({ wire: 'chat', body: { ...question, user: 'x'.repeat(60_000) } })
  const head = (key: string) =>
    [
      'POST /console/api/playground HTTP/1.1',
      `host: ${new URL(gateway.url).host}`,
      `authorization: Bearer ${key}`,
      'content-type: application/json',
      `content-length: ${text.length}`,
    ].join('\r\n')
  const slow = await openRaw(gateway.url)
  slow.write(`${head(keyB)}\r\n\r\n${text.slice(0, -1)}`)
  await until(() => bodies.held === text.length - 1, 'its body has come but for a byte')
  const second = await openRaw(gateway.url)
  second.write(`${head(other)}\r\n\r\n${text.slice(0, -1)}`)
  assert.equal((await second.read({ answers: 1 })).answers[0]?.status, 429)
  slow.socket.destroy()
  second.socket.destroy()
  await until(() => bodies.held === 0, 'who left holds nothing')
  // A body is parsed in the turn of the account, and then the request that it contains begins in another turn.
  const taken: string[] = []
  const { take } = turns
  turns.take = (accountId, bytes) => {
    taken.push(accountId)
    return take(accountId, bytes)
  }
  const played = await own('/console/api/playground', {
    method: 'POST',
    headers: bearer(other),
    body: { wire: 'chat', body: question },
  })
  assert.equal(played.status, 200, played.text)
  const { id } = gateway.store.findAccount('b')!
  assert.deepEqual(taken, [id, id])
})

test('Y22 the owner of a key sees requests and a statement of all keys of its person, and of the keys it was rotated from', async () => {
  const { gateway, own, books, keyA } = await startOwn()
  const person = (await books.createPerson({ name: 'Ada' })).id
  const make = async (bounds: object) => {
    const { key, id } = await books.createKey('b', bounds)
    await gateway.untilKnown(key!)
    await (await gateway.post('/v1/chat/completions', question, bearer(key!))).text()
    return { key: key!, id }
  }
  const [first, second, other] = [await make({ person }), await make({ person }), await make({})]
  const successor = (await books.rotateKey(other.id, 3_600_000)).key!
  await gateway.untilKnown(successor)
  const keys = [first.key, second.key, other.key, successor, keyA]
  const ofEach = <Body>(path: string, count: (body: Body) => number) =>
    Promise.all(keys.map(async (key) => count((await own(path, { headers: bearer(key) })).body as Body)))
  const listed = await ofEach<{ items: unknown[] }>('/console/api/requests', ({ items }) => items.length)
  assert.deepEqual(listed, [2, 2, 1, 1, 0])
  const stated = await ofEach<{ requests: number }>('/console/api/me/statement', ({ requests }) => requests)
  assert.deepEqual(stated, listed)
})

type Rows = { items: { id: string; request_id: string; person: { name: string } | null; is_this: boolean }[] }

/** Signs a person in on a machine. @returns the session, and the person of it */
async function signInAgent(books: Books, account: string, name: string) {
  const { id, code } = await books.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
  const whose = { issuer: 'https://idp.example', subject: name, name, account, role: 'member' } as const
  const { personId } = await books.decideGrant(id, whose)
  const lives = { accessMs: 3_600_000, idleMs: 30 * 86_400_000, absoluteMs: 90 * 86_400_000 }
  const { session } = (await books.pollGrant(code, lives)) as { session: { id: string; keyId: string } }
  return { personId: personId!, ...session }
}

test('CON-P7 the startup link allows no sign-in at the client listener, and stays valid for the console', async () => {
  const { ask, books, signIn } = await startOwn()
  const { token } = await books.makeLinkToken()
  assert.equal((await signIn(token)).status, 401)
  assert.equal((await ask('POST', '/session', { token: '', body: { token } })).status, 200)
})

test('Y20 Y22 a person sees their sessions and can end them, and no session of another person', async () => {
  const { own, books, gateway } = await startOwn()
  const [ada, second, bo] = [
    await signInAgent(books, 'b', 'Ada'),
    await signInAgent(books, 'b', 'Ada'),
    await signInAgent(books, 'b', 'Bo'),
  ]
  assert.equal(ada.personId, second.personId)
  const { key } = await books.createKey('b', { person: ada.personId })
  const shown = { headers: bearer(key!) }
  const list = async () => ((await own('/console/api/sessions', shown)).body as Rows).items
  assert.deepEqual((await list()).map(({ id }) => id).sort(), [ada.id, second.id].sort())
  const end = (id: string) => own(`/console/api/sessions/${id}/end`, { method: 'POST', ...shown })
  assert.deepEqual(
    [(await end(bo.id)).status, (await end('ses_none')).status, (await end(ada.id)).status],
    [404, 404, 200],
  )
  assert.deepEqual(
    (await list()).map(({ id }) => id),
    [second.id],
  )
  const [record] = gateway.store.listAudit({ limit: 1 })
  assert.deepEqual(
    [record!.actor, record!.operation, record!.object],
    [`person:${ada.personId}`, 'session.end', ada.id],
  )
  assert.deepEqual(((await own('/console/api/me', shown)).body as { pages: string[] }).pages.at(-1), 'sessions')
})

test('Y22 a lead sees the requests of all people of the account, only in the cookie of their sign-in', async () => {
  const { gateway, own, books, keyB } = await startOwn()
  const keyOf = async (account: string, name: string) => {
    const { id: person } = await books.createPerson({ name })
    const { key, id } = await books.createKey(account, { person })
    await gateway.untilKnown(key!)
    const answer = await gateway.post('/v1/chat/completions', question, bearer(key!))
    await answer.text()
    return { person, id, key: key!, request: answer.headers.get('x-request-id')! }
  }
  const [ada, bo, cy] = [await keyOf('b', 'Ada'), await keyOf('b', 'Bo'), await keyOf('tester', 'Cy')]
  const signIn = async (role: 'lead' | 'member') => {
    const { token } = await books.signInPerson({ personId: ada.person, role, keyId: ada.id })
    return { headers: { cookie: `__Host-triwire-own=${token}` } }
  }
  const lead = await signIn('lead')
  const rows = async (query: string) =>
    ((await own(`/console/api/people/requests${query}`, lead)).body as Rows).items.map(({ person }) => person?.name)
  assert.deepEqual((await rows('')).sort(), ['Ada', 'Bo'])
  assert.deepEqual(await rows(`?person=${bo.person}`), ['Bo'])
  assert.deepEqual(await rows(`?person=${cy.person}`), [])
  const explain = (request: string) => own(`/console/api/people/requests/${request}/explain`, lead)
  assert.deepEqual([(await explain(bo.request)).status, (await explain(cy.request)).status], [200, 404])
  const people = (await own('/console/api/people', lead)).body as { items: { name: string }[] }
  assert.deepEqual(people.items.map(({ name }) => name).sort(), ['Ada', 'Bo'])
  const usage = (await own('/console/api/people/usage?by=person&bucket=all&measures=requests', lead)).body as {
    series: { named: { person: string } }[]
  }
  assert.deepEqual(usage.series.flatMap(({ named }) => named.person ?? []).sort(), ['Ada', 'Bo'])
  // A refused request has no entry in the ledger, and counts for the person who has its key.
  const refused = await gateway.post('/v1/chat/completions', { ...question, model: 'none' }, bearer(bo.key))
  await refused.text()
  for (const bucket of ['all', 'hour']) {
    const path = `/console/api/people/usage?by=person&bucket=${bucket}&measures=credits,requests,errors&top=1`
    const { series, total } = (await own(path.replace('&top=1', ''), lead)).body as unknown as LedUsage
    const figures = series.map(({ named, requests, errors }) => [named?.person ?? null, sum(requests), sum(errors)])
    assert.deepEqual(
      figures.sort(),
      [
        ['Ada', 1, 0],
        ['Bo', 2, 1],
      ],
      bucket,
    )
    assert.deepEqual([sum(total.requests), sum(total.errors)], [3, 1])
    const [first] = ((await own(path, lead)).body as unknown as LedUsage).series
    assert.deepEqual(
      [sum(first!.requests), sum(first!.errors)],
      first!.named?.person === 'Bo' ? [2, 1] : [1, 0],
      bucket,
    )
  }
  const me = (await own('/console/api/me', lead)).body as { pages: string[]; role: string }
  assert.deepEqual([me.role, me.pages.includes('people')], ['lead', true])
  // Their own list is still only theirs.
  assert.deepEqual(
    ((await own('/console/api/requests', lead)).body as Rows).items.map((row) => row.request_id),
    [ada.request],
  )
  for (const shown of [await signIn('member'), { headers: bearer(ada.key) }, { headers: bearer(keyB) }])
    for (const path of ['/people', '/people/requests', '/people/usage', `/people/requests/${bo.request}/explain`])
      assert.equal((await own(`/console/api${path}`, shown)).status, 403, path)
  // A request stays that of the person who made it, even if the key is given to somebody else.
  await books.updateKey(bo.id, { person: ada.person })
  const after = ((await own('/console/api/people/requests', lead)).body as Rows).items
  assert.equal(after.find(({ request_id: id }) => id === bo.request)?.person?.name, 'Bo')
})

type LedFigures = { requests: (number | null)[]; errors: (number | null)[] }
type LedUsage = { series: (LedFigures & { named: { person?: string } | null })[]; total: LedFigures }

const sum = (counts: (number | null)[]) => counts.reduce<number>((all, count) => all + (count ?? 0), 0)

/** Every text that an owner must never see, in the data of a gateway with many accounts. */
const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{9}$/), { minLength: 12, maxLength: 12 })

test('Y22 for random data, no answer to an owner has a text of another key, account, person, upstream or price', async () => {
  await fc.assert(
    fc.asyncProperty(names, fc.array(fc.nat({ max: 3 }), { minLength: 4, maxLength: 8 }), async (all, spread) => {
      const [upstream, upstreamModel, band, other = '', person = '', label = '', ...accounts] = all.map(
        (one) => `zq${one}`,
      )
      const model = testModel('native-chat', 'chat', {
        upstream,
        upstream_model: upstreamModel,
        prices: { input: '31.4159', cache_read: '2.71828', cache_write: '14.1421', output: '57.7215' },
      })
      const api = await startOwn({
        models: [model, testModel('native-messages', 'messages', { upstream })],
        upstream: (base_url) => ({
          upstreams: { [upstream!]: { base_url, accounts: [{ name: band, key: 'upstream-key-1' }] } },
        }),
      })
      const { gateway, own, books, keyA } = api
      const foreign = [
        upstream!,
        upstreamModel!,
        band!,
        other,
        person,
        label,
        '31.4159',
        '2.71828',
        '14.1421',
        '57.7215',
      ]
      const keys: string[] = []
      for (const name of accounts) {
        const account = await books.createAccount(name, 5_000_000_000n)
        const { id } = await books.createPerson({ name: `${person}${name}`, email: `${other}@${name}.example` })
        const issued = await books.createKey(name, { label: `${label}${name}`, person: id })
        foreign.push(name, account.id, id, issued.id, issued.prefix, issued.key!)
        keys.push(issued.key!)
      }
      const foreignSession = await signInAgent(books, accounts[0]!, `${person}${other}`)
      foreign.push(foreignSession.id, foreignSession.personId, foreignSession.keyId)
      const [own2] = [await books.createKey('tester', { label: `${label}two` })]
      foreign.push(own2.id, own2.prefix)
      keys.push(own2.key!)
      await gateway.untilKnown(own2.key!)
      const ids: string[] = []
      for (const at of [...spread, 99]) {
        const key = keys[at % keys.length]!
        for (const wanted of ['native-chat', 'native-messages', 'none']) {
          const answer = await gateway.post('/v1/chat/completions', { ...question, model: wanted }, bearer(key))
          await answer.text()
          ids.push(answer.headers.get('x-request-id')!)
        }
      }
      foreign.push(...ids)
      const mine = await gateway.post('/v1/chat/completions', question)
      await mine.text()
      const requestId = mine.headers.get('x-request-id')!
      const cookie = (await api.signIn(keyA)).cookie
      for (const one of allOperations.filter(({ role }) => role === 'owner' || role === 'own')) {
        for (const request of [requestId, ...(one.path.includes('{request}') ? ids : [])]) {
          const session = foreignSession.id
          const path = one.path
            .replace('{request}', request)
            .replace('{session}', session)
            .replace('{client}', 'claude-code')
          for (const headers of [bearer(keyA), { cookie }]) {
            const query = one.id === 'own.usage' ? '?by=key&measures=credits,requests' : ''
            const bodies: Record<string, object> = {
              'own.playground': { wire: 'chat', body: question },
              'own.key.create': { name: 'x' },
            }
            const body = bodies[one.id]
            const told = await own(`/console/api${path}${query}`, { method: one.method, headers, body })
            const isForeign = request !== requestId || path.includes(session)
            // A key makes no key: that is for those who have signed in.
            const wanted = one.id === 'own.key.create' ? 403 : isForeign ? 404 : 200
            assert.equal(told.status, wanted, `${one.id}: ${told.text}`)
            const all = told.text + JSON.stringify(told.headers)
            for (const text of foreign)
              assert.ok(!all.includes(text) || text === told.headers['x-request-id'], `${one.id} has ${text}: ${all}`)
            assert.doesNotMatch(
              told.text,
              /"(?:prices?|price_version|upstream\w*|model_wire|client_wire|tier|band|plan|attempts)"/,
            )
          }
        }
        gateway.advance(1_000)
      }
      await gateway.close()
    }),
    { numRuns: runsUpTo(4), endOnFailure: true },
  )
})
