import assert from 'node:assert/strict'
import test from 'node:test'
import { createOperator } from '../../src/accounts/operator-rules.ts'
import { allOperations, pathFields } from '../../src/operations/openapi.ts'
import type { Operation } from '../../src/operations/operation.ts'
import { problemOf, startApi } from './api.ts'

type Api = Awaited<ReturnType<typeof startApi>>

/** What each operation can be asked, once: a new entry of the table has a line here. `of` makes what it is about. */
const samples: Record<string, (api: Api) => Record<string, unknown> | Promise<Record<string, unknown>>> = {
  'session.create': ({ viewer }) => ({ token: viewer }),
  'session.end': () => ({}),
  me: () => ({}),
  openapi: () => ({}),
  'account.create': () => ({ name: `made-${++count}`, credit: '1.5' }),
  'account.list': () => ({ q: 'test' }),
  'account.show': () => ({ account: 'tester' }),
  'account.update': () => ({ account: 'b', state: 'active' }),
  'account.credit': () => ({ account: 'b', credits: '1', reference: `ref-${++count}` }),
  'key.create': () => ({ account: 'b', label: 'laptop' }),
  'key.list': () => ({ account: 'b' }),
  'key.show': ({ gateway }) => ({ key: gateway.store.listKeys('b')[0]!.id }),
  'key.update': ({ gateway }) => ({ key: gateway.store.listKeys('b')[0]!.id, label: 'ci' }),
  'key.revoke': ({ gateway }) => ({ key: gateway.store.createKey('b').id }),
  'key.rotate': ({ gateway }) => ({ key: gateway.store.createKey('b').id, grace: '1h' }),
  'ledger.list': () => ({ account: 'tester' }),
  'ledger.show': async ({ gateway }) => ({ request: await paid(gateway) }),
  'model.list': () => ({}),
  'upstream.list': () => ({}),
  'request.explain': async ({ gateway }) => ({ request: await paid(gateway) }),
  'operator.create': () => ({ name: `op-${++count}`, role: 'viewer', expires: '1h' }),
  'operator.list': () => ({}),
  'operator.revoke': async ({ books }) => ({
    operator: (await books.createOperator(`gone-${++count}`, 'viewer', Date.now() + 1e9)).operator.id,
  }),
  'audit.list': () => ({ actor: 'triwire' }),
}
let count = 0

async function paid(gateway: Api['gateway']): Promise<string> {
  const answer = await gateway.post('/v1/chat/completions', {
    model: 'native-chat',
    messages: [{ role: 'user', content: 'hi' }],
  })
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

test('issue 13: every operation is asked by admin, viewer, owners, nobody and one who has expired, and each may what the table says', async () => {
  const api = await startApi()
  const { gateway, ask, viewer, keyA, keyB } = api
  const expired = gateway.store.change(createOperator('late', 'admin', gateway.nowMs(), gateway.nowMs())).token
  const rank = { anyone: 0, owner: 1, viewer: 2, admin: 3 } as const
  const askers = [
    { who: 'admin', token: undefined, may: 3 },
    { who: 'viewer', token: viewer, may: 2 },
    { who: 'owner A', token: keyA, may: 1 },
    { who: 'owner B', token: keyB, may: 1 },
    { who: 'nobody', token: '', may: 0 },
    { who: 'expired', token: expired, may: 0 },
  ] as const
  assert.deepEqual(
    allOperations.map(({ id }) => id).sort(),
    Object.keys(samples).sort(),
    'each operation of the table has a sample',
  )
  for (const one of allOperations) {
    for (const { who, token, may } of askers) {
      // Five wrong tokens in a minute are the most that are answered as such.
      if (who === 'expired') gateway.advance(60_000)
      const { path, ...options } = toAsked(one, await samples[one.id]!(api))
      const told = await ask(one.method, path, { ...options, token })
      const isAllowed = may >= rank[one.role]
      const wanted = isAllowed ? 'done' : may === 0 ? 'unauthenticated' : 'forbidden'
      assert.equal(told.status < 300 ? 'done' : problemOf(told), wanted, `${one.id} by ${who}: ${told.text}`)
    }
  }
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

test('X14 U5 an owner sees what is his: balance, what his key spent, the ids of models, and no price', async () => {
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
  gateway.store.revokeKey(keyB)
  assert.equal(problemOf(await ask('GET', '/me', { token: keyB })), 'unauthenticated')
})
