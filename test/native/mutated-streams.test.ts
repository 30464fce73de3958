import assert from 'node:assert/strict'
import test from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import fc from 'fast-check'
import OpenAI from 'openai'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { runsOf } from '../support/runs.ts'
import { framesOf } from '../translation/grammar.ts'
import {
  added,
  argumentsDelta,
  argumentsDone,
  blockDelta,
  blockStart,
  blockStop,
  call,
  counts,
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
  ping,
  reason,
  reasoning,
  summary,
  summaryDelta,
  terminal,
  text,
  textDelta,
  usage,
} from '../translation/upstreams.ts'
import { contentOfMessages, playNatively } from './same-wire.ts'

/*
 * Native streams of the three wires, changed as relays change them, are read on the same wire by the vendor's SDK and by
 * a client that empties every start. Nothing is lost, or the answer fails (Y3).
 */

const runs = { numRuns: runsOf(300) }

// biome-ignore lint/suspicious/noExplicitAny: a test reads JSON as a client does.
type Json = Record<string, any>

/** Texts in pieces, no two of which are the same: a start that is exactly the first delta says it twice (Y4). */
const pieces = fc
  .array(fc.string({ maxLength: 4, unit: fc.constantFrom('a', ' ', '"', '\\', '\n', 'é', '😀', '{', ':') }), {
    minLength: 1,
    maxLength: 4,
  })
  .map((list) => list.map((one, at) => `${at}${one}`))

const inputs = fc
  .tuple(
    fc.dictionary(fc.constantFrom('a', 'b', 'ü'), fc.oneof(fc.string({ maxLength: 5 }), fc.nat()), { minKeys: 1 }),
    fc.nat(),
  )
  .map(([input, at]) => {
    const json = JSON.stringify(input)
    const place = 1 + (at % (json.length - 1))
    return [json.slice(0, place), json.slice(place)]
  })

/** The form of a block: all in deltas, all in its start, its beginning there, or that twice. */
const forms = fc.constantFrom('deltas', 'deltas', 'start', 'beginning', 'twice')
const stops = fc.constantFrom('stop', 'stop', 'none', 'late')
const blocks = fc.array(
  fc.record({
    kind: fc.constantFrom('text', 'thinking', 'tool_use', 'server_tool_use', 'redacted_thinking'),
    pieces,
    inputs,
    form: forms,
    stop: stops,
  }),
  { maxLength: 4 },
)

/** Changes of a whole stream: of its frames, or of their bytes. */
const changes = fc.array(
  fc.record({
    kind: fc.constantFrom(
      ...['ping', 'comment', 'names', 'types', 'name', 'crlf', 'done', 'usage', 'cut'],
      ...[
        'second start',
        'no start',
        'no delta',
        'no end',
        'no block start',
        'stray delta',
        'stray stop',
        'block twice',
      ],
    ),
    at: fc.nat(),
  }),
  { maxLength: 2 },
)

type Change = { kind: string; at: number }
type Said = { content: string[]; thought: string[]; calls: [] }

/** The first cases of each law: a stream as its model sends it, and one that is cut, which a short run draws too seldom. */
const firstChanges: { kind: 'cut'; at: number }[][] = [[], [{ kind: 'cut', at: 1 }]]

/** Changes that a stream of any wire may have. */
function change(frames: string[], { kind, at }: Change): string[] {
  const place = at % (frames.length + 1)
  const each = (edit: (frame: string) => string) => frames.map(edit)
  switch (kind) {
    case 'comment':
      return frames.toSpliced(place, 0, ': keepalive\n\n')
    case 'names':
      return each((frame) => frame.replace(/^event: .*\n/, ''))
    case 'name':
      return each((frame) => frame.replace(/^event: .*/, 'event: message'))
    case 'types':
      return each((frame) => frame.replace(/^(event: .*\ndata: \{)"type":"[\w.]+",?/, '$1'))
    case 'crlf':
      return each((frame) => frame.replace(/\r?\n/g, '\r\n'))
    case 'done':
      return [...frames, done]
    case 'usage':
      return each((frame) => frame.replace(/,"usage":\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}/, at % 2 ? '' : ',"usage":null'))
    case 'cut':
      return frames.slice(0, place)
    default:
      return frames
  }
}

function sdkFetch(body: string): typeof fetch {
  return async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } })
}

const key = { apiKey: 'k', maxRetries: 0, logLevel: 'off' } as const

/** By wire, how often answers were whole and failed: a law that one side of never comes says little. */
const seen = new Map<string, number>()

function note(wire: ClientWire, isFailed: boolean): void {
  seen.set(`${wire} ${isFailed}`, (seen.get(`${wire} ${isFailed}`) ?? 0) + 1)
}

const messageFrames: Record<string, (frames: string[], place: number) => string[]> = {
  ping: (frames, place) => frames.toSpliced(place, 0, ping),
  'second start': (frames, place) => frames.toSpliced(Math.max(1, place), 0, ...frames.slice(0, 1)),
  'no start': (frames) => frames.slice(1),
  'no delta': (frames) => frames.filter((frame) => !frame.includes('message_delta')),
  'no end': (frames) => frames.filter((frame) => !frame.includes('message_stop')),
  // A start of a block whose content comes in deltas: content that stood in a start is lost with it before it reaches us.
  'no block start': (frames, place) => {
    const isEmpty = /"text":""|"thinking":"","signature":""|"input":\{\}/
    const at = frames.findIndex((one, index) => index >= place && isEmpty.test(one))
    return at > 0 && frames[at + 1]?.includes('content_block_delta') ? frames.toSpliced(at, 1) : frames
  },
  'stray delta': (frames, place) =>
    frames.toSpliced(Math.max(1, place), 0, blockDelta(77, { type: 'text_delta', text: 'stray' })),
  'stray stop': (frames, place) => frames.toSpliced(Math.max(1, place), 0, blockStop(77)),
}

type Block = { kind: string; pieces: string[]; inputs: string[]; form: string; stop: string }

/** The frames of a block but its stop, and what it says. */
function messagesBlock(index: number, { kind, pieces, inputs, form }: Block): { frames: string[]; content: Json } {
  if (kind === 'redacted_thinking') {
    const content = { type: kind, data: pieces.join('') }
    return { frames: [blockStart(index, content)], content }
  }
  const isCall = kind.endsWith('tool_use')
  const parts = isCall ? inputs : pieces
  // Arguments in a start are an object, so that they stand there as a whole.
  const inStart = form === 'deltas' ? 0 : form === 'start' || isCall ? parts.length : 1
  const first = parts.slice(0, inStart).join('')
  const inDeltas = form === 'twice' ? parts : parts.slice(inStart)
  const [type, member] = isCall ? ['input_json_delta', 'partial_json'] : [`${kind}_delta`, kind]
  const head = isCall ? { id: `toolu_${index}`, name: 'f', input: JSON.parse(first || '{}') } : { [kind]: first }
  const signature = `s${index}`
  const isSigned = kind === 'thinking'
  const start = { type: kind, ...head, ...(isSigned && { signature: form === 'deltas' ? '' : signature }) }
  const frames = [blockStart(index, start), ...inDeltas.map((part) => blockDelta(index, { type, [member!]: part }))]
  if (isSigned && form !== 'start') frames.push(blockDelta(index, { type: 'signature_delta', signature }))
  const said = isCall ? { input: JSON.parse(inputs.join('')) } : { [kind]: parts.join('') }
  return { frames, content: { type: kind, ...said, ...(isSigned && { signature }) } }
}

test('Y3 no content of a changed messages stream is lost on the same wire, or the answer fails', async () => {
  await fc.assert(
    fc.asyncProperty(
      blocks,
      changes,
      fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 6 }),
      async (list, changed, cut) => {
        let frames = [messageStart({ input_tokens: 9, output_tokens: 0 })]
        const content: Json[] = []
        let late = ''
        for (const [index, block] of list.entries()) {
          const written = messagesBlock(index, block)
          content.push(written.content)
          frames.push(...written.frames)
          if (late !== '') frames.push(late)
          late = block.stop === 'late' ? blockStop(index) : ''
          if (block.stop === 'stop') frames.push(blockStop(index))
        }
        frames.push(messageDelta('end_turn', { output_tokens: 7 }), late, messageStop)
        for (const one of changed) {
          const own = messageFrames[one.kind]
          frames = own ? own(frames, one.at % (frames.length + 1)) : change(frames, one)
        }
        const shown = playNatively('messages', frames.join(''), cut)
        const told = contentOfMessages(shown)
        note('messages', told === undefined)
        const kinds = changed.map(({ kind }) => kind)
        const isNameless = kinds.includes('types') && kinds.some((kind) => kind.startsWith('name'))
        const mayFail = isNameless || kinds.some((kind) => /start|delta|cut/.test(kind))
        if (!mayFail) assert.notEqual(told, undefined, 'nothing is missing')
        if (told === undefined) return
        assert.deepEqual(told.content, content)
        const sdk = new Anthropic({ ...key, fetch: sdkFetch(shown) as never })
        const stream = sdk.messages.stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] })
        const final = await stream.finalMessage()
        const read = final.content.map(({ id: _, name: __, ...block }: Json) => block)
        assert.deepEqual(read, content)
        assert.equal(final.stop_reason, 'end_turn')
        assert.ok(Number.isInteger(final.usage.output_tokens))
      },
    ),
    { ...runs, verbose: 1, examples: firstChanges.map((list): [[], typeof list, []] => [[], list, []]) },
  )
})

const chatFrames: Record<string, (frames: string[], place: number) => string[]> = {
  ping: (frames, place) => frames.toSpliced(place, 0, 'data: {}\n\n'),
  'second start': (frames, place) => frames.toSpliced(place, 0, 'data: {"choices":null}\n\n'),
  'no start': (frames) => frames.map((frame) => frame.replace('"id":"chatcmpl-hosted-7",', '')),
  'no delta': (frames) => frames.filter((frame) => !frame.includes('"finish_reason":"stop"')),
  'no end': (frames) => frames.filter((frame) => frame !== done),
  'no block start': (frames) => frames.map((frame) => frame.replace('"object":"chat.completion.chunk",', '')),
  'stray delta': (frames, place) =>
    frames.map((frame, at) => (at >= place ? frame.replace('hosted-7', `hosted-${at}`) : frame)),
  'stray stop': (frames) => frames.map((frame) => frame.replace('"choices":[],', '')),
  'block twice': (frames) => frames.map((frame) => frame.replace('"choices":[{"index":0,', '"choices":[{')),
}

test('BUG-7 BUG-8 Y4 no content of a changed chat stream is lost on the same wire, or the answer fails', async () => {
  const said = fc.record({
    content: pieces,
    thought: pieces,
    calls: fc.array(fc.record({ inputs, form: forms }), { maxLength: 3 }),
  })
  await fc.assert(
    fc.asyncProperty(said, changes, async ({ content, thought, calls }, changed) => {
      let frames = [delta({ role: 'assistant', content: '' }), ...thought.map(reasoning), ...content.map(text)]
      for (const [index, { inputs, form }] of calls.entries()) {
        const whole = inputs.join('')
        const first = { deltas: '', start: whole, beginning: inputs[0]!, twice: whole }[form]
        const rest = form === 'start' ? [] : form === 'beginning' ? inputs.slice(1) : inputs
        frames.push(
          call([index, `call_${index}`, 'f', first]),
          ...rest.map((part) => call([index, undefined, undefined, part])),
        )
      }
      frames.push(reason('stop'), usage(counts(9, 7)), done)
      for (const one of changed) {
        const own = chatFrames[one.kind]
        frames = own ? own(frames, one.at % (frames.length + 1)) : change(frames, one)
      }
      const shown = playNatively('chat', frames.join(''))
      const isFailed = !shown.endsWith('data: [DONE]\n\n')
      note('chat', isFailed)
      const kinds = changed.map(({ kind }) => kind)
      const hasNoEnd = kinds.includes('no end') && kinds.includes('no delta')
      if (isFailed) assert.ok(hasNoEnd || kinds.includes('cut'), 'nothing is missing')
      if (isFailed) return
      const chunks: Json[] = Array.from(shown.matchAll(/^data: (\{.*)$/gm), ([, json]) => JSON.parse(json!))
      assert.ok(chunks.every(({ choices }) => choices.length >= 0))
      assert.equal(new Set(chunks.map(({ id }) => id)).size, 1)
      const { prompt_tokens } = chunks.at(-1)!['usage']
      assert.ok(prompt_tokens > 0)
      if (kinds.includes('cut')) return
      const sdk = new OpenAI({ ...key, fetch: sdkFetch(shown) as never })
      const stream = sdk.chat.completions.stream({ model: 'm', messages: [] })
      const deltas: string[] = []
      stream.on('chunk', (chunk) =>
        deltas.push((chunk.choices[0]?.delta as Json | undefined)?.['reasoning_content'] ?? ''),
      )
      const snapshot: Json = await stream.finalChatCompletion().catch(() => stream.currentChatCompletionSnapshot!)
      const { message } = snapshot['choices'][0]
      assert.equal(message.content, content.join(''))
      assert.equal(deltas.join(''), thought.join(''))
      assert.deepEqual(
        (message.tool_calls ?? []).map((one: Json) => [one['id'], one['function'].arguments]),
        calls.map(({ inputs }, index) => [`call_${index}`, inputs.join('')]),
      )
    }),
    {
      ...runs,
      verbose: 1,
      examples: firstChanges.map((list): [Said, typeof list] => [
        { content: ['0a'], thought: ['0b'], calls: [] },
        list,
      ]),
    },
  )
})

const responsesFrames: Record<string, (frames: string[], place: number) => string[]> = {
  ping: (frames, place) => frames.toSpliced(place, 0, 'event: keepalive\ndata: {"type":"keepalive"}\n\n'),
  'no end': (frames) => frames.filter((frame) => !frame.includes('response.completed')),
  'no delta': (frames) => frames.filter((frame) => !frame.includes('.delta')),
  'stray stop': (frames) => frames.filter((frame) => !/output_text\.done|arguments\.done/.test(frame)),
  'block twice': (frames) => frames.map((frame) => frame.replace(/,"sequence_number":\d+/, '')),
  'second start': (frames) => frames.map((frame) => frame.replaceAll('"output_index":0,', '')),
  'stray delta': (frames) => frames.filter((frame) => !frame.includes('output_item.done')),
}

const saidIn = (item: Json) => item['arguments'] ?? item['content'].map((part: Json) => part['text']).join('')

/** A client of responses that empties every start. It takes an item as its end says it, or else as the last event has it. */
function itemsOf(shown: string): Json[] | undefined {
  const items: Json[] = []
  const open = new Set<number>()
  for (const { event: line, data } of framesOf(shown.replaceAll('\r\n', '\n'))) {
    const event: Json = JSON.parse(data)
    assert.equal(line, event['type'])
    const { type = '', output_index: at, item } = event
    if (type === 'response.output_item.added') {
      assert.equal(saidIn(item), '', 'a start is empty')
      items[at] = { type: item.type, said: '' }
      open.add(at)
    } else if (type.endsWith('.delta')) items[at]!['said'] += event['delta']
    else if (type === 'response.completed') {
      for (const place of open) items[place]!['said'] = saidIn(event['response'].output[place])
      return items
    } else if (/(?:text|arguments|item)\.done$/.test(type)) {
      items[at]!['said'] = item ? saidIn(item) : (event['text'] ?? event['arguments'])
      open.delete(at)
    }
  }
  return undefined
}

const partOf = (type: string, text: string) => ({ type, text, annotations: [] })
const partAdded = (at: number, words: string, content_index = 0): Json => ({
  type: 'response.content_part.added',
  item_id: `msg_hosted_${at}`,
  output_index: at,
  content_index,
  part: partOf('output_text', words),
})
const textDone = (at: number, words: string, content_index = 0): Json => ({
  ...{ type: 'response.output_text.done', item_id: `msg_hosted_${at}`, output_index: at, content_index, text: words },
})
const args = '{"a":"é"}'
const custom = (words: string) => ({ id: 'ctc_0', type: 'custom_tool_call', call_id: 'c', name: 'f', input: words })
const customDelta = (words: string) => ({
  ...{ type: 'response.custom_tool_call_input.delta', item_id: 'ctc_0', output_index: 0, delta: words },
})
const without = (member: string, event: Json) => Object.fromEntries(Object.entries(event).filter(([k]) => k !== member))

/** Streams whose last event leaves out its output: the deltas of each item, joined, or undefined if the answer fails. */
const begun: [what: string, list: Json[], said: string[] | undefined][] = [
  ['a call that only its start says', [added(0, functionCall(0, 'f', args))], undefined],
  [
    'such a call, and deltas of another item',
    [added(0, functionCall(0, 'f', args)), added(1, message(1)), textDelta(1, 'Hi')],
    undefined,
  ],
  [
    'such a call, and the end of another item',
    [added(0, functionCall(0, 'f', args)), added(1, message(1)), itemDone(1, message(1, 'Hi'))],
    undefined,
  ],
  ['such a call, and an empty delta', [added(0, functionCall(0, 'f', args)), argumentsDelta(0, '')], undefined],
  ['a call that its arguments end', [added(0, functionCall(0, 'f', args)), argumentsDone(0, args)], ['']],
  ['a call that ends', [added(0, functionCall(0, 'f', args)), itemDone(0, functionCall(0, 'f', args))], ['']],
  [
    'a call that its deltas say once more',
    [added(0, functionCall(0, 'f', args)), argumentsDelta(0, '{"a":'), argumentsDelta(0, '"é"}')],
    [args],
  ],
  [
    'a call that its deltas go on from',
    [added(0, functionCall(0, 'f', '{"a":"é')), argumentsDelta(0, '"'), argumentsDelta(0, '}'), argumentsDone(0, args)],
    [args],
  ],
  [
    'a beginning that the first delta says once more',
    [added(0, functionCall(0, 'f', '{"a":')), argumentsDelta(0, '{"a":'), argumentsDelta(0, '"é"}')],
    [args],
  ],
  [
    'two calls, the deltas of which alternate',
    [
      added(0, functionCall(0, 'f', '{"a":')),
      added(1, functionCall(1, 'f', '{"b":')),
      ...[argumentsDelta(1, '2'), argumentsDelta(0, '1'), argumentsDelta(1, '}'), argumentsDelta(0, '}')],
    ],
    ['{"a":1}', '{"b":2}'],
  ],
  ['a custom call that its deltas go on from', [added(0, custom('ls')), customDelta(' -a')], ['ls -a']],
  ['a text that its end says', [added(0, message(0)), partAdded(0, 'Hello'), textDone(0, 'Hello')], ['']],
  [
    'a text that its part ends',
    [added(0, message(0)), partAdded(0, 'Hi'), { ...partAdded(0, 'Hi'), type: 'response.content_part.done' }],
    [''],
  ],
  ['a text that only its start says', [added(0, message(0)), partAdded(0, 'Hello')], undefined],
  [
    'a text that only its start says, beside another part',
    [added(0, message(0)), partAdded(0, 'Hello'), partAdded(0, 'x', 1), textDone(0, 'x', 1)],
    undefined,
  ],
  [
    'a text that its deltas go on from',
    [added(0, message(0)), partAdded(0, 'Hé'), textDelta(0, ' there')],
    ['Hé there'],
  ],
  [
    'a text in both starts that its deltas go on from',
    [added(0, message(0, 'Hel')), partAdded(0, 'Hel'), textDelta(0, 'lo'), textDelta(0, '!')],
    ['Hello!'],
  ],
  [
    'a text that its deltas say once more',
    [added(0, message(0, 'Hello')), partAdded(0, ''), textDelta(0, 'Hel'), textDelta(0, 'lo')],
    ['Hello'],
  ],
  [
    'a text without places',
    [partAdded(0, 'Hel'), textDelta(0, 'lo')].map((one) => without('output_index', one)),
    ['Hello'],
  ],
  [
    'reasoning that its deltas go on from',
    [added(0, summary(0, 'Hm')), { ...textDelta(0, ', so'), ...summaryDelta(0, 0, ', so') }],
    ['Hm, so'],
  ],
]

for (const [what, list, said] of begun)
  test(`Y3 Y4 content that a responses stream begins with is not lost on the same wire: ${what}`, () => {
    const shown = playNatively('responses', events(created, ...list, terminal('completed')))
    const told: Json[] = framesOf(shown).map(({ data }) => JSON.parse(data))
    assert.equal(told.at(-1)!['type'], said ? 'response.completed' : 'response.failed')
    if (said === undefined) return
    const texts = said.map(() => '')
    for (const { type, delta, output_index = 0 } of told) if (type.endsWith('.delta')) texts[output_index] += delta
    assert.deepEqual(texts, said)
    for (const { item, type } of told)
      if (type === 'response.output_item.added' && item.content) assert.equal(saidIn(item), '')
  })

const refused: Json = { ...message(0), content: [{ type: 'refusal', refusal: 'No' }] }
const place = { item_id: 'msg_hosted_0', output_index: 0, content_index: 0 }

/** Streams without the start of a part, or the end of an item, and their items. */
const unannounced: [what: string, list: Json[], output: Json[]][] = [
  ['a text', [added(0, message(0)), textDelta(0, 'H'), textDelta(0, 'i'), textDone(0, 'Hi')], [message(0, 'Hi')]],
  ['a text that has no deltas', [added(0, message(0)), textDone(0, 'Hi')], [message(0, 'Hi')]],
  [
    'a text, and the end of its part',
    [added(0, message(0)), textDelta(0, 'Hi'), { ...partAdded(0, 'Hi'), type: 'response.content_part.done' }],
    [message(0, 'Hi')],
  ],
  ['a refusal', [added(0, message(0)), { type: 'response.refusal.delta', ...place, delta: 'No' }], [refused]],
  ['a summary', [added(0, summary(0)), summaryDelta(0, 0, 'Hm')], [summary(0, 'Hm')]],
  [
    'the second of two texts, whose deltas come in turn',
    [
      ...[added(0, message(0)), partAdded(0, ''), textDelta(0, 'H'), added(1, message(1)), textDelta(0, 'i')],
      ...[textDelta(1, 'O'), textDelta(0, '!'), textDelta(1, 'k'), itemDone(1, message(1, 'Ok'))],
    ],
    [message(0, 'Hi!'), message(1, 'Ok')],
  ],
  [
    'a text after a call and reasoning that says nothing',
    [
      ...[added(0, summary(0)), itemDone(0, summary(0)), added(1, functionCall(1, 'f', ''))],
      ...[argumentsDelta(1, args), argumentsDone(1, args), added(2, message(2)), textDelta(2, 'Hi')],
    ],
    [summary(0), functionCall(1, 'f', args), message(2, 'Hi')],
  ],
]

for (const [what, list, output] of unannounced)
  test(`Y3 missing part starts and item ends of a responses stream are added: ${what}`, async () => {
    for (const numbers of [true, false]) {
      const script = events(created, ...list, terminal('completed', output))
      const shown = playNatively('responses', numbers ? script : script.replace(/,"sequence_number":\d+/g, ''))
      const told: Json[] = framesOf(shown).map(({ data }) => JSON.parse(data))
      assert.deepEqual(
        told.map((event) => event['sequence_number']),
        told.map((_, number) => number),
      )
      const parts = new Set<string>()
      const ended = new Map<number, Json>()
      for (const { type, output_index: at, item } of told) {
        if (type.endsWith('_part.added')) {
          assert.ok(!parts.has(`${at}`), 'a part begins once')
          parts.add(`${at}`)
        } else if (/(?:text|refusal)\.(?:delta|done)$/.test(type)) assert.ok(parts.has(`${at}`), `${type} in its part`)
        if (type === 'response.output_item.done') {
          assert.ok(!ended.has(at), 'an item ends once')
          ended.set(at, item)
        }
      }
      assert.equal(told.at(-1)!['type'], 'response.completed')
      assert.deepEqual(
        output.map((_, at) => ended.get(at)),
        told.at(-1)!['response'].output,
      )
      const sdk = new OpenAI({ ...key, fetch: sdkFetch(shown) as never })
      const stream = sdk.responses.stream({ model: 'm', input: 'x' })
      let text = ''
      stream.on('response.output_text.delta', ({ delta }) => {
        text += delta
      })
      const final = await stream.finalResponse()
      assert.equal(final.output.length, output.length)
      const deltas = told.filter(({ type }) => type === 'response.output_text.delta')
      assert.equal(text, deltas.map(({ delta }) => delta).join(''))
    }
  })

test('Y3 a responses stream whose last event omits its items gets no ends with unknown content', () => {
  const script = events(created, added(0, message(0)), partAdded(0, ''), textDelta(0, 'Hi'), terminal('completed'))
  assert.doesNotMatch(playNatively('responses', script), /output_item\.done/)
})

test('Y3 Y4 no content of a changed responses stream is lost on the same wire, or the answer fails', async () => {
  const item = fc.record({ isCall: fc.boolean(), pieces, inputs, form: forms })
  await fc.assert(
    fc.asyncProperty(fc.array(item, { maxLength: 3 }), changes, async (list, changed) => {
      const events: Json[] = [created]
      const output: Json[] = []
      for (const [at, { isCall, pieces, inputs, form }] of list.entries()) {
        const parts = isCall ? inputs : pieces
        const whole = parts.join('')
        const made = (words: string, more = {}) =>
          isCall ? functionCall(at, 'f', words, more) : { ...message(at, words), ...more }
        const first = { deltas: '', start: whole, beginning: parts[0]!, twice: whole }[form]!
        const part = { type: 'output_text', text: '', annotations: [] }
        const place = { item_id: `msg_hosted_${at}`, output_index: at, content_index: 0 }
        events.push(
          added(at, { ...made(first, { status: 'in_progress' }), ...(!isCall && first === '' && { content: [] }) }),
        )
        if (!isCall) events.push({ type: 'response.content_part.added', ...place, part })
        const rest = form === 'start' ? [] : form === 'beginning' ? parts.slice(1) : parts
        for (const words of rest) events.push(isCall ? argumentsDelta(at, words) : textDelta(at, words))
        if (isCall) events.push(argumentsDone(at, whole))
        else events.push({ type: 'response.output_text.done', ...place, text: whole })
        events.push(itemDone(at, made(whole)))
        output.push(made(whole))
      }
      events.push(terminal('completed', output))
      let frames = events.map(
        (event, sequence_number) =>
          `event: ${event['type']}\ndata: ${JSON.stringify({ ...event, sequence_number })}\n\n`,
      )
      for (const one of changed) {
        const own = responsesFrames[one.kind]
        frames = own ? own(frames, one.at % (frames.length + 1)) : change(frames, one)
      }
      const shown = playNatively('responses', frames.join(''))
      const kinds = changed.map(({ kind }) => kind)
      const items = itemsOf(shown)
      note('responses', items === undefined)
      const isNameless = kinds.includes('types') && kinds.some((kind) => kind.startsWith('name'))
      if (items === undefined)
        return assert.ok(isNameless || kinds.includes('cut') || kinds.includes('no end'), 'nothing is missing')
      const said = list.map(({ isCall, pieces, inputs }) => ({
        type: isCall ? 'function_call' : 'message',
        said: (isCall ? inputs : pieces).join(''),
      }))
      assert.deepEqual(items, said)
      const sdk = new OpenAI({ ...key, fetch: sdkFetch(shown) as never })
      const final = await sdk.responses.stream({ model: 'm', input: 'x' }).finalResponse()
      assert.deepEqual(
        final.output.map((one: Json) => ({ type: one['type'], said: saidIn(one) })),
        said,
      )
    }),
    { ...runs, verbose: 1, examples: firstChanges.map((list): [[], typeof list] => [[], list]) },
  )
})

test('the tests of the laws above include whole and failed answers of each wire', () => {
  assert.deepEqual([...seen.keys()].sort(), [
    'chat false',
    'chat true',
    'messages false',
    'messages true',
    'responses false',
    'responses true',
  ])
})
