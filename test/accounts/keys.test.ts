import assert from 'node:assert/strict'
import test from 'node:test'
import { crc32 } from 'node:zlib'
import fc from 'fast-check'
import { BookError } from '../../src/accounts/book-error.ts'
import { createKey, digestKey, nameOfKey, readKey, withoutKeys } from '../../src/accounts/keys.ts'

test('R4 a key has its form, 40 random characters and a checksum, and is read back to its digest', () => {
  const { key, id, prefix, digest } = createKey()
  assert.match(key, /^sk-tri-[0-9A-Za-z]{46}$/)
  assert.match(id, /^key_[0-9A-Za-z]{16}$/)
  assert.equal(prefix, key.slice(0, 15))
  assert.deepEqual(readKey(key), { kind: 'well_formed', digest })
  assert.equal(digest, digestKey(key))
  assert.notEqual(createKey().key, key)
})

test('the checksum is the CRC-32 of the text before it, in base 62', () => {
  const { key } = createKey()
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
  let value = 0
  for (const digit of key.slice(-6)) value = value * 62 + digits.indexOf(digit)
  assert.equal(value, crc32(key.slice(0, -6)))
})

test('the digest is the SHA-256 of the key', () => {
  assert.equal(digestKey('a'), 'ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs')
})

test('a key with one wrong character, a piece of a key and any other text are malformed', () => {
  const { key } = createKey()
  fc.assert(
    fc.property(fc.integer({ min: 0, max: key.length - 1 }), fc.constantFrom(...'abcXYZ019-_ é'), (at, char) => {
      fc.pre(key[at] !== char)
      assert.equal(readKey(key.slice(0, at) + char + key.slice(at + 1)).kind, 'malformed')
    }),
  )
  for (const text of ['', key.slice(1), `${key}0`, `${key}\n`, ` ${key}`, key.toUpperCase(), 'x'.repeat(100_000)]) {
    assert.equal(readKey(text).kind, 'malformed')
  }
})

test('U5 a whole key given as a name is looked up by its first characters, and never shown', () => {
  const { key, prefix } = createKey()
  assert.equal(nameOfKey(key), prefix)
  assert.equal(nameOfKey('key_1'), 'key_1')
  assert.equal(withoutKeys(`no "${key}" here, nor ${key.slice(0, 30)}`), `no "${prefix}…" here, nor ${prefix}…`)
  assert.equal(withoutKeys(prefix), prefix)
  for (const kind of ['op', 'at', 'rt'])
    assert.equal(withoutKeys(`a tri-${kind}-0123456789abc.`), `a tri-${kind}-012345….`)
  assert.doesNotMatch(new BookError('no_key', key).message + new BookError('no_account', key).subject, new RegExp(key))
})
