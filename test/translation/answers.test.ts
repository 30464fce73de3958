import assert from 'node:assert/strict'
import test from 'node:test'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import type { AnswerEvent } from '../../src/inference/answer.ts'
import type { Usage } from '../../src/inference/usage.ts'
import { ChatDecoder } from '../../src/wires/chat/decode-answer.ts'
import { cases as chatToMessages } from './answers/chat-to-messages.cases.ts'
import { cases as responsesToMessages } from './answers/responses-to-messages.cases.ts'
import { cases as toChat } from './answers/to-chat.cases.ts'
import { cases as toResponses } from './answers/to-responses.cases.ts'
import { outline, testCases } from './cases.ts'
import { openEvents, pump, pumpEvents } from './pump.ts'
import { counts, delta, done, reason, text } from './upstreams.ts'

const fewTokens: Usage = {
  inputTokens: 1,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  cacheWrite1hTokens: 0,
  outputTokens: 1,
  reasoningTokens: 0,
  estimated: false,
}

testCases([...chatToMessages, ...responsesToMessages, ...toChat, ...toResponses])

test('A63 U4 pings are sent during silence, none of them before message_start', () => {
  const { relay, push } = openEvents('messages')
  const pieces = [
    push({ type: 'start' }),
    relay.keepAlive(),
    push({ type: 'block_start', index: 0, block: { kind: 'text' } }),
    push({ type: 'block_delta', index: 0, text: 'a' }),
    relay.keepAlive(),
    push({ type: 'block_stop', index: 0, cut: false }),
    push({ type: 'finish', reason: 'end', report: {} }),
    relay.finish(fewTokens),
  ]
  assert.deepEqual(outline({ text: pieces.join('') }), [
    'message_start',
    'ping',
    'content_block_start',
    'content_block_delta',
    'ping',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

test('translation 4.3 a block cut by a failure gets no stop, so that no client runs half a call', () => {
  const call: AnswerEvent = {
    type: 'block_start',
    index: 0,
    block: { kind: 'tool_call', callId: 'toolu_1', name: 'f' },
  }
  const cut: AnswerEvent[] = [{ type: 'start' }, call, { type: 'block_stop', index: 0, cut: true }]
  const tell = (last: AnswerEvent) => outline(pumpEvents('messages', [...cut, last]))
  assert.deepEqual(tell({ type: 'fail', fault: { kind: 'truncated', text: '' } }), [
    'message_start',
    'content_block_start',
    'error',
  ])
  assert.deepEqual(tell({ type: 'finish', reason: 'max_tokens', report: {} }), [
    'message_start',
    'content_block_start',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
})

test('A121 the usage so far is available for the bill when the client leaves mid-stream', () => {
  const told = pump('messages', 'chat', text('one two three') + delta({ content: 'x' }, { usage: counts(9, 4) }), {})
  assert.equal(told.usage?.inputTokens, 9)
  assert.ok(told.usage!.outputTokens >= 4)
})

test('I10 a whole chat answer whose choice has no message is broken, not an empty success', () => {
  for (const choices of ['[{}]', '[{"message":null,"finish_reason":"stop"}]', '[null]', '[]', 'null']) {
    const events = new ChatDecoder(resolveProfile('chat')).whole(`{"choices":${choices}}`)
    assert.equal(events.at(-1)?.type, 'fail', choices)
  }
})

test('Y5 a whole chat answer without a message that says why is that refusal or cut (Gemini)', () => {
  for (const [word, end] of [
    ['content_filter: PROHIBITED_CONTENT', 'refused'],
    ['length', 'max_tokens'],
    ['function_call_filter: MALFORMED_FUNCTION_CALL', undefined],
  ] as const)
    for (const message of [{}, { message: null }]) {
      const choices = [{ index: 0, ...message, finish_reason: word }]
      const events = new ChatDecoder(resolveProfile('chat')).whole(JSON.stringify({ choices, usage: counts(10, 0) }))
      const last = events.at(-1)
      assert.equal(last?.type === 'finish' ? last.reason : undefined, end, word)
    }
})

test('translation 3.1 a finish reason for an incomplete answer is a failure for the clients of all wires, in upper or lower case', () => {
  const failures = [
    ...['error', 'abort', 'network_error', 'insufficient_system_resource'],
    ...['malformed_function_call', 'malformed_response', 'function_call_filter: MALFORMED_FUNCTION_CALL'],
  ]
  for (const client of ['messages', 'chat', 'responses'] as const)
    for (const word of failures.flatMap((one) => [one, one.toUpperCase()])) {
      const script = delta({ content: 'Once upon' }) + reason(word) + done
      const { outcome, json } = pump(client, 'chat', script)
      assert.deepEqual(
        [outcome, json],
        [{ fault: { kind: 'broken', text: 'The model broke off its answer.' } }, undefined],
        word,
      )
    }
})
