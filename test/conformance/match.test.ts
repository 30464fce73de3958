import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import type { Json } from '../../conformance/src/case.ts'
import { findMismatches, operatorNames } from '../../conformance/src/match.ts'
import { valueAt } from '../../conformance/src/paths.ts'

const document: Json = {
  text: 'Hi',
  'a.b': 1,
  empty: '',
  nothing: null,
  count: 3,
  list: [1, 2, 3],
  events: [
    { type: 'a', data: { text: 'x', n: 1 } },
    { type: 'b', data: { text: 'y' } },
    { type: 'a', data: { text: 'z', n: 2 } },
  ],
  args: '{"city":"Bern"}',
  odd: { length: 5 },
  jsons: ['{"a":1}', 'x', 3, '2'],
  mixed: ['a', 1, null, 'b'],
  nested: [{ calls: [{ id: 'c1' }, { id: 'c2' }] }, {}, { calls: [{ id: 'c3' }] }],
}

const paths: [path: string, value: Json | undefined][] = [
  ['text', 'Hi'],
  ['["a.b"]', 1],
  ['a.b', undefined],
  ['list[0]', 1],
  ['list[-1]', 3],
  ['list[3]', undefined],
  ['list[*]', [1, 2, 3]],
  ['list|length', 3],
  ['text|length', 2],
  ['count|length', undefined],
  ['events[1].data|keys', ['text']],
  ['events[*].data.n', [1, 2]],
  ['events[?type=a].data.text', ['x', 'z']],
  ['events[?data.n=2].type', ['a']],
  ['events[?type=a].data.text|join', 'xz'],
  ['args|json.city', 'Bern'],
  ['text|json', undefined],
  ['nested[*].calls[*].id', ['c1', 'c2', 'c3']],
  ['nested[*].calls[*].id|length', 3],
  ['nothing.more', undefined],
  ['text.length', undefined],
  ['toString', undefined],
  ['text[0]', undefined],
  ['count[0]', undefined],
  ['text[*]', undefined],
  ['nothing[*]', undefined],
  ['nested[0].calls', [{ id: 'c1' }, { id: 'c2' }]],
  ['nested[*].calls', [[{ id: 'c1' }, { id: 'c2' }], [{ id: 'c3' }]]],
  ['nested[*].calls[*]', [{ id: 'c1' }, { id: 'c2' }, { id: 'c3' }]],
  ['nothing|length', undefined],
  ['odd|length', undefined],
  ['odd|keys', ['length']],
  ['text|keys', undefined],
  ['list|keys', undefined],
  ['nothing|keys', undefined],
  ['absent|keys', undefined],
  ['absent|json', undefined],
  ['absent|length', undefined],
  ['absent|join', undefined],
  ['jsons|json', [{ a: 1 }, 2]],
  ['count|json', undefined],
  ['text|join', undefined],
  ['mixed|join', 'ab'],
]

for (const [path, value] of paths) {
  test(`the path ${path} leads to ${JSON.stringify(value)}`, () => assert.deepEqual(valueAt(document, path), value))
}

test('an unreadable path is refused with the character', () => {
  assert.throws(() => valueAt(document, 'list[x]'), /the path list\[x\] cannot be read from its character 5/)
  assert.throws(() => valueAt(document, 'a b'), /character 2/)
})

/** A matcher with values that it matches and values that it does not match. */
const matchers: [matcher: Json, good: (Json | undefined)[], bad: (Json | undefined)[]][] = [
  ['Hi', ['Hi'], ['hi', undefined, null, ['Hi']]],
  [null, [null], [undefined, 0, '']],
  [1, [1], ['1', 2, true]],
  [[1, { $type: 'string' }], [[1, 'x']], [[1], [1, 2], [1, 'x', 3], 'x', { 0: 1 }]],
  [{ a: 1 }, [{ a: 1 }, { a: 1, b: 2 }], [{ a: 2 }, {}, [1], null, 'a', undefined]],
  [{ toString: { $absent: true } }, [{}], [{ toString: 1 }]],
  [{ $equals: [] }, [[]], [{ length: 0 }, {}]],
  [{ $equals: [1, 2] }, [[1, 2]], [[1], [1, 3], [2, 1], { length: 2 }]],
  [{ $equals: { length: 0 } }, [{ length: 0 }], [[]]],
  [{ a: { $absent: true } }, [{}, { b: 1 }], [{ a: null }, { a: 1 }]],
  [{}, [{}, { a: 1 }], [[], null, 'x']],
  [
    { $equals: { a: 1, b: [1] } },
    [{ b: [1], a: 1 }],
    [{ a: 1 }, { a: 1, b: [1], c: 1 }, { a: 1, b: [1, 2] }, { a: 1, c: [1] }, [1]],
  ],
  [{ $equals: [1] }, [[1]], [{ 0: 1 }, [1, 2]]],
  [{ $absent: true }, [undefined], [null, '', 0]],
  [{ $absent: false }, [null, 0], [undefined]],
  [{ $present: true }, [null, 0], [undefined]],
  [{ $present: false }, [undefined], [null]],
  [{ $empty: true }, [undefined, null, '', [], {}], ['x', 0, false, [0], { a: 1 }]],
  [{ $empty: false }, ['x', 0, [0]], [undefined, null, '', [], {}]],
  [{ $oneOf: ['a', { $atLeast: 5 }] }, ['a', 5], ['b', 4]],
  [{ $all: [{ $atLeast: 2 }, { $atMost: 4 }] }, [2, 4], [1, 5]],
  [{ $atLeast: 2, $atMost: 4 }, [2, 4], [1, 5, '3']],
  [{ $not: 'a' }, ['b', undefined], ['a']],
  [{ $matches: '^a.c$' }, ['abc', 'a\nc'], ['xabc', 1, undefined]],
  [{ $contains: 'b' }, ['abc'], ['ac', ['b'], undefined]],
  [{ $type: 'integer' }, [1, -1], [1.5, '1', null]],
  [{ $type: 'array' }, [[]], [{}, 'x']],
  [{ $type: 'object' }, [{}], [[], null]],
  [{ $type: 'null' }, [null], [undefined, 0]],
  [{ $type: 'boolean' }, [false], [0]],
  [{ $near: 0.3 }, [0.3, 0.1 + 0.2], [0.300000002, '0.3']],
  [{ $near: 0 }, [1e-9, -1e-9], [1.1e-9, -1.1e-9]],
  [{ $length: 2 }, ['ab', [1, 2]], ['a', [1], 2, undefined]],
  [{ $json: { a: 1 } }, ['{"a":1}'], ['{"a":2}', '{', { a: 1 }]],
  [{ $join: 'ab' }, [['a', 'b'], ['ab']], [['b', 'a'], 'ab']],
  [{ $keys: ['a', 'b'] }, [{ a: 1, b: 1 }], [{ a: 1 }, ['a', 'b'], undefined, null]],
  [{ $ref: 'x', a: 1 }, [{ $ref: 'x', a: 1 }], [{ $ref: 'y', a: 1 }, { a: 1 }]],
  [{ $base64: 'Hi' }, ['SGk='], ['Hi', 1]],
  [{ $each: 1 }, [[1, 1], []], [[1, 2], 1]],
  [{ $some: 1 }, [[2, 1]], [[2], [], 1]],
  [{ $none: 1 }, [[2], []], [[2, 1], 2]],
  [{ $one: 1 }, [[2, 1]], [[1, 1], [2], 1]],
  [
    { $ordered: ['a', 'b'] },
    [
      ['a', 'b'],
      ['x', 'a', 'x', 'b', 'x'],
    ],
    [['b', 'a'], ['a'], ['b'], 'ab'],
  ],
  [{ $ordered: ['a', 'a'] }, [['a', 'x', 'a']], [['a', 'x']]],
  [
    [{ $same: 'x' }, { $same: 'x' }],
    [
      ['a', 'a'],
      [{ a: 1 }, { a: 1 }],
    ],
    [
      ['a', 'b'],
      [undefined as never, 'a'],
      [null, null],
    ],
  ],
  [{ $each: { $same: 'x' } }, [['a', 'a']], [['a', 'b']]],
  [{ $ordered: [{ $same: 'x' }, { $same: 'x' }] }, [['a', 'b', 'a']], [['a', 'b']]],
  [{ $different: true }, [['a', 'b'], []], [['a', 'a'], 'a']],
  [{ $ascending: true }, [[1, 2, 5], []], [[1, 1], [2, 1], ['1', '2'], 1]],
]

for (const [matcher, good, bad] of matchers) {
  const find = (value: Json | undefined) =>
    findMismatches({ at: matcher }, value === undefined ? {} : { at: value }, new Map())
  test(`the matcher ${JSON.stringify(matcher)} matches what it should, and nothing else`, () => {
    for (const value of good) assert.deepEqual(find(value), [], `should match ${JSON.stringify(value)}`)
    for (const value of bad) assert.notDeepEqual(find(value), [], `should not match ${JSON.stringify(value)}`)
  })
}

test('each operator is in the README’s list and in the tests', () => {
  const page = readFileSync(new URL('../../conformance/README.md', import.meta.url), 'utf8')
  const tried = JSON.stringify(matchers)
  for (const name of operatorNames) {
    assert.ok(page.includes(`\`${name}\``), `the README lacks ${name}`)
    assert.ok(tried.includes(`"${name}"`), `no test has ${name}`)
  }
})

test('a binding of $same holds across documents, and one of a failed branch does not last', () => {
  const bindings = new Map<string, Json>()
  assert.deepEqual(findMismatches({ a: { $same: 'id' } }, { a: 'x' }, bindings), [])
  const [found] = findMismatches({ b: { $same: 'id' } }, { b: 'y' }, bindings)
  assert.deepEqual(found, { path: 'b', expected: 'the same as before for "id": "x"', actual: 'y' })
  const other = new Map<string, Json>()
  findMismatches(
    {
      a: {
        $oneOf: [
          [{ $same: 'n' }, 1],
          [2, { $same: 'n' }],
        ],
      },
    },
    { a: [2, 3] },
    other,
  )
  assert.equal(other.get('n'), 3)
  const first = findMismatches({ a: [{ $same: 'x' }, { $same: 'x' }, { $same: 'x' }] }, { a: [1, 2, 1] }, new Map())
  assert.deepEqual(
    first.map(({ path }) => path),
    ['a[1]'],
    'the first value is the bound one',
  )
})

test('a mismatch names the place inside the value', () => {
  const [found] = findMismatches({ list: [{ a: { b: [1] } }] }, { list: [{ a: { b: [2] } }] }, new Map())
  assert.deepEqual(found, { path: 'list[0].a.b[0]', expected: '1', actual: 2 })
})

test('an unknown operator throws, and so does not pass', () => {
  for (const name of ['$equal', '$toString'])
    assert.throws(() => findMismatches({ a: { [name]: 1 } }, { a: 1 }, new Map()), {
      message: `the operator ${name} is unknown; known are ${operatorNames.join(', ')}`,
    })
})

/** A matcher with a value that it does not match, the words for what was expected, and the place. */
const words: [matcher: Json, value: Json | undefined, expected: string, path?: string][] = [
  [[1], 'x', 'a list'],
  [[1], [], '1 entries'],
  ['a', 'b', '"a"'],
  [{ a: 1 }, 'x', 'an object'],
  [{ $equals: { a: 1 } }, 1, 'exactly {"a":1}'],
  [{ $absent: true }, 1, 'absent'],
  [{ $present: true }, undefined, 'present'],
  [{ $empty: true }, 1, 'absent, null or empty'],
  [{ $empty: false }, '', 'neither absent nor null nor empty'],
  [{ $oneOf: [1] }, 2, 'one of [1]'],
  [{ $not: 1 }, 1, 'not 1'],
  [{ $matches: 'a' }, 'b', 'a text that matches "a"'],
  [{ $contains: 'a' }, 'b', 'a text with "a" in it'],
  [{ $type: 'array' }, 'b', 'of the type "array"'],
  [{ $atLeast: 2 }, 1, 'at least 2'],
  [{ $atMost: 2 }, 3, 'at most 2'],
  [{ $near: 2 }, 3, '2 to a billionth'],
  [{ $length: 2 }, 'a', '2', 'at|length'],
  [{ $json: 2 }, '1', '2', 'at|json'],
  [{ $join: 'a' }, ['b'], '"a"', 'at|join'],
  [{ $keys: ['a'] }, { b: 1 }, '"a"', 'at|keys[0]'],
  [{ $base64: 'a' }, 'Yg==', '"a"', 'at from base64'],
  [{ $each: 1 }, [2], 'each entry 1'],
  [{ $some: 1 }, 'x', 'a list'],
  [{ $some: 1 }, [2], 'an entry that is 1'],
  [{ $none: 1 }, [1], 'no entry that is 1'],
  [{ $one: 1 }, [1, 1], 'exactly one entry that is 1'],
  [{ $ordered: [1, 2] }, [1], 'in this order, others between them: [1,2]; missing 2'],
  [{ $ordered: [1] }, 1, 'a list'],
  [{ $same: 'id' }, null, 'a value for "id"'],
  [{ $different: true }, 'x', 'entries that all differ'],
  [{ $ascending: true }, 'x', 'numbers, each above the one before'],
  ['a'.repeat(400), 'b', `"${'a'.repeat(299)}…`],
  ['a'.repeat(298), 'b', `"${'a'.repeat(298)}"`],
]
for (const [matcher, value, expected, path = 'at'] of words) {
  test(`a mismatch of ${JSON.stringify(matcher).slice(0, 60)} says what was expected`, () => {
    const [found] = findMismatches({ at: matcher }, value === undefined ? {} : { at: value }, new Map())
    assert.deepEqual([found?.expected, found?.path], [expected, path])
  })
}
