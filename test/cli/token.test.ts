import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { readBearer } from '../../src/cli/login/bearer.ts'
import { fileOf, type KeptSignIn, readKept } from '../../src/cli/login/kept.ts'
import { tryLock } from '../../src/cli/login/lock.ts'
import { createAuthority } from '../support/certificates.ts'
import { startEgressProxy } from '../support/egress-proxy.ts'
import { testFolder } from '../support/folder.ts'
import { freePort } from '../support/listen.ts'
import { accessToken, refreshToken, type SignInServer, startSignInServer } from '../support/sign-in-server.ts'
import { until } from '../support/waiting.ts'

/* `triwire token` as agents run it: the launcher, in a process of its own. */

const bin = join(import.meta.dirname, '../../bin/triwire.mjs')

type Place = { state: string; path: string; server: SignInServer }
type Printed = { code: number | null; stdout: string; stderr: string }

/** A sign-in at a scripted gateway, with so much of its life left. */
async function signedIn(leftSeconds: number, change: Partial<KeptSignIn> = {}): Promise<Place> {
  const server = await startSignInServer()
  const state = testFolder('state')
  const folder = join(state, 'triwire/sign-ins')
  const path = fileOf(server.url, folder)
  mkdirSync(folder, { recursive: true })
  keep(path, server.url, leftSeconds, change)
  return { state, path, server }
}

function keep(path: string, url: string, leftSeconds: number, change: Partial<KeptSignIn> = {}): void {
  const expires_ms = Date.now() + leftSeconds * 1_000
  const tokens = {
    access_token: accessToken(1),
    refresh_token: refreshToken(1),
    ...{ obtained_ms: expires_ms - 3_600_000, expires_ms },
  }
  const kept = { url, token_endpoint: `${url}/oauth/token`, email: 'dev@corp.test', tokens, ...change }
  writeFileSync(path, JSON.stringify(kept), { mode: 0o600 })
}

function token(place: Pick<Place, 'state'>, args: readonly string[] = [], env: Record<string, string> = {}) {
  return triwire(place, ['token', ...args], env)
}

function triwire(
  { state }: Pick<Place, 'state'>,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Printed> {
  return new Promise((done) => {
    const options = { env: { ...process.env, XDG_STATE_HOME: state, ...env } }
    execFile(process.execPath, [bin, ...args], options, (error, stdout, stderr) =>
      done({ code: error ? Number(error.code) : 0, stdout, stderr }),
    )
  })
}

const printed = (generation: number): Printed => ({ code: 0, stdout: `${accessToken(generation)}\n`, stderr: '' })

test('issue 47 token prints only the token of the file while it is valid for five minutes or more', async () => {
  const place = await signedIn(310)
  assert.deepEqual(await token(place), printed(1))
  assert.deepEqual(await token(place, [place.server.url]), printed(1))
  assert.deepEqual(await token(place, [`${place.server.url}/v1/`]), printed(1))
  assert.equal(place.server.asked.length, 0)
})

test('issue 47 token refreshes when less time is left, as the protocol defines, into a file only its owner may read', async () => {
  const place = await signedIn(290)
  assert.deepEqual(await token(place), printed(2))
  const [{ form, headers }] = place.server.asked as [SignInServer['asked'][number]]
  assert.deepEqual(form, { grant_type: 'refresh_token', refresh_token: refreshToken(1) })
  assert.equal(headers['content-type'], 'application/x-www-form-urlencoded')
  assert.equal(headers['authorization'], undefined)
  assert.equal(statSync(place.path).mode & 0o777, 0o600)
  assert.equal(readKept(place.path)?.tokens?.refresh_token, refreshToken(2))
  assert.deepEqual(await token(place), printed(2))
  assert.equal(place.server.asked.length, 1)
  assert.deepEqual(readdirSync(join(place.path, '..')).length, 1, 'no lock and no unfinished file stay')
})

for (const leftSeconds of [200, -10])
  test(`issue 47 eight concurrent agents cause one refresh, and all are answered (${leftSeconds} s left)`, async () => {
    const place = await signedIn(leftSeconds)
    place.server.script('/oauth/token', () => {
      place.server.generation++
      return { status: 200, body: tokensOf(place.server) }
    })
    const all = await Promise.all(Array.from({ length: 8 }, () => token(place)))
    assert.equal(place.server.formsOf('/oauth/token').length, 1)
    // A process that began after the refresh reads the new token as well. One that waits long prints the old one while that is good.
    const allowed = leftSeconds > 0 ? [printed(1), printed(2)] : [printed(2)]
    for (const one of all)
      assert.ok(
        allowed.some((other) => isDeepStrictEqual(one, other)),
        JSON.stringify(one),
      )
    assert.ok(all.some((one) => isDeepStrictEqual(one, printed(2))))
  })

test('issue 47 a waiting process uses the new token, also if tokens live less than five minutes', async () => {
  const place = await signedIn(20)
  process.env['XDG_STATE_HOME'] = place.state
  // The lock is held by a process that lives, while this one waits for it.
  writeFileSync(`${place.path}.lock`, `${process.ppid} 1\n`)
  const bearer = readBearer(place.server.url, () => {})
  delete process.env['XDG_STATE_HOME']
  const tokens = { ...readKept(place.path)!.tokens!, access_token: accessToken(2) }
  writeFileSync(place.path, JSON.stringify({ ...readKept(place.path), tokens }))
  assert.equal(await bearer, accessToken(2))
  assert.equal(place.server.asked.length, 0)
})

function tokensOf({ generation, lifeSeconds }: SignInServer) {
  return {
    ...{ access_token: accessToken(generation), token_type: 'Bearer', expires_in: lifeSeconds },
    refresh_token: refreshToken(generation),
  }
}

/* Each row: how the gateway answers a refresh, the life that is left, and what the agent gets. */
const url = '{url}'
const refusals = {
  'the session has ended': {
    answers: [{ status: 401, body: { error: 'invalid_grant', error_description: 'revoked by an operator' } }],
    ...{
      leftSeconds: 100,
      code: 3,
      stderr: `the sign-in at ${url} has ended (revoked by an operator): run triwire login ${url}`,
    },
  },
  'the session has ended, as status 400': {
    answers: [{ status: 400, body: { error: 'invalid_grant' } }],
    ...{
      leftSeconds: -5,
      code: 3,
      stderr: `the sign-in at ${url} has ended (invalid_grant): run triwire login ${url}`,
    },
  },
  'the reason has control characters': {
    answers: [{ status: 400, body: { error: 'invalid_grant', error_description: 'a\u001b[2J\nb' } }],
    ...{ leftSeconds: -5, code: 3, stderr: `the sign-in at ${url} has ended (a [2J b): run triwire login ${url}` },
  },
  'a server that fails, and a token that still works': {
    answers: [{ status: 503 }],
    ...{ leftSeconds: 100, code: 0, stderr: undefined },
  },
  'a server that fails': {
    answers: [{ status: 503, body: '<html>' }],
    ...{ leftSeconds: -5, code: 1, stderr: `${url} gives no new token (status 503): try again` },
  },
  'a limit': {
    answers: [{ status: 429, body: { error: 'slow_down' } }],
    ...{ leftSeconds: -5, code: 1, stderr: `${url} gives no new token (status 429) (slow_down): try again` },
  },
  'a life that is no number': {
    answers: [{ status: 200, body: { access_token: 'x', expires_in: '3600' } }],
    ...{ leftSeconds: -5, code: 1, stderr: `${url} gives no new token (status 200): try again` },
  },
  'a token with a line break': {
    answers: [{ status: 200, body: { access_token: 'x\ny', expires_in: 3600 } }],
    ...{ leftSeconds: -5, code: 1, stderr: `${url} gives no new token (status 200): try again` },
  },
  'a redirect': {
    answers: [{ status: 307, headers: { location: 'http://127.0.0.1:1/' } }],
    ...{ leftSeconds: -5, code: 1, stderr: `${url} gives no new token (status 307): try again` },
  },
}

for (const [name, { answers, leftSeconds, code, stderr }] of Object.entries(refusals))
  test(`issue 47 token and a refresh that is refused: ${name}`, async () => {
    const place = await signedIn(leftSeconds)
    place.server.script('/oauth/token', ...answers)
    const said = await token(place)
    const line = stderr === undefined ? '' : `triwire: ${stderr.replaceAll(url, place.server.url)}\n`
    assert.deepEqual(said, { code, stdout: code === 0 ? `${accessToken(1)}\n` : '', stderr: line })
    // Only an ending is remembered. Then no server is asked again, and no token is on the disk.
    const kept = readKept(place.path)!
    assert.equal(kept.tokens === undefined, code === 3)
    place.server.asked.length = 0
    if (code === 3) assert.deepEqual([await token(place), place.server.asked.length], [said, 0])
  })

test('issue 47 a broken connection is retried once immediately, and meanwhile the gateway accepts the old token', async () => {
  const place = await signedIn(-5)
  let count = 0
  place.server.script('/oauth/token', () => {
    if (count++ === 0) {
      place.server.generation++
      return { status: 200, hangsUp: true }
    }
    return { status: 200, body: tokensOf(place.server) }
  })
  assert.deepEqual(await token(place), printed(2))
  assert.deepEqual(
    place.server.formsOf('/oauth/token').map((form) => form['refresh_token']),
    [refreshToken(1), refreshToken(1)],
  )
})

test('issue 47 a gateway that restarts is asked once more immediately', async () => {
  const place = await signedIn(-5)
  place.server.script('/oauth/token', { status: 503 }, (form) => refreshed(place.server, form))
  assert.deepEqual(await token(place), printed(2))
  assert.equal(place.server.formsOf('/oauth/token').length, 2)
})

test('issue 47 an unreachable gateway is reported as a fault, and not as a missing sign-in', async () => {
  const port = await freePort()
  const gone = `http://127.0.0.1:${port}`
  const place = await signedIn(-5)
  const path = fileOf(gone, join(place.path, '..'))
  keep(path, gone, -5)
  const { code, stdout, stderr } = await token(place, [gone])
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(
    stderr,
    /^triwire: http:\/\/127\.0\.0\.1:\d+ cannot be reached: nothing listens there \(ECONNREFUSED\)\n$/,
  )
})

test('issue 47 kill -9 between the response to a refresh and its write loses nothing', async (t) => {
  const place = await signedIn(-5)
  let killed: ChildProcess | undefined
  place.server.script('/oauth/token', (form) => {
    if (killed) return refreshed(place.server, form)
    killed = running
    const answer = refreshed(place.server, form)
    running.kill('SIGKILL')
    return answer
  })
  const running = start(t, place)
  await until(() => running.signalCode === 'SIGKILL', 'it is killed')
  assert.equal(existsSync(`${place.path}.lock`), true)
  assert.equal(readKept(place.path)?.tokens?.refresh_token, refreshToken(1))
  assert.deepEqual(await Promise.all([token(place), token(place)]), [printed(2), printed(2)])
  assert.equal(place.server.formsOf('/oauth/token').length, 2)
  assert.equal(existsSync(`${place.path}.lock`), false)
})

function refreshed(server: SignInServer, { refresh_token: asked }: Record<string, string>) {
  if (asked === refreshToken(server.generation)) server.generation++
  return { status: 200, body: tokensOf(server) }
}

function start(t: TestContext, { state }: Place): ChildProcess {
  const child = spawn(process.execPath, [bin, 'token'], {
    env: { ...process.env, XDG_STATE_HOME: state },
    stdio: 'ignore',
  })
  t.after(() => child.kill('SIGKILL'))
  return child
}

test('issue 47 a lock left by an ended process or another container is removed', async () => {
  for (const left of ['4194303 1\n', '']) {
    const place = await signedIn(-5)
    writeFileSync(`${place.path}.lock`, left)
    const { utimesSync } = await import('node:fs')
    if (left === '') utimesSync(`${place.path}.lock`, 1, 1)
    assert.deepEqual(await token(place), printed(2), left)
  }
})

test('issue 47 a lock with this process’s own number is from an earlier process, as in a restarted container', () => {
  const path = join(testFolder('lock'), 'x.lock')
  writeFileSync(path, `${process.pid} 1\n`)
  assert.equal(tryLock(path), undefined)
  const release = tryLock(path)
  assert.ok(release)
  writeFileSync(path, '1 1\n')
  release()
  assert.equal(readFileSync(path, 'utf8'), '1 1\n', 'the lock of another process stays')
})

test('issue 47 while another process holds the lock, a valid token is printed soon; otherwise the command names that process', async () => {
  for (const [leftSeconds, code] of [
    [100, 0],
    [-5, 1],
  ] as const) {
    const place = await signedIn(leftSeconds)
    writeFileSync(`${place.path}.lock`, `${process.pid} 1\n`)
    const said = await token(place)
    assert.deepEqual(
      [said.code, said.stderr],
      [code, code === 0 ? '' : `triwire: ${place.server.url} gave no new token in time: try again\n`],
    )
    assert.equal(place.server.asked.length, 0)
  }
})

test('issue 47 a file that is damaged, unreadable or without a sign-in: one line with the cure', async () => {
  const nobody = { state: testFolder('state') }
  assert.deepEqual(await token(nobody), {
    ...{ code: 3, stdout: '' },
    stderr: 'triwire: nobody is signed in on this machine: run triwire login URL, with the address of your gateway\n',
  })
  assert.match((await token(nobody, ['http://gw.corp.test'])).stderr, /must be https/)
  const place = await signedIn(310)
  for (const text of [
    '',
    '{',
    '[]',
    'null',
    '{"url":"x"}',
    readFileSync(place.path, 'utf8').replace('tri-at', 'a\\nb'),
  ]) {
    writeFileSync(place.path, text)
    const said = await token(place, [place.server.url])
    assert.deepEqual([said.code, said.stdout], [3, ''], text)
    assert.equal(
      said.stderr,
      `triwire: ${place.path} is damaged: sign in again with triwire login ${place.server.url}\n`,
    )
  }
  rmSync(place.path)
  mkdirSync(place.path)
  const folder = await token(place, [place.server.url])
  assert.deepEqual([folder.code, folder.stderr], [1, `triwire: cannot read ${place.path}: it is a folder (EISDIR)\n`])
})

test('issue 47 a folder that cannot be written: no refresh is requested, because its tokens would be lost', async () => {
  for (const [leftSeconds, code] of [
    [100, 0],
    [-5, 1],
  ] as const) {
    const place = await signedIn(leftSeconds)
    // A folder in the place of the unfinished file stands for all faults: even root cannot write there.
    mkdirSync(`${place.path}.new/x`, { recursive: true })
    const { stderr, ...said } = await token(place)
    assert.deepEqual(said, { code, stdout: code === 0 ? `${accessToken(1)}\n` : '' })
    assert.match(stderr, /^triwire: cannot write .*\.json\.new: .*\n$/)
    assert.equal(place.server.asked.length, 0)
  }
})

test('issue 47 a full disk: each line names the cause, no refresh is requested, and no file is left', async () => {
  for (const [leftSeconds, code] of [
    [100, 0],
    [-5, 1],
  ] as const) {
    const place = await signedIn(leftSeconds)
    const tryOnce = () =>
      new Promise<Printed>((done) => {
        // A limit of the process stands for the disk: a write fails, though a file can be made.
        const line = `trap '' XFSZ; ulimit -f 0; exec '${process.execPath}' '${bin}' token`
        execFile(
          'sh',
          ['-c', line],
          { env: { ...process.env, XDG_STATE_HOME: place.state } },
          (error, stdout, stderr) => done({ code: error ? Number(error.code) : 0, stdout, stderr }),
        )
      })
    for (let n = 0; n < 2; n++) {
      const { stderr, ...said } = await tryOnce()
      assert.deepEqual(said, { code, stdout: code === 0 ? `${accessToken(1)}\n` : '' })
      assert.match(stderr, /^triwire: cannot write .*: .*EFBIG.*\n$/)
    }
    assert.deepEqual([place.server.asked.length, readdirSync(join(place.path, '..')).length], [0, 1])
  }
})

test('issue 47 several gateways: one must be named, and each has its own token', async () => {
  const place = await signedIn(310)
  const other = await startSignInServer()
  keep(fileOf(other.url, join(place.path, '..')), other.url, -5)
  const said = await token(place)
  assert.equal(said.code, 3)
  assert.match(
    said.stderr,
    /^triwire: there are sign-ins at http:\S+ and http:\S+: name one of them, or remove one with triwire logout URL\n$/,
  )
  assert.deepEqual(await token(place, [other.url]), printed(2))
  assert.deepEqual(await token(place, [place.server.url]), printed(1))
})

test('issue 47 a sign-in that has ended still counts, so its agent never gets the token of another; the line says how to remove it', async () => {
  const place = await signedIn(310)
  const folder = join(place.path, '..')
  keep(fileOf('https://a.example', folder), 'https://a.example', 0, { tokens: undefined, ended: '' })
  const ranOut = { access_token: accessToken(1), obtained_ms: 0, expires_ms: 1 }
  keep(fileOf('https://b.example', folder), 'https://b.example', 0, { tokens: ranOut })
  const said = await token(place)
  assert.equal(said.code, 3)
  const sites = 'http://127\\S+ and https://a\\.example \\(ended\\) and https://b\\.example \\(ended\\)'
  assert.match(
    said.stderr,
    RegExp(`^triwire: there are sign-ins at ${sites}: name one of them, or remove one with triwire logout URL\n$`),
  )
  for (const site of ['https://a.example', 'https://b.example']) {
    const out = await triwire(place, ['logout', site])
    assert.deepEqual([out.code, out.stdout], [0, `signed out at ${site}\n`])
  }
  assert.deepEqual(await token(place), printed(1))
})

test('issue 47 token refreshes through the proxy of the environment, and trusts the file of NODE_EXTRA_CA_CERTS', async () => {
  const authority = createAuthority()
  const server = await startSignInServer(authority.issue('gw.corp.test'))
  const proxy = await startEgressProxy({ 'gw.corp.test:443': new URL(server.url).host })
  const state = testFolder('state')
  const folder = join(state, 'triwire/sign-ins')
  mkdirSync(folder, { recursive: true })
  const url = 'https://gw.corp.test'
  keep(fileOf(url, folder), url, -5)
  const env = { HTTPS_PROXY: proxy.url, NODE_EXTRA_CA_CERTS: authority.caFile }
  const distrusted = await token({ state }, [], { HTTPS_PROXY: proxy.url })
  assert.deepEqual([distrusted.code, distrusted.stdout], [1, ''])
  assert.match(
    distrusted.stderr,
    /^triwire: https:\/\/gw\.corp\.test cannot be reached: its certificate is not trusted: .*NODE_EXTRA_CA_CERTS.*\n$/,
  )
  assert.deepEqual(await token({ state }, ['gw.corp.test'], env), printed(2))
  assert.ok(proxy.asked.every((line) => line === 'CONNECT gw.corp.test:443') && proxy.asked.length > 0)
})

test('issue 47 a token without a refresh token works until its end; then the person must sign in', async () => {
  const tokens = (leftSeconds: number) => ({
    ...{ access_token: accessToken(1), obtained_ms: Date.now() - 1, expires_ms: Date.now() + leftSeconds * 1_000 },
  })
  const place = await signedIn(10, { tokens: tokens(10) })
  assert.deepEqual(await token(place), printed(1))
  keep(place.path, place.server.url, 0, { tokens: tokens(-1) })
  const said = await token(place)
  assert.equal(said.code, 3)
  assert.match(said.stderr, /has run out: run triwire login http/)
})

test('issue 47 a clock that is set back does not extend the life of a token', async () => {
  const place = await signedIn(100_000)
  assert.deepEqual(await token(place), printed(2))
})
