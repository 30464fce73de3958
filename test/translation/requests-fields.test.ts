import { deepEqual, equal, notEqual, ok } from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import test from 'node:test'
import { translationPages } from '../../scripts/translation-docs.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import type { ScalarRow } from '../../src/wires/requests/field-table.ts'
import { fateOf } from '../../src/wires/requests/scalars.ts'
import { wires } from '../../src/wires/wires.ts'
import { refusalOf, smallest, translate } from './support/exchange.ts'

/** The tables say what becomes of every field; here each field is sent and it is seen to. */

const schema = { type: 'object', properties: {} }
const scalars = clientWireNames.flatMap((wire) => wires[wire].model.scalars.map(({ name }) => name))
const profile = {
  accepts: new Set([...scalars, 'prompt_cache_key', 'safety_identifier']),
  reasoning: { style: 'effort', levels: ['low', 'medium', 'high'], canDisable: true },
} as const

/** A value of each field that says something; a refused field gets one that is refused. A scalar gets one of its kind. */
const values: Record<ClientWire, Record<string, unknown>> = {
  messages: {
    model: 'm-other',
    max_tokens: 77,
    messages: [{ role: 'user', content: 'Other' }],
    system: 'S',
    stream: true,
    stop_sequences: ['END'],
    tools: [{ name: 'f', input_schema: schema }],
    tool_choice: { type: 'any' },
    'output_config.format': { type: 'json_schema', schema },
    'output_config.effort': 'low',
    'output_config.task_budget': { tokens: 5 },
    output_config: { effort: 'low' },
    output_format: { type: 'json_schema', schema },
    thinking: { type: 'adaptive' },
    user: 'u',
    metadata: { user_id: 'u' },
    cache_control: { type: 'ephemeral' },
    mcp_servers: [{ url: 'x' }],
    container: {},
    thread: false,
  },
  chat: {
    model: 'm-other',
    messages: [{ role: 'user', content: 'Other' }],
    max_completion_tokens: 77,
    max_tokens: 77,
    stream: true,
    stop: 'END',
    tools: [{ type: 'function', function: { name: 'f' } }],
    tool_choice: 'required',
    parallel_tool_calls: false,
    response_format: { type: 'json_schema', json_schema: { name: 'n', schema } },
    reasoning_effort: 'low',
    prompt_cache_key: 'k',
    user: 'u',
    safety_identifier: 's',
    n: 2,
    modalities: ['audio'],
  },
  responses: {
    model: 'm-other',
    input: 'Other',
    instructions: 'S',
    max_output_tokens: 77,
    stream: true,
    tools: [{ type: 'function', name: 'f' }],
    tool_choice: 'required',
    parallel_tool_calls: false,
    text: { format: { type: 'json_object' } },
    'text.format': { type: 'json_schema', name: 'n', schema },
    reasoning: { effort: 'low' },
    include: ['reasoning.encrypted_content'],
    prompt_cache_key: 'k',
    user: 'u',
    safety_identifier: 's',
    background: true,
    previous_response_id: 'resp_1',
    conversation: 'conv_1',
  },
}

/** What must be there besides for a field to have something to act on. */
const beside: Record<string, (wire: ClientWire) => object> = {
  tool_choice: (wire) => ({ tools: values[wire]['tools'] }),
  parallel_tool_calls: (wire) => ({ tools: values[wire]['tools'] }),
}

const ofKind = { number: 0.5, text: 'low' }

function bodyWith(wire: ClientWire, field: string): Record<string, unknown> {
  const { scalar, kind = scalar?.kind } = wires[wire].client.fields.get(field)!
  const value = kind ? ofKind[kind] : field in values[wire] ? values[wire][field] : { any: 'value' }
  const base = { ...smallest[wire], ...beside[field]?.(wire) }
  const [top = '', member] = field.split('.')
  return { ...base, [top]: member === undefined ? value : { [member]: value } }
}

for (const wire of clientWireNames) {
  for (const facts of wires[wire].client.fields.values()) {
    const { field } = facts
    for (const target of clientWireNames.filter((name) => name !== wire)) {
      const [verdict] = fateOf(facts, wire, wires[target])
      test(`T9 ${wire}→${target} the field ${field} is ${verdict}`, () => {
        const top = field.split('.')[0]
        const setting = { profile, cacheKey: field === 'prompt_cache_key' ? 'k' : undefined }
        if (verdict === 'refused') {
          const error = refusalOf(wire, target, bodyWith(wire, field), setting)
          deepEqual([error.status, error.param], [400, top])
          return
        }
        const without = { ...smallest[wire], ...beside[field]?.(wire) }
        const plain = translate(wire, target, without, { profile }).encoded
        const translated = translate(wire, target, bodyWith(wire, field), setting).encoded
        const lost = translated.losses.some((loss) => loss.field === field)
        if (verdict === 'dropped') {
          equal(translated.body.toString(), plain.body.toString())
          ok(lost || isQuiet(wire, field, target))
          return
        }
        ok(!translated.losses.some((loss) => loss.field === field && loss.what === 'dropped'))
        // What is enforced by us is no part of the body, nor is a name the upstream never learns.
        if (field === 'model') equal(JSON.parse(translated.body.toString()).model, 'upstream-model')
        else if (field === 'include') equal(translated.body.toString(), plain.body.toString())
        else notEqual(`${translated.body}${translated.localStops}`, `${plain.body}${plain.localStops}`)
      })
    }
  }
}

/** `include` asks for something of the answer: nothing of the request is lost. */
function isQuiet(wire: ClientWire, field: string, target: ClientWire): boolean {
  return wire === 'responses' && field === 'include' && target === 'chat'
}

/** The fields with a single value, by the wires' pages, with a value of a wrong type. */
const wrongValues: Record<ClientWire, Record<string, unknown>> = {
  messages: { temperature: '1', top_p: '1', top_k: '1', speed: 1 },
  chat: {
    temperature: '1',
    top_p: '1',
    frequency_penalty: '1',
    presence_penalty: '1',
    seed: '1',
    verbosity: 1,
    service_tier: 1,
  },
  responses: { temperature: '1', top_p: '1', text: { verbosity: 1 }, service_tier: 1 },
}

for (const wire of clientWireNames)
  for (const [field, value] of Object.entries(wrongValues[wire]))
    for (const target of clientWireNames.filter((name) => name !== wire))
      test(`T9 ${wire}→${target} the field ${field} with a value of another type is 400`, () => {
        const error = refusalOf(wire, target, { ...smallest[wire], [field]: value }, { profile })
        deepEqual([error.status, error.param], [400, field])
        translate(wire, target, { ...smallest[wire], [field]: null }, { profile })
      })

test('T9 an unknown field is counted without its name', () => {
  const { encoded } = translate('chat', 'messages', { ...smallest.chat, my_secret_field: 1 })
  deepEqual(encoded.losses, [{ field: '(unknown)', what: 'dropped', why: 'not a field of this wire' }])
})

test('T9 the pages of docs/translation match the tables', () => {
  const pages = translationPages()
  equal(pages.size, 6)
  for (const [name, text] of pages) {
    equal(readFileSync(new URL(`../../docs/translation/${name}`, import.meta.url), 'utf8'), text)
  }
})

/** Each scalar of each client's wire with each other wire of a model. */
const pairsOfScalars = clientWireNames.flatMap((from) =>
  scalarRows(from).flatMap((row) => clientWireNames.filter((to) => to !== from).map((to) => ({ from, to, row }))),
)

function scalarRows(wire: ClientWire): ScalarRow[] {
  return [...wires[wire].client.fields.values()].flatMap(({ scalar }) => scalar ?? [])
}

for (const { from, to, row } of pairsOfScalars)
  test(`T9 R10 ${from}→${to} the scalar ${row.field} reaches the row of its name, or is a listed loss`, () => {
    const taken = wires[to].model.scalars.find(({ name }) => name === row.name)
    const [least, most] = taken?.range ?? [-9, 9]
    const send = (value: unknown, accepts: ReadonlySet<string>) => {
      const [top = '', member] = row.field.split('.')
      const body = { ...smallest[from], [top]: member === undefined ? value : { [member]: value } }
      return translate(from, to, body, { profile: { accepts } })
    }
    const values = row.kind === 'text' ? ['low', ''] : [least, most, (least + most) / 2]
    for (const value of values) {
      const { body, encoded } = send(value, new Set(scalars))
      equal(taken && valueAt(body, taken.field), taken && value)
      deepEqual(encoded.losses, taken ? [] : [{ field: row.field, what: 'dropped', why: 'the wire has no such field' }])
    }
    if (taken?.range)
      for (const [value, sent] of [
        [least - 1, least],
        [most + 1, most],
      ]) {
        const { body, encoded } = send(value, new Set(scalars))
        equal(valueAt(body, taken.field), sent)
        deepEqual(
          encoded.losses.map(({ field, what }) => [field, what]),
          [[row.field, 'clamped']],
        )
      }
    if (taken?.ifAccepted) {
      const { body, encoded } = send(values[0], new Set())
      equal(valueAt(body, taken.field), undefined)
      deepEqual(
        encoded.losses.map(({ field, why }) => [field, why]),
        [[row.field, 'the model does not take it']],
      )
    }
    const error = refusalOf(from, to, { ...smallest[from], ...wrong(row) })
    deepEqual([error.status, error.param], [400, row.field.split('.')[0]])
  })

function valueAt(body: Record<string, unknown>, field: string): unknown {
  const [top = '', member] = field.split('.')
  return member === undefined ? body[top] : Object(body[top])[member]
}

function wrong({ field, kind }: ScalarRow): Record<string, unknown> {
  const [top = '', member] = field.split('.')
  const value = kind === 'text' ? 5 : '5'
  return { [top]: member === undefined ? value : { [member]: value } }
}

test('T9 a scalar of a client has a row of its name on another wire; a field of no other wire is `dropped`', () => {
  for (const from of clientWireNames)
    for (const { field, name } of scalarRows(from)) {
      const others = clientWireNames.filter(
        (to) => to !== from && wires[to].model.scalars.some((row) => row.name === name),
      )
      ok(others.length > 0, `${from}: ${field}`)
    }
})
