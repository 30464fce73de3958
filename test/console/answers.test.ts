import assert from 'node:assert/strict'
import test from 'node:test'
import { tellShare } from '../../console/src/pure/format.ts'
import { fits, tellPlottedMore } from '../../console/src/pure/request-filter.ts'
import {
  cacheShareOf,
  countedAs,
  idOf,
  isFailing,
  labelOf,
  shareOf,
  sumOf,
  sumOfCredits,
  valuesOf,
} from '../../console/src/pure/usage.ts'
import { eventReader, questionBody, spread } from '../../console/src/pure/wires.ts'
import type { RequestRow, Usage } from '../../console/src/shapes.ts'

const usage: Usage = {
  time_zone: 'UTC',
  week_starts: 'monday',
  from: '2026-11-18T00:00:00.000Z',
  to: '2026-11-20T00:00:00.000Z',
  bucket: 'day',
  buckets: ['2026-11-18', '2026-11-19'],
  complete_until: '2026-11-19T22:14:03Z',
  series: [
    {
      of: { model: 'm', outcome: 'ok' },
      named: null,
      credits: ['4.12', '3.9'],
      requests: [310, null],
      first_byte_ms: { p50: [640, null], p95: [2100, null], p99: [5200, null], error: 0.04 },
    },
  ],
  other: { count: 3, credits: ['0.2', '0'], requests: [9, 0] },
  total: { credits: ['4.32', '3.9'], requests: [319, 288], input_tokens: [60, 0], cache_read_tokens: [40, 0] },
}

test('figures are read exactly, and a gap stays a gap', () => {
  const [series] = usage.series
  assert.equal(sumOfCredits(usage.total), 8_220_000_000n)
  assert.equal(sumOf(usage.total, 'requests'), 607)
  assert.deepEqual(valuesOf(series!, 'requests'), [310, null])
  assert.deepEqual(valuesOf(series!, 'first_byte_ms', 'p99'), [5200, null])
  assert.deepEqual(valuesOf(series!, 'errors'), [])
  assert.equal(cacheShareOf(usage.total), 0.4)
  assert.equal(cacheShareOf({}), undefined)
})

test('a model that cost little has a share, not 0 %', () => {
  const told = (part: bigint, all: bigint) => tellShare(shareOf(part, all)).replace(/\s/, ' ')
  assert.deepEqual(
    [told(0n, 9n), told(1n, 9n * 10n ** 18n), told(4n, 10_000n), told(439n, 10_000n), told(3n, 3n), told(1n, 0n)],
    ['0 %', '<0.1 %', '<0.1 %', '4.4 %', '100 %', '0 %'],
  )
})

test('a series has a name that people recognise', () => {
  assert.equal(labelOf(usage.series[0]!), 'm · ok')
  assert.equal(labelOf({ of: { account: 'acct_1' }, named: { account: 'acme' } }), 'acme')
  assert.equal(labelOf({ of: { key: null }, named: null }), 'no key')
  assert.equal(idOf({ of: {}, named: null }), 'all')
})

test('the page of a chain shows the figures of its first model, and that of another model its own', () => {
  assert.equal(countedAs({ id: 'm', chain: null }), 'm')
  assert.equal(countedAs({ id: 'best', chain: ['m-large', 'm-small'] }), 'm-large')
})

test('a chain is shown as failing if all its models fail', () => {
  const chain = { id: 'best', chain: ['m-large', 'm-small'] }
  assert.ok(!isFailing(chain, ['m-large', 'best']))
  assert.ok(isFailing(chain, ['m-small', 'm-large']))
  assert.ok(isFailing({ id: 'm', chain: null }, ['m']))
  assert.ok(!isFailing({ id: 'm', chain: null }, []))
})

test('the plot of the page Requests says which requests it has besides those of the list', () => {
  // Figures of reports have no status, and are summed over all keys of a rotation.
  for (const [filter, said] of [
    [{ model: 'm', account: 'a' }, ''],
    [{ status: '429' }, ', of any status'],
    [{ key: 'key_1' }, ', of all keys of its rotation'],
    [{ status: '429', key: 'key_1' }, ', of any status, of all keys of its rotation'],
  ] as const)
    assert.equal(tellPlottedMore(filter), said)
})

test('a new request is listed if it fits the filter of the list', () => {
  const row = {
    account: { id: 'acct_1', name: 'acme' },
    key: { id: 'key_1', prefix: 'sk-tri-ab', label: 'ci' },
    ...{ model: 'm', upstream: 'u', outcome: 'refused', status: 402 },
  } as RequestRow
  for (const filter of [
    {},
    { account: 'acme' },
    { account: 'acct_1' },
    { key: 'ci' },
    { model: 'x,m' },
    { status: '402' },
  ])
    assert.ok(fits(row, filter), JSON.stringify(filter))
  for (const filter of [{ account: 'acm' }, { key: 'key_2' }, { model: 'x' }, { outcome: 'ok' }, { upstream: 'v' }])
    assert.ok(!fits(row, filter), JSON.stringify(filter))
  assert.ok(!fits({ ...row, account: null }, { account: 'acme' }))
})

test('events of a stream are read wherever its bytes are cut', () => {
  const text = 'event: a\ndata: {"x":1}\n\n: comment\n\ndata: one\ndata: two\r\n\r\ndata: [DONE]\n\n'
  for (let at = 0; at <= text.length; at++) {
    const read = eventReader()
    const events = [...read(text.slice(0, at)), ...read(text.slice(at))]
    assert.deepEqual(
      events.map(({ name, data }) => `${name}|${data}`),
      ['a|{"x":1}', '|one\ntwo', '|[DONE]'],
      `cut at ${at}`,
    )
  }
})

test('a question becomes a body of each wire, and JSON is shown on several lines', () => {
  for (const wire of ['messages', 'chat', 'responses'] as const)
    assert.equal((questionBody(wire, 'm', 'q', true) as { stream: boolean }).stream, true)
  assert.equal(spread('{"a":1}'), '{\n  "a": 1\n}')
  assert.equal(spread('no'), 'no')
})
