import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import { startTestGateway } from '../support/gateway.ts'
import { startSignIn, TestBrowser } from './start.ts'

const verifier = 'v'.repeat(50)
const challenge = createHash('sha256').update(verifier).digest('base64url')
const redirectUri = 'http://127.0.0.1:4711/callback'
const isProgram = (url: URL) => url.port === '4711'

test('RFC 8628 a code: the page shows it and the program; the person signs in, sees who they are, and approves', async () => {
  const { ask, page, poll, books, standIn } = await startSignIn()
  const grant = await ask()
  const { userCode } = grant
  assert.equal(await poll(grant), 'authorization_pending')
  const browser = new TestBrowser()
  const typed = await browser.go(page(`device?user_code=${userCode.toLowerCase().replace('-', ' ')}`))
  assert.equal(typed.status, 200)
  for (const words of [
    userCode,
    'Only continue if it matches your device',
    'Claude Code',
    '10.1.2.3',
    'seconds ago',
    '>Continue<',
    '>Deny<',
  ])
    assert.ok(typed.text.includes(words), words)
  // Nothing has begun yet.
  assert.deepEqual([browser.cookies(page('')).size, standIn.asked], [0, []])
  const asked = await browser.follow(typed, 'Continue')
  for (const words of [userCode, 'Dev One (dev@corp.test)', 'tester', 'Claude Code', '10.1.2.3', '>Approve<', '>Deny<'])
    assert.ok(asked.text.includes(words), words)
  assert.equal(await poll(grant), 'authorization_pending')
  const approved = await browser.press(asked, 'approve')
  assert.deepEqual([approved.status, /You are signed in/.test(approved.text)], [200, true])
  assert.equal(await poll(grant), 'issued')
  const [session] = await books.pageSessions({ limit: 9 })
  assert.deepEqual(
    [session?.personName, session?.accountName, session?.role, session?.agent],
    ['Dev One', 'tester', 'member', 'claude_code'],
  )
  const [, approval] = await books.listAudit({ limit: 2 })
  assert.deepEqual(
    [approval?.operation, approval?.actor, approval?.address],
    ['session.approve', 'sign_in', '127.0.0.1'],
  )
})

test('RFC 8252 a program of the same machine: one page, and the code goes to loopback with state and iss', async () => {
  const { authorize, redeem, gateway } = await startSignIn()
  for (const uri of [redirectUri, 'http://[::1]:4711/callback']) {
    const browser = new TestBrowser()
    const asked = await browser.go(authorize({ redirect_uri: uri, code_challenge: challenge }))
    for (const words of [
      'Dev One',
      'triwire login',
      '127.0.0.1',
      '>Approve<',
      'Only continue if you began this yourself',
    ])
      assert.ok(asked.text.includes(words), words)
    // There is no code to compare.
    assert.doesNotMatch(asked.text, /matches your device|link with a code/)
    assert.match(
      asked.headers.get('content-security-policy')!,
      uri.includes('[') ? /form-action 'self' http:$/ : /'self' http:\/\/127\.0\.0\.1:4711$/,
    )
    const { next, status } = await browser.press(asked, 'approve', { until: isProgram })
    assert.equal(status, 303)
    const { code, ...rest } = Object.fromEntries(next!.searchParams)
    assert.deepEqual([next!.href.split('?')[0], rest], [uri, { state: 'st-1', iss: gateway.url }])
    assert.equal(await redeem(code!, verifier, uri), 'issued')
    assert.equal(await redeem(code!, verifier, uri), 'invalid_grant')
  }
})

test('issue 47 a page of a sign-in says so if another one was begun in the same browser since', async () => {
  const { ask, poll, toApproval } = await startSignIn()
  const browser = new TestBrowser()
  const [first, second] = [await ask(), await ask()]
  const early = await toApproval(browser, first.userCode)
  const late = await toApproval(browser, second.userCode)
  assert.match((await browser.press(early, 'approve')).text, /another sign-in was begun in this browser since/)
  assert.match((await browser.press(late, 'approve')).text, /You are signed in/)
  assert.deepEqual([await poll(first), await poll(second)], ['authorization_pending', 'issued'])
})

test('RFC 8628 3.3 Deny reaches the program, before and after signing in', async () => {
  const { ask, page, poll, toApproval, authorize } = await startSignIn()
  const browser = new TestBrowser()
  const [first, second] = [await ask(), await ask()]
  const early = await browser.press(await browser.go(page(`device?user_code=${first.userCode}`)), 'deny')
  assert.match(early.text, /Nothing was signed in/)
  await browser.press(await toApproval(browser, second.userCode), 'deny')
  for (const grant of [first, second]) assert.equal(await poll(grant), 'access_denied')
  const asked = await browser.go(authorize({ redirect_uri: redirectUri, code_challenge: challenge }))
  const { next } = await browser.press(asked, 'deny', { until: isProgram })
  assert.deepEqual([next!.searchParams.get('error'), next!.searchParams.get('code')], ['access_denied', null])
})

test('issue 47 a person without a rule, without an account, or with an unknown account gets a page with the reason and a contact', async () => {
  const { ask, toApproval, poll, standIn } = await startSignIn()
  const cases: readonly (readonly [string[], number, RegExp])[] = [
    [
      ['sales'],
      403,
      /You signed in as Dev One.*these groups: sales, and the address dev@corp\.test.*to the operator of this gateway/s,
    ],
    [['admins'], 403, /role \(admin\) opens the operators&#39; console/],
  ]
  for (const [groups, status, words] of cases) {
    standIn.person['groups'] = groups
    const grant = await ask()
    const { userCode } = grant
    const told = await toApproval(new TestBrowser(), userCode)
    assert.deepEqual([told.status, words.test(told.text)], [status, true], told.text)
    assert.equal(await poll(grant), 'authorization_pending')
  }
  standIn.person['groups'] = ['lost']
  const grant = await ask()
  const { userCode } = grant
  const browser = new TestBrowser()
  const told = await browser.press(await toApproval(browser, userCode), 'approve')
  assert.deepEqual([told.status, /nobody/.test(told.text), await poll(grant)], [404, true, 'authorization_pending'])
})

test('issue 47 a refused person gets a link back to the program on this machine that waits', async () => {
  const { authorize, standIn, books } = await startSignIn()
  const ask = async () => new TestBrowser().go(authorize({ redirect_uri: redirectUri, code_challenge: challenge }))
  standIn.person['groups'] = ['sales']
  const refused = await ask()
  standIn.person['groups'] = ['developers']
  standIn.hostility.redirect = ({ state, iss }) => ({ error: 'access_denied', state: state!, iss: iss! })
  const declined = await ask()
  for (const told of [refused, declined]) {
    assert.equal(told.status, 403)
    const [, link] = /<a href="(http:[^"]*4711[^"]*)">Go back to your program</.exec(told.text)!
    const { searchParams } = new URL(link!.replaceAll('&#38;', '&'))
    assert.deepEqual([searchParams.get('error'), searchParams.get('state')], ['access_denied', 'st-1'])
  }
  assert.equal((await books.pageSessions({ limit: 1 })).length, 0)
})

test('issue 47 a group that was removed between the page and the click no longer counts', async () => {
  const { ask, toApproval, poll, gateway, standIn } = await startSignIn()
  const grant = await ask()
  const { userCode } = grant
  const browser = new TestBrowser()
  const asked = await toApproval(browser, userCode)
  gateway.reload({
    sign_in: {
      issuer: standIn.issuer,
      client_id: 'triwire',
      client_secret: 'a-client-secret-of-ours',
      rules: [{ groups: ['other'], account: 'tester' }],
    },
  })
  const told = await browser.press(asked, 'approve')
  assert.deepEqual([told.status, await poll(grant)], [403, 'authorization_pending'])
})

test('issue 47 a provider that refuses leaves the code pending, one that sends invalid data denies it, and an outage leaves it pending', async () => {
  const cases = [
    [
      'declined',
      403,
      'authorization_pending',
      { redirect: ({ state, iss }) => ({ error: 'access_denied', state: state!, iss: iss! }) },
    ],
    ['invalid', 502, 'access_denied', { claims: (c) => ({ ...c, aud: 'other' }) }],
    ['refused', 502, 'access_denied', { redirect: (r) => ({ ...r, code: 'other' }) }],
    ['unreachable', 503, 'authorization_pending', { refuse: () => [503, {}] }],
  ] satisfies [string, number, string, Parameters<typeof startSignIn>[0]][]
  for (const [problem, status, polled, hostility] of cases) {
    const { ask, toApproval, poll, gateway } = await startSignIn(hostility)
    const grant = await ask()
    const { userCode } = grant
    const told = await toApproval(new TestBrowser(), userCode)
    assert.deepEqual([told.status, await poll(grant)], [status, polled], problem)
    await gateway.logWith({ event: 'sign_in_failed', problem })
  }
})

test('issue 47 an operator can sign in to the console and a member cannot; a token works while the provider is down', async () => {
  const { gateway, standIn, books } = await startSignIn()
  const browser = new TestBrowser()
  standIn.person['groups'] = ['admins']
  const signedIn = await browser.go(`${gateway.adminUrl}/console/sign-in`)
  assert.deepEqual([signedIn.status, signedIn.url.pathname, signedIn.url.search], [200, '/console/', '?signed-in=1'])
  const me = await browser.go(`${gateway.adminUrl}/api/v1/me`)
  const { kind, name, role } = JSON.parse(me.text)
  assert.deepEqual([kind, name, role], ['operator', 'Dev One', 'admin'])
  standIn.person['groups'] = ['developers']
  const other = new TestBrowser()
  const told = await other.go(`${gateway.adminUrl}/console/sign-in`)
  assert.deepEqual([told.status, other.cookies(gateway.adminUrl).has('triwire')], [403, false])
  standIn.hostility.isDown = () => true
  const { token } = await books.createOperator('ann', 'admin', gateway.nowMs() + 1e9)
  const byToken = await fetch(`${gateway.adminUrl}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } })
  assert.equal(byToken.status, 200)
  assert.equal((await browser.go(`${gateway.adminUrl}/api/v1/me`)).status, 200)
})

test('Y22 a person who signs in to their own pages gets a session with their own key, which ends at sign-out', async () => {
  const { gateway, standIn, books, page } = await startSignIn()
  standIn.person['groups'] = ['leads']
  const browser = new TestBrowser()
  const signedIn = await browser.go(page('sign-in'))
  assert.deepEqual([signedIn.status, signedIn.url.search], [200, '?signed-in=1'])
  const own = async () => {
    const { status, text } = await browser.go(page('api/me'), { from: signedIn.url.href })
    return status === 200 ? JSON.parse(text) : status
  }
  const me = await own()
  assert.deepEqual([me.kind, me.role, me.account.name], ['owner', 'lead', 'tester'])
  const [session] = await books.pageSessions({ limit: 9 })
  assert.deepEqual([session?.agent, session?.keyId, session?.endedMs], ['console', me.key.id, undefined])
  // The cookie of the provider's attempt, and the own one.
  assert.deepEqual([...browser.cookies(gateway.url).keys()].sort(), ['__Host-triwire-own', '__Host-triwire-sign-in'])
  const out = await browser.go(page('sign-out'), { method: 'POST', form: {}, from: signedIn.url.href })
  assert.match(out.text, /You are signed out/)
  assert.match(out.text, new RegExp(`<a href="${standIn.issuer}/end\\?[^"]*id_token_hint=`))
  assert.equal(await own(), 401)
  assert.equal((await books.pageSessions({ limit: 9 }))[0]?.endedWhy, 'signed_out')
})

test('issue 47 the console’s sign-in page offers the sign-in of the organisation, and only with sign_in', async () => {
  const { gateway } = await startSignIn()
  const without = await startTestGateway({ config: { own_pages: true } })
  for (const [one, says] of [
    [gateway, true],
    [without, false],
  ] as const)
    for (const url of [one.url, one.adminUrl]) {
      const page = await (await fetch(`${url}/console/`)).text()
      assert.equal(page.includes('<meta name="sign-in" content="yes">'), says, url)
    }
})
