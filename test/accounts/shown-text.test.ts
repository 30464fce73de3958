import assert from 'node:assert/strict'
import test from 'node:test'
import { hasNothingUnseen } from '../../src/accounts/shown-text.ts'

test('a name has no character that nobody sees, or that breaks a line: it would look like another name', () => {
  // Line and paragraph separator, Hangul fillers, an empty Braille pattern, a joiner of graphemes, Khmer vowels, a tag.
  const unseen =
    '\u2028 \u2029 \u3164 \uffa0 \u115f \u1160 \u2800 \u034f \u17b4 \u200b \u202e \u00ad \u0007 \ud800 \u{e0041}'
  for (const sign of unseen.split(' '))
    for (const name of [sign, `${sign}acme`, `ac${sign}me`, `acme${sign}`])
      assert.equal(hasNothingUnseen(name), false, JSON.stringify(name))
  for (const name of ['', ' ', ' acme', 'acme\u00a0', 'ac\tme']) assert.equal(hasNothingUnseen(name), false, name)
  for (const name of ['acme', 'a b', 'Łódź', 'שלום עולם', '한국어', 'ខ្មែរ', 'e\u0301', '❤\ufe0f', '👍🏽', '⠿'])
    assert.equal(hasNothingUnseen(name), true, name)
})
