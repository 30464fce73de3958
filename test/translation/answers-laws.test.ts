import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { AnswerBlock, AnswerEvent, StopReason } from '../../src/inference/answer.ts'
import { encodeUsage as chatUsage, decodeUsage as decodeChat } from '../../src/wires/chat/usage.ts'
import { decodeUsage as decodeMessages, encodeUsage as messagesUsage } from '../../src/wires/messages/usage.ts'
import { decodeUsage as decodeResponses, encodeUsage as responsesUsage } from '../../src/wires/responses/usage.ts'
import { characters } from '../support/characters.ts'
import { runsOf } from '../support/runs.ts'
import { accumulate } from './clients.ts'
import { type ClientWire, pump, pumpEvents, wires } from './pump.ts'
import { streamSeeds } from './seeds.ts'

const runs = { numRuns: runsOf(200) }
const names: ClientWire[] = ['messages', 'chat', 'responses']
const anyWire = fc.constantFrom(...names)

test('TP1 the places where the network cuts the bytes change nothing', () => {
  const anyScript = anyWire.chain((upstream) =>
    fc.record({ upstream: fc.constant(upstream), script: fc.constantFrom(...streamSeeds[upstream]) }),
  )
  fc.assert(
    fc.property(
      anyScript,
      anyWire,
      fc.boolean(),
      fc.array(fc.integer({ min: 0, max: 120 }), { maxLength: 40 }),
      (stream, client, showsReasoning, cut) => {
        const options = {
          showsReasoning,
          stops: ['lo'],
          localStops: ['lo'],
          profile: { thinkTags: { open: '<think>', close: '</think>', implicitOpen: false } },
        }
        const whole = pump(client, stream.upstream, stream.script, options)
        assert.equal(pump(client, stream.upstream, stream.script, options, { cut }).text, whole.text)
      },
    ),
    runs,
  )
})

test('TP2 the stream, as a client reads it, equals the whole answer', () => {
  fc.assert(
    fc.property(anyAnswer(), anyWire, fc.boolean(), (events, client, showsReasoning) => {
      const told = tell(events, client, showsReasoning)
      if (told.json !== undefined) assert.deepEqual(accumulate(client, told.text), JSON.parse(told.json))
    }),
    runs,
  )
})

test('TP3 every answer that obeys the laws becomes a stream that obeys the grammar of its wire', () => {
  fc.assert(
    fc.property(anyAnswer(), anyWire, fc.boolean(), (events, client, showsReasoning) => {
      assert.deepEqual(wires[client].check(tell(events, client, showsReasoning).text), [])
    }),
    runs,
  )
})

test('TP7 the prompt has the same total on every wire, and every wire decodes what it encodes', () => {
  const count = fc.integer({ min: 0, max: 1_000_000 })
  const anyUsage = fc
    .record({
      inputTokens: fc.integer({ min: 1, max: 1_000_000 }),
      cacheReadTokens: count,
      cacheWriteTokens: count,
      outputTokens: count,
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    })
    .map(({ share, ...counters }) => ({
      ...counters,
      cacheWrite1hTokens: 0,
      reasoningTokens: Math.floor(counters.outputTokens * share),
      estimated: false,
    }))
  fc.assert(
    fc.property(anyUsage, (usage) => {
      const message = messagesUsage(usage)
      const prompt = message.input_tokens + message.cache_read_input_tokens + message.cache_creation_input_tokens
      assert.equal(chatUsage(usage).prompt_tokens, prompt)
      assert.equal(responsesUsage(usage).input_tokens, prompt)
      const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens } = usage
      const known = { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens }
      for (const report of [
        decodeMessages(message),
        decodeChat(chatUsage(usage), 'none'),
        decodeResponses(responsesUsage(usage), 'none'),
      ]) {
        const { reasoningTokens: _, ...counters } = { cacheWriteTokens: 0, ...report }
        assert.deepEqual(counters, known)
      }
    }),
    runs,
  )
})

const start: AnswerEvent[] = [{ type: 'start' }]
const end = (reason: StopReason): AnswerEvent => ({
  type: 'finish',
  reason,
  report: { inputTokens: 9, outputTokens: 2 },
})

function tell(events: AnswerEvent[], client: ClientWire, showsReasoning: boolean) {
  return pumpEvents(client, events, { showsReasoning })
}

/** Any run of events that satisfies I1–I9: calls interleave, at most one other block is open beside them. */
function anyAnswer(): fc.Arbitrary<AnswerEvent[]> {
  const step = fc.record({
    act: fc.constantFrom('text', 'refusal', 'reasoning', 'call', 'delta', 'delta', 'delta', 'stop', 'usage', 'alive'),
    which: fc.nat(20),
    text: fc.string({ minLength: 1, maxLength: 12, unit: characters }),
  })
  return fc
    .record({
      steps: fc.array(step, { maxLength: 30 }),
      ending: fc.constantFrom<StopReason | 'fail'>('end', 'max_tokens', 'window', 'refused', 'paused', 'fail'),
    })
    .map(({ steps, ending }) => {
      const events: AnswerEvent[] = [...start]
      const open = new Map<number, { isCall: boolean; hasText: boolean }>()
      let count = 0
      let hasCalls = false
      const stop = (index: number, cut: boolean) => {
        const state = open.get(index)!
        if (state.isCall && !state.hasText && !cut) events.push({ type: 'block_delta', index, text: '{}' })
        events.push({ type: 'block_stop', index, cut })
        open.delete(index)
      }
      for (const { act, which, text } of steps) {
        const indexes = [...open.keys()]
        const index = indexes[which % indexes.length]
        if (act === 'usage') events.push({ type: 'usage', report: { inputTokens: which + 1 } })
        else if (act === 'alive') events.push({ type: 'alive' })
        else if (act === 'delta') {
          if (index === undefined) continue
          open.get(index)!.hasText = true
          events.push({ type: 'block_delta', index, text })
        } else if (act === 'stop') {
          if (index !== undefined) stop(index, false)
        } else if (act === 'call') {
          hasCalls = true
          open.set(count, { isCall: true, hasText: false })
          events.push({
            type: 'block_start',
            index: count++,
            block: { kind: 'tool_call', callId: 'x', name: `f${which}` },
          })
        } else {
          for (const other of indexes) if (!open.get(other)!.isCall) stop(other, false)
          // A decoder opens such a block for its first text.
          open.set(count, { isCall: false, hasText: true })
          events.push({ type: 'block_start', index: count, block: { kind: act } as AnswerBlock })
          events.push({ type: 'block_delta', index: count++, text })
        }
      }
      const isCut = ending !== 'end' && ending !== 'paused'
      for (const index of [...open.keys()]) stop(index, isCut)
      if (ending === 'fail') events.push({ type: 'fail', fault: { kind: 'broken', text: 'broken' } })
      else events.push(end(ending === 'end' && hasCalls ? 'calls' : ending))
      return events
    })
}
