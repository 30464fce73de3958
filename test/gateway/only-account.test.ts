import assert from 'node:assert/strict'
import test from 'node:test'
import { Secret } from '../../src/config/config.ts'
import type { GatewayError } from '../../src/errors.ts'
import { createPoolMemory } from '../../src/upstream/pool-memory.ts'
import type { TransportFault } from '../../src/upstream/target.ts'
import { answers } from '../support/native.ts'
import { type Rig, type RigOptions, startRig } from './rig.ts'

/*
 * Y26 (SCA-8): a model with one account is asked once more, on a fresh connection, for what that surely did not work on. The
 * kind: a connection that was refused; every refusal with a short wait; each moment at which something else ends the wait.
 */

const headers = (more: Record<string, string> = {}) =>
  new Map(Object.entries({ 'content-type': 'application/json', ...more }))

function refuse(rig: Rig, status: number, more: Record<string, string> = {}, body: unknown = {}): void {
  const { listener } = rig.sent.at(-1)!
  listener.onHead(status, 'application/json', headers(more))
  listener.onData(Buffer.from(JSON.stringify(body)))
  listener.onEnd()
}

function fail(rig: Rig, cause: TransportFault['cause']): void {
  rig.sent.at(-1)!.listener.onError({ cause, isReuseRace: false })
}

function answer(rig: Rig): void {
  const { listener } = rig.sent.at(-1)!
  listener.onHead(200, 'application/json', headers())
  listener.onData(Buffer.from(JSON.stringify(answers.chat)))
  listener.onEnd()
}

const codeOf = (rig: Rig) => (rig.end?.error as GatewayError | undefined)?.code
const account = (name: string, isEnabled = true) => ({ name, key: new Secret(`key-of-${name}`), isEnabled })
const one: RigOptions = { wire: 'chat', accounts: [account('a'), account('b', false)] }

for (const cause of ['upstream_connect'] as const)
  test(`Y26 ${cause}: the only account is asked once more on a fresh connection, and then no more`, async () => {
    const rig = startRig(one)
    fail(rig, cause)
    assert.deepEqual([rig.sent.length, rig.sent[1]?.isFresh], [2, true])
    answer(rig)
    await rig.turn()
    assert.deepEqual([rig.client.reply?.status, rig.record.attempts, rig.debits.length], [200, 2, 1])
    const worse = startRig(one)
    fail(worse, cause)
    fail(worse, cause)
    worse.advance(10_000)
    await worse.turn()
    assert.deepEqual([worse.sent.length, codeOf(worse), worse.debits.length], [2, 'upstream_error', 0])
  })

const waits: [status: number, headers: Record<string, string>, waitMs: number | undefined][] = [
  [429, { 'retry-after': '1' }, 1_000],
  [429, { 'retry-after': '2' }, 2_000],
  [429, { 'retry-after-ms': '1500' }, 2_000],
  [429, { 'retry-after': '0' }, 1_000],
  [529, { 'retry-after': '0.4' }, 1_000],
  [503, { 'retry-after': '0.0', 'retry-after-ms': '0' }, 1_000],
  [503, { 'retry-after': '2.5' }, undefined],
  [529, { 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' }, undefined],
  [503, { 'retry-after': '2' }, 2_000],
  [529, { 'retry-after': '1' }, 1_000],
  [429, { 'retry-after': '3' }, undefined],
  [503, {}, undefined],
  [429, {}, undefined],
  [500, { 'retry-after': '1' }, undefined],
  [502, { 'retry-after': '1' }, undefined],
  [401, { 'retry-after': '1' }, undefined],
]
for (const [status, more, waitMs] of waits)
  test(`Y26 ${status} with ${JSON.stringify(more)}: ${waitMs === undefined ? 'not asked again' : `asked again after ${waitMs} ms`}`, async () => {
    const rig = startRig(one)
    refuse(rig, status, more)
    await rig.turn()
    if (waitMs === undefined) {
      assert.deepEqual([rig.sent.length, rig.end?.error !== undefined], [1, true])
      return
    }
    rig.advance(waitMs - 1)
    assert.deepEqual([rig.sent.length, rig.end], [1, undefined])
    rig.advance(1)
    assert.deepEqual([rig.sent.length, rig.sent[1]?.isFresh], [2, true])
    refuse(rig, status, more)
    rig.advance(60_000)
    await rig.turn()
    assert.deepEqual([rig.sent.length, rig.debits.length, rig.released], [2, 0, 1], 'once')
    assert.equal(codeOf(rig), status === 503 ? 'upstream_error' : 'rate_limit_exceeded')
  })

test('Y26 U1 the record says why no attempt followed the last failure, not why none followed an earlier one', async () => {
  for (const [last, stopped] of [
    [429, 'nobody'],
    [400, 'final'],
  ] as const) {
    const rig = startRig(one)
    refuse(rig, 429, { 'retry-after': '1' })
    rig.advance(1_000)
    refuse(rig, last)
    await rig.turn()
    assert.deepEqual([rig.sent.length, rig.record.stopped], [2, stopped])
  }
})

test('Y26 a refusal about money, one after which others could be asked, or a second account ends without a wait', async () => {
  const spent = startRig(one)
  refuse(
    spent,
    429,
    { 'retry-after': '1' },
    { error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'x' } },
  )
  await spent.turn()
  assert.equal(codeOf(spent), 'no_upstream_account')
  const two = startRig({ wire: 'chat', accounts: [account('a'), account('b')] })
  refuse(two, 429, { 'retry-after': '1' })
  assert.equal(two.sent.length, 2, 'another account at once')
  refuse(two, 429, { 'retry-after': '1' })
  two.advance(5_000)
  await two.turn()
  assert.deepEqual([two.sent.length, codeOf(two)], [2, 'rate_limit_exceeded'])
})

test('Y26 a client that leaves between attempts pays nothing, and nothing more is sent', async () => {
  const rig = startRig(one)
  refuse(rig, 429, { 'retry-after': '2' })
  rig.client.leave()
  rig.advance(5_000)
  await rig.turn()
  assert.deepEqual([rig.sent.length, rig.debits.length, rig.released, rig.record.outcome], [1, 0, 1, 'client_abort'])
})

test('Y26 the end of the process ends the wait', async () => {
  const rig = startRig(one)
  refuse(rig, 503, { 'retry-after': '2' })
  for (const delivery of [...rig.gateway.deliveries]) delivery.shutDown()
  rig.advance(5_000)
  await rig.turn()
  assert.deepEqual([rig.sent.length, rig.debits.length, rig.released, rig.record.outcome], [1, 0, 1, 'shutdown'])
})

test('Y26 the retry budget limits the repetition', async () => {
  const memory = createPoolMemory(() => 0)
  const counts: number[] = []
  for (let i = 0; i < 14; i++) {
    const rig = startRig({ ...one, memory })
    fail(rig, 'upstream_connect')
    if (rig.sent.length > 1) fail(rig, 'upstream_connect')
    await rig.turn()
    counts.push(rig.sent.length)
  }
  assert.deepEqual(counts, [...Array(10).fill(2), ...Array(4).fill(1)])
})

test('Y26 of several requests that the only account refuses at once, one waits, because only one is let through afterwards', async () => {
  const memory = createPoolMemory(() => 0)
  const rigs = Array.from({ length: 5 }, () => startRig({ ...one, memory }))
  for (const rig of rigs) refuse(rig, 429, { 'retry-after': '2' })
  for (const rig of rigs) await rig.turn()
  assert.deepEqual(
    rigs.map((rig) => codeOf(rig)),
    [undefined, ...Array(4).fill('rate_limit_exceeded')],
  )
})
