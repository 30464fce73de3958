import assert from 'node:assert/strict'
import test from 'node:test'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { answers } from '../support/native.ts'
import { checkChatStream } from '../translation/grammar.ts'
import { modelOf } from './models.ts'
import { playNatively } from './same-wire.ts'

/* BUG-8: clients read `choices` of each chunk, and join chunks by their id (spec 6.2). */

const head = { id: 'chatcmpl-up1', object: 'chat.completion.chunk', created: 1_795_000_000, model: 'up-chat' }
const line = (chunk: object) => `data: ${JSON.stringify(chunk)}\n\n`
const choice = (delta: object, finish_reason: string | null = null) => ({ index: 0, delta, finish_reason })
const begin = line({ ...head, choices: [choice({ role: 'assistant', content: '' })] })
const text = (content: string) => line({ ...head, choices: [choice({ content })] })
const reason = line({ ...head, choices: [choice({}, 'stop')] })
const { usage } = answers.chat
const done = 'data: [DONE]\n\n'

const usages: [what: string, chunk: object][] = [
  ['without choices', { id: 'x', usage }],
  ['without choices and head', { usage }],
  ['with choices of null', { ...head, choices: null, usage }],
  ['with an object for choices', { ...head, choices: {}, usage }],
  ['with an id of its own', { ...head, id: 'chatcmpl-other', choices: [], usage }],
  ['with an empty id', { ...head, id: '', choices: [], usage }],
  ['with another object and no time', { id: head.id, model: head.model, object: '', choices: [], usage }],
]

for (const [what, chunk] of usages)
  for (const begun of ['chatcmpl-up1', 'gen-1', '']) {
    test(`BUG-8 spec 6.2 a usage chunk ${what} has empty choices and the id of the others, here "${begun}"`, () => {
      const before = (begin + text('Hi') + text(' there')).replaceAll('chatcmpl-up1', begun)
      const shown = playNatively('chat', before + reason.replace('chatcmpl-up1', begun) + line(chunk) + done)
      assert.deepEqual(checkChatStream(shown), [])
      assert.equal(shown.match(/"usage":\{/g)?.length, 1)
    })
  }

test('spec 6.2 a chunk without its time has the time of the chunks before', () => {
  const { created: _, ...undated } = head
  const script = begin + text('a') + line({ ...undated, choices: [choice({ content: 'b' })] }) + reason + done
  const times = Array.from(
    playNatively('chat', script).matchAll(/^data: (\{.*)$/gm),
    ([, json]) => JSON.parse(json!).created,
  )
  assert.deepEqual(new Set(times), new Set([head.created]))
})

test('spec 2.6 chunks of an upstream that sends no time have the time of the request', () => {
  const undated = (begin + text('a') + reason + done).replaceAll(`"created":${head.created},`, '')
  const chunks = Array.from(playNatively('chat', undated).matchAll(/^data: (\{.*)$/gm), ([, json]) => JSON.parse(json!))
  assert.deepEqual(new Set(chunks.map(({ created }) => created)), new Set([1_795_000_000]))
})

test('BUG-8 spec 6.2 a chunk without choices, or without members of its head, has them wherever it stands', () => {
  const others = [
    {},
    { id: 'chatcmpl-up1' },
    { ...head, choices: null },
    { id: 'x', model: head.model, choices: [choice({ content: '!' })] },
    { choices: [choice({ content: '!' })] },
    { ...head, choices: [{ delta: { content: '!' }, finish_reason: null }] },
    { ...head, choices: { index: 0, delta: { content: '!' }, finish_reason: null } },
    { ...head, choices: { delta: { content: '!' }, finish_reason: null, usage } },
  ]
  const frames = [begin, text('a'), text('b'), text('c'), reason, done]
  for (const other of others)
    for (const again of [1, 3])
      for (let at = 0; at <= 5; at++) {
        const script = frames.toSpliced(at, 0, line(other).repeat(again)).join('')
        const chunks = Array.from(playNatively('chat', script).matchAll(/^data: (\{.*)$/gm), ([, json]) =>
          JSON.parse(json!),
        )
        assert.deepEqual(new Set(chunks.map(({ id }) => /^chatcmpl-/.test(id) && id)).size, 1, script)
        assert.deepEqual(new Set(chunks.map(({ object }) => object)), new Set(['chat.completion.chunk']), script)
        const choices = chunks.flatMap(({ choices }) => choices.map((one: { index: number }) => one))
        assert.deepEqual(new Set(choices.map(({ index }) => index)), new Set([0]), script)
        const said = choices.map(({ delta }) => delta?.content ?? '').join('')
        assert.equal(said.replaceAll('!', ''), 'abc')
        assert.equal(said.length, 3 + ('choices' in other && other.choices ? again : 0))
      }
})

test('Y5 spec 4.3 each choice of one answer has its number, and a single one stands in a list', () => {
  const choice = (content: string, more = {}) => ({ message: { role: 'assistant', content }, ...more })
  const rows: [choices: unknown, told: [number, string][] | undefined][] = [
    [choice('Hé'), [[0, 'Hé']]],
    [choice('Hé', { index: 0 }), [[0, 'Hé']]],
    [
      [choice('a'), choice('b')],
      [
        [0, 'a'],
        [1, 'b'],
      ],
    ],
    [[choice('a', { index: 1 })], [[1, 'a']]],
    [{}, undefined],
    [[], undefined],
  ]
  for (const [choices, told] of rows) {
    const head = { requestId: 'req_1', createdSeconds: 1, inputTokensEstimate: 11, model: modelOf('chat') }
    const read = wires.chat.native.readAnswer(Buffer.from(JSON.stringify({ ...answers.chat, choices })), head)
    assert.equal(read.state, told ? 'finished' : 'failed')
    if (read.state !== 'finished') continue
    const shown = JSON.parse(Buffer.from(read.encode(noUsage)).toString())
    const seen = shown.choices.map((one: { index: number; message: { content: string } }) => [
      one.index,
      one.message.content,
    ])
    assert.deepEqual(seen, told)
  }
})

const fn = (args: string, more: object = {}) =>
  line({ ...head, choices: [choice({ tool_calls: [{ index: 0, ...more, function: { arguments: args } }] })] })
const named = (args: string, name = 'f') =>
  line({ ...head, choices: [choice({ tool_calls: [{ index: 0, id: name, function: { name, arguments: args } }] })] })

const second = (args: string, more: object = {}) =>
  line({ ...head, choices: [choice({ tool_calls: [{ index: 1, ...more, function: { arguments: args } }] })] })
const many = [
  '{"p":"',
  ...Array.from({ length: 20 }, (_, at) => `é${at}}\\n"x" `.replaceAll('"', '\\"')),
  '","q":{"r":[',
  '1',
  ']}}',
]

const followed: [what: string, pieces: string[], shown: string][] = [
  ['whole arguments that come again at once', [named('{"a":1}'), fn('{"a":1}')], '{"a":1}'],
  ['whole arguments that come again in pieces', [named('{"a":1}'), fn('{"a"'), fn(':1}')], '{"a":1}'],
  ['arguments in pieces that come again at once', [named(''), fn('{"a":'), fn('1}'), fn('{"a":1}')], '{"a":1}'],
  [
    'arguments in many pieces that come again at once, and in pieces',
    [named(''), ...many.map((piece) => fn(piece)), fn(many.join('')), ...many.map((piece) => fn(piece))],
    many.join(''),
  ],
  [
    'pieces that end with a bracket, and others after whole ones',
    [named(''), fn('{"a":{'), fn('}'), fn('}'), fn(' '), fn('x'), fn('{"a":{}} x')],
    '{"a":{}} x{"a":{}} x',
  ],
  [
    'two calls in turn',
    [
      named('', 'f'),
      fn('{"a":'),
      second('', { id: 'g' }),
      second('{"b":'),
      fn('1}'),
      second('2}'),
      fn('{"a":1}'),
      second('{"b":2}'),
    ],
    '{"a":{"b":1}2}',
  ],
  [
    'arguments after white space that come again in pieces',
    [named(''), fn('\n{"a":'), fn('1}'), fn('\n'), fn('{"a"'), fn(':1}'), fn('\n{"a":1}')],
    '\n{"a":1}',
  ],
  [
    'a call with the number of one before, after many kinds of chunks',
    [
      named('', 'f'),
      fn('{"l":['),
      ...many.map(() => fn('{}')).flatMap((one) => [one, fn(',')]),
      fn('{}'),
      fn(']}'),
      named('', 'g'),
      fn('{"b":'),
      fn('1}'),
      fn('{"b":1}'),
      fn('{"b"'),
      fn(':1}'),
    ],
    `{"l":[${many.map(() => '{},').join('')}{}]}{"b":1}`,
  ],
  ['arguments after a placeholder', [named('{}'), fn('{"path"'), fn(':"x"}')], '{}{"path":"x"}'],
  ['other arguments after whole ones', [named('{"a":1}'), fn('{"a":1,"b":2}')], '{"a":1}{"a":1,"b":2}'],
]
for (const [what, pieces, expected] of followed)
  test(`Y4 on the chat wire only repeated arguments are left out: ${what}`, () => {
    const frames = [begin, ...pieces, reason.replace('"stop"', '"tool_calls"'), done]
    const bytes = frames.map((frame) => Buffer.byteLength(frame))
    const inPairs = bytes.flatMap((size, at) => (at % 2 ? [] : [size + (bytes[at + 1] ?? 0)]))
    for (const cut of [[], bytes, inPairs, [bytes[0]! + bytes[1]! + bytes[2]! + bytes[3]! + 9]]) {
      const shown = playNatively('chat', frames.join(''), cut)
      const told = [...shown.matchAll(/^data: (\{.*)$/gm)].flatMap(([, data]) => JSON.parse(data!).choices ?? [])
      const args = told.flatMap(({ delta }) => delta.tool_calls ?? []).map((call) => call.function?.arguments ?? '')
      assert.equal(args.join(''), expected, `${cut}`)
    }
  })

test('Y4 after a whole call in one chunk, texts and other calls are not parsed, and the call is still checked', () => {
  const other = (args: string, more = {}) =>
    line({ ...head, choices: [choice({ tool_calls: [{ index: 1, ...more, function: { arguments: args } }] })] })
  const begun = { id: 'g', type: 'function' }
  for (const [piece, opened] of [
    [text, ''],
    [other, other('', begun)],
  ] as const) {
    // An escape that JSON does not have: whoever parses it breaks the answer off.
    const odd = piece('odd').replace('odd', String.raw`\x`)
    const script = [begin, named('{"a":1}'), opened, piece('b'), piece('c'), piece('d'), odd, odd + odd]
    const head = { requestId: 'req_1', createdSeconds: 1, inputTokensEstimate: 11, model: modelOf('chat') }
    const relay = wires.chat.native.openStream(head)
    for (const one of script) relay.push(Buffer.from(one))
    assert.equal(relay.state, 'shown')
    const again = relay.push(Buffer.from(fn('{"a":1}'))) + relay.push(Buffer.from(fn('{"a"') + fn(':1}')))
    assert.equal(again.split('"arguments":""').length, 4)
    relay.push(Buffer.from(odd.replace('data: ', 'data:  ')))
    assert.equal(relay.state, 'failed')
  }
})
