import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { holdsWord, parseKeeping } from '../../src/bytes/json.ts'
import { resolveProfile } from '../../src/catalog/profiles.ts'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import type { AnswerEvent } from '../../src/inference/answer.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { Body } from '../../src/wires/requests/read-value.ts'
import { wires } from '../../src/wires/wires.ts'
import { runsUpTo } from '../support/runs.ts'

/** As it would not come out of a parse: digits beyond 2^53, and spaces. */
const source = '{"n": 12345678901234567890, "s":"a\\"}b"}'
const callsMax = 100
const calls = Array.from({ length: callsMax }, (_, i) => `"id":"t${i}"`)

const answers: Partial<Record<ClientWire, string>> = {
  messages: `{"type":"message","content":[${calls.map((id) => `{"type":"tool_use",${id},"name":"f","input":${source}}`)}],"stop_reason":"tool_use","usage":{}}`,
  chat: `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"tool_calls":[${calls.map((id) => `{${id},"type":"function","function":{"name":"f","arguments":${source}}}`)}]}}]}`,
}

for (const [wire, text] of Object.entries(answers) as [ClientWire, string][])
  test(`T16 B25 ${wire}: a whole answer is read equally often with one call or a hundred`, (t) => {
    const parse = t.mock.method(JSON, 'parse')
    const events = wires[wire].model.createDecoder(resolveProfile(wire)).whole(text)
    assert.ok(parse.mock.callCount() <= 2, `${parse.mock.callCount()} times`)
    const written = events.flatMap((event) => (event.type === 'block_delta' ? [event.text] : []))
    assert.deepEqual(written, new Array(callsMax).fill(source))
    assert.equal(events.filter((event: AnswerEvent) => event.type === 'start').length, 1)
  })

test('T16 B25 chat: a chunk is read equally often with one call or a hundred, and each call has its own source', (t) => {
  const sourceOf = (i: number) => `{"n": ${i + 1}2345678901234567890}`
  const choices = calls.map((id, i) => {
    const call = `{${id},"type":"function","function":{"name":"f${i}","arguments":${sourceOf(i)}}}`
    return `{"index":0,"delta":{"content":null${i % 3 === 1 ? '' : `,"tool_calls":[${call}]`}}}`
  })
  const decoder = wires.chat.model.createDecoder(resolveProfile('chat'))
  const parse = t.mock.method(JSON, 'parse')
  const events = [...decoder.push({ event: undefined, data: `{"choices":[${choices}]}` })]
  assert.ok(parse.mock.callCount() <= 2, `${parse.mock.callCount()} times`)
  const written = events.flatMap((event) => (event.type === 'block_delta' ? [event.text] : []))
  assert.deepEqual(
    written,
    calls.flatMap((_, i) => (i % 3 === 1 ? [] : [sourceOf(i)])),
  )
})

const keys = ['input', 'schema']

test('T16 the text kept under a key is its source, wherever else the letters of the key occur', () => {
  const names = ['input', 'put', '"input', 'input_schema', 'schema', 'xinput', 'in\\put', 'é'] as const
  const name = fc.oneof(fc.constantFrom(...names), fc.string({ maxLength: 40 }))
  const { value } = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      name,
      fc.integer(),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(name, tie('value'), { maxKeys: 4 }),
    ),
  }))
  fc.assert(
    fc.property(value, fc.boolean(), (inner, isSpaced) => {
      const text = JSON.stringify({ a: inner }, null, isSpaced ? 1 : 0)
      const { value, raw } = parseKeeping(text, keys)
      assert.equal(JSON.stringify(restore(value, raw)), JSON.stringify({ a: inner }))
      const bytes = Buffer.from(text)
      const kept = { containers: keys, texts: [] }
      // Looked for by the scan, or afterwards: the same.
      for (const asked of [new ClientBody(bytes, kept), new ClientBody(bytes)]) {
        const body = new Body(asked, kept)
        assert.deepEqual(
          sourcesIn(body.fields, (one) => body.raw(one)),
          sourcesIn(value, raw),
        )
      }
      assert.equal(holdsWord(text, '"input_schema"'), mentions(inner, 'input_schema'))
      for (const word of ['"input_schema"', '_schema', 'input"', 'put', '"a":']) {
        assert.equal(holdsWord(text, word), text.includes(word), word)
        assert.equal(holdsWord(bytes, word), bytes.includes(word), word)
      }
    }),
    { numRuns: runsUpTo(2_000) },
  )
})

/** Every string in it as it was written, whether it was kept or not. */
function sourcesIn(value: unknown, raw: (value: unknown) => { source: string }): string[] {
  if (typeof value === 'string') return [raw(value).source]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap((member) => sourcesIn(member, raw))
}

/** What was kept, read again: nothing of it is left in the value, or this would not be the same. */
function restore(value: unknown, raw: (value: unknown) => { source: string }, isKept = false): unknown {
  if (isKept) return JSON.parse(raw(value).source)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map((entry) => restore(entry, raw))
  const members = Object.entries(value).map(([key, member]) => {
    const isContainer = typeof member === 'string' && member.startsWith('\u007fk')
    assert.equal(isContainer && key !== 'input' && key !== 'schema', false)
    assert.equal(['input', 'schema'].includes(key) && typeof member === 'object' && member !== null, false)
    return [key, restore(member, raw, isContainer)]
  })
  return Object.fromEntries(members)
}

function mentions(value: unknown, word: string): boolean {
  if (typeof value === 'string') return value === word
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, member]) => key === word || mentions(member, word))
}
