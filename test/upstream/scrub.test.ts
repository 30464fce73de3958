import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { readRetryAfter } from '../../src/upstream/refusal.ts'
import { isKeyLike } from '../../src/upstream/revealing.ts'
import { scrub } from '../../src/upstream/scrub.ts'
import { nothing } from './scrub-context.ts'

const context = { modelId: 'sonnet-mini', upstreamModels: ['vendor-sonnet-20991231'], ...nothing }
const say = (text: string) => scrub(text, context)

const revealing = [
  'See https://docs.example.com/errors for details',
  'Request to http://10.1.2.3:8000/v1/messages failed',
  'postgres://user:pw@db/x is down',
  'Contact support@example.com',
  'Write to jane.doe+bill@corp.example',
  'upstream 10.0.0.12 refused',
  'connect ECONNREFUSED 127.0.0.1:8000',
  'connect to [2001:db8::ff00:42:8329] failed',
  'host fe80::1 unreachable',
  'api.provider.com says no',
  'gateway-7.internal timed out',
  'inference.prod.svc is not ready',
  'vllm-0.vllm.default.svc.cluster.local: no route',
  'localhost refused the connection',
  'worker:8080 is down',
  'edge1.example.tech answered 500',
  'node7.gpu.run answered',
  'Invalid API key: sk-ant-api03-abcdef',
  'Incorrect API key provided: sk-proj-abc123def',
  'Bearer abcdef123456 is not valid',
  'key gsk_abcDEF1234567890 expired',
  'token AIzaSyA1234567890abcdefghijklmnopqrst is invalid',
  'invalid credential a8f5f167f44f4964e6c998dee827110c',
  'xai-1234567890abcdef is revoked',
  'ghp_16C7e42F292c6912E7710c838347Ae178B4a',
  'hf_abcdefghijklmnop is not a valid token',
  'AKIAIOSFODNN7EXAMPLE is not authorized',
  'Organization org-AbC123xyz is over its quota',
  'organization 7f3b2c1d-1111-2222-3333-444455556666 disabled',
  'project proj_abc12345 has no access',
  'Project id is missing on our side',
  'account acct_1Nv0FGQ9RKHgCVdK is past due',
  'Your organization id does not match',
  'deployment dep-gpt5-eu1 not ready',
  'request req_011CSHoEeqs5C35K2UUqR7Fy failed',
  'request_id req-8f2a1b9c failed',
  'tenant tenant-4711x is locked',
  'workspace wrkspc_01JwQvzr7rXLA5AGx3HKfFUJ is at its limit',
  'arn:aws:iam::123456789012:role/x is not authorized',
  'AWS account 123456789012 is throttled',
  'subscription 00000000-0000-0000-0000-000000000000 disabled',
  'capacity in us-east-1 is exhausted',
  'region europe-west4 has no capacity',
  'eu-central-1 is down',
  'Rate limit reached for org-abcDEF123',
  'Rate limit reached for org_1a2b3c',
  'No access for proj_AbCdEfGh',
  'see req_a1b2c3',
  'the key AIzaSyAJaC2_HRoQlWY is not valid',
  'the token ya29.a0AfH6SMBx has ended',
  'AKIAIOSFODNN7EXAMPLE is not known',
  'nvapi-abcdEFGH is not known',
  'projects/12345678/models/x is full',
  'Permission denied on projects/acme-prod',
  'no quota for /subscriptions/4711aa/resourceGroups/x',
  'ap-northeast-2 throttled',
  'the model is not deployed in eastus2',
  'swedencentral is at capacity',
  'Anthropic is temporarily overloaded',
  'OpenAI returned an error',
  'Azure content management policy',
  'AWS Bedrock throttled the model',
  'Vertex AI error',
  'Google quota exceeded',
  'DeepSeek server busy',
  'Groq rate limit',
  'vLLM engine died',
  'SGLang scheduler is full',
  'llama.cpp slot unavailable',
  'LiteLLM.BadRequestError: bad field',
  'Cloudflare error 1020',
  'nginx/1.25.3 bad gateway',
  'Mistral API error',
  'Fireworks model not loaded',
  'TensorRT-LLM: shape mismatch',
  'Perplexity does not accept this value',
  'Cerebras queue is full',
  'Hugging Face endpoint is paused',
  'DeepInfra does not serve this model',
  'Zhipu AI: invalid parameter',
  'Portkey: all targets failed',
  'served by Vercel AI Gateway',
  'watsonx.ai project is missing',
  'File "/usr/lib/python3.11/site-packages/engine.py", line 3',
  'open /etc/secrets/key: permission denied',
  'C:\\models\\weights.bin is missing',
  'at ./src/server/handler.ts:42',
  'The model vendor-sonnet-20991231-001 does not support tools',
  'no such file: models--VENDOR-SONNET-20991231x',
]

const harmless = [
  'org-level settings, user-defined tools and a user_name of 12 letters are allowed',
  'messages.0.content.1.text: Input should be a valid string',
  'messages: roles must alternate between "user" and "assistant"',
  'max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens',
  'prompt is too long: 210000 tokens > 200000 maximum',
  "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
  'tools.3.custom.input_schema: JSON schema is invalid',
  "Invalid value: 'foo'. Supported values are: 'low', 'medium', and 'high'.",
  "Unsupported parameter: 'temperature' is not supported with this model.",
  "Unknown parameter: 'messages[0].foo'.",
  'temperature: range: 0..1',
  'stop_sequences.0: each stop sequence must contain non-whitespace',
  'The model sonnet-mini does not support images.',
  '`tool_use` ids were found without `tool_result` blocks immediately after: toolu_1, toolu_2',
  "An assistant message with 'tool_calls' must be followed by tool messages. (call_1)",
  'Invalid image: media type image/webp does not match the data',
  'thinking.budget_tokens: Input should be greater than or equal to 1024',
  'messages.5.content.0.tool_result.content: at most 20 images',
  'Extra inputs are not permitted: context_management',
  'top_p and temperature cannot both be set; ratio 1.5 e.g. too high',
  'Die Eingabe ist zu lang. 输入太长 ✨',
  "Invalid schema for function 'get_weather': 'city' is not of type 'object', 'boolean'",
  "Invalid 'input[2].content[0].text': string too long. Expected a string with maximum length 10485760, but got 10485761 instead.",
  'Image dimensions 12000x3000 exceed 8000 pixels; ratio must be 3:2 or 16:9',
  'output_config.format.schema: required is missing at properties.user.address',
  "Tool 'github' was not found; the perplexity of the text is not reported",
  "Input at line 3 column 14: expected ',' or ']'",
]

test('U3 at least 60 texts that reveal where or by whom the service is hosted become the generic one', () => {
  assert.ok(revealing.length >= 60)
  assert.deepEqual(
    revealing.filter((text) => say(text) !== 'generic'),
    [],
  )
})

test('U3 the names of all providers on the page of providers are hidden, except Qwen, which names open models too', () => {
  const page = readFileSync(new URL('../../docs/providers.md', import.meta.url), 'utf8')
  const rows = page
    .split('## Addresses')[1]!
    .split('\n## ')[0]!
    .matchAll(/^\| ([^|,]+?)(?:, [^|]*)? \| `base_url/gm)
  const names = new Set(Array.from(rows, ([, name]) => name!.replace(/ \(.*/, '')))
  assert.ok(names.size >= 20)
  assert.deepEqual(
    [...names].filter((name) => say(`${name} does not accept this value.`) !== 'generic'),
    ['Qwen'],
  )
})

test('U3 a word of letters and digits counts as a key from 28 characters on', () => {
  assert.deepEqual(
    [27, 28].map((length) => isKeyLike('a1'.repeat(14).slice(0, length))),
    [false, true],
  )
})

test('U3 at least 20 texts about the request pass unchanged', () => {
  assert.ok(harmless.length >= 20)
  assert.deepEqual(
    harmless.filter((text) => say(text) !== text),
    [],
  )
})

test('U3 the upstream’s name of the model becomes the client’s, whatever its case', () => {
  assert.equal(say('The model `vendor-sonnet-20991231` takes no tools'), 'The model `sonnet-mini` takes no tools')
  assert.equal(say('no images for VENDOR-SONNET-20991231.'), 'no images for sonnet-mini.')
  const short = (upstreamModel: string, text: string) =>
    scrub(text, { ...nothing, modelId: 'fast', upstreamModels: [upstreamModel] })
  assert.equal(short('up', "Look it up: 'up' takes no images"), "Look it up: 'fast' takes no images")
  assert.equal(short('o3', 'o3 takes no images'), 'fast takes no images')
  assert.equal(short('o3', 'o3-2025 takes no images'), 'generic')
})

test('U3 an over-long prompt is reported in the words that agents recognise, also around its numbers', () => {
  const cases = [
    [
      'prompt is too long: 210000 tokens > 200000 maximum (req_011CSHoEeqs5C35K2UUqR7Fy)',
      'prompt is too long: 210000 tokens > 200000 maximum',
    ],
    ['Anthropic: Prompt is too long', 'prompt is too long'],
    [
      "vLLM: This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
      "This model's maximum context length is 8192 tokens. The messages have 9000 tokens.",
    ],
    ['https://x.example: exceeds maximum context length', "The prompt exceeds this model's maximum context length."],
  ]
  for (const [text, said] of cases) assert.equal(say(text!), said)
})

test('U3 at most 400 characters are relayed, without control characters', () => {
  assert.equal([...say('é😀'.repeat(300))].length, 400)
  assert.equal(say('a\r\nb\u0000c'), 'a b c')
  assert.equal(say(' \n'), 'generic')
})

test('F-U16 retry-after of an upstream: seconds or a date, five minutes at most, else unknown', () => {
  const now = Date.parse('2026-11-21T10:00:00Z')
  const cases: [retryAfter: string | undefined, seconds: number | undefined, ms?: string][] = [
    ['7', 7],
    [' 7 ', 7],
    ['0', 1],
    ['99999999', 300],
    ['200', 200],
    ['-3', undefined],
    ['garbage', undefined],
    ['', undefined],
    [undefined, undefined],
    ['Sat, 21 Nov 2026 10:00:09 GMT', 9],
    ['Sat, 21 Nov 2026 09:00:00 GMT', undefined],
    ['Sun, 22 Nov 2026 10:00:00 GMT', 300],
    ['1.5', 2],
    ['7.5', 8],
    ['0.2', 1],
    ['0.0', 1],
    ['-0.5', undefined],
    ['1.5e3', undefined],
    [undefined, 1, '20'],
    [undefined, 8, '7500'],
    ['9', 3, '2000.5'],
    ['9', 9, '0'],
    ['9', 9, 'soon'],
    ['9', 9, '-1'],
    ['Sat, 21 Nov 2026 10:00:09 GMT', 2, '1500'],
    [undefined, 300, '999999999'],
    ['garbage', undefined, 'garbage'],
  ]
  for (const [value, seconds, ms] of cases) {
    const headers = new Map(Object.entries({ 'retry-after': value, 'retry-after-ms': ms }))
    assert.equal(readRetryAfter(headers, now), seconds, `${value} ${ms}`)
  }
})

test('U3 a short model id that is a part of a host, key or id does not hide it', () => {
  const short = (text: string) => scrub(text, { modelId: 'c', upstreamModels: ['c-up'], ...nothing })
  assert.equal(short('host api.example.com is down'), 'generic')
  assert.equal(short('key sk-abcdef123456 is bad'), 'generic')
  assert.equal(short('org-abc12345 is over its limit'), 'generic')
  assert.equal(short('the model c takes no images'), 'the model c takes no images')
})

test('U3 the model id in quotes or at a sentence end is the client’s own', () => {
  const own = (text: string) => scrub(text, { modelId: 'openai', upstreamModels: ['x-1'], ...nothing })
  assert.equal(own('The model "openai" takes no images.'), 'The model "openai" takes no images.')
  assert.equal(own('No images for openai.'), 'No images for openai.')
  assert.equal(own('See api.openai.com'), 'generic')
})

test('U3 if upstream and client use the same name for a model, it counts as the client’s own and as no hosting word', () => {
  const own = (text: string) =>
    scrub(text, { modelId: 'our-sonnet', upstreamModels: ['our-sonnet', 'v-9'], ...nothing })
  for (const text of ['our-sonnet-preview takes no images', 'The model our-sonnet takes no images', 'x/our-sonnet'])
    assert.equal(own(text), text)
  assert.equal(own('v-9 takes no images'), 'our-sonnet takes no images')
})

test('U3 LiteLLM’s wrapper around another server’s words is removed, and these are judged as usual', () => {
  const wrap = (words: string) =>
    `litellm.BadRequestError: BadRequestError: Hosted_vllmException - ${words}\n\nLiteLLM: model group 'x' failed with the error above.`
  const said = 'temperature must be a number'
  assert.equal(say(wrap(said)), said)
  assert.equal(say(wrap(JSON.stringify({ error: { message: said, code: 400 } }))), said)
  assert.equal(say(wrap(JSON.stringify({ message: said }))), said)
  for (const words of ['{"error":{"message":"cut', '{"error":{}}', '', 'no route to vllm-0.internal']) {
    assert.equal(say(wrap(words)), nothing.generic, words)
  }
})
