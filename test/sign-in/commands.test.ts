import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { fileOf, readKept } from '../../src/cli/login/kept.ts'
import { runTriwire } from '../support/child.ts'
import { testFolder } from '../support/folder.ts'
import { until } from '../support/waiting.ts'
import { type SignInTest, startSignIn, TestBrowser } from './start.ts'

/* triwire login, token and logout against the gateway itself, with a provider that a person signs in at. */

const bin = join(import.meta.dirname, '../../bin/triwire.mjs')

async function start(t: TestContext) {
  const signIn = await startSignIn()
  const { gateway } = signIn
  const state = testFolder('state')
  const env = { XDG_STATE_HOME: state, HOME: state, BROWSER: '', DISPLAY: '', WAYLAND_DISPLAY: '' }
  const path = fileOf(gateway.url, join(state, 'triwire/sign-ins'))
  return { ...signIn, state, path, command, login, signedIn, pretendDue }

  function command(args: readonly string[]): Promise<{ code: number; stdout: string; stderr: string }> {
    return new Promise((done) => {
      execFile(process.execPath, [bin, ...args], { env: { ...process.env, ...env } }, (error, stdout, stderr) =>
        done({ code: error ? Number(error.code) : 0, stdout, stderr }),
      )
    })
  }

  async function login(browser = new TestBrowser()) {
    const running = runTriwire(t, ['login', gateway.url, '--device'], state, env)
    await until(() => /[A-Z]{4}-[A-Z]{4}/.test(running.stderr()), 'the code is shown')
    await signIn.approve(browser, /[A-Z]{4}-[A-Z]{4}/.exec(running.stderr())![0])
    await running.said(/signed in at \S+/)
    return running
  }

  /** The same without the five seconds between two polls of a program. */
  async function signedIn(): Promise<void> {
    const post = async (at: string, form: Record<string, string>) => {
      const answer = await fetch(gateway.url + at, { method: 'POST', body: new URLSearchParams(form) })
      return (await answer.json()) as Record<string, string>
    }
    const begun = await post('/oauth/device_authorization', { surface: 'triwire' })
    await signIn.approve(new TestBrowser(), begun['user_code']!)
    const grant = { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: begun['device_code']! }
    const granted = await post('/oauth/token', grant)
    const tokens = {
      ...{ access_token: granted['access_token'], refresh_token: granted['refresh_token'] },
      ...{ obtained_ms: Date.now(), expires_ms: Date.now() + Number(granted['expires_in']) * 1_000 },
    }
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, JSON.stringify({ url: gateway.url, token_endpoint: `${gateway.url}/oauth/token`, tokens }))
  }

  /** As if an hour had passed on the machine of the person. */
  function pretendDue(): void {
    const kept = readKept(path)!
    writeFileSync(path, JSON.stringify({ ...kept, tokens: { ...kept.tokens, expires_ms: 1 } }))
  }
}

const count = ({ gateway }: SignInTest, key: string) =>
  gateway.post(
    '/v1/messages/count_tokens',
    { model: 'native-chat', messages: [{ role: 'user', content: 'hi' }] },
    { authorization: `Bearer ${key}`, 'x-api-key': '' },
  )

async function statusFor(signIn: SignInTest, key: string): Promise<number> {
  const answer = await count(signIn, key.trim())
  await answer.text()
  return answer.status
}

test('issue 47 a person signs in by a code: token prints a valid token, and logout ends it', async (t) => {
  const place = await start(t)
  await place.login()
  const printed = await place.command(['token'])
  assert.deepEqual([printed.code, printed.stderr], [0, ''])
  assert.match(printed.stdout, /^tri-at-[0-9A-Za-z]+\n$/)
  assert.equal(await statusFor(place, printed.stdout), 200)
  const out = await place.command(['logout'])
  assert.deepEqual([out.code, out.stderr], [0, ''])
  await until(async () => (await statusFor(place, printed.stdout)) === 401, 'the session has ended')
  assert.equal(existsSync(place.path), false)
})

test('issue 47 a person signs in with a browser of the same machine, and the code goes to loopback', async (t) => {
  const place = await start(t)
  const [program, note] = [join(place.state, 'browser'), join(place.state, 'asked')]
  writeFileSync(program, `#!/bin/sh\nprintf '%s' "$1" > '${note}.new'; mv '${note}.new' '${note}'\n`)
  chmodSync(program, 0o700)
  const env = { XDG_STATE_HOME: place.state, BROWSER: program }
  const running = runTriwire(t, ['login', place.gateway.url], place.state, env)
  await until(() => existsSync(note), 'the browser is opened')
  const browser = new TestBrowser()
  const end = await browser.press(await browser.go(readFileSync(note, 'utf8')), 'approve')
  assert.match(end.text, /You are signed in/)
  await running.said(/signed in at \S+/)
  assert.equal(await statusFor(place, (await place.command(['token'])).stdout), 200)
})

test('issue 47 eight concurrent agents cause one refresh, and all use its tokens', async (t) => {
  const place = await start(t)
  await place.signedIn()
  place.pretendDue()
  const all = await Promise.all(Array.from({ length: 8 }, () => place.command(['token'])))
  assert.equal(new Set(all.map(({ stdout }) => stdout)).size, 1)
  assert.deepEqual([all[0]!.code, await statusFor(place, all[0]!.stdout)], [0, 200])
  const [session] = await place.books.pageSessions({ limit: 1 })
  assert.equal(session?.generation, 1)
})

test('issue 47 after a lost response the old file gets the same session again, within the grace period and after it', async (t) => {
  const place = await start(t)
  await place.signedIn()
  place.pretendDue()
  const before = readFileSync(place.path, 'utf8')
  const first = await place.command(['token'])
  writeFileSync(place.path, before)
  assert.deepEqual(await place.command(['token']), first, 'killed before the write')
  writeFileSync(place.path, before)
  place.gateway.advance(600_000)
  const late = await place.command(['token'])
  assert.deepEqual([late.code, await statusFor(place, late.stdout)], [0, 200], 'the machine slept')
})

test('issue 47 a session that an operator ended: exit code 3, the reason, and no further request', async (t) => {
  const place = await start(t)
  await place.signedIn()
  const [session] = await place.books.pageSessions({ limit: 1 })
  await place.books.endSession({ id: session!.id }, 'ended')
  place.pretendDue()
  const { code, stdout, stderr } = await place.command(['token'])
  assert.deepEqual([code, stdout], [3, ''])
  assert.match(stderr, /^triwire: the sign-in at \S+ has ended \(.+\): run triwire login http\S+\n$/)
  assert.deepEqual(readKept(place.path)?.tokens, undefined)
})

test('issue 47 a person’s key for an agent works, is shown once, and ends with the person', async (t) => {
  const place = await start(t)
  await place.signedIn()
  const made = await place.command(['token', '--named', 'opencode', place.gateway.url])
  assert.equal(made.code, 0, made.stderr)
  assert.match(made.stdout, /^sk-tri-[0-9A-Za-z]+\n$/)
  assert.equal(await statusFor(place, made.stdout), 200)
  const setup = await place.command(['--json', 'setup', 'qwen-code', '--login', '--url', place.gateway.url])
  assert.equal(setup.code, 0, setup.stderr)
  const { sign_in: way, key } = JSON.parse(setup.stdout) as Record<string, string>
  assert.deepEqual([way, await statusFor(place, key!)], ['key', 200])
  const keys = await place.books.pageKeys({ limit: 10 })
  const labels = keys.map(({ label }) => label ?? '').filter((label) => label.startsWith('own: '))
  assert.deepEqual(labels.map((label) => label.split(' on ')[0]).sort(), ['own: opencode', 'own: qwen-code'])
  const { person } = keys.find(({ label }) => label === labels[0])!.bounds
  await place.books.erasePerson(person!)
  await until(async () => (await statusFor(place, made.stdout)) === 401, 'the key has ended')
})

test('issue 47 doctor needs no key for a signed-in person, and checks the sign-in as well', async (t) => {
  const place = await start(t)
  await place.signedIn()
  const { code, stdout, stderr } = await place.command([
    'doctor',
    '--base-url',
    place.gateway.url,
    '--model',
    'native-chat',
  ])
  assert.equal(code, 0, stdout + stderr)
  assert.match(stdout, /native-chat +chat +text +ok/)
  assert.match(stdout, /sign-in network +ok/)
  assert.match(stdout, /discovery +ok/)
})

test('issue 47 doctor finds nothing wrong with the gateway’s own sign-in', async (t) => {
  const place = await start(t)
  const { code, stdout } = await place.command(['doctor', '--sign-in', '--base-url', place.gateway.url])
  assert.equal(code, 0, stdout)
  assert.match(stdout, /all is well\n$/)
})
