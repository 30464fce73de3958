import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'node:test'
import { keepSigningKey, mintBearer, type SignableRequest, signRequest } from '../../src/clouds/sigv4.ts'

/* Expected values are botocore's and AWS's own generator's; `scripts/cloud-oracles.ts` compares 10,000 more. */

type Vector = {
  kind: 'signature' | 'bearer'
  host: string
  path: string
  headers: Record<string, string>
  body: string
  id: string
  secret: string
  token: string | null
  region: string
  service: string
  ms: number
  expected: string
}

const vectors = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/clouds/signatures.json'), 'utf8'),
) as Vector[]

test('clouds 1.2 requests are signed as botocore signs them: paths, queries, headers, tokens, empty and binary bodies', () => {
  const keys = keepSigningKey()
  for (const vector of vectors.filter(({ kind }) => kind === 'signature')) {
    const { host, path, headers, body, id, secret, token, region, service, ms, expected } = vector
    const request = {
      method: 'POST',
      host,
      path,
      headers: Object.entries(headers).flat(),
      body: Buffer.from(body, 'base64'),
    }
    const credentials = { id, secret, ...(token !== null && { token }) }
    for (const maker of [undefined, keys]) {
      const added = new Map(signRequest(request, credentials, { region, service }, ms, maker))
      assert.equal(added.get('authorization'), expected, path)
      assert.equal(added.get('x-amz-security-token'), token ?? undefined)
      assert.equal(added.get('x-amz-date'), `${new Date(ms).toISOString().replace(/[-:]/g, '').slice(0, 15)}Z`)
    }
  }
})

test('clouds 1.3 a bearer key equals the one that the generator of AWS makes', () => {
  for (const { id, secret, token, region, ms, expected } of vectors.filter(({ kind }) => kind === 'bearer'))
    assert.equal(mintBearer({ id, secret, ...(token !== null && { token }) }, region, ms), expected)
})

const plain: SignableRequest = {
  method: 'POST',
  host: 'bedrock-runtime.us-east-1.amazonaws.com',
  path: '/model/m/invoke?b=1&a=2',
  headers: ['content-type', 'application/json', 'x-amzn-trace', 'on', 'accept', '*/*', 'user-agent', 'x'],
  body: '{}',
}
const credentials = { id: 'AKID', secret: 'secret', token: 'token' }
const place = { region: 'us-east-1', service: 'bedrock' }
const nowMs = Date.UTC(2026, 10, 27)

test('clouds 1.2 a signature covers every part of a request except headers that a proxy may change', () => {
  const signatureOf = (more: Partial<SignableRequest>, secret = 'secret', at = nowMs, where = place) =>
    new Map(signRequest({ ...plain, ...more }, { ...credentials, secret }, where, at)).get('authorization')!
  const usual = signatureOf({})
  assert.match(usual, /SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amzn-trace, /)
  const [type, json, ...others] = plain.headers
  const changed = [
    signatureOf({ method: 'GET' }),
    signatureOf({ host: 'other' }),
    signatureOf({ path: '/model/n/invoke?b=1&a=2' }),
    signatureOf({ path: '/model/m/invoke?b=1&a=3' }),
    signatureOf({ body: '{ }' }),
    signatureOf({ headers: [type!, 'text/plain', ...others] }),
    signatureOf({ headers: [type!, json!, 'x-amzn-trace', 'off'] }),
    signatureOf({}, 'other'),
    signatureOf({}, 'secret', nowMs + 1_000),
    signatureOf({}, 'secret', nowMs, { ...place, region: 'eu-central-1' }),
    signatureOf({}, 'secret', nowMs, { ...place, service: 'bedrock-mantle' }),
  ]
  assert.equal(new Set([usual, ...changed]).size, changed.length + 1)
  const same = [
    signatureOf({ headers: ['user-agent', 'other', 'X-Amzn-Trace', '  on ', 'Content-Type', 'application/json'] }),
    signatureOf({ path: '/model/./m//invoke?a=2&b=1' }),
  ]
  assert.deepEqual(same, [usual, usual])
})

test('clouds 1.2 a cached signing key is used only for its secret, day and place', () => {
  const keys = keepSigningKey()
  assert.equal(keys('a', '20261127', place), keys('a', '20261127', place))
  const dayMs = 86_400_000
  for (const [secret, at, where] of [
    ['a', nowMs, place],
    ['b', nowMs, place],
    ['b', nowMs + dayMs, place],
    ['b', nowMs + dayMs, { ...place, service: 'sts' }],
    ['b', nowMs + dayMs, { ...place, region: 'eu-central-1' }],
    ['a', nowMs, place],
  ] as const)
    assert.deepEqual(
      signRequest(plain, { ...credentials, secret }, where, at, keys),
      signRequest(plain, { ...credentials, secret }, where, at),
    )
})
