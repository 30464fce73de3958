import assert from 'node:assert/strict'
import test from 'node:test'
import { Secret } from '../../src/config/config.ts'
import { credentialOf } from '../../src/upstream/credential.ts'
import { fixedKey } from '../../src/upstream/keyring.ts'
import { modelOf } from '../native/models.ts'
import { upstreamAt } from '../support/upstream.ts'

const keyed = (key: string | undefined, keyHeader?: string) => {
  const account = key === undefined ? undefined : { name: 'a', key: new Secret(key), isEnabled: true }
  const upstream = upstreamAt('http://sim', { keyHeader })
  return { upstream, account, key: account && fixedKey(account), model: modelOf('chat'), path: '/', headers: [] }
}

test('U14 the credential is the key of the account that pays, spelled as its wire does', () => {
  assert.deepEqual(credentialOf(keyed('k-1'), 'bearer'), ['authorization', 'Bearer k-1'])
  assert.deepEqual(credentialOf(keyed('k-1'), 'x-api-key'), ['x-api-key', 'k-1'])
})

test('U14 an upstream without accounts, or an account without a key, is sent no credential', () => {
  for (const scheme of ['bearer', 'x-api-key'] as const) {
    assert.equal(credentialOf(keyed(undefined), scheme), undefined)
    assert.equal(credentialOf(keyed(''), scheme), undefined)
  }
})

test('P8 N-F3 an upstream that names a header for its key is sent it there, whatever the wire, and bare unless it is `authorization`', () => {
  for (const scheme of ['bearer', 'x-api-key'] as const) {
    assert.deepEqual(credentialOf(keyed('k-1', 'api-key'), scheme), ['api-key', 'k-1'])
    assert.deepEqual(credentialOf(keyed('k-1', 'authorization'), scheme), ['authorization', 'Bearer k-1'])
  }
})
