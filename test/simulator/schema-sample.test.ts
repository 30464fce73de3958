import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sampleSchema } from '../../src/simulator/schema-sample.ts'

/** Schema and the value that is made for it, valid by reading. */
// biome-ignore format: one schema a line
const rows: [schema: unknown, value: unknown][] = [
  [{ type: 'string' }, 'sample value'],
  [{ const: 7 }, 7],
  [{ enum: ['b', 'a'] }, 'b'],
  [{ type: 'string', default: 'd' }, 'd'],
  [{ type: ['null', 'integer'] }, 1],
  [{ type: 'integer', minimum: 5, multipleOf: 4 }, 8],
  [{ type: 'integer', exclusiveMinimum: 1 }, 2],
  [{ type: 'number', exclusiveMinimum: 0, maximum: 1 }, 0.5],
  [{ type: 'number', maximum: -3 }, -3],
  [{ type: 'string', minLength: 20 }, 'sample value sample '],
  [{ type: 'string', maxLength: 3 }, 'sam'],
  [{ type: 'string', format: 'email' }, 'sample@example.com'],
  [{ type: 'string', pattern: '^[A-Z]{3}-\\d+$' }, 'ABC-123'],
  [{ type: 'array', items: { type: 'integer' }, minItems: 2, uniqueItems: true }, [1, 2]],
  [{ type: 'array', items: { enum: ['x', 'y'] }, minItems: 2, uniqueItems: true }, ['x', 'y']],
  [{ type: 'array', maxItems: 0 }, []],
  [{ type: 'array', prefixItems: [{ type: 'boolean' }, { type: 'null' }] }, [true, null]],
  [{ type: 'object', properties: { a: { type: 'boolean' }, b: {} }, required: ['a'] }, { a: true }],
  [{ type: 'object', properties: { a: { type: 'boolean' } } }, { a: true }],
  [{ anyOf: [{ type: 'null' }, { type: 'string' }] }, null],
  [{ allOf: [{ properties: { a: { const: 1 } }, required: ['a'] }, { properties: { b: { const: 2 } }, required: ['b'] }] }, { a: 1, b: 2 }],
  [{ $ref: '#/$defs/x', $defs: { x: { const: 'found' } } }, 'found'],
  [undefined, 'sample value'],
]

test('a sample is valid for its schema', () => {
  for (const [schema, value] of rows) assert.deepEqual(sampleSchema(schema), value, JSON.stringify(schema))
})

test('the sample of a recursive schema is finite', () => {
  const node = {
    type: 'object',
    properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] }, all: { type: 'array', items: { $ref: '#' } } },
    required: ['next', 'all'],
  }
  const text = JSON.stringify(sampleSchema(node))
  assert.match(text, /"next":null,"all":\[\]/)
})
