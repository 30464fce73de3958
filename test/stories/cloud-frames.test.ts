import assert from 'node:assert/strict'
import test from 'node:test'
import { frameType } from '../../src/clouds/event-frames.ts'
import { chunkOf, exceptionOf, frameOf } from '../support/event-frames.ts'
import { startTestGateway, testModel } from '../support/gateway.ts'
import { paths } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { startRawUpstream, stream } from '../support/raw-upstream.ts'

/* Streams in Amazon's frames, as `InvokeModel` sends them, with a whole gateway in between (clouds 2). */

const delta = (text: string) => ({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } })
const metrics = { inputTokenCount: 9, outputTokenCount: 3, invocationLatency: 800, firstByteLatency: 200 }
const events = [
  {
    type: 'message_start',
    message: {
      ...{ id: 'msg_bdrk_1', type: 'message', role: 'assistant', model: 'claude', content: [] },
      ...{ stop_reason: null, stop_sequence: null },
      usage: { input_tokens: 9, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  delta('Hé'),
  delta(' 😀'),
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
  { type: 'message_stop', 'amazon-bedrock-invocationMetrics': metrics },
]
const whole = events.map((event) => chunkOf(event))
const begun = whole.slice(0, 4)
const framed = (...frames: Buffer[]) => stream([Buffer.concat(frames)], { headers: { 'content-type': frameType } })
const model = testModel('m', 'messages', { profile: 'anthropic' })
const ask = { model: 'm', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] }

async function open() {
  const upstream = await startRawUpstream()
  const gateway = await startTestGateway({ models: [model], upstreamUrl: upstream.url })
  const post = async (wire: keyof typeof paths, isStream: boolean) => {
    const body = wire === 'responses' ? { model: 'm', input: 'Hi' } : ask
    const response = await gateway.post(paths[wire], { ...body, stream: isStream })
    const text = await response.text()
    return { status: response.status, text, log: await gateway.logOf(response.headers.get('x-request-id')!) }
  }
  return { upstream, gateway, post }
}

test('clouds 2 a framed stream becomes an answer on every wire, whole and streamed, without the figures of its host', async () => {
  const { upstream, gateway, post } = await open()
  for (const wire of ['messages', 'chat', 'responses'] as const)
    for (const isStream of [true, false]) {
      upstream.play(framed(...whole))
      const { status, text, log } = await post(wire, isStream)
      const about = `${wire} ${isStream}: ${text}`
      assert.equal(status, 200, about)
      assert.match(text, /Hé/, about)
      assert.match(text, /😀/, about)
      assert.doesNotMatch(text, /amazon|invocationMetrics|bytes"|bdrk/, about)
      assert.equal(log['outcome'], 'ok', about)
    }
  await assertQuiet(gateway)
})

test('clouds 2 pieces of any size make the same answer', async () => {
  const { upstream, gateway, post } = await open()
  const bytes = Buffer.concat(whole)
  const sizes = [1, 7, 100, 333, bytes.length - 1]
  const texts = new Set<string>()
  for (const size of sizes) {
    const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    )
    upstream.play(stream(pieces, { headers: { 'content-type': frameType } }))
    const { status, text } = await post('messages', true)
    assert.equal(status, 200)
    texts.add(text.replace(/msg_\w+/g, 'id'))
  }
  assert.equal(texts.size, 1)
  await assertQuiet(gateway)
})

const exceptions: [name: string, said: Record<string, unknown>, status: number][] = [
  ['throttlingException', { message: 'Too many tokens' }, 429],
  ['serviceUnavailableException', { message: 'busy' }, 502],
  ['internalServerException', { message: 'broke' }, 502],
  ['modelTimeoutException', { message: 'slow' }, 502],
  ['modelStreamErrorException', { message: 'broke' }, 502],
  ['modelStreamErrorException', { message: 'x', originalStatusCode: 529, originalMessage: 'Overloaded' }, 429],
  ['modelStreamErrorException', { message: 'x', originalStatusCode: 400, originalMessage: 'prompt is too long' }, 400],
  ['validationException', { message: 'max_tokens: must be greater than 0' }, 400],
]

test('clouds 2 an exception in the first frame is a refusal judged by its name; after text, it cuts the stream with an error', async () => {
  const { upstream, gateway, post } = await open()
  for (const [name, said, expected] of exceptions) {
    upstream.play(framed(exceptionOf(name, said)))
    const first = await post('messages', true)
    assert.equal(first.status, expected, `${name}: ${first.text}`)
    upstream.play(framed(...begun, exceptionOf(name, said)))
    const later = await post('messages', true)
    assert.equal(later.status, 200)
    assert.match(later.text, /Hé[\s\S]*event: error\n/, name)
    assert.doesNotMatch(later.text, /message_stop|Exception/, name)
  }
  const error = { ':message-type': 'error', ':error-code': 'InternalServerException', ':error-message': 'broke' }
  upstream.play(framed(frameOf(error, '')))
  assert.equal((await post('messages', true)).status, 502)
  await assertQuiet(gateway)
})

test('clouds 2 a framed stream that ends early, within a frame, or with a wrong checksum is a cut answer', async () => {
  const { upstream, gateway, post } = await open()
  const flipped = Buffer.from(whole[4]!)
  flipped[20]! ^= 1
  const cuts = [begun, [...begun, whole[4]!.subarray(0, 30)], [...begun, flipped, ...whole.slice(5)]]
  for (const frames of cuts) {
    upstream.play(framed(...frames))
    const { text, log } = await post('messages', true)
    assert.match(text, /Hé[\s\S]*😀[\s\S]*event: error\n/)
    assert.doesNotMatch(text, /message_stop/)
    assert.equal(log['outcome'], 'upstream_cut')
  }
  // Chunks without an event show nothing, and frames of other kinds are passed over.
  const others = [chunkOf({ note: 'none' }), frameOf({ ':message-type': 'event', ':event-type': 'initial' }, '{}')]
  upstream.play(framed(...others, ...whole))
  assert.equal((await post('messages', true)).status, 200)
  await assertQuiet(gateway)
})
