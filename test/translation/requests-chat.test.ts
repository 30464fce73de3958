import { deepEqual, equal, match, ok } from 'node:assert/strict'
import test from 'node:test'
import { type Case, png, refusalOf, runCase, smallest, translate } from './support/exchange.ts'

const user = { role: 'user', content: 'Hi' }
const call = (id: string, args = '{}', name = 'f') => ({ id, type: 'function', function: { name, arguments: args } })
const calls = (...list: unknown[]) => ({ role: 'assistant', content: null, tool_calls: list })
const answer = (id: string, content: unknown = 'r') => ({ role: 'tool', tool_call_id: id, content })
const tool = (name = 'f', more = {}) => ({
  type: 'function',
  function: { name, parameters: { type: 'object' }, ...more },
})
const ask = (more: object) => ({ ...smallest.chat, ...more })
const turns = (...messages: unknown[]) => ask({ messages })
const text = (words: string) => ({ type: 'text', text: words })
const inputOf =
  (expected: string): Case['expect'] =>
  (up, { text: sent }) => {
    equal(up.messages[1].content[0].type, 'tool_use')
    ok(sent.includes(`"input":${expected}`))
  }
const budget = { reasoning: { style: 'budget', levels: ['low', 'medium', 'high'], canDisable: true } } as const
const https = 'https://images.example/x.png'

const toMessages: Case[] = [
  {
    id: 'Q58',
    title: '[system, developer, user]',
    body: turns({ role: 'system', content: 'S' }, { role: 'developer', content: 'D' }, user),
    expect: (up) => {
      deepEqual(up.system, [text('S'), text('D')])
      deepEqual(up.messages, [{ role: 'user', content: [text('Hi')] }])
    },
  },
  {
    id: 'Q59',
    title: 'system between user and assistant stays in place',
    body: turns(user, { role: 'system', content: 'S' }, { role: 'assistant', content: 'a' }),
    expect: (up) => {
      deepEqual(up.messages[1], { role: 'system', content: [text('S')] })
      ok(!('system' in up))
    },
  },
  {
    id: 'Q60',
    title: 'system between assistant and user is wrapped into the user turn',
    body: turns(
      { role: 'system', content: 'P' },
      user,
      { role: 'assistant', content: 'a' },
      { role: 'system', content: 'S' },
      user,
    ),
    expect: (up) => {
      deepEqual(up.system, [text('P')])
      deepEqual(up.messages[2], {
        role: 'user',
        content: [text('<system-reminder>\nS\n</system-reminder>'), text('Hi')],
      })
    },
  },
  {
    id: 'Q61',
    title: 'system between results',
    body: turns(
      user,
      calls(call('a'), call('b')),
      answer('a', 'one'),
      { role: 'system', content: 'S' },
      answer('b', 'two'),
      user,
    ),
    expect: (up) => {
      equal(up.messages.length, 3)
      deepEqual(up.messages[2].content, [
        { type: 'tool_result', tool_use_id: 'a', content: 'one' },
        { type: 'tool_result', tool_use_id: 'b', content: 'two' },
        text('<system-reminder>\nS\n</system-reminder>'),
        text('Hi'),
      ])
    },
  },
  {
    id: 'Q62',
    title: 'three tool messages and a user message are one turn',
    body: turns(user, calls(call('a'), call('b'), call('c')), answer('a'), answer('b'), answer('c'), user),
    expect: (up) => {
      equal(up.messages.length, 3)
      deepEqual(
        up.messages[2].content.map((block: { type: string }) => block.type),
        ['tool_result', 'tool_result', 'tool_result', 'text'],
      )
    },
  },
  { id: 'Q63', title: 'arguments ""', body: turns(user, calls(call('a', ''))), expect: inputOf('{}') },
  {
    id: 'Q64',
    title: 'malformed arguments',
    body: turns(user, calls(call('a', '{"a":'))),
    expect: inputOf('{"_raw_arguments":"{\\"a\\":"}'),
  },
  {
    id: 'Q65',
    title: 'arguments [1,2]',
    body: turns(user, calls(call('a', '[1,2]'))),
    expect: inputOf('{"_raw_arguments":"[1,2]"}'),
  },
  { id: 'Q66', title: 'no cap sent', body: ask({}), expect: (up) => equal(up.max_tokens, 8192) },
  {
    id: 'Q67',
    title: 'the smaller of both caps is sent',
    body: ask({ max_tokens: 100, max_completion_tokens: 50 }),
    expect: (up) => equal(up.max_tokens, 50),
  },
  { id: 'Q68', title: 'temperature 1.7', body: ask({ temperature: 1.7 }), expect: (up) => equal(up.temperature, 1) },
  {
    id: 'Q69',
    title: 'seed, frequency_penalty, logprobs are dropped and listed',
    body: ask({ seed: 1, frequency_penalty: 1, logprobs: true }),
    expect: (up, { encoded }) => {
      ok(!['seed', 'frequency_penalty', 'logprobs'].some((field) => field in up))
      const dropped = encoded.losses.map((loss) => loss.field)
      ok(['seed', 'frequency_penalty', 'logprobs'].every((field) => dropped.includes(field)))
    },
  },
  { id: 'Q70', title: 'n: 2', body: ask({ n: 2 }), expect: { code: 'invalid_body', param: 'n' } },
  { id: 'Q71', title: 'stop: "x"', body: ask({ stop: 'x' }), expect: (up) => deepEqual(up.stop_sequences, ['x']) },
  {
    id: 'Q71',
    title: 'stop: ["a",""," "]: the blank one is enforced here (T9)',
    body: ask({ stop: ['a', '', ' '] }),
    expect: (up, { encoded }) => {
      deepEqual(up.stop_sequences, ['a'])
      deepEqual([encoded.stops, encoded.localStops], [['a', ' '], [' ']])
    },
  },
  {
    id: 'Q72',
    title: 'parallel_tool_calls:false without a choice',
    body: ask({ tools: [tool()], parallel_tool_calls: false }),
    expect: (up) => deepEqual(up.tool_choice, { type: 'auto', disable_parallel_tool_use: true }),
  },
  {
    id: 'Q73',
    title: 'parallel_tool_calls:false with tool_choice none',
    body: ask({ tools: [tool()], parallel_tool_calls: false, tool_choice: 'none' }),
    expect: (up) => deepEqual(up.tool_choice, { type: 'none' }),
  },
  {
    id: 'Q74',
    title: 'allowed_tools required [f] of [f,g]',
    body: ask({
      tools: [tool('f'), tool('g')],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
      },
    }),
    expect: (up) => {
      deepEqual(
        up.tools.map((declared: { name: string }) => declared.name),
        ['f'],
      )
      deepEqual(up.tool_choice, { type: 'any' })
    },
  },
  {
    id: 'Q75',
    title: 'allowed_tools with unknown names only',
    body: ask({
      tools: [tool('f')],
      tool_choice: {
        type: 'allowed_tools',
        allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'x' } }] },
      },
    }),
    expect: { code: 'invalid_body', param: 'tool_choice' },
  },
  {
    id: 'Q76',
    title: 'a function without parameters',
    body: ask({ tools: [{ type: 'function', function: { name: 'f' } }] }),
    expect: (_, { text: sent }) => ok(sent.includes('"input_schema":{"type":"object","properties":{}}')),
  },
  {
    id: 'Q77',
    title: 'a history with calls declares their tools',
    body: turns(user, calls(call('a'), call('b', '{}', 'g')), answer('a'), answer('b')),
    expect: (up) => {
      deepEqual(up.tools, [
        { name: 'f', input_schema: { type: 'object' } },
        { name: 'g', input_schema: { type: 'object' } },
      ])
      deepEqual(up.tool_choice, { type: 'none' })
    },
  },
  {
    id: 'Q78',
    title: 'call ids the wire refuses are replaced together',
    body: turns(
      user,
      calls(call('call.1|x'), call('call.1_x'), call('y'.repeat(80))),
      answer('y'.repeat(80)),
      answer('call.1|x'),
      answer('call.1_x'),
    ),
    expect: (up) => {
      const ids = up.messages[1].content.map((block: { id: string }) => block.id)
      equal(new Set(ids).size, 3)
      for (const id of ids) match(id, /^[A-Za-z0-9_-]{1,64}$/)
      deepEqual(
        up.messages[2].content.map((block: { tool_use_id: string }) => block.tool_use_id),
        ids,
      )
    },
  },
  {
    id: 'Q79',
    title: 'the same id in two turns is two ids',
    body: turns(user, calls(call('call_0')), answer('call_0', 'one'), calls(call('call_0')), answer('call_0', 'two')),
    expect: (up) => {
      const [first, second] = [up.messages[1].content[0].id, up.messages[3].content[0].id]
      ok(first !== second)
      deepEqual(up.messages[2].content[0], { type: 'tool_result', tool_use_id: first, content: 'one' })
      deepEqual(up.messages[4].content[0], { type: 'tool_result', tool_use_id: second, content: 'two' })
    },
  },
  {
    id: 'Q80',
    title: 'effort high as a budget, at most half the cap, without sampling',
    body: ask({ reasoning_effort: 'high', temperature: 0.5, top_p: 0.5 }),
    setting: { profile: budget },
    expect: (up) => {
      deepEqual(up.thinking, { type: 'enabled', budget_tokens: 4096 })
      ok(!['temperature', 'top_p', 'top_k'].some((field) => field in up))
    },
  },
  {
    id: 'Q81',
    title: 'no budget fits under a cap of 1500',
    body: ask({ reasoning_effort: 'high', max_tokens: 1500, temperature: 0.5 }),
    setting: { profile: budget },
    expect: (up) => {
      ok(!('thinking' in up))
      equal(up.temperature, 0.5)
    },
  },
  {
    id: 'Q82',
    title: 'a forced tool goes before thinking',
    body: ask({ reasoning_effort: 'high', tools: [tool()], tool_choice: 'required' }),
    setting: { profile: budget },
    expect: (up) => {
      ok(!('thinking' in up))
      deepEqual(up.tool_choice, { type: 'any' })
    },
  },
  {
    id: 'Q83',
    title: 'calls answered now have no signed thinking: no budget',
    body: { ...turns(user, calls(call('a')), answer('a')), tools: [tool()], reasoning_effort: 'high' },
    setting: { profile: budget },
    expect: (up) => ok(!('thinking' in up)),
  },
  {
    id: 'Q83',
    title: 'a turn that the model continues has no signed thinking: no budget',
    body: { ...turns(user, { role: 'assistant', content: 'So' }), reasoning_effort: 'high' },
    setting: { profile: budget },
    expect: (up, { encoded }) => {
      ok(!('thinking' in up))
      deepEqual(
        encoded.losses.map(({ field, what }) => [field, what]),
        [['reasoning', 'dropped']],
      )
    },
  },
  {
    id: 'Q84',
    title: 'json_object is asked for in words',
    body: { ...turns({ role: 'system', content: 'S' }, user), response_format: { type: 'json_object' } },
    expect: (up) => {
      ok(!('output_config' in up))
      deepEqual(up.system[1].text, 'Answer with one JSON object and nothing else.')
      equal(up.system.length, 2)
    },
  },
  {
    id: 'Q84',
    title: 'a schema beside json_object counts, as at Fireworks, Together and llama.cpp',
    body: {
      ...turns(user),
      response_format: { type: 'json_object', schema: { type: 'object', properties: { a: { type: 'integer' } } } },
    },
    expect: (up) => {
      const { type, schema } = up.output_config.format
      deepEqual([type, schema.properties], ['json_schema', { a: { type: 'integer' } }])
    },
  },
  ...[{}, 'x', null, []].map(
    (schema): Case => ({
      id: 'Q84',
      title: `the schema ${JSON.stringify(schema)} beside json_object says nothing`,
      body: { ...turns(user), response_format: { type: 'json_object', schema } },
      expect: (up) => ok(!('output_config' in up)),
    }),
  ),
  {
    id: 'Q85',
    title: 'an empty assistant message between two users',
    body: turns(user, { role: 'assistant', content: '' }, { role: 'user', content: 'again' }),
    expect: (up) => deepEqual(up.messages, [{ role: 'user', content: [text('Hi'), text('again')] }]),
  },
  {
    id: 'Q86',
    title: 'a remote image',
    body: turns({ role: 'user', content: [{ type: 'image_url', image_url: { url: https } }] }),
    expect: { code: 'invalid_body', param: 'messages' },
  },
  {
    id: 'Q87',
    title: 'a data URL with parameters and line breaks',
    body: turns({
      role: 'user',
      content: [
        {
          type: 'image_url',
          image_url: { url: `DATA:image/PNG;charset=x;BASE64,${png.slice(0, 4)}\r\n ${png.slice(4)}` },
        },
      ],
    }),
    expect: (up) =>
      deepEqual(up.messages[0].content, [
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } },
      ]),
  },
]

const toResponses: Case[] = [
  {
    id: 'Q88',
    title: 'nested tools become flat with strict:false',
    body: ask({ tools: [tool('f', { description: 'd' })] }),
    expect: (up) =>
      deepEqual(up.tools, [
        { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: false },
      ]),
  },
  {
    id: 'Q89',
    title: 'a named choice is flat',
    body: ask({ tools: [tool()], tool_choice: { type: 'function', function: { name: 'f' } } }),
    expect: (up) => deepEqual(up.tool_choice, { type: 'function', name: 'f' }),
  },
  {
    id: 'Q90',
    title: 'response_format becomes text.format',
    body: ask({
      response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
    }),
    expect: (up) =>
      deepEqual(up.text.format, { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }),
  },
  {
    id: 'Q91',
    title: 'stop is enforced here',
    body: ask({ stop: ['END'] }),
    expect: (up, { encoded }) => {
      ok(!('stop' in up))
      deepEqual(encoded.localStops, ['END'])
    },
  },
  {
    id: 'Q92',
    title: 'the detail of an image',
    body: turns({
      role: 'user',
      content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low' } }],
    }),
    expect: (up) =>
      deepEqual(up.input[0].content, [
        { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'low' },
      ]),
  },
]

for (const one of toMessages) test(`${one.id} C→M ${one.title}`, () => runCase('chat', 'messages', one))
for (const one of toResponses) test(`${one.id} C→R ${one.title}`, () => runCase('chat', 'responses', one))

test('Q83 C→M style adaptive is not affected', () => {
  const body = { ...turns(user, calls(call('a')), answer('a')), tools: [tool()], reasoning_effort: 'high' }
  const reasoning = { style: 'adaptive', levels: ['low', 'high'], canDisable: true } as const
  const { body: up } = translate('chat', 'messages', body, { profile: { reasoning } })
  deepEqual(up.thinking, { type: 'adaptive', display: 'summarized' })
  deepEqual(up.output_config, { effort: 'high' })
})

for (const to of ['messages', 'responses'] as const) {
  test(`R-EMPTY chat→${to} empty texts of a tool result are left out, and the rest stays`, () => {
    const content = [text(''), text('a'), text('')]
    const { body } = translate('chat', to, turns(user, calls(call('c')), answer('c', content)))
    const [told] = to === 'messages' ? body.messages.at(-1).content : [body.input.at(-1)]
    equal(told.content ?? told.output, 'a')
  })

  test(`T9 chat→${to} the name of a message is a listed loss`, () => {
    const { encoded } = translate('chat', to, turns({ ...user, name: 'bob' }))
    const why = 'the wire has no such field'
    deepEqual(encoded.losses, [{ field: 'messages.name', what: 'dropped', why }])
  })

  test(`T9 chat→${to} a call of a custom tool is refused, and its place is named`, () => {
    const custom = { id: 'c', type: 'custom', custom: { name: 'f', input: 'x' } }
    const error = refusalOf('chat', to, turns(user, calls(custom), answer('c')))
    deepEqual([error.status, error.param], [400, 'messages'])
    match(error.message, /^messages\[1\]\.tool_calls\[0\]: this model has no custom tools/)
  })
}
