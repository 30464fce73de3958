import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { withChosen } from '../../console/src/pure/options.ts'
import {
  changeQuery,
  formatPlace,
  pages,
  readList,
  readPlace,
  searchOf,
  searchText,
  withoutSecrets,
} from '../../console/src/pure/place.ts'
import { daysOf, periodBefore, readRange, spanOfBucket } from '../../console/src/pure/range.ts'
import { askedAs } from '../../console/src/pure/usage.ts'
import { createKey } from '../../src/accounts/keys.ts'
import { createToken } from '../../src/accounts/operators.ts'

test('the address of a page holds all of its state, and reading it gives the same state', () => {
  const page = fc.constantFrom(...pages)
  const query = fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), fc.string({ minLength: 1, unit: 'grapheme' }))
  fc.assert(
    fc.property(page, fc.option(fc.string({ minLength: 1 }), { nil: undefined }), query, (page, id, query) => {
      // Dots alone are a path's own; no id of ours is made of them.
      fc.pre(id === undefined || !/^\.{1,2}$/.test(id))
      // The overview has nothing in it that has an id.
      const place = { page, id: page === 'overview' ? undefined : id, query }
      const [path = '', search = ''] = formatPlace(place).split(/\?(.*)/s)
      const read = readPlace(path, search)
      assert.deepEqual({ ...read, query: { ...read.query } }, { ...place, query: { ...query } })
    }),
  )
})

test('an address of an unknown page is rejected, and one without a page is the overview', () => {
  assert.equal(readPlace('', '').page, 'overview')
  assert.equal(readPlace('nowhere', '').page, undefined)
  assert.equal(readPlace('accounts/a/b', '').page, undefined)
  assert.equal(readPlace('models/%E0%A4%A', '').id, '%E0%A4%A')
  assert.deepEqual({ ...readPlace('overview', '?only=a,b&by=key&x=').query }, { only: 'a,b', by: 'key' })
  assert.equal(
    formatPlace({ page: 'overview', query: { only: 'a,b', from: '2026-11-22T10:00:00Z' } }),
    '?only=a,b&from=2026-11-22T10:00:00Z',
  )
  assert.deepEqual(changeQuery({ a: '1', b: '2' }, { a: undefined, c: '3' }), { b: '2', c: '3' })
  assert.deepEqual(readList('a,,b,a'), ['a', 'b'])
})

test('a row of a bill leads to what the gateway finds it by: keys of every kind, and people who share a name', () => {
  for (const [by, word, asked] of [
    ['key', 'laptop (sk-tri-a1b2c3d4)', 'sk-tri-a1b2c3d4'],
    ['key', 'claude_code (tri-at-a1B2c3)', 'tri-at-a1B2c3'],
    ['key', 'old (team) (sk-...ab_c)', 'sk-...ab_c'],
    ['key', 'ci, nightly (litellm-0a1b2c3d)', 'litellm-0a1b2c3d'],
    ['key', 'sk-tri-a1b2c3d4', 'sk-tri-a1b2c3d4'],
    ['person', 'Ada (per_0123456789abcdEF)', 'per_0123456789abcdEF'],
    ['person', 'Ada (sales)', 'Ada (sales)'],
    ['account', 'Acme (EU)', 'Acme (EU)'],
    ['label:project', 'a(b)', 'a(b)'],
  ] as const)
    assert.equal(askedAs(by, word), asked)
})

test('U5 a key or token that is pasted into a search never gets into an address', () => {
  const [key, token] = [createKey().key, createToken().token]
  assert.equal(withoutSecrets(key), key.slice(0, 15))
  assert.equal(withoutSecrets(`of ${token}, or ${key}x`), `of ${token.slice(0, 13)}, or ${key.slice(0, 15)}`)
  for (const text of ['acme', key.slice(0, 15), 'key_abcdefghijklmnop', 'sk-tri-'])
    assert.equal(withoutSecrets(text), text)
})

test('a range of hours ends with the current hour, and one of days with today in the reporting zone', () => {
  const nowMs = Date.parse('2026-11-22T19:07:31Z')
  assert.deepEqual(readRange({ range: '24h' }, nowMs, 'UTC'), {
    ...{ name: '24h', label: 'Last 24 hours', bucket: 'hour', endsNow: true },
    ...{ from: '2026-11-21T20:00:00Z', to: '2026-11-22T20:00:00Z' },
  })
  const week = readRange({}, nowMs, 'UTC')
  assert.deepEqual([week.from, week.to, week.bucket], ['2026-11-15T20:00:00Z', '2026-11-22T20:00:00Z', 'hour'])
  // It is Monday already in Auckland.
  const month = readRange({ range: '30d' }, nowMs, 'Pacific/Auckland')
  assert.deepEqual([month.from, month.to, month.bucket], ['2026-10-25', '2026-11-24', 'day'])
  const exact = readRange({ range: '24h' }, Date.parse('2026-11-22T19:00:00Z'), 'UTC')
  assert.equal(exact.to, '2026-11-22T20:00:00Z')
})

test('days and times of the address are a range of their own; an invalid range becomes the usual one', () => {
  const nowMs = Date.parse('2026-11-22T19:07:31Z')
  const own = readRange({ from: '2026-11-01', to: '2026-11-11' }, nowMs, 'UTC')
  assert.deepEqual([own.bucket, own.label, own.endsNow], ['hour', '2026-11-01 to 2026-11-10', false])
  assert.deepEqual(daysOf(own, 'UTC'), { first: '2026-11-01', last: '2026-11-10' })
  assert.deepEqual(periodBefore(own), { from: '2026-10-22', to: '2026-11-01' })
  const times = readRange({ from: '2026-11-22T10:00:00Z', to: '2026-11-22T11:00:00Z' }, nowMs, 'UTC')
  assert.deepEqual([times.bucket, times.endsNow], ['hour', false])
  assert.deepEqual(periodBefore(times), { from: '2026-11-22T09:00:00Z', to: '2026-11-22T10:00:00Z' })
  for (const query of [{ from: '2026-11-11', to: '2026-11-01' }, { from: 'x', to: 'y' }, { range: 'constructor' }])
    assert.equal(readRange(query as never, nowMs, 'UTC').name, '7d')
  assert.deepEqual(spanOfBucket(['a', 'b'], 0, 'end'), { from: 'a', to: 'b' })
  assert.deepEqual(spanOfBucket(['a', 'b'], 1, 'end'), { from: 'b', to: 'end' })
})

test('a search that was typed stays as it is while the page lists it, with the blank before the next word', () => {
  for (const [typed, said, shown] of [
    ['Acme ', 'Acme', 'Acme '],
    ['Acme', 'Acme', 'Acme'],
    ['', 'Acme', 'Acme'],
    ['Acme ', '', ''],
    ['Acme In', 'Acme', 'Acme'],
  ] as const)
    assert.equal(searchText(typed, said), shown)
  assert.equal(searchOf(' Acme '), 'Acme')
  const key = 'sk-tri-0123456789abcdef'
  assert.equal(searchText(key, searchOf(key)), 'sk-tri-01234567', 'the rest of a key does not stay')
})

test('a field shows the value of the address, also if no option has it', () => {
  const people = [
    ['', 'my own'],
    ['per_1', 'Ann'],
  ] as const
  for (const value of ['', 'per_1']) assert.equal(withChosen<string>(people, value), people)
  assert.deepEqual(withChosen<string>(people, 'per_51').at(-1), ['per_51', 'per_51'])
})
