import assert from 'node:assert/strict'
import test from 'node:test'
import { testModel } from '../support/gateway.ts'
import { startNative, wireNames } from '../support/native.ts'
import { whole } from '../support/raw-upstream.ts'
import { llamaCpp } from '../support/recorded.ts'

/* What real servers refuse a request with, through the whole gateway. */

const settings = { profile: 'llama-cpp', upstream_model: 'tiny' }

test('U8 llama.cpp’s 500 for an image is the client’s 400 in the server’s words, asked once and not again', async () => {
  const { upstream, ask } = await startNative({
    models: wireNames.map((wire) => testModel(`native-${wire}`, wire, settings)),
  })
  for (const wire of wireNames) {
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

test('U3 llama.cpp’s refusal of an over-long prompt is told in words that agents know', async () => {
  const { upstream, ask } = await startNative({
    models: wireNames.map((wire) => testModel(`native-${wire}`, wire, settings)),
  })
  for (const wire of wireNames) {
    upstream.play(whole(llamaCpp('too-long-400.json'), 400))
    const { status, text } = await ask(wire)
    assert.equal(status, 400)
    assert.match(text, /"prompt is too long: 150019 tokens > 8192 maximum"/)
  }
})
