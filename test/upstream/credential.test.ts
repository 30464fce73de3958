import assert from 'node:assert/strict'
import test from 'node:test'
import { Secret, type Upstream } from '../../src/config/config.ts'
import { credentialOf } from '../../src/upstream/credential.ts'
import { modelOf } from '../native/models.ts'

const upstream: Upstream = {
  name: 'sim',
  baseUrl: 'http://sim',
  accounts: [],
  messagesHeaders: 'anthropic',
  headers: new Map(),
}
const keyed = (key: string | undefined) => {
  const account = key === undefined ? undefined : { name: 'a', key: new Secret(key), isEnabled: true }
  return { upstream, account, model: modelOf('chat'), headers: [] }
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
