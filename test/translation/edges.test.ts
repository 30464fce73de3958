import assert from 'node:assert/strict'
import test from 'node:test'
import { dataOf, type Json } from './cases.ts'
import { type ClientWire, pump, wires } from './pump.ts'
import {
  added,
  argumentsDelta,
  blockStart,
  blockStop,
  call,
  counts,
  created,
  done,
  events,
  functionCall,
  itemDone,
  message,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  terminal,
  textDelta,
  thinkingBlock,
  usage,
} from './upstreams.ts'

const openMessage = (place: number) => added(place, { ...message(place), status: 'in_progress', content: [] })
const openCall = (place: number) => added(place, functionCall(place, 'f', '', { status: 'in_progress' }))

const caller = { type: 'direct' }
const early: [what: string, script: Json[], content: Json[]][] = [
  [
    'text',
    [textDelta(0, 'Hel'), openMessage(0), textDelta(0, 'lo'), itemDone(0, message(0, 'Hello'))],
    [{ type: 'text', text: 'Hello', citations: [] }],
  ],
  [
    'arguments',
    [argumentsDelta(0, '{"a"'), openCall(0), argumentsDelta(0, ':1}'), itemDone(0, functionCall(0, 'f', '{"a":1}'))],
    [{ type: 'tool_use', name: 'f', input: { a: 1 }, caller }],
  ],
  [
    'arguments that the announcement repeats',
    [
      argumentsDelta(0, '{"a":1}'),
      added(0, functionCall(0, 'f', '{"a":1}')),
      itemDone(0, functionCall(0, 'f', '{"a":1}')),
    ],
    [{ type: 'tool_use', name: 'f', input: { a: 1 }, caller }],
  ],
  [
    'nothing: a second item at the place of one that is done',
    [
      openMessage(0),
      textDelta(0, 'a'),
      itemDone(0, message(0, 'a')),
      added(0, { ...message(1), status: 'in_progress', content: [] }),
      { ...textDelta(0, 'b'), item_id: message(1)['id'] },
      itemDone(0, message(1, 'b')),
    ],
    [
      { type: 'text', text: 'a', citations: [] },
      { type: 'text', text: 'b', citations: [] },
    ],
  ],
]

for (const [what, script, content] of early) {
  test(`E5 U7 deltas that arrive before their item is announced belong to it: ${what}`, () => {
    const told = pump('messages', 'responses', events(created, ...script, terminal('completed')))
    assert.deepEqual(wires.messages.check(told.text), [])
    const blocks = JSON.parse(told.json!).content as Json[]
    assert.deepEqual(
      blocks.map(({ id: _, ...block }) => block),
      content,
    )
  })
}

test('E6 P7 a proof is sealed once: the whole response has the same envelope as its item', () => {
  let sealed = 0
  const script =
    messageStart() + thinkingBlock(0, 'hm', 'c2ln') + messageDelta('end_turn', { output_tokens: 5 }) + messageStop
  const told = pump('responses', 'messages', script, {
    showsReasoning: true,
    seal: ({ data }) => `sealed-${data}-${sealed++}`,
  })
  const events = dataOf(told)
  const item = events.find(({ type }) => type === 'response.output_item.done')!['item']
  assert.match(item.encrypted_content, /^sealed-c2ln-\d$/)
  assert.deepEqual(events.at(-1)!['response'].output, [item])
})

const halfCall = blockStart(0, { type: 'tool_use', id: 'toolu_x', name: 'f', input: {} })
const cutCalls: [what: string, upstream: 'messages' | 'chat', script: string][] = [
  ['chat, in its arguments', 'chat', call([0, 'a', 'f', '{"cmd":"ec'])],
  ['chat, behind its arguments', 'chat', call([0, 'a', 'f', '{"cmd":"echo"}'])],
  ['messages, in its arguments', 'messages', messageStart() + halfCall],
]

for (const [what, upstream, script] of cutCalls) {
  for (const end of ['clean', 'reset'] as const) {
    test(`A4 T24 a call that a failure cuts is never reported as done (${what}, ${end} end)`, () => {
      const told = pump('responses', upstream, script, {}, { end })
      assert.deepEqual(wires.responses.check(told.text), [])
      assert.doesNotMatch(told.text, /\.done"/)
      const last = dataOf(told).at(-1)!
      assert.equal(last['type'], 'response.failed')
      assert.equal(last['response'].output[0].status, 'incomplete')
    })
  }
}

test('A4 T24 a call cut only by a limit is reported as done and incomplete, before the response is', () => {
  const script = call([0, 'a', 'f', '{"cmd":"ec']) + reason('length') + usage(counts(9, 2)) + done
  const told = pump('responses', 'chat', script)
  assert.deepEqual(wires.responses.check(told.text), [])
  const [ended, last] = dataOf(told).slice(-2)
  assert.deepEqual([ended!['type'], last!['type']], ['response.output_item.done', 'response.incomplete'])
  const blocks =
    messageStart() + halfCall + blockStop(0) + messageDelta('max_tokens', { output_tokens: 5 }) + messageStop
  assert.deepEqual(wires.responses.check(pump('responses', 'messages', blocks).text), [])
})

const told = { chat: call([0, 'a', 'f', '{}']), messages: messageStart() + thinkingBlock(0, 'hm') }
const reasons: [what: string, upstream: 'chat' | 'messages', script: string, isWhole: boolean][] = [
  ['chat, behind the reason', 'chat', told.chat + reason('tool_calls'), true],
  ['chat, behind the usage', 'chat', told.chat + reason('tool_calls') + usage(counts(9, 2)), true],
  ['chat, within the next frame', 'chat', `${told.chat}${reason('tool_calls')}data: [DO`, true],
  ['chat, before the reason', 'chat', told.chat, false],
  ['messages, behind the reason', 'messages', told.messages + messageDelta('end_turn'), true],
  ['messages, before the reason', 'messages', told.messages, false],
]

for (const [what, upstream, script, isWhole] of reasons) {
  const clients: ClientWire[] = ['messages', 'chat', 'responses']
  for (const client of clients.filter((name) => name !== upstream)) {
    test(`T19 a closed connection completes the answer or makes it fail: ${what} (${client} client)`, () => {
      const { text, json, outcome } = pump(client, upstream, script, {}, { end: 'reset' })
      assert.equal(json !== undefined, isWhole)
      assert.equal(outcome !== 'none' && 'answer' in outcome, isWhole)
      if (isWhole) assert.deepEqual(wires[client].check(text), [])
    })
  }
}
