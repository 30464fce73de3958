import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { createKey } from '../../src/accounts/keys.ts'
import { createTokens } from '../../src/accounts/sign-in/tokens.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { hourMs, openTestSession, tokensOf } from '../support/sessions.ts'
import { until } from '../support/waiting.ts'

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({ config: { trusted_proxies: ['127.0.0.0/8'], own_pages: true } })
})
after(() => gateway.close())

const body = '{"model":"native-messages","max_tokens":5,"messages":[{"role":"user","content":"canary-session"}]}'

function ask(headers: Record<string, string>, path = '/v1/messages'): Promise<Response> {
  return fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
}

const bearer = (token: string, from = '203.0.113.1') => ({ authorization: `Bearer ${token}`, 'x-forwarded-for': from })

const ended = [
  401,
  'false',
  'Your session has ended: sign in again, with /login in Claude Code or triwire login elsewhere.',
]
const past = [
  401,
  'false',
  'The token has expired: triwire token prints a new one. If that fails, sign in again, with /login in Claude Code or triwire login elsewhere.',
]

async function refusalOf(answer: Response) {
  const { error } = (await answer.json()) as { error: { message: string } }
  return [answer.status, answer.headers.get('x-should-retry'), error.message]
}

test('Y20 a session pays as a key does: its requests are in the ledger, with its person and its key', async () => {
  const { access, session, books } = await openTestSession(gateway)
  const answer = await ask(bearer(access))
  assert.equal(answer.status, 200)
  await answer.text()
  const entries = () => books.listEntries({ accountId: session.accountId, limit: 1 })
  await until(async () => (await entries())[0]?.bill?.keyId === session.keyId, 'the debit is posted')
  const twins: Record<string, string>[] = [
    { 'x-api-key': access },
    { authorization: `Bearer ${access}`, 'x-api-key': access },
  ]
  for (const headers of twins) assert.equal((await ask(headers, '/v1/messages/count_tokens')).status, 200)
})

test('Y28 an ended or expired token gets an uncounted 401 with the cure, and a valid one passes a throttled address', async () => {
  const from = '203.0.113.2'
  const first = await openTestSession(gateway)
  const second = await openTestSession(gateway)
  const count = (token: string) => ask(bearer(token, from), '/v1/messages/count_tokens')
  assert.equal((await count(first.access)).status, 200)
  await first.books.endSession({ id: first.session.id }, 'ended')
  await until(async () => (await count(first.access)).status === 401, 'the server knows that it has ended')
  const expired = tokensOf(gateway).issue('A'.repeat(22), 0, gateway.nowMs() - 1_000).access
  const unknown = tokensOf(gateway).issue('A'.repeat(22), 0, gateway.nowMs() + hourMs).access
  for (let n = 0; n < 4; n++)
    for (const [token, refusal] of [
      [first.access, ended],
      [expired, past],
      [unknown, ended],
    ] as const)
      assert.deepEqual(await refusalOf(await count(token)), refusal)
  const forged = createTokens(Buffer.alloc(32)).issue('A'.repeat(22), 0, gateway.nowMs() + hourMs)
  const wrong = [forged.access, forged.refresh, first.refresh, second.refresh, createKey().key]
  for (let n = 0; n < 10; n++) assert.equal((await count(wrong[n % 5]!)).status, 401)
  for (const token of wrong)
    assert.equal((await count(token)).status, 429, 'a wrong check value is an ordinary failure')
  assert.equal((await count(second.access)).status, 200, 'memory need not know it')
  assert.deepEqual(await refusalOf(await count(first.access)), ended)
  assert.equal((await ask({ ...bearer(expired, from), 'x-api-key': createKey().key })).status, 429)
})

test('Y20 a session that ends on request, with its key, its account or its person is refused at once; others go on', async () => {
  const other = await openTestSession(gateway, { subject: 'other' })
  const ends: Record<string, (one: Awaited<ReturnType<typeof openTestSession>>) => Promise<unknown>> = {
    word: ({ books, session }) => books.endSession({ id: session.id }, 'signed_out'),
    key: ({ books, session }) => books.revokeKey(session.keyId),
    person: ({ books, session }) => books.erasePerson(session.personId),
    account: ({ books }) => books.updateAccount('second', { state: 'suspended' }),
  }
  gateway.store.createAccount('second', 10n ** 12n)
  for (const [name, end] of Object.entries(ends)) {
    const one = await openTestSession(gateway, { account: 'second', subject: name })
    const count = async ({ access }: typeof one) => (await ask(bearer(access), '/v1/messages/count_tokens')).status
    assert.equal(await count(one), 200)
    await end(one)
    await until(async () => (await count(one)) === 401, `ended with the ${name}`)
    assert.equal(await count(other), 200)
  }
})

test('Y28 a token of a session signs in no browser, and never counts as a wrong key', async () => {
  const one = await openTestSession(gateway)
  const signIn = (token: string) =>
    fetch(`${gateway.url}/console/api/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-forwarded-for': '203.0.113.10' },
      body: JSON.stringify({ token }),
    })
  const expired = tokensOf(gateway).issue('A'.repeat(22), 0, gateway.nowMs() - 1_000).access
  for (let n = 0; n < 10; n++)
    for (const token of [one.access, `${expired}\n`]) {
      const refused = await signIn(token)
      assert.equal(refused.status, 401)
      assert.match(refused.headers.get('www-authenticate')!, /^Bearer/)
      assert.match(await refused.text(), /token of a session/)
    }
  const guesses = await Promise.all(Array.from({ length: 11 }, () => signIn(createKey().key)))
  assert.ok(guesses.some(({ status }) => status === 429))
})

test('Y28 the API of owners accepts the token of a session, and reports its end without counting it', async () => {
  const one = await openTestSession(gateway)
  const me = (token: string) => fetch(`${gateway.url}/console/api/me`, { headers: bearer(token, '203.0.113.9') })
  const answer = await me(one.access)
  assert.equal(answer.status, 200)
  assert.match(await answer.text(), /tester/)
  await one.books.endSession({ id: one.session.id }, 'ended')
  const expired = tokensOf(gateway).issue('A'.repeat(22), 0, gateway.nowMs() - 1_000).access
  for (let n = 0; n < 20; n++)
    for (const token of [one.access, expired]) {
      const refused = await me(token)
      assert.equal(refused.status, 401)
      assert.match(await refused.text(), /session has ended/)
    }
})
