import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import test from 'node:test'
import fc from 'fast-check'
import { type AnswerParts, addEvent, noParts, partsOf } from '../../console/src/pure/answer.ts'
import { curlOf } from '../../console/src/pure/curl.ts'
import { clientWireNames } from '../../console/src/pure/wires.ts'
import { runsUpTo } from '../support/runs.ts'

type Wire = (typeof clientWireNames)[number]

const stream = (wire: Wire, events: readonly object[]) =>
  events.reduce<AnswerParts>((parts, event) => addEvent(wire, parts, event), noParts)
const calls = ({ calls }: AnswerParts) => calls.map(({ name, id, input }) => [name, id, input].join('|'))

const start = (index: number, content_block: object) => ({ type: 'content_block_start', index, content_block })
const delta = (index: number, more: object) => ({ type: 'content_block_delta', index, delta: more })
const chunk = (tool_calls: object[], index = 0) => ({ choices: [{ index, delta: { tool_calls } }] })
const item = (type: string, output_index: number, held: object) => ({
  ...{ type: `response.output_item.${type}`, output_index },
  item: held,
})

/** Tool calls in each form of each wire: events of a stream, or a body, and what is shown. */
const forms: readonly [what: string, wire: Wire, answer: readonly object[] | object, shown: readonly string[]][] = [
  [
    'two calls whose inputs are streamed in turns',
    'messages',
    [
      start(1, { type: 'tool_use', id: 'toolu_1', name: 'weather', input: {} }),
      start(2, { type: 'tool_use', id: 'toolu_2', name: 'time', input: {} }),
      delta(1, { type: 'input_json_delta', partial_json: '{"place":' }),
      delta(2, { type: 'input_json_delta', partial_json: '{}' }),
      delta(1, { type: 'input_json_delta', partial_json: '"Oslo"}' }),
    ],
    ['weather|toolu_1|{"place":"Oslo"}', 'time|toolu_2|{}'],
  ],
  [
    'a call that begins with its input',
    'messages',
    [start(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'x' } })],
    ['web_search|s|{"query":"x"}'],
  ],
  [
    'a body',
    'messages',
    {
      content: [
        { type: 'text', text: 'so' },
        { type: 'mcp_tool_use', id: 'm', name: 'read', input: { a: 1 } },
      ],
    },
    ['read|m|{"a":1}'],
  ],
  [
    'arguments in pieces, two calls',
    'chat',
    [
      chunk([{ index: 0, id: 'call_1', type: 'function', function: { name: 'weather', arguments: '' } }]),
      chunk([{ index: 0, function: { arguments: '{"place":' } }]),
      chunk([{ index: 1, id: 'call_2', type: 'custom', custom: { name: 'sql', input: 'select' } }]),
      chunk([{ index: 0, function: { arguments: '"Oslo"}' } }]),
      chunk([{ index: 1, custom: { input: ' 1' } }]),
    ],
    ['weather|call_1|{"place":"Oslo"}', 'sql|call_2|select 1'],
  ],
  [
    'calls of two choices',
    'chat',
    [
      chunk([{ index: 0, id: 'a', function: { name: 'f', arguments: '1' } }]),
      chunk([{ index: 0, id: 'b', function: { name: 'f', arguments: '2' } }], 1),
    ],
    ['f|a|1', 'f|b|2'],
  ],
  [
    'the older form',
    'chat',
    [
      { choices: [{ delta: { function_call: { name: 'f', arguments: '{' } } }] },
      { choices: [{ delta: { function_call: { arguments: '}' } } }] },
    ],
    ['f||{}'],
  ],
  [
    'a body',
    'chat',
    { choices: [{ message: { content: null, tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] } }] },
    ['f|a|{}'],
  ],
  [
    'arguments in pieces, then the whole call',
    'responses',
    [
      item('added', 1, { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '' }),
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"a"' },
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: ':1}' },
      item('done', 1, { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'weather', arguments: '{"a":1}' }),
    ],
    ['weather|call_1|{"a":1}'],
  ],
  [
    'a custom call that is not over',
    'responses',
    [
      item('added', 0, { type: 'custom_tool_call', call_id: 'c', name: 'sql', input: '' }),
      { type: 'response.custom_tool_call_input.delta', output_index: 0, delta: 'select' },
    ],
    ['sql|c|select'],
  ],
  [
    'hosted tools in a body',
    'responses',
    {
      output: [
        { type: 'web_search_call', id: 'ws', action: { type: 'search', query: 'x' } },
        { type: 'code_interpreter_call', id: 'ci', code: '1 + 1' },
        { type: 'mcp_call', id: 'mc', name: 'read', arguments: '{}' },
      ],
    },
    ['web_search_call|ws|{"type":"search","query":"x"}', 'code_interpreter_call|ci|1 + 1', 'read|mc|{}'],
  ],
]

for (const [what, wire, answer, shown] of forms)
  test(`CON-11 tool calls are shown: ${wire}, ${what}`, () => {
    const parts = Array.isArray(answer) ? stream(wire, answer) : partsOf(wire, answer)
    assert.deepEqual(calls(parts), shown)
  })

test('the text and the reasoning of an answer are read on each wire, as a stream and as a body', () => {
  const streams: Record<Wire, object[]> = {
    messages: [
      start(0, { type: 'thinking', thinking: '' }),
      delta(0, { type: 'thinking_delta', thinking: 'so' }),
      start(1, { type: 'text', text: 'a' }),
      delta(1, { type: 'text_delta', text: 'b' }),
    ],
    chat: [
      { choices: [{ index: 0, delta: { reasoning_content: 'so' } }] },
      { choices: [{ index: 0, delta: { content: 'a' } }] },
      { choices: [{ index: 1, delta: { content: 'other choice' } }] },
      { choices: [{ index: 0, delta: { refusal: 'b' } }] },
      { choices: [] },
    ],
    responses: [
      { type: 'response.reasoning_summary_text.delta', delta: 'so' },
      { type: 'response.output_text.delta', delta: 'a' },
      { type: 'response.refusal.delta', delta: 'b' },
    ],
  }
  const bodies: Record<Wire, object> = {
    messages: { content: [{ type: 'thinking', thinking: 'so' }, { type: 'text', text: 'a' }, {}, { text: 'b' }] },
    chat: { choices: [{ message: { content: 'ab', reasoning_content: 'so' } }] },
    responses: {
      output: [
        { type: 'reasoning', summary: [{ text: 'so' }] },
        { type: 'message', content: [{ text: 'a' }, { refusal: 'b' }] },
        {},
      ],
    },
  }
  for (const wire of clientWireNames) {
    assert.deepEqual(stream(wire, streams[wire]), { text: 'ab', reasoning: 'so', calls: [] }, wire)
    assert.deepEqual(partsOf(wire, bodies[wire]), { text: 'ab', reasoning: 'so', calls: [] }, wire)
  }
})

test('data of any form is read without an error, and adds no call without a name', () => {
  fc.assert(
    fc.property(fc.constantFrom(...clientWireNames), fc.jsonValue(), (wire, data) => {
      for (const parts of [addEvent(wire, noParts, data), partsOf(wire, data)])
        for (const { name, input } of parts.calls) assert.ok(name !== '' && typeof input === 'string')
    }),
  )
})

/** A `curl` that prints its arguments, one a line, and then its input. */
const fakeCurl = `curl() { for argument in "$@"; do printf '%s\\n' "$argument"; done; cat; }\n`
const run = (shell: string, command: string, env: Record<string, string> = {}) =>
  execFileSync(shell, { input: fakeCurl + command, encoding: 'utf8', env: { ...process.env, ...env } })

/** Characters that some shell takes as more than themselves, and others. */
const character = fc.oneof(
  fc.constantFrom(...`'"\\$\`!%@#&|;<>(){}[]*?~^ \n\t-`),
  fc.constantFrom('\\n', "\\'", '\\\\', '$TRIWIRE_API_KEY', '$(id)', 'é', '🙂', '\u007f', '\r'),
  fc.string({ unit: 'grapheme', maxLength: 3 }).filter((text) => !text.includes('\0')),
)

test('CON-11 "Copy as curl" runs in a shell: address, key and body arrive as they are, for every body', () => {
  const body = fc.array(character, { maxLength: 30 }).map((parts) => parts.join(''))
  for (const shell of ['/bin/sh', '/bin/bash'])
    fc.assert(
      fc.property(fc.constantFrom(...clientWireNames), body, (wire, text) => {
        const said = run(shell, curlOf("https://llm.example.com/o'brien/v1", wire, text), { TRIWIRE_API_KEY: 'sk a"b' })
        const path = { messages: 'messages', chat: 'chat/completions', responses: 'responses' }[wire]
        assert.equal(
          said,
          `-sSN\nhttps://llm.example.com/o'brien/v1/${path}\n-H\nauthorization: Bearer sk a"b\n-H\ncontent-type: application/json\n--data-binary\n@-\n${text}`,
        )
      }),
      { numRuns: runsUpTo(40) },
    )
})

test('CON-11 the command has the body of an image, which is longer than an argument may be', () => {
  const text = JSON.stringify({ data: 'A'.repeat(300_000) })
  assert.ok(run('/bin/sh', curlOf(undefined, 'chat', text), { TRIWIRE_URL: 'http://h' }).endsWith(`@-\n${text}`))
})

test("CON-11 the command is quoted for fish as well, which takes \\\\ and \\' in quotes as escapes", () => {
  fc.assert(
    fc.property(fc.array(character, { maxLength: 30 }), (parts) => {
      const text = parts.join('')
      const [, quoted] = /^printf %s ([\s\S]*) \|\n {2}curl /.exec(curlOf('http://h', 'chat', text))!
      assert.equal(unquoteFish(quoted!), text)
    }),
  )
})

/** Reads one word as fish does (fish-shell documentation, "Quotes" and "Escaping Characters", 27 November 2026). */
function unquoteFish(word: string): string {
  let text = ''
  let isQuoted = false
  for (let at = 0; at < word.length; at++) {
    const here = word[at]!
    const next = word[at + 1]
    if (here === "'") isQuoted = !isQuoted
    else if (here === '\\' && (!isQuoted || next === '\\' || next === "'")) text += word[++at]
    else {
      assert.ok(isQuoted, `${here} stands outside the quotes`)
      text += here
    }
  }
  assert.ok(!isQuoted, 'the quotes are closed')
  return text
}
