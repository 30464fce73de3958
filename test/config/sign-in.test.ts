import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import type { Config } from '../../src/config/config.ts'
import { keepFixed, needsRestart } from '../../src/config/differences.ts'
import { loadText } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { createAuthority } from '../support/certificates.ts'
import { testFolder } from '../support/folder.ts'

const rule = { groups: ['dev'], account: 'acme' }
const signIn = { issuer: 'https://login.example', client_id: 'triwire', rules: [rule] }
const base = { api_url: 'https://llm.example', sign_in: signIn }

const load = (file: object, options = {}): Config => loadText(JSON.stringify(file), 'a file', options, {})

function mistakes(file: object): readonly string[] {
  try {
    load(file)
    return []
  } catch (error) {
    assert.ok(error instanceof ConfigError, `${error}`)
    return error.problems.map(({ message }) => message)
  }
}

test('Y19 sign_in and own_pages are off by default, and their defaults are those of the reference', () => {
  const { signIn: none, ownPages } = load({})
  assert.deepEqual([none, ownPages], [undefined, false])
  const { signIn: settings } = load(base)
  const day = 86_400_000
  assert.deepEqual(settings, {
    issuer: 'https://login.example',
    clientId: 'triwire',
    clientSecret: undefined,
    ...{ proxy: undefined, ca: undefined },
    groupsClaim: 'groups',
    rules: [
      {
        groups: ['dev'],
        emailDomains: undefined,
        account: 'acme',
        role: 'member',
        models: undefined,
        budget: undefined,
        requestsPerMinute: undefined,
      },
    ],
    offlineMs: day / 3,
    accessMs: day / 24,
    idleMs: 30 * day,
    absoluteMs: 90 * day,
    limits: { codes: 60, grants: 300 },
    showBalance: false,
  })
})

test('Y20 a rule has bounds, with the same names as those of keys', () => {
  const { signIn: settings } = load({
    ...base,
    sign_in: {
      ...signIn,
      rules: [
        { email_domains: ['Example.COM'], role: 'admin', models: ['large', 'small-*'] },
        { ...rule, models: 'large,small-*', budget: '12.5/month', requests_per_minute: 30, role: 'lead' },
      ],
    },
  })
  const [operator, lead] = settings!.rules
  assert.deepEqual([operator?.emailDomains, operator?.account], [['example.com'], undefined])
  assert.deepEqual(operator?.models, ['large', 'small-*'])
  const { models, budget, requestsPerMinute } = lead!
  assert.deepEqual(
    { models, budget, requestsPerMinute },
    { models: ['large', 'small-*'], budget: { nanos: 12_500_000_000n, per: 'month' }, requestsPerMinute: 30 },
  )
})

test('Y19 mistakes in sign_in name the field and the cure', () => {
  const withRule = (more: object) => ({ ...base, sign_in: { ...signIn, rules: [{ ...rule, ...more }] } })
  const cases: readonly (readonly [object, ...RegExp[]])[] = [
    [base],
    [{ ...base, own_pages: true }],
    [{ sign_in: signIn }],
    [{ listen: '0.0.0.0:8080', sign_in: signIn }, /^api_url is needed with `sign_in`/],
    [{ listen: '0.0.0.0:8080', own_pages: true }, /^api_url is needed/],
    [{ api_url: 'http://llm.example', own_pages: true }, /^api_url must begin with https:\/\//],
    [{ api_url: 'http://10.0.0.7:8080', sign_in: signIn }, /^api_url must begin with https:\/\//],
    ...['127.0.0.1:8080', 'localhost:8080', '[::1]:8080'].map(
      (host) => [{ api_url: `http://${host}`, sign_in: { ...signIn, issuer: `http://${host}/idp` } }] as const,
    ),
    ...['http://login.example', 'http://10.0.0.7', 'http://127.0.0.1.example'].map(
      (issuer) => [{ ...base, sign_in: { ...signIn, issuer } }, /^sign_in.issuer must begin with https/] as const,
    ),
    ...['login.example', 'https://a:b@login.example', 'https://login.example?a', 'ftp://x'].map(
      (issuer) => [{ ...base, sign_in: { ...signIn, issuer } }, /^sign_in.issuer must be the https:\/\/ URL/] as const,
    ),
    [{ ...base, sign_in: { ...signIn, rules: [] } }, /^sign_in.rules must have a rule/],
    [{ ...base, sign_in: { client_id: 'a', rules: [rule] } }, /^sign_in.issuer is missing/],
    [
      { ...base, sign_in: { ...signIn, rules: [{ account: 'a' }] } },
      /rules\[0\] must have `groups` or `email_domains`/,
    ],
    [withRule({ account: undefined }), /rules\[0\].account is missing: it must name the account/],
    [withRule({ account: undefined, role: 'lead' }), /rules\[0\].account is missing/],
    [withRule({ account: undefined, role: 'finance' })],
    [withRule({ role: 'owner' }), /rules\[0\].role must be one of: admin, finance, viewer, lead, member/],
    [withRule({ budget: '5/year' }), /rules\[0\].budget must be a text such as "50\/month"/],
    [withRule({ budget: 5 }), /rules\[0\].budget must be a text/],
    [withRule({ models: '*a' }), /rules\[0\].models must be a text such as .*stands at the end only/],
    [withRule({ models: 5 }), /rules\[0\].models must be a list of ids/],
    [withRule({ models: [] }), /rules\[0\].models must be a list of ids/],
    [withRule({ models: ['a b'] }), /rules\[0\].models must be .*no blanks/],
    [withRule({ requests_per_minute: 0 }), /rules\[0\].requests_per_minute must be/],
    [withRule({ requests_per_minute: 2 ** 31 }), /requests_per_minute must be a whole number from 1 to 1000000/],
    [withRule({ groups: [] }), /rules\[0\].groups must name one/],
    [withRule({ email_domains: ['@a.example'] }), /email_domains\[0\] must be the part after the @/],
    [{ ...base, sign_in: { ...signIn, client_secret: 'a', client_secret_file: 'b' } }, /set one of them/],
    [{ ...base, sign_in: { ...signIn, client_secret_file: 'missing' } }, /client_secret_file names a file that cannot/],
    [{ ...base, sign_in: { ...signIn, ca_file: 'missing' } }, /^sign_in.ca_file names a file that cannot/],
    [{ ...base, sign_in: { ...signIn, proxy: 'proxy.example/x' } }, /^sign_in.proxy must be http:\/\/host:port/],
    [{ ...base, sign_in: { ...signIn, access: '5m' } }, /^sign_in.access must be a duration of 6m to 24h/],
    [{ ...base, sign_in: { ...signIn, access: '2h', idle: '1h' } }, /^sign_in.idle must be longer than `access`/],
    [{ ...base, sign_in: { ...signIn, absolute: '2d' } }, /^sign_in.absolute must not be shorter than `idle`/],
    [{ ...base, sign_in: { ...signIn, limits: { codes: 0 } } }, /^sign_in.limits.codes must be/],
    [{ ...base, sign_in: { ...signIn, scope: 'a' } }, /^sign_in.scope is not a known key/],
  ]
  for (const [file, ...expected] of cases) {
    const told = mistakes(file)
    assert.equal(told.length, expected.length, `${JSON.stringify(file)}: ${told}`)
    for (const [at, one] of expected.entries()) assert.match(told[at]!, one)
  }
})

test('Y19 the secret may come from a file, is never printed, and commands without it still load', () => {
  const folder = testFolder('sign-in')
  const file = join(folder, 'secret')
  writeFileSync(file, 'a-client-secret\n')
  const written = { ...base, sign_in: { ...signIn, client_secret_file: file } }
  const { signIn: settings } = load(written)
  assert.equal(settings?.clientSecret?.reveal(), 'a-client-secret')
  assert.equal(JSON.stringify(settings).includes('a-client'), false)
  const unset = { ...base, sign_in: { ...signIn, client_secret: `\${NOT_SET}` } }
  assert.equal(mistakes(unset).length, 1)
  assert.equal(load(unset, { isWithoutKeys: true }).signIn?.issuer, 'https://login.example')
})

test('Y19 rules and limits change with a reload, the provider with a restart', () => {
  const before = load(base)
  const changes: readonly (readonly [object, string[]])[] = [
    [{ rules: [{ ...rule, account: 'other' }], access: '30m', limits: { codes: 2 } }, []],
    [{ issuer: 'https://other.example' }, ['sign_in']],
    [{ client_id: 'other' }, ['sign_in']],
    [{ client_secret: 'a secret' }, ['sign_in']],
    [{ groups_claim: 'roles' }, ['sign_in']],
    [{ proxy: 'none' }, ['sign_in']],
    [{ proxy: 'http://proxy.example:3128' }, ['sign_in']],
  ]
  for (const [more, expected] of changes) {
    const next = load({ ...base, sign_in: { ...signIn, ...more } })
    assert.deepEqual(needsRestart(before, next), expected)
    const kept = keepFixed(next, before)
    assert.deepEqual(kept.signIn, expected.length > 0 ? before.signIn : next.signIn)
    assert.deepEqual(needsRestart(before, kept), [])
  }
  const without = load({ api_url: base.api_url })
  for (const [first, next] of [
    [before, without],
    [without, before],
  ] as const) {
    assert.deepEqual(needsRestart(first, next), ['sign_in'])
    assert.deepEqual(keepFixed(next, first).signIn, first.signIn, 'sign_in is added and removed by a restart')
  }
  assert.deepEqual(needsRestart(before, load({ ...base, own_pages: true })), [])
})

test('Y27 the provider is reached through its own proxy and with its own certificates', () => {
  const folder = testFolder('sign-in-reach')
  const { ca } = createAuthority()
  writeFileSync(join(folder, 'ca.pem'), ca)
  const written = (more: object) => load({ ...base, sign_in: { ...signIn, ...more } }).signIn!
  const far = written({ proxy: 'http://user:canary-pw@proxy.example:3128', ca_file: join(folder, 'ca.pem') })
  assert.equal(far.ca, ca)
  assert.equal(typeof far.proxy === 'object' && far.proxy.reveal(), 'http://user:canary-pw@proxy.example:3128')
  assert.doesNotMatch(JSON.stringify(far), /canary-pw/)
  assert.equal(written({ proxy: 'none' }).proxy, 'none')
  writeFileSync(join(folder, 'key.pem'), 'not one')
  assert.match(
    mistakes({ ...base, sign_in: { ...signIn, ca_file: join(folder, 'key.pem') } })[0]!,
    /ca_file must hold certificates/,
  )
})
