import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { GatewayError } from '../../src/errors.ts'
import { wires } from '../../src/wires/wires.ts'
import { fullBodies } from '../translation/support/bodies.ts'
import { checkBody, encode, modelOf, refusalOf, smallest } from '../translation/support/exchange.ts'

type Json = Record<string, unknown>
type Told = { status: number; code: string; message: string; param: string | null }

/** What a client of one wire is told when it names a model of another, or of its own; undefined: nothing is wrong. */
function refusal(from: ClientWire, to: ClientWire, body: Json): Told | undefined {
  try {
    const checked = checkBody(from, body)
    const context = { scopedKey: undefined, isOurSeal: () => false }
    if (from === to) wires[to].native.adaptRequest(checked, { ...modelOf(to), hostedTools: 'refuse' }, context)
    else {
      const { decodeRequest } = wires[from].client
      encode(to, decodeRequest(checked, { cacheKey: undefined, unseal: () => undefined }))
    }
    return undefined
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error
    const { status, code, message, param } = error
    return { status, code, message, param }
  }
}

type Fault = { name: string; wires: readonly ClientWire[]; change: Json }

const stateless: readonly ClientWire[] = ['responses']
const withKey: readonly ClientWire[] = ['chat', 'responses']

/** Every fault that is checked on all pairs (R10, spec 4.4, T11), as what it changes in a good body. */
const faults: Fault[] = [
  ...[undefined, null, 5, ['m']].map((model) => ({ name: 'model', wires: clientWireNames, change: { model } })),
  ...[undefined, 5, {}].flatMap((value) =>
    clientWireNames.map((wire) => ({
      name: 'conversation',
      wires: [wire],
      change: { [wires[wire].client.request.conversation.field]: value },
    })),
  ),
  ...clientWireNames.flatMap((wire) =>
    wires[wire].client.request.caps.flatMap((cap) =>
      [0, -1, 1.5, '5', true, {}].map((value) => ({ name: cap, wires: [wire], change: { [cap]: value } })),
    ),
  ),
  { name: 'cap missing', wires: ['messages'], change: { max_tokens: undefined } },
  ...['yes', 1, {}].map((stream) => ({ name: 'stream', wires: clientWireNames, change: { stream } })),
  ...[5, {}, 'k'.repeat(257)].map((key) => ({ name: 'key', wires: withKey, change: { prompt_cache_key: key } })),
  { name: 'previous', wires: stateless, change: { previous_response_id: 'resp_1' } },
  { name: 'conversation', wires: stateless, change: { conversation: { id: 'c' } } },
  ...[true, 'yes', {}].map((background) => ({ name: 'background', wires: stateless, change: { background } })),
  {
    name: 'reference',
    wires: stateless,
    change: { input: ['Hi', 'Ho'].map((id) => ({ type: 'item_reference', id })) },
  },
  { name: 'reference by id', wires: stateless, change: { input: [{ role: 'user', content: 'Hi' }, { id: 'msg_1' }] } },
  { name: 'hosted tool', wires: ['responses'], change: { tools: [{ type: 'web_search' }] } },
  { name: 'hosted tool', wires: ['messages'], change: { tools: [{ type: 'web_search_20250305', name: 'w' }] } },
]

test('R9 H-F5 an error checked on all pairs is the same on every model: status, code, message, param', () => {
  for (const { name, wires: from, change } of faults) {
    for (const wire of from) {
      for (const base of [smallest[wire], fullBodies[wire]]) {
        const [first, ...others] = clientWireNames.map((to) => refusal(wire, to, { ...base, ...change }))
        assert.equal(first?.status, 400, `${wire}: ${name}`)
        for (const other of others) assert.deepEqual(other, first, `${wire}: ${name}`)
      }
    }
  }
})

test('R9 of several errors in a request, the same one is returned on every model', () => {
  const some = fc.constantFrom(...clientWireNames).chain((wire) => {
    const own = faults.filter((fault) => fault.wires.includes(wire))
    return fc.tuple(fc.constant(wire), fc.subarray(own, { minLength: 1, maxLength: 4 }))
  })
  fc.assert(
    fc.property(some, ([wire, chosen]) => {
      const body = Object.assign({}, fullBodies[wire], ...chosen.map((fault) => fault.change)) as Json
      const [first, ...others] = clientWireNames.map((to) => refusal(wire, to, body))
      assert.ok(first)
      for (const other of others) assert.deepEqual(other, first)
    }),
  )
})

const image = { type: 'image', source: { type: 'url', url: 'https://canary.example/a.png' } }

/** A fault deep in a body, and what its client is told. */
const placed: [title: string, from: ClientWire, change: Json, message: string][] = [
  [
    'a text that is none',
    'messages',
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'text', text: 5 },
          ],
        },
      ],
    },
    'The field messages[0].content[1].text must be a string.',
  ],
  [
    'a block in a tool result',
    'messages',
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [image] }] },
      ],
    },
    'messages[1].content[0].content[0].source: files and images are not fetched: send the data itself, in base64.',
  ],
  [
    'a block of a type that only the client knows',
    'messages',
    { messages: [{ role: 'user', content: [{ type: 'canary-type' }] }] },
    'messages[0].content[0]: this model cannot be given a block of this type in a user turn; text, images and documents can be sent.',
  ],
  [
    'a role',
    'chat',
    { messages: [{ role: 'user', content: 'a' }, { role: 'canary-role' }] },
    'The field messages[1].role must be one of system, developer, user, assistant, tool.',
  ],
  [
    'a part of a type that our table knows',
    'chat',
    { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] },
    'messages[0].content[0]: this model cannot be given a part of type input_audio; text, images and files can be sent.',
  ],
  [
    'a call without a name',
    'chat',
    { messages: [{ role: 'assistant', tool_calls: [{ id: 'c', type: 'function', function: {} }] }] },
    'The field messages[0].tool_calls[0].function.name must be a string.',
  ],
  [
    'a tool without a name',
    'chat',
    {
      tools: [
        { type: 'function', function: { name: 'f' } },
        { type: 'function', function: {} },
      ],
    },
    'The field tools[1].function.name must be a string.',
  ],
  [
    'a name that two tools have',
    'responses',
    { tools: ['f', 'g', 'f'].map((name) => ({ type: 'function', name })) },
    'tools[2]: another tool has this name: give each its own, or remove one.',
  ],
  [
    'an item of a type that our table knows',
    'responses',
    {
      input: [
        { role: 'user', content: 'a' },
        { type: 'compaction', encrypted_content: 'x' },
      ],
    },
    'input[1]: this model cannot be given an item of type compaction: remove it, or name a model of this wire.',
  ],
  [
    'an item of a type that only the client knows',
    'responses',
    { input: [{ type: 'canary-type' }] },
    'input[0]: this model cannot be given an item of this type; messages, function calls and their outputs can be sent.',
  ],
  [
    'a member of a namespace',
    'responses',
    { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function' }] }] },
    'The field tools[0].tools[0].name must be a string.',
  ],
  [
    'a format',
    'responses',
    { text: { format: { type: 'xml' } } },
    'The field text.format.type must be one of text, json_object, json_schema.',
  ],
]

for (const [title, from, change, message] of placed) {
  for (const to of clientWireNames.filter((wire) => wire !== from)) {
    test(`R17 ${title} is refused with its place (${from}→${to})`, () => {
      const error = refusalOf(from, to, { ...smallest[from], ...change })
      assert.equal(error.message, message)
      assert.equal(error.param, Object.keys(change)[0])
      assert.doesNotMatch(error.message, /canary/)
    })
  }
}

test('R17 input that a model cannot get is refused with its place, however the turns were reordered', () => {
  const result = { type: 'tool_result', tool_use_id: 't' }
  const picture = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } }
  const body = {
    ...smallest.messages,
    messages: [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'text', text: 'b' }, picture, result] },
    ],
  }
  const setting = { profile: { images: false } }
  for (const to of ['chat', 'responses'] as const) {
    const { message, param } = refusalOf('messages', to, body, setting)
    assert.equal(message, 'messages[2].content[1]: this model takes no images: remove it, or name another model.')
    assert.equal(param, 'messages')
  }
})

test('T16 arguments that are a list are refused: an internal token never replaces them in an upstream body', () => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: [1] } }
  const item = { type: 'function_call', call_id: 'c', name: 'f', arguments: [1] }
  const asked: [ClientWire, ClientWire, Json, string][] = [
    [
      'chat',
      'messages',
      { messages: [{ role: 'assistant', tool_calls: [call] }] },
      'messages[0].tool_calls[0].function',
    ],
    ['responses', 'chat', { input: [item] }, 'input[0]'],
  ]
  for (const [from, to, change, place] of asked) {
    const { message } = refusalOf(from, to, { ...smallest[from], ...change })
    assert.equal(message, `The field ${place}.arguments must be a string or an object.`)
  }
})
