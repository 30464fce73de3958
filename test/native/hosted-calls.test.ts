import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { UsageReport } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { answers, chunk, frames, named } from '../support/native.ts'
import { listOf, modelOf, plainPrices } from './models.ts'

/* What answers tell of calls of their provider's own tools (ruling C11). */

const priced = { prices: listOf({ ...plainPrices, calls: { web_search: 5n } }) }
const headOf = (wire: ClientWire, isPriced = true) => ({
  requestId: 'req_1',
  model: modelOf(wire, isPriced ? priced : {}),
  createdSeconds: 1,
  inputTokensEstimate: 11,
})

function ofWhole(wire: ClientWire, more: object, isPriced = true): UsageReport {
  const body = Buffer.from(JSON.stringify({ ...answers[wire], ...more }))
  const answer = wires[wire].native.readAnswer(body, headOf(wire, isPriced))
  assert.ok(answer.state !== 'failed')
  return answer.report
}

function ofStream(wire: ClientWire, pieces: readonly string[], isPriced = true): UsageReport {
  const relay = wires[wire].native.openStream(headOf(wire, isPriced))
  const shown = pieces.map((piece) => relay.push(Buffer.from(piece))).join('')
  assert.notEqual(relay.state, 'failed')
  // The client sees all of it, as its provider tells it (ruling P2); usage on chat has counters of tokens only (P10).
  const words = wire === 'chat' ? [] : ['server_tool_use', 'web_search_call']
  for (const word of words) assert.equal(shown.includes(word), pieces.join('').includes(word))
  return relay.report
}

const usageOf = (wire: ClientWire) => answers[wire]['usage'] as object
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'x' } }
const item = (type: string, more: object = {}) => ({ id: 'ws_1', type, status: 'completed', ...more })
const items = [
  item('web_search_call', { action: { type: 'search' } }),
  item('web_search_call', { action: { type: 'open_page' } }),
  item('web_search_call'),
  item('web_search_call', { status: 'failed' }),
  item('function_call', { name: 'web_search_call', arguments: '{}' }),
  item('file_search_call'),
]

test('C11 messages: calls are counted by the usage, and also by their blocks in the stream', () => {
  const told = { ...usageOf('messages'), server_tool_use: { web_search_requests: 3, web_fetch_requests: null } }
  const content = [search, search, ...(answers.messages['content'] as object[])]
  assert.deepEqual(ofWhole('messages', { content, usage: told }).calls, { web_search: 3 })
  assert.deepEqual(ofWhole('messages', { content }).callsSeen, { web_search: 2 })
  const [start, ...rest] = frames.messages
  const block = (index: number) => [
    named({ type: 'content_block_start', index, content_block: { ...search, input: {} } }),
    named({ type: 'content_block_stop', index }),
  ]
  const answer = rest.map((frame) => frame.replaceAll('"index":0', '"index":2'))
  const cut = ofStream('messages', [start!, ...block(0), ...block(1), ...answer.slice(0, 2)])
  assert.deepEqual([cut.calls, cut.callsSeen], [undefined, { web_search: 2 }])
  const whole = [start!, ...block(0), ...block(1), ...answer].map((frame) =>
    frame.replace('"output_tokens":3', '"output_tokens":3,"server_tool_use":{"web_search_requests":1}'),
  )
  const { calls, callsSeen, outputTokens } = ofStream('messages', whole)
  assert.deepEqual([calls, callsSeen, outputTokens], [{ web_search: 1 }, { web_search: 2 }, 3])
})

test('C11 responses: searches are counted by their items, once; opened pages and calls of the client are not', () => {
  const output = [...items, ...(answers.responses['output'] as object[])]
  assert.deepEqual(ofWhole('responses', { output }).callsSeen, { web_search: 2, file_search: 1 })
  const done = items.map((one, at) =>
    named({ type: 'response.output_item.done', sequence_number: 9, output_index: at, item: one }),
  )
  const [created, ...rest] = frames.responses
  const before = rest.slice(0, -1)
  assert.deepEqual(ofStream('responses', [created!, ...done, ...before]).callsSeen, { web_search: 2, file_search: 1 })
  // The last event has all of them again, or none.
  const last = (list: object[]) =>
    named({ type: 'response.completed', sequence_number: 20, response: { ...answers.responses, output: list } })
  for (const list of [output, []]) {
    const { callsSeen } = ofStream('responses', [created!, ...done, ...before, last(list)])
    assert.deepEqual(callsSeen, { web_search: 2, file_search: 1 })
  }
})

test("C11 a provider's own counts are read on every wire, and an invalid count is ignored (C6)", () => {
  const details = { server_side_tool_usage_details: { web_search_calls: 4, x_search_calls: 0 } }
  assert.deepEqual(ofWhole('responses', { usage: { ...usageOf('responses'), ...details } }).calls, {
    web_search: 4,
    x_search: 0,
  })
  const routed = { ...usageOf('chat'), server_tool_use: { web_search_requests: 2, tool_calls_executed: 9 } }
  assert.deepEqual(ofWhole('chat', { usage: routed }).calls, { web_search: 2 })
  const streamed = [...frames.chat.slice(0, 4), chunk({ choices: [], usage: routed }), 'data: [DONE]\n\n']
  assert.deepEqual(ofStream('chat', streamed).calls, { web_search: 2 })
  for (const count of [-1, 0.5, '3']) {
    const usage = { ...usageOf('chat'), server_tool_use: { web_search_requests: count } }
    assert.deepEqual(ofWhole('chat', { usage }).calls, { web_search: Number.POSITIVE_INFINITY })
  }
})

test('C11 responses: the searches that the provider bills are counted, and not all searches', () => {
  const output = [...items, ...(answers.responses['output'] as object[])]
  const told = { output, tool_usage: { image_gen: { input_tokens: 0 }, web_search: { num_requests: 1 } } }
  assert.deepEqual(ofWhole('responses', told).calls, { web_search: 1 })
  const seen = named({ type: 'response.output_item.done', sequence_number: 9, output_index: 0, item: items[0] })
  const [created, ...rest] = frames.responses
  for (const type of ['response.completed', 'response.incomplete']) {
    const last = named({ type, sequence_number: 20, response: { ...answers.responses, ...told } })
    assert.deepEqual(ofStream('responses', [created!, seen, ...rest.slice(0, -1), last]).calls, { web_search: 1 })
  }
})

test('C11 no more kinds of calls are kept than any provider has', () => {
  const many = (ending: string) => Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}${ending}`, 1]))
  const usage = { ...usageOf('chat'), server_tool_use: many('_requests') }
  assert.equal(Object.keys(ofWhole('chat', { usage }).calls!).length, 64)
  const kinds = Array.from({ length: 500 }, (_, i) => ({ type: `k${i}_call`, status: 'completed' }))
  assert.ok(Object.keys(ofWhole('responses', { output: kinds }).callsSeen!).length <= 64)
})

test('C11 if no call has a price, calls are not counted', () => {
  const output = [...items, ...(answers.responses['output'] as object[])]
  assert.equal(ofWhole('responses', { output }, false).callsSeen, undefined)
  const done = named({ type: 'response.output_item.done', sequence_number: 9, output_index: 0, item: items[0] })
  assert.equal(ofStream('responses', [frames.responses[0]!, done], false).callsSeen, undefined)
})
