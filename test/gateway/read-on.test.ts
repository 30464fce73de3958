import assert from 'node:assert/strict'
import test from 'node:test'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { estimateTextTokens } from '../../src/inference/estimate.ts'
import { mayHideReasoning } from '../../src/wires/requests/reasoning-wish.ts'
import { listOf, modelOf, plainPrices } from '../native/models.ts'
import { answers, chunk, frames, named } from '../support/native.ts'
import { type Rig, type RigOptions, startRig } from './rig.ts'

/*
 * An answer that is over for its client before it is at the upstream (C12): who is read on, for how long, and what is
 * billed where the figures never came.
 */

const sse = new Map([['content-type', 'text/event-stream']])

/** A cached token costs a tenth. */
const cachePriced = { prices: listOf({ ...plainPrices, inputNanos: 3_000n, cacheReadNanos: 300n }) }

function begin({ sent }: Rig): void {
  sent.at(-1)!.listener.onHead(200, 'text/event-stream', sse)
}

function tell({ sent }: Rig, ...pieces: string[]): void {
  for (const piece of pieces) sent.at(-1)!.listener.onData(Buffer.from(piece))
}

function assertOver(rig: Rig): void {
  assert.ok(rig.end, 'the request has ended')
  assert.equal(rig.end.error, undefined)
  assert.deepEqual([rig.released, rig.debits.length], [1, 1])
  assert.deepEqual([rig.gateway.deliveries.size, rig.gateway.readers.count], [0, 0])
  assert.deepEqual(rig.bugs, [])
}

/** Frames up to the first words, and those behind. */
const wordsAt: Record<ClientWire, number> = { messages: 3, chat: 2, responses: 4 }

/** A stream whose client has seen its first words. */
function startShown(options: RigOptions = {}): Rig {
  const rig = startRig({ stream: true, ...options })
  const wire = options.wire ?? 'chat'
  begin(rig)
  tell(rig, ...frames[wire].slice(0, wordsAt[wire]))
  assert.ok(rig.client.isBegun)
  return rig
}

const rest = (wire: ClientWire) => frames[wire].slice(wordsAt[wire])

// Who is read on.

test('B9, C12: a client that leaves a stream before its cached tokens are reported is billed by its last event', async () => {
  for (const wire of ['chat', 'responses'] as const) {
    const rig = startShown({ wire, model: cachePriced })
    rig.client.leave()
    assert.deepEqual([rig.gateway.readers.count, rig.sent[0]!.isAborted], [1, false])
    const { text } = rig.client
    rig.advance(9_999)
    tell(rig, ...rest(wire))
    await rig.turn()
    assert.equal(rig.client.text, text, 'nobody is told anything')
    const { usage, usageSource, outcome } = rig.debits[0]!
    assert.deepEqual([usageSource, outcome, rig.record.outcome], ['final', 'client_abort', 'client_abort'])
    assert.deepEqual([usage.inputTokens, usage.cacheReadTokens, usage.outputTokens], [5, 4, 3])
    assertOver(rig)
  }
})

/** A stream of which all has come but its last word, with figures that are far from an estimate. */
const allButTheEnd = [
  chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: 'x1! '.repeat(30) }, finish_reason: null }] }),
  chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
  chunk({ choices: [], usage: { prompt_tokens: 9, completion_tokens: 60, total_tokens: 69 } }),
]

test('C3 C12 T19 the figures of a whole answer count, also if client, time or process ends before its last event', async () => {
  for (const client of clientWireNames)
    for (const how of ['leave', 'total', 'shutDown'] as const) {
      const rig = startRig({ wire: 'chat', client, stream: true })
      begin(rig)
      tell(rig, ...allButTheEnd)
      if (how === 'leave') rig.client.leave()
      else if (how === 'total') rig.advance(3_700_000)
      else for (const delivery of rig.gateway.deliveries) delivery.shutDown()
      await rig.turn()
      const { usage, usageSource, outcome } = rig.debits[0]!
      const expected = how === 'leave' ? 'client_abort' : 'ok'
      assert.deepEqual([usage.outputTokens, usageSource, outcome], [60, 'final', expected], `${client} ${how}`)
      assert.equal(rig.client.isEnded, how !== 'leave')
      assert.doesNotMatch(rig.client.text, /"error":\{|response\.failed/)
      assertOver(rig)
    }
})

test('C12: a stream that has reported its cached tokens, or whose cached tokens cost the same, is cancelled at once', async () => {
  const told = { choices: [{ index: 0, delta: { content: 'x' }, finish_reason: null }], usage: answers.chat['usage'] }
  const cases: [RigOptions, string[]][] = [
    [{ wire: 'messages', model: cachePriced }, []],
    [{ wire: 'chat' }, []],
    // A server that counts as it goes.
    [{ wire: 'chat', model: cachePriced }, [chunk(told)]],
  ]
  for (const [options, more] of cases) {
    const rig = startShown(options)
    tell(rig, ...more)
    rig.client.leave()
    assert.ok(rig.sent[0]!.isAborted)
    await rig.turn()
    assert.equal(rig.debits[0]!.outcome, 'client_abort')
    assertOver(rig)
  }
})

test('B9, C12: hidden reasoning is waited for, depending on the profile and on the request', async () => {
  const thinks = { thinking: { type: 'enabled', budget_tokens: 2_000 } }
  const rows: [wire: ClientWire, profile: string | undefined, ask: Record<string, unknown>, isReadOn: boolean][] = [
    ['chat', undefined, {}, false],
    ['chat', undefined, { reasoning_effort: 'high' }, true],
    ['chat', undefined, { reasoning_effort: 'none' }, false],
    ['chat', undefined, { reasoning: { effort: 'low' } }, true],
    ['chat', undefined, { reasoning: { max_tokens: 2_000 } }, true],
    ['chat', undefined, { reasoning: { enabled: false } }, false],
    ['chat', 'openai-reasoning', {}, true],
    ['chat', 'openrouter', { reasoning: { enabled: false } }, false],
    // It cannot be told not to.
    ['chat', 'openai-reasoning', { reasoning_effort: 'none' }, true],
    // All that they think is in their streams.
    ['chat', 'deepseek', { reasoning_effort: 'high' }, false],
    ['chat', 'qwen', { enable_thinking: true }, false],
    ['chat', 'vllm', thinks, false],
    ['messages', 'anthropic', {}, false],
    ['messages', 'anthropic', thinks, true],
    ['messages', 'anthropic', { thinking: { type: 'adaptive', display: 'summarized' } }, true],
    ['messages', 'anthropic', { thinking: { type: 'disabled' } }, false],
    ['messages', 'anthropic', { output_config: { effort: 'high' } }, true],
    ['responses', undefined, {}, true],
    ['responses', 'vllm', { reasoning: { effort: 'high' } }, false],
    ['responses', 'simulator', {}, false],
    ['responses', 'simulator', { reasoning: { effort: 'high', summary: 'auto' } }, true],
    ['responses', 'simulator', { reasoning: { effort: 'none' } }, false],
  ]
  for (const [wire, profile, ask, isReadOn] of rows) {
    const rig = startShown({ wire, ask, model: { profile: resolveProfile(wire, profile) } })
    rig.client.leave()
    const name = `${wire}, ${profile}, ${JSON.stringify(ask)}`
    assert.deepEqual([rig.gateway.readers.count > 0, rig.sent[0]!.isAborted], [isReadOn, !isReadOn], name)
    rig.advance(10_000)
    await rig.turn()
    assertOver(rig)
  }
})

test('C12: billing.read_on limits the time, 0 switches it off, and a full pool does the same', async () => {
  const short = startShown({ model: cachePriced, readOnMs: 2_000 })
  short.client.leave()
  short.advance(1_999)
  assert.equal(short.debits.length, 0)
  short.advance(1)
  await short.turn()
  assert.ok(short.sent[0]!.isAborted)
  assert.equal(short.debits[0]!.usageSource, 'estimated')
  assertOver(short)

  const never = startShown({ model: cachePriced, readOnMs: 0 })
  never.client.leave()
  assert.ok(never.sent[0]!.isAborted)
  await never.turn()
  assertOver(never)

  const crowded = startShown({ model: cachePriced })
  for (let i = 0; i < 20; i++) crowded.gateway.readers.enter('acct_1')
  crowded.client.leave()
  await crowded.turn()
  assert.ok(crowded.sent[0]!.isAborted)
  assert.deepEqual([crowded.debits.length, crowded.gateway.readers.count], [1, 20])
})

test('C12: without a last event the bill covers what the client had seen, and input as far as it was reported later', async () => {
  const rig = startShown({ model: cachePriced })
  rig.client.leave()
  tell(rig, chunk({ choices: [{ index: 0, delta: { content: 'more '.repeat(500) }, finish_reason: null }] }))
  const counted = { prompt_tokens: 9, completion_tokens: 700, prompt_tokens_details: { cached_tokens: 4 } }
  tell(rig, chunk({ choices: [{ index: 0, delta: { content: '' }, finish_reason: null }], usage: counted }))
  rig.advance(10_000)
  await rig.turn()
  const { usage, usageSource } = rig.debits[0]!
  assert.deepEqual([usage.inputTokens, usage.cacheReadTokens], [5, 4])
  assert.deepEqual([usage.outputTokens, usageSource], [estimateTextTokens('Hé '), 'estimated'])
  assertOver(rig)
})

/** What may end the reading on before the figures come. */
const endings: Record<string, (rig: Rig) => void> = {
  'a reset': ({ sent }) => sent[0]!.listener.onError({ cause: 'upstream_reset', isReuseRace: false }),
  'an end without an end': ({ sent }) => sent[0]!.listener.onEnd(),
  'an error event': (rig) => tell(rig, chunk({ error: { message: 'no', type: 'server_error' } })),
  'a drain': ({ gateway }) => {
    for (const delivery of gateway.deliveries) delivery.shutDown()
  },
  'a reload': (rig) => {
    Object.assign(rig.gateway, { snapshots: { current: { ...rig.snapshot } } })
    rig.advance(0)
  },
}

test('C12: an upstream that fails while it is read on, a drain and a reload end it with the evidence', async () => {
  for (const [name, end] of Object.entries(endings)) {
    // What the client's own leaving cut is never given away.
    const rig = startShown({ model: cachePriced, cutAnswers: 'waive' })
    rig.client.leave()
    end(rig)
    await rig.turn()
    const { outcome, usageSource, amountNanos } = rig.debits[0]!
    assert.deepEqual([outcome, usageSource], ['client_abort', 'estimated'], name)
    assert.ok(amountNanos > 0n)
    assert.equal(rig.client.isEnded, false)
    assertOver(rig)
  }
})

test('C12: a client that stalls for good is disconnected, and its stream is read on at full speed', async () => {
  const rig = startRig({ stream: true, model: cachePriced })
  rig.client.isReading = false
  begin(rig)
  tell(rig, ...frames.chat.slice(0, 2))
  assert.ok(rig.sent[0]!.isPaused)
  rig.advance(60_000)
  assert.deepEqual([rig.client.isDestroyed, rig.sent[0]!.isPaused, rig.gateway.readers.count], [true, false, 1])
  // Its connection is closed, which is told as any other leaving.
  rig.client.leave()
  tell(rig, ...rest('chat'))
  await rig.turn()
  assert.deepEqual([rig.debits[0]!.outcome, rig.debits[0]!.usageSource], ['client_stall', 'final'])
  assert.equal(rig.record.outcome, 'client_stall')
  assertOver(rig)
})

test('C4 C12: a stream that only sent pings has shown nothing: its usage has the settle window', async () => {
  const rig = startRig({ stream: true })
  begin(rig)
  tell(rig, frames.chat[0]!)
  rig.advance(10_000)
  assert.ok(rig.client.isBegun)
  rig.client.leave()
  rig.advance(29_999)
  assert.deepEqual([rig.gateway.readers.count, rig.sent[0]!.isAborted], [1, false])
  tell(rig, ...frames.chat.slice(1))
  await rig.turn()
  assert.deepEqual([rig.debits[0]!.outcome, rig.debits[0]!.usageSource], ['client_abort', 'final'])
  assertOver(rig)
})

test('C4 C12: a client that saw nothing of an answer pays for no model time, whatever arrives in the settle window', async () => {
  const rig = startRig({ stream: true, ask: wishes.chat })
  rig.client.leave()
  begin(rig)
  tell(rig, frames.chat[0]!)
  rig.advance(20_000)
  tell(rig, words('Yes'))
  rig.advance(10_000)
  await rig.turn()
  assert.deepEqual([rig.debits[0]!.usageSource, rig.debits[0]!.usage.reasoningTokens], ['estimated', 0])
  assert.ok(!rig.record.flags?.includes('reasoning_estimated'))
  assertOver(rig)
})

test('C4 C12 H-F4: an answer that is read on keeps no request in memory', () => {
  const started = startShown({ model: cachePriced })
  started.client.leave()
  assert.throws(() => started.exchange.bodyFor(started.sent[0]!.target), /was released/)
  const waiting = startRig()
  waiting.client.leave()
  assert.throws(() => waiting.exchange.bodyFor(waiting.sent[0]!.target), /was released/)
})

// A stop of ours.

/** A client of another wire, and a model that takes none of its stops. */
const stopped: RigOptions = {
  client: 'messages',
  wire: 'chat',
  ask: { stop_sequences: ['END'] },
  model: { ...cachePriced, profile: resolveProfile('chat', { maxStops: 0 }) },
}

const words = (content: string) => chunk({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })

test('B2, C12, T15: at a stop of ours the words before it are shown at once, and the end after the figures arrive', async () => {
  const rig = startRig({ stream: true, timeouts: { pingMs: 1_000 }, ...stopped })
  begin(rig)
  tell(rig, words('one two END three'))
  assert.match(rig.client.text, /one two /)
  assert.deepEqual([rig.client.isEnded, rig.gateway.readers.count, rig.sent[0]!.isAborted], [false, 1, false])
  rig.advance(1_000)
  assert.match(rig.client.text, /event: ping/)
  tell(rig, words(' four'), ...frames.chat.slice(3))
  await rig.turn()
  const { usage, usageSource, outcome } = rig.debits[0]!
  assert.deepEqual([usageSource, outcome, usage.outputTokens, usage.cacheReadTokens], ['final', 'ok', 3, 4])
  assert.doesNotMatch(rig.client.text, /END three|four/)
  assert.match(rig.client.text, /"stop_reason":"stop_sequence","stop_sequence":"END"}/)
  assert.match(rig.client.text, /"cache_read_input_tokens":4,"output_tokens":3}/)
  assert.ok(rig.client.isEnded)
  assertOver(rig)
})

test('C12: the end of an answer waits up to three seconds at a stop of ours, with billing.read_on: 0 too', async () => {
  for (const readOnMs of [0, 60_000]) {
    const rig = startRig({ stream: true, readOnMs, ...stopped })
    begin(rig)
    tell(rig, words('one two END three'), words(' four'))
    rig.advance(2_999)
    assert.equal(rig.client.isEnded, false)
    rig.advance(1)
    await rig.turn()
    assert.ok(rig.sent[0]!.isAborted && rig.client.isEnded)
    const { usage, usageSource, outcome } = rig.debits[0]!
    assert.deepEqual([usageSource, outcome], ['estimated', 'ok'])
    assert.equal(usage.outputTokens, estimateTextTokens('one two END three'))
    assert.match(rig.client.text, new RegExp(`"output_tokens":${usage.outputTokens}}.*message_stop`, 's'))
    assertOver(rig)
  }
})

test('C12: a stop at the first character shows nothing until the end of the answer is sent', async () => {
  const rig = startRig({ stream: true, ...stopped })
  begin(rig)
  tell(rig, words('END three'))
  assert.equal(rig.client.isBegun, false)
  tell(rig, ...frames.chat.slice(3))
  await rig.turn()
  assert.match(rig.client.text, /^event: message_start.*"stop_sequence":"END".*message_stop/s)
  assert.equal(rig.debits[0]!.usageSource, 'final')
  assertOver(rig)
})

test('C12: a stream that breaks off, is drained or reloaded after a stop of ours ends a whole answer by the evidence', async () => {
  for (const stream of [true, false]) {
    for (const [name, end] of Object.entries(endings)) {
      const rig = startRig({ stream, ...stopped })
      begin(rig)
      tell(rig, words('one two END three'))
      assert.equal(rig.gateway.readers.count, 1, name)
      end(rig)
      await rig.turn()
      assert.deepEqual([rig.debits[0]!.outcome, rig.debits[0]!.usageSource], ['ok', 'estimated'], name)
      if (stream) assert.match(rig.client.text, /message_stop/, name)
      else assert.match(rig.client.reply!.body, /"stop_sequence":"END"/, name)
      assertOver(rig)
    }
  }
})

test('B2, C12: a stream that is folded for a JSON client waits for its figures at a stop of ours as well', async () => {
  const final = startRig(stopped)
  begin(final)
  tell(final, words('one two END three'))
  assert.equal(final.client.reply, undefined)
  tell(final, ...frames.chat.slice(3))
  await final.turn()
  assert.equal(final.debits[0]!.usageSource, 'final')
  assert.match(final.client.reply!.body, /"text":"one two ".*"output_tokens":3/)
  assertOver(final)

  const late = startRig(stopped)
  begin(late)
  tell(late, words('one two END three'))
  late.advance(3_000)
  await late.turn()
  assert.ok(late.sent[0]!.isAborted)
  assert.equal(late.debits[0]!.usageSource, 'estimated')
  assert.match(late.client.reply!.body, /"text":"one two "/)
  assertOver(late)
})

test('C12: who leaves while its end waits at a stop is waited for no longer, and its figures as long as any other’s', async () => {
  for (const stream of [true, false]) {
    const rig = startRig({ stream, ...stopped })
    begin(rig)
    tell(rig, words('one two END three'))
    rig.client.leave()
    const { text } = rig.client
    rig.advance(9_999)
    assert.equal(rig.debits.length, 0)
    tell(rig, ...frames.chat.slice(3))
    await rig.turn()
    assert.deepEqual([rig.debits[0]!.outcome, rig.debits[0]!.usageSource], ['client_abort', 'final'])
    assert.deepEqual([rig.client.text, rig.client.reply, rig.client.isEnded], [text, undefined, false])
    assertOver(rig)

    const late = startRig({ stream, ...stopped })
    begin(late)
    tell(late, words('one two END three'))
    late.client.leave()
    late.advance(10_000)
    await late.turn()
    assert.deepEqual([late.debits[0]!.outcome, late.debits[0]!.usageSource], ['client_abort', 'estimated'])
    assert.equal(late.debits[0]!.usage.outputTokens, estimateTextTokens('one two END three'))
    assertOver(late)
  }
})

test('C12: a client that does not read at a stop of ours does not hold up the figures', async () => {
  const rig = startRig({ stream: true, timeouts: { pingMs: 1_000 }, ...stopped })
  begin(rig)
  rig.client.isReading = false
  tell(rig, words('one two END three'))
  rig.advance(1_000)
  assert.equal(rig.sent[0]!.isPaused, false)
  tell(rig, ...frames.chat.slice(3))
  await rig.turn()
  assert.deepEqual([rig.debits[0]!.usageSource, rig.client.isEnded], ['final', true])
  assertOver(rig)
})

// Reasoning by its time.

/** 20 s of reasoning, then words for 5 s, in ten pieces. */
const piece = 'The answer to this is long. '
const spokenTokens = estimateTextTokens(piece.repeat(10))

const shownWords: Record<ClientWire, string> = {
  messages: named({ type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: piece } }),
  chat: words(piece),
  responses: named({
    ...{ type: 'response.output_text.delta', sequence_number: 9, item_id: 'msg_up1' },
    ...{ output_index: 1, content_index: 0, delta: piece, logprobs: [] },
  }),
}

const item = (type: string) => ({
  id: `${type}_1`,
  type,
  ...(type === 'reasoning' ? { summary: [] } : { content: [] }),
})

/** What stands around the reasoning where the wire marks it. */
const marks: Record<ClientWire, [begin: string[], end: string[]]> = {
  messages: [
    [
      frames.messages[0]!,
      named({ type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } }),
    ],
    [
      named({ type: 'content_block_stop', index: 0 }),
      named({ type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } }),
    ],
  ],
  chat: [[frames.chat[0]!], []],
  responses: [
    [frames.responses[0]!, named({ type: 'response.output_item.added', output_index: 0, item: item('reasoning') })],
    [
      named({ type: 'response.output_item.done', output_index: 0, item: item('reasoning') }),
      named({ type: 'response.output_item.added', output_index: 1, item: { ...item('message'), role: 'assistant' } }),
    ],
  ],
}

const wishes: Record<ClientWire, Record<string, unknown>> = {
  messages: { max_tokens: 8_000, thinking: { type: 'enabled', budget_tokens: 4_000 } },
  chat: { reasoning_effort: 'high' },
  responses: { reasoning: { effort: 'high' } },
}

/** Thinks, then speaks, until its client leaves. */
function startThinking(options: RigOptions, { before = 0, summary = '' } = {}): Rig {
  const wire = options.wire ?? 'chat'
  const rig = startRig({ stream: true, ...options })
  begin(rig)
  const [first, last] = marks[wire]
  rig.advance(before)
  tell(rig, ...first)
  rig.advance(10_000)
  if (summary !== '') {
    tell(rig, named({ type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: summary } }))
  }
  rig.advance(10_000)
  tell(rig, ...last)
  for (let i = 0; i < 10; i++) {
    tell(rig, shownWords[wire])
    rig.advance(500)
  }
  return rig
}

test('B2, B9, C12: uncounted reasoning is billed by its time, at the pace of the words after it', async () => {
  for (const wire of clientWireNames) {
    for (const client of clientWireNames) {
      const options = { wire, client, ask: wishes[client] }
      const profile = resolveProfile(wire, { reasoning: { style: wire === 'messages' ? 'adaptive' : 'effort' } })
      const rig = startThinking({ ...options, model: { profile } })
      rig.client.leave()
      rig.advance(10_000)
      await rig.turn()
      const { usage, usageSource } = rig.debits[0]!
      const name = `${client} client, ${wire} model`
      // 20 s at what 5 s have brought.
      assert.deepEqual([usage.outputTokens, usage.reasoningTokens], [5 * spokenTokens, 4 * spokenTokens], name)
      assert.equal(usageSource, 'estimated')
      assert.ok(rig.record.flags?.includes('reasoning_estimated'))
      assertOver(rig)
    }
  }
})

test('C12: if reasoning is marked, text before the mark is not reasoning, and its summary is a part of it', async () => {
  const summary = 'It thinks about this and that. '
  const rig = startThinking({ wire: 'messages', ask: wishes.messages }, { before: 7_000, summary })
  rig.client.leave()
  rig.advance(10_000)
  await rig.turn()
  const { outputTokens } = rig.debits[0]!.usage
  assert.ok(Math.abs(outputTokens - 5 * spokenTokens) <= spokenTokens / 10, `${outputTokens} of ${5 * spokenTokens}`)
  assertOver(rig)
})

test('C12: the pace is measured from words that arrive while the figures are awaited, and these are not billed', async () => {
  const rig = startRig({ stream: true, ask: wishes.chat })
  begin(rig)
  tell(rig, frames.chat[0]!)
  rig.advance(20_000)
  tell(rig, words('Yes'))
  rig.client.leave()
  for (let i = 0; i < 10; i++) {
    tell(rig, shownWords.chat)
    rig.advance(500)
  }
  rig.advance(5_000)
  await rig.turn()
  const { outputTokens, reasoningTokens } = rig.debits[0]!.usage
  // Ten pieces in the nine intervals between them.
  const perSecond = estimateTextTokens(`Yes${piece.repeat(10)}`) / 4.5
  assert.equal(reasoningTokens, Math.round(20 * perSecond))
  assert.equal(outputTokens, reasoningTokens + estimateTextTokens('Yes'))
  assertOver(rig)
})

test('C12: reasoning by its time never lifts an output above the cap, and words in one piece do not count as infinitely fast', async () => {
  const capped = startThinking({ ask: { ...wishes.chat, max_completion_tokens: 100 } })
  capped.client.leave()
  capped.advance(10_000)
  await capped.turn()
  assert.ok(spokenTokens < 100)
  assert.equal(capped.debits[0]!.usage.outputTokens, 100)

  const burst = startRig({ stream: true, ask: wishes.chat })
  begin(burst)
  tell(burst, frames.chat[0]!)
  burst.advance(3_000)
  tell(burst, words(piece.repeat(10)))
  burst.client.leave()
  burst.advance(10_000)
  await burst.turn()
  assert.equal(burst.debits[0]!.usage.outputTokens, 4 * spokenTokens)
})

test('C12: time costs nothing if no reasoning was asked for, all of it is shown, or the figures arrived', async () => {
  const rows: [RigOptions, outputTokens: number][] = [
    [{ ask: {} }, spokenTokens],
    [{ ask: wishes.chat, model: { profile: resolveProfile('chat', 'deepseek') } }, spokenTokens],
    [{ wire: 'messages', model: { profile: resolveProfile('messages', 'vllm') }, ask: wishes.messages }, spokenTokens],
  ]
  for (const [options, outputTokens] of rows) {
    const rig = startThinking({ model: cachePriced, ...options })
    rig.client.leave()
    rig.advance(10_000)
    await rig.turn()
    assert.deepEqual([rig.debits[0]!.usage.outputTokens, rig.debits[0]!.usage.reasoningTokens], [outputTokens, 0])
    assertOver(rig)
  }
  const final = startThinking({ ask: wishes.chat, model: { upstreamModel: 'up-chat' } })
  final.client.leave()
  tell(final, ...frames.chat.slice(3))
  await final.turn()
  assert.deepEqual([final.debits[0]!.usage.outputTokens, final.record.flags], [3, undefined])
})

/** 20 s of silence, then words for 5 s, without a mark of reasoning on any wire. */
function startSilent(options: RigOptions): Rig {
  const wire = options.wire ?? 'chat'
  const rig = startRig({ stream: true, ...options })
  begin(rig)
  rig.advance(20_000)
  tell(rig, ...frames[wire].slice(0, wordsAt[wire] - 1))
  for (let i = 0; i < 10; i++) {
    tell(rig, shownWords[wire].replace('"index":1', '"index":0').replace('"output_index":1', '"output_index":0'))
    rig.advance(500)
  }
  return rig
}

test('Y7 FID-8 the time before the first word is billed only if the request asks for reasoning, on all pairs', async () => {
  for (const wire of clientWireNames) {
    for (const client of clientWireNames) {
      for (const isAsked of [false, true]) {
        const ask = isAsked ? wishes[client] : {}
        const style = wire === 'messages' ? 'adaptive' : 'effort'
        const reasoning = { style, default: 'medium', canDisable: true } as const
        const profile = resolveProfile(wire, { hiddenReasoning: 'unless_off', reasoning })
        const rig = startSilent({ wire, client, ask, model: { profile } })
        rig.client.leave()
        assert.equal(rig.gateway.readers.count, 1, 'its figures are waited for all the same')
        rig.advance(10_000)
        await rig.turn()
        const name = `${client} client, ${wire} model, ${isAsked ? 'asked' : 'unasked'}`
        const { outputTokens } = rig.debits[0]!.usage
        if (!isAsked) assert.ok(outputTokens <= spokenTokens, `${name}: ${outputTokens}`)
        else assert.ok(outputTokens > 4 * spokenTokens, `${name}: ${outputTokens}`)
        assert.equal(rig.record.flags?.includes('reasoning_estimated') ?? false, isAsked, name)
        assertOver(rig)
      }
    }
  }
})

test('Y7 FID-8 a stop sequence that responses lacks costs the client the words that it was shown', async () => {
  const { profile } = modelOf('responses')
  const clients = {
    messages: { stop_sequences: ['END'] },
    chat: { stop: ['END'], stream_options: { include_usage: true } },
  }
  for (const [client, ask] of Object.entries(clients) as [keyof typeof clients, Record<string, unknown>][]) {
    const rig = startSilent({ client, wire: 'responses', ask, model: { profile } })
    tell(rig, shownWords.responses.replace('"output_index":1', '"output_index":0').replace(piece, 'END'))
    rig.advance(3_000)
    await rig.turn()
    assert.deepEqual(
      [rig.debits[0]!.usage.outputTokens, rig.debits[0]!.usage.reasoningTokens],
      [spokenTokens, 0],
      client,
    )
    assert.match(rig.client.text, new RegExp(`"(output|completion)_tokens":${spokenTokens}\\b`), client)
    assertOver(rig)
  }
})

test('Y7 Y11 FID-8 the last configuration_update decides whether reasoning was asked for, on the same wire too', async () => {
  const update = (effort: string) => ({ type: 'configuration_update', reasoning: { effort } })
  const user = { role: 'user', content: 'q' }
  const rows: [ask: object, isAsked: boolean][] = [
    [{ reasoning: { effort: 'none' }, input: [user, update('high'), user] }, true],
    [{ input: [update('none'), user, update('low')] }, true],
    [{ reasoning: { effort: 'high' }, input: [user, update('none'), user] }, false],
  ]
  for (const [ask, isAsked] of rows) {
    for (const wire of ['responses', 'chat'] as const) {
      const profile = resolveProfile(wire, {
        hiddenReasoning: 'unless_off',
        reasoning: { style: 'effort', canDisable: true },
      })
      const rig = startSilent({ client: 'responses', wire, ask: ask as Record<string, unknown>, model: { profile } })
      rig.client.leave()
      rig.advance(10_000)
      await rig.turn()
      const isBilled = rig.debits[0]!.usage.outputTokens > 4 * spokenTokens
      assert.equal(isBilled, isAsked, `${wire}, ${JSON.stringify(ask)}`)
      assertOver(rig)
    }
  }
})

test('Y7 every field in which a server looks for a reasoning wish counts as asking for it', () => {
  const asking: object[] = [
    ...[{ reasoning_effort: 'low' }, { thinking: { type: 'enabled' } }, { thinking: { type: 'adaptive' } }],
    ...[{ reasoning: { effort: 'minimal' } }, { reasoning: { enabled: true } }, { reasoning: { max_tokens: 9 } }],
    ...[{ reasoning: { summary: 'auto' } }, { output_config: { effort: 'max' } }, { enable_thinking: true }],
    ...[{ thinking_budget: 9 }, { chat_template_kwargs: { enable_thinking: true } }],
    { chat_template_kwargs: { thinking: true } },
    { extra_body: { google: { thinking_config: { thinking_budget: -1 } } } },
    { extra_body: { google: { thinking_config: { thinking_level: 'high' } } } },
  ]
  const silent: object[] = [
    ...[{}, { reasoning: {} }, { reasoning: { effort: null } }, { thinking: null }, { reasoning: { summary: null } }],
    ...[{ output_config: { format: {} } }, { extra_body: {} }, { reasoning: 'high' }, { thinking: 'enabled' }],
  ]
  const off: object[] = [
    ...[{ reasoning_effort: 'none' }, { thinking: { type: 'disabled' } }, { enable_thinking: false }],
    ...[{ thinking_budget: 0 }, { chat_template_kwargs: { thinking: false } }],
  ]
  const judge = (body: object, hiddenReasoning: 'asked' | 'unless_off' | 'never') => {
    const { reasoning } = resolveProfile('chat', { reasoning: { canDisable: true } })
    return mayHideReasoning((field) => (body as Record<string, unknown>)[field], { hiddenReasoning, reasoning })
  }
  for (const body of asking) assert.equal(judge(body, 'asked'), 'asked', JSON.stringify(body))
  for (const body of silent) assert.equal(judge(body, 'unless_off'), 'unasked', JSON.stringify(body))
  for (const body of off) assert.equal(judge(body, 'unless_off'), false, JSON.stringify(body))
  assert.equal(judge({ reasoning_effort: 'high' }, 'never'), false)
})

test('B2, C12: at a stop of ours the reasoning that is billed by its time is reported to the client', async () => {
  for (const client of ['messages', 'chat'] as const) {
    const ask = { ...wishes[client], [client === 'chat' ? 'stop' : 'stop_sequences']: ['END'] }
    const rig = startThinking({ client, wire: 'responses', ask })
    tell(rig, shownWords.responses.replace(piece, 'END'))
    rig.advance(3_000)
    await rig.turn()
    const { outputTokens, reasoningTokens } = rig.debits[0]!.usage
    assert.ok(reasoningTokens > 3.8 * spokenTokens, `${reasoningTokens}`)
    if (client === 'messages') assert.match(rig.client.text, new RegExp(`"output_tokens":${outputTokens}}`))
    else {
      assert.match(rig.client.text, new RegExp(`"completion_tokens":${outputTokens},`))
      assert.match(rig.client.text, new RegExp(`"reasoning_tokens":${reasoningTokens}}`))
    }
    assert.ok(rig.client.isEnded)
    assertOver(rig)
  }
})

test('C12: time in which a client did not read counts neither as reasoning nor as speech', async () => {
  const rig = startRig({ stream: true, ask: wishes.chat })
  begin(rig)
  tell(rig, frames.chat[0]!)
  rig.advance(20_000)
  for (let i = 0; i < 10; i++) {
    if (i === 5) rig.client.isReading = false
    tell(rig, shownWords.chat)
    if (i === 5) {
      rig.advance(30_000)
      rig.client.catchUp()
    }
    rig.advance(500)
  }
  rig.client.leave()
  rig.advance(10_000)
  await rig.turn()
  assert.equal(rig.debits[0]!.usage.outputTokens, 5 * spokenTokens)
  assertOver(rig)
})
