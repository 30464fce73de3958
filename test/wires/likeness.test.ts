import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import test from 'node:test'
import fc from 'fast-check'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { ClientBody } from '../../src/wires/requests/client-body.ts'
import { readLikeness } from '../../src/wires/requests/likeness.ts'
import { wires } from '../../src/wires/wires.ts'
import { runsOf } from '../support/runs.ts'

/* Y24: the names by which requests without a conversation key are alike. */

const read = (wire: ClientWire, body: object, key = 'secret account-1') =>
  readLikeness(
    wires[wire].client,
    new ClientBody(Buffer.from(JSON.stringify(body))),
    createHash('sha256').update(key),
    1,
  )

/** A conversation as each wire writes it. @param mark members of the last block of instructions, tools and first turn */
const forms: Record<ClientWire, (talk: Talk, mark?: object) => object> = {
  messages: ({ tools, system, first, later }, mark) => ({
    model: 'm',
    system: [{ type: 'text', text: system, ...mark }],
    tools: tools.map((name) => ({ name, input_schema: {}, ...mark })),
    messages: [
      { role: 'user', content: [{ type: 'text', text: first, ...mark }] },
      ...later.map((content, at) => ({ role: at % 2 ? 'user' : 'assistant', content })),
    ],
  }),
  chat: ({ tools, system, first, later }, mark) => ({
    messages: [
      { role: 'system', content: [{ type: 'text', text: system, ...mark }] },
      { role: 'developer', content: 'more' },
      { role: 'user', content: [{ type: 'text', text: first, ...mark }] },
      ...later.map((content, at) => ({ role: at % 2 ? 'user' : 'assistant', content })),
    ],
    tools: tools.map((name) => ({ type: 'function', function: { name }, ...mark })),
  }),
  responses: ({ tools, system, first, later }, mark) => ({
    instructions: system,
    tools: tools.map((name) => ({ type: 'function', name, ...mark })),
    input: [
      { role: 'user', content: [{ type: 'input_text', text: first, ...mark }] },
      ...later.map((text, at) => ({
        role: at % 2 ? 'user' : 'assistant',
        content: [{ type: at % 2 ? 'input_text' : 'output_text', text }],
      })),
    ],
  }),
}

type Talk = { tools: string[]; system: string; first: string; later: string[] }

/** Texts with what could hide the end of a string or of a list. */
const text = fc.oneof(
  fc.string(),
  fc.constantFrom('a "quoted" \\', '\\\\"', '],[', '{"role":"user"}', '"cache_control":{}', '😀'),
)
const talk = fc.record({
  tools: fc.array(text, { maxLength: 3 }),
  system: text,
  first: text,
  later: fc.array(text, { maxLength: 4 }),
})
const runs = { numRuns: runsOf(300) }

for (const wire of clientWireNames) {
  const form = forms[wire]

  test(`Y24 ${wire}: all requests of a conversation have the same opening digests, wherever cache marks are`, () => {
    const mark = fc.constantFrom(
      undefined,
      { cache_control: { type: 'ephemeral' } },
      { cache_control: { type: 'ephemeral', ttl: '1h' } },
      { cache_control: null },
      { prompt_cache_breakpoint: true },
    )
    fc.assert(
      fc.property(talk, mark, mark, (one, before, after) => {
        assert.deepEqual(read(wire, form({ ...one, later: [] }, before)), read(wire, form(one, after)))
      }),
      runs,
    )
  })

  test(`Y24 ${wire}: a changed text of tools, instructions or first turn changes the digest of that part and all later ones`, () => {
    fc.assert(
      fc.property(talk, talk, (one, other) => {
        const [a, b] = [read(wire, form(one)), read(wire, form(other))]
        const [tools, system, first] = (['tools', 'system', 'first'] as const).map(
          (part) => JSON.stringify(one[part]) === JSON.stringify(other[part]),
        )
        assert.equal(a.tools === b.tools, tools)
        assert.equal(a.preamble === b.preamble, tools && system)
        assert.equal(a.opener === b.opener, tools && system && first)
      }),
      runs,
    )
  })

  test(`Y24 ${wire}: equal requests of two accounts, or of two gateways, have nothing in common`, () => {
    fc.assert(
      fc.property(talk, (one) => {
        const names = [
          read(wire, form(one)),
          read(wire, form(one), 'secret account-2'),
          read(wire, form(one), 'other account-1'),
        ]
        const all = names.flatMap(({ tools, preamble, opener }) => [tools, preamble, opener])
        for (const [at, name] of all.entries()) assert.ok(!all.includes(name, 3 * (Math.floor(at / 3) + 1)))
      }),
      runs,
    )
  })
}

test('Y24 a text that no provider would cache counts as small, and a long text is digested up to a limit', () => {
  const small = read('chat', { messages: [{ role: 'system', content: 'x'.repeat(1_000) }] })
  const large = read('chat', { messages: [{ role: 'system', content: 'x'.repeat(3_000) }] })
  assert.deepEqual([small.isSmall, large.isSmall], [true, false])
  const long = (end: string) => read('chat', { messages: [{ role: 'user', content: 'x'.repeat(300_000) + end }] })
  assert.equal(long('a').opener, long('b').opener)
  assert.equal(read('responses', { input: 'Hi' }).opener, read('responses', { input: 'Hi' }).opener)
  assert.notEqual(read('responses', { input: 'Hi' }).opener, read('responses', { input: 'Ho' }).opener)
})
