import assert from 'node:assert/strict'
import test from 'node:test'
import { type Account, type ApiKey, authenticate, type Directory } from '../../src/accounts/account.ts'
import { createKey } from '../../src/accounts/keys.ts'

const account: Account = { id: 'acct_1', name: 'one', state: 'active' }
const first = createKey()
const second = createKey()
const unknown = createKey()
const known = new Map<string, ApiKey>([
  [first.digest, { id: 'key_1', prefix: first.prefix, account, expiresMs: undefined }],
  [second.digest, { id: 'key_2', prefix: second.prefix, account, expiresMs: 1_000 }],
])
const findKnownKey = (digest: string) => known.get(digest)
const nothing = { findKnownAccount: () => undefined, listKnownKeys: () => [], listKnown: () => [], touch: () => {} }
const directory: Directory = { findKnownKey, findKey: async (digest) => findKnownKey(digest), ...nothing }

test('R7 Bearer, its scheme in any case, and x-api-key are read on every wire', async () => {
  assert.equal(await read({ authorization: `Bearer ${first.key}` }), 'key_1')
  assert.equal(await read({ authorization: `bEARER  ${first.key} ` }), 'key_1')
  assert.equal(await read({ xApiKey: first.key }), 'key_1')
})

test('R7 if two headers have keys, the first valid key is the principal', async () => {
  assert.equal(await read({ authorization: `Bearer ${first.key}`, xApiKey: second.key }), 'key_1')
  assert.equal(await read({ authorization: `Bearer ${second.key}`, xApiKey: first.key }), 'key_2')
  assert.equal(await read({ authorization: `Bearer ${unknown.key}`, xApiKey: first.key }), 'key_1')
  assert.equal(await read({ authorization: 'Bearer none', xApiKey: second.key }), 'key_2')
})

test('R7 two bad credentials count as one failure', async () => {
  assert.equal(await read({ authorization: `Bearer ${unknown.key}`, xApiKey: 'x' }), 'invalid')
})

test('spec 5 a key counts as missing if no header has it in its form', async () => {
  assert.equal(await read({}), 'missing')
  assert.equal(await read({ authorization: '', xApiKey: '' }), 'missing')
  for (const authorization of ['Bearer', 'Bearer ', first.key, `Basic ${first.key}`, `Bearer ${first.key} x`]) {
    assert.equal(await read({ authorization }), 'missing', authorization)
    assert.equal(await read({ authorization, xApiKey: 'x' }), 'invalid', authorization)
  }
})

test('a rotated key is valid until its grace period ends, and not at that moment, as for operators', async () => {
  assert.equal(await read({ xApiKey: second.key }, 999), 'key_2')
  assert.equal(await read({ xApiKey: second.key }, 1_000), 'invalid')
})

test('R7 a valid key of a suspended account is the principal: its state is the next check', async () => {
  account.state = 'suspended'
  assert.equal(await read({ xApiKey: first.key }), 'key_1')
  account.state = 'active'
})

/** What a directory is asked that holds `first` and finds others in its store. */
function createAsked({ inStore = [unknown], isThrottled = false } = {}) {
  const asked: string[] = []
  const made = new Map(inStore.map(({ digest, id, prefix }) => [digest, { id, prefix, account, expiresMs: undefined }]))
  const looking: Directory = {
    findKnownKey: (digest) => (digest === first.digest ? known.get(digest) : undefined),
    async findKey(digest) {
      asked.push(digest)
      return made.get(digest)
    },
    ...nothing,
  }
  return { asked, asking: { directory: looking, nowMs: 0, isThrottled: () => isThrottled } }
}

test('R16 a well-formed key that memory does not hold is looked up in the store', async () => {
  const { asking, asked } = createAsked()
  const found = await authenticate(asking, { xApiKey: unknown.key })
  assert.deepEqual(found, { key: { id: unknown.id, prefix: unknown.prefix, account, expiresMs: undefined } })
  assert.equal(await authenticate(asking, { xApiKey: createKey().key }), 'invalid')
  assert.equal(asked.length, 2)
})

test('R16 malformed keys and keys held in memory cause no wait', async () => {
  const { asking, asked } = createAsked()
  const wrong = `${unknown.key.slice(0, -1)}${unknown.key.endsWith('0') ? '1' : '0'}`
  assert.equal(await authenticate(asking, { xApiKey: wrong, authorization: 'Bearer x' }), 'invalid')
  assert.deepEqual(await authenticate(asking, { xApiKey: first.key }), { key: known.get(first.digest) })
  assert.deepEqual(asked, [])
})

test('R16 a throttled address does not wait for the store, and its valid key passes', async () => {
  const { asking, asked } = createAsked({ isThrottled: true })
  assert.equal(await authenticate(asking, { xApiKey: unknown.key }), 'invalid')
  assert.deepEqual(await authenticate(asking, { xApiKey: first.key }), { key: known.get(first.digest) })
  assert.deepEqual(asked, [])
})

test('R7 R16 a key held in memory does not wait for the other header’s key, whichever header it is in', async () => {
  const { asking, asked } = createAsked()
  const principal = { key: known.get(first.digest) }
  assert.deepEqual(
    await authenticate(asking, { authorization: `Bearer ${unknown.key}`, xApiKey: first.key }),
    principal,
  )
  assert.deepEqual(
    await authenticate(asking, { authorization: `Bearer ${first.key}`, xApiKey: unknown.key }),
    principal,
  )
  assert.deepEqual(asked, [])
})

test('R7 R16 if both headers have keys that only the store may know, the first valid key is the principal', async () => {
  const other = createKey()
  const { asking, asked } = createAsked({ inStore: [unknown, other] })
  const principal = async (bearer: string, xApiKey: string) => {
    const found = await authenticate(asking, { authorization: `Bearer ${bearer}`, xApiKey })
    return typeof found === 'object' ? found.key.id : found
  }
  assert.equal(await principal(unknown.key, other.key), unknown.id)
  assert.equal(await principal(other.key, unknown.key), other.id)
  assert.equal(await principal(createKey().key, other.key), other.id)
  assert.equal(await principal('none', other.key), other.id)
  assert.equal(await principal(createKey().key, createKey().key), 'invalid')
  assert.equal(asked.length, 9)
})

async function read(credentials: { authorization?: string; xApiKey?: string }, nowMs = 0): Promise<string> {
  const result = await authenticate({ directory, nowMs, isThrottled: () => false }, credentials)
  return typeof result === 'string' ? result : result.key.id
}
