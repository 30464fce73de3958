import assert from 'node:assert/strict'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Case, Json } from '../../conformance/src/case.ts'
import { loadCases, pairsOf, readCase } from '../../conformance/src/load-cases.ts'
import { findViolation } from '../../conformance/src/schema.ts'
import { testFolder } from '../support/folder.ts'

const root = new URL('../../conformance/', import.meta.url)
const schema = JSON.parse(readFileSync(new URL('case.schema.json', root), 'utf8'))
const files = globSync('*/*.json', { cwd: new URL('cases/', root) })
const read = (file: string) => readFileSync(new URL(`cases/${file}`, root), 'utf8')

test('each case of the suite is valid by its schema, for ajv and for our own reader', () => {
  const isRight = new Ajv2020({ strict: false }).compile(schema)
  for (const file of files) assert.ok(isRight(JSON.parse(read(file))), `${file}: ${JSON.stringify(isRight.errors)}`)
  assert.equal(loadCases().length, files.length)
})

test('issue 51: the suite has at least 150 MUST and 150 SHOULD cases, each with a clause of its own', () => {
  const cases = loadCases()
  const said = cases.map(({ clause }) => clause.says)
  assert.deepEqual(
    said.filter((says, at) => said.indexOf(says) !== at),
    [],
  )
  for (const level of ['MUST', 'SHOULD']) {
    const count = cases.filter((one) => one.level === level).length
    assert.ok(count >= 150, `${count} ${level}`)
  }
})

test('issue 51: the cases run on all nine pairs, as JSON and as streams, in each area', () => {
  const seen = new Set(
    loadCases().flatMap((one) =>
      pairsOf(one).flatMap(({ client, model }) =>
        (one.client[client] ?? one.client['*'])!.steps.map(({ request: { ask, body } }) => {
          const isStream = ask?.stream ?? (body as { stream?: boolean } | undefined)?.stream
          return `${client}>${model} ${isStream ? 'stream' : 'JSON'}`
        }),
      ),
    ),
  )
  assert.equal(seen.size, 18, [...seen].join(', '))
  assert.equal(new Set(loadCases().map(({ area }) => area)).size, 10)
})

test('each request for a model names that of its lane, so that no case is answered by the script of another', () => {
  const others = loadCases().filter(({ client }) =>
    Object.values(client).some(({ steps }) =>
      steps.some(({ request: { ask, body } }) => {
        const model = (body as { model?: unknown } | undefined)?.model
        return ask === undefined && model !== undefined && !String(model).endsWith('$model')
      }),
    ),
  )
  assert.deepEqual(
    others.map(({ id }) => id),
    [],
  )
})

const good = read('tools/call-and-result-round-trip.json')

test('cases come in the order of their ids, whatever order the folder has', () => {
  const root = testFolder('bothsides')
  const folder = join(root, 'tools')
  mkdirSync(folder)
  const names = Array.from({ length: 12 }, (_, i) => [`x${i}`, `x${i}-b`]).flat()
  for (const name of names.toReversed()) writeFileSync(join(folder, `${name}.json`), good)
  assert.deepEqual(
    loadCases(root).map(({ id }) => id),
    names.map((name) => `tools/${name}`).sort(),
  )
})

const step = ['client', '*', 'steps', 0]
const reply = ['model', '*', 'exchanges', 0, 'reply']

/** A member of a good case with the value that it gets (undefined removes it), and the words with which the case is refused. */
const wrong: [what: string, place: (string | number)[], value: Json | undefined, says: RegExp][] = [
  ['no title', ['title'], undefined, /title is missing/],
  ['a title that is no sentence', ['title'], 'x', /title does not match/],
  ['an unknown level', ['level'], 'must', /level is "must"; it may be MUST, SHOULD, MAY/],
  ['an unknown member', ['levle'], 1, /levle is unknown; known are/],
  ['a clause without a day', ['clause', 'day'], undefined, /clause has none of the forms: clause.day is missing/],
  ['a single SDK', ['clause'], { sdks: [{ name: 'a', version: '1' }], says: 'x' }, /fewer than 2 entries/],
  ['an unknown wire', ['client', 'gemini'], { steps: [] }, /client.gemini is unknown/],
  ['no client', ['client'], {}, /client has fewer than 1 members/],
  ['no steps', ['client', '*', 'steps'], [], /steps has fewer than 1 entries/],
  ['a text for steps', ['client', '*', 'steps'], 'x', /steps is no array/],
  ['a status under all', [...reply, 'status'], 99, /status is under 200/],
  ['a status over all', [...reply, 'status'], 1000, /status is over 599/],
  ['a pair that is none', ['pairs'], ['chat>gemini'], /pairs\[0\] does not match/],
  ['two forms of a request', [...step, 'request', 'body'], {}, /a request with body and ask/],
  ['bytes beside a form', [...step, 'request', 'raw'], '{', /a request with ask and raw: it may have one/],
  ['two forms of bytes', [...step, 'request', 'base64'], 'e30=', /a request with ask and base64/],
  ['two forms of a reply', [...reply, 'json'], {}, /a reply in 2 forms/],
  [
    'an unknown operator',
    [...step, 'expect', 'text'],
    { $equal: 1 },
    /the operator \$equal is unknown; known are \$\w+, \$/,
  ],
  ['a hidden operator', [...step, 'expect', 'text'], [{ $some: { a: { $x: 1 } } }], /operator \$x is unknown/],
  ['a wrong expression', [...step, 'expect', 'text'], { $matches: '(?<x' }, /Invalid regular expression/],
  ['an escape of nothing', [...step, 'expect', 'text'], { $matches: '\\-' }, /Invalid regular expression/],
  ['operators beside members', [...step, 'expect', 'text'], { $same: 'a', b: 1 }, /stand together: \$same, b/],
  [
    'an unknown operator of the model',
    ['model', '*', 'exchanges', 0, 'expect', 'body'],
    { $x: 1 },
    /operator \$x is unknown/,
  ],
  ['a path that cannot be read', [...step, 'expect', 'a[b]'], 1, /the path a\[b\] cannot be read from its character 2/],
  ['an event in no form', reply, { events: [{ date: 1 }] }, /has none of the forms/],
]

for (const [what, place, value, says] of wrong) {
  test(`a case with ${what} is refused with the name of the member`, () => {
    const one = JSON.parse(good)
    let holder = one
    for (const name of place.slice(0, -1)) holder = holder[name]
    holder[place.at(-1)!] = value
    assert.throws(() => readCase('tools/x.json', JSON.stringify(one)), says)
  })
}

test('a case whose pairs its sides do not have is refused', () => {
  const one = { ...JSON.parse(good), pairs: ['chat>chat'] }
  one.client = { messages: one.client['*'] }
  assert.throws(() => readCase('tools/x.json', JSON.stringify(one)), /pairs has chat>chat, which/)
})

test('the value of $equals is compared literally, whatever the names of its members', () => {
  const one = JSON.parse(good)
  one.client['*'].steps[0].expect = { text: { $equals: { $x: { $y: 1 } } } }
  assert.doesNotThrow(() => readCase('tools/x.json', JSON.stringify(one)))
})

test('a case outside of an area, with a strange name or without any expectation is refused', () => {
  assert.throws(() => readCase('toys/x.json', good), /lies in no area; areas are requests/)
  assert.throws(() => readCase('tools/X.json', good), /other characters/)
  const one = JSON.parse(good)
  for (const nothing of [undefined, {}]) {
    for (const side of [one.client['*'].steps, one.model['*'].exchanges])
      for (const entry of side) entry.expect = nothing
    assert.throws(() => readCase('tools/x.json', JSON.stringify(one)), /it expects nothing/)
  }
})

test('a schema with an unknown keyword makes the reader throw, so that nothing passes unchecked', () => {
  assert.throws(() => findViolation({}, { format: 'date' }), /the keyword format, which this reader does not know/)
  assert.equal(findViolation({}, true as never), undefined)
  assert.equal(findViolation([1], { additionalProperties: false }), undefined)
  assert.match(findViolation(1, { type: 'string' }) ?? '', /^the file is no string$/)
})

const text = { type: 'string' }
const strict = { properties: { a: text, b: { items: text } }, additionalProperties: false }

/** A schema and a value with the violation of it; undefined if there is none. */
const violations: [schema: { [keyword: string]: unknown }, value: Json, says: string | undefined][] = [
  [{ $schema: 1, $id: 1, $defs: 1, title: 1, description: 1 }, 1, undefined],
  [text, 'x', undefined],
  [text, 1, 'the file is no string'],
  [{ type: 'integer' }, 1, undefined],
  [{ type: 'integer' }, 1.5, 'the file is no integer'],
  [{ type: 'integer' }, '1', 'the file is no integer'],
  [{ type: 'number' }, 1.5, undefined],
  [{ type: 'null' }, null, undefined],
  [{ type: 'object' }, null, 'the file is no object'],
  [{ type: 'object' }, [], 'the file is no object'],
  [{ type: 'array' }, {}, 'the file is no array'],
  [{ properties: { a: text } }, { a: 1 }, 'a is no string'],
  [{ properties: { a: { properties: { b: text } } } }, { a: { b: 1 } }, 'a.b is no string'],
  [{ properties: { toString: text } }, {}, undefined],
  [{ properties: { a: text } }, { toString: 1 }, undefined],
  [{ properties: { length: text } }, [1], undefined],
  [{ properties: { 0: text } }, [1], undefined],
  [{ items: text }, ['x', 1], '[1] is no string'],
  [{ items: text }, { 0: 1 }, undefined],
  [{ items: { required: ['b', 'a'] } }, [{ a: 1 }], '[0].b is missing'],
  [{ required: ['a'] }, {}, 'a is missing'],
  [{ required: ['a'] }, { a: null }, undefined],
  [{ required: ['a'] }, 'x', undefined],
  [strict, { a: 'x', b: [] }, undefined],
  [strict, { a: 'x', b: ['y', 2] }, 'b[1] is no string'],
  [strict, { c: 1 }, 'c is unknown; known are a, b'],
  [strict, { toString: 1 }, 'toString is unknown; known are a, b'],
  [strict, ['x'], undefined],
  [{ additionalProperties: true }, { a: 1 }, undefined],
  [{ additionalProperties: false }, { a: 1 }, 'a is unknown; known are '],
  [{ properties: { a: { enum: ['x', 1] } } }, { a: 'y' }, 'a is "y"; it may be x, 1'],
  [{ enum: ['x', 1] }, 1, undefined],
  [{ pattern: '^x' }, 'xy', undefined],
  [{ pattern: '^x' }, 1, undefined],
  [{ items: { pattern: '^x' } }, ['yx'], '[0] does not match ^x'],
  [{ minimum: 2 }, 2, undefined],
  [{ minimum: 2 }, '1', undefined],
  [{ items: { minimum: 2 } }, [1], '[0] is under 2'],
  [{ maximum: 2 }, 2, undefined],
  [{ maximum: 2 }, '3', undefined],
  [{ items: { maximum: 2 } }, [3], '[0] is over 2'],
  [{ minItems: 2 }, [1, 2], undefined],
  [{ minItems: 2 }, { length: 1 }, undefined],
  [{ items: { minItems: 2 } }, [[1]], '[0] has fewer than 2 entries'],
  [{ minProperties: 1 }, { a: 1 }, undefined],
  [{ minProperties: 1 }, [], undefined],
  [{ items: { minProperties: 2 } }, [{ a: 1 }], '[0] has fewer than 2 members'],
  [{ oneOf: [text, { type: 'null' }] }, null, undefined],
  [
    { items: { oneOf: [text, { type: 'null' }] } },
    [1],
    '[0] has none of the forms: [0] is no string; or [0] is no null',
  ],
  [{ $defs: { a: { b: text } }, items: { $ref: '#/$defs/a/b' } }, [1], '[0] is no string'],
  [
    {
      $defs: { a: { properties: { b: { items: { $ref: '#/$defs/a' } } }, additionalProperties: false } },
      $ref: '#/$defs/a',
    },
    { b: [{ b: [{ c: 1 }] }] },
    'b[0].b[0].c is unknown; known are b',
  ],
]
for (const [schema, value, says] of violations) {
  test(`by the schema ${JSON.stringify(schema)}, ${JSON.stringify(value)} ${says === undefined ? 'is valid' : 'is not'}`, () =>
    assert.equal(findViolation(value, schema), says))
}

test('the pairs of a case are the wires of its client with those of its model, or its own wire if it asks none', () => {
  const steps = { steps: [] }
  const names = (one: object) => pairsOf(one as Case).map(({ client, model }) => `${client}>${model}`)
  assert.deepEqual(names({ client: { chat: steps, messages: steps } }), ['chat>chat', 'messages>messages'])
  assert.equal(names({ client: { '*': steps }, model: { '*': { exchanges: [] } } }).length, 9)
  assert.deepEqual(names({ client: { messages: steps }, model: { chat: {}, responses: {} } }), [
    'messages>chat',
    'messages>responses',
  ])
  assert.deepEqual(names({ client: { '*': steps }, pairs: ['chat>chat', 'messages>messages', 'x'] }), [
    'chat>chat',
    'messages>messages',
  ])
})

test('all invalid files are reported at once, each with its path', () => {
  const root = testFolder('bothsides')
  for (const [file, content] of [
    ['tools/a.json', '{}'],
    ['tools/b.json', good],
    ['toys/c.json', good],
    ['tools/d.json', '['],
  ] as const) {
    mkdirSync(join(root, dirname(file)), { recursive: true })
    writeFileSync(join(root, file), content)
  }
  assert.throws(
    () => loadCases(root),
    ({ message }: Error) => {
      const lines = message.split('\n').sort()
      assert.deepEqual(lines.slice(0, 1), ['tools/a.json: title is missing'])
      assert.match(lines[1]!, /^tools\/d\.json: .*JSON/)
      const areas = 'requests, answers, streams, tools, reasoning, images-and-files, errors, usage, robustness, money'
      assert.deepEqual(lines.slice(2), [`toys/c.json: it lies in no area; areas are ${areas}`])
      return true
    },
  )
})

test('a case has the id and the area of its file, and no name of its schema', () => {
  const { $schema, ...members } = JSON.parse(good)
  assert.deepEqual(readCase('tools/x-2.json', JSON.stringify({ $schema: 'x', ...members })), {
    id: 'tools/x-2',
    area: 'tools',
    ...members,
  })
})

test('a reply in two forms, or a request in two, is refused with the side and the wire', () => {
  const one = (request: object, reply: object, more: object = {}) =>
    readCase(
      'tools/x.json',
      JSON.stringify({
        ...JSON.parse(good),
        client: { chat: { steps: [{ request, expect: { status: 200 } }] } },
        model: { messages: { exchanges: [{ reply }] } },
        ...more,
      }),
    )
  const right = { ask: {} }
  for (const reply of [{ answer: {} }, { json: {}, events: [] }, { raw: '' }, { base64: '' }, {}])
    assert.doesNotThrow(() => one(right, reply), JSON.stringify(reply))
  for (const [reply, count] of [
    [{ answer: {}, raw: '' }, 2],
    [{ events: [], base64: '' }, 2],
    [{ answer: {}, json: null, raw: '', base64: '' }, 3],
  ] as const) {
    assert.throws(() => one(right, reply), {
      message: `model.messages has a reply in ${count} forms: it may have one`,
    })
  }
  assert.throws(() => one({ body: 1, ask: {}, raw: '', base64: '' }, {}), {
    message: 'client.chat has a request with body and ask and raw and base64: it may have one',
  })
  assert.throws(() => one(right, {}, { pairs: ['chat>messages', 'chat>chat'] }), {
    message: 'pairs has chat>chat, which client and model do not have',
  })
  assert.throws(() => one(right, {}, { client: { chat: { steps: [{ request: right }] } } }), {
    message: 'it expects nothing',
  })
  const steps = [{ request: right }]
  assert.doesNotThrow(() => one(right, {}, { client: { chat: { steps } }, bill: { amount: 1 } }))
})
