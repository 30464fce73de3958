import assert from 'node:assert/strict'
import test from 'node:test'
import type { Books } from '../../src/accounts/books.ts'
import type { SignInRow } from '../../src/accounts/sign-in/rows.ts'
import type { SignInSettings } from '../../src/config/config.ts'
import { createAskAgain } from '../../src/sign-in/signed-in.ts'
import { createTickets } from '../../src/sign-in/tickets.ts'
import { TestBrowser } from '../support/browser.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { type ProviderPerson, providerSecret, startIdentityProvider } from '../support/identity-provider.ts'
import { freePort } from '../support/listen.ts'
import { type Hostility, standInSecret, startStandIn } from '../support/stand-in-issuer.ts'
import { until } from '../support/waiting.ts'

/* A program signs in, and its session goes on by the provider's word: over HTTP, from the code to the end. */

const rules = [{ groups: ['developers'], account: 'tester', models: 'native-chat' }]
const minuteMs = 60_000

type Tokens = { access_token: string; refresh_token: string; error?: string }

/** A program and a browser of its person. */
function program({ url }: TestGateway) {
  return { signIn, refresh, ask }

  async function post(path: string, form: Record<string, string>): Promise<[number, Tokens]> {
    const answer = await fetch(url + path, { method: 'POST', body: new URLSearchParams(form) })
    return [answer.status, (await answer.json()) as Tokens]
  }

  async function signIn(): Promise<Tokens> {
    const [, begun] = await post('/oauth/device_authorization', { surface: 'claude_code' })
    const { device_code: code, verification_uri_complete: page } = begun as unknown as Record<string, string>
    const browser = new TestBrowser()
    const asked = await browser.follow(await browser.go(page!), 'Continue')
    assert.match((await browser.press(asked, 'approve')).text, /You are signed in/)
    const [status, tokens] = await post('/oauth/token', {
      grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
      device_code: code!,
    })
    assert.equal(status, 200, JSON.stringify(tokens))
    return tokens
  }

  async function refresh({ refresh_token }: Tokens): Promise<Tokens> {
    const [, told] = await post('/oauth/token', { grant_type: 'refresh_token', refresh_token })
    return told
  }

  /** @returns the status of a request to a model */
  async function ask({ access_token: token }: Tokens, model = 'native-chat'): Promise<number> {
    const answer = await fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model, messages: [{ role: 'user', content: 'hi' }] }),
    })
    await answer.text()
    return answer.status
  }
}

test('issue 47 with a real provider: from a code to an answer; a removed group is refused at the next refresh', async () => {
  const port = await freePort()
  const dev: ProviderPerson = { sub: 'u-1', email: 'dev@corp.test', name: 'Dev One', groups: ['developers'] }
  const idp = await startIdentityProvider([`http://127.0.0.1:${port}/console/callback`], dev)
  const sign_in = { issuer: idp.issuer, client_id: 'triwire', client_secret: providerSecret, rules }
  const gateway = await startTestGateway({ config: { listen: `127.0.0.1:${port}`, sign_in } })
  const { signIn, refresh, ask } = program(gateway)
  const first = await signIn()
  assert.deepEqual([await ask(first), await ask(first, 'native-messages')], [200, 404])
  gateway.advance(minuteMs)
  const second = await refresh(first)
  assert.equal(await ask(second), 200)
  idp.set('u-1', { ...dev, groups: ['sales'] })
  // The token that is out is good until it ends.
  assert.equal(await ask(second), 200)
  gateway.advance(minuteMs)
  assert.equal((await refresh(second)).error, 'invalid_grant')
  await until(async () => (await ask(second)) === 401, 'the token of an ended session is refused')
  idp.set('u-1', dev)
  const again = await signIn()
  idp.set('u-1', undefined)
  gateway.advance(minuteMs)
  assert.equal((await refresh(again)).error, 'invalid_grant')
})

async function startStory(hostility: Hostility = {}, more: Record<string, unknown> = {}) {
  const standIn = await startStandIn(hostility)
  const sign_in = { issuer: standIn.issuer, client_id: 'triwire', client_secret: standInSecret, rules, ...more }
  const gateway = await startTestGateway({ config: { sign_in } })
  const asked = () => standIn.asked.filter((one) => one === 'POST /token').length
  return { standIn, gateway, asked, ...program(gateway) }
}

test('issue 47 if the provider is down for ten minutes, no session is affected; beyond `offline`, each waits for it', async () => {
  const { standIn, gateway, signIn, refresh, ask } = await startStory({}, { offline: '30m' })
  let tokens = await signIn()
  standIn.hostility.isDown = () => true
  for (let minutes = 0; minutes < 10; minutes += 2) {
    gateway.advance(2 * minuteMs)
    tokens = await refresh(tokens)
    assert.equal(await ask(tokens), 200)
  }
  gateway.advance(21 * minuteMs)
  assert.equal((await refresh(tokens)).error, 'temporarily_unavailable')
  standIn.hostility.isDown = () => false
  tokens = await refresh(tokens)
  assert.equal(await ask(tokens), 200)
})

test('issue 47 eight programs refresh at once: the provider is asked once, and its tokens rotate from then on', async () => {
  const { gateway, asked, signIn, refresh } = await startStory()
  const tokens = await signIn()
  gateway.advance(minuteMs)
  const before = asked()
  const told = await Promise.all(Array.from({ length: 8 }, () => refresh(tokens)))
  assert.equal(asked() - before, 1)
  assert.equal(new Set(told.map(({ refresh_token }) => refresh_token)).size, 1)
  let last = told[0]!
  for (let count = 0; count < 3; count++) {
    gateway.advance(2 * minuteMs)
    last = await refresh(last)
    assert.equal(last.error, undefined)
  }
  assert.equal(asked() - before, 4)
})

test('issue 47 the provider’s answers to a refresh are applied: blocked, another person, another rule, our own secret', async () => {
  const cases: readonly (readonly [string, Hostility, string | undefined])[] = [
    ['the person is blocked', { refuse: () => [400, { error: 'invalid_grant' }] }, 'invalid_grant'],
    ['it is another person', { claims: (c) => ({ ...c, sub: 'u-2' }) }, 'invalid_grant'],
    ['no rule fits any more', { claims: (c) => ({ ...c, groups: [] }) }, 'invalid_grant'],
    ['our secret has ended', { refuse: () => [401, { error: 'invalid_client' }] }, undefined],
    ['it signs with a key of nobody', { signature: () => 'A'.repeat(86) }, undefined],
  ]
  for (const [name, later, error] of cases) {
    const { standIn, gateway, signIn, refresh } = await startStory()
    const tokens = await signIn()
    Object.assign(standIn.hostility, later)
    gateway.advance(minuteMs)
    assert.equal((await refresh(tokens)).error, error, name)
  }
})

test('X10 a reload leaves sessions and the known metadata alone, also one that removes sign_in', async () => {
  const { standIn, gateway, signIn, refresh, ask } = await startStory()
  let tokens = await signIn()
  const reloads = [{ limits: { requests_per_minute: 900 } }, { sign_in: undefined }, {}]
  for (const more of reloads) {
    gateway.reload(more)
    gateway.advance(minuteMs)
    tokens = await refresh(tokens)
    assert.equal(await ask(tokens), 200, JSON.stringify(more))
  }
  assert.equal(standIn.asked.filter((one) => one.includes('well-known')).length, 1)
})

test('Y20 while its account is suspended, a session gets no new tokens, and it goes on when the account is active again', async () => {
  const { gateway, signIn, refresh, ask } = await startStory()
  const tokens = await signIn()
  gateway.store.updateAccount('tester', { state: 'suspended' })
  gateway.advance(minuteMs)
  // A program forgets its tokens after `invalid_grant`.
  assert.equal((await refresh(tokens)).error, 'temporarily_unavailable')
  gateway.store.updateAccount('tester', { state: 'active' })
  const next = await refresh(tokens)
  assert.equal(next.error, undefined)
  await until(async () => (await ask(next)) === 200, 'the session of an active account is served')
})

test('issue 47 without a refresh token of the provider, a session lasts for `offline`; then the person signs in again', async () => {
  const { gateway, signIn, refresh } = await startStory({ token: ({ refresh_token: _, ...t }) => t }, { offline: '1h' })
  const first = await signIn()
  gateway.advance(30 * minuteMs)
  const second = await refresh(first)
  assert.equal(second.error, undefined)
  gateway.advance(31 * minuteMs)
  assert.equal((await refresh(second)).error, 'invalid_grant')
})

test('Y20 without a provider token no provider is asked: the session lasts for `offline`, and its end says nothing of the person', async () => {
  const sealKey = Buffer.alloc(32, 7)
  const settings = { offlineMs: 1_000 } as SignInSettings
  let nowMs = 5_999
  const provider = { renew: () => assert.fail('nobody is asked') }
  const ask = createAskAgain(
    () => settings,
    provider,
    createTickets(sealKey, () => nowMs),
    () => nowMs,
  )
  const word = async () => {
    const { why: _, ...told } = (await ask({ id: 'ses_1', askedMs: 5_000 } as SignInRow, {} as Books)) as {
      why: string
    }
    return told
  }
  assert.deepEqual(await word(), { kind: 'silent' })
  nowMs = 6_000
  assert.deepEqual(await word(), { kind: 'no', isUnasked: true })
})

test('a session that refreshes without a pause asks the provider once a second, and other sessions do not wait', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let nowMs = 60_000
  const tickets = createTickets(Buffer.alloc(32, 7), () => nowMs)
  const asked: string[] = []
  const renew = async ({ subject }: { subject: string }) => {
    asked.push(subject)
    return { kind: 'silent', why: 'it is down' } as const
  }
  const settings = () => ({ offlineMs: 1_000 }) as SignInSettings
  const ask = createAskAgain(settings, { renew }, tickets, () => nowMs)
  const refresh = (subject: string, refreshedMs: number) => {
    const sealed = tickets.seal('provider', { subject, groupsFrom: undefined, refreshToken: 'r' })
    return ask({ id: subject, sealed, askedMs: 0, refreshedMs } as SignInRow, {} as Books)
  }
  const early = refresh('busy', 59_700)
  await refresh('other', 59_000)
  await refresh('ahead', 62_000)
  assert.deepEqual(asked, ['other', 'ahead'])
  t.mock.timers.tick(699)
  await refresh('third', 1)
  assert.deepEqual(asked, ['other', 'ahead', 'third'])
  nowMs += 700
  t.mock.timers.tick(1)
  await early
  assert.deepEqual(asked, ['other', 'ahead', 'third', 'busy'])
})
