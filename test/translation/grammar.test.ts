import assert from 'node:assert/strict'
import test from 'node:test'
import { checkChatStream, checkMessagesStream, checkResponsesStream } from './grammar.ts'
import { type ClientWire, pump, wires } from './pump.ts'
import { streamSeeds } from './seeds.ts'

/** A sound stream for a client: text and two calls that interleave. */
function sound(client: ClientWire): string {
  return pump(client, 'chat', streamSeeds.chat[1]!, { showsReasoning: true }).text
}

for (const client of ['messages', 'chat', 'responses'] as const) {
  test(`translation 4.6 a ${client} stream that lacks, doubles or swaps a frame is detected`, () => {
    const frames = sound(client).split('\n\n').slice(0, -1)
    const check = (changed: string[]) => wires[client].check(changed.map((frame) => `${frame}\n\n`).join(''))
    assert.deepEqual(check(frames), [])
    for (const [at, frame] of frames.entries()) {
      // A lost or doubled delta leaves a sound stream on the wires that do not repeat their text.
      const isDelta =
        /_delta"|"content":"|"reasoning_content":"|"arguments":"[^"]/.test(frame) &&
        !frame.includes('"role"') &&
        !frame.includes('message_delta')
      // The responses wire may leave out `in_progress`, but then its numbers have a gap.
      if (!(isDelta && client !== 'responses')) {
        assert.notDeepEqual(check(frames.toSpliced(at, 1)), [], `without ${frame}`)
        assert.notDeepEqual(check(frames.toSpliced(at, 0, frame)), [], `twice ${frame}`)
      }
    }
  })
}

test('translation 4.6 a cut stream must not look finished', () => {
  const chunk =
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'
  const error = 'data: {"error":{"message":"m","type":"api_error","param":null,"code":"upstream_error"}}\n\n'
  assert.deepEqual(checkChatStream(chunk + error), [])
  assert.deepEqual(checkChatStream(chunk), ['no [DONE], no error'])
  assert.deepEqual(checkChatStream(`${chunk}${error}data: [DONE]\n\n`)[0], '[DONE] after an error')
  assert.deepEqual(checkMessagesStream(sound('messages').replace(/event: message_stop[\s\S]*/, '')), [
    'ends with message_delta',
  ])
  assert.ok(
    checkResponsesStream(sound('responses').replace(/event: response\.completed[\s\S]*/, '')).includes(
      'no terminal event',
    ),
  )
  assert.ok(checkMessagesStream(sound('messages').slice(0, -1)).includes('the stream ends inside a frame'))
})
