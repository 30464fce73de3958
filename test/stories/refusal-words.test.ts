import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { testModel } from '../support/gateway.ts'
import { type Native, startNative } from '../support/native.ts'
import { stream, whole } from '../support/raw-upstream.ts'

/* What of a model's words reaches the client, and what does not, through the whole gateway. */

let native: Native
before(async () => {
  native = await startNative({
    models: [
      testModel('native-messages', 'messages', { upstream_model: 'claude-sonnet-4-5-20250929' }),
      testModel('native-chat', 'chat', { upstream_model: 'gpt-5.2' }),
      testModel('native-responses', 'responses', { upstream_model: 'gpt-5.2-pro' }),
    ],
    config: { limits: { requests_per_minute: 10_000 } },
  })
})
after(() => native.close())

const toolUse = 'toolu_01A09q90qw90lq917835lq9'
const call = 'call_a1B2c3D4e5F6g7H8i9J0k1L2'
const reasoning = 'rs_68c4a09d1f6c8190b7d1b0f5c3a2e4d60f1e2d3c4b5a6978'
const message = 'msg_68c4a0a1d2c48190a5b6c7d8e9f0a1b20f1e2d3c4b5a6978'
const functionCall = 'fc_68c4a0a1d2c48190a5b6c7d8e9f0a1b20f1e2d3c4b5a6978'

/** What vendors say to a developer who must mend his request; the second text is what is told where it is not the same. */
const wordings: Record<ClientWire, [said: string, told?: string][]> = {
  messages: [
    [
      `messages.2: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${toolUse}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`,
    ],
    [
      `messages.0.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${toolUse}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`,
    ],
    [
      `messages.3.content.1: each tool_use must have a single result. Found multiple \`tool_result\` blocks with id: ${toolUse}`,
    ],
    ['messages.1.content.2: `tool_use` ids must be unique'],
    ['prompt is too long: 210845 tokens > 200000 maximum'],
    [
      'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length or `max_tokens` and try again',
    ],
    [
      'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5-20250929',
      'max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for native-messages',
    ],
    [
      '`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-window-size',
      '`max_tokens` must be greater than `thinking.budget_tokens`.',
    ],
    [
      'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block. Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking',
      'messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block.',
    ],
    [
      'tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12 (https://json-schema.org/draft/2020-12).',
      'tools.0.custom.input_schema: JSON schema is invalid. It must match JSON Schema draft 2020-12.',
    ],
    ['messages.1.content.0: Invalid `signature` in `thinking` block'],
    [
      'messages.0.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels',
    ],
    [
      'messages.0.content.1.image.source.base64: The image was specified using the image/jpeg media type, but the image appears to be a image/png image',
    ],
    ['messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes'],
    ['`temperature` and `top_p` cannot both be specified for this model. Please use only one.'],
    ['messages: text content blocks must be non-empty'],
    ["tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'"],
    ['A maximum of 4 blocks with cache_control may be provided. Found 5.'],
    ['metadata.user_id: user_id appears to contain an email address'],
  ],
  chat: [
    [
      `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${call}`,
    ],
    ["Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."],
    [`Duplicate value for 'tool_call_id' of '${call}' in message[4]`],
    [
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130512 tokens (129000 in the messages, 1512 in the functions). Please reduce the length of the messages or functions.",
    ],
    [
      'max_tokens is too large: 200000. This model supports at most 16384 completion tokens, whereas you provided 200000.',
    ],
    ["Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."],
    ["Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported."],
    [
      "Invalid schema for function 'search': In context=(), 'additionalProperties' is required to be supplied and to be false.",
    ],
    ["'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."],
    [
      "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp'].",
    ],
    [
      "Invalid 'messages[3].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 64 instead.",
    ],
    [
      'Function tools with reasoning_effort are not supported for gpt-5.2 in /v1/chat/completions. Please use /v1/responses instead.',
      'Function tools with reasoning_effort are not supported for native-chat in /v1/chat/completions. Please use /v1/responses instead.',
    ],
    [
      'Invalid image data (see https://platform.openai.com/docs/guides/vision). Send a PNG or a JPEG.',
      'Invalid image data. Send a PNG or a JPEG.',
    ],
    ["'frequency_penalty' and 'logit_bias' cannot be used together with this model."],
  ],
  responses: [
    [`No tool output found for function call ${call}.`],
    [`No tool call found for function call output with call_id ${call}.`],
    [`Item '${reasoning}' of type 'reasoning' was provided without its required following item.`],
    [
      `Item '${functionCall}' of type 'function_call' was provided without its required 'reasoning' item: '${reasoning}'.`,
    ],
    [`Duplicate item found with id ${message}. Remove duplicate items from your input and try again.`],
    ['Your input exceeds the context window of this model. Please adjust your input and try again.'],
    ["Unknown parameter: 'input[3].status'."],
    ["Unsupported parameter: 'temperature' is not supported with this model."],
    [`Invalid 'input[2].id': '${call}'. Expected an ID that begins with 'fc'.`],
    ["Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'."],
    ["Missing required parameter: 'input[1].content'."],
    ["Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 8 instead."],
    [
      "Invalid 'tools[0].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
    ],
    [
      'The requested effort is not supported. For more information, see https://platform.openai.com/docs/guides/reasoning.',
      'The requested effort is not supported.',
    ],
  ],
}

test('E2, U9: at least 29 vendors’ error texts, with their ids and links, reach the client', async () => {
  assert.ok(Object.values(wordings).flat().length >= 29)
  const heard: string[] = []
  const wanted: string[] = []
  for (const wire of clientWireNames) {
    for (const [said, told = said] of wordings[wire]) {
      heard.push(await tell(wire, said))
      wanted.push(told)
    }
  }
  assert.deepEqual(heard, wanted)
})

const generic = 'The model rejected the request.'
/** An id as some servers make them, with nothing to know it by. */
const bare = '0f8fad5bd9cb469fa16570867728950e'

test('E2, U9: an id without a prefix is recognised if it occurs in the request; a part of one is not', async () => {
  const calls = [{ id: bare, type: 'function', function: { name: 'f', arguments: '{}' } }]
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', tool_calls: calls },
  ]
  const said = `No message follows the call ${bare}.`
  assert.equal(await tell('chat', said, { messages }), said)
  assert.equal(await tell('chat', said), generic)
  assert.equal(await tell('chat', said, { user: `${bare}1` }), generic)
})

test('E2, U9: an error with status 200 may come after the request is freed; ids are then recognised by their prefix', async () => {
  for (const wire of clientWireNames) {
    const [[said]] = wordings[wire] as [[string]]
    const error = { type: 'invalid_request_error', message: said }
    const frame = `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
    for (const [play, more] of [
      [whole({ error }), {}],
      [stream([frame]), { stream: true }],
    ] as const) {
      native.upstream.play(play)
      const { status, text } = await native.ask(wire, more)
      assert.equal(status, 400)
      assert.equal(JSON.parse(text).error.message, said)
    }
  }
})

test('B1, U11: 64 KB in a refusal, an error body or an error event are truncated before they are searched', async () => {
  for (const wire of clientWireNames) {
    const error = { type: 'invalid_request_error', message: 'a-'.repeat(32_000) }
    const frame = `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`
    for (const [play, more] of [
      [whole({ error }, 400), {}],
      [whole({ error }), {}],
      [stream([frame]), { stream: true }],
    ] as const) {
      native.upstream.play(play)
      const before = process.threadCpuUsage().user
      const { status, text } = await native.ask(wire, more)
      // It took 20 seconds. All of the rest, client and upstream included, takes a few milliseconds.
      assert.ok(process.threadCpuUsage().user - before < 1_000_000)
      assert.equal(status, 400)
      assert.equal([...JSON.parse(text).error.message].length, 400)
    }
  }
})

test('E7, U9: an upstream’s code model_not_found concerns our name for the model, at any status: 502 and an alarm', async () => {
  const error = {
    code: 'model_not_found',
    param: 'model',
    message: "The requested model 'gpt-5.2-proo' does not exist.",
  }
  const frame = `event: error\ndata: ${JSON.stringify({ type: 'error', error: { ...error, type: 'invalid_request_error' } })}\n\n`
  for (const wire of clientWireNames) {
    for (const [play, more] of [
      [whole({ error }, 400), {}],
      [whole({ error: { ...error, type: 'invalid_request_error' } }, 403), {}],
      [whole({ error }, 404), {}],
      [whole({ error: { ...error, type: 'invalid_request_error' } }), {}],
      [stream([frame]), { stream: true }],
    ] as const) {
      native.upstream.play(play)
      const { status, text, id } = await native.ask(wire, more)
      assert.equal(status, 502, text)
      assert.doesNotMatch(text, /requested|gpt/)
      assert.equal((await native.gateway.logOf(id))['cause'], 'upstream_model_not_found')
    }
  }
})

test('B22, U11: the key of the upstream account is never revealed', async () => {
  for (const wire of clientWireNames)
    assert.equal(await tell(wire, 'the credential upstream-key-1 was refused'), generic)
})

async function tell(wire: ClientWire, said: string, more: Record<string, unknown> = {}): Promise<string> {
  native.upstream.play(whole({ type: 'error', error: { type: 'invalid_request_error', message: said } }, 400))
  const { status, text } = await native.ask(wire, more)
  assert.equal(status, 400, text)
  return JSON.parse(text).error.message
}

/** What a model of one wire says, and what the client of another is told of it. */
const foreign: [model: ClientWire, said: string, told: Partial<Record<ClientWire, string>>][] = [
  [
    'chat',
    "messages[0]: the tool message 'call_a1' must follow an assistant message with 'tool_calls'",
    {
      responses: "input: the function_call_output 'call_a1' must follow an assistant message with 'function_call'",
      messages: "messages: the tool_result 'call_a1' must follow an assistant message with 'tool_use'",
    },
  ],
  [
    'messages',
    'messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks',
    {
      chat: 'messages: unexpected `tool_call_id` found in `tool message` blocks',
      responses: 'input: unexpected `call_id` found in `function_call_output` blocks',
    },
  ],
  [
    'responses',
    "Invalid value for input[3].content[1].image_url: 'x'. Lower max_output_tokens.",
    {
      chat: "Invalid value for messages: 'x'. Lower max_tokens.",
      messages: "Invalid value for messages: 'x'. Lower max_tokens.",
    },
  ],
  [
    'messages',
    'max_tokens: must be at most 64000',
    {
      chat: 'max_tokens: must be at most 64000',
      responses: 'max_output_tokens: must be at most 64000',
    },
  ],
  [
    'chat',
    'The messages are 9000 tokens long; response_format is not supported',
    { responses: 'The messages are 9000 tokens long; text.format is not supported' },
  ],
  [
    'messages',
    'stop_sequences: each stop sequence must contain non-whitespace; thinking.budget_tokens: Input should be at least 1024',
    {
      chat: "'stop': each stop sequence must contain non-whitespace; reasoning_effort: Input should be at least 1024",
    },
  ],
  [
    'chat',
    "'stop' is not supported with this model, so it cannot stop; use fewer tools",
    { messages: 'stop_sequences is not supported with this model, so it cannot stop; use fewer tools' },
  ],
]

test("N-F16 U2 spec 7.3 a refusal relayed between wires names the client's fields, and no field of the model's", async () => {
  for (const [model, said, told] of foreign) {
    for (const [wire, text] of Object.entries(told) as [ClientWire, string][]) {
      native.upstream.play(whole(JSON.stringify({ error: { type: 'invalid_request_error', message: said } }), 400))
      const asked = await native.ask(wire, { model: `native-${model}` })
      const { error } = JSON.parse(asked.text)
      assert.deepEqual([asked.status, error.message, error.param ?? null], [400, text, null], `${model} to ${wire}`)
    }
  }
})
