import assert from 'node:assert/strict'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import type { Json } from '../../conformance/src/case.ts'
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
  assert.equal(findViolation({}, true), undefined)
  assert.equal(findViolation([1], { additionalProperties: false }), undefined)
  assert.match(findViolation(1, { type: 'string' }) ?? '', /^the file is no string$/)
})
