import { equal } from 'node:assert/strict'
import test from 'node:test'
import { decodeStopReason } from '../../src/wires/chat/stop-reasons.ts'
import { decodeStopReason as decodeMessages } from '../../src/wires/messages/stop-reasons.ts'

test('translation 3.1 a finish reason that means no whole answer is no ordinary end, however it is written', () => {
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
    ['MALFORMED_FUNCTION_CALL', 'failed'],
  ] as const)
    equal(decodeStopReason(word), reason, `${word}`)
})

test('translation 3.1 Y5 a messages model that was cut may say so in any case, or in a word of another wire', () => {
  for (const [word, reason] of [
    ['max_tokens', 'max_tokens'],
    ['MAX_TOKENS', 'max_tokens'],
    ['length', 'max_tokens'],
    ['max_output_tokens', 'max_tokens'],
    ['model_context_window_exceeded', 'window'],
    ['Refusal', 'refused'],
    ['content_filter', 'refused'],
    ['tool_use', 'calls'],
    ['other', 'end'],
    ['constructor', 'end'],
    [undefined, 'end'],
  ] as const)
    equal(decodeMessages(word), reason, `${word}`)
})
