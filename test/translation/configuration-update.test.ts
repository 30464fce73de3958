import { deepEqual, equal, match, ok } from 'node:assert/strict'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { refusalOf, type Setting, translate, type Upstream } from './support/exchange.ts'

/*
 * FID-6, ruling Y11: `configuration_update` items of a responses client, towards both other wires. The kind is: each setting,
 * one or several updates in any place, together with the request's own and without it, null, and members nobody knows.
 */

const profile = { accepts: new Set(['verbosity']) }
const user = { role: 'user', content: 'q' }
const assistant = { role: 'assistant', content: 'a' }
const update = (more: object) => ({ type: 'configuration_update', ...more })
const format = { type: 'json_schema', name: 'n', schema: { type: 'object', properties: { a: { type: 'integer' } } } }

const efforts: Record<'messages' | 'chat', (body: Upstream) => unknown> = {
  messages: (body) => body.output_config?.effort,
  chat: (body) => body.reasoning_effort,
}

function ask(to: 'messages' | 'chat', input: object[], more: object = {}, setting: Setting = { profile }) {
  return translate('responses', to, { model: 'm', input, ...more }, setting)
}

for (const to of ['messages', 'chat'] as const) {
  const effortOf = (input: object[], more?: object) => efforts[to](ask(to, input, more).body)

  test(`Y11 FID-6 the last effort takes precedence, also over the request’s own (responses→${to})`, () => {
    const low = update({ reasoning: { effort: 'low' } })
    const high = update({ reasoning: { effort: 'high' }, id: 'cu_1' })
    const own = { reasoning: { effort: 'medium' } }
    equal(effortOf([user, assistant, low, user], { reasoning: { effort: 'high' } }), 'low')
    equal(effortOf([low, user], own), 'low')
    equal(effortOf([user, low], own), 'low')
    equal(effortOf([user, low, assistant, high, user], own), 'high')
    equal(effortOf([user, high, assistant, low, user]), 'low')
    equal(effortOf([user, low, update({ text: { verbosity: 'low' } }), update({})], own), 'low')
    equal(effortOf([user, update({ reasoning: { effort: null } }), update({ reasoning: null })], own), 'medium')
  })

  test(`Y11 FID-6 an update is not a turn, and does not change the wish for a summary (responses→${to})`, () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' }
    const output = { type: 'function_call_output', call_id: 'c', output: 'r' }
    const low = update({ reasoning: { effort: 'low' } })
    const plain = ask(to, [user, assistant, call, output], { reasoning: { effort: 'low', summary: 'auto' } })
    const mixed = ask(to, [user, low, assistant, low, call, low, output, low], { reasoning: { summary: 'auto' } })
    deepEqual(mixed.body, plain.body)
    deepEqual(mixed.encoded.losses, plain.encoded.losses)
  })

  test(`Y11 FID-6 unknown members are dropped and listed (responses→${to})`, () => {
    const items = [
      update({ reasoning: { effort: 'low', summary: 'auto', hologram: 1 } }),
      update({ text: { hologram: {} } }),
      update({ tools: [], hologram: 'x', constructor: 1 }),
      update({ reasoning: { constructor: 'x', toString: 1 } }),
    ]
    for (const item of items) {
      const { encoded } = ask(to, [user, item])
      ok(
        encoded.losses.some(({ field, what }) => field === 'input' && what === 'dropped'),
        JSON.stringify(item),
      )
      ok(!encoded.body.includes('hologram'))
    }
  })

  test(`Y11 FID-6 a setting of the wrong type is refused, and the error names its place (responses→${to})`, () => {
    const wrong: [item: object, place: RegExp][] = [
      [{ reasoning: { effort: 'huge' } }, /input\[1\]\.reasoning\.effort must be one of/],
      [{ reasoning: 'low' }, /input\[1\]\.reasoning must be an object/],
      [{ text: { verbosity: 1 } }, /input\[1\]\.text\.verbosity must be a string/],
      [{ text: { format: { type: 'hologram' } } }, /input\[1\]\.text\.format/],
      [{ text: [] }, /input\[1\]\.text must be an object/],
    ]
    for (const [item, place] of wrong) {
      const error = refusalOf('responses', to as ClientWire, { model: 'm', input: [user, update(item)] })
      match(error.message, place)
      deepEqual([error.status, error.param], [400, 'input'])
    }
  })
}

test('Y11 FID-6 verbosity and the output format hold from the update on', () => {
  const own = { text: { verbosity: 'high', format } }
  const { body } = ask('chat', [user, update({ text: { verbosity: 'low' } })], own)
  deepEqual([body.verbosity, body.response_format.json_schema.name], ['low', 'n'])
  equal(ask('chat', [user, update({ text: { format: { type: 'text' } } })], own).body.response_format, undefined)
  const held = ask('messages', [user, update({ text: { format } }), user]).body
  deepEqual(held.output_config.format.schema, format.schema)
})
