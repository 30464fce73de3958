import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Try } from '../../src/gateway/record.ts'
import { type FinishedRecord, PackedRecords } from '../../src/live/recents.ts'

const name = fc.constantFrom('a', 'b', 'sim')
const count = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const ms = fc.double({ min: 0, max: 1e12, noNaN: true })
const plain = { noNullPrototype: true }
const or = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const tried = fc.record(
  {
    ...{ upstream: name, account: or(name), why: fc.constantFrom('only', 'bound', 'spread'), startedMs: ms },
    ...{ endMs: or(ms), status: or(fc.constantFrom(200, 429, 500)), cause: or(name), text: name },
  },
  { ...plain, requiredKeys: ['upstream', 'account', 'why', 'startedMs', 'endMs', 'status', 'cause'] },
)
const usage = fc.record(
  {
    ...{ inputTokens: count, cacheReadTokens: count, cacheWriteTokens: count, cacheWrite1hTokens: count },
    ...{ outputTokens: count, reasoningTokens: count, estimated: fc.boolean() },
  },
  plain,
)
const loss = fc.record({ field: name, what: fc.constant('dropped'), why: name }, plain)
const record = fc.record(
  {
    ...{ id: fc.uuid(), walk: or(fc.constantFrom('infer', 'count_tokens', 'list_models')) },
    ...{ account: or(name), accountId: or(name), keyId: or(name), keyPrefix: or(name), keyLabel: or(name) },
    ...{ personId: or(name), labels: or(fc.constant('a=b')) },
    ...{ hops: or(fc.constant([{ model: 'first' }])), moved: or(fc.constant('operator')) },
    ...{ wire: or(fc.constant('chat')), model: or(name), alias: or(name), modelWire: or(fc.constant('messages')) },
    ...{ upstream: or(name), upstreamAccount: or(name), attempts: or(count), stopped: or(fc.constant('final')) },
    ...{ tries: or(fc.array(tried, { maxLength: 3 })), losses: or(fc.array(loss, { maxLength: 2 })), usage: or(usage) },
    ...{ usageSource: or(fc.constant('final')), calls: or(fc.constant({ web_search: 2 })), costNanos: or(fc.bigInt()) },
    ...{ prices: or(fc.constant({ inputNanos: 1n })), priceVersion: or(name), settled: or(fc.constant('posted')) },
    ...{ status: or(count), code: or(name), reason: or(name), flags: or(fc.array(name, { maxLength: 2 })) },
    ...{ message: or(name), param: or(name), cause: or(name) },
    ...{ outcome: or(fc.constantFrom('ok', 'aborted')), firstByteMs: or(ms), endMs: or(ms) },
  },
  plain,
) as unknown as fc.Arbitrary<FinishedRecord>

test('decision 55 a packed record is read back unchanged, whatever had its place before', () => {
  fc.assert(
    fc.property(fc.array(record, { minLength: 1, maxLength: 8 }), fc.integer({ min: 1, max: 4 }), (records, size) => {
      const packed = new PackedRecords(size)
      for (const [at, one] of records.entries()) packed.set(at % size, one)
      for (const [at, one] of records.entries()) {
        if (at < records.length - size) continue
        assert.deepEqual(packed.get(at % size), told(one))
        assert.equal(packed.idAt(at % size), one.id)
      }
    }),
  )
})

/** An empty list says no more than none. */
function told(record: FinishedRecord): FinishedRecord {
  const { losses, flags } = record
  return Object.assign(
    { ...record },
    { losses: losses?.length ? losses : undefined, flags: flags?.length ? flags : undefined },
  )
}

/** Told by the record's other fields, where those name the same upstream and account. */
function tryOf(more: Partial<Try>): Try {
  return { upstream: 'a', account: 'b', why: 'only', startedMs: 1, endMs: 2, status: 200, cause: undefined, ...more }
}

test('decision 55 an unfinished try is reported with its later end', () => {
  const packed = new PackedRecords(1)
  const open = tryOf({ endMs: undefined })
  packed.set(0, { id: 'r', upstream: 'a', upstreamAccount: 'b', tries: [open] })
  open.endMs = 7
  assert.equal(packed.get(0).tries![0]!.endMs, 7)
})

test('decision 55 nothing of a released record is kept', () => {
  const packed = new PackedRecords(2)
  packed.set(0, { id: 'r', upstream: 'a', upstreamAccount: 'c', tries: [tryOf({})], losses: [], flags: ['late'] })
  packed.clear(0)
  const left = Object.entries(packed.get(0)).filter(([, value]) => typeof value === 'object' && value !== null)
  assert.deepEqual(left, [])
})
