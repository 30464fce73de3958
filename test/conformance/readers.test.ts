import assert from 'node:assert/strict'
import { test } from 'node:test'
import { writeAnswer, writeStream } from '../../conformance/src/answer.ts'
import { writeAsk } from '../../conformance/src/ask.ts'
import type { Answer, Ask, Json, ScriptedEvent, Wire } from '../../conformance/src/case.ts'
import { wires } from '../../conformance/src/case.ts'
import { compact, countOf, type JsonObject, listOf, objectOf, parse, textOf } from '../../conformance/src/json.ts'
import { readRequest } from '../../conformance/src/read-request.ts'
import { EventReader } from '../../conformance/src/sse.ts'
import { clientWires } from '../../conformance/src/wires/index.ts'
import { readPrinted } from './support/printed.ts'
import { explainAll, writeAll } from './support/written.ts'

const answers: Answer[] = [
  { text: 'Hello 🎈 there', usage: { input: 12, output: 7 } },
  { text: 'Cut', stop: 'length', usage: { input: 1, output: 1, cached: 0 } },
  { reasoning: 'I think so', text: 'Yes', usage: { input: 100, output: 9, cached: 40, reasoning: 4 } },
  {
    text: 'Both',
    calls: [
      { id: 'call_1', name: 'a', input: { city: 'Bern', days: [1, 2] } },
      { id: 'call_2', name: 'b', input: {} },
    ],
    stop: 'calls',
  },
  { calls: [{ id: 'call_1', name: 'a', input: { x: null } }], stop: 'calls', usage: { input: 5, output: 5 } },
  { text: 'No', stop: 'refusal' },
]

const datasOf = (events: readonly ScriptedEvent[]) => events.map((event) => (event as { data: Json }).data)
const streamOf = (wire: Wire, answer: Answer) =>
  datasOf(writeStream(wire, writeAnswer(wire, answer, 'm'), { pieces: answer.pieces ?? 3, hasUsage: true }))

for (const wire of wires) {
  for (const answer of answers) {
    const { text = '', reasoning = '', calls = [], stop = 'end', usage = { input: 10, output: 5 } } = answer
    test(`${wire}: an answer is read as it was written, whole and as a stream: ${JSON.stringify(answer)}`, () => {
      const reader = clientWires[wire]
      const whole = reader.read(writeAnswer(wire, answer, 'm'))
      const streamed = reader.collect(streamOf(wire, answer))
      for (const seen of [whole, reader.read(streamed.body)]) {
        assert.deepEqual([seen.text, seen.reasoning, seen.stop, seen.model], [text, reasoning, stop, 'm'])
        assert.deepEqual(
          seen.calls.map(({ id, name, input }) => ({ id, name, input })),
          calls,
        )
        for (const call of seen.calls) assert.deepEqual(JSON.parse(call.arguments), call.input)
        for (const [name, count] of Object.entries(usage)) assert.equal(seen.usage?.[name as 'input'], count, name)
        if (wire !== 'messages') assert.equal(seen.usage?.total, usage.input + usage.output)
      }
      assert.equal(streamed.isEnded, true)
      assert.equal(reader.findDisorder(streamOf(wire, answer)), undefined)
    })
  }
}

test('messages: the prompt is the sum of the three counters, and a missing one counts as zero', () => {
  const read = (usage: Json) => clientWires.messages.read({ usage }).usage
  const all = { input_tokens: 5, cache_read_input_tokens: 30, cache_creation_input_tokens: 7, output_tokens: 2 }
  assert.deepEqual(read(all), { input: 42, output: 2, cached: 30, cacheWrite: 7 })
  assert.deepEqual(read({ input_tokens: 5 }), { input: 5 })
  assert.deepEqual(read({ cache_read_input_tokens: 30 }), { cached: 30 })
  assert.equal(clientWires.messages.read({}).usage, undefined)
})

const answer = answers[3]!

/** What is done to a right stream, and what its disorder is called, by wire. An undefined one is in order. */
const disorders: [wire: Wire, what: string, change: (datas: Json[]) => Json[], says: RegExp | undefined][] = [
  ['chat', 'breaks off', (all) => all.slice(0, 3), undefined],
  ['chat', 'has text after its end', (all) => [...all, all[0]!], /an event comes after \[DONE\]/],
  ['chat', 'has no finish_reason', (all) => all.map(unfinished), /without a finish_reason/],
  ['chat', 'has no usage', (all) => all.filter((one) => !has(one, 'usage')), undefined],
  [
    'chat',
    'has another object',
    (all) => all.map((one) => changed(one, { object: 'x' })),
    /the object of an event is x/,
  ],
  ['chat', 'changes its id', (all) => [changed(all[0]!, { id: 'x' }), ...all.slice(1)], /the id changes/],
  [
    'chat',
    'has text after the usage',
    (all) => [...all.slice(0, -1), all[1]!, '[DONE]'],
    /content comes after the usage/,
  ],
  ['chat', 'has an event that is no object', (all) => [...all.slice(0, 2), 'x', ...all.slice(2)], /not a JSON object/],
  ['chat', 'fails', (all) => [all[0]!, { error: { message: 'x' } }, '[DONE]'], undefined],
  ['messages', 'breaks off', (all) => all.slice(0, 4), undefined],
  ['messages', 'begins twice', (all) => [all[0]!, ...all], /message_start comes twice/],
  ['messages', 'does not begin', (all) => all.slice(2), /content_block_start comes before message_start/],
  ['messages', 'goes on after its end', (all) => [...all, ofType(all, 'message_delta')], /comes after message_stop/],
  ['messages', 'has a ping after its end', (all) => [...all, { type: 'ping' }], undefined],
  [
    'messages',
    'has no message_delta',
    (all) => without(all, 'message_delta'),
    /message_stop comes without message_delta/,
  ],
  [
    'messages',
    'starts a block in a block',
    (all) => withoutFirst(all, 'content_block_stop'),
    /starts while block 0 is open/,
  ],
  [
    'messages',
    'skips a block',
    (all) => all.map((one) => (has(one, 'content_block') ? changed(one, { index: 1 }) : one)),
    /block 1 starts where block 0 is due/,
  ],
  [
    'messages',
    'has a delta of another block',
    (all) => all.map((one) => (has(one, 'delta') && has(one, 'index') ? changed(one, { index: 7 }) : one)),
    /for block 7, which is not open/,
  ],
  [
    'messages',
    'ends with an open block',
    (all) => all.filter((one, at) => !(typeOf(one) === 'content_block_stop' && at > 12)),
    /message_delta comes while block 2 is open|starts while/,
  ],
  ['messages', 'has an event that is no object', (all) => [...all.slice(0, 2), 'x'], /not a JSON object/],
  ['responses', 'breaks off', (all) => all.slice(0, 4), undefined],
  ['responses', 'does not begin', (all) => all.slice(1), /response.in_progress comes before response.created/],
  [
    'responses',
    'goes on after its end',
    (all) => [...all, changed(all[1]!, { sequence_number: 999 })],
    /comes after response.completed/,
  ],
  ['responses', 'has [DONE] after its end', (all) => [...all, '[DONE]'], undefined],
  ['responses', 'has [DONE] before its end', (all) => [...all.slice(0, 3), '[DONE]'], /not a JSON object/],
  [
    'responses',
    'has no sequence numbers',
    (all) => all.map((one) => changed(one, { sequence_number: null })),
    undefined,
  ],
  [
    'responses',
    'repeats a sequence number',
    (all) => all.map((one, at) => (at === 1 ? changed(one, { sequence_number: 0 }) : one)),
    /sequence_number 0 comes after 0/,
  ],
  [
    'responses',
    'has a delta of no item',
    (all) => withoutFirst(all, 'response.output_item.added'),
    /item 0, which is not open/,
  ],
  [
    'responses',
    'ends with an open item',
    (all) => withoutFirst(all, 'response.output_item.done'),
    /while item 0 is open/,
  ],
  [
    'responses',
    'loses a delta of text',
    (all) => withoutFirst(all, 'response.output_text.delta'),
    /item 0 do not join to its text/,
  ],
  [
    'responses',
    'loses a delta of arguments',
    (all) => withoutFirst(all, 'response.function_call_arguments.delta'),
    /item 1 do not join to its arguments/,
  ],
  [
    'responses',
    'fails with an open item',
    (all) => [...all.slice(0, 4), { type: 'response.failed', sequence_number: 99, response: {} }],
    undefined,
  ],
  ['responses', 'has an error', (all) => [...all.slice(0, 4), { type: 'error', message: 'x' }], undefined],
  ['responses', 'has an event that is no object', (all) => [all[0]!, 'x'], /not a JSON object/],
]

const has = (one: Json, name: string) => (one as JsonObject)[name] !== undefined && one !== '[DONE]'
const typeOf = (one: Json) => (one as JsonObject)['type']
const changed = (one: Json, members: object): Json =>
  typeof one === 'string' ? one : { ...(one as JsonObject), ...members }
const ofType = (all: Json[], type: string) => all.find((one) => typeOf(one) === type)!
const without = (all: Json[], type: string) => all.filter((one) => typeOf(one) !== type)
const withoutFirst = (all: Json[], type: string) =>
  all.toSpliced(
    all.findIndex((one) => typeOf(one) === type),
    1,
  )
const unfinished = (one: Json) =>
  JSON.parse(JSON.stringify(one).replace('"finish_reason":"tool_calls"', '"finish_reason":null'))

for (const [wire, what, change, says] of disorders) {
  test(`${wire}: a stream that ${what} is ${says ? 'out of order' : 'in order'}`, () => {
    const found = clientWires[wire].findDisorder(change(streamOf(wire, answer)))
    if (says) assert.match(found ?? 'in order', says)
    else assert.equal(found, undefined)
  })
}

/** Parts of streams that broke off, with what a client has by then. */
const parts: [wire: Wire, datas: Json[], seen: object][] = [
  ['chat', streamOf('chat', answer).slice(0, 2), { text: 'Bo', stop: null }],
  ['messages', streamOf('messages', answer).slice(0, 4), { text: 'Bo', stop: null }],
  ['responses', streamOf('responses', answer).slice(0, 5), { text: 'Bo', stop: 'in_progress' }],
]
for (const [wire, datas, seen] of parts) {
  test(`${wire}: a stream that broke off has the content that had arrived, and no end`, () => {
    const { body, isEnded } = clientWires[wire].collect(datas)
    const { text, stop } = clientWires[wire].read(body)
    assert.deepEqual([{ text, stop }, isEnded], [seen, false])
  })
}

const errors: [wire: Wire, body: JsonObject, seen: object | undefined][] = [
  [
    'chat',
    { error: { type: 'a', code: 'b', param: null, message: 'c' } },
    { type: 'a', code: 'b', param: null, message: 'c' },
  ],
  ['chat', { error: 'words' }, { message: 'words' }],
  ['chat', { choices: [] }, undefined],
  [
    'messages',
    { type: 'error', error: { type: 'a', message: 'c' } },
    { type: 'a', message: 'c', code: undefined, param: undefined },
  ],
  ['messages', { type: 'message' }, undefined],
  [
    'responses',
    { type: 'error', code: 'b', message: 'c', param: 'p' },
    { type: 'error', code: 'b', message: 'c', param: 'p' },
  ],
  [
    'responses',
    { type: 'response.failed', response: { error: { code: 'b', message: 'c' } } },
    { code: 'b', message: 'c', type: undefined, param: undefined },
  ],
  ['responses', { object: 'response', error: null }, undefined],
  [
    'responses',
    { type: 'error', error: { message: 'c' } },
    { message: 'c', type: undefined, code: undefined, param: undefined },
  ],
]
for (const [wire, body, seen] of errors) {
  test(`${wire}: the error of ${JSON.stringify(body)}`, () => assert.deepEqual(clientWires[wire].readError(body), seen))
}

const asks: Ask = {
  system: 'Be brief.',
  turns: [
    { user: 'Weather?' },
    { assistant: 'I look.', calls: [{ id: 'c1', name: 'weather', input: { city: 'Bern' } }] },
    { results: [{ id: 'c1', text: 'Snow' }] },
    { assistant: 'It snows.' },
    { user: 'Thanks' },
  ],
  tools: [{ name: 'weather', description: 'Looks it up.', parameters: { type: 'object' } }],
  maxTokens: 77,
  stream: true,
}
for (const wire of wires) {
  test(`${wire}: a request is read as it was written`, () => {
    const seen = readRequest(wire, writeAsk(wire, asks))
    assert.deepEqual([seen.model, seen.stream, seen.system, seen.maxTokens], ['$model', true, 'Be brief.', 77])
    assert.deepEqual(seen.tools, asks.tools)
    assert.deepEqual(seen.turns.map(({ text }) => text).filter(Boolean), ['Weather?', 'I look.', 'It snows.', 'Thanks'])
    assert.deepEqual(
      seen.turns.flatMap(({ calls }) => calls),
      [{ id: 'c1', name: 'weather', input: { city: 'Bern' } }],
    )
    assert.deepEqual(
      seen.turns.flatMap(({ results }) => results),
      [{ id: 'c1', text: 'Snow' }],
    )
    const removed = writeAsk(wire, { text: 'Hi', maxTokens: 5, body: { model: null, top_p: 0.5, temperature: 0.25 } })
    assert.equal('model' in removed, false)
    const read = readRequest(wire, removed)
    assert.deepEqual([read.topP, read.temperature, read.stream, read.turns.length], [0.5, 0.25, false, 1])
  })
}

const image = 'data:image/png;base64,AAAA'
const pdf = 'data:application/pdf;base64,BBBB'
/** Members of a request that a wire writes in its own way, with what they say. */
const members: [
  wire: Wire,
  body: JsonObject,
  seen: (read: ReturnType<typeof readRequest>) => unknown,
  value: unknown,
][] = [
  ['chat', { messages: [{ role: 'developer', content: [{ type: 'text', text: 'a' }] }] }, (read) => read.system, 'a'],
  ['chat', { tool_choice: { type: 'function', function: { name: 'f' } } }, (read) => read.toolChoice, 'f'],
  ['chat', { tool_choice: 'required' }, (read) => read.toolChoice, 'required'],
  ['chat', { max_tokens: 5 }, (read) => read.maxTokens, 5],
  ['chat', { stop: 'x' }, (read) => read.stops, ['x']],
  ['chat', { stop: ['x', 'y'] }, (read) => read.stops, ['x', 'y']],
  ['chat', { stop: null }, (read) => read.stops, undefined],
  ['chat', { response_format: { json_schema: { schema: { a: 1 } } } }, (read) => read.schema, { a: 1 }],
  ['chat', { reasoning_effort: 'low' }, (read) => read.reasoning, 'low'],
  [
    'chat',
    { messages: [{ role: 'assistant', content: 'a', reasoning_content: 'r' }] },
    (read) => read.turns[0]?.reasoning,
    'r',
  ],
  [
    'chat',
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: image } }] }] },
    (read) => read.turns[0]?.images,
    [{ type: 'image/png', base64: 'AAAA' }],
  ],
  [
    'chat',
    { messages: [{ role: 'user', content: [{ type: 'file', file: { filename: 'a.pdf', file_data: pdf } }] }] },
    (read) => read.turns[0]?.files,
    [{ name: 'a.pdf', type: 'application/pdf', base64: 'BBBB' }],
  ],
  ['responses', { input: 'Hi' }, (read) => [read.turns[0]?.role, read.turns[0]?.text], ['user', 'Hi']],
  ['responses', { instructions: 'a', input: [{ role: 'system', content: 'b' }] }, (read) => read.system, 'a\nb'],
  ['responses', { tool_choice: { type: 'function', name: 'f' } }, (read) => read.toolChoice, 'f'],
  ['responses', { text: { format: { schema: { a: 1 } } } }, (read) => read.schema, { a: 1 }],
  ['responses', { reasoning: { effort: 'high' } }, (read) => read.reasoning, 'high'],
  [
    'responses',
    { input: [{ type: 'reasoning', summary: [{ type: 'summary_text', text: 'r' }] }] },
    (read) => read.turns[0]?.reasoning,
    'r',
  ],
  [
    'responses',
    { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://x/y.png' }] }] },
    (read) => read.turns[0]?.images,
    [{ url: 'https://x/y.png' }],
  ],
  [
    'responses',
    { input: [{ role: 'user', content: [{ type: 'input_file', file_id: 'file_1' }] }] },
    (read) => read.turns[0]?.files,
    [{ id: 'file_1' }],
  ],
  [
    'responses',
    { input: [{ type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'o' }] }] },
    (read) => read.turns[0]?.results,
    [{ id: 'c', text: 'o' }],
  ],
  [
    'messages',
    {
      system: [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
    },
    (read) => read.system,
    'a\nb',
  ],
  ['messages', { tool_choice: { type: 'any' } }, (read) => read.toolChoice, 'required'],
  ['messages', { tool_choice: { type: 'tool', name: 'f' } }, (read) => read.toolChoice, 'f'],
  ['messages', { tool_choice: { type: 'auto' } }, (read) => read.toolChoice, 'auto'],
  ['messages', { stop_sequences: ['x'] }, (read) => read.stops, ['x']],
  ['messages', { output_config: { format: { schema: { a: 1 } } } }, (read) => read.schema, { a: 1 }],
  ['messages', { thinking: { budget_tokens: 1024 } }, (read) => read.reasoning, 1024],
  [
    'messages',
    { messages: [{ role: 'assistant', content: [{ type: 'thinking', thinking: 'r' }] }] },
    (read) => read.turns[0]?.reasoning,
    'r',
  ],
  [
    'messages',
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }],
        },
      ],
    },
    (read) => read.turns[0]?.images,
    [{ type: 'image/png', base64: 'AAAA' }],
  ],
  [
    'messages',
    {
      messages: [
        { role: 'user', content: [{ type: 'document', title: 'a', source: { type: 'url', url: 'https://x/y' } }] },
      ],
    },
    (read) => read.turns[0]?.files,
    [{ name: 'a', url: 'https://x/y' }],
  ],
  [
    'messages',
    {
      messages: [
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: [{ type: 'text', text: 'o' }] }] },
      ],
    },
    (read) => read.turns[0]?.results,
    [{ id: 'c', text: 'o' }],
  ],
]
for (const [wire, body, seen, value] of members) {
  test(`${wire}: ${JSON.stringify(body)} is read as ${JSON.stringify(value)}`, () =>
    assert.deepEqual(seen(readRequest(wire, body)), value))
}

test('events are the same whatever pieces they come in, and whatever ends their lines', () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const lines = [
      ': comment',
      'event: a',
      'data: {"x":1}',
      '',
      'data: one',
      'data:two',
      '',
      'id: 1',
      '',
      'data: [DONE]',
      '',
      'x',
    ]
    const text = lines.join(end)
    for (let size = 1; size <= text.length; size++) {
      const reader = new EventReader()
      const seen = []
      for (let at = 0; at < text.length; at += size) seen.push(...reader.push(text.slice(at, at + size)))
      assert.deepEqual(
        seen,
        [{ event: 'a', data: { x: 1 } }, { data: 'one\ntwo' }, { data: '[DONE]' }],
        `${size} ${JSON.stringify(end)}`,
      )
    }
  }
})

/** The words with which a wire says why it stopped. */
const stops: [wire: Wire, body: JsonObject, stop: string | null][] = [
  ...Object.entries({
    stop: 'end',
    length: 'length',
    tool_calls: 'calls',
    function_call: 'calls',
    content_filter: 'refusal',
    other: 'other',
  }).map(([word, stop]): [Wire, JsonObject, string] => [
    'chat',
    { choices: [{ message: {}, finish_reason: word }] },
    stop,
  ]),
  ...Object.entries({
    end_turn: 'end',
    stop_sequence: 'end',
    max_tokens: 'length',
    tool_use: 'calls',
    refusal: 'refusal',
  }).map(([word, stop]): [Wire, JsonObject, string] => ['messages', { stop_reason: word }, stop]),
  ['responses', { status: 'completed', output: [] }, 'end'],
  ['responses', { status: 'completed', output: [{ type: 'function_call' }] }, 'calls'],
  ['responses', { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } }, 'length'],
  ['responses', { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }, 'refusal'],
  ['responses', { status: 'incomplete', incomplete_details: { reason: 'x' } }, 'x'],
  ['responses', { status: 'failed' }, 'failed'],
  ['chat', {}, null],
  ['messages', {}, null],
  ['responses', {}, null],
]
for (const [wire, body, stop] of stops) {
  test(`${wire}: ${JSON.stringify(body)} has the stop reason ${stop}`, () =>
    assert.equal(clientWires[wire].read(body).stop, stop))
}

test('refusals are read on the wires that have them, apart from text', () => {
  const chat = clientWires.chat.read({ choices: [{ message: { content: null, refusal: 'No.' } }] })
  const content: JsonObject[] = [
    { type: 'output_text', text: 'a' },
    { type: 'refusal', refusal: 'No.' },
  ]
  const responses = clientWires.responses.read({ output: [{ type: 'message', content }] })
  assert.deepEqual([chat.text, chat.refusal, responses.text, responses.refusal], ['', 'No.', 'a', 'No.'])
})

test('a reader recognises reasoning under the names that servers give it', () => {
  const chat = (name: string) => clientWires.chat.read({ choices: [{ message: { [name]: 'r' } }] }).reasoning
  const responses = (part: object) => clientWires.responses.read({ output: [{ type: 'reasoning', ...part }] }).reasoning
  const text = [{ type: 'x', text: 'r' }]
  assert.deepEqual(
    [chat('reasoning_content'), chat('reasoning'), responses({ summary: text }), responses({ content: text })],
    ['r', 'r', 'r', 'r'],
  )
})

test('chat: deltas that repeat the role, are null or have zero counts do not change an answer', () => {
  const chunk = (delta: Json, more: JsonObject = {}) => ({
    id: 'c',
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta }],
    ...more,
  })
  const usage = { prompt_tokens: 1 }
  const datas: Json[] = [
    { id: 'c', object: 'chat.completion.chunk', choices: [] },
    chunk({ role: 'assistant', content: 'a' }, { usage }),
    chunk({ role: 'assistant', content: 'b', refusal: null }, { usage: null }),
    chunk({ content: null, tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: '{' } }] }),
    chunk({ tool_calls: [{ index: 0, function: { arguments: '}' } }] }),
  ]
  const { body } = clientWires.chat.collect(datas)
  const message = {
    role: 'assistant',
    content: 'ab',
    tool_calls: [{ id: 'x', type: 'function', function: { name: 'f', arguments: '{}' } }],
  }
  assert.deepEqual(body['choices'], [{ index: 0, finish_reason: null, message }])
  assert.deepEqual(body['usage'], usage)
  assert.equal(clientWires.chat.findDisorder(datas), undefined)
})

for (const wire of wires) {
  test(`${wire}: the parts of a stream add up to the whole body`, () => {
    const whole = writeAnswer(wire, answer, 'm')
    const { body } = clientWires[wire].collect(streamOf(wire, answer))
    for (const part of ['content', 'output', 'usage', 'model', 'id']) assert.deepEqual(body[part], whole[part], part)
    const messageOf = (one: JsonObject) => ((one['choices'] ?? []) as { message?: JsonObject }[])[0]?.message
    const { refusal, ...message } = messageOf(whole) ?? {}
    assert.deepEqual(messageOf(body) ?? {}, message)
  })
}

test('responses: an item without deltas and text is in order, and so are deltas of unknown kinds', () => {
  const events = (...types: JsonObject[]) =>
    [{ type: 'response.created' }, { type: 'response.output_item.added', output_index: 0 }, ...types].map(
      (event, at) => ({ ...event, sequence_number: at }),
    )
  const find = (...types: JsonObject[]) => clientWires.responses.findDisorder(events(...types) as Json[])
  const place = { output_index: 0, content_index: 0 }
  assert.equal(find({ type: 'response.function_call_arguments.done', ...place, arguments: '' }), undefined)
  assert.match(find({ type: 'response.output_text.done', ...place, text: 'x' }) ?? '', /do not join to its text/)
  assert.equal(
    find({ type: 'response.audio.delta', ...place, delta: 'x' }, { type: 'response.audio.done', ...place }),
    undefined,
  )
  assert.match(find({ type: 'response.refusal.done', ...place, refusal: 'x' }) ?? '', /do not join to its refusal/)
  for (const kind of ['reasoning_text', 'reasoning_summary_text']) {
    assert.match(find({ type: `response.${kind}.done`, ...place, text: 'x' }) ?? '', /do not join to its text/)
  }
  assert.equal(clientWires.responses.findDisorder([{ type: 'error', message: 'x' }]), undefined)
})

test('responses: a stream that broke off in reasoning and in a call has both parts', () => {
  const told = {
    reasoning: 'I think so',
    calls: [{ id: 'c', name: 'f', input: { city: 'Bern' } }],
    stop: 'calls' as const,
  }
  const datas = streamOf('responses', told).filter((one) => !/\.done|completed/.test(String(typeOf(one))))
  const { reasoning, calls } = clientWires.responses.read(clientWires.responses.collect(datas).body)
  assert.deepEqual([reasoning, calls[0]?.name, calls[0]?.arguments], ['I think so', 'f', '{"city":"Bern"}'])
})

test('omitted members that vendors always send are reported separately from the order: usage on chat, numbers on responses', () => {
  const datas = streamOf('chat', answer).filter((one) => !has(one, 'usage'))
  const { chat, messages, responses } = clientWires
  assert.match(chat.findMissing(datas) ?? '', /without a chunk of usage/)
  assert.equal(chat.findMissing(datas.slice(0, -1)), undefined)
  assert.equal(chat.findMissing([{ error: {} }, ...datas]), undefined)
  assert.equal(chat.findMissing(streamOf('chat', answer)), undefined)
  assert.equal(messages.findMissing([]), undefined)
  assert.equal(responses.findMissing([...streamOf('responses', answer), { type: 'error' }]), undefined)
  assert.match(responses.findMissing([{ type: 'response.created' }]) ?? '', /response.created has no sequence_number/)
})

test('chat: only a chunk of usage without choices counts as one', () => {
  const missing = '[DONE] comes without a chunk of usage and no choices'
  for (const [chunk, found] of [
    [{ choices: [] }, missing],
    [{ usage: {}, choices: [{}] }, missing],
    [{ usage: null, choices: [] }, missing],
    ['x', missing],
    [{ usage: {}, choices: [] }, undefined],
    [{ usage: {} }, undefined],
  ] as const)
    assert.equal(clientWires.chat.findMissing([chunk as Json, '[DONE]']), found, JSON.stringify(chunk))
})

test('events that are in order although they are unusual', () => {
  const chunk = { object: 'chat.completion.chunk', choices: [{ index: 0, finish_reason: 'stop' }] }
  const usage = { object: 'chat.completion.chunk', choices: [], usage: {} }
  assert.equal(clientWires.chat.findDisorder([chunk, usage, usage, '[DONE]']), undefined)
  assert.equal(clientWires.messages.findDisorder([{ type: 'error' }, { type: 'ping' }]), undefined)
  const item = { output_index: 0 }
  const parts = (kind: string, index: string) => [
    { type: 'response.created' },
    { type: 'response.output_item.added', ...item },
    { type: `response.${kind}.delta`, ...item, [index]: 0, delta: 'a' },
    { type: `response.${kind}.delta`, ...item, [index]: 1, delta: 'b' },
    { type: `response.${kind}.done`, ...item, [index]: 0, text: 'a' },
    { type: `response.${kind}.done`, ...item, [index]: 1, text: 'b' },
  ]
  for (const [kind, index] of [
    ['output_text', 'content_index'],
    ['reasoning_summary_text', 'summary_index'],
  ] as const)
    assert.equal(clientWires.responses.findDisorder(parts(kind, index)), undefined)
})

test('an answer is sent back in the form of its wire, without the parts that cannot be read again', () => {
  const body = (wire: Wire) => writeAnswer(wire, { reasoning: 'r', text: 't' }, 'm')
  const turn = (wire: Wire) => clientWires[wire].readTurn(body(wire))
  assert.equal(turn('chat')[0]?.['content'], 't')
  assert.deepEqual(turn('messages').map(typeOf), ['thinking', 'text'])
  assert.deepEqual(
    turn('responses').map((item) => [item['type'], item['id']]),
    [['message', undefined]],
  )
  for (const wire of wires) {
    assert.deepEqual(clientWires[wire].readTurn({}), wire === 'chat' ? [{}] : [])
    const native = turn(wire)
    const asked = writeAsk(wire, {
      turns: [{ user: 'a' }, { native }],
      toolChoice: 'f',
      reasoning: 'low',
      cacheKey: 'k',
      system: 's',
    })
    const seen = readRequest(wire, asked)
    assert.deepEqual([seen.turns.at(-1)?.text, seen.toolChoice, seen.system], ['t', 'f', 's'])
    assert.equal(seen.reasoning, wire === 'messages' ? 1_024 : 'low')
    assert.match(JSON.stringify(asked), wire === 'messages' ? /cache_control/ : /"prompt_cache_key":"k"/)
  }
})

test('asks, answers and streams of each wire are what test/conformance/printed has, to the byte', () => {
  assert.equal(writeAll(), readPrinted('written.txt'))
})

test('the pages of cases are what test/conformance/printed has, to the byte', () => {
  assert.equal(explainAll(), readPrinted('explain.md'))
})

test('a reader of JSON returns something empty for a value of another type', () => {
  const odd: (Json | undefined)[] = [undefined, null, true, 1, 'x', [1, { a: 1 }, null, [{}]], { a: 1 }]
  const empty = [{}, {}, {}, {}, {}, {}]
  assert.deepEqual(odd.map(objectOf), [...empty, { a: 1 }])
  assert.deepEqual(odd.map(listOf), [[], [], [], [], [], [{ a: 1 }], []])
  assert.deepEqual(odd.map(textOf), ['', '', '', '', 'x', '', ''])
  assert.deepEqual(
    [...odd, 1.5, '1', 0].map(countOf).filter((count) => count !== undefined),
    [1, 0],
  )
  assert.deepEqual([parse('{"a":1}'), parse('{')], [{ a: 1 }, undefined])
  assert.deepEqual(Object.keys(compact({ a: undefined, b: null, c: 0 })), ['b', 'c'])
})

const turn = { role: '', text: '', reasoning: '', calls: [], results: [], images: [], files: [] }
const nothing = { stream: false, system: '', turns: [], tools: [] }
const bern = { city: 'Bern' }

/** Whole requests of a wire, with everything that is read in them. */
const requests: [wire: Wire, body: JsonObject, seen: object][] = [
  ['chat', {}, nothing],
  ['responses', {}, nothing],
  ['messages', {}, nothing],
  [
    'chat',
    {
      model: 'm',
      stream: true,
      temperature: 0.5,
      top_p: 0.25,
      messages: [
        { role: 'system', content: 'a' },
        { role: 'developer', content: [{ type: 'text', text: 'b' }, { type: 'text' }, { type: 'text', text: 'c' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'd' },
            { type: 'odd', text: 'x', source: image },
            { type: 'text', text: 'e' },
            { type: 'image_url', image_url: 'https://x/y.png' },
            { type: 'file', file: { file_id: 'file_1', title: 't' }, file_id: 'x' },
          ],
        },
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'r',
          tool_calls: [{ id: 'c1', function: { name: 'f', arguments: '{"city":"Bern"}' } }, { id: 'c2' }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'Snow', reasoning_content: 'x' },
      ],
      tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: {} } }, {}],
      tool_choice: { type: 'function' },
      max_completion_tokens: 5,
      max_tokens: 6,
      stop: 'x',
      response_format: { type: 'json_schema', json_schema: { schema: true } },
      reasoning_effort: 'low',
    },
    {
      model: 'm',
      stream: true,
      temperature: 0.5,
      topP: 0.25,
      system: 'a\nb\n\nc',
      turns: [
        {
          ...turn,
          role: 'user',
          text: 'de',
          images: [{ url: 'https://x/y.png' }],
          files: [{ name: 't', id: 'file_1' }],
        },
        {
          ...turn,
          role: 'assistant',
          reasoning: 'r',
          calls: [
            { id: 'c1', name: 'f', input: bern },
            { id: 'c2', name: '' },
          ],
        },
        { ...turn, role: 'tool', results: [{ id: 'c1', text: 'Snow' }] },
      ],
      tools: [{ name: 'f', description: 'd', parameters: {} }, { name: '' }],
      toolChoice: 'function',
      maxTokens: 5,
      stops: ['x'],
      schema: true,
      reasoning: 'low',
    },
  ],
  [
    'responses',
    {
      stream: 'true',
      instructions: 'a',
      input: [
        { role: 'developer', content: 'b' },
        { role: 'system', content: [{ type: 'input_text', text: 'c' }] },
        {
          type: 'message',
          role: 'user',
          content: [
            { type: 'input_text', text: 'd' },
            { type: 'input_image', image_url: 'data:image/png;base64,A;B\nC' },
            { type: 'input_image', image_url: 'data:,x' },
            { type: 'input_file', filename: 'n', title: 't', file_data: pdf, file_url: 'x' },
            { type: 'input_file', file_url: 'https://x/y.pdf' },
          ],
        },
        { role: 'assistant', content: [{ type: 'output_text', text: 'e' }] },
        { type: 'reasoning', summary: [], content: [{ text: 'r' }] },
        { type: 'reasoning', summary: [{ text: 's' }, { text: 't' }], content: [{ text: 'r' }] },
        { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"city":"Bern"}' },
        { type: 'function_call', call_id: 'c2', name: 'f', arguments: '{' },
        { type: 'function_call_output', call_id: 'c1', output: 'Snow' },
      ],
      tools: [{ type: 'function', name: 'f', parameters: null }],
      tool_choice: 'none',
      max_output_tokens: 5,
      text: { format: { type: 'json_schema', schema: {} } },
      reasoning: { effort: 'high' },
      stop: 'x',
    },
    {
      stream: false,
      system: 'a\nb\nc',
      turns: [
        {
          ...turn,
          role: 'user',
          text: 'd',
          images: [{ type: 'image/png', base64: 'A;B\nC' }, { url: 'data:,x' }],
          files: [{ name: 'n', type: 'application/pdf', base64: 'BBBB' }, { url: 'https://x/y.pdf' }],
        },
        { ...turn, role: 'assistant', text: 'e' },
        { ...turn, role: 'assistant', reasoning: 'r' },
        { ...turn, role: 'assistant', reasoning: 's\nt' },
        { ...turn, role: 'assistant', calls: [{ id: 'c1', name: 'f', input: bern }] },
        { ...turn, role: 'assistant', calls: [{ id: 'c2', name: 'f' }] },
        { ...turn, role: 'tool', results: [{ id: 'c1', text: 'Snow' }] },
      ],
      tools: [{ name: 'f', parameters: null }],
      toolChoice: 'none',
      maxTokens: 5,
      schema: {},
      reasoning: 'high',
    },
  ],
  [
    'messages',
    {
      system: 'a',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'b' },
            { type: 'text' },
            { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
            { type: 'document', source: { type: 'file', file_id: 'file_1' } },
            { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'BBBB' } },
            { type: 'document' },
            { type: 'tool_result', tool_use_id: 'c0', content: 'Snow' },
            { type: 'tool_result' },
          ],
        },
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'r' },
            { type: 'thinking', thinking: 's' },
            { type: 'tool_use', id: 'c1', name: 'f', input: bern },
            { type: 'tool_use' },
          ],
        },
      ],
      tools: [{ name: 'f', input_schema: {}, parameters: 'x' }],
      max_tokens: 5,
      stop_sequences: 'x',
      output_config: { effort: 'low' },
      output_format: { schema: {} },
      thinking: { budget_tokens: 1 },
    },
    {
      stream: false,
      system: 'a',
      turns: [
        {
          ...turn,
          role: 'user',
          text: 'b',
          images: [{ url: 'https://x/y.png' }],
          files: [{ id: 'file_1' }, { type: 'application/pdf', base64: 'BBBB' }, {}],
          results: [
            { id: 'c0', text: 'Snow' },
            { id: '', text: '' },
          ],
        },
        {
          ...turn,
          role: 'assistant',
          reasoning: 'rs',
          calls: [
            { id: 'c1', name: 'f', input: bern },
            { id: '', name: '' },
          ],
        },
      ],
      tools: [{ name: 'f', parameters: {} }],
      maxTokens: 5,
      stops: 'x',
      schema: {},
      reasoning: 'low',
    },
  ],
]
for (const [wire, body, seen] of requests) {
  test(`${wire}: a request of the members ${Object.keys(body)} is read whole`, () =>
    assert.deepEqual(readRequest(wire, body), seen))
}

const read = { text: '', reasoning: '', refusal: '', calls: [], stop: null }

/** Whole answers of a wire, with everything that is read in them. */
const whole: [wire: Wire, body: JsonObject, seen: object][] = [
  ['chat', {}, read],
  ['responses', {}, read],
  ['messages', {}, read],
  [
    'chat',
    {
      id: 'i',
      model: 'm',
      choices: [
        {
          message: {
            content: 't',
            refusal: 'n',
            reasoning: 'r',
            tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }, {}],
          },
        },
        { message: { content: 'x' }, finish_reason: 'stop' },
      ],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 2,
        total_tokens: 5,
        prompt_tokens_details: { cached_tokens: 1 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    },
    {
      ...read,
      id: 'i',
      model: 'm',
      text: 't',
      refusal: 'n',
      reasoning: 'r',
      calls: [
        { id: 'c', name: 'f', arguments: '{}', input: {} },
        { id: '', name: '', arguments: '' },
      ],
      usage: { input: 3, output: 2, total: 5, cached: 1, reasoning: 0 },
    },
  ],
  [
    'responses',
    {
      id: 'i',
      model: 'm',
      status: 'completed',
      output: [
        { type: 'reasoning', summary: [{ text: 'r' }, { text: 's' }], content: [{ text: 'x' }] },
        { type: 'reasoning', content: [{ text: 'u' }, {}] },
        { type: 'message', content: [{ text: 't' }, { refusal: 'n' }, { text: 'v' }] },
        { type: 'odd', content: [{ text: 'x' }] },
        { type: 'function_call', call_id: 'c', id: 'x', name: 'f', arguments: '{}' },
        { type: 'function_call' },
      ],
      usage: {
        input_tokens: 3,
        output_tokens: 2,
        total_tokens: 5,
        input_tokens_details: { cached_tokens: 1 },
        output_tokens_details: { reasoning_tokens: 0 },
      },
    },
    {
      id: 'i',
      model: 'm',
      text: 'tv',
      reasoning: 'rsu',
      refusal: 'n',
      calls: [
        { id: 'c', name: 'f', arguments: '{}', input: {} },
        { id: '', name: '', arguments: '' },
      ],
      stop: 'calls',
      usage: { input: 3, output: 2, total: 5, cached: 1, reasoning: 0 },
    },
  ],
  [
    'messages',
    {
      id: 'i',
      model: 'm',
      content: [
        { type: 'thinking', thinking: 'r' },
        { type: 'text', text: 't' },
        { type: 'text', text: 'v' },
        { type: 'tool_use', id: 'c', name: 'f', input: bern },
        { type: 'tool_use' },
      ],
      stop_reason: 1,
      usage: { input_tokens: 3, output_tokens: 2, output_tokens_details: { thinking_tokens: 0 } },
    },
    {
      ...read,
      id: 'i',
      model: 'm',
      text: 'tv',
      reasoning: 'r',
      calls: [
        { id: 'c', name: 'f', arguments: '{"city":"Bern"}', input: bern },
        { id: '', name: '', arguments: '{}' },
      ],
      usage: { input: 3, output: 2, reasoning: 0 },
    },
  ],
]
for (const [wire, body, seen] of whole) {
  test(`${wire}: an answer of the members ${Object.keys(body)} is read whole`, () =>
    assert.deepEqual(clientWires[wire].read(body), seen))
}

const choice = { finish_reason: null, message: { role: 'assistant', content: null } }
const chatCall = (id: Json, name: Json, text: string) => ({ id, type: 'function', function: { name, arguments: text } })
const added = (output_index: number, item: JsonObject) => ({ type: 'response.output_item.added', output_index, item })

/** Streams that lack parts, with the whole body that they make. */
const collected: [wire: Wire, what: string, datas: Json[], body: JsonObject, isEnded: boolean][] = [
  ['chat', 'of nothing', [], { object: 'chat.completion', choices: [] }, false],
  ['messages', 'of nothing', [], { content: [], usage: {} }, false],
  ['responses', 'of nothing', [], { output: [] }, false],
  [
    'chat',
    'with gaps, texts and events after its end',
    [
      'x',
      null,
      { id: 'i', model: 'm', created: 1, service_tier: 's', usage: null, other: 1, choices: [] },
      { id: null, model: 'n', choices: [{ index: 2, delta: { content: 'a', x: 1 } }, 1] },
      { choices: [{ index: 2, delta: { content: 'b', x: 2, role: 'tool' }, finish_reason: 'stop' }] },
      { choices: [{ delta: { tool_calls: [{ id: 'c' }, { function: { name: 'g', arguments: '1' } }] } }] },
      { choices: [{ index: 2, delta: null, finish_reason: null }] },
      { choices: [{ index: 2, delta: { tool_calls: [] } }] },
      {
        choices: [
          { index: 0, delta: { tool_calls: [{ index: 3, id: 'd', function: { name: 'h', arguments: '2' } }] } },
        ],
      },
      {
        choices: [
          { index: 0, delta: { tool_calls: [{ index: 3, id: 'x', function: { name: 'y', arguments: '3' } }] } },
        ],
      },
      '[DONE]',
      { id: 'x' },
    ],
    {
      object: 'chat.completion',
      id: 'i',
      model: 'n',
      created: 1,
      service_tier: 's',
      choices: [
        {
          ...choice,
          index: 0,
          message: {
            ...choice.message,
            tool_calls: [chatCall('c', null, ''), chatCall(null, 'g', '1'), chatCall('d', 'h', '23')],
          },
        },
        { index: 2, finish_reason: 'stop', message: { role: 'assistant', content: 'ab', x: 2 } },
      ],
    },
    true,
  ],
  [
    'messages',
    'with gaps, texts and deltas of no block',
    [
      'x',
      null,
      { type: 'message_start', message: { id: 'i', content: ['x'], usage: { input_tokens: 3, output_tokens: 1 } } },
      { type: 'content_block_delta', index: 1, delta: { text: 'x' } },
      { type: 'content_block_start', index: 1, content_block: { type: 'text', text: 'a' } },
      { type: 'content_block_delta', index: 1, delta: { text: 'b', thinking: 1 } },
      { type: 'content_block_start', index: 3, content_block: { type: 'tool_use', input: {} } },
      { type: 'content_block_delta', index: 3, delta: { partial_json: '{"a"' } },
      { type: 'content_block_delta', index: 3, delta: { partial_json: ':1}' } },
      { type: 'content_block_start', index: 4, content_block: { type: 'tool_use', input: {} } },
      { type: 'content_block_delta', index: 4, delta: { partial_json: '{' } },
      { type: 'content_block_start', index: 5, content_block: { type: 'thinking' } },
      { type: 'content_block_delta', index: 5, delta: { thinking: 'r' } },
      { type: 'content_block_delta', index: 5, delta: { signature: 's' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    ],
    {
      id: 'i',
      stop_reason: 'end_turn',
      content: [
        { type: 'text', text: 'ab' },
        { type: 'tool_use', input: { a: 1 } },
        { type: 'tool_use', input: null },
        { type: 'thinking', thinking: 'r', signature: 's' },
      ],
      usage: { input_tokens: 3, output_tokens: 2 },
    },
    false,
  ],
  ['messages', 'that ends', [{ type: 'message_stop' }], { content: [], usage: {} }, true],
  [
    'responses',
    'with gaps, texts and deltas of no item',
    [
      'x',
      null,
      { type: 'response.created', response: { id: 'i', status: 'in_progress', output: ['x'] } },
      { type: 'response.output_text.delta', output_index: 0, delta: 'x' },
      added(1, { type: 'message' }),
      { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'a' },
      { type: 'response.output_text.delta', output_index: 1, content_index: 1, delta: 'b' },
      { type: 'response.output_text.delta', output_index: 1, content_index: 0, delta: 'c' },
      added(3, { type: 'function_call', arguments: '' }),
      { type: 'response.function_call_arguments.delta', output_index: 3, delta: '{' },
      { type: 'response.function_call_arguments.delta', output_index: 3, delta: '}' },
      { type: 'response.function_call_arguments.done', output_index: 3, arguments: 'x' },
      added(4, { type: 'reasoning' }),
      { type: 'response.reasoning_summary_text.delta', output_index: 4, summary_index: 0, delta: 'r' },
      { type: 'response.reasoning_summary_text.delta', output_index: 4, summary_index: 1, delta: 's' },
      { type: 'response.reasoning_summary_text.delta', output_index: 4, delta: 't' },
      added(5, { type: 'message', content: [] }),
      { type: 'response.output_item.done', output_index: 5, item: { type: 'message', id: 'whole' } },
    ],
    {
      id: 'i',
      status: 'in_progress',
      output: [
        {
          type: 'message',
          content: [
            { type: 'output_text', text: 'ac' },
            { type: 'output_text', text: 'b' },
          ],
        },
        { type: 'function_call', arguments: '{}' },
        {
          type: 'reasoning',
          summary: [
            { type: 'summary_text', text: 'rt' },
            { type: 'summary_text', text: 's' },
          ],
        },
        { type: 'message', id: 'whole' },
      ],
    },
    false,
  ],
  ...['completed', 'incomplete', 'failed'].map((end): (typeof collected)[number] => [
    'responses',
    `that is ${end}`,
    [added(0, { type: 'message' }), { type: `response.${end}`, response: { id: 'i' } }, { type: 'response.x' }],
    { id: 'i' },
    true,
  ]),
]
for (const [wire, what, datas, body, isEnded] of collected) {
  test(`${wire}: a stream ${what} is collected`, () =>
    assert.deepEqual(clientWires[wire].collect(datas), { body, isEnded }))
}

test('the key is sent as each wire wants it, to its path', () => {
  const authorization = 'Bearer k'
  assert.deepEqual(
    wires.map((wire) => [clientWires[wire].path, clientWires[wire].keyHeaders('k')]),
    [
      ['/v1/chat/completions', { authorization }],
      ['/v1/responses', { authorization }],
      ['/v1/messages', { 'x-api-key': 'k', 'anthropic-version': '2023-06-01' }],
    ],
  )
})

test('an event has the name before its data, and data that only look like JSON are text', () => {
  const datas = [
    'data: {"a":1}',
    'data:{',
    'data: [1]',
    'data:  x',
    'data',
    'event',
    'id: 1',
    ': x',
    'event: e\ndata: 1\nretry: 3',
  ]
  assert.deepEqual(
    new EventReader().push(`${datas.join('\n\n')}\n\ndata: 2\n\n`),
    [{ a: 1 }, '{', '[1]', ' x', ''].map((data): object => ({ data })).concat({ event: 'e', data: '1' }, { data: '2' }),
  )
})
