import assert from 'node:assert/strict'
import test from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { testModel } from '../support/gateway.ts'
import { startNative } from '../support/native.ts'
import { whole } from '../support/raw-upstream.ts'
import { liteLlm, llamaCpp } from '../support/recorded.ts'

/* What real servers refuse a request with, through the whole gateway. */

const settings = { profile: 'llama-cpp', upstream_model: 'tiny' }

test('U8 llama.cpp’s 500 for an image becomes the client’s 400 in the server’s words, without a second attempt', async () => {
  const { upstream, ask } = await startNative({
    models: clientWireNames.map((wire) => testModel(`native-${wire}`, wire, settings)),
  })
  for (const wire of clientWireNames) {
    upstream.play(whole(llamaCpp('image-500.json'), 500))
    const { status, text, headers } = await ask(wire)
    const { error } = JSON.parse(text) as { error: Record<string, unknown> }
    assert.equal(status, 400)
    assert.equal(
      error['message'],
      'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
    )
    assert.equal(headers.get('x-should-retry'), 'false')
    assert.equal(upstream.requests.length, 1)
  }
})

test('U3 llama.cpp’s refusal of an over-long prompt is returned in words that agents recognise', async () => {
  const { upstream, ask } = await startNative({
    models: clientWireNames.map((wire) => testModel(`native-${wire}`, wire, settings)),
  })
  for (const wire of clientWireNames) {
    upstream.play(whole(llamaCpp('too-long-400.json'), 400))
    const { status, text } = await ask(wire)
    assert.equal(status, 400)
    assert.match(text, /"prompt is too long: 150019 tokens > 8192 maximum"/)
  }
})

const startLiteLlm = () =>
  startNative({
    models: clientWireNames.map((wire) =>
      testModel(`native-${wire}`, wire, { profile: 'litellm', upstream_model: 'nomodel' }),
    ),
  })

/** What it says on chat and responses; on messages its text is the same, in an envelope of the wire. */
const inEnvelope = (file: string, wire: string): string => {
  if (wire !== 'messages') return liteLlm(file)
  const { message } = (JSON.parse(liteLlm(file)) as { error: { message: string } }).error
  return JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } })
}

const wrapped: [file: string, status: number, message: string][] = [
  [
    'image-500.json',
    500,
    'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
  ],
  [
    'image-openai-500.json',
    500,
    'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj',
  ],
  ['too-long-400.json', 400, 'prompt is too long: 20019 tokens > 8192 maximum'],
]

for (const [file, from, message] of wrapped) {
  test(`U8 U3 LiteLLM’s ${file} is returned in the words of the model server, and names no vendor`, async () => {
    const { upstream, ask } = await startLiteLlm()
    for (const wire of clientWireNames) {
      upstream.play(whole(inEnvelope(file, wire), from))
      const { status, text } = await ask(wire)
      assert.equal(status, 400)
      assert.equal((JSON.parse(text) as { error: { message: string } }).error.message, message)
      assert.doesNotMatch(text, /litellm|vllm|openai|group/i)
      assert.equal(upstream.requests.length, 1)
    }
  })
}

for (const [file, status, what] of [
  ['wrong-key-400.json', 503, 'a key that it does not know, which it answers with 400,'],
  ['unknown-model-400.json', 502, 'a model that it does not have, which it answers with 400,'],
] as const) {
  test(`U2 LiteLLM’s error about ${what} is not blamed on the client`, async () => {
    for (const wire of clientWireNames) {
      const { upstream, ask } = await startLiteLlm()
      upstream.play(whole(inEnvelope(file, wire), 400))
      const answer = await ask(wire)
      assert.equal(answer.status, status)
      assert.doesNotMatch(answer.text, /connected db|invalid model|litellm/i)
    }
  })
}
