import fc from 'fast-check'
import type { ClientWire } from '../../../src/catalog/wire-names.ts'
import { png } from './exchange.ts'

/** One exchange: what the user's side says (results of the calls before it included), and what the model answers. */
export type Round = {
  asks: string[]
  image: boolean
  note?: { text: string; place: 'before' | 'between' | 'after' }
  /** Seeds the order in which the results of the round before come back. */
  shuffle: number
  says: string
  calls: { id: string; name: string; args: string }[]
}

const words = fc.constantFrom('a', 'be', 'Hi there', ' x ', 'é\ud83d\ude00', '\ud800', '"quoted"\n', '{"a":1}')
const call = fc.record({
  // Few ids, legal and not, so that they repeat within a turn and across turns (R-PAIR 3).
  id: fc.constantFrom('call_0', 'call_1', 'c.2|x', 'y'.repeat(70)),
  name: fc.constantFrom('f', 'g', 'h.i', 'n'.repeat(100)),
  args: fc.constantFrom('{}', '{"a":1.0}', '{"n":12345678901234567890}', '{"a": {"b":[1, 2]}}'),
})

export const round: fc.Arbitrary<Round> = fc.record(
  {
    asks: fc.array(words, { minLength: 1, maxLength: 3 }),
    image: fc.boolean(),
    note: fc.record({ text: words, place: fc.constantFrom('before', 'between', 'after') }),
    shuffle: fc.nat(5),
    says: fc.oneof(words, fc.constant('')),
    calls: fc.array(call, { maxLength: 3 }),
  },
  { requiredKeys: ['asks', 'image', 'shuffle', 'says', 'calls'] },
) as fc.Arbitrary<Round>

export const conversation = fc.array(round, { minLength: 1, maxLength: 5 })

const toolNames = ['f', 'g', 'h.i', 'n'.repeat(100)]
const schema = { type: 'object', properties: { a: {} } }

/**
 * The request a client of the wire makes at the user's side of the last round, which the model has not answered yet.
 * JSON text, so that arguments keep their source.
 */
export function requestAt(wire: ClientWire, rounds: Round[]): string {
  const list: string[] = []
  for (const [index, one] of rounds.entries()) {
    const results = shuffled(rounds[index - 1]?.calls ?? [], one.shuffle)
    list.push(...renderers[wire].user(one, results))
    if (index < rounds.length - 1) list.push(...renderers[wire].model(one))
  }
  return renderers[wire].body(list.join(','))
}

type Renderer = {
  user: (one: Round, results: Round['calls']) => string[]
  model: (one: Round) => string[]
  body: (list: string) => string
}

const text = (value: string) => ({ type: 'text', text: value })
const json = JSON.stringify

/** Puts the operator's note before, between or behind results and questions. */
function withNote(one: Round, note: (text: string) => string, results: string[], asks: string[]): string[] {
  if (!one.note) return [...results, ...asks]
  const said = note(one.note.text)
  if (one.note.place === 'before') return [said, ...results, ...asks]
  return one.note.place === 'between' ? [...results, said, ...asks] : [...results, ...asks, said]
}

const renderers: Record<ClientWire, Renderer> = {
  messages: {
    user: (one, results) => {
      const answers = results.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: `of ${call.name}` }))
      const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: png } }
      const asks = [...one.asks.map(text), ...(one.image ? [image] : [])]
      return withNote(
        one,
        (note) => json({ role: 'system', content: note }),
        answers.length > 0 ? [json({ role: 'user', content: answers })] : [],
        [json({ role: 'user', content: asks })],
      )
    },
    model: (one) => {
      const calls = one.calls.map(
        (call) => `{"type":"tool_use","id":${json(call.id)},"name":${json(call.name)},"input":${call.args}}`,
      )
      const blocks = [...(one.says ? [json(text(one.says))] : []), ...calls]
      return blocks.length > 0 ? [`{"role":"assistant","content":[${blocks.join(',')}]}`] : []
    },
    body: (list) =>
      `{"model":"m-large","max_tokens":500,"system":"S","tools":${json(toolNames.map((name) => ({ name, input_schema: schema })))},"messages":[${list}]}`,
  },
  chat: {
    user: (one, results) => {
      const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}`, detail: 'low' } }
      return withNote(
        one,
        (note) => json({ role: 'system', content: note }),
        results.map((call) => json({ role: 'tool', tool_call_id: call.id, content: `of ${call.name}` })),
        [json({ role: 'user', content: [...one.asks.map(text), ...(one.image ? [image] : [])] })],
      )
    },
    model: (one) => {
      const calls = one.calls.map(({ id, name, args }) => ({
        id,
        type: 'function',
        function: { name, arguments: args },
      }))
      if (calls.length === 0 && !one.says) return []
      return [
        json({ role: 'assistant', content: one.says || null, ...(calls.length > 0 ? { tool_calls: calls } : {}) }),
      ]
    },
    body: (list) =>
      `{"model":"m-large","tools":${json(toolNames.map((name) => ({ type: 'function', function: { name, parameters: schema } })))},"messages":[{"role":"system","content":"S"}${list && ','}${list}]}`,
  },
  responses: {
    user: (one, results) => {
      const image = { type: 'input_image', image_url: `data:image/png;base64,${png}`, detail: 'low' }
      const asks = one.asks.map((ask) => ({ type: 'input_text', text: ask }))
      return withNote(
        one,
        (note) => json({ role: 'developer', content: note }),
        results.map((call) => json({ type: 'function_call_output', call_id: call.id, output: `of ${call.name}` })),
        [json({ type: 'message', role: 'user', content: [...asks, ...(one.image ? [image] : [])] })],
      )
    },
    model: (one) => [
      ...(one.says
        ? [json({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: one.says }] })]
        : []),
      ...one.calls.map(({ id, name, args }) => json({ type: 'function_call', call_id: id, name, arguments: args })),
    ],
    body: (list) =>
      `{"model":"m-large","instructions":"S","tools":${json(toolNames.map((name) => ({ type: 'function', name, parameters: schema })))},"input":[${list}]}`,
  },
}

/** Results in another order; those of one id stay in the order of their calls, which is all that pairs them. */
function shuffled(calls: Round['calls'], seed: number): Round['calls'] {
  const ids = [...new Set(calls.map((call) => call.id))]
  const turned = [...ids.slice(seed % (ids.length || 1)), ...ids.slice(0, seed % (ids.length || 1))]
  return turned.flatMap((id) => calls.filter((call) => call.id === id))
}
