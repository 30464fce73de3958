import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { Secret } from '../../src/config/config.ts'
import { GatewayError } from '../../src/errors.ts'
import { ChainWalk } from '../../src/gateway/chain.ts'
import type { Exchange } from '../../src/gateway/exchange.ts'
import type { CallRecord } from '../../src/gateway/record.ts'
import { judge } from '../../src/upstream/verdict.ts'
import { modelOf, routeOf } from '../native/models.ts'
import { collect } from '../support/garbage.ts'
import { answers, chunk, frames } from '../support/native.ts'
import { listFrom } from '../support/price-lists.ts'
import { until } from '../support/waiting.ts'
import { type Rig, startRig } from './rig.ts'

const bytes = (text: string) => Buffer.from(text)
const json = new Map([['content-type', 'application/json']])
const sse = new Map([['content-type', 'text/event-stream']])
const pdf = Buffer.from('%PDF-1.4\n').toString('base64')
const said = (content: object[]) => ({ role: 'user', content })

function answerWhole({ sent }: Rig, answer: object = answers.chat): void {
  const { listener } = sent.at(-1)!
  listener.onHead(200, 'application/json', json)
  listener.onData(bytes(JSON.stringify(answer)))
  listener.onEnd()
}

/** Opens the stream and tells so many of its frames. */
function beginStream({ sent }: Rig, told: number, wire: 'chat' | 'messages' | 'responses' = 'chat'): void {
  const { listener } = sent.at(-1)!
  listener.onHead(200, 'text/event-stream', sse)
  for (const frame of frames[wire].slice(0, told)) listener.onData(bytes(frame))
}

function codeOf({ end }: Rig): string | undefined {
  return end?.error instanceof GatewayError ? end.error.code : end?.error?.message
}

/** Nothing is left of a request that has ended: not in the gateway's sets, not held, not listened to. */
function assertOver(rig: Rig): void {
  assert.ok(rig.end, 'the request has ended')
  assert.equal(rig.released, 1, 'the hold is given back once')
  assert.equal(rig.gateway.deliveries.size, 0)
  assert.equal(rig.gateway.readers.count, 0)
}

/** A request with a document in it, as each wire has one. */
const documents = {
  messages: {
    messages: [said([{ type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }])],
  },
  chat: {
    messages: [said([{ type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } }])],
  },
  responses: {
    input: [said([{ type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` }])],
  },
}

const pairs = clientWireNames.flatMap((client) => clientWireNames.map((wire) => ({ client, wire })))
// A chat model's documents are its own wire's matter.
for (const { client, wire } of pairs.filter((pair) => pair.wire !== 'chat' || pair.client === 'chat'))
  test(`C3 C14 only the model knows the tokens of a document of a few bytes: ${client} to ${wire}`, async () => {
    const rig = startRig({ client, wire, ask: documents[client] })
    const usage = { ...(answers[wire]['usage'] as object), input_tokens: 184_000, prompt_tokens: 184_000 }
    answerWhole(rig, { ...answers[wire], usage })
    await rig.turn()
    const { usage: billed, usageSource } = rig.debits[0]!
    const all = billed.inputTokens + billed.cacheReadTokens + billed.cacheWriteTokens
    assert.deepEqual([all, usageSource], [wire === 'messages' ? 184_004 : 184_000, 'final'])
  })

test('C3 the end of an answer, whole or streamed, waits until the debit is durable', async () => {
  for (const stream of [false, true]) {
    const rig = startRig({ stream })
    rig.ledger.isHeld = true
    if (stream) {
      beginStream(rig, frames.chat.length)
      assert.match(rig.client.text, /😀/)
    } else answerWhole(rig)
    await rig.turn()
    assert.equal(rig.debits.length, 1)
    assert.deepEqual([rig.client.reply, rig.client.isEnded, rig.end], [undefined, false, undefined])
    assert.doesNotMatch(rig.client.text, /DONE/)
    rig.ledger.release()
    await rig.turn()
    if (stream) assert.ok(rig.client.text.endsWith('data: [DONE]\n\n'))
    else assert.equal(rig.client.reply?.status, 200)
    assert.equal(rig.record.outcome, 'ok')
    assertOver(rig)
  }
})

test('C9 a debit names key, both wires, upstream and its account; without a credential it names no upstream account', async () => {
  for (const accounts of [[{ name: 'payer', key: new Secret('upstream-key-1'), isEnabled: true }], []]) {
    const rig = startRig({ accounts })
    answerWhole(rig)
    await rig.turn()
    const { keyId, clientWire, modelWire, upstream, upstreamAccount, pricedCalls } = rig.debits[0]!
    assert.deepEqual(
      { keyId, clientWire, modelWire, upstream, upstreamAccount, pricedCalls },
      {
        ...{ keyId: 'key_1', clientWire: 'chat', modelWire: 'chat' },
        ...{ upstream: 'sim', upstreamAccount: accounts[0]?.name, pricedCalls: 0 },
      },
    )
  }
})

test('C3 while the debit is being posted, no action of either side changes the bill or the end', async () => {
  const rig = startRig({ stream: true })
  rig.ledger.isHeld = true
  beginStream(rig, frames.chat.length)
  const { listener } = rig.sent[0]!
  listener.onData(bytes(frames.chat[1]!))
  listener.onError({ cause: 'upstream_reset', isReuseRace: false })
  rig.client.leave()
  rig.client.catchUp()
  rig.advance(10_000_000)
  for (const delivery of rig.gateway.deliveries) delivery.shutDown()
  await rig.turn()
  assert.deepEqual([rig.debits.length, rig.end], [1, undefined])
  rig.ledger.release()
  await rig.turn()
  assert.equal(rig.debits.length, 1)
  assert.equal(rig.record.outcome, 'ok')
  assert.ok(rig.client.isEnded)
  assert.deepEqual(rig.bugs, [])
  assertOver(rig)
})

test('C3 C5 if a debit cannot be stored, an answer not yet shown is a 500, and a started stream is cut', async () => {
  for (const stream of [false, true]) {
    const rig = startRig({ stream })
    rig.ledger.isHeld = true
    if (stream) beginStream(rig, frames.chat.length)
    else answerWhole(rig)
    rig.ledger.refuse(new Error('no disk'))
    await rig.turn()
    assert.deepEqual([rig.record.outcome, rig.record.cause], ['internal_error', 'ledger_unsettled'])
    assert.equal(rig.record.costNanos, undefined, 'nothing was billed')
    assert.equal(rig.client.isDestroyed, stream)
    assert.equal(rig.client.isEnded, false)
    const { error } = rig.end!
    assert.equal(
      error instanceof GatewayError && error.code,
      stream ? false : 'internal_error',
      'the ledger told why: no bug',
    )
    assertOver(rig)
  }
})

test('U1 F-U6 after a race on a reused connection the same account is asked once more, and never a third time', async () => {
  const rig = startRig()
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  assert.deepEqual([rig.sent[0]!.isFresh, rig.sent[1]!.isFresh], [false, true], 'on a fresh connection')
  assert.equal(rig.sent.length, 2)
  assert.equal(rig.record.attempts, 2)
  rig.sent[1]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  await rig.turn()
  assert.equal(rig.sent.length, 2)
  assert.deepEqual([codeOf(rig), rig.record.cause], ['upstream_error', 'upstream_reset'])
  assertOver(rig)
})

test('U1 a single account is not asked again after any other failure', async () => {
  for (const cause of [
    'upstream_dns',
    'upstream_proxy',
    'upstream_tls',
    'upstream_reset',
    'upstream_protocol',
  ] as const) {
    const rig = startRig()
    rig.sent[0]!.listener.onError({ cause, isReuseRace: false })
    await rig.turn()
    assert.equal(rig.sent.length, 1, cause)
    assert.deepEqual([codeOf(rig), rig.debits.length], ['upstream_error', 0], cause)
  }
})

test('U1 C4 no further attempt is made for a client that has left', async () => {
  const rig = startRig()
  rig.client.leave()
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  await rig.turn()
  assert.equal(rig.sent.length, 1)
  assert.deepEqual([rig.record.outcome, rig.debits.length, rig.end?.error], ['client_abort', 0, undefined])
  assertOver(rig)
})

test('U2 without any account the answer is a 503, and nothing is sent', async () => {
  const rig = startRig({ model: { routes: [routeOf(modelOf('chat'), { upstream: 'nowhere' })] } })
  await rig.turn()
  assert.deepEqual([codeOf(rig), rig.sent.length, rig.debits.length], ['no_upstream_account', 0, 0])
  assert.equal(rig.record.cause, 'no_upstream_account')
  assertOver(rig)
})

test('the silence limits of an attempt count from its own start, those of the request from the first', async () => {
  const rig = startRig()
  rig.advance(590_000)
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  rig.advance(590_000)
  assert.equal(rig.end, undefined)
  rig.advance(10_000)
  await rig.turn()
  assert.equal(rig.record.cause, 'upstream_ttfb_timeout')
  assert.ok(rig.sent[1]!.isAborted)

  const long = startRig({ stream: true })
  beginStream(long, 2)
  for (let minute = 1; minute < 60; minute++) {
    long.advance(60_000)
    long.sent[0]!.listener.onData(bytes(frames.chat[1]!))
  }
  assert.equal(long.end, undefined)
  long.advance(60_000)
  await long.turn()
  assert.equal(long.record.outcome, 'upstream_stall')
  assertOver(long)
})

test('F-C9 m09 a client that does not read pauses the upstream, and that silence is not counted against the upstream', async () => {
  const rig = startRig({ stream: true, timeouts: { writeStallMs: 1_000_000, idleMs: 120_000 } })
  rig.client.isReading = false
  beginStream(rig, 2)
  const one = rig.sent[0]!
  assert.ok(one.isPaused)
  rig.advance(500_000)
  assert.equal(rig.record.cause, undefined)
  rig.client.catchUp()
  assert.equal(one.isPaused, false)
  rig.advance(119_000)
  assert.equal(rig.record.cause, undefined, 'the silence is counted anew')
  rig.advance(2_000)
  await rig.turn()
  assert.equal(rig.record.outcome, 'upstream_stall')
  assertOver(rig)
})

test('F-C9 a client that stalls for the write deadline is cut and billed', async () => {
  const rig = startRig({ stream: true })
  rig.client.isReading = false
  beginStream(rig, 2)
  rig.advance(59_000)
  assert.equal(rig.client.isDestroyed, false)
  rig.advance(2_000)
  await rig.turn()
  assert.deepEqual([rig.record.outcome, rig.client.isDestroyed], ['client_stall', true])
  assert.ok(rig.sent[0]!.isAborted)
  assert.equal(rig.debits[0]?.outcome, 'client_stall')
  assertOver(rig)
})

test('translation 4.1 the head waits for visible content, at most ten seconds after the upstream’s', () => {
  const rig = startRig({ stream: true })
  beginStream(rig, 1)
  assert.equal(rig.client.isBegun, false)
  rig.advance(9_000)
  assert.equal(rig.client.isBegun, false)
  rig.advance(1_000)
  assert.ok(rig.client.isBegun)
  assert.match(rig.client.text, /assistant/)

  const silent = startRig({ stream: true })
  beginStream(silent, 0)
  silent.advance(10_000)
  assert.equal(silent.client.isBegun, false, 'an upstream that says nothing is not alive')
})

test('U4 a silent stream gets a ping every ten seconds, counted from the last write', () => {
  const rig = startRig({ stream: true })
  beginStream(rig, 2)
  rig.advance(9_000)
  assert.doesNotMatch(rig.client.text, /ping/)
  rig.sent[0]!.listener.onData(bytes(frames.chat[2]!))
  rig.advance(9_000)
  assert.doesNotMatch(rig.client.text, /ping/)
  rig.advance(1_000)
  assert.ok(rig.client.text.endsWith(': ping\n\n'))
})

test('spec 7.4.4 C4 a failure after the head is an error frame without a terminator, billed if something was shown', async () => {
  for (const [told, debits] of [
    [1, 0],
    [2, 1],
  ] as const) {
    const rig = startRig({ stream: true })
    beginStream(rig, told)
    rig.advance(10_000)
    assert.ok(rig.client.isBegun)
    rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: false })
    await rig.turn()
    assert.match(rig.client.text, /"error"/)
    assert.doesNotMatch(rig.client.text, /DONE/)
    assert.deepEqual([rig.record.outcome, rig.debits.length], ['upstream_cut', debits])
    assertOver(rig)
  }
})

test('C3 the figures of a stream that was cut are partial, even if the model reported them with its last piece', async () => {
  const rig = startRig({ stream: true })
  beginStream(rig, 2)
  const usage = { prompt_tokens: 9, completion_tokens: 50, total_tokens: 59 }
  rig.sent[0]!.listener.onData(bytes(chunk({ choices: [{ index: 0, delta: { content: 'and' } }], usage })))
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: false })
  await rig.turn()
  const { outcome, usageSource, usage: billed } = rig.debits[0]!
  assert.deepEqual([outcome, usageSource, billed.outputTokens], ['upstream_cut', 'partial', 50])
})

test('Y5 a client that reads a call as an object gets an error in place of the end of a broken call', async () => {
  const rig = startRig({ client: 'messages', stream: true, ask: { tools: [{ name: 'f', input_schema: {} }] } })
  const call = { index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"a":' } }
  beginStream(rig, 0)
  for (const choice of [{ delta: { tool_calls: [call] } }, { delta: {}, finish_reason: 'tool_calls' }])
    rig.sent[0]!.listener.onData(bytes(chunk({ choices: [{ index: 0, ...choice }] })))
  rig.sent[0]!.listener.onData(bytes('data: [DONE]\n\n'))
  await rig.turn()
  assert.match(rig.client.text, /tool_use.*event: error/s)
  assert.doesNotMatch(rig.client.text, /tool_use".*message_stop/s)
})

test('translation 4.1 content before a fault counts, whatever the pieces it arrives in', async () => {
  const error = chunk({ error: { message: 'no', type: 'server_error' } })
  const rig = startRig({ stream: true })
  beginStream(rig, 0)
  rig.sent[0]!.listener.onData(bytes(frames.chat[0]! + frames.chat[1]! + error))
  await rig.turn()
  assert.ok(rig.client.isBegun)
  assert.match(rig.client.text, /Hé .*"error"/s)
  assert.equal(rig.debits.length, 1)

  const early = startRig({ stream: true })
  beginStream(early, 0)
  early.sent[0]!.listener.onData(bytes(frames.chat[0]! + error))
  await early.turn()
  assert.deepEqual([early.client.isBegun, codeOf(early), early.debits.length], [false, 'upstream_error', 0])
})

test('C4 m32 cut answers are waived if the operator says so, except those that our own shutdown cut', async () => {
  const cut = startRig({ stream: true, cutAnswers: 'waive' })
  beginStream(cut, 2)
  cut.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: false })
  await cut.turn()
  assert.deepEqual([cut.debits[0]?.usageSource, cut.debits[0]?.amountNanos], ['waived', 0n])

  const stopped = startRig({ stream: true, cutAnswers: 'waive' })
  beginStream(stopped, 2)
  for (const delivery of stopped.gateway.deliveries) delivery.shutDown()
  await stopped.turn()
  assert.equal(stopped.debits[0]?.outcome, 'shutdown')
  assert.notEqual(stopped.debits[0]?.usageSource, 'waived')
  assert.ok(stopped.debits[0]!.amountNanos > 0n)

  const left = startRig({ stream: true, cutAnswers: 'waive' })
  beginStream(left, 2)
  left.client.leave()
  await left.turn()
  assert.notEqual(left.debits[0]?.usageSource, 'waived')
})

test('C4 a client that leaves before its answer began: read on for its usage, at most the settle window', async () => {
  const whole = startRig()
  whole.client.leave()
  assert.equal(whole.gateway.readers.count, 1)
  answerWhole(whole)
  await whole.turn()
  assert.deepEqual([whole.debits[0]?.outcome, whole.debits[0]?.usageSource], ['client_abort', 'final'])
  assert.equal(whole.client.reply, undefined)
  assertOver(whole)

  const never = startRig()
  never.client.leave()
  never.advance(29_000)
  assert.equal(never.debits.length, 0)
  never.advance(1_000)
  await never.turn()
  assert.deepEqual([never.debits[0]?.outcome, never.debits[0]?.usageSource], ['client_abort', 'estimated'])
  assert.ok(never.sent[0]!.isAborted)
  assertOver(never)

  const stopped = startRig()
  stopped.client.leave()
  for (const delivery of stopped.gateway.deliveries) delivery.shutDown()
  await stopped.turn()
  assert.equal(stopped.debits[0]?.outcome, 'client_abort')
  assertOver(stopped)
})

test('C4 a client that leaves a stream that it has seen cancels it; leaving a refusal or nothing costs nothing', async () => {
  const seen = startRig({ stream: true })
  beginStream(seen, 2)
  seen.client.leave()
  await seen.turn()
  assert.ok(seen.sent[0]!.isAborted)
  assert.equal(seen.debits[0]?.outcome, 'client_abort')
  assertOver(seen)

  const refused = startRig()
  refused.sent[0]!.listener.onHead(400, 'application/json', json)
  refused.client.leave()
  await refused.turn()
  assert.ok(refused.sent[0]!.isAborted)
  assert.deepEqual([refused.debits.length, refused.record.outcome], [0, 'client_abort'])
  assertOver(refused)

  const early = startRig({ isGone: true })
  await early.turn()
  assert.deepEqual([early.sent.length, early.debits.length, early.record.outcome], [0, 0, 'client_abort'])
  assertOver(early)
})

test('C4 C12 of 200 answers read on at once an account may have 20; its next one is billed by estimate at once', async () => {
  const full = startRig()
  for (let i = 0; i < 200; i++) assert.ok(full.gateway.readers.enter(`acct_${i % 10}0`))
  full.client.leave()
  await full.turn()
  assert.deepEqual([full.debits[0]?.usageSource, full.gateway.readers.count], ['estimated', 200])
  full.gateway.readers.leave('acct_10')
  assert.ok(full.gateway.readers.enter('acct_1'), 'a place that is given back is free')

  const greedy = startRig()
  for (let i = 0; i < 20; i++) assert.ok(greedy.gateway.readers.enter('acct_1'))
  greedy.client.leave()
  await greedy.turn()
  assert.deepEqual([greedy.debits[0]?.usageSource, greedy.gateway.readers.count], ['estimated', 20])
  assert.ok(greedy.gateway.readers.enter('acct_2'), 'another account has its own')
})

test('m22 an upstream that has sent everything and does not close is closed a second later; one that ends keeps its connection', async () => {
  const slow = startRig({ stream: true })
  beginStream(slow, frames.chat.length)
  await slow.turn()
  assertOver(slow)
  assert.equal(slow.gateway.lingering.size, 1)
  slow.advance(900)
  assert.equal(slow.sent[0]!.isAborted, false)
  slow.advance(100)
  assert.ok(slow.sent[0]!.isAborted)
  assert.equal(slow.gateway.lingering.size, 0)

  const quick = startRig({ stream: true })
  beginStream(quick, frames.chat.length)
  await quick.turn()
  quick.sent[0]!.listener.onEnd()
  quick.advance(2_000)
  assert.deepEqual([quick.sent[0]!.isAborted, quick.gateway.lingering.size], [false, 0])
})

test('H-F4 a lingering upstream does not keep its answered exchange in memory', async () => {
  const rig = startRig({ stream: true })
  const kept = new WeakRef(rig.exchange)
  rig.exchange = undefined as never
  beginStream(rig, frames.chat.length)
  await rig.turn()
  assert.equal(rig.gateway.lingering.size, 1)
  await until(() => {
    collect()
    return kept.deref() === undefined
  }, 'the exchange is let go')
})

test('H-F4 R18 a stream of a chain keeps the request of no entry in memory', async () => {
  const released: string[] = []
  const exchange = { forget: () => void released.push('first') } as unknown as Exchange
  const begin = () => {
    const body = Buffer.alloc(100_000)
    const model = modelOf('chat')
    const entry = { model, holdNanos: 0n, asking: () => assert.fail(`${body.length} bytes are sent again`) }
    const chain = { entries: [model, model, model], when: new Set(['unavailable'] as const), returnMs: undefined }
    const walk = new ChainWalk(chain, { hops: [] } as unknown as CallRecord, entry, [entry], undefined)
    const failure = { fault: { kind: 'broken' as const, text: '' }, cause: 'upstream_500' }
    walk.failed({ failure, verdict: judge(failure, model), target: undefined, of: { model, exchange } })
    const rig = startRig({ stream: true, chain: walk })
    beginStream(rig, 2)
    return { rig, body: new WeakRef(body) }
  }
  const { rig, body } = begin()
  assert.ok(rig.client.isBegun)
  assert.deepEqual(released, ['first'])
  await until(() => {
    collect()
    return body.deref() === undefined
  }, 'the body is let go')
  assert.equal(rig.end, undefined)
  rig.client.leave()
})

test('m22 an upstream that lingers after its client stalled is read to its end', async () => {
  const rig = startRig({ stream: true })
  rig.client.isReading = false
  beginStream(rig, frames.chat.length)
  await rig.turn()
  assert.equal(rig.sent[0]!.isPaused, false)
})

test('F-P7 a bug in any entry of a delivery ends that request and no other', async () => {
  const bug = new Error('a bug')
  const entries: Record<string, (rig: Rig) => void> = {
    'the client leaves': (rig) => rig.client.leave(),
    'the client has caught up': (rig) => rig.client.catchUp(),
    'a deadline': (rig) => rig.advance(59_000),
    'the shutdown': ({ gateway }) => {
      for (const delivery of gateway.deliveries) delivery.shutDown()
    },
  }
  for (const [name, enter] of Object.entries(entries)) {
    const rig = startRig({ stream: true, timeouts: { totalMs: 30_000 } })
    rig.client.isReading = false
    beginStream(rig, 2)
    rig.sent[0]!.bug = bug
    enter(rig)
    await rig.turn()
    assert.equal(rig.debits.length, 1, name)
    assert.equal(rig.record.outcome, 'internal_error', name)
    assert.equal(rig.end?.error, bug, name)
    assert.ok(rig.client.isDestroyed, name)
    assertOver(rig)
  }
})

test('F-P7 a bug in reading an upstream is a 500 before anything is shown, and a billed cut after that', async () => {
  for (const wire of clientWireNames) {
    const unseen = startRig({ wire })
    unseen.sent[0]!.listener.onHead(200, 'application/json', undefined as never)
    await unseen.turn()
    assert.ok(unseen.end?.error instanceof TypeError)
    assert.ok(unseen.sent[0]!.isAborted)
    assertOver(unseen)

    const seen = startRig({ wire, stream: true })
    beginStream(seen, 4, wire)
    seen.sent[0]!.listener.onData(undefined as never)
    await seen.turn()
    assert.ok(seen.end?.error instanceof TypeError)
    assert.equal(seen.debits[0]?.outcome, 'internal_error')
    assertOver(seen)
  }
})

test('F-P7 a ledger that throws ends the request, and is not asked endlessly', async () => {
  const rig = startRig({ stream: true })
  beginStream(rig, 2)
  let asked = 0
  rig.gateway.ledger.debit = () => {
    asked++
    throw new Error('a bug of the ledger')
  }
  rig.client.leave()
  await rig.turn()
  assert.equal(asked, 2)
  assert.equal(rig.end?.error?.message, 'a bug of the ledger')
  assertOver(rig)
})

test('F-P7 if the last frame cannot be written, the answer is paid, the connection closed, and the bug logged', async () => {
  for (const stream of [false, true]) {
    const rig = startRig({ stream })
    rig.client.bug = new Error('a bug at the end')
    if (stream) beginStream(rig, frames.chat.length)
    else answerWhole(rig)
    await rig.turn()
    assert.deepEqual([rig.debits.length, rig.client.isDestroyed, rig.end?.error], [1, true, rig.client.bug])
    assertOver(rig)
  }
})

test('F-P7 a failure after the end of a request is logged, and the client gets no second answer', async () => {
  const rig = startRig()
  answerWhole(rig)
  const [delivery] = rig.gateway.deliveries
  await rig.turn()
  ;(delivery as unknown as { onBug(bug: Error): void }).onBug(new Error('late'))
  assert.deepEqual([rig.bugs.map(({ message }) => message), rig.end], [['late'], { error: undefined }])
  assertOver(rig)
})

test('H-F4 a request is freed when an answer begins, and kept while another attempt may follow', () => {
  const rig = startRig({ stream: true })
  rig.sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: true })
  assert.deepEqual(rig.sent[1]!.body, rig.sent[0]!.body)
  beginStream(rig, 0)
  assert.throws(() => rig.exchange.bodyFor(rig.sent[1]!.target), /was released/)

  const refused = startRig()
  refused.sent[0]!.listener.onHead(400, 'application/json', json)
  assert.ok(refused.exchange.bodyFor(refused.sent[0]!.target).length > 0)
})

test('U1 F-U16 a refusal whose body stalls is reported by its status, and so is its wait', async () => {
  const rig = startRig()
  rig.sent[0]!.listener.onHead(429, 'application/json', new Map([...json, ['retry-after', '7']]))
  rig.advance(120_000)
  await rig.turn()
  assert.deepEqual([codeOf(rig), rig.record.cause], ['rate_limit_exceeded', 'upstream_429'])
  assert.equal((rig.end!.error as GatewayError).retryAfterSeconds, 7)
  assertOver(rig)
})

test('F-U16 a refusal that arrives slowly is read for at most 5 s', async () => {
  const rig = startRig()
  const { listener } = rig.sent[0]!
  listener.onHead(503, 'application/json', json)
  for (let at = 0; at < 4; at++) {
    rig.advance(1_000)
    listener.onData(bytes('{'))
  }
  await rig.turn()
  assert.equal(rig.end, undefined)
  rig.advance(1_000)
  await rig.turn()
  assert.deepEqual([codeOf(rig), rig.record.cause], ['upstream_error', 'upstream_503'])
  assertOver(rig)
})

test('F-P7 if releasing the hold throws, the request ends all the same', async () => {
  const rig = startRig()
  rig.releaseBug = new Error('a bug of the release')
  answerWhole(rig)
  await rig.turn()
  assert.ok(rig.end)
  assert.deepEqual(rig.bugs, [rig.releaseBug])
})

test('U1 errors with status 200 are reported to the pool too', async () => {
  for (const stream of [false, true]) {
    const rig = startRig({ stream })
    const error = { error: { message: 'no', type: 'rate_limit_error' } }
    if (stream) {
      beginStream(rig, 0)
      rig.sent[0]!.listener.onData(bytes(`data: ${JSON.stringify(error)}\n\n`))
    } else answerWhole(rig, error)
    await rig.turn()
    const [row] = rig.snapshot.pool.list([modelOf('chat')])
    assert.deepEqual([row?.state, row?.cause], ['cooling', stream ? 'upstream_error_event' : 'upstream_error_body'])
  }
})

test('Y15 C11 a replica whose clock differs prices by the time of the store, and dates the entry by it', async () => {
  const hourMs = 3_600_000
  // The clock of a rig shows 1,000,000 ms; the second row begins at 600,000.
  const rows = (counts: string) =>
    listFrom(`[{ input: "1", output: "1"${counts} }, { from: 1970-01-01T00:10:00Z, input: "2", output: "2"${counts} }]`)
  for (const counts of ['', ', counts: start'])
    for (const aheadMs of [0, 300_000, 500_000, -hourMs]) {
      const rig = startRig({ wire: 'chat', model: { prices: rows(counts) } })
      rig.gateway.aheadMs = () => aheadMs
      const nowMs = rig.gateway.nowMs()
      answerWhole(rig)
      await until(() => rig.end !== undefined, 'it is over')
      const [debit] = rig.debits
      assert.equal(debit!.createdMs, nowMs - aheadMs)
      const isLater = nowMs - aheadMs >= 600_000
      assert.equal(debit!.prices.inputNanos, isLater ? 2_000_000_000n : 1_000_000_000n)
    }
  // If the clock is set back while the model works, no prices of a later row apply than at the time of the entry.
  const back = startRig({ wire: 'chat', model: { prices: rows(', counts: start') } })
  back.gateway.nowMs = () => 500_000
  answerWhole(back)
  await until(() => back.end !== undefined, 'it is over')
  const [early] = back.debits
  assert.deepEqual([early!.createdMs, early!.prices.inputNanos], [500_000, 1_000_000_000n])
  // The same holds for a list of what the provider charges.
  for (const aheadMs of [0, 500_000]) {
    const rig = startRig({ wire: 'chat', model: { cost: rows('') } })
    rig.gateway.aheadMs = () => aheadMs
    answerWhole(rig)
    await until(() => rig.end !== undefined, 'it is over')
    const [{ createdMs, costPrices }] = rig.debits as [(typeof rig.debits)[number]]
    assert.equal(createdMs, rig.gateway.nowMs() - aheadMs)
    assert.equal(costPrices?.inputNanos, aheadMs === 0 ? 2_000_000_000n : 1_000_000_000n)
  }
  // A plain list does not depend on the time, and its entries keep the time of the server.
  const plain = startRig({ wire: 'chat' })
  plain.gateway.aheadMs = () => hourMs
  answerWhole(plain)
  await until(() => plain.end !== undefined, 'it is over')
  assert.equal(plain.debits[0]!.createdMs, plain.gateway.nowMs())
})
