import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createCalendar, utc } from '../../src/accounts/calendar.ts'
import {
  addEncoded,
  type BucketCounts,
  bucketOf,
  countsBreakHex,
  encodeCounts,
  percentileError,
  percentileOf,
} from '../../src/accounts/usage/histogram.ts'
import { firstKept } from '../../src/accounts/usage/reporting.ts'
import { createTraffic, spreadTraffic, type TrafficRecord } from '../../src/accounts/usage/traffic.ts'

const times = fc.array(fc.double({ min: 1, max: 14_400_000, noNaN: true }), { minLength: 1, maxLength: 200 })

test('issue 13: a percentile is within its error of the one of all times, however many histograms were merged', () => {
  fc.assert(
    fc.property(fc.array(times, { minLength: 1, maxLength: 5 }), fc.constantFrom(0.5, 0.95, 0.99), (parts, share) => {
      const merged: BucketCounts = []
      for (const part of parts) addEncoded(merged, encodeCounts(countsOf(part)))
      const all = parts.flat().sort((a, b) => a - b)
      const exact = all[Math.ceil(share * all.length) - 1]!
      assert.ok(Math.abs(percentileOf(merged, share)! - exact) <= exact * percentileError)
    }),
  )
})

test('issue 13: an encoded histogram decodes to the same values, and damaged bytes delay nothing', () => {
  const counts = fc.array(fc.oneof(fc.constant(0), fc.nat(2 ** 40)), { maxLength: 192 })
  fc.assert(
    fc.property(counts, (counts) => {
      const read: BucketCounts = []
      addEncoded(read, encodeCounts(counts))
      assert.deepEqual(read, counts.slice(0, counts.findLastIndex((count) => count > 0) + 1))
    }),
  )
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 50 }), (bytes) => {
      const read: BucketCounts = []
      addEncoded(read, bytes)
      assert.ok(read.length <= 192)
    }),
  )
  assert.equal(percentileOf([], 0.5), undefined)
})

test('issue 13: encoded counts that a database has concatenated decode to their sum', () => {
  const counts = fc.array(fc.oneof(fc.constant(0), fc.nat(2 ** 40)), { maxLength: 192 })
  fc.assert(
    fc.property(fc.array(counts, { maxLength: 6 }), (parts) => {
      const expected: BucketCounts = []
      for (const part of parts) addEncoded(expected, encodeCounts(part))
      const joined = parts.map((part) => Buffer.from(encodeCounts(part)).toString('hex')).join(countsBreakHex)
      const read: BucketCounts = []
      addEncoded(read, Buffer.from(joined, 'hex'))
      assert.deepEqual(read, expected)
    }),
  )
})

const answered: TrafficRecord = {
  ...{ walk: 'infer', status: 200, outcome: 'ok', settled: 'posted', accountId: 'a', keyId: 'k', model: 'm' },
  ...{ wire: 'chat', modelWire: 'messages', upstream: 'u', firstByteMs: 100, endMs: 1_000 },
}

test('issue 13: paid requests count only in the ledger, free ones only here; times are counted for both', () => {
  let nowMs = Date.parse('2026-11-22T12:00:00Z')
  const traffic = createTraffic(() => nowMs)
  traffic.note(answered)
  traffic.note({ ...answered, settled: 'refused', outcome: 'internal_error', code: 'internal_error' })
  traffic.note({ walk: 'infer', status: 402, outcome: 'refused', code: 'insufficient_credits', accountId: 'a' })
  traffic.note({ ...answered, status: 502, outcome: 'upstream_error', settled: undefined, code: 'upstream_error' })
  // Neither is inference.
  traffic.note({ ...answered, walk: 'count_tokens' })
  traffic.note({ ...answered, walk: undefined })
  nowMs += 900_000
  traffic.note(answered)
  const cells = traffic.take()
  assert.deepEqual(
    cells.map(({ place, requests, total }) => [place['outcome'], place['code'], requests, total.length > 0]),
    [
      ['ok', '', 0, true],
      ['internal_error', 'internal_error', 1, true],
      ['refused', 'insufficient_credits', 1, false],
      ['upstream_error', 'upstream_error', 1, false],
      ['ok', '', 0, true],
    ],
  )
  assert.deepEqual(traffic.take(), [])
  const { traffic_q, traffic_d, traffic_t } = spreadTraffic(cells, createCalendar(utc))
  assert.deepEqual([traffic_q.length, traffic_d.length, traffic_t.length], [4, 4, 4])
  const both: BucketCounts = []
  addEncoded(both, traffic_t.find(({ place }) => place['outcome'] === 'ok')!.total)
  assert.equal(both[bucketOf(1_000)], 2)
})

test('issue 13: places beyond the maximum are counted together, and none is lost', () => {
  const traffic = createTraffic(() => 0)
  for (let n = 0; n < 21_000; n++)
    traffic.note({ walk: 'infer', status: 404, outcome: 'refused', code: 'model_not_found', keyId: `k${n}` })
  const cells = traffic.take()
  assert.equal(cells.length, 20_001)
  assert.equal(
    cells.reduce((sum, { requests }) => sum + requests, 0),
    21_000,
  )
})

test('issue 13: whole months before the current one are kept', () => {
  const calendar = createCalendar({ timeZone: 'Asia/Kolkata', weekStarts: 'monday' })
  const kept = firstKept(calendar, 13, Date.parse('2026-11-30T18:29:59Z'))
  assert.equal(new Date(kept * 900_000).toISOString(), '2025-09-30T18:30:00.000Z')
  assert.equal(
    new Date(firstKept(calendar, 13, Date.parse('2026-11-30T18:30:00Z')) * 900_000).toISOString(),
    '2025-10-31T18:30:00.000Z',
  )
})

function countsOf(times: readonly number[]): BucketCounts {
  const counts: BucketCounts = []
  for (const ms of times) {
    for (let at = counts.length; at <= bucketOf(ms); at++) counts.push(0)
    counts[bucketOf(ms)]!++
  }
  return counts
}
