import assert from 'node:assert/strict'
import test from 'node:test'
import { noUsage } from '../../src/inference/usage.ts'
import type { WholeAnswer } from '../../src/wires/answers/relay.ts'
import { wires } from '../../src/wires/wires.ts'
import { named } from '../support/native.ts'
import { modelOf, routeOf } from './models.ts'

/* Models that an upstream names inside its usage object (BRK-7, spec 1.8). */

const counts = { input_tokens: 9, output_tokens: 3, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 }
const iterations = [
  { type: 'message', model: 'up', ...counts },
  { type: 'compaction', model: 'other-model', ...counts, advisor: [{ model: 'hosted-9' }] },
  { type: 'message', model: null },
  { type: 'message', model: 'up-2' },
]
const usage = { ...counts, iterations, output_tokens_details: { model: 'up' } }

function assertHidden(text: string): void {
  assert.doesNotMatch(text, /other-model|hosted-9|"up/)
  const models = text.match(/"model":("\w*"|null)/g)!
  assert.deepEqual(new Set(models), new Set(['"model":"m"', '"model":null']))
}

/** The model has another name at its second upstream. */
function headOf(wire: 'messages' | 'responses') {
  const model = modelOf(wire)
  const routes = ['up', 'up-2'].map((upstreamModel) => routeOf({ ...model, upstreamModel }))
  return {
    requestId: 'req_1',
    model: { ...model, routes },
    createdSeconds: 1_795_000_000,
    inputTokensEstimate: 11,
  }
}

const message = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'up',
  content: [],
  stop_reason: 'end_turn',
  usage,
}
const response = { id: 'resp_1', object: 'response', status: 'completed', model: 'up', output: [], usage }

for (const [wire, answer] of Object.entries({ messages: message, responses: response }) as [
  'messages' | 'responses',
  object,
][]) {
  test(`BRK-7 P2 models inside the usage of a ${wire} answer get the client's name, or none`, () => {
    const read = wires[wire].native.readAnswer(Buffer.from(JSON.stringify(answer)), headOf(wire))
    assert.equal(read.state, 'finished')
    const told = Buffer.from((read as Extract<WholeAnswer, { state: 'finished' }>).encode(noUsage)).toString()
    assertHidden(told)
    const models = JSON.parse(told).usage.iterations.map(({ model }: { model?: string }) => model)
    assert.deepEqual(models, ['m', undefined, null, 'm'])
  })

  test(`BRK-7 P2 models inside the usage of a ${wire} stream get the client's name, or none`, () => {
    const relay = wires[wire].native.openStream(headOf(wire))
    const events =
      wire === 'messages'
        ? [
            named({ type: 'message_start', message: { ...message, stop_reason: null } }),
            named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }),
            named({ type: 'message_stop' }),
          ]
        : [
            named({ type: 'response.created', response: { ...response, status: 'in_progress' } }),
            named({ type: 'response.completed', response }),
          ]
    const text = events.map((event) => relay.push(Buffer.from(event))).join('') + relay.end() + relay.finish(noUsage)
    assert.ok(text.includes('iterations'))
    assertHidden(Buffer.from(text, relay.encoding).toString())
  })
}
