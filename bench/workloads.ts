import type { ClientWire } from '../src/catalog/wire-names.ts'
import { type AnswerName, answerNames, eventsPerStream, isStream } from './answers.ts'

type Body = Record<string, unknown>

/** One row of the benchmark: a request, the number of repetitions, and the unit of its work. */
export type Workload = {
  name: string
  unit: 'request' | 'event'
  /** The wire of the request. */
  wire: ClientWire
  /** The wire of the gateway's model, whose answers the pipes pass on; if it is another one, the gateway translates. */
  modelWire: ClientWire
  answer: AnswerName
  /** The bodies that are sent in turn; most rows have one. */
  bodies: readonly Body[]
  /** Whether the requests are of a key with a budget of its own, beside the credit of its account. */
  hasBudget: boolean
  connections: number
  /** The requests of one measurement. */
  requests: number
  /** The least number of requests before the measurement. */
  warmRequests: number
}

const rowWires = ['chat', 'messages', 'responses'] as const
/** All pairs of a client's wire and a model's wire. */
const pairs = rowWires.flatMap((wire) => rowWires.map((modelWire) => [wire, modelWire] as const))

// With larger bodies, fewer requests do as much work.
const heavy = { requests: 4_000, warmRequests: 12_000 }
const huge = { connections: 4, requests: 300, warmRequests: 900 }

const plain = { hasBudget: false }

/** For English prose, with the tokenizers of today's models. */
const charactersPerToken = 4

const instructions = 'You are a careful engineer.\n- Read before you write.\n- Say "done" when it is done.\n'.repeat(30)
const code =
  'export function add(a: number, b: number): number {\n\tif (a === "x") return b\n\treturn a + b\n}\n'.repeat(16)

const vendorStreams = answerNames.filter((name) => /^stream-\d-/.test(name))

/** To measure something else, add a row. */
export const workloads: readonly Workload[] = [
  ...pairs.map(([wire, modelWire]) => json('1 KB', wire, { modelWire })),
  json('1 KB', 'chat', { connections: 1, requests: 3_000 }),
  json('1 KB', 'chat', { connections: 8, requests: 6_000 }),
  json('1 KB', 'chat', { connections: 200 }),
  json('1 KB, 400 tokens', 'chat', { answer: 'long' }),
  json('1 KB, 400 tokens', 'messages', { modelWire: 'chat', answer: 'long' }),
  ...pairs.map(([wire, modelWire]) => json('60 KB agent', wire, { modelWire, body: agentTurn(wire), ...heavy })),
  json('1 MB text', 'chat', { body: prompt('chat', text(1_000_000)), ...huge }),
  json('1 MB text', 'messages', { modelWire: 'chat', body: prompt('messages', text(1_000_000)), ...huge }),
  json('1 MB image', 'chat', { body: prompt('chat', image('chat')), ...huge }),
  json('1 MB image', 'messages', { body: prompt('messages', image('messages')), ...huge }),
  ...pairs.map(([wire, modelWire]) => stream('stream-1', wire, modelWire)),
  ...rowWires.map((wire) => stream('stream-8', wire)),
  stream('stream-8', 'messages', 'chat'),
  ...vendorStreams.flatMap((answer) => [stream(answer, 'chat'), stream(answer, 'messages', 'chat')]),
  profile('chat'),
  profile('messages', 'chat'),
]

/** The number of units of work in one request. */
export function unitsOf({ answer }: Workload): number {
  return isStream(answer) ? eventsPerStream : 1
}

type Given = Partial<Pick<Workload, 'modelWire' | 'answer' | 'connections' | 'requests' | 'warmRequests'>> & {
  body?: Body
}

function json(what: string, wire: ClientWire, given: Given = {}): Workload {
  const { modelWire = wire, connections = 32, requests = 10_000, warmRequests = 40_000 } = given
  const { answer = 'short', body = prompt(wire, text(868)) } = given
  const name = `${what}, ${pairOf(wire, modelWire)}, ${connections} conn.`
  return {
    ...plain,
    name,
    unit: 'request',
    wire,
    modelWire,
    answer,
    bodies: [body],
    connections,
    requests,
    warmRequests,
  }
}

function stream(answer: AnswerName, wire: ClientWire, modelWire = wire): Workload {
  const [, count, vendor] = answer.split('-')
  const name = `stream, ${count} a piece, ${pairOf(wire, modelWire)}${vendor ? `, chunks of ${vendor}` : ''}`
  const body = { ...prompt(wire, text(868)), stream: true }
  const requests = count === '1' ? 200 : 400
  const amounts = { connections: 100, requests, warmRequests: 2 * requests }
  return { ...plain, name, unit: 'event', wire, modelWire, answer, bodies: [body], ...amounts }
}

/**
 * The traffic of LiteLLM's own benchmark (https://docs.litellm.ai/docs/benchmarks, 2026-10-12): equal shares of prompts of 50,000,
 * 75,000 and 100,000 tokens, half of them for streams, of keys with budgets. A stream has 64 tokens here, with an event for each.
 */
function profile(wire: ClientWire, modelWire = wire): Workload {
  const bodies = [50_000, 75_000, 100_000].flatMap((tokens) =>
    [false, true].map((stream) => ({ ...prompt(wire, text(tokens * charactersPerToken)), max_tokens: 64, stream })),
  )
  const amounts = { connections: 64, requests: 1_200, warmRequests: 2_400 }
  const name = `LiteLLM's profile, ${pairOf(wire, modelWire)}, ${amounts.connections} conn.`
  return { name, unit: 'request', wire, modelWire, answer: 'mixed', bodies, hasBudget: true, ...amounts }
}

function pairOf(wire: ClientWire, modelWire: ClientWire): string {
  return wire === modelWire ? wire : `${wire} → ${modelWire}`
}

function text(characters: number): string {
  const sentence = 'Tell me something about foxes, 12 of them: "red", grey & white.\n'
  return sentence.repeat(Math.ceil(characters / sentence.length)).slice(0, characters)
}

function prompt(wire: ClientWire, content: unknown): Record<string, unknown> {
  const messages = [{ role: 'user', content }]
  return wire === 'responses' ? { input: messages, max_output_tokens: 500 } : { messages, max_tokens: 500 }
}

function image(wire: 'chat' | 'messages'): object[] {
  const data = Buffer.alloc(750_000, 7)
  data.write('89504e470d0a1a0a0000000d494844520000040000000300', 'hex')
  const base64 = data.toString('base64')
  const source = { type: 'base64', media_type: 'image/png', data: base64 }
  const part =
    wire === 'chat'
      ? { type: 'image_url', image_url: { url: `data:image/png;base64,${base64}` } }
      : { type: 'image', source }
  return [{ type: 'text', text: 'What is this?' }, part]
}

/** The request of an agent in the middle of its work: instructions, thirty tools, and turns with code in their results. */
function agentTurn(wire: ClientWire): Record<string, unknown> {
  const tools = Array.from({ length: 30 }, (_, i) => toolOf(wire, `tool_${i}`))
  const turns = Array.from({ length: 20 }, (_, turn) => turnOf(wire, turn)).flat()
  if (wire === 'messages') return { system: instructions, tools, messages: turns, max_tokens: 500 }
  if (wire === 'responses') return { instructions, tools, input: turns, max_output_tokens: 500 }
  return { tools, messages: [{ role: 'system', content: instructions }, ...turns], max_tokens: 500 }
}

function toolOf(wire: ClientWire, name: string): object {
  const description = 'Reads, searches or edits files of the project.\nUse it before you guess. '.repeat(3)
  const parameters = {
    type: 'object',
    properties: {
      path: { type: 'string', description: 'The absolute path of the file that is to be read or changed.' },
      offset: { type: 'integer', minimum: 0, description: 'The line to start at.' },
      pattern: { type: 'string', description: 'A regular expression; "quotes" and \\ must be escaped.' },
    },
    required: ['path'],
    additionalProperties: false,
  }
  if (wire === 'messages') return { name, description, input_schema: parameters }
  const said = { name, description, parameters }
  return wire === 'responses' ? { type: 'function', ...said } : { type: 'function', function: said }
}

function turnOf(wire: ClientWire, turn: number): object[] {
  const id = `call_${turn}`
  const asked = `Now look at file ${turn}.`
  const input = { path: `/project/src/file-${turn}.ts`, offset: turn * 100 }
  const written = { name: 'tool_1', arguments: JSON.stringify(input) }
  if (wire === 'messages')
    return [
      { role: 'user', content: [{ type: 'text', text: asked }] },
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'tool_1', input }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: code }] }] },
    ]
  if (wire === 'responses')
    return [
      { role: 'user', content: asked },
      { type: 'function_call', call_id: id, ...written },
      { type: 'function_call_output', call_id: id, output: code },
    ]
  return [
    { role: 'user', content: asked },
    { role: 'assistant', content: null, tool_calls: [{ id, type: 'function', function: written }] },
    { role: 'tool', tool_call_id: id, content: code },
  ]
}
