import { equal } from 'node:assert/strict'
import test from 'node:test'
import type { StopReason } from '../../src/inference/answer.ts'
import { cutsBlocks } from '../../src/inference/narrator.ts'
import { decodeStopReason, encodeStopReason } from '../../src/wires/chat/stop-reasons.ts'
import {
  decodeStopReason as decodeMessages,
  encodeStopReason as encodeMessages,
} from '../../src/wires/messages/stop-reasons.ts'
import { encodeIncomplete } from '../../src/wires/responses/stop-reasons.ts'

test('translation 3.1 a finish reason of an incomplete answer is not an ordinary end, however it is written', () => {
  for (const [word, reason] of [
    ['stop', 'end'],
    ['STOP', 'end'],
    [undefined, 'end'],
    ['other', 'end'],
    ['constructor', 'end'],
    ['MAX_TOKENS', 'max_tokens'],
    ['max_output_tokens', 'max_tokens'],
    ['Length', 'max_tokens'],
    ['SAFETY', 'refused'],
    ['sensitive', 'refused'],
    ['guardrail_intervened', 'refused'],
    ['content_filtered', 'refused'],
    ['MODEL_ARMOR', 'refused'],
    ['malformed_tool_use', 'failed'],
    ['malformed_model_output', 'failed'],
    ['MALFORMED_FUNCTION_CALL', 'failed'],
    ['content_filter: PROHIBITED_CONTENT', 'refused'],
    ['content_filter: OTHER', 'refused'],
    ['IMAGE_PROHIBITED_CONTENT', 'refused'],
    ['function_call_filter: MALFORMED_FUNCTION_CALL', 'failed'],
    ['UNEXPECTED_TOOL_CALL', 'failed'],
    ['repetition', 'max_tokens'],
    ['repetition_truncation', 'max_tokens'],
    ['aborted', 'failed'],
    [': length', 'end'],
  ] as const)
    equal(decodeStopReason(word), reason, `${word}`)
})

test('translation 3.1 Y5 a messages model that was cut may report it in any case, or in a word of another wire', () => {
  for (const [word, reason] of [
    ['max_tokens', 'max_tokens'],
    ['MAX_TOKENS', 'max_tokens'],
    ['length', 'max_tokens'],
    ['max_output_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'window'],
    ['Refusal', 'refused'],
    ['content_filter', 'refused'],
    ['content_filtered', 'refused'],
    ['guardrail_intervened', 'refused'],
    ['tool_use', 'calls'],
    ['other', 'end'],
    ['constructor', 'end'],
    [undefined, 'end'],
  ] as const)
    equal(decodeMessages(word), reason, `${word}`)
})

/** A new stop reason does not compile without a row here, in the three wires, and in the narrator. */
const ends: Record<StopReason, { chat: string; messages: string; incomplete: string | undefined; cuts: boolean }> = {
  end: { chat: 'stop', messages: 'end_turn', incomplete: undefined, cuts: false },
  calls: { chat: 'tool_calls', messages: 'tool_use', incomplete: undefined, cuts: false },
  max_tokens: { chat: 'length', messages: 'max_tokens', incomplete: 'max_output_tokens', cuts: true },
  window: {
    chat: 'length',
    messages: 'model_context_window_exceeded',
    incomplete: 'max_output_tokens',
    cuts: true,
  },
  stop_sequence: { chat: 'stop', messages: 'stop_sequence', incomplete: undefined, cuts: false },
  refused: { chat: 'content_filter', messages: 'refusal', incomplete: 'content_filter', cuts: true },
  paused: { chat: 'stop', messages: 'pause_turn', incomplete: undefined, cuts: false },
}

for (const [reason, end] of Object.entries(ends) as [StopReason, (typeof ends)[StopReason]][])
  test(`translation 3.1 I8 the stop reason ${reason} has its word on each wire, and cuts a block or does not`, () => {
    equal(encodeStopReason(reason), end.chat)
    equal(encodeMessages(reason, false), end.messages)
    equal(encodeIncomplete(reason)?.reason, end.incomplete)
    equal(cutsBlocks[reason], end.cuts)
  })
