import assert from 'node:assert/strict'
import test from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messageStart,
  messageStop,
  textBlock,
} from '../translation/upstreams.ts'
import { modelOf } from './models.ts'
import { contentOfMessages, playNatively } from './same-wire.ts'

/*
 * On the same wire a messages model's answer in an unusual form is read as the hub reads it, or it fails (Y5). Required
 * members are there (Y3).
 */

// biome-ignore lint/suspicious/noExplicitAny: a test reads JSON as a client does.
type Json = Record<string, any>

const use = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 1 } }
const without = (member: string, block: Json = use) =>
  Object.fromEntries(Object.entries(block).filter(([k]) => k !== member))
const text = (words: string) => ({ type: 'text', text: words })
const called = (id: RegExp | string = 'toolu_1') => ({ type: 'tool_use', id, name: 'f', input: { a: 1 } })
const minted = /^toolu_[A-Za-z0-9]{24}$/

/** The content of an answer, and what the SDK reads; undefined if the answer fails. */
const contents: [what: string, content: unknown, said: Json[] | undefined, isOfJson?: boolean][] = [
  ['a call without an id', [without('id')], [called(minted)]],
  ['a call whose id is empty', [{ ...use, id: '' }], [called(minted)]],
  ['a call whose id is null', [text('Hi'), { ...use, id: null }], [text('Hi'), called(minted)]],
  ['a name in a function', [{ ...without('name'), function: { name: 'f' } }], [called()]],
  ['a call of another wire', [{ ...use, type: 'function_call' }], [called()]],
  ['arguments under the name of another wire', [{ ...without('input'), arguments: '{"a":1}' }], [called()]],
  ['an input that is a text', [{ ...use, input: '{"a":1}' }], [called()], true],
  ['no input', [without('input')], [{ ...called(), input: {} }], true],
  ['a broken input', [{ ...use, input: '{"a' }], [{ ...called(), input: { _raw_arguments: '{"a' } }], true],
  ['a text of another wire', [{ type: 'output_text', text: 'Hi' }], [text('Hi')]],
  ['a text that is its content', 'Hi', [text('Hi')]],
  ['a single block', text('Hi'), [text('Hi')]],
  ['a block of no type', [{}], undefined],
  ['blocks of no type', [{}, null], undefined],
  ['blocks of no type around a text', [{}, text('Hi'), { id: 'x' }, null], [text('Hi')]],
  ['a call without a name and a type, beside a text', [text('Hi'), { input: { a: 1 } }], undefined],
  ['a call without a name', [without('name')], undefined],
  ['a call whose name is blank', [{ ...use, name: ' ' }], undefined],
  ['a text, and a call whose name is null', [text('Hi'), { ...use, name: null }], undefined],
  ['a call of another wire without a name', [{ type: 'function_call', arguments: '{}' }], undefined],
]

const sdkOf = (body: string, type: string) =>
  new Anthropic({
    ...{ apiKey: 'k', maxRetries: 0, logLevel: 'off' },
    fetch: async () => new Response(body, { headers: { 'content-type': type } }),
  })
const asked = { model: 'm', max_tokens: 9, messages: [{ role: 'user' as const, content: 'x' }] }

function check(told: Json, said: Json[]) {
  assert.equal(told['content'].length, said.length)
  for (const [at, want] of said.entries()) {
    const block = told['content'][at]
    for (const [name, value] of Object.entries(want))
      if (value instanceof RegExp) assert.match(block[name], value)
      else assert.deepEqual(block[name], value, name)
  }
  assert.deepEqual([told['type'], told['role'], told['stop_sequence']], ['message', 'assistant', null])
  assert.equal(told['stop_reason'], said.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn')
}

for (const [what, content, said, isOfJson] of contents)
  test(`Y3 Y5 the SDK of the vendor reads a messages answer of the same wire with ${what}, or it fails`, async () => {
    const head = {
      requestId: 'req_1',
      createdSeconds: 1_795_000_000,
      inputTokensEstimate: 11,
      model: modelOf('messages'),
    }
    const usage = { input_tokens: 9, output_tokens: 7 }
    const body = JSON.stringify({ id: 'msg_x', type: 'message', model: 'up', content, usage })
    const answer = wires.messages.native.readAnswer(Buffer.from(body), head)
    assert.equal(answer.state, said ? 'finished' : 'failed')
    if (answer.state === 'finished') {
      const shown = `${answer.encode({ ...noUsage, inputTokens: 9, outputTokens: 7 })}`
      check((await sdkOf(shown, 'application/json').messages.create(asked)) as Json, said!)
    }
    if (!Array.isArray(content) || isOfJson) return
    const frames = content.map((block, at) => blockStart(at, block) + blockStop(at)).join('')
    const reason = said?.some(({ type }) => type === 'text') && said.length === 1 ? 'end_turn' : 'tool_use'
    const shown = playNatively('messages', messageStart() + frames + messageDelta(reason) + messageStop)
    if (said === undefined) {
      assert.ok(
        !shown.includes('"stop_reason":"tool_use"') && shown.includes('event: error'),
        'no client runs the call',
      )
      return
    }
    contentOfMessages(shown)
    check((await sdkOf(shown, 'text/event-stream').messages.stream(asked).finalMessage()) as Json, said)
  })

test('Y3 a message_start has the members of a message', () => {
  const bare = `event: message_start\ndata: {"type":"message_start","message":{"id":"msg_x"}}\n\n`
  const shown = playNatively('messages', bare + textBlock(0, 'Hi') + messageDelta('end_turn') + messageStop)
  const { message } = JSON.parse(/data: (.*)/.exec(shown)![1]!)
  const { usage: _, ...members } = message
  assert.deepEqual(members, {
    ...{ id: 'msg_x', type: 'message', role: 'assistant', model: 'm', content: [] },
    ...{ stop_reason: null, stop_sequence: null },
  })
})

test('Y3 Y5 reasoning within a sealed block is a block of its own on the same wire', () => {
  for (const isStopped of [true, false]) {
    const shown = playNatively(
      'messages',
      messageStart() +
        blockStart(0, { type: 'redacted_thinking', data: 'sealed' }) +
        blockDelta(0, { type: 'thinking_delta', thinking: 'H' }) +
        blockDelta(0, { type: 'thinking_delta', thinking: 'm' }) +
        blockDelta(0, { type: 'signature_delta', signature: 's' }) +
        (isStopped ? blockStop(0) : '') +
        textBlock(1, 'Hi') +
        messageDelta('end_turn') +
        messageStop,
    )
    assert.deepEqual(contentOfMessages(shown)?.content, [
      { type: 'redacted_thinking', data: 'sealed' },
      { type: 'thinking', thinking: 'Hm', signature: 's' },
      { type: 'text', text: 'Hi' },
    ])
  }
})

test('Y5 the deltas of a messages stream of the same wire may have the types of blocks, or none', () => {
  const shown = playNatively(
    'messages',
    messageStart() +
      blockStart(0, text('')) +
      blockDelta(0, text('H')) +
      blockDelta(0, { text: 'i' }) +
      blockStop(0) +
      blockStart(1, { ...use, input: {} }) +
      blockDelta(1, { type: 'tool_use', partial_json: '{"a":1}' }) +
      blockStop(1) +
      messageDelta('tool_use') +
      messageStop,
  )
  assert.deepEqual(contentOfMessages(shown)?.content, [text('Hi'), { type: 'tool_use', input: { a: 1 } }])
})
