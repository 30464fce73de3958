import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Case, Reply } from '../../conformance/src/case.ts'
import { hasFailingModel } from '../../conformance/src/run.ts'

const event = (data: object) => ({ data: data as never })

/** Replies of a model, and whether a gateway may leave the model alone for a while after them. */
const replies: [what: string, reply: Reply, fails: boolean][] = [
  ['an answer', { answer: { text: 'Hi' } }, false],
  ['a body', { json: { error: null } }, false],
  ['a stream', { events: [event({ a: 1 }), event({ b: 1 })] }, false],
  ['a pause', { events: [event({ a: 1 }), { pauseMs: 5 }, event({ b: 1 })] }, false],
  ['a refusal', { status: 400, json: {} }, true],
  ['a cut body', { json: {}, cutAfterBytes: 9 }, true],
  ['a cut stream', { events: [event({ a: 1 }), { cut: true }] }, true],
  ['a stream without an end', { events: [event({ a: 1 }), { hang: true }] }, true],
  ['an error event', { events: [event({ a: 1 }), event({ type: 'error', error: { type: 'x' } })] }, true],
  ['an error chunk', { events: [event({ a: 1 }), event({ error: { message: 'x' } })] }, true],
  ['a failed response', { events: [event({ a: 1 }), event({ type: 'response.failed' })] }, true],
  ['an empty stream', { events: [] }, true],
]

for (const [what, reply, fails] of replies) {
  test(`a model that sends ${what} ${fails ? 'runs after the others' : 'runs at its place'}`, () => {
    const one = {
      client: { chat: { steps: [{ request: {}, expect: { status: 200 } }] } },
      model: { chat: { exchanges: [{ reply }] } },
    }
    assert.equal(hasFailingModel(one as unknown as Case), fails)
  })
}

test('a case that expects another status than 200 runs after the others', () => {
  const one = {
    client: { chat: { steps: [{ request: {}, expect: { status: { $oneOf: [500, 502] } } }] } },
    model: { chat: { exchanges: [{ reply: { json: {} } }] } },
  }
  assert.equal(hasFailingModel(one as unknown as Case), true)
})
