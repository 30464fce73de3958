import assert from 'node:assert/strict'
import test from 'node:test'
import { createProvider, type PersonIdentity } from '../../src/sign-in/provider.ts'
import { ProviderError, type ProviderProblem } from '../../src/sign-in/provider-client.ts'
import { type Hostility, signByHmac, standInSecret, startStandIn } from '../support/stand-in-issuer.ts'
import { until } from '../support/waiting.ts'

const redirectUri = 'http://127.0.0.1:9/console/callback'
let count = 0
const newAttempt = () => {
  const unique = `${++count}`.padStart(43, 'x')
  return { state: `s${unique}`, nonce: `n${unique}`, verifier: `v${unique}` }
}

async function start(hostility: Hostility = {}, groupsClaim: string | undefined = 'groups', renewalMs = 60_000) {
  const standIn = await startStandIn(hostility)
  let nowMs = 0
  const settings = {
    ...{ issuer: standIn.issuer, clientId: 'triwire', clientSecret: standInSecret, groupsClaim },
    routeTo: () => ({}),
  }
  const provider = createProvider(() => settings, { clockMs: () => nowMs, renewalMs })
  return { standIn, provider, settings, signIn, advance }

  function advance(ms: number): void {
    nowMs += ms
  }

  /** As a browser does that is signed in there. */
  async function signIn(attempt = newAttempt(), other: Partial<typeof attempt> = {}): Promise<PersonIdentity> {
    const answer = await visit(await provider.begin(attempt, redirectUri))
    return provider.finish({ ...attempt, ...other }, answer)
  }
}

async function visit(url: URL): Promise<URL> {
  const { headers } = await fetch(url, { redirect: 'manual' })
  return new URL(headers.get('location')!)
}

const problemOf = (error: unknown): ProviderProblem => {
  assert.ok(error instanceof ProviderError, `${error}`)
  assert.doesNotMatch(error.message, /canary|at-|eyJ/)
  return error.problem
}

const fails = (act: Promise<unknown>, problem: ProviderProblem, name?: string) =>
  assert.rejects(act, (error) => {
    assert.equal(problemOf(error), problem, `${name}: ${(error as Error).message}`)
    return true
  })

test('issue 47 a correct sign-in: identity by issuer and subject, verified address, groups, refresh token', async () => {
  const { standIn, signIn } = await start()
  const { idToken, refreshToken, ...identity } = await signIn()
  assert.deepEqual(identity, {
    ...{ issuer: standIn.issuer, subject: 'u-1', name: 'Dev One', email: 'dev@corp.test' },
    ...{ groups: ['developers'], groupsFrom: 'id_token' },
  })
  assert.match(refreshToken!, /^canary-rt-/)
  assert.match(idToken!, /^eyJ/)
  // Nothing was missing in the ID token.
  assert.ok(!standIn.asked.includes('GET /userinfo'))
})

test('RFC 9700 the address of a sign-in has PKCE by S256, state, nonce and the supported scopes', async () => {
  const { standIn, provider } = await start()
  const attempt = newAttempt()
  const { searchParams, pathname } = await provider.begin(attempt, redirectUri)
  const { code_challenge: challenge, ...asked } = Object.fromEntries(searchParams)
  assert.deepEqual(asked, {
    ...{ client_id: 'triwire', redirect_uri: redirectUri, response_type: 'code', response_mode: 'query' },
    ...{ scope: 'openid profile email groups offline_access', state: attempt.state, nonce: attempt.nonce },
    code_challenge_method: 'S256',
  })
  assert.match(challenge!, /^[\w-]{43}$/)
  assert.equal(pathname, '/authorize')
  standIn.hostility.metadata = (honest) => ({ ...honest, scopes_supported: ['openid', 'email', 'profile'] })
  const other = await start(standIn.hostility)
  const { scope, access_type, prompt } = Object.fromEntries(
    (await other.provider.begin(attempt, redirectUri)).searchParams,
  )
  assert.deepEqual([scope, access_type, prompt], ['openid profile email', 'offline', 'consent'])
})

const seconds = () => Math.floor(Date.now() / 1_000)

/** What a hostile or broken provider does, and how it is judged. */
const attacks: Readonly<Record<string, readonly [ProviderProblem, Hostility]>> = {
  'wrong iss in the ID token': ['invalid', { claims: (c) => ({ ...c, iss: 'http://127.0.0.1:1' }) }],
  'iss with a slash more': ['invalid', { claims: (c) => ({ ...c, iss: `${c['iss']}/` }) }],
  'no iss': ['invalid', { claims: ({ iss: _, ...c }) => c }],
  'wrong aud': ['invalid', { claims: (c) => ({ ...c, aud: 'other' }) }],
  'several aud without azp': ['invalid', { claims: (c) => ({ ...c, aud: ['triwire', 'other'] }) }],
  'several aud with another azp': ['invalid', { claims: (c) => ({ ...c, aud: ['triwire', 'other'], azp: 'other' }) }],
  'one aud with another azp': ['invalid', { claims: (c) => ({ ...c, azp: 'other' }) }],
  'wrong nonce': ['invalid', { claims: (c) => ({ ...c, nonce: 'other' }) }],
  'no nonce': ['invalid', { claims: ({ nonce: _, ...c }) => c }],
  'no sub': ['invalid', { claims: ({ sub: _, ...c }) => c }],
  'expired beyond the skew': ['invalid', { claims: (c) => ({ ...c, iat: seconds() - 400, exp: seconds() - 61 }) }],
  'no exp': ['invalid', { claims: ({ exp: _, ...c }) => c }],
  'issued later than the skew': ['invalid', { claims: (c) => ({ ...c, iat: seconds() + 70, exp: seconds() + 300 }) }],
  'not valid before a later time': ['invalid', { claims: (c) => ({ ...c, nbf: seconds() + 70 }) }],
  'alg none': ['invalid', { header: (h) => ({ ...h, alg: 'none' }), signature: () => '' }],
  'alg None': ['invalid', { header: (h) => ({ ...h, alg: 'None' }), signature: () => '' }],
  'HS256 by the secret': ['invalid', { header: (h) => ({ ...h, alg: 'HS256' }), signature: signByHmac(standInSecret) }],
  'an algorithm that is not on the list': ['invalid', { header: (h) => ({ ...h, alg: 'ES384' }) }],
  'a signature of nobody': ['invalid', { signature: () => 'A'.repeat(86) }],
  'no signature': ['invalid', { signature: () => '' }],
  'a critical header': ['invalid', { header: (h) => ({ ...h, crit: ['x'], x: 1 }) }],
  'an unknown key': ['invalid', { header: (h) => ({ ...h, kid: 'other' }) }],
  'no ID token': ['invalid', { token: ({ id_token: _, ...t }) => t }],
  'a changed ID token': ['invalid', { token: (t) => ({ ...t, id_token: `${t['id_token']}x` }) }],
  'wrong iss in the answer': ['invalid', { redirect: (r) => ({ ...r, iss: 'http://127.0.0.1:1' }) }],
  'no iss in the answer': ['invalid', { redirect: ({ iss: _, ...r }) => r as Record<string, string> }],
  'wrong state': ['invalid', { redirect: (r) => ({ ...r, state: 'other' }) }],
  'no state': ['invalid', { redirect: ({ state: _, ...r }) => r as Record<string, string> }],
  'another code': ['refused', { redirect: (r) => ({ ...r, code: 'other' }) }],
  'no code': ['invalid', { redirect: ({ code: _, ...r }) => r as Record<string, string> }],
  'the person says no': [
    'declined',
    { redirect: ({ state, iss }) => ({ error: 'access_denied', state: state!, iss: iss! }) },
  ],
  'an error with the wrong state': [
    'invalid',
    { redirect: ({ iss }) => ({ error: 'access_denied', state: 'x', iss: iss! }) },
  ],
  'our secret is wrong': ['unreachable', { refuse: () => [401, { error: 'invalid_client' }] }],
  'it is overloaded': ['unreachable', { refuse: () => [503, { error: 'temporarily_unavailable' }] }],
  'userinfo of another person': [
    'invalid',
    { claims: ({ email: _, ...c }) => c, userinfo: (u) => ({ ...u, sub: 'u-2', email: 'boss@corp.test' }) },
  ],
}

for (const [name, [problem, hostility]] of Object.entries(attacks))
  test(`issue 47 attack: ${name}`, async () => {
    const { signIn } = await start(hostility)
    await fails(signIn(), problem, name)
  })

test('issue 47 attack: the answer of one attempt is used for another: state, code, verifier, nonce swapped', async () => {
  const { provider, signIn } = await start()
  const [mine, theirs] = [newAttempt(), newAttempt()]
  const answer = await visit(await provider.begin(theirs, redirectUri))
  await fails(provider.finish(mine, answer), 'invalid')
  const code = new URL(answer)
  code.searchParams.set('state', mine.state)
  // Another person's code with one's own state: PKCE does not fit.
  await fails(provider.finish(mine, code), 'refused')
  // Once used, even in vain, a code is good for nothing more.
  await fails(provider.finish(theirs, answer), 'refused')
  await fails(signIn(newAttempt(), { nonce: 'other' }), 'invalid')
  await fails(signIn(newAttempt(), { verifier: 'o'.repeat(43) }), 'refused')
})

test('issue 47 attack: a callback that is sent again', async () => {
  const { provider } = await start()
  const attempt = newAttempt()
  const answer = await visit(await provider.begin(attempt, redirectUri))
  await provider.finish(attempt, answer)
  await fails(provider.finish(attempt, answer), 'refused')
})

test('issue 47 attack: metadata of another issuer, of all tenants, or without an algorithm that we accept', async () => {
  const cases: Hostility['metadata'][] = [
    (m) => ({ ...m, issuer: 'http://127.0.0.1:1' }),
    (m) => ({ ...m, issuer: `${m['issuer']}/{tenantid}/v2.0` }),
    (m) => ({ ...m, id_token_signing_alg_values_supported: ['HS256', 'none'] }),
    (m) => ({ ...m, token_endpoint: 'http://idp.example/token' }),
    (m) => ({ ...m, token_endpoint: 'https://169.254.169.254/token' }),
    (m) => ({ ...m, token_endpoint: 'https://[fe80::1]/token' }),
  ]
  for (const metadata of cases) {
    const { signIn } = await start({ metadata: metadata! })
    await fails(signIn(), 'invalid', `${metadata}`)
  }
})

test('issue 47 clocks may differ by 60 s', async () => {
  const late = await start({ claims: (c) => ({ ...c, iat: seconds() - 350, exp: seconds() - 50 }) })
  assert.equal((await late.signIn()).subject, 'u-1')
  const early = await start({
    claims: (c) => ({ ...c, iat: seconds() + 50, exp: seconds() + 300, nbf: seconds() + 50 }),
  })
  assert.equal((await early.signIn()).subject, 'u-1')
})

test('issue 47 rotated keys: a new one is fetched, and an old one is valid while it is published', async () => {
  const { standIn, signIn, advance } = await start()
  await signIn()
  standIn.rotate()
  // Keys and metadata are read again at most twice a minute, whatever tokens name.
  await fails(signIn(), 'invalid')
  advance(30_000)
  await fails(signIn(), 'invalid')
  assert.equal((await signIn()).subject, 'u-1')
  standIn.rotate(true)
  assert.equal(standIn.asked.filter((one) => one === 'GET /jwks').length, 2)
})

test('issue 47 if the provider is down at the start nobody can sign in; later its old metadata is used until it returns', async () => {
  let isDown = true
  const { signIn, advance, standIn, provider } = await start({ isDown: () => isDown })
  await fails(signIn(), 'unreachable')
  isDown = false
  // Anybody may open the page: for two seconds nothing more is asked.
  await fails(signIn(), 'unreachable')
  assert.equal(standIn.asked.length, 0)
  advance(2_000)
  await Promise.all([signIn(), signIn(), signIn()])
  isDown = true
  advance(7_200_000)
  const attempt = newAttempt()
  assert.match((await provider.begin(attempt, redirectUri)).href, /\/authorize\?/)
  const answer = new URL(`${redirectUri}?code=x&state=${attempt.state}&iss=${standIn.issuer}`)
  await fails(provider.finish(attempt, answer), 'unreachable')
  isDown = false
  assert.equal((await signIn()).subject, 'u-1')
  assert.equal(standIn.asked.filter((one) => one.includes('well-known')).length, 1)
  advance(2_000)
  await signIn()
  await until(() => standIn.asked.filter((one) => one.includes('well-known')).length === 2, 'new metadata is read')
})

test('X10 a reload during sign-ins disturbs none of them, and the metadata is read once', async () => {
  const { standIn, settings } = await start()
  let groupsClaim: string | undefined = 'groups'
  // After each reload, the settings are another object.
  const provider = createProvider(() => ({ ...settings, groupsClaim }), { clockMs: () => 0 })
  const [first, second] = [newAttempt(), newAttempt()]
  const urls = await Promise.all([first, second].map((one) => provider.begin(one, redirectUri)))
  assert.deepEqual((await provider.finish(first, await visit(urls[0]!))).groups, ['developers'])
  groupsClaim = undefined
  assert.deepEqual((await provider.finish(second, await visit(urls[1]!))).groups, [])
  assert.equal(standIn.asked.filter((one) => one.includes('well-known')).length, 1)
})

/** What a provider sends of groups, where it is read, and what comes of it. */
const groupCases: readonly (readonly [
  string,
  string,
  Hostility,
  PersonIdentity['groups'],
  PersonIdentity['groupsFrom'],
])[] = [
  ['a list', 'groups', {}, ['developers'], 'id_token'],
  ['a text', 'groups', { claims: (c) => ({ ...c, groups: 'one' }) }, ['one'], 'id_token'],
  ['no texts in it', 'groups', { claims: (c) => ({ ...c, groups: [1, 'a', null, { b: 1 }] }) }, ['a'], 'id_token'],
  ['an empty list', 'groups', { claims: (c) => ({ ...c, groups: [] }) }, [], 'id_token'],
  ['a name with a colon', 'cognito:groups', { claims: (c) => ({ ...c, 'cognito:groups': ['x'] }) }, ['x'], 'id_token'],
  ['a path', 'realm_access.roles', { claims: (c) => ({ ...c, realm_access: { roles: ['r'] } }) }, ['r'], 'id_token'],
  ['a name with dots', 'https://x.test/g', { claims: (c) => ({ ...c, 'https://x.test/g': ['y'] }) }, ['y'], 'id_token'],
  ['of userinfo alone', 'groups', { claims: ({ groups: _, ...c }) => c }, ['developers'], 'userinfo'],
  [
    'a link (Entra)',
    'groups',
    { claims: ({ groups: _, ...c }) => ({ ...c, _claim_names: { groups: 'src1' } }) },
    'too_many',
    'id_token',
  ],
  [
    'a mark (Entra)',
    'groups',
    { claims: ({ groups: _, ...c }) => ({ ...c, hasgroups: true }) },
    'too_many',
    'id_token',
  ],
  ['none at all (Google)', 'roles', {}, [], undefined],
  ['members of every object are none', '__proto__.x', {}, [], undefined],
]

for (const [name, claim, hostility, groups, from] of groupCases)
  test(`issue 47 groups: ${name}`, async () => {
    const identity = await (await start(hostility, claim)).signIn()
    assert.deepEqual([identity.groups, identity.groupsFrom], [groups, from])
  })

const emailCases: readonly (readonly [Record<string, unknown>, string | undefined])[] = [
  [{ email: 'A@B.test' }, 'a@b.test'],
  [{ email: 'a@b.test', email_verified: true }, 'a@b.test'],
  [{ email: 'a@b.test', email_verified: false }, undefined],
  [{ email: 'a@b.test', email_verified: 'false' }, undefined],
  [{ email: 'not an address' }, undefined],
  [{ email: `${'a'.repeat(250)}@b.test` }, undefined],
  [{ email: ['a@b.test'] }, undefined],
]

test('issue 47 an e-mail address counts unless it is marked as unverified', async () => {
  for (const [claims, email] of emailCases) {
    const { signIn } = await start({ claims: ({ email_verified: _, ...c }) => ({ ...c, ...claims }) })
    assert.equal((await signIn()).email, email, JSON.stringify(claims))
  }
})

/** What the provider does after a sign-in, and what a refresh makes of it. */
const renewals: Readonly<Record<string, readonly ['yes' | 'no' | 'silent', Hostility, PersonIdentity['groups']?]>> = {
  'all as before': ['yes', {}, ['developers']],
  'a group was taken away': ['yes', { claims: (c) => ({ ...c, groups: [] }) }, []],
  'an ID token without groups, and none in userinfo': [
    'yes',
    { claims: ({ groups: _, ...c }) => c, userinfo: ({ groups: _, ...u }) => u },
    [],
  ],
  'no ID token, groups in userinfo': ['yes', { token: ({ id_token: _, ...t }) => t }, ['developers']],
  'nothing of groups anywhere': [
    'silent',
    { token: ({ id_token: _, ...t }) => t, userinfo: ({ groups: _, ...u }) => u },
  ],
  'the person is blocked': ['no', { refuse: () => [400, { error: 'invalid_grant' }] }],
  'an ID token of another person': ['no', { claims: (c) => ({ ...c, sub: 'u-2' }) }],
  'userinfo of another person': [
    'silent',
    { token: ({ id_token: _, ...t }) => t, userinfo: (u) => ({ ...u, sub: 'u-2' }) },
  ],
  'our secret has ended': ['silent', { refuse: () => [401, { error: 'invalid_client' }] }],
  'an error of the server': ['silent', { refuse: () => [500, {}] }],
  'a signature of nobody': ['silent', { signature: () => 'A'.repeat(86) }],
  'another issuer': ['silent', { claims: (c) => ({ ...c, iss: 'http://127.0.0.1:1' }) }],
  'no connection': ['silent', { isDown: () => true }],
}

for (const [name, [kind, later, groups]] of Object.entries(renewals))
  test(`issue 47 a refresh asks the provider: ${name}`, async () => {
    const { provider, signIn, standIn } = await start()
    const { subject, groupsFrom, refreshToken } = await signIn()
    Object.assign(standIn.hostility, later)
    const told = await provider.renew({ subject, groupsFrom, refreshToken: refreshToken! })
    assert.equal(told.kind, kind, JSON.stringify(told))
    if (told.kind !== 'yes') return assert.doesNotMatch(told.why, /canary|at-|eyJ/)
    assert.deepEqual(told.identity.groups, groups)
    // It is rotated, and the old one is good for nothing.
    assert.notEqual(told.identity.refreshToken, refreshToken)
    assert.equal((await provider.renew({ subject, groupsFrom, refreshToken: refreshToken! })).kind, 'no')
  })

test('issue 47 a provider that does not answer within the limit counts as unreachable, and its late answer is not lost', async () => {
  const held = Promise.withResolvers<void>()
  const { provider, signIn, standIn } = await start({}, 'groups', 1)
  const { subject, groupsFrom, refreshToken } = await signIn()
  standIn.hostility.hold = () => held.promise
  const told = await provider.renew({ subject, groupsFrom, refreshToken: refreshToken! })
  assert.equal(told.kind, 'silent')
  held.resolve()
  const late = await (told as { late: Promise<{ kind: string }> }).late
  assert.equal(late.kind, 'yes')
})
