import assert from 'node:assert/strict'
import test from 'node:test'
import { pump } from './pump.ts'
import { call, done, type Fragment, reason, text } from './upstreams.ts'

/** The calls that a chat stream of these chunks tells, as `name arguments`; or the fault. */
function callsOf(...chunks: (Fragment | Fragment[] | string)[]): string[] | string {
  const script = chunks.map((chunk) =>
    typeof chunk === 'string'
      ? text(chunk)
      : Array.isArray(chunk[0])
        ? call(...(chunk as Fragment[]))
        : call(chunk as Fragment),
  )
  const { outcome } = pump('responses', 'chat', script.join('') + reason('tool_calls') + done)
  if (outcome === 'none') return 'none'
  if ('fault' in outcome) return outcome.fault.kind
  return outcome.answer.blocks.flatMap(({ block, text }) =>
    block.kind === 'tool_call' ? [`${block.name} ${text}`] : [],
  )
}
const none = undefined

test('translation 4.2 a known index with no id, the same id or no new name continues its call', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [0, none, none, ':1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [0, 'a', 'f', ':1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [0, none, 'f', ':1}']), ['f {"x":1}'])
})

test('translation 4.2 a known index with a new id and a name is a new call if the old one is complete', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x":1}'], [0, 'b', 'f', '{"y":2}']), ['f {"x":1}', 'f {"y":2}'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [0, 'b', 'f', ':1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', ''], [0, 'b', 'g', '{}']), ['f {}', 'g {}'])
})

test('translation 4.2 an index without a call goes to the only incomplete call that has no index, or has lost it', () => {
  assert.deepEqual(callsOf([none, 'a', 'f', '{"x"'], [3, none, none, ':1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [0, none, 'g', '{}'], [1, none, none, ':1}']), ['f {"x":1}', 'g {}'])
})

test('reliability §3 calls without a name have the same limit as those with one', () => {
  assert.equal(callsOf([none, 'a', 'f', '{}']).length, 1)
  const nameless = Array.from({ length: 5_000 }, (_, i): Fragment => [i, none, none, '{'])
  assert.equal(callsOf(nameless), 'broken')
})

test('TP2 U7 a known index with a name, arguments and no id is a new call if the old one is complete (Gemini)', () => {
  for (const id of [none, '', ' ']) {
    const [paris, rome] = ['{"city":"Paris"}', '{"city":"Rome"}']
    assert.deepEqual(callsOf([0, id, 'f', paris], [0, id, 'f', rome]), [`f ${paris}`, `f ${rome}`])
    assert.deepEqual(callsOf([[0, id, 'f', paris] as Fragment, [0, id, 'f', rome]]), [`f ${paris}`, `f ${rome}`])
    assert.deepEqual(callsOf([0, id, 'f', paris], [0, id, 'f', '']), [`f ${paris}`])
    assert.deepEqual(callsOf([0, id, 'f', '{}'], [0, id, 'f', rome]), [`f ${rome}`])
  }
})

test('R-ARGS U7 an index that comes only with the arguments belongs to the call that has none yet', () => {
  assert.deepEqual(callsOf([none, 'a', 'f', ''], [0, none, none, '{"x":1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([none, 'a', 'f', '{"x"'], [0, none, none, ':'], [0, none, none, '1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([none, 'a', 'f', '{}'], [0, none, none, ''], [0, 'b', 'g', '{}']), ['f {}', 'g {}'])
})

test('translation 4.2 a known index with a new id and no name continues', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [0, 'b', none, ':1}']), ['f {"x":1}'])
})

test('translation 4.2 an unknown index with a known id continues without a name and is a new call with one', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x"'], [1, 'a', none, ':1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{}'], [1, 'a', 'g', '{}']), ['f {}', 'g {}'])
  assert.deepEqual(callsOf([none, 'a', 'f', '{"x"'], [none, 'a', none, ':1}']), ['f {"x":1}'])
})

test('translation 4.2 an unknown index with a new id, or only a name, is a new call', () => {
  assert.deepEqual(callsOf([1, 'a', 'f', '{}'], [2, 'b', 'g', '{}']), ['f {}', 'g {}'])
  assert.deepEqual(callsOf([none, 'a', 'f', '{}'], [none, 'b', 'g', '{}']), ['f {}', 'g {}'])
  assert.deepEqual(callsOf([none, none, 'f', '{}'], [none, none, 'f', '{}']), ['f {}', 'f {}'])
})

test('translation 4.2 a fragment without index, id or name continues the only incomplete call', () => {
  assert.deepEqual(callsOf([none, none, 'f', '{"x"'], [none, none, none, ':1}']), ['f {"x":1}'])
  assert.equal(callsOf([none, none, 'f', '{"x"'], [none, none, 'g', '{"y"'], [none, none, none, ':1}']), 'broken')
  assert.equal(callsOf([none, none, none, '{}']), 'broken')
})

test('FID-3 Y5 a call that never gets a name fails the answer, and an empty fragment is ignored', () => {
  assert.equal(callsOf([0, 'a', none, '{"x":1}'], [1, 'b', 'g', '{}']), 'broken')
  assert.equal(callsOf([0, 'a', '  ', '{"x":1}'], [1, 'b', 'g', '{}']), 'broken')
  assert.deepEqual(callsOf([0, none, none, ''], [1, 'b', 'g', '{}']), ['g {}'])
  assert.equal(callsOf([0, none, none, '']), 'broken')
})

test('translation 4.2 an initial empty object or null is the whole of the arguments only if nothing follows', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '{}'], [0, none, none, '']), ['f {}'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{}'], [0, none, none, '{"x":1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', 'null'], [0, none, none, '{"x":1}']), ['f {"x":1}'])
  assert.deepEqual(callsOf([0, 'a', 'f', 'null']), ['f {}'])
  assert.deepEqual(callsOf([0, 'a', 'f', null]), ['f {}'])
})

test('translation 4.2 after a complete call that something has followed, only white space is accepted', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x":1}'], 'text', [0, none, none, ' \n']), ['f {"x":1}'])
  assert.equal(callsOf([0, 'a', 'f', '{"x":1}'], 'text', [0, none, none, '{"x":2}']), 'broken')
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x":"}'], 'text', [0, none, none, '"}']), ['f {"x":"}"}'])
})

test('translation 4.2 malformed arguments are passed on unchanged', () => {
  assert.deepEqual(callsOf([0, 'a', 'f', '[1]']), ['f [1]'])
  assert.deepEqual(callsOf([0, 'a', 'f', '{"x":1}}']), ['f {"x":1}}'])
})
