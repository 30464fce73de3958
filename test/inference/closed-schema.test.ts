import assert from 'node:assert/strict'
import test from 'node:test'
import { transformJSONSchema } from '@anthropic-ai/sdk/lib/transform-json-schema'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { closeSchema } from '../../src/inference/closed-schema.ts'

function close(schema: unknown): unknown {
  const closed = closeSchema({ source: JSON.stringify(schema) })
  return closed && JSON.parse(closed.source)
}

const object = (properties: object, more: object = {}) => ({ type: 'object', properties, ...more })
const closed = (properties: object, more: object = {}) => object(properties, { additionalProperties: false, ...more })

test('R-JSON a schema that its upstream accepts is sent unchanged', () => {
  const source =
    ' { "type": "object", "properties": {"a": {"type":"string","format":"date"}}, "additionalProperties": false } '
  const raw = { source }
  assert.equal(closeSchema(raw), raw)
})

const rewritten: [what: string, from: unknown, to: unknown][] = [
  ['open objects are closed', object({ a: { type: 'string' } }), closed({ a: { type: 'string' } })],
  [
    'bounds are said in words, behind those that are there',
    closed({ n: { type: 'integer', minimum: 0, maximum: 9, description: 'How many' } }),
    closed({ n: { type: 'integer', description: 'How many\n{"minimum":0,"maximum":9}' } }),
  ],
  [
    'lists and texts too',
    closed({ l: { type: 'array', items: { type: 'string', pattern: '^a' }, minItems: 1, maxItems: 3 } }),
    closed({
      l: {
        type: 'array',
        items: { type: 'string', description: '{"pattern":"^a"}' },
        minItems: 1,
        description: '{"maxItems":3}',
      },
    }),
  ],
  [
    'a format that is not known',
    closed({ u: { type: 'string', format: 'uri-template' }, v: { type: 'string', format: 'uri' } }),
    closed({ u: { type: 'string', description: '{"format":"uri-template"}' }, v: { type: 'string', format: 'uri' } }),
  ],
  [
    'one of several is any of them, and what is beside it does not say it twice',
    closed({ a: { type: 'object', oneOf: [object({ k: { const: 1 } }), { type: 'null' }] } }),
    closed({ a: { anyOf: [closed({ k: { const: 1 } }), { type: 'null' }] } }),
  ],
  [
    'a sum of one, as generators write it of a reference with words',
    closed({ a: { allOf: [{ $ref: '#/$defs/A' }], title: 'An A' } }, { $defs: { A: object({ b: { type: 'null' } }) } }),
    closed({ a: { anyOf: [{ $ref: '#/$defs/A' }], title: 'An A' } }, { $defs: { A: closed({ b: { type: 'null' } }) } }),
  ],
  [
    'what is said beside a reference is said of a choice of one',
    closed({ a: { $ref: '#/definitions/A', description: 'An A' } }, { definitions: { A: { type: 'string' } } }),
    closed(
      { a: { anyOf: [{ $ref: '#/definitions/A' }], description: 'An A' } },
      { definitions: { A: { type: 'string' } } },
    ),
  ],
  [
    'whatever it is',
    closed({ a: { $ref: '#/$defs/A', anyOf: null, minLength: 1 } }, { $defs: { A: { type: 'null' } } }),
    closed(
      { a: { anyOf: [{ $ref: '#/$defs/A' }], description: '{"anyOf":null,"minLength":1}' } },
      { $defs: { A: { type: 'null' } } },
    ),
  ],
  [
    'what only looks like a reference is none, and what is beside a choice is said',
    closed(
      { a: { anyOf: [{ type: 'null' }], required: ['b'] } },
      { $defs: { A: { type: 'null', examples: [{ $ref: '#/x' }] } } },
    ),
    closed(
      { a: { anyOf: [{ type: 'null' }], description: '{"required":["b"]}' } },
      { $defs: { A: { type: 'null', description: '{"examples":[{"$ref":"#/x"}]}' } } },
    ),
  ],
  [
    'a description that is no text is one of the words',
    closed({ a: { type: 'null', description: { b: 1 } } }),
    closed({ a: { type: 'null', description: '{"description":{"b":1}}' } }),
  ],
  ['the dialect is not told', { $schema: 'https://json-schema.org/x', ...closed({}) }, closed({})],
  [
    'a property may have the name of a keyword',
    object({ properties: { type: 'string' }, minimum: { type: 'number' } }),
    closed({ properties: { type: 'string' }, minimum: { type: 'number' } }),
  ],
]

for (const [what, from, to] of rewritten)
  test(`R-JSON T9 closed schemas: ${what}`, () => {
    assert.deepEqual(close(from), to)
    assert.deepEqual(close(to), to)
  })

const inWords: [what: string, schema: unknown][] = [
  ['a map', object({}, { additionalProperties: { type: 'number' } })],
  ['an object of anything', { type: 'object' }],
  ['an object with more than it names', object({ a: { type: 'null' } }, { additionalProperties: true })],
  ['names by pattern', object({ a: { type: 'null' } }, { patternProperties: { '^x': { type: 'null' } } })],
  ['anything', closed({ a: {} })],
  ['anything, in short', closed({ a: true })],
  ['what is not told of a list', closed({ a: { type: 'array', items: true } })],
  ['values that are not plain', closed({ a: { enum: [{ b: 1 }] } })],
  ['a sum', closed({ a: { allOf: [object({ b: { type: 'null' } }), object({ c: { type: 'null' } })] } })],
  ['a choice beside properties', object({ a: { type: 'null' } }, { anyOf: [{ type: 'object' }] })],
  ['a tree', object({ n: { $ref: '#/$defs/N' } }, { $defs: { N: object({ l: { $ref: '#/$defs/N' } }) } })],
  [
    'two that refer to each other',
    object({}, { $ref: '#/$defs/A', $defs: { A: object({ b: { $ref: '#/$defs/B' } }), B: { $ref: '#/$defs/A' } } }),
  ],
  ['the whole within itself', object({ a: { $ref: '#' } })],
  ['what is not there', object({ a: { $ref: '#/$defs/A' } })],
  ['what is elsewhere', object({ a: { $ref: 'https://example.com/schema' } })],
  ['no object', []],
]

for (const [what, schema] of inWords)
  test(`R-JSON T9 no closed schema can express ${what}`, () => {
    assert.equal(close(schema), undefined)
  })

/** Schemas that bound nothing, open or closed, with values that fit or miss them. */
const leaf = fc.constantFrom<object>(
  { type: 'string' },
  { type: 'integer' },
  { type: 'null' },
  { const: 'c' },
  { enum: [1, 'x'] },
)
const { schema } = fc.letrec<{ schema: object }>((tie) => {
  const node = tie('schema')
  const properties = fc.dictionary(fc.constantFrom('a', 'b', 'properties', '__proto__'), node, { maxKeys: 3 })
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      leaf,
      fc.tuple(properties, fc.boolean()).map(([map, isOpen]) => {
        const required = Object.keys(map).slice(1)
        return { type: 'object', properties: map, required, ...(!isOpen && { additionalProperties: false }) }
      }),
      node.map((items) => ({ type: 'array', items })),
      fc.array(node, { minLength: 1, maxLength: 3 }).map((anyOf) => ({ anyOf })),
    ),
  }
})

test('R-JSON T9 a value that fits a closed schema fits the original; the vendor’s SDK changes nothing in it', () => {
  const ajv = new Ajv2020({ strict: false })
  const value = fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      fc.constantFrom('c', 'x', 1, 2, null, ''),
      fc.array(tie('value'), { maxLength: 2 }),
      fc.dictionary(fc.constantFrom('a', 'b', 'properties', 'other'), tie('value'), { maxKeys: 3 }),
    ),
  })).value
  fc.assert(
    fc.property(schema, fc.array(value, { maxLength: 20 }), (from, values) => {
      const to = close(from) as Record<string, unknown> | undefined
      if (to === undefined) return
      assert.deepEqual(transformJSONSchema(to), to)
      const [isFrom, isTo] = [ajv.compile(from), ajv.compile(to)]
      for (const one of values) if (isTo(one)) assert.ok(isFrom(one))
    }),
  )
})

test('R-JSON F-C35 references in one long chain are each resolved once', () => {
  const names = Array.from({ length: 20_000 }, (_, at) => `a${at}`)
  const $defs = Object.fromEntries(
    names.map((name, at) => [name, at === 0 ? { type: 'null' } : { $ref: `#/$defs/a${at - 1}` }]),
  )
  const schema = closed({ a: { $ref: '#/$defs/a19999' } }, { $defs })
  assert.deepEqual(close(schema), schema)
  assert.equal(close({ ...schema, $defs: { ...$defs, a0: { $ref: '#/$defs/a19999' } } }), undefined)
})
