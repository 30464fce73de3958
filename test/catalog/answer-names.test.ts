import assert from 'node:assert/strict'
import test from 'node:test'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import { isAnsweredBy } from '../../src/gateway/settle.ts'

const plain = resolveProfile('chat')

/** What is asked for, the answers that are by it, and those that are not. */
const rows: [asked: string, same: readonly string[], other: readonly string[]][] = [
  [
    'gpt-4o',
    ['gpt-4o', 'GPT-4o', 'gpt-4o-2024-08-06', 'openai/gpt-4o', 'openai/gpt-4o-2024-08-06'],
    ['gpt-4o-mini', 'gpt-4o-mini-2024-07-18', 'gpt-4', 'o', 'xgpt-4o', 'gpt-4o-2024-08', 'gpt-4o-audio-preview'],
  ],
  ['gpt-4', ['gpt-4-0613'], ['gpt-4-32k', 'gpt-4-1106-preview', 'gpt-4.1', 'gpt-4o']],
  ['gpt-4.1', ['gpt-4.1-2025-04-14'], ['1', '4.1', 'gpt-4.1-nano']],
  ['gpt-4o-2024-05-13', ['gpt-4o', 'gpt-4o-2024-05-13'], ['gpt-4o-2024-08-06', 'gpt-4o-mini']],
  ['openai/gpt-4o', ['gpt-4o', 'gpt-4o-2024-08-06'], ['azure/gpt-4o', 'openai/gpt-4o-mini']],
  [
    'claude-sonnet-4-5',
    ['claude-sonnet-4-5-20250929', 'claude-sonnet-4-5@20250929'],
    ['claude-opus-4-5', 'claude-sonnet-4'],
  ],
  ['claude-3-5-sonnet-latest', ['claude-3-5-sonnet-20241022'], ['claude-3-5-haiku-20241022']],
  ['claude-opus-4-0', ['claude-opus-4-20250514'], ['claude-opus-4-1-20250805']],
  [
    'us.anthropic.claude-3-7-sonnet-20250219-v1:0',
    ['claude-3-7-sonnet-20250219', 'anthropic.claude-3-7-sonnet-20250219-v1:0'],
    ['claude-3-7-sonnet-20250101', 'claude-3-opus'],
  ],
  [
    'us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0',
    ['claude-sonnet-4-5-20250929', 'anthropic.claude-sonnet-4-5-20250929-v1:0'],
    ['claude-haiku-4-5-20251001', 'sonnet-4-5-20250929'],
  ],
  [
    'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0',
    ['claude-sonnet-4-5-20250929', 'eu.anthropic.claude-sonnet-4-5-20250929-v1:0'],
    ['claude-haiku-4-5-20251001'],
  ],
  ['mistral-large', ['mistral-large-2411'], ['mistral-small-2501']],
  ['command-r', ['command-r-08-2024'], ['command-r-plus']],
  ['gemini-2.5-flash-preview', ['models/gemini-2.5-flash-preview-04-17'], ['gemini-2.5-pro-preview-05-06']],
  ['gemini-1.5-flash', ['gemini-1.5-flash-002'], ['gemini-1.5-flash-8b']],
  [
    'deepseek/deepseek-r1:free',
    ['deepseek/deepseek-r1:free', 'deepseek/deepseek-r1', 'deepseek-r1'],
    ['deepseek/deepseek-r1:nitro'],
  ],
  ['deepseek-v3', ['deepseek-v3'], ['deepseek', 'deepseek-v2']],
  ['Qwen/Qwen3-8B', ['/models/Qwen/Qwen3-8B', 'qwen3-8b'], ['Qwen/Qwen3-80B', 'lora-x']],
]

for (const [asked, same, other] of rows) {
  test(`Y13 the name in an answer shows whether ${asked} made it`, () => {
    const by = (name: string) => isAnsweredBy(name, { upstreamModel: asked, profile: plain })
    assert.deepEqual([...same.filter((name) => !by(name)), ...other.filter(by)], [])
  })
}

test('Y13 a profile adds further names, in any case and with an asterisk for any letters', () => {
  const profile = { ...plain, answerNames: ['house-*', 'gpt-4o'] }
  const by = (name: string) => isAnsweredBy(name, { upstreamModel: 'deployment-7', profile })
  assert.deepEqual(['House-1', 'gpt-4o', 'gpt-4o-mini', 'my-house-1'].map(by), [true, true, false, false])
  assert.ok(isAnsweredBy('/models/some.gguf', { upstreamModel: 'any', profile: resolveProfile('chat', 'llama-cpp') }))
})
