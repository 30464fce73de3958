import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { FrameCutter } from '../../src/bytes/frame-cutter.ts'
import { asObject } from '../../src/bytes/json.ts'
import { JsonPatch } from '../../src/wires/answers/json-patch.ts'
import { wires } from '../../src/wires/wires.ts'
import { characters } from '../support/characters.ts'
import { answers, frames, named } from '../support/native.ts'
import { runsUpTo } from '../support/runs.ts'
import { modelOf } from './models.ts'

/*
 * B5: a last event can have megabytes, nearly all of them log probabilities. It is scanned once, what nobody reads is not
 * parsed, and what is read, edited and billed is what a parse of all would have said.
 */

/** JSON as text, so that keys come twice, escaped, and with any white space between. */
function jsonText(): fc.Arbitrary<string> {
  const space = fc.constantFrom('', '', '', ' ', '\n', '\t \r\n')
  const key = fc.constantFrom(
    ...['response', 'usage', 'logprobs', 'model', 'id', 'output', 'a', '', '__proto__', 'logprobs ', 'Logprobs'].map(
      (name) => JSON.stringify(name),
    ),
    '"log\\u0070robs"',
    '"r\\u0065sponse"',
    '"us\\u0061ge"',
    '"\\"logprobs"',
    '"logprobs\\\\"',
  )
  const scalar = fc.oneof(
    fc.constantFrom('null', 'true', '1', '-0', '1e300', '12345678901234567890', '"logprobs"', '"{\\"logprobs\\":[1]}"'),
    fc.string({ unit: characters, maxLength: 8 }).map((text) => JSON.stringify(text)),
  )
  const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      scalar,
      tie('object'),
      fc.tuple(space, fc.array(tie('value'), { maxLength: 3 })).map(([gap, all]) => `[${gap}${all.join(`${gap},`)}]`),
    ),
    object: fc
      .tuple(space, fc.array(fc.tuple(key, tie('value')), { maxLength: 5 }))
      .map(([gap, all]) => `{${gap}${all.map(([name, value]) => `${name}${gap}:${gap}${value}`).join(`,${gap}`)}}`),
  }))
  return fc
    .array(fc.tuple(key, value), { maxLength: 5 })
    .map((all) => `{${all.map(([name, inner]) => `${name}:${inner}`).join(',')}}`)
}

/** The same without what log probabilities hold. */
function withoutUnread(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutUnread)
  const object = asObject(value)
  if (object === undefined) return value
  return Object.entries(object).map(([name, inner]) => [
    name,
    name === 'logprobs' && typeof inner === 'object' ? null : withoutUnread(inner),
  ])
}

function parsed(text: string): unknown {
  try {
    return asObject(JSON.parse(text))
  } catch {
    return undefined
  }
}

test('B5: the parts read of an answer equal those of a full parse, except its log probabilities', () => {
  fc.assert(
    fc.property(jsonText(), fc.constantFrom(undefined, 'response', 'usage'), (text, inside) => {
      const { value } = new JsonPatch(Buffer.from(text), inside)
      assert.deepEqual(withoutUnread(value), withoutUnread(JSON.parse(text)))
    }),
    { numRuns: runsUpTo(1_000) },
  )
})

test('B5: edits give the same result whether the scan recorded the members or they are searched for', () => {
  const values = new Map([
    ['model', '"ours"'],
    ['id', '"resp_ours"'],
  ])
  fc.assert(
    fc.property(jsonText(), (text) => {
      const edited = ['response', undefined].map((inside) => {
        const patch = new JsonPatch(Buffer.from(text), inside)
        patch.set(['response'], values)
        patch.setMissing(['response', 'usage'], { output_tokens: 7 })
        return patch.result().toString()
      })
      assert.equal(edited[0], edited[1])
      const response = asObject(asObject(JSON.parse(edited[0]!))?.['response'])
      if (asObject(parsed(text)?.['response' as never])) assert.equal(response?.['model'], 'ours')
    }),
    { numRuns: runsUpTo(1_000) },
  )
})

test('B5: invalid JSON is refused wherever it is, also in parts that are not read', () => {
  fc.assert(
    fc.property(
      jsonText(),
      fc.nat(),
      fc.constantFrom('', ',', '"', '\\', '}', ']', '{', '0', '\u0001'),
      (text, at, put) => {
        const place = at % text.length
        const broken = text.slice(0, place) + put + text.slice(place + 1)
        const isTaken = parsed(broken) !== undefined
        const take = () => new JsonPatch(Buffer.from(broken), 'response')
        if (isTaken) take()
        else assert.throws(take)
      },
    ),
    { numRuns: runsUpTo(2_000) },
  )
  for (const deep of ['[', '{"logprobs":', '{"response":'])
    assert.throws(
      () => new JsonPatch(Buffer.from(`{"response":${deep.repeat(100_000)}`), 'response'),
      /deeper than 128/,
    )
})

test('B5: of a last event with megabytes of log probabilities a few hundred characters are parsed, and it arrives whole', (t) => {
  const logprobs = Array.from({ length: 2_500 }, (_, i) => ({
    token: `t${i}`,
    logprob: -1.25,
    bytes: [1, 2],
    top_logprobs: Array.from({ length: 20 }, (_, n) => ({ token: `o${n}`, logprob: -n - 0.5, bytes: [3, 4] })),
  }))
  const part = { type: 'output_text', text: 'Hello', annotations: [], logprobs }
  const item = { id: 'msg_1', type: 'message', status: 'completed', role: 'assistant', content: [part] }
  const { output: _, ...response } = answers.responses
  const completed = named({ type: 'response.completed', sequence_number: 8, response: { ...response, output: [item] } })
  const relay = wires.responses.native.openStream({
    requestId: 'req_1',
    model: modelOf('responses'),
    createdSeconds: 1_795_000_000,
    inputTokensEstimate: 11,
  })
  relay.push(Buffer.from(frames.responses.slice(0, -1).join('')))
  let read = 0
  const { parse } = JSON
  t.mock.method(JSON, 'parse', (text: string) => {
    read += text.length
    return parse(text)
  })
  const bytes = Buffer.from(completed)
  let text = ''
  for (let at = 0; at < bytes.length; at += 65_536) text += relay.push(bytes.subarray(at, at + 65_536))
  assert.equal(relay.state, 'finished')
  relay.estimateOutput()
  text += relay.finish({
    inputTokens: 1,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
    cacheWrite1hTokens: 0,
    outputTokens: 2,
    reasoningTokens: 0,
    estimated: true,
  })
  t.mock.restoreAll()
  assert.ok(bytes.length > 2_000_000)
  assert.ok(read < 2_000, `${read} characters were parsed`)
  const shown = JSON.parse(text.split('data: ').at(-1)!)
  assert.deepEqual(shown.response.output, [item])
  assert.equal(shown.response.usage.output_tokens, 2)
})

test('translation 4.1 frames are the same wherever the network cuts them, whatever their line ends', () => {
  const line = fc.constantFrom('data: {}', 'event: a', 'data:', ': host', 'x', '')
  const end = fc.constantFrom('\n', '\r', '\r\n', '\n\n', '\r\r', '\r\n\r\n')
  const streams = fc.array(fc.tuple(line, end), { maxLength: 12 }).map((all) => all.flat().join(''))
  fc.assert(
    fc.property(streams, fc.array(fc.nat({ max: 9 }), { minLength: 1, maxLength: 6 }), (text, sizes) => {
      const whole = new FrameCutter()
      const expected = [...whole.push(text), whole.end()]
      const cutter = new FrameCutter()
      const got: (string | undefined)[] = []
      for (let at = 0, i = 0; at < text.length; i++) {
        const size = sizes[i % sizes.length]! + (i % sizes.length === 0 ? 1 : 0)
        got.push(...cutter.push(text.slice(at, at + size)))
        at += size
      }
      got.push(cutter.end())
      assert.equal(got.join(''), expected.join(''))
      assert.deepEqual(got, expected)
    }),
    { numRuns: runsUpTo(2_000) },
  )
})
