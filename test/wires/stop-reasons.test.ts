import { equal } from 'node:assert/strict'
import test from 'node:test'
import { decodeStopReason } from '../../src/wires/chat/stop-reasons.ts'

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
