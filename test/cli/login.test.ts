import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { fileOf, type KeptSignIn, readKept } from '../../src/cli/login/kept.ts'
import { signIn } from '../../src/cli/login/sign-in.ts'
import { runTriwire } from '../support/child.ts'
import { testFolder } from '../support/folder.ts'
import { raw } from '../support/raw.ts'
import {
  accessToken,
  refreshToken,
  type Scripted,
  type SignInServer,
  startSignInServer,
} from '../support/sign-in-server.ts'
import { until } from '../support/waiting.ts'
import { run, runWarm } from './run.ts'

type Said = { lines: string[]; pausesMs: number[]; kept?: KeptSignIn; error?: string }

/** Signs in by a code in this process, without waiting between the polls. */
async function byCode(server: SignInServer, state = testFolder('state')): Promise<Said> {
  const said: Said = { lines: [], pausesMs: [] }
  process.env['XDG_STATE_HOME'] = state
  try {
    said.kept = await signIn(server.url, {
      isDevice: true,
      tell: (line) => void said.lines.push(line),
      pause: async (ms) => void said.pausesMs.push(ms),
    })
  } catch (error) {
    said.error = (error as Error).message
  } finally {
    delete process.env['XDG_STATE_HOME']
  }
  return said
}

const pending: Scripted = { status: 400, body: { error: 'authorization_pending' } }
const slower: Scripted = { status: 429, body: { error: 'slow_down' } }
const granted: Scripted = {
  status: 200,
  body: {
    access_token: accessToken(1),
    token_type: 'Bearer',
    expires_in: 3_600,
    refresh_token: refreshToken(1),
    email: 'dev@corp.test',
  },
}

test('issue 47 login by a code: the requests follow the protocol, the code and the page are shown, and the tokens are stored', async () => {
  const server = await startSignInServer()
  server.script('/oauth/token', pending, granted)
  const state = testFolder('state')
  const { lines, kept, pausesMs } = await byCode(server, state)
  assert.deepEqual(
    server.asked.map(({ path, form }) => [path, form]),
    [
      ['/.well-known/oauth-authorization-server', {}],
      ['/oauth/device_authorization', { surface: 'triwire' }],
      ...Array(2).fill([
        '/oauth/token',
        { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'device-1' },
      ]),
    ],
  )
  assert.ok(lines.join('\n').includes('BCDF-GHJK') && lines.join('\n').includes(`${server.url}/console/device`))
  assert.deepEqual(pausesMs, [1_000, 1_000])
  const path = fileOf(server.url, join(state, 'triwire/sign-ins'))
  assert.deepEqual(readKept(path), kept)
  assert.deepEqual(
    [kept?.email, kept?.tokens?.access_token, kept?.revocation_endpoint],
    ['dev@corp.test', accessToken(1), `${server.url}/oauth/revoke`],
  )
  assert.deepEqual([statSync(path).mode & 0o777, statSync(join(path, '..')).mode & 0o777], [0o600, 0o700])
  assert.ok(!lines.join('\n').includes('tri-'), 'no token is shown')
})

/** What the server answers, and what the person reads; the pauses in seconds. */
const polls: Record<string, { answers: Scripted[]; pauses: number[]; error?: RegExp }> = {
  'slow_down adds five seconds for good': { answers: [slower, pending, slower, granted], pauses: [1, 6, 6, 11] },
  'slow_down with status 400': { answers: [{ status: 400, body: { error: 'slow_down' } }, granted], pauses: [1, 6] },
  'a server that fails for a moment': {
    answers: [{ status: 502, body: '<html>' }, { status: 200, hangsUp: true }, granted],
    pauses: [1, 1, 1],
  },
  denied: {
    answers: [pending, { status: 400, body: { error: 'access_denied' } }],
    pauses: [1, 1],
    error: /^the sign-in was denied in the browser$/,
  },
  expired: {
    answers: [{ status: 400, body: { error: 'expired_token' } }],
    pauses: [1],
    error: /^the sign-in timed out/,
  },
  'another error': {
    answers: [{ status: 400, body: { error: 'invalid_request', error_description: 'no' } }],
    ...{ pauses: [1], error: /^the gateway gives no token \(status 400\) \(no\)$/ },
  },
  'a life that is no number': {
    answers: [{ status: 200, body: { access_token: 'x', expires_in: '60' } }],
    ...{ pauses: [1], error: /has no token with a number expires_in$/ },
  },
}

for (const [name, { answers, pauses, error }] of Object.entries(polls))
  test(`issue 47 login by a code, while it is polled: ${name}`, async () => {
    const server = await startSignInServer()
    server.script('/oauth/token', ...answers)
    const state = testFolder('state')
    const said = await byCode(server, state)
    assert.deepEqual(
      said.pausesMs,
      pauses.map((seconds) => seconds * 1_000),
    )
    if (error) assert.match(said.error ?? '', error)
    else assert.equal(said.kept?.tokens?.access_token, accessToken(1), said.error ?? '')
    assert.deepEqual(readdirSync(join(state, 'triwire/sign-ins')).length, error ? 0 : 1)
  })

test('issue 47 login by a code polls no longer than the code lives, even if the server never reports its end', async () => {
  const server = await startSignInServer()
  const page = { verification_uri: `${server.url}/d`, expires_in: 0 }
  server.script('/oauth/device_authorization', { status: 200, body: { device_code: 'd', user_code: 'c', ...page } })
  server.script('/oauth/token', pending)
  const { error, pausesMs } = await byCode(server)
  assert.match(error ?? '', /timed out/)
  assert.deepEqual(pausesMs, [5_000], 'five seconds if the answer has no interval')
})

const device = (change: object): Scripted => ({
  status: 200,
  body: { device_code: 'd', user_code: 'c', verification_uri: 'https://gw.corp.test/d', expires_in: 600, ...change },
})
const wellKnown = '/.well-known/oauth-authorization-server'
const begin = '/oauth/device_authorization'
const beginnings: [name: string, path: string, answer: Scripted, error: RegExp][] = [
  ['no sign-in', wellKnown, { status: 404 }, /offers no sign-in \(status 404\)/],
  ['a server that fails', wellKnown, { status: 503 }, /offers no sign-in \(status 503\)/],
  [
    'a redirect',
    wellKnown,
    { status: 302, headers: { location: 'https://other.test/x' } },
    /redirects to https:\/\/other.test, which is not followed/,
  ],
  [
    'a limit',
    begin,
    { status: 429, body: { error: 'slow_down', error_description: 'too many codes' } },
    /^the gateway limits sign-ins right now \(too many codes\)/,
  ],
  ['a limit with status 400', begin, { status: 400, body: { error: 'slow_down' } }, /limits sign-ins/],
  [
    'a refusal',
    begin,
    { status: 400, body: { error: 'invalid_request' } },
    /^the gateway begins no sign-in \(status 400\)/,
  ],
  ...['device_code', 'user_code', 'verification_uri', 'expires_in'].map((field): (typeof beginnings)[number] => [
    `no ${field}`,
    begin,
    device({ [field]: undefined }),
    /is malformed$/,
  ]),
  ['a page that is no page', begin, device({ verification_uri: 'file:///etc/passwd' }), /is malformed$/],
  ['a page without TLS', begin, device({ verification_uri: 'http://gw.corp.test/d' }), /is malformed$/],
]

for (const [name, path, answer, error] of beginnings)
  test(`issue 47 login by a code, at its beginning: ${name}`, async () => {
    const server = await startSignInServer()
    server.script(path, answer)
    const said = await byCode(server)
    assert.match(said.error ?? '', error)
    assert.equal(server.formsOf('/oauth/token').length, 0)
  })

test('issue 47 endpoints of another origin, missing ones or an empty document: the gateway’s own endpoints are used', async () => {
  for (const body of [{}, '', { token_endpoint: 'https://other.test/t', device_authorization_endpoint: 7 }]) {
    const server = await startSignInServer()
    server.script(wellKnown, { status: 200, body })
    const { kept } = await byCode(server)
    assert.deepEqual([kept?.token_endpoint, kept?.revocation_endpoint], [`${server.url}/oauth/token`, undefined])
  }
})

test('issue 47 text from a server cannot control the terminal', async () => {
  const server = await startSignInServer()
  server.script(begin, device({ user_code: 'A\u001b[31mB', login_notice: 'read\r\u0007this' }))
  const { lines } = await byCode(server)
  assert.doesNotMatch(lines.join(''), /[\u0000-\u001f]/)
  assert.ok(lines.includes('read this'))
})

test('issue 47 a second login replaces the first and revokes its session; a damaged file is replaced too', async () => {
  const server = await startSignInServer()
  const state = testFolder('state')
  await byCode(server, state)
  server.generation = 5
  await byCode(server, state)
  const path = fileOf(server.url, join(state, 'triwire/sign-ins'))
  assert.equal(readKept(path)?.tokens?.access_token, accessToken(5))
  assert.deepEqual(server.formsOf('/oauth/revoke'), [
    { token: accessToken(1) },
    { token: refreshToken(1), token_type_hint: 'refresh_token' },
  ])
  writeFileSync(path, '{')
  assert.equal((await byCode(server, state)).error, undefined)
})

test('issue 47 a folder that cannot be written is reported before a person is sent to a browser', async () => {
  const server = await startSignInServer()
  const state = testFolder('state')
  writeFileSync(join(state, 'triwire'), '')
  const { error } = await byCode(server, state)
  assert.match(error ?? '', /^cannot write .*sign-ins: .*\(E\w+\)$/)
  assert.equal(server.asked.length, 0)
})

/** A program that stands for the browser: it writes down the address that it is given. */
function fakeBrowser(): { path: string; asked(): string | undefined } {
  const folder = testFolder('browser')
  const [path, note] = [join(folder, 'browser'), join(folder, 'asked')]
  writeFileSync(path, `#!/bin/sh\nprintf '%s' "$1" > '${note}.new'; mv '${note}.new' '${note}'\n`)
  chmodSync(path, 0o700)
  return { path, asked: () => (existsSync(note) ? readFileSync(note, 'utf8') : undefined) }
}

async function throughBrowser(t: TestContext, server: SignInServer) {
  const browser = fakeBrowser()
  const state = testFolder('state')
  server.hasPage = true
  const running = runTriwire(t, ['login', server.url], state, { XDG_STATE_HOME: state, BROWSER: browser.path })
  await until(() => browser.asked() !== undefined, 'the browser is opened')
  const page = new URL(browser.asked()!)
  return {
    running,
    state,
    page,
    callback: page.searchParams.get('redirect_uri')!,
    sent: page.searchParams.get('state')!,
  }
}

test('issue 47 login with a browser of this machine: loopback and PKCE (RFC 8252, RFC 7636)', async (t) => {
  const server = await startSignInServer()
  const { running, state, page, callback, sent } = await throughBrowser(t, server)
  assert.equal(page.origin + page.pathname, `${server.url}/console/authorize`)
  const { code_challenge: challenge, redirect_uri: redirect, state: _, ...rest } = Object.fromEntries(page.searchParams)
  assert.deepEqual(rest, { response_type: 'code', surface: 'triwire', code_challenge_method: 'S256' })
  assert.match(redirect!, /^http:\/\/127\.0\.0\.1:\d+\/callback$/)
  // Pages of strangers, who do not know the state, change nothing.
  for (const path of ['?code=x', `?code=x&state=${sent}x`, `/../other?code=x&state=${sent}`])
    assert.equal((await fetch(callback + path)).status, 404)
  assert.equal((await fetch(`${callback}?code=x&state=${sent}`, { method: 'POST' })).status, 404)
  for (const path of ['//', '//[', '/\\\\'])
    assert.equal(
      (await raw(callback, `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`, { answers: 1 })).answers[0]?.status,
      404,
    )
  const answer = await fetch(`${callback}?code=code-1&state=${sent}&iss=${encodeURIComponent(server.url)}`)
  assert.match(await answer.text(), /You are signed in/)
  assert.equal(answer.headers.get('cache-control'), 'no-store')
  await running.said(/signed in at http:\S+ as dev@corp.test/)
  const [{ code_verifier: verifier, ...form }] = server.formsOf('/oauth/token') as [Record<string, string>]
  assert.deepEqual(form, { grant_type: 'authorization_code', code: 'code-1', redirect_uri: callback })
  assert.equal(createHash('sha256').update(verifier!).digest('base64url'), challenge)
  assert.equal(readdirSync(join(state, 'triwire/sign-ins')).length, 1)
  assert.ok(!(running.stdout() + running.stderr()).includes('tri-at'))
})

for (const [name, answer, said] of [
  ['the person denies', 'error=access_denied', /denied in the browser/],
  ['the gateway fails', 'error=server_error', /the gateway refused/],
  ['another issuer answers', 'code=x&iss=https%3A%2F%2Fother.test', /the gateway refused/],
] as const)
  test(`issue 47 login with a browser of this machine: ${name}`, async (t) => {
    const server = await startSignInServer()
    const { running, callback, sent } = await throughBrowser(t, server)
    assert.match(await (await fetch(`${callback}?${answer}&state=${sent}`)).text(), /You are not signed in/)
    await until(() => said.test(running.stderr()), `${said}`)
    await until(() => running.process.exitCode === 1, 'it ends')
    assert.equal(server.formsOf('/oauth/token').length, 0)
  })

test('issue 47 a browser that cannot be started, SSH, and --device: the code is shown', async () => {
  const server = await startSignInServer()
  server.hasPage = true
  const state = testFolder('state')
  const env = { XDG_STATE_HOME: state, BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '', SSH_CONNECTION: '' }
  for (const [args, more] of [
    [['login', server.url], { BROWSER: '/no/browser' }],
    [['login', server.url], { DISPLAY: ':0', SSH_CONNECTION: '10.0.0.1 1 10.0.0.2 22' }],
    [['login', server.url, '--device'], {}],
  ] as const) {
    const { code, stderr, stdout } = await runWarm(args, { env: { ...env, ...more } })
    assert.equal(code, 0, stderr)
    assert.match(stderr, /BCDF-GHJK/)
    assert.match(stdout, /^signed in at http:\S+ as dev@corp\.test; triwire token http:\S+ prints a token\n$/)
  }
})

test('issue 47 Ctrl-C ends a waiting login', async (t) => {
  const server = await startSignInServer()
  server.script('/oauth/token', pending)
  const state = testFolder('state')
  const running = runTriwire(t, ['login', server.url, '--device'], state, { XDG_STATE_HOME: state })
  await until(() => server.formsOf('/oauth/token').length > 0, 'it polls')
  running.process.kill('SIGINT')
  await until(() => running.process.signalCode === 'SIGINT', 'it ends')
})

test('issue 47 a gateway’s address may be typed in common forms; http is accepted only for this machine', async () => {
  const env = { XDG_STATE_HOME: testFolder('state') }
  for (const wrong of [
    'http://gw.corp.test',
    'http://10.0.0.7:8080',
    'ftp://gw.corp.test',
    'https://user:secret-word@gw.corp.test',
    'https://gw.corp.test/?x',
    '',
  ])
    for (const command of ['login', 'logout']) {
      const { code, stderr } = await runWarm([command, wrong], { env })
      assert.equal(code, 1, wrong)
      assert.match(stderr, /^triwire: .*https/, wrong)
      assert.ok(!stderr.includes('secret-word'))
    }
})

for (const [name, answer] of [
  ['200', undefined],
  ['500', { status: 500 }],
  ['nothing', { status: 200, hangsUp: true }],
] as [string, Scripted | undefined][])
  test(`issue 47 logout posts both tokens and removes the file; the gateway answers ${name}`, async () => {
    const server = await startSignInServer()
    const state = testFolder('state')
    await byCode(server, state)
    if (answer) server.script('/oauth/revoke', answer)
    writeFileSync(`${fileOf(server.url, join(state, 'triwire/sign-ins'))}.new`, 'left by a process that was killed')
    const { code, stdout, stderr } = await runWarm(['logout'], { env: { XDG_STATE_HOME: state } })
    assert.deepEqual([code, stdout], [0, `signed out at ${server.url}\n`])
    assert.equal(stderr.includes('has not confirmed it'), answer !== undefined)
    assert.deepEqual(server.formsOf('/oauth/revoke').sort(), [
      { token: accessToken(1) },
      { token: refreshToken(1), token_type_hint: 'refresh_token' },
    ])
    assert.deepEqual(readdirSync(join(state, 'triwire/sign-ins')), [])
  })

test('issue 47 logout without a sign-in, with one that has ended, and as JSON', async () => {
  const server = await startSignInServer()
  const state = testFolder('state')
  const env = { XDG_STATE_HOME: state }
  const none = await runWarm(['logout'], { env })
  assert.deepEqual([none.code, none.stdout], [0, 'nobody was signed in on this machine\n'])
  assert.deepEqual((await run(['--json', 'logout'], { env })).json, { url: null, signed_in: false, heard: null })
  const damaged = fileOf(server.url, join(state, 'triwire/sign-ins'))
  mkdirSync(join(state, 'triwire/sign-ins'), { recursive: true })
  writeFileSync(damaged, '{')
  const unsure = await runWarm(['logout'], { env })
  assert.deepEqual([unsure.code, unsure.stderr.includes(`${damaged} is damaged`)], [1, true])
  rmSync(damaged)
  const named = await runWarm(['logout', 'https://gw.corp.test'], { env })
  assert.deepEqual([named.code, named.stdout], [0, 'nobody was signed in at https://gw.corp.test\n'])
  mkdirSync(join(state, 'triwire/sign-ins'), { recursive: true })
  const ended = { url: server.url, token_endpoint: `${server.url}/oauth/token`, ended: '' }
  writeFileSync(fileOf(server.url, join(state, 'triwire/sign-ins')), JSON.stringify(ended))
  const { json } = await run(['--json', 'logout', server.url], { env })
  assert.deepEqual(json, { url: server.url, signed_in: true, heard: true })
  assert.equal(server.asked.length, 0)
})

test('issue 47 tokens are in no argument, title or environment of a process', async (t) => {
  const server = await startSignInServer()
  const state = testFolder('state')
  await byCode(server, state)
  let seen = ''
  server.script('/oauth/token', () => {
    for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one)))
      for (const part of ['cmdline', 'comm', 'environ'])
        try {
          const text = readFileSync(`/proc/${name}/${part}`, 'utf8')
          if (text.includes('tri-at-') || text.includes('tri-rt-')) seen += `${name}/${part} `
        } catch {
          // It has ended, or is another user's.
        }
    return { status: 503 }
  })
  const path = fileOf(server.url, join(state, 'triwire/sign-ins'))
  writeFileSync(path, readFileSync(path, 'utf8').replace(/"expires_ms": \d+/, '"expires_ms": 1'))
  const child = spawn(process.execPath, [join(import.meta.dirname, '../../bin/triwire.mjs'), 'token'], {
    env: { ...process.env, XDG_STATE_HOME: state },
  })
  t.after(() => child.kill('SIGKILL'))
  await until(() => child.exitCode === 1, 'it ends')
  assert.deepEqual([server.formsOf('/oauth/token').length > 1, seen], [true, ''])
})
