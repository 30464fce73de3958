import { deepEqual, equal, match, ok, throws } from 'node:assert/strict'
import test from 'node:test'
import type { Profile } from '../../src/catalog/profile.ts'
import type { ProfileSetting } from '../../src/catalog/profiles.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { spellOut } from '../../src/inference/schema.ts'
import { decode, encode, pdf, png, refusalOf, smallest, translate } from './support/exchange.ts'

const user = { role: 'user', content: 'Hi' }
const messagesAsk = (more: object) => ({ ...smallest.messages, ...more })
const chatAsk = (more: object) => ({ ...smallest.chat, ...more })
const responsesAsk = (more: object) => ({ ...smallest.responses, ...more })
const budget = { style: 'budget', levels: ['low', 'medium', 'high'], canDisable: true } as const
const adaptive = { style: 'adaptive', levels: ['low', 'medium', 'high'], canDisable: true } as const
const chatTool = (name: string, more = {}) => ({ type: 'function', function: { name, ...more } })
const manyStops = (n: number) => Array.from({ length: n }, (_, i) => `${i}`)
const longStop = (codePoints: number) => '😀'.repeat(codePoints)
const call = (id: string, name = 'f', args = '{}') => ({ id, type: 'function', function: { name, arguments: args } })

const searches = { type: 'namespace', name: 'a', tools: [{ type: 'function', name: 's' }] }
const refusals: [title: string, from: ClientWire, body: unknown, code: string, param: string | null, text?: RegExp][] =
  [
    ['B20 T26 65 stops', 'chat', chatAsk({ stop: manyStops(65) }), 'invalid_body', 'stop', /^stop: at most 64/],
    [
      'B20 T26 65 stop sequences',
      'messages',
      messagesAsk({ stop_sequences: manyStops(65) }),
      'invalid_body',
      'stop_sequences',
      /^stop_sequences: at most 64/,
    ],
    [
      'B20 T26 a long stop',
      'chat',
      chatAsk({ stop: longStop(1_001) }),
      'invalid_body',
      'stop',
      /^stop: a stop sequence/,
    ],
    [
      'B20 T26 a long stop of one unit a character',
      'chat',
      chatAsk({ stop: 'x'.repeat(1_001) }),
      'invalid_body',
      'stop',
      /^stop: a stop sequence/,
    ],
    [
      'B20 T26 a long one of several stop sequences',
      'messages',
      messagesAsk({ stop_sequences: ['a', longStop(1_001)] }),
      'invalid_body',
      'stop_sequences',
      /^stop_sequences\[1\]: a stop sequence/,
    ],
    ['R10 a body that is not JSON', 'chat', '{"model":', 'invalid_body', null],
    ['R10 a body that is an array', 'messages', '[]', 'invalid_body', null],
    ['R10 model of a wrong type', 'chat', chatAsk({ model: 1 }), 'invalid_body', 'model'],
    ['R10 messages that is not an array', 'chat', { model: 'm', messages: {} }, 'invalid_body', 'messages'],
    ['R10 messages missing', 'messages', { model: 'm', max_tokens: 1 }, 'invalid_body', 'messages'],
    ['R10 input missing', 'responses', { model: 'm' }, 'invalid_body', 'input'],
    ['R10 input a number', 'responses', { model: 'm', input: 1 }, 'invalid_body', 'input'],
    ['R10 stream of a wrong type', 'responses', responsesAsk({ stream: 'yes' }), 'invalid_body', 'stream'],
    ['R10 a cap of 0', 'chat', chatAsk({ max_tokens: 0 }), 'invalid_body', 'max_tokens'],
    [
      'R10 a fractional cap',
      'responses',
      responsesAsk({ max_output_tokens: 1.5 }),
      'invalid_body',
      'max_output_tokens',
    ],
    ['spec 2.2 max_tokens missing', 'messages', { model: 'm', messages: [user] }, 'invalid_body', 'max_tokens'],
    ['R10 a key that is not a string', 'chat', chatAsk({ prompt_cache_key: 1 }), 'invalid_body', 'prompt_cache_key'],
    [
      'R10 a number that JSON can express and we cannot',
      'chat',
      '{"model":"m","messages":[],"temperature":1e400}',
      'invalid_body',
      'temperature',
    ],
    [
      'spec 4.4.2 previous_response_id',
      'responses',
      responsesAsk({ previous_response_id: 'r' }),
      'unsupported_parameter',
      'previous_response_id',
    ],
    [
      'spec 4.4.2 conversation',
      'responses',
      responsesAsk({ conversation: {} }),
      'unsupported_parameter',
      'conversation',
    ],
    [
      'spec 4.4.2 background: true',
      'responses',
      responsesAsk({ background: true }),
      'unsupported_parameter',
      'background',
    ],
    [
      'T11 item_reference',
      'responses',
      responsesAsk({ input: [{ type: 'item_reference', id: 'x' }] }),
      'unsupported_parameter',
      'input',
      /store: false/,
    ],
    [
      'T11 an item with only an id',
      'responses',
      responsesAsk({ input: [{ id: 'x' }] }),
      'unsupported_parameter',
      'input',
      /store: false/,
    ],
    [
      'T11 tool_search in additional_tools',
      'responses',
      responsesAsk({ input: [{ type: 'additional_tools', tools: [{ type: 'tool_search' }] }] }),
      'invalid_body',
      'tools',
    ],
    [
      'T6 a hosted tool on responses',
      'responses',
      responsesAsk({ tools: [{ type: 'web_search' }] }),
      'invalid_body',
      'tools',
      /web_search = "disabled"/,
    ],
    [
      'T6 a hosted tool on chat',
      'chat',
      chatAsk({ tools: [{ type: 'custom', custom: { name: 'x' } }] }),
      'invalid_body',
      'tools',
      /web_search = "disabled"/,
    ],
    [
      'T6 a hosted tool on messages',
      'messages',
      messagesAsk({ tools: [{ type: 'computer_20250124', name: 'computer' }] }),
      'invalid_body',
      'tools',
      /web_search = "disabled"/,
    ],
    [
      'T3 a remote image on responses',
      'responses',
      responsesAsk({
        input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://x.example/a.png' }] }],
      }),
      'invalid_body',
      'input',
    ],
    [
      'T3 an image source of type url',
      'messages',
      messagesAsk({
        messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.example' } }] }],
      }),
      'invalid_body',
      'messages',
    ],
    [
      'R-DOC a file by its id',
      'chat',
      chatAsk({ messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'x' } }] }] }),
      'invalid_body',
      'messages',
    ],
    [
      'R-DOC a file by its URL',
      'responses',
      responsesAsk({ input: [{ role: 'user', content: [{ type: 'input_file', file_url: 'https://x.example' }] }] }),
      'invalid_body',
      'input',
    ],
    [
      'R-IMG data that is not base64',
      'chat',
      chatAsk({
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:image/png;base64,%%' } }] }],
      }),
      'invalid_body',
      'messages',
    ],
    [
      'T9 a compaction item',
      'responses',
      responsesAsk({ input: [{ type: 'compaction', encrypted_content: 'x' }] }),
      'invalid_body',
      'input',
    ],
    [
      'T14 an unknown block of the user',
      'messages',
      messagesAsk({ messages: [{ role: 'user', content: [{ type: 'hologram' }] }] }),
      'invalid_body',
      'messages',
    ],
    ['T14 an unknown item', 'responses', responsesAsk({ input: [{ type: 'hologram' }] }), 'invalid_body', 'input'],
    [
      'T18 audio',
      'chat',
      chatAsk({ messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: {} }] }] }),
      'invalid_body',
      'messages',
    ],
    [
      'T18 the role function',
      'chat',
      chatAsk({ messages: [{ role: 'function', name: 'f', content: 'x' }] }),
      'invalid_body',
      'messages',
    ],
    ['T18 a container with an id', 'messages', messagesAsk({ container: { id: 'c' } }), 'invalid_body', 'container'],
    [
      'R-NAME one name declared twice',
      'chat',
      chatAsk({ tools: [chatTool('f'), chatTool('f')] }),
      'invalid_body',
      'tools',
    ],
    [
      'R-CHOICE a named tool that is not declared',
      'chat',
      chatAsk({ tools: [chatTool('f')], tool_choice: { type: 'function', function: { name: 'x' } } }),
      'invalid_body',
      'tool_choice',
    ],
    [
      'R-GROUP a choice that names two members',
      'responses',
      responsesAsk({
        tools: ['a', 'b'].map((name) => ({ type: 'namespace', name, tools: [{ type: 'function', name: 's' }] })),
        tool_choice: { type: 'function', name: 's' },
      }),
      'invalid_body',
      'tool_choice',
    ],
    [
      'R-GROUP a choice of a member that its namespace does not have',
      'responses',
      responsesAsk({ tools: [searches], tool_choice: { type: 'function', name: 's', namespace: 'b' } }),
      'invalid_body',
      'tool_choice',
    ],
  ]

for (const [title, from, body, code, param, text] of refusals) {
  for (const to of (['messages', 'chat', 'responses'] as const).filter((wire) => wire !== from)) {
    test(`${title} is refused (${from}→${to})`, () => {
      const error = refusalOf(from, to, body)
      deepEqual({ code: error.code, status: error.status, param: error.param }, { code, status: 400, param })
      if (text) match(error.message, text)
    })
  }
}

test('R-GROUP T2 a choice that names the namespace too means that member, not another tool of the name', () => {
  const tools = [{ type: 'function', name: 's' }, searches, { ...searches, name: 'b' }]
  const chosen = (to: 'messages' | 'chat', tool_choice: object) =>
    translate('responses', to, responsesAsk({ tools, tool_choice })).body
  const named = (namespace: string | null) => ({ type: 'function', name: 's', namespace })
  for (const [namespace, name] of [
    ['b', 'b__s'],
    ['a', 'a__s'],
    ['functions', 's'],
    [null, 's'],
  ] as const) {
    deepEqual(chosen('chat', named(namespace)).tool_choice, { type: 'function', function: { name } })
    deepEqual(chosen('messages', named(namespace)).tool_choice, { type: 'tool', name })
    const allowed = { type: 'allowed_tools', mode: 'required', tools: [named(namespace)] }
    deepEqual(
      chosen('messages', allowed).tools.map((tool: { name: string }) => tool.name),
      [name],
    )
  }
})

test('T9 a choice that the model lacks is expressed in another way with the same meaning', () => {
  const body = chatAsk({
    tools: [chatTool('f'), chatTool('g')],
    tool_choice: { type: 'function', function: { name: 'g' } },
  })
  const only = (...modes: ('auto' | 'none' | 'required' | 'named')[]) => ({ profile: { toolChoice: new Set(modes) } })
  const forced = translate('chat', 'messages', body, only('auto', 'required')).body
  deepEqual([forced.tool_choice, forced.tools.length, forced.tools[0].name], [{ type: 'any' }, 1, 'g'])
  ok(!('tools' in translate('chat', 'messages', { ...body, tool_choice: 'none' }, only('auto')).body))
  const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
  const messages = [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: null, tool_calls: [called] },
    { role: 'tool', tool_call_id: 'c', content: 'r' },
  ]
  const behind = (profile: ReturnType<typeof only>) =>
    translate('chat', 'messages', { ...body, messages, tool_choice: 'none' }, profile).body
  deepEqual(behind(only('auto', 'none')).tool_choice, { type: 'none' })
  ok(!('tools' in behind(only('auto'))), 'it might call one')
})

test('R-CHOICE allowed_tools is sent to a model that supports it', () => {
  const tools = [
    { type: 'function', name: 'f' },
    { type: 'function', name: 'g' },
  ]
  const choice = { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'g' }] }
  const profile = { accepts: new Set(['allowed_tools']) }
  const { body } = translate('responses', 'chat', responsesAsk({ tools, tool_choice: choice }), { profile })
  equal(body.tools.length, 2)
  deepEqual(body.tool_choice, {
    type: 'allowed_tools',
    allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'g' } }] },
  })
})

test('R-CHOICE a messages model gets only the allowed tools, even if its profile accepts allowed_tools', () => {
  const tools = [
    { type: 'function', name: 'f' },
    { type: 'function', name: 'g' },
  ]
  const profile = { accepts: new Set(['allowed_tools']) }
  for (const [mode, type] of [
    ['auto', 'auto'],
    ['required', 'any'],
  ]) {
    const choice = { type: 'allowed_tools', mode, tools: [{ type: 'function', name: 'g' }] }
    const { body } = translate('responses', 'messages', responsesAsk({ tools, tool_choice: choice }), { profile })
    deepEqual(
      body.tools.map(({ name }: { name: string }) => name),
      ['g'],
    )
    deepEqual(body.tool_choice, { type })
  }
})

test('T10 a messages client sees reasoning only if it enables thinking and does not omit its display', () => {
  const shown = (thinking: unknown) => decode('messages', messagesAsk({ thinking })).reasoning.isShown
  equal(shown({ type: 'enabled', budget_tokens: 2000 }), true)
  equal(shown({ type: 'adaptive' }), true)
  equal(shown({ type: 'adaptive', display: 'omitted' }), false)
  equal(shown({ type: 'enabled', budget_tokens: 2000, display: 'omitted' }), false)
  equal(shown({ type: 'between_tools' }), false)
  equal(shown({ type: 'disabled' }), false)
  equal(decode('messages', messagesAsk({ output_config: { effort: 'low' } })).reasoning.isShown, false)
})

test('R-THINK a responses client sees reasoning only if it asks for a summary', () => {
  const wish = (reasoning: unknown, include: unknown = []) =>
    decode('responses', responsesAsk({ reasoning, include })).reasoning
  const sealing = ['reasoning.encrypted_content']
  deepEqual(wish({ effort: 'low' }, sealing), { level: 'low', isShown: false, isAsked: false, wantsSealed: false })
  deepEqual(wish({ summary: 'auto' }, sealing), { level: undefined, isShown: true, isAsked: true, wantsSealed: true })
})

test('T7 a sealed signature returns to its messages model as the first block of its turn', () => {
  const input = [
    { role: 'user', content: 'Hi' },
    { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'ours' },
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'redacted' },
    { type: 'reasoning', id: 'rs_3', summary: [{ type: 'summary_text', text: 'no' }], encrypted_content: 'foreign' },
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    { type: 'function_call_output', call_id: 'c', output: 'r' },
  ]
  const unseal = (envelope: string) => {
    if (envelope === 'ours') return { wire: 'messages', kind: 'signature', data: 'SIG' } as const
    return envelope === 'redacted' ? ({ wire: 'messages', kind: 'redacted', data: 'RED' } as const) : undefined
  }
  const body = responsesAsk({ input, tools: [{ type: 'function', name: 'f' }], reasoning: { effort: 'high' } })
  const { body: up } = translate('responses', 'messages', body, { unseal, profile: { reasoning: budget } })
  deepEqual(up.messages[1].content, [
    { type: 'thinking', thinking: 'hm', signature: 'SIG' },
    { type: 'redacted_thinking', data: 'RED' },
    { type: 'tool_use', id: 'c', name: 'f', input: {} },
  ])
  // The answered turn starts with signed thinking, so a budget may be asked for.
  equal(up.thinking.type, 'enabled')
})

test('T5 if the conversation has a key, marks are set on tool, system and the last two user turns', () => {
  const body = chatAsk({
    messages: [
      { role: 'system', content: 'S' },
      user,
      { role: 'assistant', content: 'a' },
      user,
      { role: 'assistant', content: 'b' },
      user,
    ],
    tools: [chatTool('f'), chatTool('g')],
  })
  const marks = (cacheKey: string | undefined, autoCache: Profile['messages']['autoCache'], asked = body) =>
    translate('chat', 'messages', asked, { cacheKey, profile: { autoCache } }).text.split(
      '"cache_control":{"type":"ephemeral"}',
    ).length - 1
  deepEqual(
    [marks('k', 'on_key'), marks(undefined, 'on_key'), marks(undefined, 'always'), marks('k', 'off')],
    [4, 0, 4, 0],
  )
  const shot = chatAsk({ messages: [user] })
  const withTool = chatAsk({ messages: [user], tools: [chatTool('f')] })
  const answered = chatAsk({ messages: [user, { role: 'assistant', content: 'a' }, user] })
  deepEqual(
    [shot, withTool, answered].map((asked) => marks(undefined, 'auto', asked)),
    [0, 2, 2],
    'A2: a single shot stays unmarked, what goes on is marked without a key',
  )
  deepEqual([marks('k', 'auto', shot), marks(undefined, 'on_key', withTool)], [1, 0])
  const { body: up } = translate('chat', 'messages', body, { cacheKey: 'k' })
  deepEqual(
    [
      up.tools[0],
      up.tools[1],
      up.system[0],
      up.messages[0].content[0],
      up.messages[2].content[0],
      up.messages[4].content[0],
    ].map((block) => 'cache_control' in block),
    [false, true, true, false, true, true],
  )
})

test('A3 T23 a conversation that starts with an assistant turn gets a user turn, if its messages model needs one', () => {
  const greeting = { role: 'assistant', content: 'Hello, how can I help?' }
  for (const wire of ['chat', 'responses'] as const) {
    const asked = wire === 'chat' ? chatAsk({ messages: [greeting, user] }) : responsesAsk({ input: [greeting, user] })
    const { body, encoded } = translate(wire, 'messages', asked)
    deepEqual(
      body.messages.map(({ role }: { role: string }) => role),
      ['user', 'assistant', 'user'],
    )
    deepEqual(body.messages[0].content, [{ type: 'text', text: '.' }])
    ok(
      encoded.losses.some(
        ({ field, what }) => field === (wire === 'chat' ? 'messages' : 'input') && what === 'rewritten',
      ),
    )
    const taken = translate(wire, 'messages', asked, { profile: { assistantFirst: true } })
    equal(taken.body.messages[0].role, 'assistant')
    deepEqual(taken.encoded.losses, [])
  }
})

test('A6 T25 an assistant text is a plain string for a responses model', () => {
  const turns = [
    user,
    {
      role: 'assistant',
      content: [
        { type: 'text', text: 'a' },
        { type: 'refusal', refusal: 'no' },
      ],
    },
    user,
  ]
  const { body } = translate('chat', 'responses', chatAsk({ messages: turns }))
  deepEqual(body.input.slice(1, 3), [
    { type: 'message', role: 'assistant', content: 'a' },
    { type: 'message', role: 'assistant', content: 'no' },
  ])
})

test('E3 T21 adjacent assistant turns of a messages request are merged for other wires, so that results follow their calls', () => {
  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
  const settings = { role: 'system' }
  const asked = messagesAsk({
    messages: [
      user,
      { role: 'assistant', content: [{ type: 'text', text: 'x' }, use('A')] },
      settings,
      { role: 'assistant', content: [use('B')] },
      { role: 'user', content: ['A', 'B'].map((id) => ({ type: 'tool_result', tool_use_id: id, content: id })) },
    ],
  })
  const { messages } = translate('messages', 'chat', asked).body
  deepEqual(
    messages.map(({ role, tool_calls, tool_call_id }: Record<string, unknown>) => [
      role,
      tool_call_id ?? (tool_calls as unknown[] | undefined)?.length,
    ]),
    [
      ['user', undefined],
      ['assistant', 2],
      ['tool', 'A'],
      ['tool', 'B'],
    ],
  )
  const { input } = translate('messages', 'responses', asked).body
  deepEqual(
    input.map(({ type, call_id }: Record<string, unknown>) => call_id ?? type),
    ['message', 'message', 'A', 'B', 'A', 'B'],
  )
})

test('E8 T21 a turn with only reasoning between results does not separate them from their calls', () => {
  const asked = responsesAsk({
    input: [
      user,
      { type: 'function_call', call_id: 'A', name: 'f', arguments: '{}' },
      { type: 'function_call', call_id: 'B', name: 'f', arguments: '{}' },
      user,
      { type: 'function_call_output', call_id: 'B', output: 'b' },
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'function_call_output', call_id: 'A', output: 'a' },
    ],
  })
  const { messages } = translate('responses', 'chat', asked).body
  deepEqual(
    messages.map(({ role, tool_call_id }: Record<string, unknown>) => tool_call_id ?? role),
    ['user', 'assistant', 'A', 'B', 'user'],
  )
})

test('R-SYS 5 operator text between two calls of a turn does not separate them from their results', () => {
  const note = { role: 'developer', content: 'Note' }
  const calls = ['A', 'B', 'C'].map((id) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' }))
  const outputs = ['C', 'A', 'B'].map((id) => ({ type: 'function_call_output', call_id: id, output: id }))
  const input = [user, calls[0], note, calls[1], note, calls[2], ...outputs, user]
  const toChat = translate('responses', 'chat', responsesAsk({ input })).body.messages
  deepEqual(
    toChat.map(({ role, tool_call_id, tool_calls }: Record<string, unknown[]>) => [
      tool_call_id ?? role,
      ...(tool_calls ? [tool_calls.length] : []),
    ]),
    [['user'], ['assistant', 3], ['A'], ['B'], ['C'], ['developer'], ['developer'], ['user']],
  )
  const toMessages = translate('responses', 'messages', responsesAsk({ input })).body.messages
  deepEqual(
    toMessages.map(({ role, content }: { role: string; content: { type: string }[] }) => [
      role,
      ...content.map(({ type }) => type),
    ]),
    [
      ['user', 'text'],
      ['assistant', 'tool_use', 'tool_use', 'tool_use'],
      ['user', 'tool_result', 'tool_result', 'tool_result', 'text', 'text', 'text'],
    ],
  )
  // A call without a result keeps its place (T13).
  const { messages } = translate(
    'responses',
    'chat',
    responsesAsk({ input: [user, calls[0], note, calls[1], outputs[2]] }),
  ).body
  deepEqual(
    messages.map(({ role }: { role: string }) => role),
    ['user', 'assistant', 'developer', 'assistant', 'tool'],
  )
})

test('E4 T21 T18 instructions with an empty input become the user’s turn', () => {
  for (const input of [
    '',
    [],
    [{ role: 'user', content: '' }],
    [{ role: 'user', content: [{ type: 'input_text', text: '' }] }],
  ]) {
    const { body } = translate('responses', 'messages', responsesAsk({ instructions: 'Write one line.', input }))
    deepEqual(body.messages, [{ role: 'user', content: [{ type: 'text', text: 'Write one line.' }] }])
    ok(!('system' in body))
  }
  const { body } = translate(
    'chat',
    'messages',
    chatAsk({
      messages: [
        { role: 'system', content: 'Do.' },
        { role: 'user', content: '' },
      ],
    }),
  )
  deepEqual(body.messages, [{ role: 'user', content: [{ type: 'text', text: 'Do.' }] }])
})

test('T20 T14 a placeholder is dropped by name, an addition changes nothing, and a removal removes the tool', () => {
  const schema = { type: 'object', properties: {} }
  const change = (type: string, name: string) => ({ type, tool: { type: 'tool_reference', name } })
  const definition = { name: 'inline', input_schema: schema }
  const asked = messagesAsk({
    tools: [
      { name: 'kept', input_schema: schema },
      { name: 'gone', input_schema: schema },
      { name: 'back', input_schema: schema },
      { name: 'late', input_schema: schema, defer_loading: true },
      { name: 'DeferredToolPlaceholder', input_schema: schema, defer_loading: true },
    ],
    messages: [
      user,
      { role: 'system', content: [change('tool_removal', 'gone'), change('tool_removal', 'back')] },
      { role: 'assistant', content: 'a' },
      user,
      {
        role: 'system',
        content: [
          { type: 'text', text: 'Now.' },
          change('tool_addition', 'late'),
          change('tool_addition', 'back'),
          { type: 'tool_addition', tool: { type: 'tool_definition', definition } },
        ],
      },
    ],
  })
  const { body, encoded } = translate('messages', 'chat', asked)
  deepEqual(
    body.tools.map((tool: { function: { name: string } }) => tool.function.name),
    ['kept', 'back', 'late', 'inline'],
  )
  deepEqual(
    body.messages.map(({ role }: { role: string }) => role),
    ['user', 'assistant', 'user', 'system'],
  )
  deepEqual(
    encoded.losses
      .map(({ field }) => field)
      .filter((field) => field.includes('tool'))
      .sort(),
    ['messages.tool_addition', 'messages.tool_removal', 'tools.defer_loading'],
  )
  const toolset = { type: 'tool_removal', tool: { type: 'mcp_toolset', server_name: 's' } }
  const refused = messagesAsk({ messages: [user, { role: 'system', content: [toolset] }] })
  throws(() => translate('messages', 'chat', refused), /messages\[1\]\.content\[0\]\.tool: this tool is not offered/)
})

test('A8 vendor-defined tools that the client runs are functions on other wires; their calls return under their names', () => {
  const types = [
    ['bash_20241022', 'bash', ['command', 'restart']],
    ['bash_20250124', 'bash', ['command', 'restart']],
    ['text_editor_20241022', 'str_replace_editor', ['command', 'path', 'old_str', 'new_str', 'insert_line']],
    ['text_editor_20250124', 'str_replace_editor', ['command', 'path', 'old_str', 'new_str', 'view_range']],
    ['text_editor_20250429', 'str_replace_based_edit_tool', ['command', 'path', 'new_str', 'insert_line']],
    ['text_editor_20250728', 'str_replace_based_edit_tool', ['command', 'path', 'file_text', 'insert_text']],
    ['memory_20250818', 'memory', ['command', 'path', 'old_path', 'new_path', 'insert_text']],
  ] as const
  for (const [type, name, inputs] of types) {
    const use = { type: 'tool_use', id: 't', name, input: { command: 'view', path: '/a' } }
    const asked = messagesAsk({
      tools: [{ type, name }],
      tool_choice: { type: 'tool', name },
      messages: [
        user,
        { role: 'assistant', content: [use] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: 'x' }] },
      ],
    })
    const { body } = translate('messages', 'chat', asked)
    equal(body.tools[0].function.name, name)
    for (const input of inputs) ok(input in body.tools[0].function.parameters.properties, `${type} ${input}`)
    equal(body.tool_choice.function.name, name)
    equal(body.messages[1].tool_calls[0].function.name, name)
    equal(translate('messages', 'responses', asked).body.tools[0].name, name)
  }
})

test('T8 T14 a system turn gives the same bytes as a marked block and as a string', () => {
  const turn = (content: unknown) => messagesAsk({ messages: [user, { role: 'system', content }] })
  const block = [{ type: 'text', text: 'Env', cache_control: { type: 'ephemeral' } }]
  for (const to of ['chat', 'responses'] as const) {
    equal(translate('messages', to, turn(block)).text, translate('messages', to, turn('Env')).text)
  }
})

test('T14 deferred tools come after the others, placeholders are dropped, and references become text', () => {
  const body = messagesAsk({
    tools: [
      { name: 'Placeholder', defer_loading: true },
      { name: 'late', input_schema: {}, defer_loading: true },
      { name: 'early', input_schema: {} },
    ],
    messages: [
      user,
      { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'early', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 't', content: [{ type: 'tool_reference', tool_name: 'late' }] }],
      },
    ],
  })
  const { body: up } = translate('messages', 'chat', body)
  deepEqual(
    up.tools.map((tool: { function: { name: string } }) => tool.function.name),
    ['early', 'late'],
  )
  equal(up.messages[2].content, 'Tool loaded: late')
})

test('T11 additional_tools items are tools', () => {
  const extra = { type: 'additional_tools', role: 'developer', tools: [{ type: 'function', name: 'x' }] }
  const { body } = translate('responses', 'chat', responsesAsk({ input: [extra, user] }))
  equal(body.tools[0].function.name, 'x')
  deepEqual(body.messages, [user])
})

test('T16 lone surrogates, digits and key order survive in both directions', () => {
  const args = '{"b":1.0,"2":0,"1":12345678901234567890,"s":"\\ud800"}'
  const fromChat = `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":${JSON.stringify(args)}}}]},{"role":"user","content":"\\ud800"}]}`
  const { text } = translate('chat', 'messages', fromChat)
  ok(text.includes(`"input":${args}`))
  ok(text.includes('"text":"\\ud800"'))
  const fromMessages = `{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":${args}}]}]}`
  equal(translate('messages', 'chat', fromMessages).body.messages[0].tool_calls[0].function.arguments, args)
  // In JSON, the text of arguments is a string, which may itself have the half as an escape.
  for (const more of ['', 'y'.repeat(99)]) {
    const half = String.raw`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"f","arguments":"{\"s\":\"😀\ud83d\u00e9${more}\"}"}]}`
    const { body } = translate('responses', 'messages', half)
    equal(body.messages[1].content[0].input.s, `😀\ud83dé${more}`)
  }
})

test('R-ARGS arguments that are not an object come back unchanged', () => {
  const body = (args: string) =>
    chatAsk({ messages: [user, { role: 'assistant', tool_calls: [call('a', 'f', args)] }] })
  for (const args of ['{"a":', '[1,2]', '"x"', '7', '{"_raw_arguments":"x"} ', '{"_raw_arguments":1}']) {
    const up = translate('chat', 'messages', body(args)).body
    const back = translate('messages', 'chat', { ...up, max_tokens: 9 }).body
    const expected = args === '{"_raw_arguments":"x"} ' ? 'x' : args
    equal(back.messages[1].tool_calls[0].function.arguments, expected)
  }
})

test('R-ARGS F-C35 arguments deeper or longer than a request may be are not parsed, and come back unchanged', () => {
  const nested = (depth: number) => `{"a":${'['.repeat(depth)}${']'.repeat(depth)}}`
  const inputOf = (args: string) => {
    const asked = chatAsk({ messages: [user, { role: 'assistant', tool_calls: [call('a', 'f', args)] }] })
    return translate('chat', 'messages', asked).body.messages[1].content[0].input
  }
  deepEqual(inputOf(nested(100)), JSON.parse(nested(100)))
  for (const args of [nested(1_000), nested(300_000), `{"a":[${'1,'.repeat(200_000)}1]}`])
    deepEqual(inputOf(args), { _raw_arguments: args })
})

test('T17 a cap below the upstream’s minimum is raised to it, and the change is listed', () => {
  const encoded = translate('messages', 'chat', messagesAsk({ max_tokens: 5 }), { profile: { minOutput: 32 } }).encoded
  equal(JSON.parse(encoded.body.toString()).max_completion_tokens, 32)
  equal(encoded.outputTokensCap, 32)
  deepEqual(encoded.losses, [{ field: 'max_output', what: 'clamped', why: 'below the upstream’s floor' }])
})

test('R-MAX without a cap, none is sent on chat, and the model’s maximum is the limit', () => {
  const { body, encoded } = translate('responses', 'chat', smallest.responses)
  ok(!('max_completion_tokens' in body))
  equal(encoded.outputTokensCap, 8192)
})

test('R-MAX C6 if the upstream takes no cap, none is sent, and the model’s maximum is the limit', () => {
  for (const [wire, field] of [
    ['chat', 'max_completion_tokens'],
    ['responses', 'max_output_tokens'],
  ] as const) {
    const profile = { drops: new Set([field]) }
    const { body, encoded } = translate('messages', wire, messagesAsk({ max_tokens: 100 }), { profile })
    ok(!(field in body))
    equal(encoded.outputTokensCap, 8192)
    deepEqual(encoded.losses, [{ field, what: 'dropped', why: 'the model does not take it' }])
  }
})

test('T18 if there are only system messages, the last of them becomes the user’s turn', () => {
  const body = chatAsk({
    messages: [
      { role: 'system', content: 'S' },
      { role: 'system', content: 'Do it' },
    ],
  })
  const { body: up } = translate('chat', 'messages', body)
  deepEqual(up.system, [{ type: 'text', text: 'S' }])
  deepEqual(up.messages, [{ role: 'user', content: [{ type: 'text', text: 'Do it' }] }])
})

test('T18 T21 a responses model gets an input if a messages request has only operator text', () => {
  const system = [{ type: 'text', text: 'S' }]
  for (const messages of [
    [{ role: 'system', content: 'Do it' }],
    [
      { role: 'system', content: 'Do it' },
      { role: 'user', content: '' },
    ],
    [
      { role: 'system', content: 'Do it' },
      { role: 'assistant', content: '' },
    ],
  ]) {
    const { body } = translate('messages', 'responses', messagesAsk({ system, messages }))
    equal(body.instructions, 'S')
    deepEqual(body.input, [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Do it' }] }])
  }
  const { body } = translate('messages', 'responses', messagesAsk({ system, messages: [] }))
  ok(!('instructions' in body))
  deepEqual(body.input, [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'S' }] }])
})

test('T13 calls without results and results without calls are passed on unchanged', () => {
  const messages = [
    user,
    { role: 'assistant', tool_calls: [call('a')] },
    { role: 'tool', tool_call_id: 'b', content: 'r' },
  ]
  const { body: up } = translate('chat', 'messages', chatAsk({ messages }))
  deepEqual(up.messages.slice(1), [
    { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'b', content: 'r' }] },
  ])
})

test('R-PRE trailing assistant text is trimmed for messages, and marked if the wire has a flag for it', () => {
  const messages = [user, { role: 'assistant', content: 'So \n' }]
  for (const said of [messages[1]!, { role: 'assistant', refusal: 'So \n' }])
    deepEqual(translate('chat', 'messages', chatAsk({ messages: [user, said] })).body.messages[1].content, [
      { type: 'text', text: 'So' },
    ])
  const flagged = translate('messages', 'chat', messagesAsk({ messages }), { profile: { prefill: 'flag:prefix' } }).body
  deepEqual(flagged.messages[1], { role: 'assistant', content: 'So \n', prefix: true })
})

test('R-SCHEMA a choice at the root of a schema is loosened for messages, and a missing type is added', () => {
  const parameters = (schema: object) =>
    translate('chat', 'messages', chatAsk({ tools: [chatTool('f', { parameters: schema })] }))
  const branch = (name: string) => ({ properties: { id: { type: 'string' }, [name]: {} }, required: ['id', name] })
  const { body, encoded } = parameters({ type: 'object', anyOf: [branch('a'), branch('b')] })
  deepEqual(body.tools[0].input_schema, {
    type: 'object',
    properties: { id: { type: 'string' }, a: {}, b: {} },
    required: ['id'],
  })
  deepEqual(
    encoded.losses.map((loss) => [loss.field, loss.what]),
    [['tools', 'rewritten']],
  )
  deepEqual(parameters({ properties: {} }).body.tools[0].input_schema, { type: 'object', properties: {} })
})

test('R-SCHEMA T16 a provider that requires explicit schemas gets omitted parts filled in; others get the client’s text', () => {
  const sent = (to: 'chat' | 'responses', schema: object, profile: string) => {
    const ask = messagesAsk({ tools: [{ name: 'f', input_schema: schema }] })
    const { body, encoded } = translate('messages', to, ask, { profile: profile })
    const [tool] = body.tools
    return [(tool.function ?? tool).parameters, encoded.losses.map((loss) => loss.what)]
  }
  const list = { type: 'object', properties: { a: { type: ['array', 'null'] }, b: { anyOf: [{ type: 'array' }] } } }
  const said = {
    type: 'object',
    properties: { a: { type: ['array', 'null'], items: {} }, b: { anyOf: [{ type: 'array', items: {} }] } },
  }
  const choice = { anyOf: [{ properties: { a: {} }, required: ['a'] }] }
  for (const to of ['chat', 'responses'] as const)
    for (const profile of ['openai', 'openai-reasoning']) {
      deepEqual(sent(to, { type: 'object' }, profile), [{ type: 'object', properties: {} }, []])
      deepEqual(sent(to, {}, profile), [{ type: 'object', properties: {} }, []])
      deepEqual(sent(to, list, profile), [said, []])
      deepEqual(sent(to, said, profile), [said, []])
      deepEqual(sent(to, choice, profile), [{ type: 'object', properties: { a: {} }, required: ['a'] }, ['rewritten']])
      deepEqual(sent(to, { type: 'object', default: { type: 'array' }, properties: {} }, profile)[0], {
        type: 'object',
        default: { type: 'array' },
        properties: {},
      })
    }
  // Numbers keep their digits in a schema that is written again; and however long a list is, it is walked.
  const exact = (more = '') =>
    `{"type":"object","properties":{"id":{"enum":[9007199254740993,0.10,9007199254740991]},"a":{"type":"array"${more}}}}`
  const body = (schema: string) =>
    `{"model":"m","max_tokens":9,"messages":[],"tools":[{"name":"f","input_schema":${schema}}]}`
  const kept = translate('messages', 'chat', body(exact()), { profile: 'openai' })
  ok(kept.text.includes(exact(',"items":{}').replace('0.10', '0.1')), kept.text)
  const branch = '{"anyOf":[{"type":"object","properties":{"a":{"const":12345678901234567890}}}]}'
  ok(
    translate('messages', 'chat', body(branch), { profile: 'openai' }).text.includes(
      '{"a":{"const":12345678901234567890}}',
    ),
  )
  const format = `{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"type":"integer","maximum":9223372036854775807}}}}}`
  const closed = translate('chat', 'messages', `{"model":"m","messages":[],"response_format":${format}}`, {
    profile: 'anthropic',
  }).body.output_config.format.schema
  equal(closed.properties.a.description, '{"maximum":9223372036854775807}')
  const wide = { type: 'object', properties: { a: { oneOf: Array.from({ length: 130_000 }, () => 1) } } }
  deepEqual(sent('chat', { ...wide, $defs: { list: { type: 'array' } } }, 'openai')[0], {
    ...wide,
    $defs: { list: { type: 'array', items: {} } },
  })
  deepEqual(sent('chat', list, 'default-chat'), [list, []])
  deepEqual(sent('chat', choice, 'default-chat'), [{ type: 'object', ...choice }, []])
})

test('R-SCHEMA members of null are left out of the schemas for OpenAI, which refuses them; values may be null', () => {
  const sent = (schema: object, profile = 'openai') => {
    const { body } = translate('messages', 'chat', messagesAsk({ tools: [{ name: 'f', input_schema: schema }] }), {
      profile,
    })
    return body.tools[0].function.parameters
  }
  const empty = { type: 'object', properties: {} }
  deepEqual(sent({ type: 'object', properties: null, required: null }), empty)
  deepEqual(sent({ type: 'object', properties: {}, required: null, additionalProperties: false }), {
    ...empty,
    additionalProperties: false,
  })
  const nullable = { type: ['string', 'null'], default: null, examples: null, enum: ['a', null] }
  const inner = { type: 'object', properties: { b: nullable }, required: null }
  deepEqual(sent({ type: 'object', properties: { a: { ...inner, description: null } }, required: null }), {
    type: 'object',
    properties: { a: { type: 'object', properties: { b: nullable } } },
  })
  const plain = { type: 'object', properties: null, required: null }
  deepEqual(sent(plain, 'default-chat'), plain)
})

test('R-SCHEMA T9 OpenAI gets no `not`, `enum` or `const` at the root of a tool’s schema, which it refuses', () => {
  const sent = (to: 'chat' | 'responses', schema: object, profile = 'openai') => {
    const ask = messagesAsk({ tools: [{ name: 'f', input_schema: schema }] })
    const { body, encoded } = translate('messages', to, ask, { profile })
    const [tool] = body.tools
    return [(tool.function ?? tool).parameters, encoded.losses.map(({ field, what }) => [field, what])]
  }
  const inner = { a: { type: 'string', enum: ['x'], not: { const: 'y' } }, b: { const: 1 } }
  const plain = { type: 'object', properties: inner }
  const both = { required: ['a', 'b'] }
  for (const to of ['chat', 'responses'] as const) {
    for (const schema of [
      { ...plain, not: both },
      { ...plain, not: both, additionalProperties: false },
      { ...plain, enum: [{ a: 'x' }] },
      { ...plain, const: { a: 'x' } },
      { not: both, ...plain },
    ]) {
      const { not: _, enum: __, const: ___, ...rest } = schema as Record<string, unknown>
      deepEqual(sent(to, schema), [rest, [['tools', 'rewritten']]])
    }
    deepEqual(sent(to, { enum: ['x'] }), [{ type: 'object', properties: {} }, [['tools', 'rewritten']]])
    deepEqual(sent(to, plain), [plain, []])
  }
  const said = { ...plain, not: both }
  deepEqual(sent('chat', said, 'default-chat'), [said, []])
})

test('R-SCHEMA a schema whose last properties have an `enum` or the default null is not parsed for OpenAI', () => {
  // This text is no JSON, so it would not stay the same if it were parsed.
  for (const last of ['{"enum":["x","y"]}', '{"type":"string","default":null}']) {
    const raw = { source: `{"type":"object","properties":{not JSON,"a":${last}},"required":["a"]}` }
    const sent = spellOut(raw, () => {})
    equal(sent, raw)
  }
})

test('R-SYS R-PRE T23 the profiles of Anthropic accept what its models of their time accept', () => {
  const ask = chatAsk({
    messages: [user, { role: 'system', content: 'Be brief.' }, { role: 'assistant', content: 'Sure' }],
  })
  const roles = (profile: string) =>
    translate('chat', 'messages', ask, { profile: profile }).body.messages.map(({ role }: { role: string }) => role)
  deepEqual(roles('anthropic-budget'), ['user', 'assistant'])
  deepEqual(roles('anthropic'), ['user', 'assistant', 'user'])
  deepEqual(roles('anthropic-fixed-sampling'), ['user', 'system', 'assistant', 'user'])
})

test('R-RES R-SYS Mistral gets no user turn after a result, and no system turn after an assistant turn', () => {
  const messages = [
    user,
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 't1', content: 'r' },
        { type: 'text', text: 'And?' },
      ],
    },
    { role: 'system', content: 'Be brief.' },
  ]
  const { body } = translate('messages', 'chat', messagesAsk({ messages }), {
    profile: 'mistral',
  })
  deepEqual(
    body.messages.slice(2).map(({ role, content }: { role: string; content: unknown }) => [role, content]),
    [
      ['tool', 'r'],
      ['assistant', 'Done.'],
      [
        'user',
        [
          { type: 'text', text: 'And?' },
          { type: 'text', text: '<system-reminder>\nBe brief.\n</system-reminder>' },
        ],
      ],
    ],
  )
})

test('R-WHO P5 an e-mail address or a long name is not a valid user_id and is sent as its hash', () => {
  const sent = (name: string) => translate('chat', 'messages', chatAsk({ user: name })).body.metadata.user_id
  match(sent('alice@example.com'), /^[0-9a-f]{64}$/)
  match(sent('a'.repeat(257)), /^[0-9a-f]{64}$/)
  equal(sent('a'.repeat(256)), 'a'.repeat(256))
  equal(sent('alice@example.com'), sent('alice@example.com'))
})

test('R-NAME R-GROUP texts repeated for each tool and call have a limit: a name, and the description of a namespace', () => {
  const long = 'n'.repeat(1_025)
  const group = (more: object, tools = 1) =>
    responsesAsk({
      tools: [
        {
          type: 'namespace',
          name: 'g',
          ...more,
          tools: Array.from({ length: tools }, (_, i) => ({ type: 'function', name: `f${i}`, parameters: {} })),
        },
      ],
    })
  const told = (from: ClientWire, body: unknown) => {
    const { code, param, message } = refusalOf(from, from === 'chat' ? 'messages' : 'chat', body)
    return [code, param, message]
  }
  const text = "a tool's name has at most 1024 characters."
  deepEqual(told('chat', chatAsk({ tools: [chatTool(long)] })), ['invalid_body', 'tools', `tools[0]: ${text}`])
  deepEqual(told('responses', group({ name: long })), ['invalid_body', 'tools', `tools[0].tools[0]: ${text}`])
  const used = chatAsk({ messages: [user, { role: 'assistant', tool_calls: [call('c', long)] }] })
  deepEqual(told('chat', used), ['invalid_body', 'messages', `messages: ${text}`])
  const description = 'd'.repeat(2_000)
  equal(translate('responses', 'chat', group({ description }, 400)).body.tools.length, 400)
  match(`${told('responses', group({ description }, 600))[2]}`, /^tools\[0\]\.description: it stands with each/)
  const one = (group({ description }, 300) as unknown as { tools: [{ name: string }] }).tools[0]
  const two = responsesAsk({ tools: [one, { ...one, name: 'h' }] })
  match(`${told('responses', two)[2]}`, /^tools\[1\]\.description: it stands with each/)
})

test('T9 a wish for verbosity is sent if the model supports it, and is otherwise a listed loss', () => {
  const asked = chatAsk({ verbosity: 'low' })
  deepEqual(translate('chat', 'responses', asked, { profile: { accepts: new Set(['verbosity']) } }).body.text, {
    verbosity: 'low',
  })
  const { body, encoded } = translate('chat', 'responses', asked, { profile: { accepts: new Set() } })
  deepEqual([body.text, encoded.losses.map(({ field }) => field)], [undefined, ['verbosity']])
})

test('R-SCHEMA T9 a root choice never becomes stricter: each property is as in any branch, and references are branches too', () => {
  const merged = (schema: object) =>
    translate('chat', 'messages', chatAsk({ tools: [chatTool('f', { parameters: schema })] })).body.tools[0]
      .input_schema
  const open = { properties: { kind: { const: 'open' }, path: { type: 'string' } }, required: ['kind', 'path'] }
  const close = { properties: { kind: { const: 'close' }, id: { type: 'number' } }, required: ['kind', 'id'] }
  const properties = {
    kind: { anyOf: [{ const: 'open' }, { const: 'close' }] },
    path: { type: 'string' },
    id: { type: 'number' },
  }
  deepEqual(merged({ oneOf: [open, close] }), { type: 'object', properties, required: ['kind'] })
  const $defs = { Open: open, 'Clo/se': close, Again: { $ref: '#/$defs/Clo~1se' } }
  deepEqual(
    merged({ additionalProperties: false, anyOf: [{ $ref: '#/$defs/Open' }, { $ref: '#/$defs/Again' }], $defs }),
    { $defs, type: 'object', properties, required: ['kind'] },
  )
  deepEqual(merged({ anyOf: [open, { $ref: '#/$defs/none' }, { $ref: 'https://far.example' }] }), {
    type: 'object',
    properties: open.properties,
    required: [],
  })
  // However many branches refer to a definition, it is looked at once.
  const names = Array.from({ length: 8_000 }, (_, at) => `p${at}`)
  const wide = {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name, { type: 'null' }])),
    required: names,
  }
  const many = merged({ anyOf: Array.from({ length: 8_000 }, () => ({ $ref: '#/$defs/wide' })), $defs: { wide } })
  deepEqual([Object.keys(many.properties).length, many.required.length], [8_000, 8_000])
  // However long a reference is, and however many follow it, it is followed once.
  const far = { $ref: `#${'/'.repeat(5_000)}` }
  deepEqual(merged({ anyOf: Array.from({ length: 5_000 }, () => ({ $ref: '#/$defs/far' })), $defs: { far } }), {
    $defs: { far },
    type: 'object',
    properties: {},
    required: [],
  })
  // Branches that refer into one another do not make it many times as long: what is beyond may be anything.
  let inner: object = { description: 'x'.repeat(10_000) }
  for (let i = 0; i < 100; i++) inner = { properties: inner }
  const nested = {
    anyOf: Array.from({ length: 100 }, (_, i) => ({ $ref: `#/$defs/a${'/properties'.repeat(i)}` })),
    $defs: { a: inner },
  }
  ok(JSON.stringify(merged(nested)).length < 4 * JSON.stringify(nested).length)
  const $loop = { a: { $ref: '#/$defs/a' } }
  deepEqual(merged({ anyOf: [{ $ref: '#/$defs/a' }], $defs: $loop }), {
    $defs: $loop,
    type: 'object',
    properties: {},
    required: [],
  })
})

test('R-THINK a model that thinks by default receives the client’s choice either way, and thinking is off if a turn lacks its thought', () => {
  const setting = { profile: 'deepseek' }
  const thinkingOf = (body: object) => {
    const { thinking, reasoning_effort: effort } = translate('messages', 'chat', messagesAsk(body), setting).body
    return [thinking?.type, effort]
  }
  deepEqual(thinkingOf({}), [undefined, undefined])
  deepEqual(thinkingOf({ thinking: { type: 'disabled' } }), ['disabled', undefined])
  deepEqual(thinkingOf({ thinking: { type: 'adaptive' }, output_config: { effort: 'max' } }), ['enabled', 'max'])
  const call = { type: 'tool_use', id: 'a', name: 'f', input: {} }
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [call] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
  ]
  deepEqual(thinkingOf({ messages, thinking: { type: 'adaptive' } }), ['disabled', undefined])
  const { encoded } = translate('messages', 'chat', messagesAsk({ messages, thinking: { type: 'adaptive' } }), setting)
  ok(encoded.losses.some(({ field, what }) => field === 'reasoning' && what === 'dropped'))
})

test('R-PRE a model that cannot continue its own turn is asked to go on; any other continues it', () => {
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: 'The answer is ' },
  ]
  const lastOf = (name: string) => {
    const up = translate('chat', 'messages', chatAsk({ messages }), { profile: name }).body
    return up.messages
      .slice(1)
      .map(({ role, content }: { role: string; content: { text: string }[] }) => [role, content[0]!.text])
  }
  deepEqual(lastOf('anthropic-budget'), [['assistant', 'The answer is']])
  deepEqual(lastOf('anthropic-fixed-sampling'), [
    ['assistant', 'The answer is'],
    ['user', 'Continue.'],
  ])
  // Calls that wait for their results are no turn to go on with (T13).
  const open = [messages[0], { role: 'assistant', tool_calls: [call('c1', 'f', '{}')] }]
  const up = translate('chat', 'messages', chatAsk({ messages: open }), {
    profile: 'anthropic-fixed-sampling',
  }).body
  equal(up.messages.at(-1).role, 'assistant')
})

test('R-JSON T18 if there is only operator text, its last part becomes the user’s turn, and not our line about JSON', () => {
  const messages = [
    { role: 'system', content: 'Be short.' },
    { role: 'system', content: 'Name a colour.' },
  ]
  const up = translate('chat', 'messages', chatAsk({ messages, response_format: { type: 'json_object' } })).body
  deepEqual(
    up.system.map(({ text }: { text: string }) => text),
    ['Be short.', 'Answer with one JSON object and nothing else.'],
  )
  equal(up.messages[0].content[0].text, 'Name a colour.')
  // Turns of nothing are none (T21).
  const empty = [...messages, { role: 'user', content: '' }]
  const again = translate(
    'chat',
    'messages',
    chatAsk({ messages: empty, response_format: { type: 'json_object' } }),
  ).body
  equal(again.messages[0].content[0].text, 'Name a colour.')
})

test('T9 an empty list is not refused, whatever field it is in', () => {
  translate('messages', 'chat', messagesAsk({ mcp_servers: [] }))
  translate('chat', 'messages', chatAsk({ functions: [] }))
  equal(refusalOf('messages', 'chat', messagesAsk({ mcp_servers: [{}] })).param, 'mcp_servers')
})

test('T20 the later definition of a removed tool is used; a second definition without a removal is refused', () => {
  const tool = (properties: object) => ({ name: 'A', input_schema: { type: 'object', properties } })
  const say = (block: object) => ({ role: 'system', content: [block] })
  const gone = say({ type: 'tool_removal', tool: { type: 'tool_reference', name: 'A' } })
  const again = (properties: object) =>
    say({ type: 'tool_addition', tool: { type: 'tool_definition', definition: tool(properties) } })
  const body = (...turns: object[]) =>
    messagesAsk({ tools: [tool({})], messages: [{ role: 'user', content: 'x' }, ...turns] })
  const up = translate('messages', 'chat', body(gone, again({ y: {} }), gone, again({ z: {} }))).body
  deepEqual(
    up.tools.map((one: { function: { parameters: unknown } }) => one.function.parameters),
    [{ type: 'object', properties: { z: {} } }],
  )
  equal(refusalOf('messages', 'chat', body(again({ z: {} }))).param, 'tools')
})

test('T9 a summary of earlier turns is sent to other models; an empty one is a listed loss', () => {
  const ask = (content: unknown) => {
    const messages = [
      { role: 'assistant', content: [{ type: 'compaction', content }] },
      { role: 'user', content: 'What is my name?' },
    ]
    return translate('messages', 'chat', messagesAsk({ messages }))
  }
  equal(ask('The name is Bob.').body.messages[0].content, 'The name is Bob.')
  for (const content of [null, '', [{ type: 'text', text: 'a' }]])
    deepEqual(
      ask(content).encoded.losses.map(({ what }) => what),
      ['dropped'],
    )
})

test('R-THINK the last effort set by a system turn holds', () => {
  const say = (effort: string) => ({ role: 'system', output_config: { effort } })
  const user = { role: 'user', content: 'x' }
  const setting = { profile: 'openai-reasoning' }
  const body = messagesAsk({
    thinking: { type: 'adaptive' },
    output_config: { effort: 'high' },
    messages: [user, say('medium'), { role: 'assistant', content: 'y' }, user, say('low')],
  })
  equal(translate('messages', 'chat', body, setting).body.reasoning_effort, 'low')
  // What we do not know there is none of ours to refuse (T14).
  for (const config of [{ effort: 'auto' }, { effort: 5 }, 'high']) {
    const odd = messagesAsk({ messages: [user, { role: 'system', output_config: config }] })
    const { encoded } = translate('messages', 'chat', odd, setting)
    deepEqual(
      encoded.losses.map(({ field }) => field),
      ['messages.output_config'],
    )
  }
})

test('R-JSON a model that supports only closed schemas gets the rest in descriptions, or the whole schema in words', () => {
  const profile = { shape: 'closed' as const }
  const ask = (schema: object) => {
    const format = { type: 'json_schema', json_schema: { name: 'n', schema } }
    return translate('chat', 'messages', chatAsk({ response_format: format }), { profile })
  }
  const plain = { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false }
  const taken = ask(plain)
  deepEqual(taken.body.output_config.format, { type: 'json_schema', schema: plain })
  deepEqual(taken.encoded.losses, [])
  const bounded = ask({ type: 'object', properties: { n: { type: 'integer', minimum: 1 } } })
  const said = { type: 'object', properties: { n: { type: 'integer', description: '{"minimum":1}' } } }
  deepEqual(bounded.body.output_config.format.schema, { ...said, additionalProperties: false })
  deepEqual(
    bounded.encoded.losses.map(({ field, what }) => [field, what]),
    [['format', 'rewritten']],
  )
  const map = ask({ type: 'object', additionalProperties: { type: 'string' } })
  equal(map.body.output_config, undefined)
  match(JSON.stringify(map.body.system), /fits this JSON Schema, and nothing else/)
})

test('R-JSON a schema without `strict` is sent as strict only if strict output supports all of it', () => {
  const strictOf = (schema: object) => {
    const format = {
      type: 'json_schema',
      schema: { type: 'object', properties: { a: schema }, required: ['a'], additionalProperties: false },
    }
    return translate('messages', 'responses', messagesAsk({ output_config: { format } }), {}).body.text.format.strict
  }
  for (const schema of [
    { type: 'array', items: { type: 'string' } },
    { type: ['string', 'null'], pattern: '^a' },
    { type: 'integer', minimum: 1 },
    { type: 'string', format: 'date' },
    { anyOf: [{ type: 'null' }] },
  ])
    equal(strictOf(schema), true, JSON.stringify(schema))
  for (const schema of [
    { type: 'string', format: 'uri' },
    { type: 'string', minLength: 1 },
    { type: 'string', default: 'x' },
    { allOf: [{ type: 'null' }] },
    { enum: ['a'] },
    {},
    { type: 'array' },
    { type: 'text' },
    { type: null },
    { anyOf: [] },
    { anyOf: [{ type: 'null' }], type: 'object', properties: { b: { type: 'string' } } },
    { anyOf: [{ type: 'null' }], format: 'uri' },
    { $ref: '#/properties' },
    { $ref: '#/$defs/none' },
    { $ref: '#', description: 'the whole' },
    { type: 'string', pattern: '(?=x)' },
    { type: 'object', properties: {}, required: ['b'], additionalProperties: false },
  ])
    equal(strictOf(schema), false, JSON.stringify(schema))
})

test('R-JSON a schema that cannot be enforced on the model is asked for in words', () => {
  const format = { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' } } }
  const up = translate('chat', 'responses', chatAsk({ response_format: format }), { profile: { shape: 'json' } }).body
  deepEqual(up.text.format, { type: 'json_object' })
  match(up.input[0].content[0].text, /fits this JSON Schema, and nothing else:\n\{"type":"object"\}$/)
  const none = translate(
    'messages',
    'chat',
    messagesAsk({ output_config: { format: { type: 'json_schema', schema: { type: 'object' } } } }),
    { profile: { shape: 'none' } },
  ).body
  ok(!('response_format' in none))
  equal(none.messages[0].role, 'system')
})

test('R-DOC documents are sent as files, as documents and inline', () => {
  const document = {
    type: 'document',
    title: 'a.pdf',
    source: { type: 'base64', media_type: 'application/pdf', data: pdf },
  }
  const plain = { type: 'document', title: 'notes', source: { type: 'text', media_type: 'text/plain', data: 'words' } }
  const body = messagesAsk({ messages: [{ role: 'user', content: [document, plain] }] })
  deepEqual(translate('messages', 'chat', body).body.messages[0].content, [
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` } },
    { type: 'text', text: 'notes\nwords' },
  ])
  deepEqual(translate('messages', 'responses', body).body.input[0].content[1], {
    type: 'input_file',
    filename: 'notes',
    file_data: 'data:text/plain;base64,d29yZHM=',
  })
  equal(refusalOf('messages', 'chat', body, { profile: { files: false } }).param, 'messages')
  const file = { type: 'input_file', filename: 'a.txt', file_data: 'data:text/plain;base64,aGk=' }
  const up = translate('responses', 'messages', responsesAsk({ input: [{ role: 'user', content: [file] }] })).body
  deepEqual(up.messages[0].content, [
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'hi' }, title: 'a.txt' },
  ])
})

test('R-DOC any text media type is sent as text, because a messages model accepts only PDFs in base64', () => {
  const sourceOf = (mime: string) => {
    const content = [{ type: 'input_file', filename: 'f', file_data: `data:${mime};base64,e30=` }]
    return translate('responses', 'messages', responsesAsk({ input: [{ role: 'user', content }] })).body.messages[0]
      .content[0].source
  }
  for (const mime of ['application/json', 'application/ld+json', 'application/xml', 'application/x-yaml', 'text/csv'])
    deepEqual(sourceOf(mime), { type: 'text', media_type: 'text/plain', data: '{}' }, mime)
  for (const mime of ['application/pdf', 'application/jsonish'])
    deepEqual(sourceOf(mime), { type: 'base64', media_type: mime, data: 'e30=' }, mime)
})

test('BUG-17 the scheme, the type and the word base64 of a data URL may be in any case, on every wire that takes them', () => {
  const pictures = [`DATA:IMAGE/PNG;BASE64,${png}`, `Data:Image/Png; Base64 ,${png}`]
  const documents = [`DATA:APPLICATION/PDF;BASE64,${pdf}`, `dAtA:aPPLICATION/pDF;bASE64,${pdf}`]
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
  const document = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: pdf } }
  const ofChat = (part: unknown) =>
    translate('chat', 'messages', chatAsk({ messages: [{ role: 'user', content: [part] }] }))
  const ofResponses = (part: unknown) =>
    translate('responses', 'messages', responsesAsk({ input: [{ role: 'user', content: [part] }] }))
  for (const url of pictures)
    for (const { body } of [
      ofChat({ type: 'image_url', image_url: { url } }),
      ofResponses({ type: 'input_image', image_url: url }),
    ])
      deepEqual(body.messages[0].content, [image], url.slice(0, 30))
  for (const file_data of documents)
    for (const { body } of [
      ofChat({ type: 'file', file: { file_data } }),
      ofResponses({ type: 'input_file', file_data }),
    ])
      deepEqual(body.messages[0].content, [document], file_data.slice(0, 30))
  const source = { type: 'base64', media_type: 'IMAGE/PNG', data: png }
  const body = messagesAsk({ messages: [{ role: 'user', content: [{ type: 'image', source }] }] })
  deepEqual(translate('messages', 'chat', body).body.messages[0].content, [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
  ])
})

test('R-DOC the title and context of a document are placed before it, whatever its form', () => {
  const told = { context: 'from the trial of 2019', title: 'a' }
  const sources = [
    { type: 'base64', media_type: 'application/pdf', data: pdf },
    { type: 'text', media_type: 'text/plain', data: 'words' },
    { type: 'content', content: 'words' },
  ]
  for (const source of sources)
    for (const context of [told.context, '', null]) {
      const content = [{ type: 'document', ...told, context, source }]
      const up = translate('messages', 'responses', messagesAsk({ messages: [{ role: 'user', content }] })).body
      const [first, ...rest] = up.input[0].content
      equal(rest.length, context ? 1 : 0)
      if (context) deepEqual(first, { type: 'input_text', text: context })
    }
})

test('R-DOC the images of a document keep their places among its texts', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
  const words = (text: string) => ({ type: 'text', text })
  const documents: [object[], string[]][] = [
    [
      [words('1:'), image, words('2:'), words('b'), image],
      ['a\n1:', 'image', '2:\nb', 'image'],
    ],
    [
      [image, words('1')],
      ['a', 'image', '1'],
    ],
    [[image], ['a', 'image']],
  ]
  for (const [parts, told] of documents) {
    const content = [{ type: 'document', title: 'a', source: { type: 'content', content: parts } }]
    const up = translate('messages', 'chat', messagesAsk({ messages: [{ role: 'user', content }] })).body
    const kinds = up.messages[0].content.map(({ text }: { text?: string }) => text ?? 'image')
    deepEqual(kinds, told)
  }
  const untitled = [{ type: 'document', source: { type: 'content', content: [image] } }]
  const up = translate('messages', 'responses', messagesAsk({ messages: [{ role: 'user', content: untitled }] })).body
  deepEqual(
    up.input[0].content.map(({ type }: { type: string }) => type),
    ['input_image'],
  )
})

test('R-HIST earlier calls are signed for a model that requires it, and for no other', () => {
  const messages = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'x' }] },
  ]
  const callOf = (name: string) => {
    return translate('messages', 'chat', messagesAsk({ messages }), { profile: name }).body.messages[1].tool_calls[0]
  }
  deepEqual(callOf('gemini-3').extra_content, {
    google: { thought_signature: 'skip_thought_signature_validator' },
  })
  ok(!('extra_content' in callOf('gemini')))
})

test('R-EMPTY text without words is sent to messages models only if it is a user’s', () => {
  const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
  const messages = [
    { role: 'system', content: ' ' },
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: '\n\n', tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c', content: 'x' },
    { role: 'user', content: ' ' },
  ]
  const up = translate('chat', 'messages', { model: 'm', messages }).body
  ok(!('system' in up))
  deepEqual(
    up.messages.map(({ content }: { content: { type: string }[] }) => content.map(({ type }) => type)),
    [['text'], ['tool_use'], ['tool_result', 'text']],
  )
})

/** An assistant's items before the user goes on, as a messages model gets them; `thought` is one that it has signed. */
function saidBehind(items: object[], more: object = {}) {
  const input = [{ role: 'user', content: 'q' }, ...items, { role: 'user', content: 'go on' }]
  const unseal = (data: string) => ({ kind: 'signature', data }) as const
  const ask = { model: 'm', input, reasoning: { effort: 'high' }, ...more }
  const { body, encoded } = translate('responses', 'messages', ask, { unseal, profile: { reasoning: budget } })
  const shape = body.messages.map(({ role, content }: { role: string; content: { type: string }[] }) =>
    [role, ...content.map(({ type }) => type)].join(' '),
  )
  return { shape, thinks: body.thinking !== undefined, losses: encoded.losses.map(({ why }) => why) }
}

const thought = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'hmm' }], encrypted_content: 'signed' }
const said = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] })
const called = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
const result = { type: 'function_call_output', call_id: 'c', output: 'r' }

test('R-EMPTY R-HIST a turn sent to messages never ends in thinking, which its models refuse', () => {
  for (const [items, shape] of [
    [[thought], ['user text text']],
    [[thought, said('\n\n')], ['user text text']],
    [
      [said('a'), thought],
      ['user text', 'assistant text', 'user text'],
    ],
    [
      [thought, said('a'), thought],
      ['user text', 'assistant thinking text', 'user text'],
    ],
    // Y2: calls keep their place, so that a turn with calls can end in thinking as well.
    [
      [thought, called, thought, result],
      ['user text', 'assistant thinking tool_use', 'user tool_result text'],
    ],
  ] as const) {
    const told = saidBehind([...items])
    deepEqual(told.shape, shape)
    deepEqual(told.losses, ['reasoning with nothing behind it, which the wire refuses'])
  }
  const kept = saidBehind([thought, said('a')])
  deepEqual(kept, { shape: ['user text', 'assistant thinking text', 'user text'], thinks: true, losses: [] })
})

test('R-HIST a turn whose calls are answered must begin with thinking, whatever is between calls and results', () => {
  for (const [items, thinks] of [
    [[thought, called, result], true],
    [[called, result], false],
    [[called, result, said('')], false],
    [[called, result, thought], false],
    [[said('a'), thought, called, result], false],
    [[called, result, said('a')], true],
  ] as const)
    equal(saidBehind([...items]).thinks, thinks, JSON.stringify(items))
})

/** Returns what an `anthropic-budget` model gets of a responses request that ends with these items. */
function askedOfBudget(items: readonly unknown[], more: object) {
  const unseal = () => ({ wire: 'messages', kind: 'signature', data: 'SIG' }) as const
  const input = [{ role: 'user', content: 'Hi' }, ...items]
  const tools = [{ type: 'function', name: 'f' }]
  const body = responsesAsk({ input, tools, reasoning: { effort: 'high' }, ...more })
  const { body: up, encoded } = translate('responses', 'messages', body, { unseal, profile: 'anthropic-budget' })
  const shape = up.messages.map(({ role, content }: { role: string; content: { type: string }[] }) =>
    [role, ...content.map(({ type }) => type)].join(' '),
  )
  return { shape, thinks: up.thinking?.type === 'enabled', losses: encoded.losses, up }
}

test('R-HIST R-PRE without thinking, the turn that goes on has no thinking of earlier requests', () => {
  const off = { reasoning: { effort: 'none' } }
  const lost = { field: 'input', what: 'dropped', why: 'reasoning of the turn that goes on, without thinking refused' }
  for (const [items, more, shape] of [
    [[thought, said('So')], off, ['assistant text']],
    [[thought, said('So')], { reasoning: undefined }, ['assistant text']],
    [[thought, called, result], off, ['assistant tool_use', 'user tool_result']],
    [[thought, called, result], { tool_choice: 'required' }, ['assistant tool_use', 'user tool_result']],
    [[said('a'), thought, called, result], {}, ['assistant text tool_use', 'user tool_result']],
    [
      [thought, called, result, { ...called, call_id: 'd' }, { ...result, call_id: 'd' }],
      {},
      ['assistant tool_use', 'user tool_result', 'assistant tool_use', 'user tool_result'],
    ],
  ] as const) {
    const told = askedOfBudget(items, more)
    deepEqual([told.shape, told.thinks], [['user text', ...shape], false])
    deepEqual(told.losses.at(-1), lost)
  }
  for (const [items, more] of [
    [[thought, said('So'), { role: 'user', content: 'And?' }], off],
    [[thought, called, result], {}],
  ] as const)
    equal(askedOfBudget(items, more).shape[1].split(' ')[1], 'thinking')
})

test('R-PRE R-JSON a model asked for a schema continues no turn, since the wire refuses both at once', () => {
  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  const text = { format: { type: 'json_schema', name: 'out', schema } }
  const told = askedOfBudget([said('{')], { text })
  deepEqual(told.shape, ['user text', 'assistant text', 'user text'])
  deepEqual([told.up.output_config.format.type, told.thinks], ['json_schema', true])
  deepEqual(
    told.losses.map(({ why }) => why),
    ['a user turn behind the last, which is the assistant'],
  )
})

test('T9 mode and context of reasoning are listed as lost, unless they ask for nothing', () => {
  const lost = (reasoning: object) =>
    translate('responses', 'chat', responsesAsk({ reasoning })).encoded.losses.map(({ field, what }) => [field, what])
  deepEqual(lost({ mode: 'pro', context: 'all_turns' }), [
    ['reasoning.mode', 'dropped'],
    ['reasoning.context', 'dropped'],
  ])
  deepEqual(lost({ mode: 'standard', context: 'auto' }), [])
  deepEqual(lost({ mode: null, context: null }), [])
})

test('T9 examples of a tool and the description of a schema are listed as lost if no wire has a field for them', () => {
  const tools = [{ name: 'f', input_schema: { type: 'object' }, input_examples: [{ a: 1 }] }]
  deepEqual(translate('messages', 'chat', messagesAsk({ tools })).encoded.losses, [
    { field: 'tools.input_examples', what: 'dropped', why: 'no other wire has it' },
  ])
  const json_schema = { name: 'n', description: 'what it is for', schema: { type: 'object' } }
  const ask = chatAsk({ response_format: { type: 'json_schema', json_schema } })
  deepEqual(translate('chat', 'messages', ask).encoded.losses, [
    { field: 'format.description', what: 'dropped', why: 'the wire has no such field' },
  ])
  equal(translate('chat', 'responses', ask).body.text.format.description, json_schema.description)
})

test('T9 R-DROP wished citations and reasoning details of earlier turns are listed as lost', () => {
  const found = { type: 'search_result', title: 't', source: 's', content: [{ type: 'text', text: 'x' }] }
  const lossesOf = (enabled: boolean) => {
    const result = { type: 'tool_result', tool_use_id: 'a', content: [{ ...found, citations: { enabled } }] }
    const messages = [{ role: 'user', content: [result] }]
    return translate('messages', 'chat', messagesAsk({ messages })).encoded.losses
  }
  deepEqual(lossesOf(true), [{ field: 'citations', what: 'dropped', why: 'no other wire has it' }])
  deepEqual(lossesOf(false), [])
  const thought = (more: object) => chatAsk({ messages: [user, { role: 'assistant', content: 'a', ...more }, user] })
  const details = [{ type: 'reasoning.encrypted', data: 'x' }]
  for (const to of ['messages', 'responses'] as const) {
    const listed = (more: object) => translate('chat', to, thought(more)).encoded.losses.map(({ field }) => field)
    deepEqual(listed({ reasoning_details: details }), ['messages'])
    deepEqual(listed({ reasoning: 'r', reasoning_details: details }), ['messages'])
    deepEqual(listed({ reasoning_details: [] }), [])
  }
})

test('R-IMG image/jpg becomes image/jpeg, and percent-encoded data becomes base64', () => {
  const image = (url: string) =>
    chatAsk({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }] })
  const source = (url: string) => translate('chat', 'messages', image(url)).body.messages[0].content[0].source
  deepEqual(source(`data:image/jpg;base64,${png}`), { type: 'base64', media_type: 'image/jpeg', data: png })
  deepEqual(source('data:image/svg+xml,%3Csvg/%3E'), { type: 'base64', media_type: 'image/svg+xml', data: 'PHN2Zy8+' })
})

const formats = {
  'image/png': Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'),
  'image/jpeg': Buffer.from('ffd8ffe000104a464946000101000001', 'hex'),
  'image/gif': Buffer.from('GIF89a\0\0\0\0'),
  'image/webp': Buffer.from('RIFF9\x30\0\0WEBPVP8 '),
}

test('R-IMG Y8 FID-7 an image with a missing or meaningless type gets that of its first bytes, from every wire', () => {
  const ask = {
    chat: (mime: string, data: string) =>
      chatAsk({
        messages: [
          { role: 'user', content: [{ type: 'image_url', image_url: { url: `data:${mime};base64,${data}` } }] },
        ],
      }),
    responses: (mime: string, data: string) =>
      responsesAsk({
        input: [{ role: 'user', content: [{ type: 'input_image', image_url: `data:${mime};base64,${data}` }] }],
      }),
  }
  for (const from of ['chat', 'responses'] as const)
    for (const mime of [
      ...['', 'application/octet-stream', 'APPLICATION/octet-stream', 'text/plain', 'binary/octet-stream'],
      ...['image', 'image/*', '*/*', 'null', 'undefined'],
    ]) {
      for (const [found, bytes] of Object.entries(formats)) {
        const { body } = translate(from, 'messages', ask[from](mime, bytes.toString('base64')))
        equal(body.messages[0].content[0].source.media_type, found)
      }
      for (const bytes of ['<svg/>', 'RIFF9\x30\0\0WAVEfmt ', 'words and more words']) {
        const error = refusalOf(from, 'messages', ask[from](mime, Buffer.from(bytes).toString('base64')))
        match(
          error.message,
          /^(?:messages|input)\[0\]\.content\[0\]\.image_url.*: the type of this image is unknown; name it/,
        )
        equal(error.status, 400)
      }
    }
  const block = (media_type: string) => ({ type: 'image', source: { type: 'base64', media_type, data: png } })
  const { body } = translate(
    'messages',
    'chat',
    messagesAsk({ messages: [{ role: 'user', content: [block('application/octet-stream')] }] }),
  )
  equal(body.messages[0].content[0].image_url.url, `data:image/png;base64,${png}`)
})

test('R-RES toolImages native keeps images in the tool message', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
  const messages = [
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't', content: [image], is_error: true }] },
  ]
  const { body } = translate('messages', 'chat', messagesAsk({ messages }), { profile: { toolImages: 'native' } })
  deepEqual(body.messages[1].content, [
    { type: 'text', text: 'Error: tool call failed' },
    { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
  ])
  equal(body.messages.length, 2)
})

test('R-WHO T9 of two names for the user, the one that is not sent is listed as lost', () => {
  const both = { user: 'u', safety_identifier: 's' }
  const lossesOf = (from: 'chat' | 'responses', to: ClientWire, more: object, profile: ProfileSetting = {}) => {
    const ask = from === 'chat' ? chatAsk({ messages: [user], ...more }) : responsesAsk(more)
    return translate(from, to, ask, { profile }).encoded.losses.map(({ field, what }) => `${field} ${what}`)
  }
  for (const [from, to] of [
    ['chat', 'responses'],
    ['responses', 'chat'],
  ] as const) {
    deepEqual(lossesOf(from, to, both), ['safety_identifier dropped'])
    deepEqual(lossesOf(from, to, both, { accepts: new Set(['safety_identifier']) }), [])
    deepEqual(lossesOf(from, to, { safety_identifier: 's' }), [])
  }
  for (const from of ['chat', 'responses'] as const) {
    deepEqual(lossesOf(from, 'messages', both), ['user dropped'])
    deepEqual(lossesOf(from, 'messages', { user: 'u' }), [])
  }
})

test('R-WHO the user whom a client acts for is sent on every wire', () => {
  const accepts = { profile: { accepts: new Set(['safety_identifier']) } }
  deepEqual(translate('chat', 'messages', chatAsk({ user: 'u' })).body.metadata, { user_id: 'u' })
  deepEqual(translate('responses', 'messages', responsesAsk({ user: 'u', safety_identifier: 's' })).body.metadata, {
    user_id: 's',
  })
  equal(translate('messages', 'responses', messagesAsk({ user: 'u' })).body.user, 'u')
  equal(translate('messages', 'responses', messagesAsk({ user: 'u' }), accepts).body.safety_identifier, 'u')
  const both = translate('responses', 'chat', responsesAsk({ user: 'u', safety_identifier: 's' }), accepts).body
  deepEqual([both.user, both.safety_identifier], ['u', 's'])
})

test('R-ID ids are in the style of the upstream', () => {
  const messages = [user, { role: 'assistant', tool_calls: [call('a.b'), call('c')] }]
  const ids = (toolIdStyle: 'free' | 'len40' | 'alnum9' | 'fn_index') =>
    translate('chat', 'messages', chatAsk({ messages }), { profile: { toolIdStyle } }).body.messages[1].content.map(
      (block: { id: string }) => block.id,
    )
  deepEqual(ids('free'), ['a.b', 'c'])
  match(ids('len40')[0], /^a_b_[0-9a-f]{10}$/)
  for (const id of ids('alnum9')) match(id, /^[0-9A-Za-z]{9}$/)
  deepEqual(ids('fn_index'), ['functions.f:0', 'functions.f:1'])
})

test('R-THINK reasoning is asked for in the styles of messages and chat models', () => {
  const effort = chatAsk({ reasoning_effort: 'none' })
  deepEqual(translate('chat', 'messages', effort, { profile: { reasoning: adaptive } }).body.thinking, {
    type: 'disabled',
  })
  const toggle = { style: 'toggle', levels: [], canDisable: true, field: 'enable_thinking' } as const
  const thinking = messagesAsk({ thinking: { type: 'adaptive' } })
  equal(translate('messages', 'chat', thinking, { profile: { reasoning: toggle } }).body.enable_thinking, true)
  const none = { style: 'none', levels: [], canDisable: false } as const
  const { encoded, body } = translate('messages', 'chat', thinking, { profile: { reasoning: none } })
  ok(!('reasoning_effort' in body))
  deepEqual(encoded.losses, [{ field: 'reasoning', what: 'dropped', why: 'the model takes no such wish' }])
})

test('R-DROP a field that the profile drops is listed by the upstream’s name for it', () => {
  const { body, encoded } = translate('messages', 'chat', messagesAsk({ temperature: 0.2 }), {
    profile: { drops: new Set(['temperature', 'messages']) },
  })
  ok(!('temperature' in body) && 'messages' in body)
  deepEqual(encoded.losses, [{ field: 'temperature', what: 'dropped', why: 'the model does not take it' }])
})

test('R-STOP stop sequences that a profile drops are enforced here', () => {
  const { encoded } = translate('messages', 'chat', messagesAsk({ stop_sequences: ['a'] }), {
    profile: { drops: new Set(['stop']) },
  })
  deepEqual([encoded.localStops, encoded.body.includes('"stop"')], [['a'], false])
})

test('B20, T26: a translated pair accepts 64 stop sequences of 1,000 characters', () => {
  const stops = [...manyStops(63), longStop(1_000)]
  equal(translate('chat', 'messages', chatAsk({ stop: stops })).encoded.stops.length, 64)
  equal(translate('chat', 'messages', chatAsk({ stop: longStop(1_000) })).encoded.stops.length, 1)
  equal(translate('messages', 'chat', messagesAsk({ stop_sequences: stops })).encoded.stops.length, 64)
})

test('T8 developerRole false sends the system role, and stringOnly joins texts', () => {
  const body = responsesAsk({
    input: [
      { role: 'developer', content: 'D' },
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_text', text: 'b' },
        ],
      },
    ],
  })
  deepEqual(
    translate('responses', 'chat', body, { profile: { developerRole: false, stringOnly: true } }).body.messages,
    [
      { role: 'system', content: 'D' },
      { role: 'user', content: 'a\nb' },
    ],
  )
})

test('R-GROUP a namespace called functions does not count, and a bare name in the history means the only tool of that name', () => {
  const member = { type: 'function', name: 's' }
  const body = responsesAsk({
    tools: [
      { type: 'namespace', name: 'functions', tools: [{ type: 'function', name: 'p' }] },
      { type: 'namespace', name: 'a', tools: [member] },
    ],
    input: [{ type: 'function_call', call_id: 'c', name: 's', arguments: '{}' }],
  })
  const { encoded, body: up } = translate('responses', 'chat', body)
  deepEqual([...encoded.names], [['s', { name: 's', namespace: 'a' }]])
  equal(up.messages[0].tool_calls[0].function.name, 's')
})

test('R10 a conversation of 8,000 turns and a list of 2,000 tools are accepted', () => {
  const messages = Array.from({ length: 8_000 }, (_, i) => (i % 2 ? { role: 'assistant', content: 'a' } : user))
  const tools = Array.from({ length: 2_000 }, (_, i) => chatTool(`f${i}`))
  const request = decode('chat', chatAsk({ messages, tools }))
  equal(JSON.parse(encode('messages', request).body.toString()).messages.length, 8_000)
  equal(JSON.parse(encode('responses', request).body.toString()).tools.length, 2_000)
})

test('R-RES a failed result with an image is marked as failed once on responses', () => {
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
  const messages = [
    { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 't', content: [{ type: 'text', text: 'boom' }, image], is_error: true },
      ],
    },
  ]
  const { output } = translate('messages', 'responses', messagesAsk({ messages })).body.input[1]
  deepEqual(output, [
    { type: 'input_text', text: 'Error: boom' },
    { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' },
  ])
})

test('R-PAIR 3 many calls with one id are paired in the order of their turn, in time proportional to their number', () => {
  const count = 5_000
  const calls = Array.from({ length: count }, () => call('x'))
  const results = Array.from({ length: count }, (_, i) => ({ role: 'tool', tool_call_id: 'x', content: String(i) }))
  const up = translate(
    'chat',
    'messages',
    chatAsk({ messages: [user, { role: 'assistant', tool_calls: calls }, ...results] }),
  ).body
  const ids = up.messages[1].content.map((block: { id: string }) => block.id)
  equal(new Set(ids).size, count)
  deepEqual(
    up.messages[2].content.map((block: { tool_use_id: string }) => block.tool_use_id),
    ids,
  )
  equal(up.messages[2].content[count - 1].content, String(count - 1))
})

test('T15 operator text that must move goes to the turn directly before it', () => {
  const messages = [user, { role: 'system', content: 'S' }, { role: 'user', content: 'and' }]
  const { body } = translate('messages', 'chat', messagesAsk({ messages }), {
    profile: { operatorInPlace: 'first_only' },
  })
  deepEqual(body.messages, [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'text', text: '<system-reminder>\nS\n</system-reminder>' },
      ],
    },
    { role: 'user', content: 'and' },
  ])
})

test('R-SYS 4 operator text without an adjacent user turn becomes a user turn of its own', () => {
  const messages = [user, { role: 'assistant', content: 'a' }, { role: 'system', content: 'S' }]
  const { body } = translate('chat', 'messages', chatAsk({ messages }))
  deepEqual(body.messages[2], {
    role: 'user',
    content: [{ type: 'text', text: '<system-reminder>\nS\n</system-reminder>' }],
  })
})
