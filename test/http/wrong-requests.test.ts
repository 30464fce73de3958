import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { describeTranslation } from '../../src/live/translation.ts'
import { startTestGateway, type TestGateway, testModel } from '../support/gateway.ts'

/* Requests as people get them wrong, on every wire, and the whole text that they read (N-F16). */

let gateway: TestGateway
before(async () => {
  gateway = await startTestGateway({
    models: [
      testModel('claude-sonnet', 'messages', { upstream_model: 'sim', profile: 'simulator' }),
      testModel('gpt-mini', 'chat', { upstream_model: 'sim', profile: 'simulator' }),
      testModel('gpt-pro', 'responses', { upstream_model: 'sim', profile: 'simulator' }),
    ],
    config: { limits: { failed_auth_per_minute: 1_000, requests_per_minute: 10_000 } },
  })
})
after(() => gateway.close())

type Wire = 'm' | 'c' | 'r'
const paths = { m: '/v1/messages', c: '/v1/chat/completions', r: '/v1/responses' }
const user = [{ role: 'user', content: 'Hi' }]
/** A request that is right, for the model of each wire, and for those of the others. */
const good: Record<Wire, Record<string, unknown>> = {
  m: { model: 'claude-sonnet', max_tokens: 50, messages: user },
  c: { model: 'gpt-mini', messages: user },
  r: { model: 'gpt-pro', input: 'Hi' },
}
const fn = { name: 'f', parameters: { type: 'object', properties: {} } }

type Row = [wire: Wire, change: Record<string, unknown> | string, told: string]

const rows: Row[] = [
  ['m', '', '400 The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['m', '{', '400 The request body is not valid JSON: send one JSON object in UTF-8.'],
  ['m', '[]', '400 The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['m', 'null', '400 The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['m', '{"model":"gpt-mini"} x', '400 The request body is not valid JSON: send one JSON object in UTF-8.'],
  [
    'm',
    { model: undefined },
    '400 The field model is required and must be a string: name a model from GET /v1/models.',
  ],
  ['m', { model: 7 }, '400 The field model is required and must be a string: name a model from GET /v1/models.'],
  ['m', { model: '' }, '404 No such model: GET /v1/models lists the available models.'],
  ['m', { model: 'gtp-mini' }, '404 No such model: GET /v1/models lists the available models. Perhaps it is gpt-mini.'],
  [
    'm',
    { model: 'Claude_Sonnet' },
    '404 No such model: GET /v1/models lists the available models. Perhaps it is claude-sonnet.',
  ],
  [
    'm',
    { model: 'openai/gpt-pro' },
    '404 No such model: GET /v1/models lists the available models. Perhaps it is gpt-pro.',
  ],
  ['m', { model: 'nothing-like-it' }, '404 No such model: GET /v1/models lists the available models.'],
  ['m', { stream: 'true' }, '400 The field stream must be true or false.'],
  ['m', { max_tokens: 0 }, '400 The field max_tokens must be a positive integer.'],
  ['m', { max_tokens: '100' }, '400 The field max_tokens must be a positive integer.'],
  ['m', { max_tokens: 1.5 }, '400 The field max_tokens must be a positive integer.'],
  ['m', { messages: undefined }, '400 The field messages is required and must be an array of messages.'],
  ['m', { messages: {} }, '400 The field messages is required and must be an array of messages.'],
  ['m', { messages: 7 }, '400 The field messages is required and must be an array of messages.'],
  ['c', '', '400 invalid_body The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['c', '{', '400 invalid_body The request body is not valid JSON: send one JSON object in UTF-8.'],
  ['c', '[]', '400 invalid_body The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['c', 'null', '400 invalid_body The request body is not a JSON object: send one JSON object in UTF-8.'],
  [
    'c',
    '{"model":"gpt-mini"} x',
    '400 invalid_body The request body is not valid JSON: send one JSON object in UTF-8.',
  ],
  [
    'c',
    { model: undefined },
    '400 invalid_body (model) The field model is required and must be a string: name a model from GET /v1/models.',
  ],
  [
    'c',
    { model: 7 },
    '400 invalid_body (model) The field model is required and must be a string: name a model from GET /v1/models.',
  ],
  ['c', { model: '' }, '404 model_not_found (model) No such model: GET /v1/models lists the available models.'],
  [
    'c',
    { model: 'gtp-mini' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models. Perhaps it is gpt-mini.',
  ],
  [
    'c',
    { model: 'Claude_Sonnet' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models. Perhaps it is claude-sonnet.',
  ],
  [
    'c',
    { model: 'openai/gpt-pro' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models. Perhaps it is gpt-pro.',
  ],
  [
    'c',
    { model: 'nothing-like-it' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models.',
  ],
  ['c', { stream: 'true' }, '400 invalid_body (stream) The field stream must be true or false.'],
  ['c', { max_tokens: 0 }, '400 invalid_body (max_tokens) The field max_tokens must be a positive integer.'],
  ['c', { max_tokens: '100' }, '400 invalid_body (max_tokens) The field max_tokens must be a positive integer.'],
  ['c', { max_tokens: 1.5 }, '400 invalid_body (max_tokens) The field max_tokens must be a positive integer.'],
  [
    'c',
    { messages: undefined },
    '400 invalid_body (messages) The field messages is required and must be an array of messages.',
  ],
  [
    'c',
    { messages: {} },
    '400 invalid_body (messages) The field messages is required and must be an array of messages.',
  ],
  [
    'c',
    { messages: 7 },
    '400 invalid_body (messages) The field messages is required and must be an array of messages.',
  ],
  ['r', '', '400 invalid_body The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['r', '{', '400 invalid_body The request body is not valid JSON: send one JSON object in UTF-8.'],
  ['r', '[]', '400 invalid_body The request body is not a JSON object: send one JSON object in UTF-8.'],
  ['r', 'null', '400 invalid_body The request body is not a JSON object: send one JSON object in UTF-8.'],
  [
    'r',
    '{"model":"gpt-mini"} x',
    '400 invalid_body The request body is not valid JSON: send one JSON object in UTF-8.',
  ],
  [
    'r',
    { model: undefined },
    '400 invalid_body (model) The field model is required and must be a string: name a model from GET /v1/models.',
  ],
  [
    'r',
    { model: 7 },
    '400 invalid_body (model) The field model is required and must be a string: name a model from GET /v1/models.',
  ],
  ['r', { model: '' }, '404 model_not_found (model) No such model: GET /v1/models lists the available models.'],
  [
    'r',
    { model: 'gtp-mini' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models. Perhaps it is gpt-mini.',
  ],
  [
    'r',
    { model: 'Claude_Sonnet' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models. Perhaps it is claude-sonnet.',
  ],
  [
    'r',
    { model: 'openai/gpt-pro' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models. Perhaps it is gpt-pro.',
  ],
  [
    'r',
    { model: 'nothing-like-it' },
    '404 model_not_found (model) No such model: GET /v1/models lists the available models.',
  ],
  ['r', { stream: 'true' }, '400 invalid_body (stream) The field stream must be true or false.'],
  [
    'r',
    { max_output_tokens: 0 },
    '400 invalid_body (max_output_tokens) The field max_output_tokens must be a positive integer.',
  ],
  [
    'r',
    { max_output_tokens: '100' },
    '400 invalid_body (max_output_tokens) The field max_output_tokens must be a positive integer.',
  ],
  [
    'r',
    { max_output_tokens: 1.5 },
    '400 invalid_body (max_output_tokens) The field max_output_tokens must be a positive integer.',
  ],
  [
    'r',
    { input: undefined },
    '400 invalid_body (input) The field input is required and must be a string or an array of items.',
  ],
  [
    'r',
    { input: {} },
    '400 invalid_body (input) The field input is required and must be a string or an array of items.',
  ],
  [
    'r',
    { input: 7 },
    '400 invalid_body (input) The field input is required and must be a string or an array of items.',
  ],
  ['m', { max_tokens: undefined }, '400 The field max_tokens is required: set it to a positive integer.'],
  ['m', { messages: 'Hi' }, '400 The field messages is required and must be an array of messages.'],
  [
    'm',
    { thread: 't_1' },
    '400 The field thread is not supported: nothing is stored here, send the whole conversation in messages.',
  ],
  ['m', { container: 'c_1', model: 'gpt-mini' }, '400 container: nothing is stored here: remove the field.'],
  [
    'm',
    { model: 'gpt-mini', messages: [{ role: 'robot', content: 'Hi' }] },
    '400 The field messages[0].role must be one of user, assistant, system.',
  ],
  [
    'm',
    { model: 'gpt-mini', messages: [{ role: 'user', content: 7 }] },
    '400 The field messages[0].content must be a string or an array.',
  ],
  [
    'm',
    {
      model: 'gpt-mini',
      messages: [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: 'a' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'a' },
            { type: 'hologram', data: '' },
          ],
        },
      ],
    },
    '400 messages[2].content[1]: this model cannot be given a block of this type in a user turn; text, images and documents can be sent.',
  ],
  [
    'm',
    {
      model: 'gpt-mini',
      messages: [
        { role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'https://x.example/a.png' } }] },
      ],
    },
    '400 messages[0].content[0].source: files and images are not fetched: send the data itself, in base64.',
  ],
  [
    'm',
    { model: 'gpt-mini', messages: [{ role: 'user', content: [{ type: 'tool_result', content: 'x' }] }] },
    '400 The field messages[0].content[0].tool_use_id must be a string.',
  ],
  [
    'm',
    { model: 'gpt-mini', tools: [{ type: 'function', function: fn }] },
    '400 tools[0]: this is a tool in the shape of another wire: here it is {"name": …, "description": …, "input_schema": {…}}.',
  ],
  [
    'm',
    { model: 'gpt-mini', tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    '400 tools[0]: this tool is not offered on this model: send function tools only. An agent that adds web search by itself has a setting for it, e.g. web_search = "disabled".',
  ],
  ['m', { model: 'gpt-mini', tools: {} }, '400 The field tools must be an array.'],
  [
    'm',
    { model: 'gpt-mini', tools: [{ name: 'f', input_schema: { type: 'object' } }], tool_choice: 'always' },
    '400 tool_choice: must be an object here: {"type": "auto"}, {"type": "any"}, {"type": "none"} or {"type": "tool", "name": …}.',
  ],
  [
    'm',
    {
      model: 'gpt-mini',
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'tool', name: 'g' },
    },
    '400 tool_choice: it names a tool that is not declared: declare it in tools, or remove it.',
  ],
  ['m', { model: 'gpt-mini', stop_sequences: 'x' }, '400 The field stop_sequences must be an array.'],
  ['m', { model: 'gpt-mini', temperature: 'hot' }, '400 The field temperature must be a number.'],
  ['m', { model: 'gpt-mini', system: 7 }, '400 The field system must be a string or an array.'],
  ['m', { model: 'gpt-mini', thinking: true }, '400 The field thinking must be an object.'],
  [
    'm',
    { model: 'gpt-mini', output_config: { format: { type: 'json_schema', schema: 7 } } },
    '400 The field output_config.format.schema must be an object.',
  ],
  ['m', { tools: [{ type: 'function', function: fn }] }, '400 tools.0.name: must be a string'],
  ['c', { n: 0 }, '400 invalid_body (n) The field n must be an integer from 1 to 128.'],
  ['c', { n: 200 }, '400 invalid_body (n) The field n must be an integer from 1 to 128.'],
  ['c', { n: 2, model: 'claude-sonnet' }, '400 invalid_body (n) n: this model gives one answer per request: send 1.'],
  [
    'c',
    { functions: [fn], model: 'claude-sonnet' },
    '400 invalid_body (functions) functions: legacy functions are not translated: declare them in tools, and remove the field.',
  ],
  [
    'c',
    { modalities: ['text', 'audio'], model: 'gpt-mini' },
    '400 invalid_body (modalities) modalities: audio is not offered as output: ask for text.',
  ],
  [
    'c',
    { model: 'claude-sonnet', messages: [{ role: 'robot', content: 'Hi' }] },
    '400 invalid_body (messages) The field messages[0].role must be one of system, developer, user, assistant, tool.',
  ],
  [
    'c',
    {
      model: 'claude-sonnet',
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x.example/a.png' } }] }],
    },
    '400 invalid_body (messages) messages[0].content[0].image_url.url: files and images are not fetched: send the data itself, in base64.',
  ],
  [
    'c',
    { model: 'claude-sonnet', messages: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }] },
    '400 invalid_body (messages) messages[0].content[0]: this model cannot be given a part of this type; text, images and files can be sent.',
  ],
  [
    'c',
    { model: 'claude-sonnet', messages: [{ role: 'tool', content: 'x' }] },
    '400 invalid_body (messages) The field messages[0].tool_call_id must be a string.',
  ],
  [
    'c',
    { model: 'claude-sonnet', tools: [{ name: 'f', input_schema: { type: 'object' } }] },
    '400 invalid_body (tools) tools[0]: this is a tool in the shape of another wire: here it is {"type": "function", "function": {"name": …, "description": …, "parameters": {…}}}.',
  ],
  [
    'c',
    { model: 'claude-sonnet', tools: [{ type: 'web_search' }] },
    '400 invalid_body (tools) tools[0]: this tool is not offered on this model: send function tools only. An agent that adds web search by itself has a setting for it, e.g. web_search = "disabled".',
  ],
  [
    'c',
    { model: 'claude-sonnet', tools: [{ type: 'function', function: fn }], tool_choice: 'always' },
    '400 invalid_body (tool_choice) The field tool_choice must be auto, none, required or an object.',
  ],
  [
    'c',
    {
      model: 'claude-sonnet',
      tools: [{ type: 'function', function: fn }],
      tool_choice: { type: 'function', function: { name: 'g' } },
    },
    '400 invalid_body (tool_choice) tool_choice: it names a tool that is not declared: declare it in tools, or remove it.',
  ],
  [
    'c',
    { model: 'claude-sonnet', response_format: 'json' },
    '400 invalid_body (response_format) The field response_format must be an object.',
  ],
  [
    'c',
    { model: 'claude-sonnet', response_format: { type: 'yaml' } },
    '400 invalid_body (response_format) The field response_format.type must be one of text, json_object, json_schema.',
  ],
  ['c', { model: 'claude-sonnet', stop: 7 }, '400 invalid_body (stop) The field stop must be a string or an array.'],
  [
    'c',
    { model: 'claude-sonnet', stop: Array(65).fill('x') },
    '400 invalid_body (stop) stop: at most 64 stop sequences are taken: send fewer.',
  ],
  ['c', { prompt_cache_key: 7 }, '400 invalid_body (prompt_cache_key) The field prompt_cache_key must be a string.'],
  [
    'c',
    { prompt_cache_key: 'k'.repeat(257) },
    '400 invalid_cache_key (prompt_cache_key) The conversation key in prompt_cache_key is longer than 256 characters: send a shorter one.',
  ],
  ['c', { model: 'claude-sonnet', messages: [] }, '400 invalid_request messages: must hold at least one message'],
  [
    'r',
    { previous_response_id: 'resp_1' },
    '400 unsupported_parameter (previous_response_id) The field previous_response_id is not supported. The service keeps nothing between requests: send the whole conversation in input.',
  ],
  [
    'r',
    { background: true },
    '400 unsupported_parameter (background) The field background is not supported: leave it out and read the answer or its stream.',
  ],
  [
    'r',
    { conversation: 'conv_1' },
    '400 unsupported_parameter (conversation) The field conversation is not supported. The service keeps nothing between requests: send the whole conversation in input.',
  ],
  [
    'r',
    { input: [{ type: 'item_reference', id: 'msg_1' }], model: 'claude-sonnet' },
    '400 unsupported_parameter (input) input[0]: input items that refer to stored ones (item_reference, or an item with only an id) are not supported. The service keeps nothing between requests: send the whole conversation in input. In the AI SDK set store: false in providerOptions.openai.',
  ],
  [
    'r',
    { input: [{ id: 'msg_1' }], model: 'claude-sonnet' },
    '400 unsupported_parameter (input) input[0]: input items that refer to stored ones (item_reference, or an item with only an id) are not supported. The service keeps nothing between requests: send the whole conversation in input. In the AI SDK set store: false in providerOptions.openai.',
  ],
  [
    'r',
    { input: [{ type: 'compaction', encrypted_content: 'x' }], model: 'claude-sonnet' },
    '400 invalid_body (input) input[0]: this model cannot be given an item of type compaction: remove it, or name a model of this wire.',
  ],
  [
    'r',
    {
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'https://x.example/a.png' }] }],
      model: 'claude-sonnet',
    },
    '400 invalid_body (input) input[0].content[0].image_url: files and images are not fetched: send the data itself, in base64.',
  ],
  [
    'r',
    { input: [{ type: 'function_call_output', output: 'x' }], model: 'claude-sonnet' },
    '400 invalid_body (input) The field input[0].call_id must be a string.',
  ],
  ['r', { input: [], model: 'claude-sonnet' }, '400 invalid_request input: must hold at least one message'],
  [
    'r',
    { tools: [{ type: 'web_search' }], model: 'claude-sonnet' },
    '400 invalid_body (tools) tools[0]: this tool is not offered on this model: send function tools only. An agent that adds web search by itself has a setting for it, e.g. web_search = "disabled".',
  ],
  [
    'r',
    { tools: [{ type: 'function', function: fn }], model: 'claude-sonnet' },
    '400 invalid_body (tools) tools[0]: this is a tool in the shape of another wire: here it is {"type": "function", "name": …, "description": …, "parameters": {…}}.',
  ],
  ['r', { tools: [{ type: 'function', function: fn }] }, '400 invalid_request tools[0].name: must be a string'],
  [
    'r',
    { tools: [{ type: 'function', ...fn }], tool_choice: 'always', model: 'claude-sonnet' },
    '400 invalid_body (tool_choice) The field tool_choice must be auto, none, required or an object.',
  ],
  [
    'r',
    { text: { format: 'json' }, model: 'claude-sonnet' },
    '400 invalid_body (text) The field text.format must be an object.',
  ],
  [
    'r',
    { instructions: 7, model: 'claude-sonnet' },
    '400 invalid_body (instructions) The field instructions must be a string.',
  ],
  [
    'r',
    { reasoning: 'high', model: 'claude-sonnet' },
    '400 invalid_body (reasoning) The field reasoning must be an object.',
  ],
  [
    'r',
    { messages: user, input: undefined },
    '400 invalid_body (input) The field input is required and must be a string or an array of items.',
  ],
  [
    'r',
    { prompt: { id: 'p_1' }, model: 'claude-sonnet' },
    '400 invalid_body (prompt) prompt: templates are stored at their vendor: send the text in instructions and input.',
  ],
]

/** The body of a row. */
function bodyOf(wire: Wire, change: Row[1]): string {
  return typeof change === 'string' ? change : JSON.stringify({ ...good[wire], ...change })
}

async function ask(wire: Wire, change: Row[1]): Promise<string> {
  const body = typeof change === 'string' ? change : JSON.stringify({ ...good[wire], ...change })
  const response = await gateway.post(paths[wire], body)
  const { error } = (await response.json()) as { error?: { message: string; code?: string; param?: string | null } }
  return [response.status, error?.code, error?.param && `(${error.param})`, error?.message].filter(Boolean).join(' ')
}

/** Mistakes outside of the body: path, method, headers, and the answers to them. */
const others: [path: string, method: string, headers: Record<string, string>, told: RegExp][] = [
  ['/v1/messages', 'GET', {}, /^404 Nothing is served at this path and method: use POST /],
  ['/v1/chat/completions', 'PUT', {}, /^404 Nothing is served/],
  ['/v1/messages/count_tokens', 'GET', {}, /^404 Nothing is served/],
  ['/v1/models/gpt-mini', 'GET', {}, /^404 Nothing is served/],
  [
    '/v1/chat/completions',
    'POST',
    { authorization: '' },
    /^401 An API key is required: send it as authorization: Bearer, or in x-api-key\.$/,
  ],
  [
    '/v1/chat/completions',
    'POST',
    { authorization: 'Basic abc' },
    /^401 An API key is required: send it as authorization: Bearer, or in x-api-key\.$/,
  ],
  ['/v1/responses', 'POST', { authorization: 'Bearer ' }, /^401 An API key is required/],
  ['/v1/messages', 'POST', { authorization: 'sk-tri-mine' }, /^401 An API key is required/],
  ['/v1/messages', 'POST', { authorization: 'Bearer Bearer sk-tri-mine' }, /^401 An API key is required/],
  ['/v1/messages', 'POST', { authorization: 'sk-tri-mine', 'x-api-key': 'sk-tri-nope' }, /^401 The API key is not/],
  [
    '/v1/responses',
    'POST',
    { authorization: 'Bearer sk-tri-nope' },
    /^401 The API key is not valid: check it for typing errors, or make a new one\.$/,
  ],
  ['/v1/messages', 'POST', { authorization: '', 'x-api-key': 'sk-ant-mine' }, /^401 The API key is not valid/],
  [
    '/v1/messages',
    'POST',
    { 'x-session-id': 'k'.repeat(257) },
    /^400 The conversation key in x-session-id is longer than 256 characters: send a shorter one\.$/,
  ],
]

test('N-F16 a wrong path, method, key or header is reported with its cure', async () => {
  for (const [path, method, headers, told] of others) {
    const body = method === 'GET' ? undefined : JSON.stringify(good.m)
    const asked = { authorization: `Bearer ${gateway.key}`, ...headers }
    const response = await fetch(gateway.url + path, { method, headers: asked, ...(body && { body }) })
    const { error } = (await response.json()) as { error: { message: string } }
    assert.match(`${response.status} ${error.message}`, told, `${method} ${path}`)
  }
  assert.ok(rows.length + others.length >= 90, `${rows.length}`)
})

test('N-F16 a wrong body is reported with its field, its place and its cure, on every wire and pair', async () => {
  for (const [wire, change, told] of rows) {
    assert.equal(await ask(wire, change), told, `${wire} ${JSON.stringify(change)}`)
  }
})

test('R1 translate refuses a wrong body with the same answer as the gateway', async () => {
  const { config } = gateway.server.gateway.snapshots.current
  const names = { m: 'messages', c: 'chat', r: 'responses' } as const
  for (const [wire, change, told] of rows) {
    const body = bodyOf(wire, change)
    const described = await describeTranslation(config, names[wire], Buffer.from(body), undefined)
    const response = await gateway.post(paths[wire], body)
    const answer = await response.text()
    if (described.ok) {
      // It is the model that refuses it.
      assert.equal(JSON.parse(answer).error.type, 'invalid_request_error', body)
      assert.ok(gateway.simulator.requests.length > 0)
      continue
    }
    const { status, message } = described.refusal
    assert.ok(told.startsWith(`${status} `) && told.endsWith(message), told)
    const id = response.headers.get('x-request-id')!
    assert.equal(described.refusal.body.replaceAll(/req_0+/g, id), answer)
  }
})
