import { deepEqual, equal, ok } from 'node:assert/strict'
import test from 'node:test'
import type { Setting, Upstream } from './support/exchange.ts'
import { smallest, translate } from './support/exchange.ts'

/*
 * BUG-10, ruling Y10: `strict` of a tool on its way to a messages model. The kind is: both clients that can say it, the profiles
 * of models that take it and of those that do not, schemas with and without a closed form, and each limit of the provider.
 */

type Declared = { name: string; schema: object; strict?: boolean | null }

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const closed = (properties: object, more: object = {}) =>
  object(properties, { required: Object.keys(properties), additionalProperties: false, ...more })
const text = { type: 'string' }
const named = (count: number, schema: object) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, schema]))

const clients = {
  chat: (tools: Declared[], format?: object) => ({
    ...smallest.chat,
    tools: tools.map(({ name, schema, strict }) => ({
      type: 'function',
      function: { name, parameters: schema, strict },
    })),
    ...(format && { response_format: { type: 'json_schema', json_schema: { name: 'n', schema: format } } }),
  }),
  responses: (tools: Declared[], format?: object) => ({
    ...smallest.responses,
    tools: tools.map(({ name, schema, strict }) => ({ type: 'function', name, parameters: schema, strict })),
    ...(format && { text: { format: { type: 'json_schema', name: 'n', schema: format } } }),
  }),
}

for (const client of ['chat', 'responses'] as const) {
  const ask = (tools: Declared[], setting: Setting = { profile: 'anthropic' }, format?: object) => {
    const { body, encoded } = translate(client, 'messages', clients[client](tools, format), setting)
    const losses = encoded.losses.map(({ field, what }) => `${field} ${what}`)
    return { tools: body.tools as Upstream[], strict: body.tools.map((tool: Upstream) => tool.strict), losses }
  }

  test(`Y10 BUG-10 strict is sent to messages models whose profile supports it (${client})`, () => {
    for (const profile of ['anthropic', 'anthropic-fixed-sampling', 'anthropic-budget', 'simulator']) {
      const told = ask([{ name: 'f', schema: closed({ a: text }), strict: true }], { profile })
      deepEqual([told.strict, told.losses], [[true], []], profile)
      deepEqual(told.tools[0].input_schema, closed({ a: text }))
    }
    const plain = ask([{ name: 'f', schema: closed({ a: text }), strict: true }], { profile: 'default-messages' })
    deepEqual([plain.strict, plain.losses], [[undefined], ['tools.strict dropped']])
    for (const strict of [false, null, undefined]) {
      const loose = ask([{ name: 'f', schema: object({ a: { type: 'integer', minimum: 1 } }), strict }])
      deepEqual([loose.strict, loose.losses], [[undefined], []])
      deepEqual(loose.tools[0].input_schema, object({ a: { type: 'integer', minimum: 1 } }))
    }
  })

  test(`Y10 BUG-10 a strict schema is sent in closed form; one that has no closed form is not strict (${client})`, () => {
    const bounded = ask([
      { name: 'f', schema: object({ n: { type: 'array', items: text, maxItems: 3 } }), strict: true },
    ])
    deepEqual([bounded.strict, bounded.losses], [[true], ['tools rewritten']])
    const said = { type: 'array', items: text, description: '{"maxItems":3}' }
    deepEqual(bounded.tools[0].input_schema, object({ n: said }, { additionalProperties: false }))
    const tree = { $ref: '#/$defs/t', $defs: { t: closed({ next: { $ref: '#/$defs/t' } }) } }
    // A cloud that refuses output formats takes strict tools in the same form.
    for (const profile of [
      'anthropic-google',
      'anthropic-bedrock',
      'anthropic-mantle',
      'anthropic-mantle-fixed-sampling',
    ]) {
      const { tools, strict } = ask([{ name: 'f', schema: object({ a: text }), strict: true }], { profile })
      deepEqual(
        [strict, tools[0].input_schema],
        [[true], object({ a: text }, { additionalProperties: false })],
        profile,
      )
    }
    const without = [
      object({}, { additionalProperties: text }),
      closed({ free: { type: 'object' } }),
      closed({ any: {} }),
      closed({ tree }, { $defs: tree.$defs }),
    ]
    for (const schema of without) {
      const { tools, strict, losses } = ask([{ name: 'f', schema, strict: true }])
      deepEqual([strict, losses], [[undefined], ['tools.strict dropped']], JSON.stringify(schema))
      deepEqual(tools[0].input_schema, schema)
    }
  })

  test(`Y10 BUG-10 above a limit of the provider, strict is dropped from the later tools and listed (${client})`, () => {
    const union = { type: ['string', 'null'] }
    const optional = (count: number) => closed(named(count, text), { required: [] })
    const shared = closed({ a: { $ref: '#/$defs/d' }, b: { $ref: '#/$defs/d' } }, { $defs: { d: optional(13) } })
    const rows: [what: string, schemas: object[], strict: boolean[], format?: object][] = [
      ['20 tools', Array.from({ length: 20 }, () => closed({ a: text })), Array(20).fill(true)],
      ['21 tools', Array.from({ length: 21 }, () => closed({ a: text })), [...Array(20).fill(true), false]],
      ['24 optional', [optional(20), optional(4)], [true, true]],
      ['25 optional, then none', [optional(20), optional(5), closed({ a: text })], [true, false, true]],
      ['optional inside', [closed({ l: { type: 'array', items: optional(25) } })], [false]],
      ['optional in what two refer to', [shared], [false]],
      ['16 unions', [closed(named(16, union))], [true]],
      ['17 unions', [closed(named(8, union)), closed(named(9, { anyOf: [text, { type: 'null' }] }))], [true, false]],
      ['the output format counts', [optional(5)], [false], optional(20)],
      ['the output format leaves room', [optional(4)], [true], optional(20)],
    ]
    for (const [what, schemas, strict, format] of rows) {
      const declared = schemas.map((schema, i) => ({ name: `f${i}`, schema, strict: true }))
      const told = ask(declared, undefined, format)
      deepEqual(
        told.strict,
        strict.map((is) => is || undefined),
        what,
      )
      equal(told.losses.includes('tools.strict dropped'), strict.includes(false), what)
      for (const [i, tool] of told.tools.entries()) deepEqual(tool.input_schema, schemas[i], what)
    }
  })

  test(`Y10 T9 the loss of strict has its reason (${client})`, () => {
    const reasonOf = (schemas: object[]) => {
      const tools = schemas.map((schema, i) => ({ name: `f${i}`, schema, strict: true }))
      const { losses } = translate(client, 'messages', clients[client](tools), { profile: 'anthropic' }).encoded
      return losses.map(({ why }) => why)
    }
    deepEqual(reasonOf([object({}, { additionalProperties: text })]), ['its schema has no closed form'])
    deepEqual(reasonOf(Array(21).fill(closed({ a: text }))), ['more than the model takes in one request'])
  })

  test(`Y10 T8 a longer list of tools begins with the same bytes (${client})`, () => {
    const declared = Array.from({ length: 30 }, (_, i) => ({
      name: `f${i}`,
      schema: closed({ a: text }),
      strict: true,
    }))
    const [short, long] = [25, 30].map((count) =>
      ask(declared.slice(0, count)).tools.map((tool) => JSON.stringify({ ...tool, cache_control: 0 })),
    )
    ok(short!.every((tool, i) => tool === long![i]))
  })
}

for (const to of ['chat', 'responses'] as const)
  test(`R-JSON a strict tool of messages is strict on ${to} only if OpenAI accepts its schema as strict`, () => {
    const sent = (schema: object, strict = true) => {
      const ask = { ...smallest.messages, tools: [{ name: 'f', input_schema: schema, strict }] }
      const { body, encoded } = translate('messages', to, ask, { profile: 'openai' })
      const [tool] = body.tools
      return [(tool.function ?? tool).strict ?? false, encoded.losses.map(({ field, what }) => `${field} ${what}`)]
    }
    deepEqual(sent(closed({ a: text, b: text })), [true, []])
    const anyOf = [{ $ref: '#/$defs/b' }, { ...text, enum: ['x'] }]
    deepEqual(sent(closed({ a: { ...text, format: 'date', minLength: 1, default: 'x' } })), [true, []])
    deepEqual(sent({ ...closed({ a: { anyOf } }), $defs: { b: text } }), [true, []])
    const open = [closed({ a: text, b: text }, { required: ['a'] }), object({ a: text }), object({})]
    const refused = [
      closed({ a: { ...text, format: 'uri' } }),
      closed({ a: { allOf: [text] } }),
      closed({ a: { oneOf: [text, { type: 'null' }] } }),
      closed({ a: { description: 'Anything.' } }),
      closed({ a: { enum: ['x', 'y'] } }),
      closed({ a: { const: 'x' } }),
      closed({ a: true }),
      closed({ a: { $ref: '#/$defs/b', description: 'One.' } }, { $defs: { b: text } }),
      closed({ a: { type: 'array' } }),
      closed({ a: { type: 'array', items: text, uniqueItems: true } }),
    ]
    for (const schema of [...open, ...open.map((items) => closed({ inner: { type: 'array', items } })), ...refused]) {
      deepEqual(sent(schema), [false, ['tools.strict dropped']])
      deepEqual(sent(schema, false), [false, []])
    }
  })

test('Y10 references that expand to very large schemas are not followed for long', () => {
  const level = (i: number) => closed({ a: { $ref: `#/$defs/d${i + 1}` }, b: { $ref: `#/$defs/d${i + 1}` } })
  const $defs = Object.fromEntries(
    Array.from({ length: 60 }, (_, i) => [`d${i}`, i === 59 ? closed({ a: text }) : level(i)]),
  )
  const schema = closed({ a: { $ref: '#/$defs/d0' } }, { $defs })
  const { body } = translate('chat', 'messages', clients.chat([{ name: 'f', schema, strict: true }]), {
    profile: 'anthropic',
  })
  equal(body.tools[0].strict, undefined)
})

test('Y10 B25 references of many tools that expand to large schemas are followed only for the first tools', () => {
  const wide = (next: string) => closed(named(7, { $ref: `#/$defs/${next}` }))
  const $defs = { a: wide('b'), b: wide('c'), c: wide('d'), d: wide('e'), e: text }
  const large = closed({ a: { $ref: '#/$defs/a' } }, { $defs })
  const strictAfter = (count: number) => {
    const schemas = [...Array(count).fill(large), closed({ a: text })]
    const tools = schemas.map((schema, i) => ({ name: `f${i}`, schema, strict: true }))
    return translate('chat', 'messages', clients.chat(tools), { profile: 'anthropic' }).body.tools.at(-1).strict
  }
  equal(strictAfter(19), true)
  equal(strictAfter(20), undefined)
})
