import assert from 'node:assert/strict'
import test from 'node:test'
import { scrub } from '../../src/upstream/scrub.ts'
import { failedCode } from '../../src/wires/responses/output-item.ts'
import { nothing } from './scrub-context.ts'

const say = (text: string, code?: string, upstreamModel = 'up-1') =>
  scrub(text, { ...nothing, modelId: 'sonnet-mini', upstreamModels: [upstreamModel], ...(code && { code }) })

const llama = 'request (150019 tokens) exceeds the available context size (8192 tokens), try increasing it'
const wrapped = (text: string) =>
  `litellm.ContextWindowExceededError: litellm.BadRequestError: OpenAIException - ${text}. Received Model Group=tiny`

/** What a server says; what the client is told, in the words that agents know. */
const wordings: [said: string, told: string, code?: string][] = [
  [llama, 'prompt is too long: 150019 tokens > 8192 maximum', 'exceed_context_size_error'],
  [wrapped(llama), 'prompt is too long: 150019 tokens > 8192 maximum'],
  [
    wrapped('{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}'),
    'prompt is too long: 210000 tokens > 200000 maximum',
  ],
  [
    wrapped('Your input exceeds the context window of this model. Please adjust your input and try again'),
    'Your input exceeds the context window of this model. Please adjust your input and try again',
  ],
  [
    wrapped('input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length'),
    'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length',
  ],
  [
    'vLLM: The decoder prompt (length 9000) is longer than the maximum model length of 8192.',
    "This model's maximum context length is 8192 tokens. The messages have 9000 tokens.",
  ],
  [
    "You passed 5001 input tokens and requested 100 output tokens. However, the model's context length is only 2048 tokens",
    "This model's maximum context length is 2048 tokens. The messages have 5001 tokens.",
  ],
  [
    'The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger context length, or provide a shorter input.',
    'prompt is too long: 13055 tokens > 4096 maximum',
  ],
  ['The number of tokens to keep from the initial prompt is greater than the context length.', 'prompt is too long'],
  ['Cannot truncate prompt with n_keep (15028) >= n_ctx (7424)', 'prompt is too long: 15028 tokens > 7424 maximum'],
  [
    'Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.',
    'prompt is too long: 10136 tokens > 7866 maximum',
  ],
  ['prompt too long; exceeded max context length by 512 tokens', 'prompt is too long'],
  ['prompt too long; exceeded context length', 'prompt is too long'],
  [
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`',
    'input length and `max_tokens` exceed context limit: 5000 + 20 > 4096',
  ],
  ['`inputs` tokens + `max_new_tokens` must be <= 4096', "This model's maximum context length is 4096 tokens."],
  ['see worker:8080', "The prompt exceeds this model's maximum context length.", 'context_length_exceeded'],
  ['too long', "The prompt exceeds this model's maximum context length.", 'context_length_exceeded'],
]

for (const [said, told, code] of wordings) {
  test(`U3 an over-long prompt is reported in words that agents recognise: ${said.slice(0, 60)}`, () => {
    assert.equal(say(said, code), told)
    assert.equal(failedCode({ status: 400, code: 'invalid_request', message: told }), 'context_length_exceeded')
  })
}

test('U3 words that agents recognise are relayed unchanged, whatever the code', () => {
  const told = 'Your input exceeds the context window of this model. Please adjust your input and try again.'
  assert.equal(say(told, 'context_length_exceeded'), told)
  assert.equal(failedCode({ status: 400, code: 'invalid_request', message: told }), 'context_length_exceeded')
  assert.equal(say('max_tokens is too large: 9 > 8', 'invalid_request_error'), 'max_tokens is too large: 9 > 8')
})

test('U3 the model’s name is replaced before links are searched, so that a name like a host removes no sentence', () => {
  assert.equal(
    say('The model acme.ai/small takes no images, see the guide for acme.ai/small.', undefined, 'acme.ai/small'),
    'The model sonnet-mini takes no images, see the guide for sonnet-mini.',
  )
})

test('U3 an ordinary word is taken as the model’s name if a refusal begins with it, or calls it a model (vLLM)', () => {
  assert.equal(say('tiny is not a multimodal model', undefined, 'tiny'), 'sonnet-mini is not a multimodal model')
  assert.equal(say('The model tiny takes no tools', undefined, 'tiny'), 'The model sonnet-mini takes no tools')
  assert.equal(say('The image is tiny', undefined, 'tiny'), 'The image is tiny')
})
