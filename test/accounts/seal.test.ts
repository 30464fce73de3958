import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import test from 'node:test'
import { createSealer, scopeKey } from '../../src/accounts/seal.ts'

const sealer = createSealer(Buffer.alloc(32, 7))
const sealed = { wire: 'messages', kind: 'thinking', signature: 'canary-signature' } as never

test('T7 an envelope opens only for its account and model', () => {
  const envelope = sealer.seal(sealed, 'acct_1', 'model-1')
  assert.match(envelope, /^tw1\.[A-Za-z0-9_-]+$/)
  assert.doesNotMatch(Buffer.from(envelope.slice(4), 'base64url').toString('latin1'), /canary/)
  assert.deepEqual(sealer.unseal(envelope, 'acct_1', 'model-1'), sealed)
  assert.equal(sealer.unseal(envelope, 'acct_2', 'model-1'), undefined)
  assert.equal(sealer.unseal(envelope, 'acct_1', 'model-2'), undefined)
  assert.equal(createSealer(Buffer.alloc(32, 8)).unseal(envelope, 'acct_1', 'model-1'), undefined)
  // The separator between the two names keeps one pair from passing for another.
  assert.equal(sealer.unseal(sealer.seal(sealed, 'a', 'bc'), 'ab', 'c'), undefined)
})

test('T7 two envelopes of one signature differ, and changing any byte makes one unreadable', () => {
  const envelope = sealer.seal(sealed, 'acct_1', 'model-1')
  assert.notEqual(sealer.seal(sealed, 'acct_1', 'model-1'), envelope)
  const bytes = Buffer.from(envelope.slice(4), 'base64url')
  for (const at of bytes.keys()) {
    const changed = Buffer.from(bytes)
    changed[at]! ^= 1
    assert.equal(sealer.unseal(`tw1.${changed.toString('base64url')}`, 'acct_1', 'model-1'), undefined, `byte ${at}`)
  }
})

test('T7 a text that is not an envelope, or only the beginning of one, is treated as absent', () => {
  const envelope = sealer.seal(sealed, 'acct_1', 'model-1')
  for (const text of ['', 'tw1.', envelope.slice(4), `x${envelope}`, envelope.slice(0, 40), envelope.slice(0, 44)]) {
    assert.equal(sealer.unseal(text, 'acct_1', 'model-1'), undefined, text)
  }
  assert.equal(sealer.isOurs(envelope), true)
  assert.equal(sealer.isOurs(`x${envelope}tw1.`), false)
})

test('P6 R-CACHE a conversation key is scoped by the account, in 63 hex characters', () => {
  const digest = createHmac('sha256', 'acct_1').update('canary-key').digest('hex')
  assert.equal(scopeKey('acct_1', 'canary-key'), digest.slice(0, 63))
  assert.notEqual(scopeKey('acct_2', 'canary-key'), scopeKey('acct_1', 'canary-key'))
})
