import assert from 'node:assert/strict'
import test from 'node:test'
import { Secret } from '../../src/config/config.ts'
import { GatewayError } from '../../src/errors.ts'
import type { AttemptListener } from '../../src/gateway/attempt.ts'
import type { Pool } from '../../src/upstream/pool.ts'
import { answers, chunk, frames } from '../support/native.ts'
import { type Rig, type RigOptions, startRig } from './rig.ts'

const bytes = (text: string) => Buffer.from(text)
const json = new Map([['content-type', 'application/json']])
const sse = new Map([['content-type', 'text/event-stream']])
const error = chunk({ error: { message: 'no', type: 'server_error' } })

/** A stream of which so many frames have come. */
function streaming(told: number, options: RigOptions = {}): Rig {
  const rig = startRig({ stream: true, ...options })
  rig.sent[0]!.listener.onHead(200, 'text/event-stream', sse)
  for (const frame of frames.chat.slice(0, told)) say(rig, frame)
  return rig
}

function say({ sent }: Rig, text: string): void {
  sent.at(-1)!.listener.onData(bytes(text))
}

function answerWhole(rig: Rig): void {
  rig.sent.at(-1)!.listener.onHead(200, 'application/json', json)
  say(rig, JSON.stringify(answers.chat))
  rig.sent.at(-1)!.listener.onEnd()
}

/** Nothing is left of a request that has ended. */
function assertOver(rig: Rig, name = 'the request has ended'): void {
  assert.ok(rig.end, name)
  assert.deepEqual([rig.released, rig.gateway.deliveries.size, rig.gateway.readers.count], [1, 0, 0], name)
}

test('C4 F-C9 reliability §3 each deadline of a request takes effect to the millisecond, and not earlier', async () => {
  const cases: { name: string; limitMs: number; rig: () => Rig; outcome: string; debits: number }[] = [
    {
      name: 'a client that has left',
      limitMs: 30_000,
      rig() {
        const rig = startRig()
        rig.client.leave()
        return rig
      },
      outcome: 'client_abort',
      debits: 1,
    },
    {
      name: 'a client that does not read',
      limitMs: 60_000,
      rig() {
        const rig = streaming(0)
        rig.client.isReading = false
        say(rig, frames.chat[0]! + frames.chat[1]!)
        return rig
      },
      outcome: 'client_stall',
      debits: 1,
    },
    {
      name: 'a request',
      limitMs: 200_000,
      rig: () => startRig({ timeouts: { totalMs: 200_000 } }),
      outcome: 'upstream_stall',
      debits: 0,
    },
    {
      name: 'a started stream',
      limitMs: 100_000,
      rig: () => streaming(2, { timeouts: { totalMs: 100_000 } }),
      outcome: 'upstream_stall',
      debits: 1,
    },
  ]
  for (const { name, limitMs, rig: start, outcome, debits } of cases) {
    const rig = start()
    rig.advance(limitMs - 1)
    await rig.turn()
    assert.equal(rig.end, undefined, name)
    rig.advance(1)
    await rig.turn()
    assert.deepEqual([rig.record.outcome, rig.debits.length], [outcome, debits], name)
    assert.ok(rig.sent[0]!.isAborted, name)
    assertOver(rig, name)
  }
})

test('F-C9 a stall counts from the first piece that the client does not take; after it we write nothing', async () => {
  const rig = streaming(1)
  rig.client.isReading = false
  say(rig, frames.chat[1]!)
  rig.advance(59_000)
  const { text } = rig.client
  assert.doesNotMatch(text, /ping/)
  say(rig, frames.chat[2]!)
  rig.advance(999)
  assert.equal(rig.client.isDestroyed, false)
  rig.advance(1)
  await rig.turn()
  assert.deepEqual([rig.client.isDestroyed, rig.record.outcome], [true, 'client_stall'])
  assertOver(rig)
})

test('F-C9 a client that takes a large piece slowly does not stall; the deadline counts from the last bytes taken', async () => {
  const rig = streaming(1)
  Object.assign(rig.client, { isReading: false, isTaking: true })
  say(rig, frames.chat[1]!)
  for (let times = 0; times < 5; times++) rig.advance(50_000)
  assert.equal(rig.end, undefined)
  rig.client.isTaking = false
  rig.advance(59_999)
  assert.equal(rig.client.isDestroyed, false)
  rig.advance(1)
  await rig.turn()
  assert.deepEqual([rig.client.isDestroyed, rig.record.outcome], [true, 'client_stall'])
  assertOver(rig)
})

test('F-C9 a client that keeps pace pauses nothing; one that has caught up may fall behind again', () => {
  const rig = streaming(2)
  assert.equal(rig.sent[0]!.isPaused, false)
  for (let time = 1; time <= 3; time++) {
    rig.client.isReading = false
    say(rig, frames.chat[2]!)
    assert.ok(rig.sent[0]!.isPaused, `${time}`)
    rig.advance(59_000)
    assert.equal(rig.client.isDestroyed, false, `${time}`)
    rig.client.catchUp()
    assert.equal(rig.sent[0]!.isPaused, false, `${time}`)
  }
})

test('U4 events that show the client nothing do not count as a sign of life', () => {
  const rig = streaming(0, { client: 'messages' })
  for (const frame of frames.chat.slice(0, 2)) say(rig, frame)
  assert.ok(rig.client.isBegun)
  rig.advance(9_000)
  say(rig, ': not told\n\n')
  const { text } = rig.client
  rig.advance(1_000)
  assert.match(rig.client.text.slice(text.length), /ping/)
})

test('translation 4.1 a head sent because of its deadline is followed by the withheld events, then the rest in order', () => {
  const rig = streaming(1)
  const twin = rig.exchange.openStream()
  const toldOf = (frame: string) => Buffer.from(twin.push(bytes(frame)), twin.encoding).toString()
  const held = toldOf(frames.chat[0]!)
  rig.advance(10_000)
  assert.equal(rig.client.text, held)
  say(rig, frames.chat[1]!)
  assert.equal(rig.client.text, held + toldOf(frames.chat[1]!))
})

test('C4 a client that left before it saw anything is shown nothing, and what was read for it is billed', async () => {
  const rig = streaming(1)
  rig.client.leave()
  rig.client.leave()
  assert.equal(rig.gateway.readers.count, 1)
  for (const frame of frames.chat.slice(1)) say(rig, frame)
  await rig.turn()
  assert.deepEqual([rig.client.isBegun, rig.client.text, rig.client.isEnded], [false, '', false])
  assert.deepEqual([rig.debits[0]?.outcome, rig.debits[0]?.usageSource], ['client_abort', 'final'])
  assertOver(rig)
})

test('C4 neither a head nor a ping is sent to a client that has left', () => {
  const rig = streaming(1)
  rig.client.leave()
  rig.advance(20_000)
  assert.equal(rig.client.isBegun, false)
})

test('C4 at most 200 answers whose clients left before them are read on at once', async () => {
  for (const [already, isReadOn] of [
    [199, true],
    [200, false],
  ] as const) {
    const rig = startRig()
    for (let i = 0; i < already; i++) assert.ok(rig.gateway.readers.enter(`acct_${i % 10}0`))
    rig.client.leave()
    await rig.turn()
    assert.deepEqual([rig.gateway.readers.count, rig.debits.length], [200, isReadOn ? 0 : 1])
    assert.equal(rig.sent[0]!.isAborted, !isReadOn)
  }
})

test('C3 reliability §1.1 after the bill, an attempt that still reports, by a bug, changes nothing', async () => {
  const rig = streaming(2)
  rig.ledger.isHeld = true
  const [delivery] = rig.gateway.deliveries as unknown as Set<AttemptListener>
  const relay = rig.exchange.openStream()
  rig.client.leave()
  const { text } = rig.client
  relay.push(bytes(frames.chat[1]!))
  delivery!.onPiece(relay, 'more')
  relay.push(bytes(frames.chat.slice(2).join('')))
  delivery!.onPiece(relay, 'the end')
  delivery!.onWhole(rig.exchange.readWhole(bytes(JSON.stringify(answers.chat))))
  delivery!.onWhole(rig.exchange.readWhole(bytes('no JSON')))
  delivery!.onFailure({ fault: { kind: 'broken', text: '' }, cause: 'upstream_reset' })
  rig.advance(10_000_000)
  await rig.turn()
  assert.deepEqual([rig.debits.length, rig.client.text, rig.end], [1, text, undefined])
  rig.ledger.release()
  await rig.turn()
  assert.deepEqual([rig.record.outcome, rig.record.cause, rig.sent.length], ['client_abort', undefined, 1])
  assert.deepEqual([rig.client.isEnded, rig.bugs], [false, []])
  assertOver(rig)
})

test('the log says why an answer failed: an error in its stream, in its body, or our own shutdown', async () => {
  const causes: [cause: string, rig: Rig][] = [
    ['upstream_error_event', streaming(1)],
    ['upstream_error_body', startRig()],
    ['shutdown', startRig()],
  ]
  say(causes[0]![1], error)
  const { listener } = causes[1]![1].sent[0]!
  listener.onHead(200, 'application/json', json)
  listener.onData(bytes(error.slice('data: '.length)))
  listener.onEnd()
  for (const delivery of causes[2]![1].gateway.deliveries) delivery.shutDown()
  for (const [cause, rig] of causes) {
    await rig.turn()
    assert.ok(rig.end?.error instanceof GatewayError)
    const code = cause === 'shutdown' ? 'internal_error' : 'upstream_error'
    assert.deepEqual([rig.record.cause, rig.record.code], [cause, code])
    assert.equal(rig.record.outcome, cause === 'shutdown' ? 'shutdown' : 'upstream_error')
    assert.equal(rig.sent[0]!.isAborted, cause !== 'upstream_error_body', 'what has not closed is hung up')
    assertOver(rig, cause)
  }
})

test('a refusal of the client’s own request is recorded as refused, and no other account is asked', async () => {
  const rig = startRig({ accounts: accountsOf('a', 'b') })
  rig.sent[0]!.listener.onHead(400, 'application/json', json)
  rig.sent[0]!.listener.onEnd()
  await rig.turn()
  assert.deepEqual([rig.record.outcome, rig.record.code, rig.sent.length], ['refused', 'invalid_request', 1])
})

function accountsOf(...names: string[]) {
  return names.map((name) => ({ name, key: new Secret(`key-of-${name}`), isEnabled: true }))
}

test('U1 after a failure of an account another one is asked; after a race on its connection, the same one', async () => {
  for (const isReuseRace of [false, true]) {
    const rig = startRig({ accounts: accountsOf('a', 'b') })
    rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace })
    const [first, second, ...more] = rig.sent.map(({ target }) => target.account!.name)
    assert.deepEqual([first === second, more], [isReuseRace, []])
    answerWhole(rig)
    await rig.turn()
    assert.equal(rig.client.reply?.status, 200)
    assert.equal(rig.debits[0]?.upstreamAccount, second)
    assert.deepEqual([rig.record.upstream, rig.record.upstreamAccount, rig.record.attempts], ['sim', second, 2])
    assertOver(rig)
  }
})

test('U1 after an answer has begun no other account is asked, whether it was shown or not', async () => {
  for (const stream of [false, true]) {
    const rig = startRig({ stream, accounts: accountsOf('a', 'b') })
    rig.sent[0]!.listener.onHead(200, stream ? 'text/event-stream' : 'application/json', stream ? sse : json)
    rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: false })
    await rig.turn()
    assert.deepEqual([rig.sent.length, rig.debits.length], [1, 0])
    assert.ok(rig.end?.error instanceof GatewayError)
  }
})

test('F-P7 a bug in the choice of a target ends the request as an internal error', async () => {
  const bug = new Error('a bug of the pool')
  const choose = () => {
    throw bug
  }
  const rig = startRig({ pool: { choose, sizeOf: () => 1 } as unknown as Pool })
  await rig.turn()
  assert.deepEqual([rig.end?.error, rig.sent.length, rig.debits.length], [bug, 0, 0])
  assert.deepEqual(rig.bugs, [], 'it is told once')
  assertOver(rig)
})

test('F-P7 C3 an answer cut by a bug is billed by the usage reported so far, neither as final nor waived', async () => {
  const rig = startRig({ wire: 'messages', stream: true, cutAnswers: 'waive' })
  rig.sent[0]!.listener.onHead(200, 'text/event-stream', sse)
  for (const frame of frames.messages.slice(0, 4)) say(rig, frame)
  rig.sent[0]!.listener.onData(undefined as never)
  await rig.turn()
  const { usageSource, usage, amountNanos, outcome } = rig.debits[0]!
  assert.deepEqual([usageSource, usage.inputTokens, usage.outputTokens, outcome], ['partial', 5, 0, 'internal_error'])
  assert.ok(amountNanos > 0n)
})

test('F-P7 C3 a debit that is confirmed twice ends its request once, and the second time is logged', async () => {
  const rig = startRig()
  rig.gateway.ledger.debit = () => {
    const posted = Promise.resolve('posted' as const)
    const tell = posted.then.bind(posted) as (done: () => void) => Promise<never>
    const value = (done: () => void) => [tell(done), tell(done)][0]
    return Object.defineProperty(posted, 'then', { value })
  }
  rig.client.leave()
  answerWhole(rig)
  await rig.turn()
  assert.deepEqual(rig.end, { error: undefined })
  assert.match(rig.bugs[0]?.message ?? '', /cannot go from over to over/)
  assertOver(rig)
})

test('C6 doubts about a model’s figures are recorded, and nothing is recorded without doubts', async () => {
  for (const [usage, flags] of [
    [answers.chat['usage'], false],
    [{ prompt_tokens: 9, completion_tokens: -3 }, true],
  ] as const) {
    const rig = startRig()
    rig.sent[0]!.listener.onHead(200, 'application/json', json)
    say(rig, JSON.stringify({ ...answers.chat, model: 'up', usage }))
    rig.sent[0]!.listener.onEnd()
    await rig.turn()
    assert.equal(Object.hasOwn(rig.record, 'flags'), flags)
    assert.equal((rig.record.flags?.length ?? 0) > 0, flags)
  }
})
