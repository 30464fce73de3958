import { deepEqual, equal, match, ok } from 'node:assert/strict'
import test from 'node:test'
import { type Case, pdf, png, runCase, smallest, translate } from './support/exchange.ts'

const user = { role: 'user', content: 'Hi' }
const reply = { role: 'assistant', content: 'Hello' }
const tool = { name: 'f', description: 'd', input_schema: { type: 'object', properties: { a: { type: 'string' } } } }
const use = (id: string, name = 'f', input: unknown = {}) => ({ type: 'tool_use', id, name, input })
const result = (id: string, content: unknown = 'r', more = {}) => ({
  type: 'tool_result',
  tool_use_id: id,
  content,
  ...more,
})
const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
const text = (words: string) => ({ type: 'text', text: words })
const ask = (more: object) => ({ ...smallest.messages, ...more })
const turns = (...messages: unknown[]) => ask({ messages })
const roles = (body: { messages: { role: string }[] }) => body.messages.map((message) => message.role)
/** A question, a call of f with id t1 (or the given blocks), and an answer to it. */
const called = (blocks: unknown[], answer: unknown) =>
  turns(user, { role: 'assistant', content: blocks }, { role: 'user', content: answer })
const longName = (tail: string) => 'n'.repeat(90) + tail.padStart(10, '0')
const thought = { type: 'thinking', thinking: 'deep', signature: 'sig' }

/** A format that is a closed object with a list, which it requires. */
const askForList = (items: unknown) => {
  const properties = { a: { type: 'array', items } }
  const schema = { type: 'object', properties, required: ['a'], additionalProperties: false }
  return ask({ output_config: { format: { type: 'json_schema', schema } } })
}

const toChat: Case[] = [
  {
    id: 'Q01',
    title: 'system string + one user string',
    body: ask({ system: 'S' }),
    expect: (up) =>
      deepEqual(up.messages, [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'Hi' },
      ]),
  },
  {
    id: 'Q02',
    title: 'system of two text blocks with cache_control is one message without marks',
    body: ask({ system: [{ ...text('A'), cache_control: { type: 'ephemeral' } }, text('B')] }),
    expect: (up, { text }) => {
      deepEqual(up.messages[0], { role: 'system', content: 'A\n\nB' })
      ok(!text.includes('cache_control'))
    },
  },
  {
    id: 'Q03',
    title: 'system: "" becomes no message',
    body: ask({ system: '' }),
    expect: (up) => deepEqual(roles(up), ['user']),
  },
  {
    id: 'Q03',
    title: 'system: [] becomes no message',
    body: ask({ system: [] }),
    expect: (up) => deepEqual(roles(up), ['user']),
  },
  {
    id: 'Q04',
    title: 'a bookkeeping block at the start of system is dropped',
    body: ask({ system: [text('x-anthropic-billing-header: cc_version=1.abc; cch=1;'), text('Real')] }),
    expect: (up, { text: sent }) => {
      deepEqual(up.messages[0], { role: 'system', content: 'Real' })
      const other = ask({ system: [text('x-anthropic-billing-header: cc_version=1.def; cch=2;'), text('Real')] })
      equal(translate('messages', 'chat', other).text, sent)
    },
  },
  {
    id: 'Q04',
    title: 'a bookkeeping line before other text is cut',
    body: ask({ system: 'x-some-billing-header: a; cch=1;\nReal' }),
    expect: (up) => deepEqual(up.messages[0], { role: 'system', content: 'Real' }),
  },
  {
    id: 'Q05',
    title: 'a system turn between assistant and user stays in place',
    body: turns(user, reply, { role: 'system', content: 'Mid' }, user),
    expect: (up) => deepEqual(roles(up), ['user', 'assistant', 'system', 'user']),
  },
  {
    id: 'Q06',
    title: 'the same with operatorInPlace first_only is wrapped into the following user message',
    body: { ...turns(user, reply, { role: 'system', content: 'Mid' }, user), system: 'S' },
    setting: { profile: { operatorInPlace: 'first_only' } },
    expect: (up) => {
      deepEqual(roles(up), ['system', 'user', 'assistant', 'user'])
      equal(up.messages[0].content, 'S')
      deepEqual(up.messages[3].content, [text('<system-reminder>\nMid\n</system-reminder>'), text('Hi')])
    },
  },
  {
    id: 'Q07',
    title: 'max_tokens 999999 is lowered',
    body: ask({ max_tokens: 999_999 }),
    expect: (up) => equal(up.max_completion_tokens, 8192),
  },
  {
    id: 'Q08',
    title: 'maxField max_tokens',
    body: ask({}),
    setting: { profile: { maxField: 'max_tokens' } },
    expect: (up) => {
      equal(up.max_tokens, 100)
      ok(!('max_completion_tokens' in up))
    },
  },
  {
    id: 'Q09',
    title: 'stream:true asks for usage',
    body: ask({ stream: true }),
    expect: (up) => {
      equal(up.stream, true)
      deepEqual(up.stream_options, { include_usage: true })
    },
  },
  {
    id: 'Q10',
    title: 'stream:true if stream_options is dropped',
    body: ask({ stream: true }),
    setting: { profile: { drops: new Set(['stream_options']) } },
    expect: (up, { encoded }) => {
      equal(up.stream, true)
      ok(!('stream_options' in up))
      // The client did not send the field, so nothing of the client is lost.
      deepEqual(encoded.losses, [])
    },
  },
  {
    id: 'Q11',
    title: 'text, image, text stay in order',
    body: turns({ role: 'user', content: [text('a'), image, text('b')] }),
    expect: (up) =>
      deepEqual(up.messages[0].content, [
        text('a'),
        { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } },
        text('b'),
      ]),
  },
  {
    id: 'Q12',
    title: 'an image for a model without images',
    body: turns({ role: 'user', content: [image] }),
    setting: { profile: { images: false } },
    expect: { code: 'invalid_body', param: 'messages' },
  },
  {
    id: 'Q13',
    title: 'a result and text after a call',
    body: called([use('t1')], [result('t1'), text('next')]),
    expect: (up) => {
      deepEqual(roles(up), ['user', 'assistant', 'tool', 'user'])
      deepEqual(up.messages[2], { role: 'tool', tool_call_id: 't1', content: 'r' })
      equal(up.messages[3].content, 'next')
    },
  },
  {
    id: 'Q14',
    title: 'text before the result gives the same order',
    body: called([use('t1')], [text('next'), result('t1')]),
    expect: (up, { text: sent }) => {
      deepEqual(roles(up), ['user', 'assistant', 'tool', 'user'])
      equal(sent, translate('messages', 'chat', called([use('t1')], [result('t1'), text('next')])).text)
    },
  },
  {
    id: 'Q15',
    title: 'results in another order than their calls, with text between',
    body: called([use('t1'), use('t2')], [result('t2', 'two'), text('x'), result('t1', 'one')]),
    expect: (up) => {
      deepEqual(roles(up), ['user', 'assistant', 'tool', 'tool', 'user'])
      deepEqual([up.messages[2].content, up.messages[3].content, up.messages[4].content], ['one', 'two', 'x'])
    },
  },
  {
    id: 'Q16',
    title: 'results spread over two user turns are joined',
    body: turns(
      user,
      { role: 'assistant', content: [use('t1'), use('t2')] },
      { role: 'user', content: [result('t1', 'one'), text('x')] },
      { role: 'user', content: [result('t2', 'two'), text('y')] },
    ),
    expect: (up) => {
      deepEqual(roles(up), ['user', 'assistant', 'tool', 'tool', 'user', 'user'])
      deepEqual(
        up.messages.slice(2).map((message: { content: unknown }) => message.content),
        ['one', 'two', 'x', 'y'],
      )
    },
  },
  {
    id: 'Q17',
    title: 'images of results follow in one user message',
    body: called([use('t1'), use('t2')], [result('t1', [image, text('seen')]), result('t2')]),
    expect: (up) => {
      deepEqual(roles(up), ['user', 'assistant', 'tool', 'tool', 'user'])
      equal(up.messages[2].content, '[image attached below]\nseen')
      deepEqual(up.messages[4].content, [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }])
    },
  },
  {
    id: 'Q18',
    title: 'a failed result is marked in words',
    body: called([use('t1')], [result('t1', 'no such file', { is_error: true })]),
    expect: (up) => equal(up.messages[2].content, 'Error: no such file'),
  },
  {
    id: 'Q19',
    title: 'a failed result that says so already is unchanged',
    body: called([use('t1')], [result('t1', 'ERROR 5', { is_error: true })]),
    expect: (up) => equal(up.messages[2].content, 'ERROR 5'),
  },
  {
    id: 'Q20',
    title: 'a result without content',
    body: called([use('t1')], [{ type: 'tool_result', tool_use_id: 't1' }]),
    expect: (up) => equal(up.messages[2].content, ''),
  },
  {
    id: 'Q21',
    title: 'text and two calls are one assistant message',
    body: called([text('look'), use('t1'), use('t2', 'g')], [result('t1'), result('t2')]),
    expect: (up) => {
      equal(up.messages[1].content, 'look')
      deepEqual(
        up.messages[1].tool_calls.map((call: { id: string; type: string; function: { name: string } }) => [
          call.id,
          call.type,
          call.function.name,
        ]),
        [
          ['t1', 'function', 'f'],
          ['t2', 'function', 'g'],
        ],
      )
    },
  },
  {
    id: 'Q22',
    title: 'a call without text has content null',
    body: called([use('t1')], [result('t1')]),
    expect: (up) => equal(up.messages[1].content, null),
  },
  {
    id: 'Q22',
    title: 'a call without text has content "" if the upstream requires it',
    body: called([use('t1')], [result('t1')]),
    setting: { profile: { nullContent: 'empty' } },
    expect: (up) => equal(up.messages[1].content, ''),
  },
  {
    id: 'Q23',
    title: 'numbers of an input keep their spelling',
    body: JSON.stringify(called([use('t1', 'f', 'INPUT')], [result('t1')])).replace(
      '"INPUT"',
      '{"n":12345678901234567890,"f":1.0,"e":1e400}',
    ),
    expect: (up) =>
      equal(up.messages[1].tool_calls[0].function.arguments, '{"n":12345678901234567890,"f":1.0,"e":1e400}'),
  },
  {
    id: 'Q24',
    title: 'input {}',
    body: called([use('t1')], [result('t1')]),
    expect: (up) => equal(up.messages[1].tool_calls[0].function.arguments, '{}'),
  },
  {
    id: 'Q25',
    title: 'thinking is not replayed by default',
    body: turns(user, { role: 'assistant', content: [thought, text('a')] }, user),
    expect: (up, { text: sent }) => {
      deepEqual(up.messages[1], { role: 'assistant', content: 'a' })
      ok(!sent.includes('deep'))
    },
  },
  {
    id: 'Q26',
    title: 'replay all sends the text without its signature',
    body: turns(user, { role: 'assistant', content: [thought, text('a')] }, user),
    setting: { profile: { replayThought: { when: 'all', required: false } } },
    expect: (up, { text: sent }) => {
      deepEqual(up.messages[1], { role: 'assistant', content: 'a', reasoning_content: 'deep' })
      ok(!sent.includes('sig'))
    },
  },
  {
    id: 'Q27',
    title: 'replay tool_turns sends it with calls only',
    body: turns(
      user,
      { role: 'assistant', content: [thought, text('a')] },
      user,
      { role: 'assistant', content: [thought, use('t1')] },
      { role: 'user', content: [result('t1')] },
    ),
    setting: { profile: { replayThought: { when: 'tool_turns', required: false } } },
    expect: (up) => {
      ok(!('reasoning_content' in up.messages[1]))
      equal(up.messages[3].reasoning_content, 'deep')
    },
  },
  {
    id: 'Q28',
    title: 'redacted_thinking in the history is dropped',
    body: turns(user, { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'zzz' }, text('a')] }, user),
    expect: (up, { text: sent }) => {
      equal(up.messages[1].content, 'a')
      ok(!sent.includes('zzz'))
    },
  },
  {
    id: 'Q29',
    title: 'required replay without a thought disables reasoning',
    body: { ...called([use('t1')], [result('t1')]), thinking: { type: 'enabled', budget_tokens: 8000 } },
    setting: { profile: { replayThought: { when: 'tool_turns', required: true } } },
    expect: (up) => equal(up.reasoning_effort, 'none'),
  },
  {
    id: 'Q29',
    title: 'if reasoning cannot be disabled, a space replaces the missing thought',
    body: called([use('t1')], [result('t1')]),
    setting: {
      profile: {
        replayThought: { when: 'tool_turns', required: true },
        reasoning: { style: 'effort', levels: ['low'], canDisable: false },
      },
    },
    expect: (up) => equal(up.messages[1].reasoning_content, ' '),
  },
  ...(
    [
      ['all', true, 'none'],
      ['all', false, undefined],
      ['tool_turns', true, undefined],
    ] as const
  ).map(
    ([when, hasTools, effort]): Case => ({
      id: 'Q29',
      title: `required replay of ${when}, ${hasTools ? 'with' : 'without'} tools, after a text turn without a thought`,
      body: { ...turns(user, { role: 'assistant', content: [text('a')] }, user), ...(hasTools && { tools: [tool] }) },
      setting: { profile: { replayThought: { when, required: true } } },
      expect: (up) => equal(up.reasoning_effort, effort),
    }),
  ),
  {
    id: 'Q29',
    title: 'if reasoning cannot be disabled, a space replaces the missing thought of a text turn too',
    body: { ...turns(user, { role: 'assistant', content: [text('a')] }, user), tools: [tool] },
    setting: {
      profile: {
        replayThought: { when: 'all', required: true },
        reasoning: { style: 'effort', levels: ['low'], canDisable: false },
      },
    },
    expect: (up) => deepEqual(up.messages[1], { role: 'assistant', content: 'a', reasoning_content: ' ' }),
  },
  ...(
    [
      [1024, 'low'],
      [8000, 'medium'],
      [16_000, 'high'],
      [31_999, 'high'],
    ] as const
  ).map(
    ([budget, level]): Case => ({
      id: 'Q30',
      title: `thinking enabled ${budget} is ${level}`,
      body: ask({ thinking: { type: 'enabled', budget_tokens: budget } }),
      expect: (up) => equal(up.reasoning_effort, level),
    }),
  ),
  {
    id: 'Q31',
    title: 'effort takes precedence over a budget',
    body: ask({ thinking: { type: 'enabled', budget_tokens: 8000 }, output_config: { effort: 'low' } }),
    expect: (up) => equal(up.reasoning_effort, 'low'),
  },
  {
    id: 'Q32',
    title: 'thinking disabled is effort none',
    body: ask({ thinking: { type: 'disabled' }, output_config: { effort: 'high' } }),
    expect: (up) => equal(up.reasoning_effort, 'none'),
  },
  {
    id: 'Q32',
    title: 'thinking disabled is the lowest level if it cannot be disabled',
    body: ask({ thinking: { type: 'disabled' } }),
    setting: { profile: { reasoning: { style: 'effort', levels: ['high', 'medium'], canDisable: false } } },
    expect: (up) => equal(up.reasoning_effort, 'medium'),
  },
  {
    id: 'Q33',
    title: 'no thinking sends no reasoning field',
    body: ask({}),
    expect: (up) => ok(!('reasoning_effort' in up)),
  },
  {
    id: 'Q34',
    title: 'thinking adaptive without effort is high',
    body: ask({ thinking: { type: 'adaptive' } }),
    expect: (up) => equal(up.reasoning_effort, 'high'),
  },
  ...(
    [
      [{ type: 'auto' }, 'auto'],
      [{ type: 'any' }, 'required'],
      [{ type: 'none' }, 'none'],
      [
        { type: 'tool', name: 'f' },
        { type: 'function', function: { name: 'f' } },
      ],
    ] as const
  ).map(
    ([choice, wanted]): Case => ({
      id: 'Q35',
      title: `tool_choice ${choice.type}`,
      body: ask({ tools: [tool], tool_choice: choice }),
      expect: (up) => deepEqual(up.tool_choice, wanted),
    }),
  ),
  {
    id: 'Q36',
    title: 'disable_parallel_tool_use',
    body: ask({ tools: [tool], tool_choice: { type: 'auto', disable_parallel_tool_use: true } }),
    expect: (up) => {
      equal(up.tool_choice, 'auto')
      equal(up.parallel_tool_calls, false)
    },
  },
  {
    id: 'Q37',
    title: 'a choice without tools is not sent',
    body: ask({ tool_choice: { type: 'any', disable_parallel_tool_use: true } }),
    expect: (up) => ok(!['tools', 'tool_choice', 'parallel_tool_calls'].some((field) => field in up)),
  },
  {
    id: 'Q38',
    title: 'a hosted tool is refused',
    body: ask({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }),
    expect: { code: 'invalid_body', param: 'tools' },
  },
  {
    id: 'Q39',
    title: 'a client tool called web_search is a function',
    body: ask({ tools: [{ name: 'web_search', input_schema: { type: 'object' } }] }),
    expect: (up) => equal(up.tools[0].function.name, 'web_search'),
  },
  {
    id: 'Q40',
    title: 'a name of 100 characters has one alias everywhere',
    body: {
      ...called([use('t1', longName('1'))], [result('t1')]),
      tools: [{ ...tool, name: longName('1') }],
      tool_choice: { type: 'tool', name: longName('1') },
    },
    expect: (up, { encoded }) => {
      const alias = up.tools[0].function.name
      match(alias, /^n{53}_[0-9a-f]{10}$/)
      equal(up.tool_choice.function.name, alias)
      equal(up.messages[1].tool_calls[0].function.name, alias)
      deepEqual(encoded.names.get(alias), { name: longName('1') })
    },
  },
  {
    id: 'Q41',
    title: 'two long names that begin alike have two aliases',
    body: ask({
      tools: [
        { ...tool, name: longName('1') },
        { ...tool, name: longName('2') },
      ],
    }),
    expect: (up) => ok(up.tools[0].function.name !== up.tools[1].function.name),
  },
  {
    id: 'Q42',
    title: 'only the schema is sent as the schema',
    body: JSON.stringify(
      ask({
        tools: [
          {
            type: 'custom',
            ...tool,
            input_schema: 'SCHEMA',
            cache_control: { type: 'ephemeral' },
            input_examples: [{}],
          },
        ],
      }),
    ).replace('"SCHEMA"', '{ "type" : "object", "maximum": 9007199254740993 }'),
    expect: (up, { text: sent }) => {
      deepEqual(Object.keys(up.tools[0].function), ['name', 'description', 'parameters'])
      ok(sent.includes('"parameters":{ "type" : "object", "maximum": 9007199254740993 }'))
    },
  },
  {
    id: 'Q43',
    title: 'six stop sequences: four are sent, two are enforced here',
    body: ask({ stop_sequences: ['1', '2', '3', '4', '5', '6'] }),
    expect: (up, { encoded }) => {
      deepEqual(up.stop, ['1', '2', '3', '4'])
      deepEqual(encoded.localStops, ['5', '6'])
      deepEqual(encoded.stops, ['1', '2', '3', '4', '5', '6'])
    },
  },
  {
    id: 'Q44',
    title: 'a format with an optional property is not called strict',
    body: JSON.stringify(ask({ output_config: { format: { type: 'json_schema', schema: 'SCHEMA' } } })).replace(
      '"SCHEMA"',
      '{"type":"object", "properties":{"a":{"type":"string"}}}',
    ),
    expect: (up, { text: sent }) => {
      equal(up.response_format.json_schema.name, 'output')
      ok(!('strict' in up.response_format.json_schema))
      ok(sent.includes('"schema":{"type":"object", "properties":{"a":{"type":"string"}}}'))
    },
  },
  {
    id: 'Q44',
    title: 'a format with an open object among the items of a list is not called strict',
    body: askForList([{ type: 'object', properties: { b: {} } }]),
    expect: (up) => ok(!('strict' in up.response_format.json_schema)),
  },
  {
    id: 'Q45',
    title: 'a fully strict schema is called strict',
    body: askForList({ type: 'object', properties: {}, additionalProperties: false }),
    expect: (up) => equal(up.response_format.json_schema.strict, true),
  },
  { id: 'Q46', title: 'top_k not accepted', body: ask({ top_k: 5 }), expect: (up) => ok(!('top_k' in up)) },
  {
    id: 'Q46',
    title: 'top_k accepted',
    body: ask({ top_k: 5 }),
    setting: { profile: { accepts: new Set(['top_k']) } },
    expect: (up) => equal(up.top_k, 5),
  },
  {
    id: 'Q47',
    title: 'a long metadata.user_id is hashed',
    body: ask({ metadata: { user_id: 'u'.repeat(120) } }),
    expect: (up) => equal(up.user, '4f664b6376bf677ee8d6291046314fd4c33488e4235c8bef974eddbcffd73d10'),
  },
  {
    id: 'Q48',
    title: 'a trailing assistant text is an ordinary message',
    body: turns(user, { role: 'assistant', content: 'The answer is' }),
    expect: (up) => deepEqual(up.messages[1], { role: 'assistant', content: 'The answer is' }),
  },
]

const toResponses: Case[] = [
  {
    id: 'Q49',
    title: 'system, a later system turn and user',
    body: { ...turns(user, reply, { role: 'system', content: 'Mid' }, user), system: 'S' },
    expect: (up) => {
      equal(up.instructions, 'S')
      deepEqual(
        up.input.map((item: { role: string }) => item.role),
        ['user', 'assistant', 'developer', 'user'],
      )
      deepEqual(up.input[2], { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Mid' }] })
    },
  },
  {
    id: 'Q50',
    title: 'text, call, text are three items in order, none with an id',
    body: called([text('a'), use('t1'), text('b')], [result('t1')]),
    expect: (up) =>
      deepEqual(up.input.slice(1, 4), [
        { type: 'message', role: 'assistant', content: 'a' },
        { type: 'function_call', call_id: 't1', name: 'f', arguments: '{}' },
        { type: 'message', role: 'assistant', content: 'b' },
      ]),
  },
  {
    id: 'Q51',
    title: 'strict is always sent',
    body: ask({ tools: [tool, { ...tool, name: 'g', strict: true }] }),
    expect: (up) =>
      deepEqual(
        up.tools.map((declared: { strict: boolean }) => declared.strict),
        [false, true],
      ),
  },
  { id: 'Q52', title: 'max_tokens: 1', body: ask({ max_tokens: 1 }), expect: (up) => equal(up.max_output_tokens, 16) },
  {
    id: 'Q53',
    title: 'thinking enabled asks for a summary',
    body: ask({ thinking: { type: 'enabled', budget_tokens: 8000 } }),
    expect: (up) => deepEqual(up.reasoning, { effort: 'medium', summary: 'auto' }),
  },
  {
    id: 'Q53',
    title: 'an effort without thinking asks for none',
    body: ask({ output_config: { effort: 'low' } }),
    expect: (up) => deepEqual(up.reasoning, { effort: 'low' }),
  },
  {
    id: 'Q54',
    title: 'signed thinking is dropped',
    body: turns(user, { role: 'assistant', content: [thought, text('a')] }, user),
    expect: (up, { text: sent }) => {
      equal(up.input.length, 3)
      ok(!sent.includes('deep') && !sent.includes('sig'))
    },
  },
  {
    id: 'Q55',
    title: 'a result with an image',
    body: called([use('t1')], [result('t1', [text('x'), image])]),
    expect: (up) =>
      deepEqual(up.input[2], {
        type: 'function_call_output',
        call_id: 't1',
        output: [
          { type: 'input_text', text: 'x' },
          { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'auto' },
        ],
      }),
  },
  { id: 'Q56', title: 'store:false always', body: ask({}), expect: (up) => equal(up.store, false) },
  {
    id: 'Q57',
    title: 'a titled PDF',
    body: turns({
      role: 'user',
      content: [
        { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: pdf } },
      ],
    }),
    expect: (up) =>
      deepEqual(up.input[0].content, [
        { type: 'input_file', filename: 'a.pdf', file_data: `data:application/pdf;base64,${pdf}` },
      ]),
  },
]

for (const one of toChat) test(`${one.id} M→C ${one.title}`, () => runCase('messages', 'chat', one))
for (const one of toResponses) test(`${one.id} M→R ${one.title}`, () => runCase('messages', 'responses', one))
