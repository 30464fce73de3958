import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import type { ProbeFinding } from '../../src/cli/doctor/probe.ts'
import { checkSignIn } from '../../src/cli/doctor/sign-in.ts'
import { fileOf } from '../../src/cli/login/kept.ts'
import { createAuthority } from '../support/certificates.ts'
import { testFolder } from '../support/folder.ts'
import { startSignInServer } from '../support/sign-in-server.ts'
import { run, runWarm } from './run.ts'

const env = () => ({ HOME: testFolder('home'), XDG_STATE_HOME: testFolder('state') })
type Row = Pick<ProbeFinding, 'probe' | 'result' | 'note'>
const rowsOf = (json: unknown) =>
  (json as { findings: Row[] }).findings.map(({ probe, result, note }) => [probe, result, note])
const wellKnown = '/.well-known/oauth-authorization-server'

test('issue 47 doctor --sign-in needs no key and bills nothing: a correct gateway on loopback', async () => {
  const server = await startSignInServer()
  const { code, stdout, stderr } = await runWarm(['doctor', '--sign-in', '--base-url', server.url], { env: env() })
  assert.deepEqual([code, stderr], [0, ''])
  assert.match(stdout, /sign-in address +ok .* http on this machine\n/)
  assert.match(stdout, /sign-in network +ok .* 127\.0\.0\.1 is a private address: Claude Code signs in by itself\n/)
  assert.match(stdout, /discovery +ok .* its endpoints are of this origin\n/)
  assert.match(stdout, /clock +ok .* \d s from the gateway's\n\nall is well\n$/)
  assert.deepEqual(
    server.asked.map(({ path }) => path),
    [wellKnown],
  )
})

const own = (url: string) => ({
  device_authorization_endpoint: `${url}/d`,
  token_endpoint: `${url}/t`,
  revocation_endpoint: `${url}/r`,
})
const discoveries: [
  name: string,
  answer: (url: string) => { status: number; body?: unknown; headers?: Record<string, string> },
  note: RegExp,
][] = [
  ['404', () => ({ status: 404 }), /answers 404: is sign_in configured there/],
  ['a page', () => ({ status: 200, body: '<html>' }), /answers no JSON/],
  [
    'a redirect',
    () => ({ status: 301, headers: { location: 'https://other.test/x' } }),
    /redirects to https:\/\/other\.test: name that address/,
  ],
  [
    'nothing in it',
    () => ({ status: 200, body: {} }),
    /lacks device_authorization_endpoint, token_endpoint, revocation_endpoint/,
  ],
  [
    'another origin',
    (url) => ({ status: 200, body: { ...own(url), token_endpoint: 'https://other.test/t' } }),
    /token_endpoint is https:\/\/other\.test\/t, of another origin/,
  ],
]

for (const [name, answer, note] of discoveries)
  test(`issue 47 doctor --sign-in and the discovery: ${name}`, async () => {
    const server = await startSignInServer()
    server.script(wellKnown, answer(server.url))
    const { code, stdout } = await runWarm(['doctor', '--sign-in', '--base-url', server.url, '--json'], { env: env() })
    assert.equal(code, 1)
    const row = rowsOf(JSON.parse(stdout)).find(([probe]) => probe === 'discovery')!
    assert.equal(row[1], 'failed')
    assert.match(row[2]!, note)
  })

test('issue 47 doctor --sign-in: http to another machine, and a name that does not exist', async () => {
  const { code, stdout } = await runWarm(
    ['doctor', '--sign-in', '--base-url', 'http://gw.invalid', '--json', '--timeout', '2s'],
    { env: env() },
  )
  assert.equal(code, 1)
  const rows = rowsOf(JSON.parse(stdout))
  assert.deepEqual(rows[0], [
    'sign-in address',
    'failed',
    'clients send nothing over http to another machine: name an address with https',
  ])
  assert.deepEqual(rows[1]!.slice(0, 2), ['sign-in network', 'failed'])
  assert.match(rows[1]![2]!, /there is no such host/)
})

test('issue 47 doctor --sign-in: a public address is no fault, and its row says how Claude Code then signs in', async () => {
  const findings = await checkSignIn({ origin: 'https://203.0.113.5', timeoutMs: 1 })
  const { result, note } = findings.find(({ probe }) => probe === 'sign-in network')!
  assert.equal(result, 'none')
  assert.match(note, /^203\.0\.113\.5 is a public address: Claude Code refuses .*; triwire setup claude-code --login/)
})

test('issue 47 doctor --sign-in checks the address at which clients reach the gateway', async () => {
  const server = await startSignInServer()
  const cwd = testFolder('behind-a-proxy')
  writeFileSync(join(cwd, 'triwire.yaml'), JSON.stringify({ listen: '127.0.0.1:9', api_url: server.url }))
  const { code, json } = await runWarm(['doctor', '--sign-in', '--json'], { cwd, env: env() })
  assert.deepEqual([code, json['base_url']], [0, server.url])
})

test('issue 47 N-F4 doctor --sign-in reports a proxy variable that names no proxy', async () => {
  const asked = ['doctor', '--sign-in', '--base-url', 'https://203.0.113.5', '--json', '--timeout', '2s']
  const { stdout } = await runWarm(asked, { env: { ...env(), HTTPS_PROXY: 'http://proxy.example:port' } })
  for (const name of ['certificate', 'discovery']) {
    const row = rowsOf(JSON.parse(stdout)).find(([probe]) => probe === name)!
    assert.equal(row[1], 'failed')
    assert.match(row[2]!, /^the proxy of HTTPS_PROXY must be http:\/\/host:port/)
  }
})

const certificates = [
  ['trusted', 60, true, 'ok', /^trusted; it ends in 59 days$/],
  [
    'ends in two weeks',
    13,
    true,
    'failed',
    /^it ends in 12 days: when another one replaces it, Claude Code asks every person/,
  ],
  ['has ended', -1, true, 'failed', /its certificate has expired/],
  ['not trusted', 60, false, 'failed', /not trusted: name its authority in NODE_EXTRA_CA_CERTS/],
  ['for another host', 60, true, 'failed', /its certificate is for another host/],
] as const

for (const [name, days, isTrusted, result, note] of certificates)
  test(`issue 47 doctor --sign-in and a certificate: ${name}`, async () => {
    const authority = createAuthority()
    const server = await startSignInServer(
      authority.issue(name === 'for another host' ? 'gw.corp.test' : 'localhost', days),
    )
    const url = server.url.replace('127.0.0.1', 'localhost')
    const more: Record<string, string> = isTrusted ? { NODE_EXTRA_CA_CERTS: authority.caFile } : {}
    const { stdout } = await run(['--json', 'doctor', '--sign-in', '--base-url', url], { env: { ...env(), ...more } })
    const row = rowsOf(JSON.parse(stdout)).find(([probe]) => probe === 'certificate')!
    assert.equal(row[1], result)
    assert.match(row[2]!, note)
  })

test('issue 47 doctor --sign-in compares the certificate with the one that Claude Code trusts', async () => {
  const authority = createAuthority()
  const pair = authority.issue('localhost')
  const server = await startSignInServer(pair)
  const url = server.url.replace('127.0.0.1', 'localhost')
  const digest = new X509Certificate(pair.cert).fingerprint256.replaceAll(':', '').toLowerCase()
  for (const [pin, result] of [
    [digest, 'ok'],
    ['0'.repeat(64), 'failed'],
    [undefined, undefined],
  ] as const) {
    const place = env()
    mkdirSync(join(place.HOME, '.claude'))
    const trust = pin === undefined ? {} : { [new URL(url).host]: pin }
    writeFileSync(join(place.HOME, '.claude/.credentials.json'), JSON.stringify({ gatewayTrust: trust }))
    const more = { ...place, NODE_EXTRA_CA_CERTS: authority.caFile, CLAUDE_CONFIG_DIR: join(place.HOME, '.claude') }
    const { stdout } = await run(['--json', 'doctor', '--sign-in', '--base-url', url], { env: more })
    const row = rowsOf(JSON.parse(stdout)).find(([probe]) => probe === 'pinned certificate')
    assert.equal(row?.[1], result)
  }
})

test('issue 47 doctor --sign-in: clocks that differ by more than a minute', async () => {
  const server = await startSignInServer()
  for (const [aheadMs, result, note] of [
    [50_000, 'ok', /^(49|50|51) s from the gateway's$/],
    [312_000, 'failed', /^the clock of this machine is 31\d s ahead of the gateway's/],
    [-312_000, 'failed', /^the clock of this machine is 31\d s behind the gateway's/],
  ] as const) {
    const findings = await checkSignIn({ origin: server.url, timeoutMs: 5_000, nowMs: () => Date.now() + aheadMs })
    const row = findings.find(({ probe }) => probe === 'clock')!
    assert.equal(row.result, result, row.note)
    assert.match(row.note, note)
  }
})

test('issue 47 doctor asks with the token of a signed-in person', async () => {
  const server = await startSignInServer()
  const place = env()
  const folder = join(place.XDG_STATE_HOME, 'triwire/sign-ins')
  mkdirSync(folder, { recursive: true })
  const tokens = { access_token: 'tri-at-of-dev', obtained_ms: Date.now(), expires_ms: Date.now() + 3_600_000 }
  writeFileSync(
    fileOf(server.url, folder),
    JSON.stringify({ url: server.url, token_endpoint: `${server.url}/t`, tokens }),
  )
  await runWarm(['doctor', '--base-url', server.url], { env: place })
  const [list] = server.asked.filter(({ path }) => path === '/v1/models')
  assert.equal(list?.headers.authorization, 'Bearer tri-at-of-dev')
})
