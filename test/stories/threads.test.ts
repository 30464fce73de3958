import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import { clientWireNames } from '../../src/catalog/wire-names.ts'
import { testModel } from '../support/gateway.ts'
import { type Native, startNative } from '../support/native.ts'
import { assertQuiet } from '../support/quiet.ts'
import { whole } from '../support/raw-upstream.ts'

let native: Native
before(async () => {
  native = await startNative({ models: clientWireNames.map((wire) => testModel(`native-${wire}`, wire)) })
})
after(() => native.close())

const threads: [string, unknown][] = [
  ['create', { type: 'create' }],
  ['continue', { type: 'continue', previous_message_id: 'msg_1' }],
  ['no type we know', { type: 'canary-new' }],
  ['true instead of an object', true],
]
for (const [name, thread] of threads) {
  test(`A1, T22: a thread of ${name} is refused by every model, in the words that make SDKs send the whole conversation`, async () => {
    for (const wire of clientWireNames) {
      native.upstream.play(whole({}))
      const asked = await native.ask('messages', { model: `native-${wire}`, thread })
      const { error, type } = JSON.parse(asked.text)
      assert.deepEqual(
        { status: asked.status, type, error: error.type, details: error.details },
        {
          status: 400,
          type: 'error',
          error: 'invalid_request_error',
          details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
        },
      )
      assert.match(error.message, /thread/)
      assert.doesNotMatch(error.message, /canary-|thread: false/)
      assert.equal(native.upstream.requests.length, 0, 'nothing is stored at the provider either')
      const line = await native.gateway.logOf(asked.id)
      assert.equal(line['code'], 'invalid_body')
    }
    await assertQuiet(native.gateway)
  })
}

for (const thread of [false, null]) {
  test(`T22 a thread of ${thread} counts as absent`, async () => {
    for (const wire of clientWireNames) {
      native.upstream.play(whole({ error: { message: 'it was asked' } }, 400))
      const { text } = await native.ask('messages', { model: `native-${wire}`, thread })
      assert.match(text, /it was asked/)
    }
  })
}

for (const code of ['thread_not_found', 'thread_already_continued', 'thread_continue_in_flight']) {
  test(`T22 a provider’s error about its threads, ${code}, reaches the SDK, which can correct it`, async () => {
    const error = {
      type: 'invalid_request_error',
      message: 'Not that.',
      details: { error_code: code, secret: 'canary-x' },
    }
    native.upstream.play(whole({ type: 'error', error }, 400))
    const { status, text } = await native.ask('messages')
    assert.equal(status, 400)
    assert.deepEqual(JSON.parse(text).error.details, { error_code: code })
  })
}

test('T22 no other detail of a provider is returned', async () => {
  const error = { type: 'invalid_request_error', message: 'Not that.', details: { error_code: 'canary-other' } }
  native.upstream.play(whole({ type: 'error', error }, 400))
  const { text } = await native.ask('messages')
  assert.ok(!('details' in JSON.parse(text).error), text)
})
