import { writeAnswer, writeStream } from '../../../conformance/src/answer.ts'
import { writeAsk } from '../../../conformance/src/ask.ts'
import { wrongRuns } from '../../../conformance/src/bad-traces.ts'
import type { Answer, Ask, Case, Wire } from '../../../conformance/src/case.ts'
import { wires } from '../../../conformance/src/case.ts'
import { explain } from '../../../conformance/src/explain.ts'
import type { JsonObject } from '../../../conformance/src/json.ts'
import { probes, reportResult } from '../../../conformance/src/probes.ts'

const parameters = { type: 'object' }
const call = { id: 'c1', name: 'f', input: { city: 'Bern' } }

const asks: { [name: string]: Ask } = {
  ...probes,
  nothing: {},
  all: {
    text: 'Hello',
    system: 'Be brief.',
    maxTokens: 77,
    toolChoice: 'f',
    reasoning: 'high',
    cacheKey: 'k',
    stream: true,
    tools: [
      { name: 'f', description: 'Does it.', parameters },
      { name: 'g', parameters },
    ],
    body: { model: null, top_p: 0.5 },
  },
  'a cache without a system text': { text: 'Hello', cacheKey: 'k', stream: false },
  turns: {
    text: 'is left out beside turns',
    turns: [
      { user: 'one' },
      { assistant: 'two', calls: [call, { ...call, id: 'c2' }] },
      {
        results: [
          { id: 'c1', text: 'Snow' },
          { id: 'c2', text: reportResult },
        ],
      },
      { assistant: '', calls: [call] },
      { native: [{ role: 'assistant', content: 'three' }] },
      { assistant: 'four' },
    ],
  },
}

const answers: { [name: string]: Answer } = {
  nothing: {},
  all: {
    reasoning: 'I think so',
    text: 'Grüße 🎈 there',
    calls: [call, { id: 'c2', name: 'g' }, { id: 'c3', name: 'h', arguments: '{"x":' }],
    stop: 'calls',
    usage: { input: 100, output: 9, cached: 40, cacheWrite: 7, reasoning: 4 },
    pieces: 3,
  },
  'calls without text': { calls: [call], stop: 'calls', usage: { input: 5, output: 5, cached: 2 } },
  'cut short': { text: 'Cut', stop: 'length', usage: { input: 5, output: 5, cacheWrite: 2 } },
  refused: { text: 'No', stop: 'refusal', usage: { input: 5, output: 5, reasoning: 0 }, pieces: 1 },
}

/** Bodies that no answer in words makes, as cases have them in `json`. */
const bodies: { [wire in Wire]: { [name: string]: JsonObject } } = {
  chat: {
    'two choices': {
      id: 'c',
      usage: {},
      choices: [
        { index: 1, message: { role: 'tool', content: 'one', refusal: 'No', annotations: [1] }, finish_reason: 'stop' },
        {
          message: { content: null, audio: 'abcd', tool_calls: [{ id: 'c1', function: { name: 'f' } }] },
          finish_reason: 'tool_calls',
        },
      ],
    },
  },
  messages: {
    'odd blocks': {
      id: 'm',
      content: [{ type: 'redacted_thinking', data: 'x' }, { type: 'thinking', thinking: '' }, 1],
    },
    'a stop sequence': { content: [], stop_reason: 'stop_sequence', stop_sequence: 'END', usage: { output_tokens: 3 } },
  },
  responses: {
    'odd items': {
      id: 'r',
      status: 'incomplete',
      incomplete_details: { reason: 'x' },
      output: [
        { type: 'web_search_call' },
        { id: 'i', type: 'reasoning' },
        { type: 'message', content: [{ type: 'output_text' }] },
      ],
    },
  },
}

/** Writes all of these as each wire has them: an ask or a body on one line, and each event of a stream. */
export function writeAll(): string {
  const lines: string[] = []
  for (const wire of wires) {
    for (const [name, ask] of Object.entries(asks)) lines.push(`# ${wire} asks: ${name}`, show(writeAsk(wire, ask)))
    for (const [name, answer] of Object.entries(answers)) {
      const body = writeAnswer(wire, answer, 'm')
      lines.push(`# ${wire} answers: ${name}`, show(body), ...streamOf(wire, body, answer))
    }
    for (const [name, body] of Object.entries(bodies[wire]))
      lines.push(`# ${wire} streams: ${name}`, ...streamOf(wire, body, { hasUsage: false }))
  }
  return `${lines.join('\n')}\n`
}

/** Writes JSON with members that are undefined, too. */
function show(value: unknown): string {
  return JSON.stringify(value, (_, member) => (member === undefined ? 'it is undefined' : member))
}

function streamOf(wire: Wire, body: JsonObject, streaming: Parameters<typeof writeStream>[2]): string[] {
  return writeStream(wire, body, streaming).map(show)
}

const source = { source: 'A page', url: 'https://example.com/page', day: '2026-11-20', says: 'It says so.' }
const sdks = [
  { name: 'one', version: '1.2.3' },
  { name: 'two', version: '4.5.6' },
]
const made = { area: 'answers', level: 'MUST', title: 'It is so' }
const answer = { answer: { text: 'Hello', pieces: 1 } }

const cases = [
  {
    ...made,
    id: 'answers/all',
    clause: { sdks, says: 'Both fail.' },
    note: 'A note.',
    pairs: ['chat>messages', 'responses>messages'],
    client: {
      chat: {
        steps: [
          { request: { ask: { text: 'Hi' }, leaveAfter: { events: 2 } }, expect: { status: 200, text: { $not: '' } } },
          { request: { body: { model: '$model', stream: true } } },
        ],
      },
      '*': { steps: [{ request: { raw: 'x' } }] },
    },
    model: {
      messages: {
        exchanges: [
          { expect: { 'asked.stream': true }, reply: { ...answer, pauseMs: 5 } },
          { reply: { json: { a: 1 }, status: 400 } },
        ],
      },
      '*': { exchanges: [{ reply: { json: {} } }] },
    },
    bill: { amount: { $atLeast: 1 } },
  },
  {
    ...made,
    id: 'answers/whole',
    clause: source,
    client: { '*': { steps: [{ request: { ask: { text: 'Hi', stream: false } }, expect: { text: 'Hello' } }] } },
    model: { '*': { exchanges: [{ reply: answer }] } },
  },
  {
    ...made,
    id: 'answers/stream',
    clause: source,
    pairs: ['chat>chat'],
    client: { chat: { steps: [{ request: { ask: { stream: true } } }, { request: { ask: {} } }] } },
    model: { chat: { exchanges: [{ reply: answer }] } },
  },
  { ...made, id: 'answers/unasked', clause: source, client: { messages: { steps: [{ request: { body: {} } }] } } },
] as unknown as Case[]

/** Writes the pages of cases that have, one or the other, all that a case may have. */
export function explainAll(): string {
  return `${cases.map(explain).join('\n\n')}\n`
}

const step = {
  status: 200,
  text: 'Hi',
  body: { list: [1, 'a', 2], json: ' {"a":[]}', odd: '[x' },
  none: null,
  done: true,
}

/** A run of two steps and two requests, with expectations of each kind of place. */
const traced = {
  client: {
    '*': { steps: [] },
    chat: {
      steps: [
        {
          request: {},
          expect: {
            'body["a b"].c': { $absent: true },
            'body.list[0]': 1,
            'body.list[-1]': 2,
            'body.list[4]': { $not: ['x', null] },
          },
        },
        { request: {} },
      ],
    },
  },
  model: {
    '*': {
      exchanges: [
        { expect: { 'a[-3].b': 1, 'b.list[*]': 2, 'b|keys': [3], 'b[?c=d]': 4 }, reply: {} },
        { expect: { 'a[1]': 1, 'b[0]': 1 }, reply: {} },
      ],
    },
  },
}
const trace = { steps: [step, { text: [true, false] }], asked: [{ a: [] }, { a: 7 }, { a: 8 }], bill: 5 }

/** Writes the wrong runs of that run, one on a line, with what is made of a run without requests and a bill. */
export function writeWrongRuns(): string {
  const one = traced as unknown as Case
  const pair = { client: 'chat', model: 'responses' } as const
  const { bill: _, ...free } = trace
  const runs = [...wrongRuns(one, pair, trace as never), ...wrongRuns(one, pair, { ...free, steps: [], asked: [] })]
  return `${runs.map((run) => JSON.stringify(run)).join('\n')}\n`
}
