import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { CallRecord } from '../../src/gateway/record.ts'
import { createRecents, PackedRecords } from '../../src/live/recents.ts'
import { collect } from '../support/garbage.ts'

function usedBytes(): number {
  for (let i = 0; i < 3; i++) collect()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** A request as the gateway tells of it: each with texts of its own, as parsing makes them. */
function record(number: number, more: Partial<CallRecord> = {}): CallRecord {
  const own = (text: string) => Buffer.from(`${text}${number}`).toString()
  return {
    id: own('req_0195a3c8e7f07c0e9d2b3f4a5b6c'),
    startedMs: number,
    endMs: number + 1,
    method: 'POST',
    path: own(`/v1/messages?${'x'.repeat(15_000)}`),
    ip: own('192.0.2.'),
    account: 'tester',
    accountId: 'acct_1',
    keyId: 'key_1',
    keyPrefix: 'sk-tri-12345678',
    wire: 'chat',
    model: 'm',
    modelWire: 'messages',
    tries: [tryOf(429, 'upstream_429'), tryOf(500, 'upstream_500'), tryOf(200, undefined)],
    usage: {
      inputTokens: number,
      cacheReadTokens: 2,
      cacheWriteTokens: 3,
      cacheWrite1hTokens: 4,
      outputTokens: 5,
      reasoningTokens: 6,
      estimated: false,
    },
    usageSource: 'final',
    costNanos: BigInt(number) + 1_000_000_000_000n,
    priceVersion: 'v1',
    settled: 'posted',
    outcome: 'ok',
    ...more,
  }

  function tryOf(status: number, cause: string | undefined) {
    const startedMs = number + 0.25
    return { upstream: 'sim', account: 'a', why: 'spread' as const, startedMs, endMs: startedMs + 1, status, cause }
  }
}

test('the last 10,000 requests stay, and earlier ones are forgotten', () => {
  const recents = createRecents()
  for (let number = 0; number < 10_005; number++) recents.note(record(number))
  assert.equal(recents.count, 10_000)
  const idOf = (number: number) => record(number).id
  assert.deepEqual([recents.find(idOf(4)), recents.find(idOf(5))?.id], [undefined, idOf(5)])
  assert.equal(recents.find(idOf(10_004))?.usage?.inputTokens, 10_004)
})

test('requests without an account, of which anyone can send many, displace none that have one', () => {
  const recents = createRecents({ requestsMax: 10, namelessMax: 3 })
  recents.note(record(1))
  for (let number = 2; number < 100; number++) recents.note(record(number, { accountId: undefined as never }))
  assert.ok(recents.find(record(1).id))
  assert.equal(recents.count, 4)
})

test('B10 memory of requests is bounded in bytes, whatever names their clients send, and by what is counted', () => {
  const losses = (count: number, length: number) => (number: number) => ({
    losses: Array.from({ length: count }, (_, at) => ({
      // A slice would keep the whole of it.
      field: Buffer.from(`${number} ${at} ${'x'.repeat(length)}`)
        .toString()
        .slice(1),
      what: 'dropped' as const,
      why: 'no other wire has it',
    })),
  })
  const cases: [what: string, more: (number: number) => Partial<CallRecord>, requests: number][] = [
    ['plain', () => ({}), 12_000],
    ['long conversations', losses(100, 150), 2_000],
    ['a few long names', losses(3, 200_000), 200],
  ]
  for (const [what, more, requests] of cases) {
    const before = usedBytes()
    const recents = createRecents()
    for (let number = 0; number < requests; number++) recents.note(record(number, more(number)))
    const grownBytes = usedBytes() - before
    assert.ok(recents.bytes <= 33_554_432, `${what}: ${recents.bytes} bytes are counted`)
    // Slots and what the collector leaves are beside it.
    assert.ok(grownBytes < recents.bytes + 4_000_000, `${what}: ${grownBytes} for ${recents.bytes} counted`)
    assert.ok(recents.find(record(requests - 1).id), 'the last one stays')
    if (what === 'plain') assert.equal(recents.count, 10_000)
    if (what === 'long conversations') assert.ok(recents.count < requests, 'there is not room for all')
  }
})

test('issue 47: the requests that match a filter equal those of the whole list, and no other record is built', (t) => {
  const ids = fc.constantFrom(undefined, 'a', 'b', 'c')
  const kept = fc.array(fc.tuple(ids, ids), { maxLength: 40 })
  const some = <T>(all: T[]) => fc.option(fc.subarray(all), { nil: undefined })
  const filter = fc.record({
    accountId: ids,
    keyIds: some(['a', 'b', 'c']),
    models: some(['m0', 'm1']),
    upstreams: some(['u0', 'u1']),
    outcomes: some(['ok', 'refused']),
    sinceMs: fc.option(fc.nat(40), { nil: undefined }),
    untilMs: fc.option(fc.nat(40), { nil: undefined }),
  })
  const read = t.mock.method(PackedRecords.prototype, 'get')
  fc.assert(
    fc.property(kept, filter, (owners, of) => {
      const recents = createRecents({ requestsMax: 20, namelessMax: 5 })
      for (const [number, [accountId, keyId]] of owners.entries())
        recents.note({
          ...record(number, { model: `m${number % 3}`, upstream: `u${number % 2}` }),
          outcome: ([undefined, 'ok', 'refused'] as const)[number % 3]!,
          ...{ accountId: accountId!, keyId: keyId! },
        })
      const isOne = (list: readonly string[] | undefined, value: string | undefined) =>
        list?.includes(value ?? '') ?? true
      const wanted = [...recents.list()].filter(
        ({ accountId, keyId, model, upstream, outcome = 'ok', overMs }) =>
          (of.accountId === undefined || accountId === of.accountId) &&
          isOne(of.keyIds, keyId) &&
          isOne(of.models, model) &&
          isOne(of.upstreams, upstream) &&
          isOne(of.outcomes, outcome) &&
          overMs >= (of.sinceMs ?? 0) &&
          overMs < (of.untilMs ?? 1_000),
      )
      read.mock.resetCalls()
      assert.deepEqual([...recents.list(of)], wanted)
      assert.equal(read.mock.callCount(), wanted.length)
      read.mock.resetCalls()
      assert.deepEqual([...recents.list({ ...of, isTold: () => false })], [])
      assert.equal(read.mock.callCount(), 0)
    }),
  )
})
