import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { fuzzTexts } from '../../scripts/fuzz-texts.ts'
import {
  beginBody,
  beginsWith,
  isBlank,
  joinTexts,
  SourceText,
  sent,
  type Text,
  verbatim,
  writeJson,
} from '../../src/bytes/json-source.ts'
import { scanObject } from '../../src/bytes/scan.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { Body } from '../../src/wires/requests/read-value.ts'
import { echoOf } from '../../src/wires/responses/echo.ts'
import { wires } from '../../src/wires/wires.ts'
import { runsOf } from '../support/runs.ts'
import { fullBodies } from './support/bodies.ts'
import { decode, encode, modelOf } from './support/exchange.ts'

const numRuns = runsOf(500)
const pairs = clientWireNames.flatMap((from) =>
  clientWireNames.filter((to) => to !== from).map((to) => [from, to] as const),
)

test('T16 a request has the same translation whether its texts are carried as source or parsed', async () => {
  const { faults, translated, refused } = await fuzzTexts(3 * numRuns, 7)
  assert.deepEqual(faults, [])
  assert.ok(translated > numRuns && refused > 0, `${translated} ${refused}`)
})

/** Strings with white space of all kinds, halves of surrogate pairs, and what the readers of texts look for. */
const string = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        ' ',
        '\n',
        '\t',
        '\v',
        '\u00a0',
        '\u1680',
        '\u2003',
        '\u2028',
        '\u3000',
        '\ufeff',
        '\ufffd',
        '\0',
      ),
      fc.constantFrom('\ud83d', '\ude00', '😀', 'é', '中', '"', '\\', '/', '\u007f', 'Error', 'eRROR', 'x-'),
      fc.string(),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''))

/** A text as a client may write it, as a range of its body. @param spelling of each character: as it is, or as an escape */
function sourceOf(text: string, spelling: readonly boolean[]): SourceText {
  const inner = [
    ...JSON.stringify(text)
      .slice(1, -1)
      .matchAll(/\\u....|\\.|./gsu),
  ].map(([part], i) =>
    spelling[i % spelling.length] && part.length === 1
      ? `\\u${part.charCodeAt(0).toString(16).padStart(4, '0')}`
      : part.replace(/^\/$/, '\\/'),
  )
  const source = `"${inner.join('')}"`
  const bytes = Buffer.from(`..${source}.`)
  return new SourceText([{ bytes, start: 2, end: bytes.length - 1 }])
}

const text: fc.Arbitrary<Text> = fc
  .tuple(string, fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }))
  .map(([value, spelling]) => (value === '' ? value : sourceOf(value, spelling)))

test('T16 a carried text is equal to its string, and behaves like it in prefix tests and joins', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(text, string), { maxLength: 5 }),
      fc.constantFrom('', '\n', '\n\n', '"\\'),
      (texts, between) => {
        const strings = texts.map((one) => one.toString())
        const joined = joinTexts(texts, between)
        assert.equal(joined.toString(), strings.join(between))
        for (const one of [...texts, joined, joinTexts([joined, ...texts], between)]) {
          const value = one.toString()
          // Code that takes a carried text for a string reads it.
          assert.deepEqual([`${one}`, [one].join(), JSON.parse(JSON.stringify(one))], [value, value, value])
          assert.equal(Boolean(one), value !== '')
          assert.equal(isBlank(one), value.trim() === '')
          for (const word of ['error', 'x-'])
            assert.equal(beginsWith(one, word), value.slice(0, word.length).toLowerCase() === word)
          assert.equal(JSON.parse(writeJson({ one }).toString()).one, value)
        }
      },
    ),
    { numRuns },
  )
})

test('T16 two halves of a surrogate pair become one character when joined, as in strings', () => {
  const halves = [sourceOf('a\ud83d', [false]), sourceOf('\ude00b', [false])]
  assert.equal(joinTexts(halves, '').toString(), 'a😀b')
  assert.equal(JSON.parse(writeJson([joinTexts(halves, '')]).toString())[0], 'a😀b')
  assert.equal(writeJson([joinTexts(['\ud83d', halves[1]!], '')]).toString(), '["\\ud83d\\ude00b"]')
})

test('T16 a source that is written twice, or omitted with its member, does not affect other sources', () => {
  const [a, b, c] = ['first', 'second', 'third'].map((value) => sourceOf(value, [false]))
  const body = { b: undefined, a, list: [a, c], twice: a }
  assert.equal(writeJson(body).toString(), '{"a":"first","list":["first","third"],"twice":"first"}')
  assert.equal(writeJson({ b }).toString(), '{"b":"second"}')
})

test('T16 a body contains its texts unchanged, whether they are inserted as tokens or directly', () => {
  const text = sourceOf('é"\n', [false])
  const many = Array.from({ length: 600 }, (_, i) => sourceOf(`t${i}`, [false]))
  beginBody()
  const body = { a: sent(text), b: text, c: verbatim({ source: '{ "k":1.0}' }), d: sent('é'), e: sent(undefined) }
  assert.equal(
    writeJson({ ...body, many: many.map(sent) }).toString(),
    JSON.stringify({ ...body, a: text, c: 0, many }).replace('"c":0', '"c":{ "k":1.0}'),
  )
  const token = sent(text)
  beginBody()
  assert.throws(() => writeJson({ token }), /stands for nothing/)
  assert.throws(() => writeJson({ a: `more${sent(text)}` }), /stands for nothing/)
})

test('T16 no token leaves the gateway: code that uses one as a string causes an internal error', () => {
  const body = new Body(new ClientBody(Buffer.from(`{"text":"${'a'.repeat(100)}"}`)), {
    containers: [],
    texts: ['text'],
  })
  const token = body.fields['text']
  assert.notEqual(token, 'a'.repeat(100))
  assert.throws(() => writeJson({ text: token }), /was read as a string/)
  assert.throws(() => writeJson({ text: `some ${token} more` }), /was read as a string/)
  // A member that is written while others are: it sees the token, and what it makes of it stands for nothing.
  const text = sourceOf('x', [false])
  assert.throws(() => writeJson({ text, more: { toJSON: () => `${text.toJSON()}more` } }), /stands for nothing/)
  assert.equal(writeJson({ text }).toString(), '{"text":"x"}')
})

test('T12 T16 an answer repeats texts and schemas of its request, on one line', () => {
  const schema = { type: 'object', properties: { a: { description: `${'é"\\\n'.repeat(40)}\ud800` } } }
  const asked = {
    ...{ model: 'm', input: 'Hi', instructions: `${'a line\n'.repeat(20)}😀`, user: 'u'.repeat(99), temperature: 0.5 },
    tools: [{ type: 'function', name: 'f', description: 'd'.repeat(99), parameters: schema }, { name: 'g' }],
    metadata: { description: 'm'.repeat(99), content: 5 },
    text: { format: { type: 'json_schema', name: 'n', schema, description: 'd'.repeat(99) } },
  }
  const expected = JSON.parse(JSON.stringify(echoOf(asked)))
  for (const space of [undefined, 2, '\t']) {
    const { echo } = decode('responses', JSON.stringify(asked, undefined, space))
    assert.deepEqual(JSON.parse(`{${echo}}`), expected)
    assert.doesNotMatch(`${echo}`, /[\r\n]/)
  }
  // Digits and order stay as they were written.
  assert.match(
    `${decode('responses', '{"model":"m","input":"a","tools":[{"name":"f","parameters":{"b":1.0,"a":12345678901234567890}}]}').echo}`,
    /\{"b":1\.0,"a":12345678901234567890\}/,
  )
  // A configuration update holds from its place on, and is no part of what was asked at first.
  const update = { type: 'configuration_update', reasoning: { effort: 'low' } }
  assert.match(
    `${decode('responses', { ...asked, input: [{ role: 'user', content: 'a' }, update] }).echo}`,
    /"effort":null/,
  )
})

const long = 'All the words of a user. '.repeat(10)

/** A long text at each place where a client's text may be, as it spells it. */
function bodyOf(wire: ClientWire, source: string): string {
  const text = `"${source}"`
  const tool = (schema: string) => `{"name":"f","description":${text},"${schema}":{"type":"object"}}`
  switch (wire) {
    case 'messages':
      return `{"model":"m","max_tokens":9,"system":${text},"tools":[${tool('input_schema')}],"messages":[
        {"role":"user","content":[{"type":"text","text":${text}}]},
        {"role":"assistant","content":[{"type":"text","text":${text}},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":${text}},{"type":"text","text":"${'b'.repeat(99)}"}]},
        {"role":"system","content":${text}}]}`
    case 'chat':
      return `{"model":"m","tools":[{"type":"function","function":${tool('parameters')}}],"messages":[
        {"role":"system","content":${text}},{"role":"user","content":[{"type":"text","text":${text}}]},
        {"role":"assistant","content":${text},"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c","content":${text}},{"role":"developer","content":${text}},{"role":"user","content":"b"}]}`
    case 'responses':
      return `{"model":"m","instructions":${text},"tools":[{"type":"function",${tool('parameters').slice(1)}],"input":[
        {"role":"user","content":[{"type":"input_text","text":${text}}]},{"role":"assistant","content":${text}},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":${text}},{"role":"developer","content":${text}},{"role":"user","content":"b"}]}`
  }
}

for (const [from, to] of pairs) {
  test(`T16 ${from}→${to} long texts are sent in the client’s own spelling`, () => {
    const spelled = `\\u0041ll \\/ caf\\u00e9 \\ud83d\\ude00 \\ud800 \\"${long}`
    const sent = encode(to, decode(from, bodyOf(from, spelled))).body.toString()
    // A developer's text becomes a part of another text on one wire, a tool's description and five more stand alone.
    assert.ok(sent.split(spelled).length - 1 >= 6, sent)
    assert.deepEqual(
      JSON.parse(sent),
      JSON.parse(encode(to, decode(from, JSON.parse(bodyOf(from, spelled)))).body.toString()),
    )
  })

  test(`T16 ${from}→${to} the model’s body shares no memory with the client’s, which may be freed`, () => {
    const bytes = Buffer.from(bodyOf(from, long))
    const encoded = encode(to, decode(from, bytes))
    const { body, ...rest } = encoded
    const before = [
      body.toString(),
      JSON.stringify({ ...rest, names: [...rest.names], toolNames: [...rest.toolNames] }),
    ]
    bytes.fill(0)
    assert.deepEqual(
      [body.toString(), JSON.stringify({ ...rest, names: [...rest.names], toolNames: [...rest.toolNames] })],
      before,
    )
    // Exactly as much memory as it needs, and for itself: it is freed when it is sent.
    assert.deepEqual([body.byteOffset, body.buffer.byteLength], [0, body.length])
  })

  test(`T16 ${from}→${to} texts are found if another text was scanned in between, and in a body above 4 MB`, () => {
    for (const words of [long, long.repeat(2_000), 'b\\"'.repeat(2_000_000)]) {
      const bytes = Buffer.from(bodyOf(from, words))
      const { client } = wires[from]
      const [first, second] = [0, 1].map(() => new ClientBody(bytes, client.keptKeys))
      scanObject(Buffer.from('{"content":"another text"}'), undefined, { keys: client.keptKeys })
      const [one, two, three] = [first!, second!, new ClientBody(bytes, client.keptKeys)].map((asked) =>
        wires[to].model
          .encodeRequest(client.decodeRequest(asked, { cacheKey: undefined, unseal: () => undefined }), modelOf(to))
          .body.toString(),
      )
      assert.ok(one!.split(words).length > 6)
      assert.ok(one === two && two === three)
    }
  })

  test(`T16 ${from}→${to} a request with texts of every size has the same result as one that is parsed at once`, () => {
    const { client } = wires[from]
    const [carried, read] = [3, Number.POSITIVE_INFINITY].map((textBytesMin) => {
      const asked = new ClientBody(Buffer.from(JSON.stringify(fullBodies[from])), { ...client.keptKeys, textBytesMin })
      const request = client.decodeRequest(asked, { cacheKey: 'k', unseal: () => undefined })
      const { body, losses } = wires[to].model.encodeRequest(request, modelOf(to))
      return [JSON.parse(body.toString()), losses]
    })
    assert.deepEqual(carried, read)
  })
}
