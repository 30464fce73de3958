import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import fc from 'fast-check'
import {
  type ChainedRow,
  chainedColumns,
  detailColumns,
  digestEntry,
  formatHead,
  formOf,
  HeadHash,
  isKnownForm,
  parseHead,
  postedMs,
} from '../../src/accounts/chain.ts'

const debit: ChainedRow = {
  account_id: 'acct_1',
  seq: 2,
  kind: 'debit',
  amount: 630_000n,
  balance_after: -30_000n,
  reference: null,
  request_id: 'req_1',
  key_id: 'key_1',
  client_wire: 'chat',
  model: 'größe',
  model_wire: 'messages',
  upstream: 'u',
  upstream_account: 'one',
  input_tokens: 100,
  cache_read_tokens: 10,
  cache_write_tokens: 6,
  cache_write_1h_tokens: 2,
  output_tokens: 20,
  reasoning_tokens: 5,
  priced_calls: 0,
  usage_source: 'final',
  price_version: 'v1',
  outcome: 'ok',
  created_ms: 1_700_000_000_000,
  posted_ms: 1_700_000_000_001,
}

test('C15 a digest begins with its form and is the SHA-256 of length-prefixed fields, in bytes, after the previous digest', () => {
  const text =
    '1:17:1:first6:acct_11:25:debit6:6300006:-30000-5:req_15:key_14:chat7:größe8:messages1:u3:one3:1002:101:61:22:201:51:0' +
    '5:final2:v12:ok13:170000000000013:1700000000001'
  assert.equal(digestEntry(debit, '1:first'), `1:${createHash('sha256').update(text).digest('base64')}`)
  assert.equal(digestEntry(debit, '1:first'), '1:xxrPpjC5gABmeAGTrolJHAun/u5zAy+jM+AH9mwyiEo=')
  assert.notEqual(digestEntry(debit, null), digestEntry(debit, ''))
  assert.deepEqual([isKnownForm(digestEntry(debit, null)), isKnownForm('4:x')], [true, false])
})

test('C11 C15 an entry with priced calls is digested in form 2, which adds the calls to form 1; all others stay in form 1', () => {
  const called = digestEntry({ ...debit, calls: 'web_search:2' }, '1:first')
  const text =
    '1:27:1:first6:acct_11:25:debit6:6300006:-30000-5:req_15:key_14:chat7:größe8:messages1:u3:one3:1002:101:61:22:201:51:0' +
    '5:final2:v12:ok13:170000000000013:170000000000112:web_search:2'
  assert.equal(called, `2:${createHash('sha256').update(text).digest('base64')}`)
  assert.ok(isKnownForm(called))
  assert.equal(digestEntry({ ...debit, calls: null }, null), digestEntry(debit, null))
})

test('issue 46 an entry with any detail is digested in form 3: form 1, the calls, then all details in their order', () => {
  const details = Object.fromEntries(detailColumns.map((column, at) => [column, `d${at}`]))
  const form1 =
    '7:1:first6:acct_11:25:debit6:6300006:-30000-5:req_15:key_14:chat7:größe8:messages1:u3:one3:1002:101:61:22:201:51:0' +
    '5:final2:v12:ok13:170000000000013:1700000000001'
  const digestOf = (text: string) => `3:${createHash('sha256').update(text).digest('base64')}`
  const all = '2:d02:d12:d22:d32:d42:d52:d62:d72:d82:d93:d103:d113:d123:d13'
  assert.equal(digestEntry({ ...debit, ...details }, '1:first'), digestOf(`1:3${form1}-${all}`))
  const one = { ...debit, calls: 'web_search:2', person: 'person_1' }
  assert.equal(digestEntry(one, '1:first'), digestOf(`1:3${form1}12:web_search:2----8:person_1---------`))
  const each = detailColumns.map((column) => digestEntry({ ...debit, [column]: 'x' }, null))
  assert.equal(new Set(each).size, 14)
  const none = Object.fromEntries(detailColumns.map((column) => [column, null]))
  assert.equal(digestEntry({ ...debit, ...none }, null), digestEntry(debit, null))
  assert.equal(formOf({ ...debit, calls: 'x:1' }), '2')
})

test('C15 every field and the previous digest change the digest, and a number has one text whatever its type', () => {
  const digests = chainedColumns.map((column) => digestEntry({ ...debit, [column]: 'x' }, null))
  assert.equal(
    new Set([...digests, digestEntry(debit, null), digestEntry(debit, '1:x')]).size,
    chainedColumns.length + 2,
  )
  assert.equal(digestEntry({ ...debit, seq: 2n, posted_ms: 1_700_000_000_001n }, null), digestEntry(debit, null))
})

test('C15 no two different rows of fields have the same text, wherever the borders fall', () => {
  const cell = fc.oneof(fc.constant(null), fc.string({ unit: fc.constantFrom('1', ':', '-', 'ß'), maxLength: 4 }))
  fc.assert(
    fc.property(fc.tuple(cell, cell, cell), fc.tuple(cell, cell, cell), (a, b) => {
      const digests = [a, b].map(([reference, request_id, key_id]) =>
        digestEntry({ ...debit, reference, request_id, key_id }, null),
      )
      assert.equal(
        digests[0] === digests[1],
        a.every((value, index) => value === b[index]),
      )
    }),
  )
})

test('C15 a head covers the last digest of each account at its moment, and nothing that is posted later', () => {
  const headOf = (momentMs: number, entries: [accountId: string, postedMs: number, digest: string][]) => {
    const hash = new HeadHash(momentMs)
    for (const entry of entries) hash.note(...entry)
    return hash.end()
  }
  const head = headOf(10, [
    ['a', 9, 'a1'],
    ['a', 10, 'a2'],
    ['b', 3, 'b1'],
  ])
  assert.equal(head.hash, createHash('sha256').update('1:a2:a21:b2:b1').digest('base64url'))
  const grown = headOf(10, [
    ['a', 10, 'a2'],
    ['a', 11, 'a3'],
    ['aa', 11, 'c1'],
    ['b', 3, 'b1'],
    ['c', 12, 'd1'],
  ])
  assert.deepEqual(grown, head)
  assert.notEqual(headOf(11, [['a', 10, 'a2']]).hash, head.hash)
})

test('C15 a head is one short word, and another text is refused with the cure', () => {
  const head = { momentMs: 1_700_000_000_000, hash: new HeadHash(0).end().hash }
  const text = formatHead(head)
  assert.equal(text, `1/2023-11-14T22:13:20.000Z/${head.hash}`)
  assert.deepEqual(parseHead(text), head)
  for (const wrong of ['', 'head', text.slice(0, -1), `2${text.slice(1)}`, text.replace('11-14', '13-14')])
    assert.throws(() => parseHead(wrong), /is not a head: copy the whole line/)
})

test('C15 an entry is never posted before the previous one, and always after the last head, whatever the clock says', () => {
  assert.equal(postedMs(100, 50, 60), 100)
  assert.equal(postedMs(100, 150, 60), 150)
  assert.equal(postedMs(100, 50, 100), 101)
})
