import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import type { Profile } from '../../src/catalog/profile.ts'
import type { Answer } from '../../src/inference/answer.ts'
import { runsOf } from '../support/runs.ts'
import { type ClientWire, type Options, openStream, openWhole, pump, type Told, wires } from './pump.ts'
import {
  added,
  argumentsDelta,
  argumentsDone,
  blockDelta,
  blockStart,
  blockStop,
  call,
  created,
  delta,
  done,
  events,
  functionCall,
  itemDone,
  message,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  summary,
  summaryDelta,
  terminal,
  textDelta,
} from './upstreams.ts'

/*
 * Pieces that come twice (BUG-7, ruling Y4): a start that the first delta repeats, whole arguments that come again, pieces that
 * repeat all before them, and names in pieces.
 */

type Json = Record<string, unknown>
const none = undefined
const runs = { numRuns: runsOf(100) }

/** The blocks that a client was shown, `kind:text`; calls with their name. Undefined if the answer failed. */
function blocksOf(told: Told): string[] | undefined {
  if (!('answer' in (told.outcome as object))) return undefined
  const { blocks } = (told.outcome as { answer: Answer }).answer
  return blocks.map(({ block, text }) =>
    block.kind === 'tool_call' ? `${block.name} ${text}` : `${block.kind}:${text}`,
  )
}

/** The same for the clients of the other two wires, cut anywhere. */
function shown(wire: ClientWire, script: string, options: Options = {}): string[] | undefined {
  const clients = (['messages', 'chat', 'responses'] as const).filter((client) => client !== wire)
  const told = clients.flatMap((client) =>
    (['whole', 'bytes'] as const).map((cut) => {
      const one = pump(client, wire, script, { showsReasoning: true, ...options }, { cut })
      assert.deepEqual(wires[client].check(one.text), [])
      return blocksOf(one)
    }),
  )
  for (const one of told) assert.deepEqual(one, told[0])
  return told[0]
}

const block = (start: Json, ...deltas: Json[]) =>
  messageStart() +
  blockStart(0, start) +
  deltas.map((piece) => blockDelta(0, piece)).join('') +
  blockStop(0) +
  messageDelta('end_turn') +
  messageStop
const said = (text: string): Json => ({ type: 'text_delta', text })
const thought = (thinking: string): Json => ({ type: 'thinking_delta', thinking })
const args = (partial_json: string): Json => ({ type: 'input_json_delta', partial_json })
const textStart = (text: string): Json => ({ type: 'text', text })
const thinkingStart = (thinking: string): Json => ({ type: 'thinking', thinking, signature: '' })
const callStart = (input: unknown): Json => ({ type: 'tool_use', id: 't', name: 'f', input })

const starts: [title: string, script: string, blocks: string[]][] = [
  ['text, repeated', block(textStart('Hello'), said('Hello'), said(' world')), ['text:Hello world']],
  ['text, continued', block(textStart('Hel'), said('lo'), said(' world')), ['text:Hello world']],
  ['text, a later delta like it', block(textStart('ha'), said('ha'), said('ha')), ['text:haha']],
  ['a thought, repeated', block(thinkingStart('I '), thought('I '), thought('think')), ['reasoning:I think']],
  ['a thought, continued', block(thinkingStart('I '), thought('think')), ['reasoning:I think']],
  ['whole input, repeated in pieces', block(callStart({ q: 1 }), args('{"q"'), args(':1}')), ['f {"q":1}']],
  ['whole input as a text, repeated', block(callStart('{"q":1}'), args('{"q":1}')), ['f {"q":1}']],
  ['the beginning of the input, continued', block(callStart('{"q"'), args(':1}')), ['f {"q":1}']],
  ['the beginning of the input, repeated', block(callStart('{"q"'), args('{"q"'), args(':1}')), ['f {"q":1}']],
  ['whole input alone', block(callStart({ q: 1 })), ['f {"q":1}']],
]
for (const [title, script, blocks] of starts) {
  test(`BUG-7 Y4 the start of a messages block: ${title}`, () => assert.deepEqual(shown('messages', script), blocks))
}

test('BUG-7 Y4 a signature that its delta repeats is sealed once', () => {
  const start = { ...thinkingStart('hm'), signature: 'c2ln' }
  let sealed = ''
  const seal = ({ data }: { data: string }) => {
    sealed = data
    return `sealed-${data}`
  }
  pump('responses', 'messages', block(start, { type: 'signature_delta', signature: 'c2ln' }), {
    showsReasoning: true,
    seal,
  })
  assert.equal(sealed, 'c2ln')
})

const whole = functionCall(0, 'f', '{"q":1}')
const open = (text: string) => added(0, functionCall(0, 'f', text, { status: 'in_progress' }))
const partAdded = (text: string): Json => ({
  type: 'response.content_part.added',
  output_index: 0,
  content_index: 0,
  part: { type: 'output_text', text },
})
const opened = added(0, { ...message(0), content: [] })
const items: [title: string, script: Json[], blocks: string[]][] = [
  [
    'whole arguments, repeated and confirmed',
    [
      open('{"q":1}'),
      argumentsDelta(0, '{"q"'),
      argumentsDelta(0, ':1}'),
      argumentsDone(0, '{"q":1}'),
      itemDone(0, whole),
    ],
    ['f {"q":1}'],
  ],
  [
    'whole arguments, repeated, with an empty done',
    [open('{"q":1}'), argumentsDelta(0, '{"q":1}'), argumentsDone(0, ''), itemDone(0, functionCall(0, 'f', ''))],
    ['f {"q":1}'],
  ],
  [
    'whole arguments alone, with an empty done',
    [open('{"q":1}'), argumentsDone(0, ''), itemDone(0, functionCall(0, 'f', ''))],
    ['f {"q":1}'],
  ],
  ...['{}', ' {} ', ' '].flatMap((empty): typeof items => [
    [
      `whole arguments alone, with ${JSON.stringify(empty)} at the end`,
      [open('{"q":1}'), argumentsDone(0, empty), itemDone(0, functionCall(0, 'f', empty))],
      ['f {"q":1}'],
    ],
    [
      `arguments in deltas, with ${JSON.stringify(empty)} at the end`,
      [open(''), argumentsDelta(0, '{"q":1}'), argumentsDone(0, empty), itemDone(0, functionCall(0, 'f', empty))],
      ['f {"q":1}'],
    ],
  ]),
  ['no arguments but an empty object', [open(''), itemDone(0, functionCall(0, 'f', '{}'))], ['f {}']],
  ['whole arguments and nothing else', [open('{"q":1}')], ['f {"q":1}']],
  [
    'the beginning of the arguments, continued',
    [open('{"q"'), argumentsDelta(0, ':1}'), itemDone(0, whole)],
    ['f {"q":1}'],
  ],
  [
    'the beginning of the arguments, repeated',
    [open('{"q"'), argumentsDelta(0, '{"q"'), argumentsDelta(0, ':1}'), itemDone(0, whole)],
    ['f {"q":1}'],
  ],
  [
    'a part with text, continued',
    [opened, partAdded('Hel'), textDelta(0, 'lo'), itemDone(0, message(0, 'Hello'))],
    ['text:Hello'],
  ],
  [
    'a part with text, repeated',
    [opened, partAdded('Hel'), textDelta(0, 'Hel'), textDelta(0, 'lo'), itemDone(0, message(0, 'Hello'))],
    ['text:Hello'],
  ],
  ['a part with text, its end twice that', [opened, partAdded('ha'), itemDone(0, message(0, 'haha'))], ['text:haha']],
]
for (const [title, script, blocks] of items) {
  test(`BUG-7 Y4 the start of a responses item: ${title}`, () => {
    assert.deepEqual(shown('responses', events(created, ...script, terminal('completed'))), blocks)
  })
}

const chatCall = (...pieces: string[]) =>
  call([0, 'c', 'f', pieces[0]]) +
  pieces
    .slice(1)
    .map((piece) => call([0, none, none, piece]))
    .join('') +
  reason('tool_calls') +
  done

test('BUG-7 Y4 complete arguments of a chat model that are repeated, whole or in pieces, are one call', () => {
  for (const pieces of [
    ['{"q":1}', '{"q":1}'],
    ['{"q"', ':1}', '{"q":1}'],
    ['{"q":1}', '{"q"', ':1}'],
    ['{"q":1}', '{"q":1}', '{"q":1}'],
  ]) {
    assert.deepEqual(shown('chat', chatCall(...pieces)), ['f {"q":1}'], pieces.join(' '))
  }
  // Text that is no repetition stays, and is broken.
  assert.deepEqual(blocksOf(pump('responses', 'chat', chatCall('{"q":1}', 'x'))), ['f {"q":1}x'])
})

/** The prefixes of a text at some places, the whole at last. */
function prefixes(text: string, places: readonly number[]): string[] {
  const ends = [...new Set(places.map((place) => 1 + (place % text.length)))].sort((a, b) => a - b)
  return [...ends, text.length].map((end) => text.slice(0, end))
}

const places = fc.array(fc.nat(), { minLength: 1, maxLength: 6 })
const objects = fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 1 }), { minKeys: 1, maxKeys: 3 })

const cumulativeScripts: Record<ClientWire, (pieces: string[]) => string> = {
  chat: (pieces) => chatCall(...pieces),
  messages: (pieces) => block(callStart({}), ...pieces.map(args)),
  responses: (pieces) =>
    events(
      created,
      open(''),
      ...pieces.map((piece) => argumentsDelta(0, piece)),
      argumentsDone(0, ''),
      itemDone(0, functionCall(0, 'f', '')),
      terminal('completed'),
    ),
}

test('BUG-7 Y4 cumulative arguments of any wire: the last piece counts if the answer is read as a whole', () => {
  fc.assert(
    fc.property(fc.constantFrom<ClientWire>('chat', 'messages', 'responses'), objects, places, (wire, object, cuts) => {
      const text = JSON.stringify(object)
      const client = wire === 'chat' ? 'messages' : 'chat'
      const folded = openWhole(client, wire)
      folded.push(Buffer.from(cumulativeScripts[wire](prefixes(text, cuts))))
      folded.end()
      const answer = folded.whole()
      assert.ok(answer.state === 'finished')
      const usage = { inputTokens: 1, cacheReadTokens: 0, cacheWriteTokens: 0, cacheWrite1hTokens: 0 }
      const body = JSON.parse(`${answer.encode({ ...usage, outputTokens: 1, reasoningTokens: 0, estimated: false })}`)
      const input =
        client === 'messages'
          ? body.content[0].input
          : JSON.parse(body.choices[0].message.tool_calls[0].function.arguments)
      assert.deepEqual(input, JSON.parse(text))
    }),
    runs,
  )
})

test('Y4 C14 cumulative arguments are estimated once if the answer is read as a whole', () => {
  const text = JSON.stringify({ text: 'The quick brown fox jumps over the lazy dog. '.repeat(40) })
  const pieces = Array.from({ length: 200 }, (_, at) => text.slice(0, Math.ceil((text.length * (at + 1)) / 200)))
  for (const wire of ['chat', 'messages', 'responses'] as const) {
    const estimateOf = (list: string[]) => {
      const folded = openWhole(wire === 'chat' ? 'messages' : 'chat', wire)
      folded.push(Buffer.from(cumulativeScripts[wire](list)))
      folded.end()
      const answer = folded.whole()
      assert.ok(answer.state === 'finished')
      return answer.estimateOutput()
    }
    const [once, again] = [estimateOf([text]), estimateOf(pieces)]
    assert.ok(Math.abs(once - again) <= once / 20, `${wire}: ${once} and ${again}`)
  }
})

const cumulative = (...what: Profile['cumulative'][number][]): Options => ({ profile: { cumulative: what } })

test('BUG-7 Y4 cumulative arguments in a live stream are a setting of the profile, on every wire', () => {
  fc.assert(
    fc.property(fc.constantFrom<ClientWire>('chat', 'messages', 'responses'), objects, places, (wire, object, cuts) => {
      const text = JSON.stringify(object)
      const script = cumulativeScripts[wire](prefixes(text, cuts))
      assert.deepEqual(shown(wire, script, cumulative('arguments')), [`f ${text}`])
    }),
    runs,
  )
  // Without it the stream is as it came: nothing is guessed.
  const live = openStream('responses', 'chat')
  const text = live.push(Buffer.from(chatCall('{"q"', '{"q":1}'))) + live.end()
  assert.match(text, /"arguments":"\{\\"q\\"\{\\"q\\":1\}"/)
})

const thoughts: Record<ClientWire, (pieces: string[]) => string> = {
  chat: (pieces) =>
    pieces.map((reasoning_content) => delta({ reasoning_content })).join('') +
    delta({ content: 'ok' }) +
    reason('stop') +
    done,
  messages: (pieces) =>
    messageStart() +
    blockStart(0, thinkingStart('')) +
    pieces.map((piece) => blockDelta(0, thought(piece))).join('') +
    blockStop(0) +
    blockStart(1, textStart('ok')) +
    blockStop(1) +
    messageDelta('end_turn') +
    messageStop,
  responses: (pieces) =>
    events(
      created,
      added(0, summary(0)),
      ...pieces.map((piece) => summaryDelta(0, 0, piece)),
      itemDone(0, summary(0, pieces.at(-1)!)),
      itemDone(1, message(1, 'ok')),
      terminal('completed'),
    ),
}

test('BUG-7 Y4 cumulative reasoning is a setting of the profile and never guessed', () => {
  fc.assert(
    fc.property(
      fc.constantFrom<ClientWire>('chat', 'messages', 'responses'),
      fc.stringMatching(/^[a-z][a-z ]{0,20}$/),
      places,
      (wire, text, cuts) => {
        const script = thoughts[wire](prefixes(text, cuts))
        assert.deepEqual(shown(wire, script, cumulative('reasoning')), [`reasoning:${text}`, 'text:ok'])
      },
    ),
    runs,
  )
  assert.deepEqual(shown('chat', thoughts.chat(['ha', 'haha'])), ['reasoning:hahaha', 'text:ok'])
})

test('BUG-7 the name of a call in pieces is joined by means of the declared tools', () => {
  const end = reason('tool_calls') + done
  const tools = new Set(['get_weather', 'get', 'weather', 'list'])
  const play = (script: string, toolNames: ReadonlySet<string> = tools) => shown('chat', script + end, { toolNames })
  const rest = call([0, none, none, '{"q":1}'])
  assert.deepEqual(play(call([0, 'c', 'get_']) + call([0, none, 'weather']) + rest), ['get_weather {"q":1}'])
  assert.deepEqual(play(call([0, 'c', 'get_']) + call([0, none, 'wea']) + call([0, none, 'ther']) + rest), [
    'get_weather {"q":1}',
  ])
  assert.deepEqual(play(call([0, 'c', 'get_']) + call([0, 'c', 'weather', '{"q":1}'])), ['get_weather {"q":1}'])
  assert.deepEqual(play(call([none, 'c', 'get_']) + call([none, none, 'weather']) + call([none, none, none, '{}'])), [
    'get_weather {}',
  ])
  assert.deepEqual(play(call([0, 'c', 'get_', '']) + call([0, none, 'get_weather', '']) + rest), [
    'get_weather {"q":1}',
  ])
  assert.deepEqual(play(call([0, 'c', 'get_']) + call([0, none, 'weather'])), ['get_weather {}'])
  // Names that are declared themselves, another index, another id, or arguments between them: two calls.
  assert.deepEqual(play(call([0, 'c', 'get']) + call([0, none, 'weather']) + rest), ['get {}', 'weather {"q":1}'])
  assert.deepEqual(play(call([0, 'c', 'list']) + call([1, 'd', 'weather', '{}'])), ['list {}', 'weather {}'])
  assert.deepEqual(play(call([0, 'c', 'get_']) + call([1, 'd', 'weather', '{}'])), ['get_ {}', 'weather {}'])
  assert.deepEqual(play(call([0, 'c', 'get', '{}']) + call([0, none, 'weather', '{}'])), ['get {}', 'weather {}'])
  assert.deepEqual(play(call([0, 'c', 'get']) + rest), ['get {"q":1}'])
  assert.deepEqual(play(call([0, 'c', 'get']) + delta({ content: 'x' })), ['get {}', 'text:x'])
  // Of a model that nothing is known of, each name is one.
  assert.deepEqual(play(call([0, 'c', 'get_']) + call([0, none, 'weather']) + rest, new Set()), [
    'get_ {}',
    'weather {"q":1}',
  ])
})
