import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { AlikeEvents } from '../../src/wires/answers/alike-events.ts'
import { runsOf } from '../support/runs.ts'

const runs = { numRuns: runsOf(500) * 4 }

/** A value in the place of one that differs from event to event, in JSON or nearly so. */
const part = fc.oneof(
  fc.string().map((text) => JSON.stringify(text)),
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  // biome-ignore format: parts in rows
  fc.constantFrom(
    '"a"', '" b"', '"\\n"', '"\\ud83d"', '"\\u0041"', '"é😀"', '"\u2028"', '0', '1', '00', '01', '-1', '-', '1.', '1.5', '1e3', '1E400',
    '123456789012345', '1234567890123456', '999999999999999999', 'null', 'true', '{}', '[]', '{"a":1}', '["x"]', '"a","b":"c"', '"a', 'a"',
    '"\n"', '"\t"', '"\\x"', '', '"":', '1 ', ' 2', '"a" ', '"__proto__"', '"}"', '"{\\"a\\":1}"', '"\\\\"',
  ),
)
/** Where the parts go: members, elements, keys, members that occur twice, and what an assignment would not make. */
// biome-ignore format: templates in rows
const template = fc.constantFrom(
  '{"a":#,"b":#}', '{"t":"x","n":#,"d":{"text":#,"l":null}}', '{"c":[{"i":0,"d":{"content":#}}],"u":{"n":#}}', '{"a":#,"a":#}', '[#,#]',
  '{"__proto__":#,"a":#}', '{ "a" : # ,\n"b":[ # ] }', '{"a":{"__proto__":#,"b":#}}', '{#:1,"b":#}', '{"a":[[#],[#]],"0":{}}', '#', '{"a":#}#',
)

function read(parse: () => unknown): unknown {
  try {
    return structuredClone(parse())
  } catch {
    return 'no JSON'
  }
}

test('I5 an event parsed by the template of the one before gives the same value as JSON.parse, whatever it contains', () => {
  const events = fc.tuple(
    template,
    template,
    fc.array(fc.tuple(fc.integer({ min: 0, max: 9 }), part, part), { maxLength: 12 }),
  )
  fc.assert(
    fc.property(events, ([usual, other, values]) => {
      const alike = new AlikeEvents()
      for (const [kind, first, second] of values) {
        const parts = [first, second]
        const text = (kind === 0 ? other : usual).replaceAll('#', () => parts.shift() ?? '')
        const value = read(() => alike.parse(text))
        assert.deepEqual(
          value,
          read(() => JSON.parse(text)),
          text,
        )
        if (value !== 'no JSON') alike.done(text, kind !== 1)
      }
    }),
    runs,
  )
})

test('I5 deltas that differ only in texts and numbers share one object, which is not parsed again', () => {
  const alike = new AlikeEvents()
  const eventOf = (i: number) => `{"n":${i},"d":[{"text":"t${i}","more":"${'x'.repeat(i)}"}],"u":{"sum":${i}}}`
  const objects = Array.from({ length: 9 }, (_, i) => {
    const object = alike.parse(eventOf(i)) as { d: unknown[] }
    assert.deepEqual(object, JSON.parse(eventOf(i)))
    alike.done(eventOf(i), true)
    return object
  })
  assert.doesNotMatch(JSON.stringify(objects.at(-1)), /t8/, 'a text that is let go of')
  assert.equal(new Set(objects.slice(2)).size, 1)
})
