import { deepEqual, equal, ok } from 'node:assert/strict'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { type Case, png, runCase, smallest, translate } from './support/exchange.ts'

const user = { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }
const said = (words: string) => ({
  type: 'message',
  role: 'assistant',
  content: [{ type: 'output_text', text: words }],
})
const call = (id: string, name = 'f', more = {}) => ({
  type: 'function_call',
  call_id: id,
  name,
  arguments: '{}',
  ...more,
})
const output = (id: string, value: unknown = 'r') => ({ type: 'function_call_output', call_id: id, output: value })
const fn = (name: string, more = {}) => ({ type: 'function', name, parameters: { type: 'object' }, ...more })
const group = (name: string, ...tools: unknown[]) => ({ type: 'namespace', name, description: `About ${name}.`, tools })
const ask = (more: object) => ({ ...smallest.responses, ...more })
const items = (...input: unknown[]) => ask({ input })
const roles = (up: { messages: { role: string }[] }) => up.messages.map((message) => message.role)
const toolNames = (up: { tools: { function: { name: string } }[] }) => up.tools.map((tool) => tool.function.name)

const hostedTypes = [
  'web_search',
  'web_search_2025_08_26',
  'web_search_preview',
  'file_search',
  'computer',
  'computer_use_preview',
  'code_interpreter',
  'mcp',
  'image_generation',
  'local_shell',
  'shell',
  'apply_patch',
  'custom',
  'tool_search',
]

const toChat: Case[] = [
  {
    id: 'Q93',
    title: 'input string + instructions',
    body: ask({ instructions: 'S' }),
    expect: (up) =>
      deepEqual(up.messages, [
        { role: 'system', content: 'S' },
        { role: 'user', content: 'Hi' },
      ]),
  },
  {
    id: 'Q94',
    title: 'a run of assistant items is one message',
    body: items(
      user,
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }] },
      said('look'),
      call('A'),
      call('B'),
      output('A'),
      output('B'),
    ),
    expect: (up) => {
      deepEqual(roles(up), ['user', 'assistant', 'tool', 'tool'])
      equal(up.messages[1].content, 'look')
      equal(up.messages[1].tool_calls.length, 2)
    },
  },
  {
    id: 'Q95',
    title: 'outputs B, A come in the order of the calls',
    body: items(user, call('A'), call('B'), output('B'), output('A')),
    expect: (up) =>
      deepEqual(
        up.messages.slice(2).map((message: { tool_call_id: string }) => message.tool_call_id),
        ['A', 'B'],
      ),
  },
  {
    id: 'Q96',
    title: 'an item without type but with role is a message',
    body: items({ role: 'user', content: 'Hi' }, { role: 'assistant', content: 'Hello' }),
    expect: (up) =>
      deepEqual(up.messages, [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'Hello' },
      ]),
  },
  {
    id: 'Q97',
    title: 'an output of text and image',
    body: items(
      user,
      call('A'),
      output('A', [
        { type: 'input_text', text: 'seen' },
        { type: 'input_image', image_url: `data:image/png;base64,${png}` },
      ]),
    ),
    expect: (up) => {
      equal(up.messages[2].content, 'seen\n[image attached below]')
      deepEqual(up.messages[3], {
        role: 'user',
        content: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }],
      })
    },
  },
  {
    id: 'Q98',
    title: 'members of a namespace by their bare names',
    body: ask({ tools: [group('mcp__docs', fn('search', { description: 'Finds.' }), fn('fetch'))] }),
    expect: (up, { encoded }) => {
      deepEqual(toolNames(up), ['search', 'fetch'])
      equal(up.tools[0].function.description, 'About mcp__docs.\n\nFinds.')
      equal(up.tools[1].function.description, 'About mcp__docs.')
      deepEqual(encoded.names.get('search'), { name: 'search', namespace: 'mcp__docs' })
    },
  },
  {
    id: 'Q99',
    title: 'a name in two namespaces',
    body: ask({ tools: [group('a', fn('search')), group('b', fn('search'))] }),
    expect: (up) => deepEqual(toolNames(up), ['a__search', 'b__search']),
  },
  {
    id: 'Q100',
    title: 'a namespace with a custom tool',
    body: ask({ tools: [group('a', { type: 'custom', name: 'x' })] }),
    expect: { code: 'invalid_body', param: 'tools' },
  },
  ...hostedTypes.map(
    (type): Case => ({
      id: 'Q101',
      title: `hosted tool ${type}`,
      body: ask({ tools: [{ type, name: 'x' }] }),
      expect: { code: 'invalid_body', param: 'tools' },
    }),
  ),
  {
    id: 'Q102',
    title: 'a call in the history with an ambiguous name',
    body: {
      ...items(user, call('A', 'search', { namespace: 'b' }), output('A')),
      tools: [group('a', fn('search')), group('b', fn('search'))],
    },
    expect: (up) => equal(up.messages[1].tool_calls[0].function.name, 'b__search'),
  },
  {
    id: 'Q103',
    title: 'custom_tool_call',
    body: items(user, { type: 'custom_tool_call', call_id: 'A', name: 'x', input: 'y' }),
    expect: { code: 'invalid_body', param: 'input' },
  },
  {
    id: 'Q104',
    title: 'web_search_call is dropped and listed',
    body: items(user, { type: 'web_search_call', id: 'ws_1', status: 'completed' }, said('a')),
    expect: (up, { encoded }) => {
      deepEqual(roles(up), ['user', 'assistant'])
      ok(encoded.losses.some((loss) => loss.field === 'input' && loss.what === 'dropped'))
    },
  },
  {
    id: 'Q105',
    title: 'reasoning with encrypted_content only',
    body: items(
      user,
      { type: 'reasoning', id: 'rs_1', summary: [], content: null, encrypted_content: 'zzz' },
      said('a'),
    ),
    expect: (up, { text }) => {
      deepEqual(up.messages[1], { role: 'assistant', content: 'a' })
      ok(!text.includes('zzz'))
    },
  },
  {
    id: 'Q106',
    title: 'store:true is not sent',
    body: ask({ store: true }),
    expect: (up) => ok(!('store' in up)),
  },
]

const toMessages: Case[] = [
  { id: 'Q107', title: 'no max_output_tokens', body: ask({}), expect: (up) => equal(up.max_tokens, 8192) },
  {
    id: 'Q108',
    title: 'a summary without effort asks for thinking',
    body: ask({ reasoning: { summary: 'auto' } }),
    setting: { profile: { reasoning: { style: 'adaptive', levels: ['low', 'medium', 'high'], canDisable: true } } },
    expect: (up) => {
      deepEqual(up.thinking, { type: 'adaptive', display: 'summarized' })
      equal(up.output_config.effort, 'medium')
    },
  },
  {
    id: 'Q108b',
    title: 'a summary without effort asks a model for thinking that has none by default',
    body: ask({ reasoning: { summary: 'auto' } }),
    setting: {
      profile: {
        reasoning: { style: 'adaptive', levels: ['low', 'medium', 'high'], canDisable: true, default: 'none' },
      },
    },
    expect: (up) => {
      deepEqual(up.thinking, { type: 'adaptive', display: 'summarized' })
      equal(up.output_config.effort, 'medium')
    },
  },
  {
    id: 'Q109',
    title: 'a call before a message stays before it (ruling Y2)',
    body: items(user, call('A'), said('look'), output('A')),
    expect: (up) => {
      deepEqual(
        up.messages[1].content.map((block: { type: string }) => block.type),
        ['tool_use', 'text'],
      )
      deepEqual(up.messages[2], { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'A', content: 'r' }] })
    },
  },
  {
    id: 'Q110',
    title: 'tool_choice with a hosted object',
    body: ask({ tools: [fn('f')], tool_choice: { type: 'web_search_preview' } }),
    expect: { code: 'invalid_body', param: 'tool_choice' },
  },
]

for (const one of toChat) test(`${one.id} R→C ${one.title}`, () => runCase('responses', 'chat', one))
for (const one of toMessages) test(`${one.id} R→M ${one.title}`, () => runCase('responses', 'messages', one))

const wires: ClientWire[] = ['messages', 'chat', 'responses']
for (const from of wires) {
  for (const to of wires.filter((wire) => wire !== from)) {
    test(`Q111 X ${from}→${to} the same request twice leads to the same bytes`, () => {
      const body = { ...smallest[from], stream: true, user: 'u', temperature: 0.3 }
      equal(translate(from, to, body).text, translate(from, to, body).text)
    })

    if (to === 'messages') continue
    test(`Q112 X ${from}→${to} the same key of two accounts becomes two upstream values`, () => {
      const profile = { accepts: new Set(['prompt_cache_key']) }
      // Scoping is done before (R-CACHE): what arrives here differs by account and is stable.
      const values = ['of-a', 'of-b', 'of-a'].map(
        (cacheKey) => translate(from, to, smallest[from], { profile, cacheKey }).body.prompt_cache_key,
      )
      deepEqual(values, ['of-a', 'of-b', 'of-a'])
      ok(!('prompt_cache_key' in translate(from, to, smallest[from], { cacheKey: 'of-a' }).body))
    })
  }
}
