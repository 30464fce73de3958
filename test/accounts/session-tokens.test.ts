import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createSecret, createTokens } from '../../src/accounts/sign-in/tokens.ts'
import { runsUpTo } from '../support/runs.ts'

const tokens = createTokens(Buffer.alloc(32, 1))
const endMs = 1_800_000_000_000

test('Y20 the form of tokens is pinned, so that a later release reads those of this one', () => {
  assert.deepEqual(tokens.issue('0123456789abcdefghijkl', 3, endMs), {
    access: 'tri-at-0123456789abcdefghijkl00031xocE44s0j5f082sdSmpSGnM1jUe',
    refresh: 'tri-rt-0123456789abcdefghijkl00037PF6TZr22DReBKU2U79IfU',
  })
})

test('Y20 law: a written token is read back, and both tokens name the same key', () => {
  const generation = fc.nat(62 ** 4 - 1)
  fc.assert(
    fc.property(generation, fc.nat(62 ** 6 - 1), (generation, endSeconds) => {
      const { secret, digest, prefix } = createSecret()
      const { access, refresh } = tokens.issue(secret, generation, endSeconds * 1000 + 999)
      assert.deepEqual(tokens.readAccess(access), { digest, expiresMs: endSeconds * 1000 })
      assert.deepEqual(tokens.readRefresh(refresh), { digest, secret, generation })
      assert.ok(access.startsWith(prefix) && prefix.length < 16)
      assert.deepEqual([tokens.readAccess(refresh), tokens.readRefresh(access)], [undefined, undefined])
    }),
  )
})

test('Y28 law: a token that differs in one character, or has another seal key, is not one of ours', () => {
  const { access, refresh } = tokens.issue(createSecret().secret, 5, endMs)
  const others = createTokens(Buffer.alloc(32, 2))
  for (const [token, name] of [
    [access, 'readAccess'],
    [refresh, 'readRefresh'],
  ] as const) {
    const read = tokens[name]
    // A token that was read may be remembered. No other token is taken for it.
    assert.deepEqual(read(token), read(token))
    assert.equal(others[name](token), undefined)
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom('', 'a', 'Z', '0', 'é', '\0', '-', 'aa'), (at, letter) => {
        const changed = token.slice(0, at) + letter + token.slice(at + 1)
        if (changed !== token) assert.equal(read(changed), undefined)
      }),
      { numRuns: runsUpTo(500) },
    )
    for (const text of ['', 'tri-at-', 'tri-rt-', `${token} `, `${token}a`, token.slice(0, -1), token.toUpperCase()])
      assert.equal(read(text), undefined, text)
  }
})
