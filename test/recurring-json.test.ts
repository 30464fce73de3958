import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { RecurringJson } from '../src/bytes/recurring-json.ts'
import { characters } from './support/characters.ts'

/*
 * Texts that differ in one string are read without parsing all of them (issue 14, decision 61). What they say must be what
 * `JSON.parse` says, whatever stands around that string.
 */

/** As it stands between quotes: plain, escaped, with what ends a string or is none, or nothing at all. */
const inner = fc.oneof(
  fc.string({ unit: characters, maxLength: 12 }).map((text) => JSON.stringify(text).slice(1, -1)),
  fc.constantFrom('', '\\u0041', '\\n', '\\"', '\\', '"', '","a":"b', '\u0001', '\ud800', '"}]}', 'same', '\\u00zz'),
)

/** The mark is where the string stands, or stands nowhere a value does. */
const around = fc.constantFrom(
  '{"id":"x","choices":[{"index":0,"delta":{"content":"@"},"finish_reason":null}],"usage":null}',
  '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"@"}}',
  '{"a":"same","b":"@"}',
  '{"a":"@","a":"b","c":"same"}',
  '{"a":"b","a":"@"}',
  '{"@":"a","b":"c"}',
  '{"__proto__":{"a":"@"},"b":1}',
  '{"a":{"__proto__":"@"}}',
  '{"1":"b","0":"@"}',
  '["@",["@"]]',
  '"@"',
  '{"a":"\\"@"}',
  '{"a":"\\\\","b":"@\\\\"}',
  ' { "a" : "@" } ',
  '{"a":@}',
  // The same before the string, and not behind it.
  '{"a":"@","c":1}',
  '{"a":"@","c":2}',
)

test('issue 14 texts of which each differs from the one before in one string are what JSON.parse says they are', () => {
  const texts = fc.array(fc.tuple(around, fc.array(inner, { minLength: 1, maxLength: 6 })), { maxLength: 5 })
  fc.assert(
    fc.property(texts, fc.boolean(), (runs, isCompacted) => {
      const recurring = new RecurringJson()
      const told: { value: unknown; text: string }[] = []
      for (const [frame, words] of runs)
        for (const word of words) {
          const text = frame.replaceAll('@', () => word)
          if (isCompacted) recurring.compact()
          const wanted = outcomeOf(() => JSON.parse(text))
          const value = outcomeOf(() => recurring.parse(text))
          assert.deepEqual(value, wanted, text)
          if (value !== 'SyntaxError') told.push({ value, text })
        }
      // What was told stays as it was, whatever came behind it.
      for (const { value, text } of told) assert.deepEqual(value, JSON.parse(text), text)
    }),
    { numRuns: 10_000 },
  )
})

test('issue 14 what lies beside the string that changes is not read again, from the third text on', () => {
  const texts = new RecurringJson()
  // What is said again says nothing of what changes.
  for (let i = 0; i < 5; i++) texts.parse('{"delta":"a","usage":{"x":1}}')
  const values = ['a', 'b', 'c', 'd\\n', ''].map((word) => texts.parse(`{"delta":"${word}","usage":{"x":1}}`) as Told)
  assert.deepEqual(
    values.map(({ delta }) => delta),
    ['a', 'b', 'c', 'd\n', ''],
  )
  const beside = values.slice(2).map(({ usage }) => usage)
  assert.ok(beside.every((usage) => usage === beside[0]))
})

test('issue 14 texts that are numbered are compared three times and then no more', () => {
  const texts = new RecurringJson()
  for (let i = 0; i < 5; i++) texts.parse(`{"n":${i},"delta":"${'x'.repeat(i)}"}`)
  const told = ['a', 'b', 'c', 'd'].map((word) => texts.parse(`{"delta":"${word}","usage":{}}`) as Told)
  assert.deepEqual(told.map(({ delta }) => delta).join(''), 'abcd')
  assert.notEqual(told[3]!.usage, told[2]!.usage)
})

test('issue 14 a text in which the quote before the string is the one behind it is no JSON', () => {
  const texts = new RecurringJson()
  for (const word of ['a', 'b', 'c']) texts.parse(`{"delta":"${word}"}`)
  assert.throws(() => texts.parse('{"delta":"}'), SyntaxError)
})

type Told = { delta: string; usage: unknown }

function outcomeOf(parse: () => unknown): unknown {
  try {
    return parse()
  } catch (error) {
    return (error as Error).name
  }
}
