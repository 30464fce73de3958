import type { WireName } from '../src/catalog/model.ts'
import { type AnswerName, eventsPerStream } from './answers.ts'

/** One row of the benchmark: a request, how often it is asked, and what a unit of its work is. */
export type Workload = {
  name: string
  unit: 'request' | 'event'
  /** The wire that is asked, and that the bare pipe and nginx pass on. */
  wire: WireName
  /** The wire of the gateway's model; another one makes it translate. */
  modelWire: WireName
  answer: AnswerName
  body: Record<string, unknown>
  connections: number
  requestsEach: number
}

const short = [{ role: 'user', content: 'Tell me something about foxes. '.repeat(28) }]
const image = Buffer.alloc(750_000, 7).fill(
  Buffer.from('89504e470d0a1a0a0000000d494844520000040000000300', 'hex'),
  0,
  24,
)

/** To measure another pair of wires, add a row. */
export const workloads: readonly Workload[] = [
  json('1 KB, chat', 'chat', { messages: short, max_tokens: 500 }),
  json('1 KB, messages', 'messages', { messages: short, max_tokens: 500 }),
  json('60 KB agent, chat', 'chat', { ...agentBody('chat'), max_tokens: 500 }, 32, 100),
  json('60 KB agent, messages', 'messages', { ...agentBody('messages'), max_tokens: 500 }, 32, 100),
  json('1 MB image, messages', 'messages', { messages: imageMessages(), max_tokens: 500 }, 4, 75),
  stream('stream, 1 event a piece, chat', 'chat', 'stream-1', 100, 3),
  stream('stream, 1 event a piece, messages', 'messages', 'stream-1', 100, 3),
  stream('stream, 8 events a piece, chat', 'chat', 'stream-8', 100, 16),
  stream('stream, 8 events a piece, messages', 'messages', 'stream-8', 100, 16),
]

/** How many units of work one request is. */
export function unitsOf(workload: Workload): number {
  return workload.unit === 'event' ? eventsPerStream : 1
}

function json(
  name: string,
  wire: WireName,
  body: Record<string, unknown>,
  connections = 32,
  requestsEach = 300,
): Workload {
  return { name, unit: 'request', wire, modelWire: wire, answer: 'json', body, connections, requestsEach }
}

function stream(name: string, wire: WireName, answer: AnswerName, connections: number, requestsEach: number): Workload {
  const body = { messages: short, max_tokens: 500, stream: true }
  return { name, unit: 'event', wire, modelWire: wire, answer, body, connections, requestsEach }
}

/** What an agent sends in the middle of its work: instructions, a dozen tools, and turns with code in their results. */
function agentBody(wire: 'chat' | 'messages'): Record<string, unknown> {
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
  const tools = Array.from({ length: 12 }, (_, i) => {
    const name = `tool_${i}`
    const description = 'Reads, searches or edits files of the project.\nUse it before you guess. '.repeat(6)
    return wire === 'chat'
      ? { type: 'function', function: { name, description, parameters } }
      : { name, description, input_schema: parameters }
  })
  const instructions = 'You are a careful engineer.\n- Read before you write.\n- Say "done" when it is done.\n'.repeat(
    50,
  )
  const code =
    'export function add(a: number, b: number): number {\n\tif (a === "x") return b\n\treturn a + b\n}\n'.repeat(14)
  const messages: object[] = wire === 'chat' ? [{ role: 'system', content: instructions }] : []
  for (let turn = 0; turn < 24; turn++) {
    const id = `call_${turn}`
    const input = { path: `/project/src/file-${turn}.ts`, offset: turn * 100 }
    if (wire === 'chat') {
      const call = { id, type: 'function', function: { name: 'tool_1', arguments: JSON.stringify(input) } }
      messages.push({ role: 'user', content: `Now look at file ${turn}.` })
      messages.push({ role: 'assistant', content: null, tool_calls: [call] })
      messages.push({ role: 'tool', tool_call_id: id, content: code })
    } else {
      const result = { type: 'tool_result', tool_use_id: id, content: [{ type: 'text', text: code }] }
      messages.push({ role: 'user', content: [{ type: 'text', text: `Now look at file ${turn}.` }] })
      messages.push({ role: 'assistant', content: [{ type: 'tool_use', id, name: 'tool_1', input }] })
      messages.push({ role: 'user', content: [result] })
    }
  }
  return { ...(wire === 'chat' ? {} : { system: instructions }), tools, messages }
}

function imageMessages(): object[] {
  const source = { type: 'base64', media_type: 'image/png', data: image.toString('base64') }
  return [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'What is this?' },
        { type: 'image', source },
      ],
    },
  ]
}
