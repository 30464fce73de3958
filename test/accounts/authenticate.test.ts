import assert from 'node:assert/strict'
import test from 'node:test'
import type { Account, ApiKey, Directory } from '../../src/accounts/account.ts'
import { authenticate } from '../../src/accounts/authenticate.ts'
import { createKey } from '../../src/accounts/keys.ts'

const account: Account = { id: 'acct_1', name: 'one', state: 'active', balanceNanos: 1n, heldNanos: 0n, running: 0 }
const first = createKey()
const second = createKey()
const unknown = createKey()
const known = new Map<string, ApiKey>([
  [first.digest, { id: 'key_1', prefix: first.prefix, account, expiresMs: undefined }],
  [second.digest, { id: 'key_2', prefix: second.prefix, account, expiresMs: 1_000 }],
])
const directory: Directory = { findKey: (digest) => known.get(digest), touch: () => {} }

test('R7 Bearer, its scheme in any case, and x-api-key are read on every wire', () => {
  assert.equal(read({ authorization: `Bearer ${first.key}` }), 'key_1')
  assert.equal(read({ authorization: `bEARER  ${first.key} ` }), 'key_1')
  assert.equal(read({ xApiKey: first.key }), 'key_1')
})

test('R7 of two headers the first valid key is the principal', () => {
  assert.equal(read({ authorization: `Bearer ${first.key}`, xApiKey: second.key }), 'key_1')
  assert.equal(read({ authorization: `Bearer ${second.key}`, xApiKey: first.key }), 'key_2')
  assert.equal(read({ authorization: `Bearer ${unknown.key}`, xApiKey: first.key }), 'key_1')
  assert.equal(read({ authorization: 'Bearer none', xApiKey: second.key }), 'key_2')
})

test('R7 two bad credentials are one failure', () => {
  assert.equal(read({ authorization: `Bearer ${unknown.key}`, xApiKey: 'x' }), 'invalid')
})

test('spec 5 missing, malformed and unknown keys are told apart from valid ones only', () => {
  assert.equal(read({}), 'missing')
  assert.equal(read({ authorization: '', xApiKey: '' }), 'missing')
  for (const authorization of ['Bearer', 'Bearer ', first.key, `Basic ${first.key}`, `Bearer ${first.key} x`]) {
    assert.equal(read({ authorization }), 'invalid', authorization)
  }
})

test('a rotated key is good until its grace ends', () => {
  assert.equal(read({ xApiKey: second.key }, 1_000), 'key_2')
  assert.equal(read({ xApiKey: second.key }, 1_001), 'invalid')
})

test('R7 a valid key of a suspended account is the principal: its state is the next check', () => {
  account.state = 'suspended'
  assert.equal(read({ xApiKey: first.key }), 'key_1')
  account.state = 'active'
})

function read(credentials: { authorization?: string; xApiKey?: string }, nowMs = 0): string {
  const result = authenticate(directory, credentials, nowMs)
  return typeof result === 'string' ? result : result.key.id
}
