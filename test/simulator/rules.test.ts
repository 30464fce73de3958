import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

/*
 * What each vendor refuses, one row a rule: the rule, what is changed in a request that passes, and where the error
 * points. The first row of every table is such a request.
 */

type Row = [rule: string, change: object, place?: string]

let simulator: Simulator
before(async () => {
  simulator = await startSimulator()
})
after(() => simulator.close())

const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
const result = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'ok' })
const text = { type: 'text', text: 'Hi' }
const user = (...content: object[]) => ({ role: 'user', content })
const assistant = (...content: object[]) => ({ role: 'assistant', content })
const plain = { role: 'user', content: 'Hi' }
const mark = { cache_control: { type: 'ephemeral' } }

const messagesRows: Row[] = [
  ['a tool loop passes', {}],
  ['unknown top-level fields pass', { context_management: { edits: [] }, speed_of_light: 1 }],
  ['null is absent', { system: null, tool_choice: null, thinking: null, temperature: null }],
  ['max_tokens is required', { max_tokens: undefined }, 'max_tokens'],
  ['a cap is positive', { max_tokens: 0 }, 'max_tokens'],
  ['messages are not empty', { messages: [] }, 'messages'],
  ['roles are known', { messages: [{ role: 'tool', content: 'x' }] }, 'messages.0.role'],
  ['text is not empty', { messages: [user({ type: 'text', text: '' })] }, 'messages.0.content.0.text'],
  ['content is not empty', { messages: [{ role: 'user', content: [] }] }, 'messages.0.content'],
  [
    'an image’s source is an object',
    { messages: [user({ type: 'image', source: 'x' })] },
    'messages.0.content.0.source',
  ],
  ['a chat image part is unknown', { messages: [user({ type: 'image_url' })] }, 'messages.0.content.0.type'],
  ['a call stands in an assistant message', { messages: [user(use('a'))] }, 'messages.0.content.0.type'],
  ['input is an object', { messages: [plain, assistant({ ...use('a'), input: '{}' })] }, 'messages.1.content.0.input'],
  ['ids have their alphabet', { messages: [plain, assistant(use('a.b'))] }, 'messages.1.content.0.id'],
  ['a result needs its call', { messages: [plain, assistant(text), user(result('a'))] }, 'messages.2'],
  ['a call needs its result', { messages: [plain, assistant(use('a')), plain] }, 'messages.2'],
  ['results come first', { messages: [plain, assistant(use('a')), user(text, result('a'))] }, 'messages.2'],
  [
    'results may come in another order, and in two messages',
    { messages: [plain, assistant(use('a'), use('b')), user(result('b')), user(result('a'), text)] },
  ],
  ['ids are unique', { messages: [plain, assistant(use('a'), use('a')), user(result('a'))] }, 'messages.1'],
  ['a system message follows the user', { messages: [plain, { role: 'system', content: 'x' }] }],
  ['a system message is not first', { messages: [{ role: 'system', content: 'x' }, plain] }, 'messages.0'],
  [
    'a system message is not before the user',
    { messages: [plain, { role: 'system', content: 'x' }, plain] },
    'messages.1',
  ],
  ['a prefill has no trailing space', { messages: [plain, { role: 'assistant', content: 'So ' }] }, 'messages.1'],
  ['history with calls needs tools', { tools: [] }, 'tools'],
  ['schemas are objects', { tools: [{ name: 'f', input_schema: { type: 'string' } }] }, 'tools.0.input_schema.type'],
  [
    'names of tools are unique',
    { tools: ['f', 'f'].map((name) => ({ name, input_schema: { type: 'object' } })) },
    'tools.1.name',
  ],
  ['a tool that is chosen is declared', { tool_choice: { type: 'tool', name: 'g' } }, 'tool_choice.name'],
  ['a function’s schema is input_schema', { tools: [{ name: 'f', parameters: {} }] }, 'tools.0.input_schema'],
  ['a named tool exists', { tool_choice: { type: 'tool', name: 'g' } }, 'tool_choice.name'],
  ['chat’s tool_choice is unknown', { tool_choice: 'auto' }, 'tool_choice'],
  ['a budget has a floor', { thinking: { type: 'enabled', budget_tokens: 100 } }, 'thinking.enabled.budget_tokens'],
  ['a budget is below the cap', { thinking: { type: 'enabled', budget_tokens: 2000 } }, 'max_tokens'],
  ['thinking forbids a forced call', { thinking: { type: 'adaptive' }, tool_choice: { type: 'any' } }, 'tool_choice'],
  ['thinking forbids a temperature', { thinking: { type: 'adaptive' }, temperature: 0.5 }, 'temperature'],
  ['a temperature is at most 1', { temperature: 1.5 }, 'temperature'],
  ['at most four cache marks', { system: [1, 2, 3, 4, 5].map(() => ({ ...text, ...mark })) }, 'cache_control'],
  ['stop sequences are not blank', { stop_sequences: [' '] }, 'stop_sequences.0'],
]

const chatCall = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const calling = (...ids: string[]) => ({ role: 'assistant', content: null, tool_calls: ids.map(chatCall) })
const answered = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'ok' })
const image = (url: unknown) => ({ role: 'user', content: [{ type: 'image_url', image_url: url }] })

// biome-ignore format: one rule a line
const chatRows: Row[] = [
  ['a tool loop passes', {}],
  ['unknown top-level fields pass', { top_k: 3, chat_template_kwargs: {} }],
  ['messages are not empty', { messages: [] }, 'messages'],
  ['roles are known', { messages: [{ role: 'model', content: 'x' }] }, 'messages[0].role'],
  ['an assistant says or calls something', { messages: [plain, { role: 'assistant' }] }, 'messages[1].content'],
  ['tool_calls are not empty', { messages: [plain, { ...calling(), content: 'x' }] }, 'messages[1].tool_calls'],
  ['arguments are text', { messages: [plain, { ...calling(), tool_calls: [{ ...chatCall('a'), function: { name: 'f', arguments: {} } }] }] }, 'messages[1].tool_calls[0].function.arguments'],
  ['a tool message needs its call', { messages: [plain, answered('a')] }, 'messages[1]'],
  ['a call needs its tool message', { messages: [plain, calling('a')] }, 'messages'],
  ['tool messages stand directly behind', { messages: [plain, calling('a', 'b'), answered('a'), plain, answered('b')] }, 'messages[3]'],
  ['tool messages may come in another order', { messages: [plain, calling('a', 'b'), answered('b'), answered('a')] }],
  ['a tool message holds no image', { messages: [plain, calling('a'), { ...answered('a'), content: [{ type: 'image_url' }] }] }, 'messages[2].content[0].type'],
  ['image_url is an object', { messages: [image('data:image/png;base64,AA')] }, 'messages[0].content[0].image_url'],
  ['an image is a data URL', { messages: [image({ url: 'AAAA' })] }, 'messages[0].content[0].image_url.url'],
  ['tools are not empty', { tools: [] }, 'tools'],
  ['functions are nested', { tools: [{ type: 'function', name: 'f' }] }, 'tools[0].function'],
  ['names have at most 64 characters', { tools: [{ type: 'function', function: { name: 'x'.repeat(65) } }] }, 'tools[0].function.name'],
  ['a strict schema is closed', { tools: [{ type: 'function', function: { name: 'f', strict: true, parameters: { type: 'object' } } }] }, 'tools[0].function.parameters'],
  ['names of tools are unique', { tools: ['f', 'f'].map((name) => ({ type: 'function', function: { name } })) }, 'tools'],
  ['a tool that is chosen is declared', { tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice'],
  ['a tool that is chosen has a name', { tool_choice: { type: 'function', function: {} } }, 'tool_choice.function.name'],
  ['parameters are an object', { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'array' } } }] }, 'tools[0].function.parameters.type'],
  ['empty parameters are none', { tools: [{ type: 'function', function: { name: 'f', parameters: {} } }] }],
  ['tool_choice needs tools', { tools: undefined, tool_choice: 'auto' }, 'tool_choice'],
  ['a named tool exists', { tool_choice: { type: 'function', function: { name: 'g' } } }, 'tool_choice'],
  ['parallel_tool_calls needs tools', { tools: undefined, parallel_tool_calls: false }, 'parallel_tool_calls'],
  ['at most four stops', { stop: ['1', '2', '3', '4', '5'] }, 'stop'],
  ['stream_options needs a stream', { stream_options: {} }, 'stream_options'],
  ['a format has a name', { response_format: { type: 'json_schema', json_schema: {} } }, 'response_format.json_schema.name'],
  ['an effort is known', { reasoning_effort: 'huge' }, 'reasoning_effort'],
]

const call = (id: string) => ({ type: 'function_call', call_id: id, name: 'f', arguments: '{}' })
const output = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'ok' })

// biome-ignore format: one rule a line
const responsesRows: Row[] = [
  ['a tool loop passes', {}],
  ['a string passes', { input: 'Hi' }],
  ['unknown top-level fields pass', { client_metadata: {} }],
  ['results may stand behind other items', { input: [call('a'), plain, output('a')] }],
  ['nothing is stored', { previous_response_id: 'resp_1' }, 'previous_response_id'],
  ['there is no background', { background: true }, 'background'],
  ['the cap is at least 16', { max_output_tokens: 5 }, 'max_output_tokens'],
  ['input is not empty', { input: [] }, 'input'],
  ['items are known', { input: [{ type: 'tool' }] }, 'input[0].type'],
  ['user parts are input parts', { input: [{ role: 'user', content: [{ type: 'text', text: 'x' }] }] }, 'input[0].content[0].type'],
  ['assistant parts are output parts', { input: [{ role: 'assistant', content: [{ type: 'input_text', text: 'x' }] }] }, 'input[0].content[0].type'],
  ['image_url is a string', { input: [{ role: 'user', content: [{ type: 'input_image', image_url: { url: 'x' } }] }] }, 'input[0].content[0].image_url'],
  ['an output needs its call', { input: [plain, output('a')] }, 'input'],
  ['a call needs its output', { input: [plain, call('a')] }, 'input'],
  ['arguments are text', { input: [{ ...call('a'), arguments: {} }, output('a')] }, 'input[0].arguments'],
  ['ids have the item’s prefix', { input: [{ ...call('a'), id: 'call_a' }, output('a')] }, 'input[0].id'],
  ['item ids are unique', { input: [{ ...call('a'), id: 'fc_1' }, output('a'), { ...call('b'), id: 'fc_1' }, output('b')] }, 'input'],
  ['a call id has at most 64 characters', { input: [call('x'.repeat(65))] }, 'input[0].call_id'],
  ['foreign encrypted content is refused', { input: [{ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'abc' }, plain] }, 'input[0].encrypted_content'],
  ['names of tools are unique', { tools: ['f', 'f'].map((name) => ({ type: 'function', name })) }, 'tools[1].name'],
  ['a tool that is chosen is declared', { tool_choice: { type: 'function', name: 'g' } }, 'tool_choice'],
  ['a tool that is chosen has a name', { tool_choice: { type: 'function' } }, 'tool_choice.name'],
  ['parameters are an object', { tools: [{ type: 'function', name: 'f', parameters: { type: 'array' } }] }, 'tools[0].parameters.type'],
  ['functions are flat', { tools: [{ type: 'function', function: { name: 'f' } }] }, 'tools[0].name'],
  ['a type of a tool is a word', { tools: [{ type: '' }] }, 'tools[0].type'],
  ['a named tool exists', { tool_choice: { type: 'function', name: 'g' } }, 'tool_choice'],
  ['verbosity is a word', { text: { verbosity: ['low'] } }, 'text.verbosity'],
  ['a format is flat', { text: { format: { type: 'json_schema', json_schema: { name: 'x' } } } }, 'text.format.name'],
  ['a strict schema is closed', { tools: [{ type: 'function', name: 'f', strict: true, parameters: { type: 'object', properties: {} } }] }, 'tools[0].parameters'],
]

test('wires/message-wire 2–6 requests that the messages vendor refuses are refused', async () => {
  const base = {
    model: 'sim',
    max_tokens: 1500,
    tools: [{ name: 'f', input_schema: { type: 'object' } }],
    messages: [plain, assistant(text, use('a')), user(result('a'), text)],
  }
  for (const [rule, change, place] of messagesRows) {
    const { status, body } = await post('/v1/messages', { ...base, ...change })
    assert.equal(status, place === undefined ? 200 : 400, `${rule}: ${JSON.stringify(body)}`)
    if (place === undefined) continue
    assert.equal(body.type, 'error')
    assert.equal(body.error.type, 'invalid_request_error')
    assert.equal(body.error.message.split(': ')[0], place, rule)
  }
})

test('wires/chat-wire 2–5 requests that the chat vendor refuses are refused', async () => {
  const tools = [{ type: 'function', function: { name: 'f' } }]
  const base = { model: 'sim', tools, messages: [plain, calling('a'), answered('a')] }
  for (const [rule, change, place] of chatRows) {
    const { status, body } = await post('/v1/chat/completions', { ...base, ...change })
    assert.equal(status, place === undefined ? 200 : 400, `${rule}: ${JSON.stringify(body)}`)
    if (place !== undefined) assert.equal(body.error.param, place, rule)
  }
})

test('wires/responses-wire 2–6 requests that the responses vendor refuses are refused', async () => {
  const tools = [{ type: 'function', name: 'f' }]
  const base = { model: 'sim', tools, input: [plain, call('a'), output('a')] }
  for (const [rule, change, place] of responsesRows) {
    const { status, body } = await post('/v1/responses', { ...base, ...change })
    assert.equal(status, place === undefined ? 200 : 400, `${rule}: ${JSON.stringify(body)}`)
    if (place !== undefined) assert.equal(body.error.param, place, rule)
  }
})

test('wires/responses-wire 3 items that are not stored are reported as not found', async () => {
  for (const item of [
    { id: 'msg_1' },
    { type: 'item_reference', id: 'rs_1' },
    { type: 'reasoning', id: 'rs_1', summary: [] },
  ]) {
    const { status, body } = await post('/v1/responses', { model: 'sim', input: [item, plain] })
    assert.equal(status, 404)
    assert.equal(body.error.code, 'item_not_found')
  }
})

test('with strict off an invalid conversation is answered', async (t) => {
  const loose = await startSimulator({ strict: false })
  t.after(loose.close)
  const { status } = await post('/v1/chat/completions', { model: 'sim', messages: [answered('a')] }, loose)
  assert.equal(status, 200)
})

type Answer = { type?: string; error: { type: string; message: string; param?: string; code?: string } }

async function post(path: string, body: object, to = simulator): Promise<{ status: number; body: Answer }> {
  const response = await fetch(to.url + path, {
    method: 'POST',
    headers: { 'x-api-key': 'k' },
    body: JSON.stringify(body),
  })
  return { status: response.status, body: (await response.json()) as Answer }
}
