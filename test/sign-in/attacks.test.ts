import assert from 'node:assert/strict'
import { createHash, randomInt } from 'node:crypto'
import test from 'node:test'
import { createBooks } from '../../src/accounts/books.ts'
import { beginGrant } from '../../src/accounts/sign-in/grant-rules.ts'
import { createSignInLimits } from '../../src/sign-in/limits.ts'
import type { Visit } from '../support/browser.ts'
import { startTestGateway } from '../support/gateway.ts'
import { raw } from '../support/raw.ts'
import type { Hostility } from '../support/stand-in-issuer.ts'
import { type SignInTest, startSignIn, TestBrowser } from './start.ts'

/*
 * Attacks on the pages of signing in (issue 47; RFC 8628 5, RFC 9700 4, RFC 8252 8). Each leaves the grant of the victim as it was,
 * unless a second word says otherwise. Those on the answers of the provider are in provider.test.ts.
 */

const verifier = 'v'.repeat(50)
const challenge = createHash('sha256').update(verifier).digest('base64url')
const program = 'http://127.0.0.1:4711/callback'
const isProgram = (url: URL) => url.port === '4711'

type Attacked = SignInTest & { victim: { id: string; code: string; userCode: string }; browser: TestBrowser }

/** @returns the page that the attacker got, with its expected status */
type Attack = (on: Attacked) => Promise<readonly [Visit, number]>

const another = async ({ ask }: Attacked) => (await ask('other')).userCode

/** A page that the victim has come to, with what an attacker changes before the click. */
const pressed =
  (status: number, options: Parameters<TestBrowser['press']>[2], action = 'approve'): Attack =>
  async ({ toApproval, browser, victim }) => {
    const asked = await toApproval(browser, victim.userCode)
    return [await browser.press(asked, action, options), status]
  }

/** The callback of the victim, as an attacker changes it. */
const calledBack =
  (status: number, change: (callback: URL, on: Attacked) => unknown, by?: (on: Attacked) => TestBrowser): Attack =>
  async (on) => {
    const { browser, page, victim } = on
    const first = await browser.go(page(`device?user_code=${victim.userCode}`))
    const { next } = await browser.follow(first, 'Continue', { until: (url) => url.pathname.endsWith('/callback') })
    await change(next!, on)
    return [await (by?.(on) ?? browser).go(next!, { from: 'http://idp.example/' }), status]
  }

const authorized =
  (status: number, asked: Record<string, string>): Attack =>
  async ({ authorize, browser }) => {
    const visit = await browser.go(authorize({ redirect_uri: program, code_challenge: challenge, ...asked }), {
      until: isProgram,
    })
    return [visit, status]
  }

const crossSite = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }

const attacks: Readonly<Record<string, Attack>> = {
  'approval by a page of another site': pressed(403, { headers: crossSite }),
  'approval by a page of the same domain': pressed(403, { headers: { 'sec-fetch-site': 'same-site' } }),
  'approval by a page of another site, in an old browser': pressed(403, {
    headers: { 'sec-fetch-site': '', origin: 'https://evil.example' },
  }),
  'denial by a page of another site': pressed(403, { headers: crossSite }, 'deny'),
  'approval without having signed in': async ({ browser, page, victim }) => {
    const first = await browser.go(page(`device?user_code=${victim.userCode}`))
    return [await browser.press(first, 'approve'), 400]
  },
  'approval of a grant by its id alone': async ({ browser, page, victim }) => {
    const from = page('device')
    const form = { grant: victim.id, action: 'approve' }
    return [await browser.go(page('device'), { method: 'POST', form, from }), 400]
  },
  'approval by another browser, with all fields of the page': async ({ toApproval, browser, victim }) => {
    const asked = await toApproval(browser, victim.userCode)
    return [await new TestBrowser().press(asked, 'approve'), 400]
  },
  'approval in a browser with a cookie that an attacker planted': async ({ toApproval, browser, victim }) => {
    const asked = await toApproval(browser, victim.userCode)
    return [
      await new TestBrowser().press(asked, 'approve', { headers: { cookie: '__Host-triwire-sign-in=planted' } }),
      400,
    ]
  },
  'approval of the grant of another page': async (on) => {
    const { toApproval, browser, victim, ask } = on
    const other = await ask('other')
    const asked = await toApproval(browser, other.userCode)
    return [await browser.press(asked, 'approve', { fields: { grant: victim.id } }), 400]
  },
  'approval after ten minutes': async ({ toApproval, browser, victim, gateway }) => {
    const asked = await toApproval(browser, victim.userCode)
    gateway.advance(600_000)
    return [await browser.press(asked, 'approve'), 400]
  },
  'no action': pressed(400, {}, ''),
  'an action that is none': pressed(400, {}, 'Approve'),
  'another browser brings the answer of the provider': calledBack(
    400,
    () => {},
    () => new TestBrowser(),
  ),
  'a browser with another mark brings it': calledBack(400, async (_, { browser, page, ...on }) => {
    // A second attempt in the same browser: the first one is over.
    const first = await browser.go(page(`device?user_code=${await another({ browser, page, ...on })}`))
    await browser.follow(first, 'Continue', { until: () => true })
  }),
  'the answer of the provider after ten minutes': calledBack(400, (_, { gateway }) => gateway.advance(600_000)),
  'the answer of the provider a second time': async (on) => {
    let callback: URL | undefined
    await calledBack(200, (url) => {
      callback = new URL(url)
    })(on)
    return [await on.browser.go(callback!), 400]
  },
  'no state': calledBack(400, (url) => url.searchParams.delete('state')),
  'a state of somebody': calledBack(400, (url) => url.searchParams.set('state', 'A'.repeat(200))),
  'a state with one letter changed': calledBack(400, (url) => {
    const state = url.searchParams.get('state')!
    url.searchParams.set('state', `${state.slice(0, 50)}${state[50] === 'A' ? 'B' : 'A'}${state.slice(51)}`)
  }),
  'two states': calledBack(502, (url) => url.searchParams.append('state', 'x')),
  'the state of an attempt on the other listener': calledBack(400, async (url, { browser, gateway }) => {
    const { next } = await browser.go(`${gateway.adminUrl}/console/sign-in`, { until: () => true })
    url.searchParams.set('state', next!.searchParams.get('state')!)
  }),
  'a link of another site that would begin at once shows the code first': async ({
    browser,
    page,
    victim,
    standIn,
  }) => {
    const from = 'https://evil.example/'
    const before = standIn.asked.length
    const visit = await browser.go(page(`device?user_code=${victim.userCode}&continue=yes`), { from })
    assert.deepEqual([standIn.asked.length - before, browser.cookies(page('')).size], [0, 0])
    return [visit, 200]
  },
  'a code with HTML in it': async ({ browser, page }) => {
    const visit = await browser.go(page(`device?user_code=${encodeURIComponent('<script>alert(1)</script>')}`))
    assert.doesNotMatch(visit.text, /<script/)
    return [visit, 404]
  },
  'a redirect to a host of somebody': authorized(400, { redirect_uri: 'https://evil.example/callback' }),
  'a redirect to a name that begins like loopback': authorized(400, {
    redirect_uri: 'http://127.0.0.1.evil.example:4711/',
  }),
  'a redirect to localhost by name': authorized(400, { redirect_uri: 'http://localhost:4711/callback' }),
  'a redirect to loopback in other digits': authorized(400, { redirect_uri: 'http://2130706433:4711/callback' }),
  'a redirect with a user': authorized(400, { redirect_uri: 'http://127.0.0.1:4711@evil.example:80/' }),
  'a redirect without a port': authorized(400, { redirect_uri: 'http://127.0.0.1/callback' }),
  'a redirect with a fragment': authorized(400, { redirect_uri: `${program}#x` }),
  'a redirect with a query': authorized(400, { redirect_uri: `${program}?x=1` }),
  'a redirect by a script': authorized(400, { redirect_uri: 'javascript:alert(1)' }),
  'no redirect': authorized(400, { redirect_uri: '' }),
  'no challenge': authorized(303, { code_challenge: '' }),
  'a plain challenge': authorized(303, { code_challenge_method: 'plain' }),
  'a challenge that is too short': authorized(303, { code_challenge: 'x' }),
  'an implicit answer': authorized(303, { response_type: 'token' }),
  'a page of ours below another path': async ({ browser, gateway }) => [
    await browser.go(`${gateway.url}/console/device/x/authorize`),
    404,
  ],
  'signing out by a page of another site': async ({ browser, page }) => [
    await browser.go(page('sign-out'), { method: 'POST', form: {}, headers: crossSite }),
    403,
  ],
  'signing out by a link': async ({ browser, page }) => [await browser.go(page('sign-out')), 405],
  'a callback by POST': async ({ browser, page }) => [
    await browser.go(page('callback'), { method: 'POST', form: { state: 'x' }, from: page('') }),
    405,
  ],
}

test(`issue 47 ${Object.keys(attacks).length} attacks on the pages change nothing`, async () => {
  const shared = await startSignIn({}, { limits: { codes: 99 } })
  for (const [name, attack] of Object.entries(attacks)) {
    const started = name.includes('after ten minutes') ? await startSignIn() : shared
    const victim = await started.ask()
    const [visit, status] = await attack({ ...started, victim, browser: new TestBrowser() })
    assert.equal(visit.status, status, `${name}: ${visit.text}`)
    const grant = await started.books.findGrant({ id: victim.id })
    assert.equal(grant?.state ?? 'pending', name === 'two states' ? 'denied' : 'pending', name)
    assert.equal((await started.books.pageSessions({ limit: 9 })).length, 0, name)
    if (status === 303) {
      assert.match(visit.next!.href, /^http:\/\/127\.0\.0\.1:4711\/callback\?error=/, name)
      assert.equal(visit.next!.searchParams.get('code'), null, name)
    }
    assert.equal(visit.headers.get('cache-control'), 'no-store', name)
  }
})

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code'

type Placed = SignInTest & {
  access: string
  refresh: string
  post(path: string, form: Record<string, string>): Promise<Response>
  approvedCode(): Promise<string>
  cookieOf(origin: string): Promise<string>
}

/** Asks a model. @returns the status */
async function askModel(url: string, headers: Record<string, string>): Promise<number> {
  const body = JSON.stringify({ model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] })
  const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body })
  await answer.text()
  return answer.status
}

/** Uses something genuine where it does not belong. @returns the answers, each with its expected status or error */
const misuses: Readonly<Record<string, (on: Placed) => Promise<readonly (readonly [unknown, unknown])[]>>> = {
  'an authorization code as a device code, which would need no verifier': async ({ post, approvedCode }) => {
    const answer = await post('/oauth/token', { grant_type: deviceGrant, device_code: await approvedCode() })
    return [[((await answer.json()) as { error: string }).error, 'expired_token']]
  },
  'a device code as an authorization code': async ({ post, ask, approve }) => {
    const { code, userCode } = await ask()
    await approve(new TestBrowser(), userCode)
    const form = { grant_type: 'authorization_code', code, code_verifier: verifier, redirect_uri: program }
    return [[((await (await post('/oauth/token', form)).json()) as { error: string }).error, 'invalid_grant']]
  },
  'a refresh token as a bearer or as a key': async ({ gateway, refresh }) => [
    [await askModel(gateway.url, { authorization: `Bearer ${refresh}` }), 401],
    [await askModel(gateway.url, { 'x-api-key': refresh }), 401],
  ],
  'an access token with a later end, and one with the secret of another': async ({ gateway, access }) => {
    const later = `${access.slice(0, -28)}zzzzzz${access.slice(-22)}`
    const other = `${access.slice(0, 8)}${'A'.repeat(22)}${access.slice(30)}`
    return [
      [await askModel(gateway.url, { authorization: `Bearer ${later}` }), 401],
      [await askModel(gateway.url, { authorization: `Bearer ${other}` }), 401],
    ]
  },
  'the token of a session at the API of operators': async ({ gateway, access }) => {
    const headers = { authorization: `Bearer ${access}` }
    return Promise.all(
      ['accounts', 'requests', 'audit'].map(
        async (path) => [(await fetch(`${gateway.adminUrl}/api/v1/${path}`, { headers })).status, 403] as const,
      ),
    )
  },
  'the cookie of an owner at the API of operators, under each name': async ({ gateway, cookieOf }) => {
    const cookie = await cookieOf(gateway.url)
    const ask = async (url: string, name: string) =>
      (await fetch(url, { headers: { cookie: `${name}=${cookie}` } })).status
    const own = '__Host-triwire-own'
    // Under the name of that listener it is what a key is there: the owner may see what is theirs, and no more.
    const names = { triwire: 403, '__Host-triwire': 401, [own]: 401 }
    const asked = Object.entries(names).map(
      async ([name, status]) => [await ask(`${gateway.adminUrl}/api/v1/accounts`, name), status] as const,
    )
    return [[await ask(`${gateway.url}/console/api/me`, own), 200], ...(await Promise.all(asked))]
  },
  'a foreign host name in discovery and in the address of the page': async ({ gateway }) => {
    const heads = ['Host: evil.example', 'Host: 127.0.0.1:1@evil.example', 'Host: x\r\nX-Forwarded-Host: evil.example']
    const body = 'surface=claude_code'
    const requests = heads.flatMap((head) => [
      `GET /.well-known/oauth-authorization-server HTTP/1.1\r\n${head}\r\n\r\n`,
      `GET /.well-known/opencode HTTP/1.1\r\n${head}\r\n\r\n`,
      `POST /oauth/device_authorization HTTP/1.1\r\n${head}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    ])
    return Promise.all(
      requests.map(async (request) => {
        const { answers } = await raw(gateway.url, request, { answers: 1 })
        return [JSON.stringify(answers[0]).includes('evil'), false] as const
      }),
    )
  },
  'a name of a program that is HTML': async ({ post, page }) => {
    const asked = await post('/oauth/device_authorization', { surface: '<img src=x onerror=alert(1)>"\'' })
    const { user_code: code } = (await asked.json()) as { user_code: string }
    const visit = await new TestBrowser().go(page(`device?user_code=${code}`))
    return [[/<img|onerror=alert/.test(visit.text), false]]
  },
}

for (const [name, misuse] of Object.entries(misuses))
  test(`issue 47 attack: ${name}`, async () => {
    const started = await startSignIn()
    const { gateway, authorize } = started
    const post = (path: string, form: Record<string, string>) =>
      fetch(gateway.url + path, { method: 'POST', body: new URLSearchParams(form) })
    const { code, userCode } = await started.ask()
    await started.approve(new TestBrowser(), userCode)
    const tokens = (await (
      await post('/oauth/token', { grant_type: deviceGrant, device_code: code })
    ).json()) as Record<'access_token' | 'refresh_token', string>
    const approvedCode = async () => {
      const browser = new TestBrowser()
      const asked = await browser.go(authorize({ redirect_uri: program, code_challenge: challenge }))
      return (await browser.press(asked, 'approve', { until: isProgram })).next!.searchParams.get('code')!
    }
    const cookieOf = async (origin: string) => {
      const browser = new TestBrowser()
      await browser.go(`${origin}/console/sign-in`)
      return browser.cookies(origin).get('__Host-triwire-own')!
    }
    assert.equal(await askModel(gateway.url, { authorization: `Bearer ${tokens.access_token}` }), 200)
    const placed = { ...started, post, approvedCode, cookieOf }
    const found = await misuse({ ...placed, access: tokens.access_token, refresh: tokens.refresh_token })
    assert.ok(found.length > 0)
    for (const [answer, expected] of found) assert.equal(answer, expected, name)
  })

test('RFC 9700 4.16 no page can be stored or framed, runs a script, or reveals where the person came from', async () => {
  const { browser, ...started } = { browser: new TestBrowser(), ...(await startSignIn()) }
  const { userCode } = await started.ask()
  const first = await browser.go(started.page(`device?user_code=${userCode}`))
  const asked = await browser.follow(first, 'Continue')
  const approved = await browser.press(asked, 'approve')
  const out = await browser.go(started.page('signed-out'))
  const provider = new URL(started.standIn.issuer).origin
  for (const [visit, targets] of [
    [first, `'self' ${provider}`],
    [asked, `'self'`],
    [approved, `'self'`],
    [out, `'self'`],
  ] as const) {
    const policy = visit.headers.get('content-security-policy')!
    const style = /<style>([\s\S]*?)<\/style>/.exec(visit.text)![1]!
    const digest = createHash('sha256').update(style).digest('base64')
    assert.equal(
      policy,
      `default-src 'none'; style-src 'sha256-${digest}'; frame-ancestors 'none'; base-uri 'none'; form-action ${targets}`,
    )
    const headers = ['cache-control', 'x-content-type-options', 'referrer-policy', 'x-frame-options']
    assert.deepEqual(
      headers.map((name) => visit.headers.get(name)),
      ['no-store', 'nosniff', 'no-referrer', 'DENY'],
    )
    assert.doesNotMatch(visit.text, /<script|onload=|style="|javascript:/)
  }
})

test('RFC 9700 4.7 the cookie of a browser is new with each attempt and answer, and no script or other site gets it', async () => {
  const { ask, page, toApproval, gateway } = await startSignIn()
  const browser = new TestBrowser()
  const marks = new Set<string>()
  for (let count = 0; count < 2; count++) {
    const first = await browser.go(page(`device?user_code=${(await ask()).userCode}`))
    const { headers } = await browser.follow(first, 'Continue', { until: () => true })
    assert.match(
      headers.get('set-cookie')!,
      /^__Host-triwire-sign-in=\w{43}; Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=600$/,
    )
    marks.add(browser.cookies(gateway.url).get('__Host-triwire-sign-in')!)
    await toApproval(browser, (await ask()).userCode)
    marks.add(browser.cookies(gateway.url).get('__Host-triwire-sign-in')!)
  }
  assert.equal(marks.size, 4)
})

test('issue 47 a program that did not begin the sign-in cannot redeem its code: verifier, address and number of times', async () => {
  const { authorize, redeem } = await startSignIn()
  const codeOf = async () => {
    const browser = new TestBrowser()
    const asked = await browser.go(authorize({ redirect_uri: program, code_challenge: challenge }))
    return (await browser.press(asked, 'approve', { until: isProgram })).next!.searchParams.get('code')!
  }
  const [first, second] = [await codeOf(), await codeOf()]
  assert.equal(await redeem(first, 'w'.repeat(50), program), 'invalid_grant')
  assert.equal(await redeem(first, verifier, program), 'invalid_grant')
  assert.equal(await redeem(second, verifier, 'http://127.0.0.1:4712/callback'), 'invalid_grant')
  assert.equal(await redeem('x'.repeat(43), verifier, program), 'invalid_grant')
})

test('Y19 codes that change nothing are answered without a change: invented, too early, used, and not approved', async () => {
  const { ask, books, gateway, lives } = await startSignIn()
  let changes = 0
  const { asked } = gateway.store
  const change: typeof asked.change = (one) => {
    changes++
    return asked.change(one)
  }
  const own = createBooks({ ...asked, change }, gateway.nowMs)
  const poll = async (code: string) => {
    const told = await own.pollGrant(code, lives)
    return 'error' in told ? told.error : 'issued'
  }
  const { id, code } = await ask()
  const { code: other } = await books.beginGrant({ kind: 'code', challenge, redirectUri: program })
  assert.equal(await poll(code), 'authorization_pending')
  assert.equal(changes, 1)
  for (let count = 0; count < 5; count++) assert.equal(await poll(code), 'slow_down')
  assert.equal(await poll('x'.repeat(43)), 'expired_token')
  const early = await own.redeemCode(other, { verifier, redirectUri: program }, lives)
  assert.deepEqual(early, { error: 'invalid_grant' })
  assert.equal(changes, 1)
  await books.decideGrant(id, 'denied')
  assert.equal(await poll(code), 'access_denied')
  assert.equal(changes, 2)
  assert.equal(await poll(code), 'expired_token')
  assert.equal(changes, 2)
})

test('Y19 a program may have any name, also one that every object has as a member', async () => {
  const { ask, page, toApproval } = await startSignIn()
  for (const agent of ['constructor', '__proto__', 'toString']) {
    const { userCode } = await ask(agent)
    const first = await new TestBrowser().go(page(`device?user_code=${userCode}`))
    assert.ok(first.text.includes(`<dt>Program</dt><dd>${agent}</dd>`), first.text)
    assert.equal((await toApproval(new TestBrowser(), userCode)).status, 200)
  }
})

test('issue 47 wrong codes are counted for their address, and correct ones are not', async () => {
  const { ask, page, gateway } = await startSignIn({}, { limits: { codes: 3 } })
  const browser = new TestBrowser()
  const { userCode } = await ask()
  const look = async (code: string) => (await browser.go(page(`device?user_code=${code}`))).status
  for (let count = 0; count < 5; count++) assert.equal(await look(userCode), 200)
  assert.deepEqual([await look('BBBB-BBBB'), await look('x'), await look('AEIO-UUUU')], [404, 404, 404])
  // Even the right one is not looked at any more.
  assert.deepEqual([await look('BBBB-BBBC'), await look(userCode)], [429, 429])
  gateway.advance(600_000)
  assert.equal(await look('BBBB-BBBB'), 404)
})

test('Y19 invalid codes of the provider count for their address, and then the provider is not asked any more', async () => {
  const hostility: Hostility = { redirect: (r) => ({ ...r, code: 'other' }) }
  const { page, gateway, standIn } = await startSignIn(hostility, { limits: { codes: 3 } })
  const signIn = async () => (await new TestBrowser().go(page('sign-in'))).status
  const exchanges = () => standIn.asked.filter((one) => one === 'POST /token').length
  // Faults of the provider do not count.
  standIn.hostility.refuse = () => [503, {}]
  for (let count = 0; count < 5; count++) assert.equal(await signIn(), 503)
  delete standIn.hostility.refuse
  const before = exchanges()
  const statuses = await Promise.all(Array.from({ length: 9 }, signIn))
  assert.deepEqual(statuses.sort(), [502, 502, 502, 429, 429, 429, 429, 429, 429].sort())
  assert.equal(exchanges() - before, 3)
  gateway.advance(600_000)
  delete standIn.hostility.redirect
  for (let count = 0; count < 5; count++) assert.equal(await signIn(), 200)
})

test('RFC 8628 5.1 concurrent guesses of codes count like consecutive ones', async () => {
  const { ask, page } = await startSignIn({}, { limits: { codes: 9 } })
  const { userCode } = await ask()
  const look = async (code: string) => (await new TestBrowser().go(page(`device?user_code=${code}`))).status
  const letters = Array.from('BCDFGHJKLMNPQRSTVWXZ')
  const guesses = letters.flatMap((one) => letters.slice(0, 3).map((other) => `BBBB-BB${one}${other}`))
  const right = await Promise.all(Array.from({ length: 9 }, () => look(userCode)))
  assert.deepEqual(new Set(right), new Set([200]))
  const looked = (await Promise.all(guesses.map(look))).filter((status) => status === 404)
  assert.equal(looked.length, 9)
  assert.equal(await look(userCode), 429)
})

test('RFC 8628 5.1 a million guesses from a thousand addresses in an hour: a third is checked, and none hits one of ten codes', () => {
  let nowMs = 0
  const limits = createSignInLimits({ limits: () => ({ codes: 60, grants: 300 }), clockMs: () => nowMs })
  const codes = new Set<string | undefined>()
  while (codes.size < 10) {
    const begun = beginGrant({ kind: 'device' }).decide({ nowMs: 0 } as Parameters<
      ReturnType<typeof beginGrant>['decide']
    >[0])
    codes.add(begun.result.userCode?.replace('-', ''))
  }
  const letters = 'BCDFGHJKLMNPQRSTVWXZ'
  const [guesses, addresses] = [1_000_000, 1_000]
  let [looked, found] = [0, 0]
  for (let guess = 0; guess < guesses; guess++) {
    nowMs = (guess / guesses) * 3_600_000
    const ip = `10.0.${(guess % addresses) >> 8}.${(guess % addresses) & 255}`
    const place = limits.guess(ip)
    if (!place.ok) continue
    looked++
    let typed = ''
    for (let rest = randomInt(20 ** 8); typed.length < 8; rest = Math.floor(rest / 20)) typed += letters[rest % 20]
    if (!codes.has(typed)) continue
    found++
    place.giveBack()
  }
  // 60 of each address in each of the six windows of an hour: 0.00014 hits are expected.
  assert.deepEqual([looked, found], [60 * 6 * addresses, 0])
})

test('issue 47 no secret is in the log: codes, tokens of the provider, cookies, states', async () => {
  const { ask, approve, poll, gateway, page, standIn } = await startSignIn()
  const browser = new TestBrowser()
  const grant = await ask()
  await approve(browser, grant.userCode)
  await poll(grant)
  standIn.hostility.claims = (claims) => ({ ...claims, aud: 'other' })
  const failed = await ask()
  await browser.follow(await browser.go(page(`device?user_code=${failed.userCode}`)), 'Continue')
  await browser.go(page('device?user_code=BBBB-BBBB'))
  await gateway.logWith({ event: 'sign_in_code_wrong' })
  const lines = JSON.stringify(await gateway.logLines())
  const secrets = [
    grant.code,
    grant.userCode,
    failed.userCode,
    'canary-rt',
    'eyJ',
    'a-client-secret',
    'state=',
    'code=',
    ...browser.cookies(gateway.url).values(),
  ]
  for (const secret of secrets) assert.ok(!lines.includes(secret), secret)
  assert.match(lines, /"event":"sign_in_failed"/)
})

test('issue 47 a request with a foreign host name gets no page', async () => {
  const { gateway } = await startSignIn()
  const head = 'GET /console/sign-in HTTP/1.1\r\nHost: evil.example\r\n\r\n'
  const { answers } = await raw(gateway.url, head, { answers: 1 })
  assert.equal(answers[0]!.status, 421)
})

test('Y19 without sign_in its pages are not served', async () => {
  const gateway = await startTestGateway()
  const answer = await fetch(`${gateway.url}/console/device`)
  assert.equal(answer.status, 404)
})
