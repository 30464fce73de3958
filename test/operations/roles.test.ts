import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import test from 'node:test'
import { StoreSilent } from '../../src/accounts/account.ts'
import { createWindows } from '../../src/accounts/limits.ts'
import { createOperator, createToken, type PersonSession } from '../../src/accounts/operators.ts'
import { allOperations, pathFields, problemsOf } from '../../src/operations/openapi.ts'
import type { Operation } from '../../src/operations/operation.ts'
import type { ProblemName } from '../../src/operations/problem.ts'
import { raw } from '../support/raw.ts'
import { problemOf, startApi } from './api.ts'
import { createBareApi, startBareAdmin } from './bare-admin.ts'
import { checkAnswer } from './contract.ts'

type Api = Awaited<ReturnType<typeof startApi>>

/** What each operation can be asked, once: a new entry of the table has a line here. `of` makes what it is about. */
const samples: Record<string, (api: Api, key?: string) => Record<string, unknown> | Promise<Record<string, unknown>>> =
  {
    'session.create': ({ viewer }) => ({ token: viewer }),
    'session.sign_out': () => ({}),
    'session.list': () => ({ account: 'tester' }),
    'session.end': async (api) => ({ session: await signInAgent(api) }),
    me: () => ({}),
    openapi: () => ({}),
    'account.create': () => ({ name: `made-${++count}`, credit: '1.5' }),
    'account.list': () => ({ q: 'test' }),
    'account.show': () => ({ account: 'tester' }),
    'account.update': ({ gateway }) => ({
      account: gateway.store.createAccount(`edited-${++count}`).id,
      state: 'suspended',
    }),
    'account.delete': ({ gateway }) => ({ account: gateway.store.createAccount(`deleted-${++count}`).id }),
    'account.credit': () => ({ account: 'b', credits: '1', reference: `ref-${++count}` }),
    'key.create': () => ({ account: 'b', label: 'laptop' }),
    'key.list': () => ({ account: 'b' }),
    'key.foreign': () => ({}),
    'key.show': ({ gateway }) => ({ key: gateway.store.listKeys('b')[0]!.id }),
    'key.update': ({ gateway }) => ({ key: gateway.store.listKeys('b')[0]!.id, label: `ci-${++count}` }),
    'key.revoke': ({ gateway }) => ({ key: gateway.store.createKey('b').id }),
    'key.delete': ({ gateway }) => ({ key: gateway.store.createKey('b').id }),
    'key.rotate': ({ gateway }) => ({ key: gateway.store.createKey('b').id, grace: '1h' }),
    'person.create': () => ({ name: 'Ada', external_id: `u-${++count}` }),
    'person.list': () => ({ q: 'ada' }),
    'person.import': () => ({ csv: `name,external_id\nBo,u-${++count}\n` }),
    'person.show': async ({ books }) => ({ person: (await books.createPerson({ name: 'Cy' })).id }),
    'person.update': async ({ books }) => ({ person: (await books.createPerson({ name: 'Di' })).id, email: 'd@e.fr' }),
    'person.link': async ({ books }) => ({
      person: (await books.createPerson({ name: 'Ed' })).id,
      other: (await books.createPerson({ name: 'Ed 2' })).id,
    }),
    'person.sign_out': async ({ books }) => ({ person: (await books.createPerson({ name: 'Ey' })).id }),
    'person.erase': async ({ books }) => ({ person: (await books.createPerson({ name: 'Fy' })).id }),
    'ledger.list': () => ({ account: 'tester' }),
    'ledger.totals': () => ({ by: 'model,key' }),
    'ledger.margin': () => ({ by: 'model,upstream' }),
    'usage.show': () => ({ by: 'model,outcome', measures: 'credits,requests,first_byte_ms' }),
    'usage.table': () => ({ by: 'account,model' }),
    'statement.show': () => ({ account: 'tester', month: '2026-01' }),
    'statement.own': () => ({ month: '2026-01' }),
    'own.requests': () => ({ outcome: 'ok' }),
    'own.explain': async ({ gateway }, key) => ({ request: await paid(gateway, key) }),
    'own.models': () => ({}),
    'own.usage': () => ({ by: 'model', measures: 'credits,requests' }),
    'own.playground': () => ({ wire: 'chat', body: question }),
    'own.sessions': () => ({}),
    'own.key.create': () => ({ name: 'qwen-code on laptop' }),
    'own.session.end': async (api, key) => ({ session: await signInAgent(api, key) }),
    'people.requests': () => ({}),
    'people.explain': async ({ gateway }) => ({ request: await paid(gateway) }),
    'people.usage': () => ({ by: 'person' }),
    'people.list': () => ({}),
    'ledger.show': async ({ gateway }) => ({ request: await paid(gateway) }),
    'model.list': () => ({}),
    'upstream.list': () => ({}),
    'upstream.retry': () => ({ upstream: 'sim' }),
    'upstream.disable': () => ({ upstream: 'sim', model: 'native-messages' }),
    'upstream.enable': () => ({ upstream: 'sim', account: 'a', model: 'native-messages' }),
    status: () => ({}),
    needs: () => ({}),
    'demo.show': () => ({}),
    'demo.make': () => ({}),
    'demo.remove': () => ({}),
    'clock.confirm': () => ({}),
    'webhook.list': () => ({}),
    events: () => ({}),
    'request.list': () => ({ account: 'tester' }),
    playground: () => ({ account: 'b', wire: 'chat', body: question }),
    translate: () => ({ from: 'chat', body: question }),
    'setup.list': () => ({}),
    'setup.show': () => ({ client: 'claude-code' }),
    'request.explain': async ({ gateway }) => ({ request: await paid(gateway) }),
    'operator.create': () => ({ name: `op-${++count}`, role: 'viewer', expires: '1h' }),
    'operator.list': () => ({}),
    'operator.revoke': async ({ books }) => ({
      operator: (await books.createOperator(`gone-${++count}`, 'viewer', Date.now() + 1e9)).operator.id,
    }),
    'audit.list': () => ({ actor: 'triwire' }),
  }
let count = 0

/** @property cookie signs in once more, because one of the operations signs out. @property key of the session of a person */
type Asker = {
  who: string
  token: string | undefined
  cookie?: () => Promise<Record<string, string>>
  key?: string | undefined
  may: string[]
}

const question = { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] }

type Identity = { token?: string | undefined; headers?: Record<string, string> }

/** Shows whose question it is, for an operation that serves no operator; nothing: an admin's will do. */
async function identityFor({ id, role }: Operation, api: Api): Promise<Identity> {
  if (id === 'own.key.create') return signedInOf(api)
  if (role === 'own') return { token: api.keyA }
  if (role !== 'lead') return {}
  const { id: personId } = await api.books.createPerson({ name: 'A lead' })
  const { id: keyId } = await api.books.createKey('tester', { person: personId })
  const { token } = await api.books.signInPerson({ personId, role: 'lead', keyId })
  return { token: '', headers: { cookie: `triwire=${token}` } }
}

const signedIn = new WeakMap<Api, Identity>()

/** The cookie of a person whose key is that of a session: the same one whenever it is asked for. */
async function signedInOf(api: Api): Promise<Identity> {
  const known = signedIn.get(api)
  if (known) return known
  const [session] = await api.books.pageSessions({ id: await signInAgent(api), limit: 1 })
  const { personId, keyId } = session!
  const { token } = await api.books.signInPerson({ personId, role: 'member', keyId })
  const identity = { token: '', headers: { cookie: `triwire=${token}` } }
  signedIn.set(api, identity)
  return identity
}

/** Signs the person of a key in on a machine. The key becomes one of that person. @returns the id of the session */
async function signInAgent({ books, gateway, keyA }: Api, key = keyA): Promise<string> {
  const { id: keyId, accountId } = gateway.store.listKeys().find(({ prefix }) => key.startsWith(prefix))!
  const { id, code } = await books.beginGrant({ kind: 'device', agent: 'claude_code', address: '192.0.2.9' })
  const whose = { issuer: 'https://idp.example', subject: `u-${++count}`, account: accountId, role: 'member' } as const
  const { personId } = await books.decideGrant(id, whose)
  const day = 86_400_000
  const redeemed = await books.pollGrant(code, {
    accessMs: day / 24,
    idleMs: 30 * day,
    absoluteMs: 90 * day,
  })
  await books.updateKey(keyId, { person: personId! })
  return (redeemed as { session: { id: string } }).session.id
}

async function paid(gateway: Api['gateway'], key = gateway.key): Promise<string> {
  const answer = await gateway.post('/v1/chat/completions', question, { authorization: `Bearer ${key}` })
  await answer.text()
  return answer.headers.get('x-request-id')!
}

/** As the document says that it is asked. */
function toAsked(one: Operation, fields: Record<string, unknown>) {
  const inPath = pathFields(one)
  const path = one.path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(`${fields[name]}`))
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !inPath.includes(name)))
  const hasBody = one.method === 'POST' || one.method === 'PATCH'
  const query = new URLSearchParams(rest as Record<string, string>).toString()
  return {
    path: hasBody || query === '' ? path : `${path}?${query}`,
    ...(hasBody && Object.keys(rest).length > 0 && { body: rest }),
    headers: (one.kind === 'edits' ? { 'if-match': '*' } : {}) as Record<string, string>,
  }
}

test('issue 13: every operation, asked by every role, without a token and with an ended one, answers as the table says', async () => {
  const api = await startApi()
  const { gateway, ask, viewer, keyA, keyB } = api
  const expired = gateway.store.change(createOperator('late', 'admin', gateway.nowMs(), gateway.nowMs())).token
  const revoked = (await api.books.createOperator('gone', 'admin', gateway.nowMs() + 86_400_000)).token
  await api.books.revokeOperator('gone')
  const finance = (await api.books.createOperator('fin', 'finance', gateway.nowMs() + 86_400_000)).token
  /** Signs a person in at the provider (Y22). @param keyOf the account of their session's key. */
  const signIn = async (role: PersonSession['role'], keyOf?: string) => {
    const { id: personId } = await api.books.createPerson({ name: `A ${role}` })
    const issued = keyOf === undefined ? undefined : await api.books.createKey(keyOf, { person: personId })
    const whose = { personId, role, keyId: issued?.id }
    return {
      key: issued?.key,
      cookie: async () => ({ cookie: `triwire=${(await api.books.signInPerson(whose)).token}` }),
    }
  }
  const people = {
    ...{ admin: await signIn('admin'), viewer: await signIn('viewer'), finance: await signIn('finance') },
    ...{ lead: await signIn('lead', 'tester'), member: await signIn('member', 'tester') },
  }
  // The columns are the roles of operations (Y22).
  const askers: Asker[] = [
    {
      who: 'person, admin',
      token: '',
      ...people.admin,
      may: ['anyone', 'owner', 'reader', 'viewer', 'finance', 'admin'],
    },
    { who: 'person, viewer', token: '', ...people.viewer, may: ['anyone', 'owner', 'reader', 'viewer'] },
    { who: 'person, finance', token: '', ...people.finance, may: ['anyone', 'owner', 'reader', 'finance'] },
    { who: 'lead', token: '', ...people.lead, may: ['anyone', 'owner', 'own', 'lead'] },
    { who: 'member', token: '', ...people.member, may: ['anyone', 'owner', 'own'] },
    { who: 'admin', token: undefined, may: ['anyone', 'owner', 'reader', 'viewer', 'finance', 'admin'] },
    { who: 'viewer', token: viewer, may: ['anyone', 'owner', 'reader', 'viewer'] },
    { who: 'finance', token: finance, may: ['anyone', 'owner', 'reader', 'finance'] },
    { who: 'owner A', token: keyA, may: ['anyone', 'owner', 'own'] },
    { who: 'owner B', token: keyB, may: ['anyone', 'owner', 'own'] },
    { who: 'nobody', token: '', may: ['anyone'] },
    { who: 'expired', token: expired, may: ['anyone'] },
    { who: 'revoked', token: revoked, may: ['anyone'] },
  ]
  assert.deepEqual(
    allOperations.map(({ id }) => id).sort(),
    Object.keys(samples).sort(),
    'each operation of the table has a sample',
  )
  for (const one of allOperations) {
    for (const { who, token, key, cookie, may } of askers) {
      // Five wrong tokens in a minute are the most that are answered as such.
      if (who === 'expired') gateway.advance(60_000)
      const { path, ...options } = toAsked(one, await samples[one.id]!(api, key ?? (token === keyB ? keyB : undefined)))
      const told = await ask(one.method, path, {
        ...options,
        token,
        headers: { ...options.headers, ...(await cookie?.()) },
      })
      // The key of an owner makes no other key: that is for sessions (own.test.ts).
      const isAllowed = may.includes(one.role) && one.id !== 'own.key.create'
      const wanted = isAllowed ? 'done' : may.length === 1 ? 'unauthenticated' : 'forbidden'
      assert.equal(told.status < 300 ? 'done' : problemOf(told), wanted, `${one.id} by ${who}: ${told.text}`)
    }
  }
})

test('issue 13 Y22: an owner may sign in and out, see and try their own data and agent settings, and nothing else', () => {
  const owners = allOperations.filter(({ role }) => ['anyone', 'owner', 'own'].includes(role)).map(({ id }) => id)
  assert.deepEqual(owners.sort(), [
    ...[
      'me',
      'own.explain',
      'own.key.create',
      'own.models',
      'own.playground',
      'own.requests',
      'own.session.end',
      'own.sessions',
      'own.usage',
    ],
    ...['session.create', 'session.sign_out', 'setup.list', 'setup.show', 'statement.own'],
  ])
})

test('Y22 finance reads sums, prices and statements of all accounts, and no entry, request, key or person', () => {
  const readers = allOperations.filter(({ role }) => role === 'reader' || role === 'finance').map(({ id }) => id)
  assert.deepEqual(readers.sort(), [
    'account.list',
    'account.show',
    'ledger.margin',
    'ledger.totals',
    'model.list',
    'needs',
    'openapi',
    'statement.show',
    'status',
    'usage.show',
    'usage.table',
  ])
})

test('issue 13: 401 comes before 403, that before 404, that before 400', async () => {
  const { gateway, ask, viewer, keyA } = await startApi()
  const wrong = { body: { nonsense: 1 } }
  const nowhere = { body: { name: '' }, headers: { 'if-match': '*' } }
  const cases = [
    ['POST', '/accounts', '', wrong, 'unauthenticated'],
    ['GET', '/nothing', '', {}, 'unauthenticated'],
    ['PATCH', '/accounts/none', 'tri-op-wrong', nowhere, 'unauthenticated'],
    ['POST', '/accounts', viewer, wrong, 'forbidden'],
    ['PATCH', '/accounts/none', viewer, nowhere, 'forbidden'],
    ['GET', '/accounts/none', keyA, {}, 'forbidden'],
    ['GET', '/nothing', keyA, {}, 'not_found'],
    ['GET', '/accounts/none', viewer, {}, 'not_found'],
    ['DELETE', '/accounts', viewer, {}, 'method_not_allowed'],
    ['POST', '/accounts', undefined, wrong, 'invalid_request'],
  ] as const
  for (const [method, path, token, options, problem] of cases) {
    gateway.advance(60_000)
    assert.equal(problemOf(await ask(method, path, { ...options, token })), problem, `${method} ${path} by ${token}`)
  }
})

test('X14 U5 an owner sees their balance, what their key spent and the ids of models, and no price', async () => {
  const api = await startApi()
  const { gateway, ask, keyA, keyB } = api
  await paid(gateway)
  const { body, text } = await ask('GET', '/me', { token: keyA })
  const me = body as unknown as { account: Record<string, string>; key: Record<string, string>; models: string[] }
  const [entry] = gateway.store.listEntries({ limit: 1 })
  assert.ok(entry!.amountNanos > 0n)
  assert.equal(Number(me.account['balance']), 100 - Number(me.key['spent']))
  assert.deepEqual(me.models, ['native-messages', 'native-chat', 'native-responses'])
  assert.doesNotMatch(text, /price|wire|upstream|sim/)
  const other = (await ask('GET', '/me', { token: keyB })).body as unknown as typeof me
  assert.deepEqual([other.account['name'], other.account['balance'], other.key['spent']], ['b', '7', '0'])
  const words = { external_id: 'crm/17', metadata: { note: 'for the operator alone' } }
  const bounds = { budget: '5/day', rpm: '60', models: 'native-chat', label: 'bounded', ...words }
  const { body: made } = await ask('POST', '/accounts/b/keys', { body: bounds })
  const bounded = (await ask('GET', '/me', { token: `${made['key']}` })).body as unknown as {
    key: Record<string, never>
    models: string[]
  }
  const { budget, rpm, label, account_name } = bounded.key
  assert.deepEqual([rpm, label, account_name], [60, 'bounded', 'b'])
  assert.deepEqual(
    Object.keys(bounded.key).filter((field) => field in words),
    [],
  )
  const { renews_at: renews, ...rest } = budget as unknown as Record<string, unknown>
  assert.deepEqual(rest, { credits: '5', per: 'day', spent: '0', held: '0' })
  assert.equal(typeof renews, 'string')
  assert.deepEqual([bounded.key['models'], bounded.models], [['native-chat'], ['native-chat']])
  gateway.store.revokeKey(keyB)
  assert.equal(problemOf(await ask('GET', '/me', { token: keyB })), 'unauthenticated')
})

/** Operations whose record has the name of another one that does the same. */
const recordedAs: Record<string, string> = { 'account.delete': 'account.update', 'key.delete': 'key.revoke' }

test('operate §6 every operation that changes something leaves exactly one record, by whom and from where; others leave none', async () => {
  const api = await startApi()
  const { gateway, ask } = api
  const byAnn = () => gateway.store.listAudit({ limit: 999 }).filter(({ actor }) => actor === 'operator:ann')
  for (const one of allOperations) {
    const { path, ...options } = toAsked(one, await samples[one.id]!(api))
    const before = byAnn().length
    const identity = await identityFor(one, api)
    const told = await ask(one.method, path, {
      ...options,
      ...identity,
      headers: { ...options.headers, ...identity.headers },
    })
    assert.ok(told.status < 300, `${one.id}: ${told.text}`)
    const rows = byAnn()
    const made = rows.slice(0, rows.length - before)
    assert.deepEqual(
      made.map(({ operation, address }) => [operation, address]),
      one.role === 'admin' ? [[recordedAs[one.id] ?? one.id, '127.0.0.1']] : [],
      one.id,
    )
  }
  assert.deepEqual((await api.books.verifyAudit()).findings, [])
})

/** Asks an operation in a way that is refused. */
type Provoke = (api: Api, one: Operation, fields: Record<string, unknown>) => Promise<Told>
type Told = { status: number; headers: Headers; body: never; text: string }

const asked: (more?: Record<string, unknown>) => Provoke =
  (more = {}) =>
  async (api, one, fields) => {
    const { path, headers, ...options } = toAsked(one, fields)
    const identity = 'token' in more ? {} : await identityFor(one, api)
    return api.ask(one.method, path, {
      ...options,
      ...identity,
      ...more,
      headers: { ...headers, ...identity.headers, ...(more['headers'] as object) },
    }) as never
  }

/** With other fields than those of the sample. */
const withFields: (more: Record<string, unknown>) => Provoke = (more) => (api, one, fields) =>
  asked()(api, one, { ...fields, ...more })

const bodyOf = (one: Operation, fields: Record<string, unknown>) => toAsked(one, fields).body ?? {}

/** How each problem is come to at whatever operation declares it. */
const ways: Partial<Record<ProblemName, Provoke>> = {
  unauthenticated: (api, one, fields) =>
    one.id === 'session.create' ? withFields({ token: 'x' })(api, one, fields) : asked({ token: '' })(api, one, fields),
  forbidden: (api, one, fields) =>
    asked({ token: ['admin', 'own', 'lead'].includes(one.role) ? api.viewer : api.keyA })(api, one, fields),
  cross_site: async (api, one, fields) => {
    const { token = api.admin, headers: shown } = await identityFor(one, api)
    const { headers } = await api.ask('POST', '/session', { token: '', body: { token: token || api.keyA } })
    const cookie = shown?.['cookie'] ?? headers.get('set-cookie')!.split(';')[0]!
    return asked({ token: '', headers: { cookie, 'sec-fetch-site': 'cross-site' } })(api, one, fields)
  },
  invalid_request: withFields({ nonsense: '1' }),
  cursor_invalid: withFields({ cursor: 'x' }),
  unsupported_media_type: (api, one, fields) =>
    asked({ body: 'x', headers: { 'content-type': 'text/plain' } })(api, one, fields),
  payload_too_large: (api, one, fields) =>
    byHand(api, one, fields, ['Content-Type: application/json', 'Content-Length: 99999999']),
  misdirected: (api, one, fields) => byHand(api, one, fields, [], 'evil.example'),
  not_found: (api, one, fields) => {
    const names = pathFields(one)
    const gone = Object.fromEntries((names.length > 0 ? names : ['account']).map((name) => [name, 'none']))
    return withFields(gone)(api, one, fields)
  },
  precondition_required: (api, one, fields) => {
    const { path, body } = toAsked(one, fields)
    return api.ask(one.method, path, { body }) as never
  },
  precondition_failed: asked({ headers: { 'if-match': '"x"' } }),
  idempotency_mismatch: async (api, one, fields) => {
    const headers = { 'idempotency-key': `once-${one.id}` }
    await asked({ headers })(api, one, fields)
    const other =
      one.id === 'account.credit'
        ? { reference: 'other' }
        : one.id === 'key.rotate'
          ? { grace: '2h' }
          : { name: 'other' }
    const body = { ...bodyOf(one, fields), ...(one.id === 'key.create' ? { label: 'other' } : other) }
    return asked({ headers, body })(api, one, fields)
  },
}

/** All entries so far are away, and the one that is asked for is in the index. */
const away =
  (more: Record<string, unknown> = {}, headers: Record<string, string> = {}): Provoke =>
  async (api, one, fields) => {
    const db = new DatabaseSync(api.gateway.storePath, { timeout: 5_000 })
    db.exec(`INSERT INTO archives VALUES ('2026-01', 'UTC', 0, 9000000000000000, 'away', 'f', 'd', 1, 1, '', '', '');
      INSERT INTO archived SELECT 'req_gone', 'debit', '2026-01', id, 1, 1 FROM accounts WHERE name = 'tester'`)
    try {
      const all = { ...fields, ...('request' in fields && { request: 'req_gone' }), ...more }
      return await asked({ headers })(api, one, all)
    } finally {
      db.exec('DELETE FROM archives; DELETE FROM archived')
      db.close()
    }
  }

/** Where the way depends on the operation. */
const ownWays: Record<string, Provoke> = {
  'ledger.totals conflict': away(),
  'ledger.margin conflict': away(),
  'ledger.show conflict': away(),
  'ledger.list conflict': away({}, { accept: 'text/csv' }),
  'request.explain conflict': away(),
  'statement.show conflict': away(),
  'statement.own conflict': away({ month: '2000-01' }),
  'people.explain conflict': away(),
  'usage.table conflict': away({ month: '2000-01' }),
  'usage.show conflict': away({ bucket: 'quarter' }),
  'own.usage conflict': away({ bucket: 'quarter' }),
  'people.usage conflict': away({ bucket: 'quarter' }),
  'account.create conflict': withFields({ name: 'b' }),
  'account.update conflict': withFields({ name: 'tester' }),
  'account.credit conflict': withFields({ credits: '9223372036' }),
  'account.credit reference_conflict': async (api, one, fields) => {
    await asked()(api, one, fields)
    return withFields({ credits: '2' })(api, one, fields)
  },
  'key.update conflict': async (api, one, fields) => {
    const { id } = api.gateway.store.createKey('b')
    api.gateway.store.revokeKey(id)
    return withFields({ key: id, expires: '2099-01-01' })(api, one, fields)
  },
  'key.rotate conflict': async (api, one, fields) => {
    api.gateway.store.revokeKey(`${fields['key']}`)
    return asked()(api, one, fields)
  },
  'key.create conflict': async (api, one, fields) => {
    const { id } = await api.books.createPerson({ name: 'Gy', account: 'tester' })
    return withFields({ person: id })(api, one, fields)
  },
  'own.key.create conflict': async (api, one, fields) => {
    const { headers } = await identityFor(one, api)
    for (let n = 0; n < 20; n++) await asked({ token: '', headers })(api, one, fields)
    // The other operations are asked by a person who may have one more key.
    signedIn.delete(api)
    return asked({ token: '', headers })(api, one, fields)
  },
  'person.create not_found': withFields({ account: 'nowhere' }),
  'person.create conflict': takenPerson,
  'person.update conflict': takenPerson,
  'person.import not_found': withFields({ csv: 'name,account\nHy,nowhere\n' }),
  'person.import conflict': async (api, one, fields) => {
    const externalId = `u-${++count}`
    await api.books.createKey('b', { person: (await api.books.createPerson({ externalId })).id })
    return withFields({ csv: `external_id,account\n${externalId},tester\n` })(api, one, fields)
  },
  'person.link conflict': (api, one, fields) => withFields({ other: `${fields['person']}` })(api, one, fields),
  'usage.show range_too_large': withFields({ bucket: 'quarter', from: '2020-01-01', to: '2026-01-01' }),
  'own.usage range_too_large': withFields({ bucket: 'quarter', from: '2020-01-01', to: '2026-01-01' }),
  'statement.show not_found': withFields({ account: 'nobody' }),
  'demo.make conflict': async (api, one, fields) => {
    await paid(api.gateway)
    return asked()(api, one, fields)
  },
  'operator.create conflict': withFields({ name: 'ann' }),
  'people.usage range_too_large': withFields({ bucket: 'quarter', from: '2020-01-01', to: '2026-01-01' }),
}

async function takenPerson(api: Api, one: Operation, fields: Record<string, unknown>) {
  const externalId = `u-${++count}`
  await api.books.createPerson({ externalId })
  return withFields({ external_id: externalId })(api, one, fields)
}

/** As bytes, for what no client of ours would send. */
async function byHand(api: Api, one: Operation, fields: Record<string, unknown>, lines: string[], host?: string) {
  const { path, headers } = toAsked(one, fields)
  const { token = api.admin, headers: cookies } = await identityFor(one, api)
  const shown = token === '' ? [] : [`Authorization: Bearer ${token}`]
  const own = [`Host: ${host ?? new URL(api.gateway.adminUrl).host}`, ...shown, ...lines]
  const more = Object.entries({ ...headers, ...cookies }).map(([name, value]) => `${name}: ${value}`)
  const head = [`${one.method} /api/v1${path} HTTP/1.1`, ...own, ...more, '', ''].join('\r\n')
  const [answer] = (await raw(api.gateway.adminUrl, head, { answers: 1 })).answers
  const { status, body } = answer!
  return { status, headers: new Headers([...answer!.headers]), body: JSON.parse(body) as never, text: body }
}

/** These are of the listener as a whole, and have a test below. */
const ofAll: ProblemName[] = ['rate_limited', 'internal', 'store_unavailable']

test('issue 13: each problem that an operation declares can occur, and is reported as the document says', async () => {
  const api = await startApi()
  const untried: string[] = []
  for (const one of allOperations) {
    for (const problem of problemsOf(one)) {
      if (ofAll.includes(problem)) continue
      const provoke = ownWays[`${one.id} ${problem}`] ?? ways[problem]
      if (!provoke) {
        untried.push(`${one.id} ${problem}`)
        continue
      }
      api.gateway.advance(60_000)
      const told = await provoke(api, one, await samples[one.id]!(api))
      assert.equal(told.status < 300 ? 'done' : problemOf(told), problem, `${one.id}: ${told.text}`)
    }
  }
  assert.deepEqual(untried, [], 'an operation that declares another problem has a line in `ownWays`')
})

test('issue 48: while a month is detached, each reading operation answers as the document says, whatever is asked', async () => {
  const api = await startApi()
  const wishes = [{}, { bucket: 'quarter' }, { month: '2000-01' }, { from: '2000-01-01', to: '2000-02-01' }]
  const conflicts = new Set<string>()
  for (const one of allOperations.filter(({ method, id }) => method === 'GET' && id !== 'events'))
    for (const more of wishes.filter((wish) => Object.keys(wish).every((name) => name in one.input.shape)))
      for (const accept of ['application/json', ...(one.csv ? ['text/csv'] : [])]) {
        api.gateway.advance(60_000)
        // `ask` compares each answer with the document.
        const { status } = await away(more, { accept })(api, one, await samples[one.id]!(api))
        if (status === 409) conflicts.add(one.id)
      }
  const declared = allOperations.filter(({ id, problems }) => problems.includes('conflict') && conflicts.has(id))
  assert.deepEqual([...conflicts].toSorted(), declared.map(({ id }) => id).toSorted())
})

const minute = { windowMs: 60_000, clockMs: () => 0 }
const ann = { kind: 'operator', actor: 'operator:ann', name: 'ann', role: 'admin', expiresMs: 1, operatorId: 'o' }

test('issue 13: each operation declares a silent store, too many requests, and an internal error', async () => {
  let failure: Error | undefined
  const bugs: Error[] = []
  const api = createBareApi({
    books: async () => {
      if (failure) throw failure
      return { findPrincipal: async () => ann } as never
    },
    rates: createWindows({ limit: 0, ...minute }),
    reportBug: (bug) => bugs.push(bug),
  })
  const adminUrl = await startBareAdmin({ api })
  const fields = { account: 'a', request: 'r', key: 'k', operator: 'o', client: 'c', upstream: 'u', token: 't' }
  const ask = async (one: Operation, token: string) => {
    const path = one.path.replace(/\{(\w+)\}/g, (_, name: 'account') => fields[name] ?? 'x')
    const headers: Record<string, string> = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const body = one.id === 'session.create' ? JSON.stringify({ token: createToken().token }) : undefined
    const response = await fetch(`${adminUrl}/api/v1${path}`, {
      method: one.method,
      headers,
      ...(body !== undefined && { body }),
    })
    const text = await response.text()
    const told = { status: response.status, headers: response.headers, body: JSON.parse(text), text }
    checkAnswer(one.method, `/api/v1${path}`, {
      status: told.status,
      type: 'application/problem+json',
      body: told.body,
    })
    return problemOf(told)
  }
  for (const one of allOperations) {
    failure = new StoreSilent('')
    assert.equal(await ask(one, createToken().token), 'store_unavailable', one.id)
    failure = undefined
    // A known caller with too many requests gets that answer before any other; sign-ins are counted by address.
    if (one.role !== 'anyone') assert.equal(await ask(one, createToken().token), 'rate_limited', one.id)
  }
  failure = new Error('a bug')
  for (const one of allOperations) assert.equal(await ask(one, createToken().token), 'internal', one.id)
  assert.equal(bugs.length, allOperations.length)
})

test('a wrong name of a key that a person makes is reported by the field `name`', async () => {
  const api = await startApi()
  const identity = await signedInOf(api)
  for (const [name, detail] of [
    ['', /^must have 1 to 95 characters/],
    ['qwen ', /no blank at the end$/],
    [api.keyA, /^is not secret/],
  ] as const) {
    const { status, body } = await api.ask('POST', '/me/keys', { ...identity, body: { name } })
    const [mistake] = body['errors'] as unknown as { pointer: string; detail: string }[]
    assert.deepEqual([status, mistake!.pointer], [400, '/name'], name)
    assert.match(mistake!.detail, detail)
  }
})
