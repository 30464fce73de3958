import assert from 'node:assert/strict'
import test from 'node:test'
import { liteLlm, llamaCpp } from '../support/recorded.ts'
import { accumulate } from './clients.ts'
import { type ClientWire, pump, pumpJson, type Told, wires } from './pump.ts'
import { translate } from './support/exchange.ts'
import {
  added,
  argumentsDelta,
  blockDelta,
  blockStart,
  blockStop,
  created,
  events,
  functionCall,
  itemDone,
  message,
  messageDelta,
  messageStart,
  messageStop,
  terminal,
  textDelta,
} from './upstreams.ts'

const clients = Object.keys(wires) as ClientWire[]

/** The blocks of an answer, each as `kind text` or `name arguments`; or what became of it. */
function blocksOf({ outcome }: Told): string[] | string {
  if (outcome === 'none') return 'none'
  if ('fault' in outcome) return outcome.fault.kind
  return outcome.answer.blocks.map(({ block, text }) => `${'name' in block ? block.name : block.kind} ${text}`)
}

const thought = 'reasoning I should think first\nok'
const recorded: [wire: 'messages' | 'responses', file: string, blocks: string[]][] = [
  ['responses', 'responses-text', ['text Hello there I am a tiny model ☕ 😀 and done']],
  ['responses', 'responses-reasoning', [thought, 'text The answer is 42']],
  ['responses', 'responses-reasoning-call', [thought, 'get_weather {"city": "Paris"}']],
  ['responses', 'responses-two-calls', ['get_weather {"city": "Paris"}', 'get_time {"zone": "CET"}']],
  ['messages', 'messages-reasoning', [thought, 'text The answer is 42']],
  ['messages', 'messages-reasoning-call', [thought, 'get_weather {"city": "Paris"}']],
]

for (const [wire, file, blocks] of recorded) {
  for (const client of clients) {
    test(`U7 llama.cpp’s ${file} is sent once to a ${client} client, the same as stream and JSON`, () => {
      for (const cut of ['whole', 'bytes'] as const) {
        const told = pump(client, wire, llamaCpp(`${file}.sse`), { showsReasoning: true }, { cut })
        assert.deepEqual(blocksOf(told), blocks)
        assert.deepEqual(wires[client].check(told.text), [])
        assert.deepEqual(accumulate(client, told.text), JSON.parse(told.json!))
      }
    })
  }
}

for (const client of clients) {
  test(`U7 LiteLLM’s responses that repeat reasoning as answer text at their end reach a ${client} client once`, () => {
    for (const [file, blocks] of [
      ['responses-reasoning', [thought, 'text The answer is 42']],
      ['responses-reasoning-call', [thought, 'get_weather {"city": "Paris"}']],
      ['responses-two-calls', ['get_weather {"city": "Paris"}', 'get_time {"zone": "CET"}']],
    ] as const) {
      const told = pump(client, 'responses', liteLlm(`${file}.sse`), { showsReasoning: true }, { cut: 'bytes' })
      assert.deepEqual(blocksOf(told), blocks)
      assert.deepEqual(wires[client].check(told.text), [])
    }
    const told = pumpJson(client, 'responses', liteLlm('responses-reasoning.json'), { showsReasoning: true })
    assert.deepEqual(blocksOf(told), [thought, 'text The answer is 42'])
  })
}

for (const wire of ['messages', 'responses'] as const) {
  test(`U7 llama.cpp’s whole ${wire} answer has the blocks of its stream`, () => {
    const told = pumpJson('chat', wire, llamaCpp(`${wire}-reasoning.json`), { showsReasoning: true })
    assert.deepEqual(blocksOf(told), [thought, 'text The answer is 42'])
  })
}

/** What of a block comes between its start and its stop. */
const thinks = (n: number, thinking: string) => blockDelta(n, { type: 'thinking_delta', thinking })
const says = (n: number, text: string) => blockDelta(n, { type: 'text_delta', text })
const argues = (n: number, partial_json: string) => blockDelta(n, { type: 'input_json_delta', partial_json })
const signs = (n: number) => blockDelta(n, { type: 'signature_delta', signature: 'late' })
const thinking = (n: number) => blockStart(n, { type: 'thinking', thinking: '' })
const speaking = (n: number) => blockStart(n, { type: 'text', text: '' })
const calling = (n: number, name: string) => blockStart(n, { type: 'tool_use', id: `toolu_${name}`, name, input: {} })

const overlapping: [what: string, script: string[], blocks: string[] | string][] = [
  [
    'a signature and a stop that come late, for thinking that a text has ended',
    [thinking(0), thinks(0, 'hm'), speaking(1), says(1, 'a'), signs(0), blockStop(0), says(1, 'b'), blockStop(1)],
    ['reasoning hm', 'text ab'],
  ],
  [
    'thinking that goes on behind a text is another block',
    [
      thinking(0),
      thinks(0, 'hm'),
      speaking(1),
      says(1, 'a'),
      thinks(0, 'oh'),
      says(1, 'b'),
      blockStop(0),
      blockStop(1),
    ],
    ['reasoning hm', 'text a', 'reasoning oh', 'text b'],
  ],
  [
    'a number that is given again while its block is open (Ollama: thinking, then a call)',
    [thinking(0), thinks(0, 'hm'), calling(0, 'f'), argues(0, '{"x":1}'), blockStop(0)],
    ['reasoning hm', 'f {"x":1}'],
  ],
  [
    'two whole calls under one number',
    [calling(0, 'f'), argues(0, '{"x":1}'), calling(0, 'g'), argues(0, '{"y":2}'), blockStop(0)],
    ['f {"x":1}', 'g {"y":2}'],
  ],
  [
    'half a call under a number that is given again: what comes next may be meant for either',
    [calling(0, 'f'), argues(0, '{"x"'), calling(0, 'g'), argues(0, ':1}'), blockStop(0)],
    'broken',
  ],
  ['text for a block that never began', [says(3, 'a')], 'broken'],
]

for (const [what, script, blocks] of overlapping) {
  test(`U7 messages blocks that overlap: ${what}`, () => {
    const told = [messageStart(), ...script, messageDelta('end_turn'), messageStop].join('')
    for (const client of clients) {
      const { text, outcome, ...rest } = pump(client, 'messages', told, { showsReasoning: true })
      assert.deepEqual(blocksOf({ text, outcome, ...rest }), blocks)
      assert.deepEqual(wires[client].check(text), [])
    }
    assert.deepEqual(blocksOf(pump('chat', 'messages', told, { showsReasoning: true }, { cut: 'bytes' })), blocks)
  })
}

type Event = Record<string, unknown>
const begun = { ...message(0), status: 'in_progress' }
const nobody = (event: Event): Event => ({ ...event, item_id: undefined, output_index: undefined })
const nameless = (item: Event): Event => ({ ...item, id: undefined })
const callBegun = functionCall(0, 'f', '', { status: 'in_progress' })

const at = (content_index: number | undefined, event: Event): Event => ({ ...event, content_index })
const textDone = (index: number, text: string): Event => ({
  ...{ type: 'response.output_text.done', item_id: message(0).id, output_index: 0, content_index: index, text },
})

/** A text in two pieces, and the places that they and its end say. */
const helloAt = (first: number, second: number, done: number): Event[] => [
  added(0, begun),
  at(first, textDelta(0, 'Hel')),
  at(second, textDelta(0, 'lo')),
  textDone(done, 'Hello'),
  itemDone(0, message(0, 'Hello')),
]

const raw = (text: string): Event => ({
  ...{ id: 'rs_0', type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text }] },
})
const reasoningDelta = (delta: string): Event => ({
  ...{ type: 'response.reasoning_text.delta', item_id: 'rs_0', output_index: 0, delta },
})

const parts = message(0, 'Hello')['content'] as Event[]

const disordered: [what: string, script: Event[], blocks: string[] | string][] = [
  [
    'a delta before its item is announced',
    [textDelta(0, 'Hel'), added(0, begun), textDelta(0, 'lo'), itemDone(0, message(0, 'Hello'))],
    ['text Hello'],
  ],
  [
    'arguments before their call is announced',
    [
      argumentsDelta(0, '{"x"'),
      added(0, callBegun),
      argumentsDelta(0, ':1}'),
      itemDone(0, functionCall(0, 'f', '{"x":1}')),
    ],
    ['f {"x":1}'],
  ],
  [
    'an item that is announced twice',
    [added(0, begun), textDelta(0, 'Hel'), added(0, begun), textDelta(0, 'lo'), itemDone(0, message(0, 'Hello'))],
    ['text Hello'],
  ],
  [
    'a call that is announced twice',
    [added(0, callBegun), argumentsDelta(0, '{"x"'), added(0, callBegun), argumentsDelta(0, ':1}')],
    ['f {"x":1}'],
  ],
  [
    'an item that is done twice',
    [added(0, begun), textDelta(0, 'Hello'), itemDone(0, message(0, 'Hello')), itemDone(0, message(0, 'Hello'))],
    ['text Hello'],
  ],
  [
    'a text whose events name no item at all',
    [
      added(undefined as never, nameless(begun)),
      nobody(textDelta(0, 'Hel')),
      nobody(textDelta(0, 'lo')),
      itemDone(undefined as never, nameless(message(0, 'Hello'))),
      terminal('completed', [nameless(message(0, 'Hello'))]),
    ],
    ['text Hello'],
  ],
  [
    'pieces whose ids are not the item’s, without a number',
    [
      added(undefined as never, begun),
      { ...nobody(textDelta(0, 'Hel')), item_id: 'msg_a' },
      { ...nobody(textDelta(0, 'lo')), item_id: 'msg_b' },
      { ...nobody(textDone(0, 'Hello')), item_id: 'msg_c' },
      itemDone(undefined as never, message(0, 'Hello')),
      terminal('completed', [message(0, 'Hello')]),
    ],
    ['text Hello'],
  ],
  [
    'a call without any id, and a text',
    [
      added(undefined as never, nameless(callBegun)),
      nobody(argumentsDelta(0, '{"x":1}')),
      added(undefined as never, nameless(begun)),
      nobody(textDelta(0, 'Hello')),
      terminal('completed', [nameless(functionCall(0, 'f', '{"x":1}')), nameless(message(0, 'Hello'))]),
    ],
    ['f {"x":1}', 'text Hello'],
  ],
  [
    'two items under one number (Ollama)',
    [
      added(0, begun),
      textDelta(0, 'Hello'),
      added(0, functionCall(1, 'f', '')),
      { ...argumentsDelta(1, '{}'), output_index: 0 },
      itemDone(0, message(0, 'Hello')),
      itemDone(0, functionCall(1, 'f', '{}')),
      terminal('completed', [message(0, 'Hello'), functionCall(1, 'f', '{}')]),
    ],
    ['text Hello', 'f {}'],
  ],
  [
    'arguments that may be meant for either of two open calls',
    [
      added(undefined as never, functionCall(0, 'f', '')),
      added(undefined as never, functionCall(1, 'g', '')),
      nobody(argumentsDelta(0, '{"x":1}')),
    ],
    'broken',
  ],
  ['a part that has another place when it is done (vLLM)', helloAt(1, 1, 1), ['text Hello']],
  ['a place that is counted up with every piece (vLLM)', helloAt(1, 2, 3), ['text Hello']],
  [
    'raw reasoning whose place is counted up with every piece (vLLM)',
    [added(0, raw('')), at(0, reasoningDelta('Let ')), at(1, reasoningDelta('me.')), itemDone(0, raw('Let me. Done.'))],
    ['reasoning Let me. Done.'],
  ],
  [
    'pieces at two places of what is one part, with more of it at the end',
    [added(0, begun), at(0, textDelta(0, 'Hel')), at(1, textDelta(0, 'lo')), itemDone(0, message(0, 'Hello!'))],
    ['text Hello!'],
  ],
  [
    'a text and a refusal without their places',
    [
      added(0, begun),
      at(undefined, textDelta(0, 'Hello')),
      { ...textDelta(0, 'no'), type: 'response.refusal.delta', content_index: undefined },
      itemDone(0, {
        ...message(0, 'Hello'),
        content: [...parts, { type: 'refusal', refusal: 'no' }],
      }),
    ],
    ['text Hello', 'refusal no'],
  ],
  [
    'the second of two parts alike, of which no piece told',
    [
      added(0, begun),
      textDelta(0, 'Hello'),
      textDone(0, 'Hello'),
      textDone(1, 'Hello'),
      itemDone(0, {
        ...message(0, 'Hello'),
        content: [...parts, ...parts],
      }),
    ],
    ['text HelloHello'],
  ],
  [
    'a call that is done at another place, under the id of its item and a new one of its own (vLLM)',
    [
      added(0, callBegun),
      argumentsDelta(0, '{"x":1}'),
      itemDone(1, { ...functionCall(0, 'f', '{"x":1}'), id: undefined, item_id: callBegun.id, call_id: 'call_new' }),
    ],
    ['f {"x":1}'],
  ],
  [
    'a done text that is another than its deltas',
    [added(0, begun), textDelta(0, 'Hello'), itemDone(0, message(0, 'Goodbye'))],
    'broken',
  ],
]

for (const [what, script, blocks] of disordered) {
  test(`U7 responses events that are out of order, repeated or without ids: ${what}`, () => {
    const isEnded = script.at(-1)!['type'] === 'response.completed'
    const told = events(created, ...script, ...(isEnded ? [] : [terminal('completed')]))
    for (const client of clients) {
      const { text, outcome, ...rest } = pump(client, 'responses', told, { showsReasoning: true })
      assert.deepEqual(blocksOf({ text, outcome, ...rest }), blocks)
      assert.deepEqual(wires[client].check(text), [])
    }
  })
}

const stops = ['a', 'b', 'c', 'd', 'e', 'f']
const tool = { type: 'object', properties: {} }

for (const name of ['vllm', 'litellm']) {
  test(`R-STOP max_stops holds for messages upstreams too: stop sequences beyond ${name}’s limit are enforced here`, () => {
    const body = { model: 'm', messages: [{ role: 'user', content: 'Hi' }], stop: stops }
    const { body: sent, encoded } = translate('chat', 'messages', body, { profile: name })
    assert.deepEqual(sent.stop_sequences, stops.slice(0, 4))
    assert.deepEqual(encoded.localStops, stops.slice(4))
  })
}

for (const to of ['chat', 'messages'] as const) {
  test(`T9 if a ${to} model does not support strict, the loss is listed; otherwise it is sent`, () => {
    const tools = [{ type: 'function', name: 'f', parameters: tool, strict: true }]
    const body = { model: 'm', input: 'Hi', tools }
    const told = translate('responses', to, body)
    assert.deepEqual(
      told.encoded.losses.filter(({ field }) => field === 'tools.strict').map(({ what }) => what),
      ['dropped'],
    )
    assert.doesNotMatch(told.text, /"strict"/)
    const taken = translate('responses', to, body, { profile: { accepts: new Set(['strict']) } })
    assert.deepEqual(taken.encoded.losses, [])
    assert.match(taken.text, /"strict":true/)
    const unstrict = translate('responses', to, { ...body, tools: [{ ...tools[0], strict: false }] })
    assert.deepEqual(unstrict.encoded.losses, [])
  })
}

/** By which words a server is told not to reason. */
const switchedOff: [name: string, wire: ClientWire, sent: object][] = [
  ['vllm', 'chat', { reasoning_effort: 'none' }],
  ['vllm', 'messages', { thinking: { type: 'disabled' } }],
  ['vllm', 'responses', { reasoning: { effort: 'none' } }],
  ['llama-cpp', 'chat', { reasoning_effort: 'none' }],
  ['litellm', 'chat', { reasoning_effort: 'none' }],
  ['litellm', 'messages', { thinking: { type: 'disabled' } }],
  ['litellm', 'responses', { reasoning: { effort: 'none' } }],
  ['llama-cpp', 'responses', { reasoning: { effort: 'none' } }],
]

for (const [name, wire, sent] of switchedOff) {
  test(`R-THINK the wish to switch reasoning off reaches ${name} on ${wire}`, () => {
    const asks: [ClientWire, object][] = [
      ['messages', { max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }], thinking: { type: 'disabled' } }],
      ['chat', { messages: [{ role: 'user', content: 'Hi' }], reasoning_effort: 'none' }],
      ['responses', { input: 'Hi', reasoning: { effort: 'none' } }],
    ]
    for (const [from, body] of asks) {
      if (from === wire) continue
      const { body: told } = translate(from, wire, { model: 'm', ...body }, { profile: name })
      for (const [field, value] of Object.entries(sent)) assert.deepEqual(told[field], value, from)
    }
  })
}
