import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { wires as spoken } from '../../src/wires/wires.ts'
import { modelOf } from '../native/models.ts'
import { characters } from '../support/characters.ts'
import { runsOf } from '../support/runs.ts'
import { checkMessagesStream, framesOf } from './grammar.ts'
import { type ClientWire, pump } from './pump.ts'
import {
  added,
  argumentsDelta,
  blockDelta,
  blockStart,
  blockStop,
  call,
  created,
  done,
  events,
  functionCall,
  itemDone,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  terminal,
  textBlock,
  toolBlock,
} from './upstreams.ts'

const runs = { numRuns: runsOf(300) }
const start = messageStart({ input_tokens: 9, output_tokens: 0 })
const end = (stop = 'tool_use') => messageDelta(stop, { output_tokens: 7 }) + messageStop

/** What a messages client is sent of a messages model's stream. @param cut of the bytes, in sizes of pieces */
function play(script: string, cut: readonly number[] = []): string {
  const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11 }
  const relay = spoken.messages.native.openStream({ ...head, model: modelOf('messages') })
  const bytes = Buffer.from(script)
  let text = ''
  let at = 0
  const isOver = () => relay.state === 'finished' || relay.state === 'failed'
  for (const size of [...cut, bytes.length]) {
    if (!isOver()) text += relay.push(bytes.subarray(at, at + size))
    at += size
  }
  if (!isOver()) text += relay.end()
  const usage = {
    ...{ inputTokens: 9, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 },
    ...{ outputTokens: 7, reasoningTokens: 0, estimated: false },
  }
  const facts = { status: 502, code: 'upstream_error', message: 'failed', param: null } as const
  text += relay.state === 'finished' ? relay.finish(usage) : relay.failure(facts, usage)
  return Buffer.from(text, 'latin1').toString()
}

type Event = { type: string; index?: number; delta?: { partial_json?: string } }

function eventsOf(text: string): Event[] {
  return framesOf(text).map(({ data }) => JSON.parse(data) as Event)
}

/** The arguments of the calls that a client has been told to be whole. */
function stoppedInputs(told: readonly Event[]): string[] {
  return told
    .filter(({ type }) => type === 'content_block_stop')
    .map(({ index }) => told.map((one) => (one.index === index ? (one.delta?.partial_json ?? '') : '')).join(''))
}

const streams: Record<ClientWire, (pieces: readonly string[]) => string> = {
  messages: (pieces) => play(start + toolBlock(0, 'f', ...pieces) + end()),
  chat: (pieces) => {
    const rest = pieces.map((piece) => call([0, undefined, undefined, piece]))
    return pump('messages', 'chat', call([0, 'a', 'f', '']) + rest.join('') + reason('tool_calls') + done).text
  },
  responses: (pieces) => {
    const item = functionCall(0, 'f', pieces.join(''))
    const deltas = pieces.map((piece) => argumentsDelta(0, piece))
    const opened = added(0, functionCall(0, 'f', '', { status: 'in_progress' }))
    return pump(
      'messages',
      'responses',
      events(created, opened, ...deltas, itemDone(0, item), terminal('completed', [item])),
    ).text
  },
}

/** Objects, blanks, whatever else is JSON, and what is none: an object with some characters taken out or put in. */
function anyArguments(): fc.Arbitrary<string> {
  const object = fc.dictionary(fc.string({ unit: characters, maxLength: 6 }), fc.jsonValue({ maxDepth: 2 }), {
    maxKeys: 4,
  })
  const written = fc
    .record({ object, indent: fc.constantFrom(0, 1) })
    .map((one) => JSON.stringify(one.object, null, one.indent))
  const mutated = fc
    .record({
      text: written,
      at: fc.nat(),
      drop: fc.nat(3),
      put: fc.constantFrom('', ',', '}', '{', '"', '\\', ' ', '\n', '0', '\u00a0'),
    })
    .map(({ text, at, drop, put }) => {
      const place = at % (text.length + 1)
      return text.slice(0, place) + put + text.slice(place + drop)
    })
  return fc.oneof(
    ...[written, mutated, mutated],
    fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify(value)),
    fc.string({ unit: characters, maxLength: 8 }),
    fc.constantFrom('', ' ', '\n\t', '{}{}', '{} x', ' {"a":1} '),
  )
}

function meaningOf(text: string): unknown {
  if (/^[ \t\n\r]*$/.test(text)) return {}
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

/** Whether a text is one whole object, and then the same again. */
function isWholeTwice(text: string): boolean {
  const half = text.slice(0, text.length / 2)
  const meaning = text === half + half ? meaningOf(half) : undefined
  return typeof meaning === 'object' && meaning !== null && !Array.isArray(meaning)
}

test('Y5 a messages stream ends in an error, or its call has the model’s exact arguments, however they are cut', () => {
  const seen = new Map<string, number>()
  fc.assert(
    fc.property(
      fc.constantFrom<ClientWire>('messages', 'chat', 'responses'),
      anyArguments(),
      fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 12 }),
      (wire, text, sizes) => {
        // `null` at first is nothing on chat (translation 4.2).
        fc.pre(wire !== 'chat' || !/^\s*(null|\{\})/.test(text))
        // The same object twice, cut between both, is a repetition (Y4).
        fc.pre(!isWholeTwice(text))
        const pieces: string[] = []
        let at = 0
        for (const size of [...sizes, text.length]) {
          pieces.push(text.slice(at, at + size))
          at += size
        }
        const said = streams[wire](pieces.filter((piece) => piece !== ''))
        assert.deepEqual(checkMessagesStream(said), [])
        const told = eventsOf(said)
        const inputs = stoppedInputs(told)
        const meaning = meaningOf(text)
        const isObject = typeof meaning === 'object' && meaning !== null && !Array.isArray(meaning)
        const isFailed = told.at(-1)!.type === 'error'
        seen.set(`${wire} ${isFailed}`, (seen.get(`${wire} ${isFailed}`) ?? 0) + 1)
        assert.equal(isFailed, !isObject, text)
        assert.equal(inputs.length, isFailed ? 0 : 1)
        if (!isFailed && !(wire === 'messages' && text.trim() === '')) {
          assert.deepEqual(JSON.parse(inputs[0] || '{}'), meaning)
        }
      },
    ),
    runs,
  )
  assert.equal(seen.size, 6)
})

test('Y4 Y5 whole arguments may be repeated as a whole; an incomplete repetition breaks them', () => {
  const whole = '{"a":1}'
  const openEnded: Record<ClientWire, (pieces: readonly string[]) => string> = {
    ...streams,
    responses: (pieces) => {
      const opened = added(0, functionCall(0, 'f', '', { status: 'in_progress' }))
      const deltas = pieces.map((piece) => argumentsDelta(0, piece))
      return pump('messages', 'responses', events(created, opened, ...deltas, terminal('completed'))).text
    },
  }
  for (const wire of ['messages', 'chat', 'responses'] as const)
    for (const play of [streams[wire], openEnded[wire]])
      for (const again of [['{'], ['{"a"', ':1'], [whole, '{'], ['{', '"a":1}', '{"a":']]) {
        const isWholeAgain = again.join('').length % whole.length === 0
        const told = eventsOf(play([whole, ...again]))
        assert.equal(told.at(-1)!.type === 'error', !isWholeAgain, `${wire} ${JSON.stringify(again)}`)
      }
  for (const wire of ['chat', 'responses'] as const)
    for (const again of [[whole], ['{', '"a":1}'], [whole, '{"a"', ':1}']])
      assert.deepEqual(stoppedInputs(eventsOf(openEnded[wire]([whole, ...again]))), [whole], `${wire} ${again}`)
})

test('Y5 the bytes of a same-wire stream may be cut anywhere', () => {
  for (const script of [
    start + toolBlock(0, 'f', '{"a":', '"ü\ud83d', '\ude00"}') + end(),
    start + toolBlock(0, 'f', '{"a"') + end(),
  ]) {
    const whole = play(script)
    for (let at = 1; at < script.length; at++) assert.equal(play(script, [at]), whole)
  }
})

const open = (index: number, type = 'tool_use', input: unknown = {}) =>
  blockStart(index, { type, id: `toolu_hosted_${index}`, name: 'f', input })
const piece = (index: number, partial_json: string) => blockDelta(index, { type: 'input_json_delta', partial_json })

const odd: [what: string, script: string, isWhole: boolean, stops: number][] = [
  [
    'calls that overlap',
    open(0) +
      open(1) +
      piece(1, '{"b"') +
      piece(0, '{"a"') +
      piece(1, ':1}') +
      piece(0, ':1}') +
      blockStop(1) +
      blockStop(0) +
      end(),
    true,
    2,
  ],
  [
    'calls that overlap, the first one broken',
    open(0) + open(1) + piece(0, '{"a"') + piece(1, '{}') + blockStop(0) + blockStop(1) + end(),
    false,
    0,
  ],
  [
    'calls that overlap, the second one broken',
    open(0) + open(1) + piece(1, '{"a"') + piece(0, '{}') + blockStop(0) + blockStop(1) + end(),
    false,
    1,
  ],
  [
    'a tool of the provider',
    open(0, 'server_tool_use') + piece(0, '{"query":') + blockStop(0) + textBlock(1, 'a') + end('end_turn'),
    false,
    0,
  ],
  ['a tool of a remote server', open(0, 'mcp_tool_use') + piece(0, '[1]') + blockStop(0) + end('end_turn'), false, 0],
  ['text behind it', open(0) + piece(0, '{') + blockStop(0) + textBlock(1, 'a') + end(), false, 0],
  [
    'a ping behind it',
    `${open(0) + piece(0, '{') + blockStop(0)}event: ping\ndata: {"type":"ping"}\n\n${end()}`,
    false,
    0,
  ],
  [
    'its number is given once more',
    open(0) + piece(0, '{"a"') + open(0) + piece(0, '{}') + blockStop(0) + end(),
    false,
    0,
  ],
  [
    'the number of a whole call is given once more',
    open(0) + piece(0, '{}') + open(0) + piece(0, '{"a"') + blockStop(0) + end(),
    false,
    1,
  ],
  ['it is never stopped', open(0) + piece(0, '{') + end(), false, 0],
  ['a whole one is never stopped', open(0) + piece(0, '{}') + end(), true, 1],
  ['the model says no reason', open(0) + piece(0, '{') + blockStop(0) + messageStop, false, 0],
  [
    'the reason comes, and the connection breaks',
    open(0) + piece(0, '{') + blockStop(0) + messageDelta('tool_use'),
    false,
    0,
  ],
  ['arguments in the start', open(0, 'tool_use', { a: 1 }) + blockStop(0) + end(), true, 1],
  [
    'arguments in the start, and deltas',
    open(0, 'tool_use', { a: 1 }) + piece(0, '{"a"') + blockStop(0) + end(),
    false,
    0,
  ],
  ...[null, '', ' ', [], '{}'].map((input): [string, string, boolean, number] => [
    `${JSON.stringify(input)} in the start`,
    open(0, 'tool_use', input) + piece(0, '{"a":1}') + blockStop(0) + end(),
    true,
    1,
  ]),
  ['whole arguments as a text in the start', open(0, 'tool_use', '{"a":1}') + blockStop(0) + end(), true, 1],
  [
    'a beginning in the start, and the rest in deltas',
    open(0, 'tool_use', '{"a"') + piece(0, ':1}') + blockStop(0) + end(),
    true,
    1,
  ],
  ...['{"a"', [1], 7, true].map((input): [string, string, boolean, number] => [
    `${JSON.stringify(input)} in the start, which is no object`,
    open(0, 'tool_use', input) + blockStop(0) + end(),
    false,
    0,
  ]),
]

for (const [what, script, isWhole, stops] of odd) {
  test(`Y5 U7 on the same wire, a broken call is never reported as finished to a client: ${what}`, () => {
    const told = eventsOf(play(start + script))
    assert.equal(told.at(-1)!.type, isWhole ? 'message_stop' : 'error')
    assert.equal(stoppedInputs(told).length, stops)
  })
}

test('Y5 B10 unfinished arguments are not kept', () => {
  const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11 }
  const relay = spoken.messages.native.openStream({ ...head, model: modelOf('messages') })
  relay.push(Buffer.from(start + open(0) + piece(0, '{"a":"')))
  const large = Buffer.from(piece(0, 'x'.repeat(4 * 1_048_576)))
  for (let i = 0; i < 8; i++) relay.push(large)
  // What comes behind so much is no object of its own.
  relay.push(Buffer.from(piece(0, '"}') + piece(0, '{}') + blockStop(0) + end()))
  assert.equal(relay.state, 'failed')
})
