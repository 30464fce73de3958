import assert from 'node:assert/strict'
import test from 'node:test'
import { apiKeyHeader, bearer, type CredentialHeaders } from '../../src/catalog/credentials.ts'
import { Secret } from '../../src/config/config.ts'
import { fixedKey } from '../../src/upstream/keyring.ts'
import { credentialOf, pathFor } from '../../src/upstream/target.ts'
import { modelOf } from '../native/models.ts'
import { upstreamAt } from '../support/upstream.ts'

const keyed = (key: string | undefined, keyHeader?: string) => {
  const account = key === undefined ? undefined : { name: 'a', key: new Secret(key), isEnabled: true }
  const upstream = upstreamAt('http://sim', { keyHeader })
  const paths = { path: '/a/m:whole', streamPath: '/a/m:streamed?alt=sse' }
  return { upstream, account, key: account && fixedKey(account), model: modelOf('chat'), ...paths, headers: [] }
}

const body = Buffer.from('{}')
const request = (credential: CredentialHeaders, isStream = false) => ({ headers: [], credential, body, isStream })

test('U14 the credential is the key of the account that pays, in the form of its wire', () => {
  assert.deepEqual(credentialOf(keyed('k-1'), request(bearer)), [['authorization', 'Bearer k-1']])
  assert.deepEqual(credentialOf(keyed('k-1'), request(apiKeyHeader)), [['x-api-key', 'k-1']])
})

test('U14 a credential may be several headers, and a signature covers the host, the requested path and the body', () => {
  const signed: CredentialHeaders = (key, parts) => [
    ['x-signed', `${key} ${parts.baseUrl} ${parts.path} ${parts.body}`],
    ['x-second', '2'],
  ]
  for (const [isStream, path] of [
    [false, '/a/m:whole'],
    [true, '/a/m:streamed?alt=sse'],
  ] as const) {
    assert.equal(pathFor(keyed('k-1'), { isStream }), path)
    assert.deepEqual(credentialOf(keyed('k-1'), request(signed, isStream)), [
      ['x-signed', `k-1 http://sim ${path} {}`],
      ['x-second', '2'],
    ])
  }
})

test('U14 an upstream without accounts, or an account without a key, is sent no credential', () => {
  for (const scheme of [bearer, apiKeyHeader]) {
    assert.deepEqual(credentialOf(keyed(undefined), request(scheme)), [])
    assert.deepEqual(credentialOf(keyed(''), request(scheme)), [])
  }
})

test('P8 N-F3 an upstream that names a header for its key gets it there on every wire, bare unless it is `authorization`', () => {
  for (const scheme of [bearer, apiKeyHeader]) {
    assert.deepEqual(credentialOf(keyed('k-1', 'api-key'), request(scheme)), [['api-key', 'k-1']])
    assert.deepEqual(credentialOf(keyed('k-1', 'authorization'), request(scheme)), [['authorization', 'Bearer k-1']])
  }
})
