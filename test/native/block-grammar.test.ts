import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { wires } from '../../src/wires/wires.ts'
import { runsOf, runsUpTo } from '../support/runs.ts'
import { framesOf } from '../translation/grammar.ts'
import { pump } from '../translation/pump.ts'
import {
  blockDelta,
  blockStart,
  blockStop,
  messageDelta,
  messageStart,
  messageStop,
  textBlock,
  toolBlock,
} from '../translation/upstreams.ts'
import { modelOf } from './models.ts'
import { contentOfMessages, playNatively } from './same-wire.ts'

/*
 * Y3: a messages model's stream for a messages client obeys the grammar of message-wire §9, whatever the model sent. The
 * reader of these tests empties every start, as agents do, and reads one block at a time.
 */

const start = messageStart({ input_tokens: 9, output_tokens: 0 })
const end = messageDelta('tool_use', { output_tokens: 7 }) + messageStop
const input = (partial_json: string) => ({ type: 'input_json_delta', partial_json })
const words = (text: string) => ({ type: 'text_delta', text })
const tool = (more: object, type = 'tool_use') => ({ type, id: 'toolu_1', name: 'f', input: {}, ...more })
const call = (args: object, type = 'tool_use') => ({ type, input: args })
const hi = { type: 'text', text: 'Hi there' }
const thought = { type: 'thinking', thinking: 'Hm', signature: 'sig' }

/** The blocks of a stream, between its start and its end, and what a client has of them. */
const read: [what: string, script: string, content: object[]][] = [
  ['BUG-3 a text in its start', blockStart(0, hi) + blockStop(0), [hi]],
  ['BUG-3 a thought and its signature in their start', blockStart(0, thought) + blockStop(0), [thought]],
  ...['tool_use', 'server_tool_use', 'mcp_tool_use'].map((type): [string, string, object[]] => [
    `BUG-3 the arguments of a ${type} in its start`,
    blockStart(0, tool({ input: { a: 1 } }, type)) + blockStop(0),
    [call({ a: 1 }, type)],
  ]),
  [
    'BUG-3 citations in a start',
    blockStart(0, { ...hi, citations: [{ url: 'u' }] }) + blockStop(0),
    [{ ...hi, citations: [{ url: 'u' }] }],
  ],
  [
    'a redacted thought and a result stay in their starts',
    blockStart(0, { type: 'redacted_thinking', data: 'd' }) +
      blockStop(0) +
      blockStart(1, { type: 'web_search_tool_result', tool_use_id: 's', content: [1] }) +
      blockStop(1),
    [
      { type: 'redacted_thinking', data: 'd' },
      { type: 'web_search_tool_result', tool_use_id: 's', content: [1] },
    ],
  ],
  [
    'Y3 a signature in the start, and the thought in deltas',
    blockStart(0, { ...thought, thinking: '' }) +
      blockDelta(0, { type: 'thinking_delta', thinking: 'Hm' }) +
      blockStop(0),
    [thought],
  ],
  [
    'Y4 a signature in the start, once more, and in pieces',
    ['sig', 'nature', 'signature'].reduce(
      (text, signature) => text + blockDelta(0, { type: 'signature_delta', signature }),
      blockStart(0, thought),
    ) + blockStop(0),
    [{ ...thought, signature: 'signature' }],
  ],
  [
    'BUG-7 Y4 a start that is exactly the first delta',
    blockStart(0, { type: 'text', text: 'Hi' }) +
      blockDelta(0, words('Hi')) +
      blockDelta(0, words(' there')) +
      blockStop(0),
    [hi],
  ],
  [
    'Y4 a start that is a beginning',
    blockStart(0, { type: 'text', text: 'Hi' }) +
      blockDelta(0, words(' ')) +
      blockDelta(0, words('there')) +
      blockStop(0),
    [hi],
  ],
  [
    'BUG-7 Y4 whole arguments in the start, and once more in deltas',
    blockStart(0, tool({ input: { a: 1 } })) +
      blockDelta(0, input('')) +
      blockDelta(0, input('{"a"')) +
      blockDelta(0, input(':1}')) +
      blockStop(0),
    [call({ a: 1 })],
  ],
  ...[[''], ['{"a":1}'], ['{"a"', ':1}'], ['{"a":1}', '{"a":1}']].map((again, at): [string, string, object[]] => [
    `Y4 whole arguments in deltas, and once more in deltas (${at})`,
    blockStart(0, tool({})) +
      ['{"a":', '1}', ...again].map((piece) => blockDelta(0, input(piece))).join('') +
      blockStop(0),
    [call({ a: 1 })],
  ]),
  ...[['{"a":1}\n'], ['{"a"', ':1}\n']].map((again, at): [string, string, object[]] => [
    `Y4 whole arguments and white space in deltas, and once more in deltas (${at})`,
    blockStart(0, tool({})) +
      ['{"a":', '1', '}\n', ...again].map((piece) => blockDelta(0, input(piece))).join('') +
      blockStop(0),
    [call({ a: 1 })],
  ]),
  [
    'Y4 whole arguments, and once more in pieces around another block',
    blockStart(1, tool({})) +
      blockDelta(1, input('{"a":{}}')) +
      blockDelta(1, input('{"a"')) +
      blockStart(0, { type: 'text', text: '' }) +
      blockDelta(1, input(':{}}')) +
      blockDelta(0, words('Hi there')),
    [call({ a: {} }), hi],
  ],
  [
    'Y3 members that a start lacks, or has as null',
    blockStart(0, { type: 'thinking', thinking: null }) +
      blockDelta(0, { type: 'thinking_delta', thinking: 'Hm' }) +
      blockDelta(0, { type: 'signature_delta', signature: 'sig' }) +
      blockStop(0) +
      blockStart(1, { type: 'text' }) +
      blockDelta(1, words('Hi there')) +
      blockStop(1),
    [thought, hi],
  ],
  [
    'Y5 arguments in a delta as an object, and a delta without its type',
    blockStart(0, tool({})) +
      blockDelta(0, { type: 'input_json_delta', partial_json: { a: 1 } }) +
      blockStop(0) +
      blockStart(1, { type: 'text', text: '' }) +
      blockDelta(1, { text: 'Hi there' }) +
      blockStop(1),
    [call({ a: 1 }), hi],
  ],
  ['BUG-4 the last block has no stop', blockStart(0, { ...hi, text: '' }) + blockDelta(0, words('Hi there')), [hi]],
  ['BUG-4 the last call has no stop', blockStart(0, tool({})) + blockDelta(0, input('{"a":1}')), [call({ a: 1 })]],
  [
    'BUG-4 no block has a stop',
    [
      blockStart(0, { type: 'thinking', thinking: '', signature: '' }) +
        blockDelta(0, { type: 'thinking_delta', thinking: 'Hm' }) +
        blockDelta(0, { type: 'signature_delta', signature: 'sig' }),
      blockStart(1, tool({})) + blockDelta(1, input('{"a":1}')),
      blockStart(2, tool({})) + blockDelta(2, input('{"b":1}')),
      blockStart(3, { type: 'redacted_thinking', data: 'd' }),
      blockStart(4, hi),
    ].join(''),
    [thought, call({ a: 1 }), call({ b: 1 }), { type: 'redacted_thinking', data: 'd' }, hi],
  ],
  [
    'Y3 calls that overlap come one after the other',
    blockStart(0, tool({})) +
      blockStart(1, tool({})) +
      blockDelta(1, input('{"b"')) +
      blockDelta(0, input('{"a"')) +
      blockDelta(1, input(':1}')) +
      blockDelta(0, input(':1}')) +
      blockStop(1) +
      blockStop(0) +
      textBlock(2, 'Hi', ' there'),
    [call({ a: 1 }), call({ b: 1 }), hi],
  ],
  [
    'Y3 a text that overlaps a call waits for it, however many deltas it has',
    blockStart(0, tool({})) +
      blockDelta(0, input('{"a":')) +
      blockStart(1, { type: 'text', text: '' }) +
      ['H', 'i', ' ', 't', 'here'].map((piece) => blockDelta(1, words(piece))).join('') +
      blockDelta(0, input('1}')) +
      blockStop(0) +
      blockStop(1),
    [call({ a: 1 }), hi],
  ],
  [
    'Y3 a stop that is nobody’s, and one that comes twice',
    textBlock(0, 'Hi there') + blockStop(0) + blockStop(7),
    [hi],
  ],
]

for (const [what, blocks, content] of read) {
  const script = start + blocks + end
  test(`Y3 on the messages wire no part of a block is lost: ${what}`, () => {
    const text = playNatively('messages', script)
    assert.deepEqual(contentOfMessages(text), { content, reason: 'tool_use' })
    for (let at = 1; at < script.length; at += 3) assert.equal(playNatively('messages', script, [at]), text, `${at}`)
  })
}

const message = (content: unknown) => start.replace('"content":[]', () => `"content":${JSON.stringify(content)}`)

test('Y3 Y5 blocks in the message of the start are read if they come nowhere else', () => {
  const content = [thought, hi, tool({ input: { a: 1 } })]
  for (const script of [message(content) + end, message([hi]) + textBlock(0, 'Hi', ' there') + end]) {
    const told = contentOfMessages(playNatively('messages', script))
    assert.deepEqual(told?.content, script.includes('block_start') ? [hi] : [thought, hi, call({ a: 1 })])
  }
})

test('Y3 a text or a single block as the content of the start is read, and nothing in it is skipped', () => {
  const text = { type: 'text', text: 'Hé "there"' }
  const rows: [content: unknown, read: object[] | undefined][] = [
    [text.text, [text]],
    [text, [text]],
    [tool({ input: { a: 1 } }), [call({ a: 1 })]],
    ['', []],
    [null, []],
    [7, undefined],
    [true, undefined],
    [{}, undefined],
    [['Hi'], undefined],
  ]
  for (const [content, read] of rows) {
    const told = contentOfMessages(playNatively('messages', message(content) + end))
    assert.deepEqual(told?.content, read, JSON.stringify(content))
  }
})

test('T16 arguments that are moved into a delta keep their source', () => {
  const source = '{"n":12345678901234567890, "z":1,"a":2}'
  const script = blockStart(0, tool({ input: { x: 1 } })).replace('{"x":1}', source) + blockStop(0)
  for (const told of [
    playNatively('messages', start + script + end),
    playNatively(
      'messages',
      message([{ x: 1 }])
        .replace('{"x":1}', JSON.stringify(tool({ input: { x: 1 } })))
        .replace('{"x":1}', source) + end,
    ),
  ])
    assert.ok(told.includes(JSON.stringify(source)), told)
})

test('BUG-4 the stop reason is in the last message_delta, whatever follows the one that had it', () => {
  const last = [{}, { stop_reason: null, stop_sequence: null }, null, undefined]
  for (const delta of last) {
    const more = `data: ${JSON.stringify({ type: 'message_delta', delta, usage: { output_tokens: 7 } })}\n\n`
    const script = start + textBlock(0, 'Hi') + messageDelta('end_turn') + more + more + messageStop
    const deltas = framesOf(playNatively('messages', script))
      .map(({ data }) => JSON.parse(data) as { type: string; delta?: { stop_reason: string } })
      .filter(({ type }) => type === 'message_delta')
    assert.equal(deltas.at(-1)?.delta?.stop_reason, 'end_turn', JSON.stringify(delta))
  }
})

test('Y3 the stop sequence and the details of a refusal are in the last message_delta too', () => {
  for (const ending of [
    { stop_reason: 'stop_sequence', stop_sequence: 'END' },
    { stop_reason: 'refusal', stop_sequence: null, stop_details: { type: 'refusal', explanation: 'Nö' } },
  ])
    for (const delta of [undefined, {}, { stop_reason: null, stop_sequence: null, stop_details: null }]) {
      const [ended, more] = [ending, delta].map(
        (one) => `data: ${JSON.stringify({ type: 'message_delta', delta: one, usage: { output_tokens: 7 } })}\n\n`,
      )
      const told = framesOf(playNatively('messages', `${start}${textBlock(0, 'Hi')}${ended}${more}${messageStop}`))
      const last = told.map(({ data }) => JSON.parse(data)).findLast(({ type }) => type === 'message_delta')
      assert.deepEqual({ ...last.delta, ...ending }, last.delta)
      for (const name of Object.keys(ending)) assert.ok(name in last.delta)
    }
})

const failing: [what: string, script: string][] = [
  ['BUG-4 J3 a second message_start', start + textBlock(0, 'Hel') + start + textBlock(0, 'Hello') + end],
  ['BUG-4 no message_delta', start + textBlock(0, 'Hi') + messageStop],
  ['Y3 a delta of a block that nobody opened', start + textBlock(0, 'Hi') + blockDelta(1, words('there')) + end],
  ['Y3 a delta of a block that was stopped', start + textBlock(0, 'Hi') + blockDelta(0, words('there')) + end],
  ['Y3 a delta before any block', start + blockDelta(0, words('there')) + end],
  ['Y3 a block before message_start', textBlock(0, 'Hi') + start + end],
  ['Y3 a delta of another kind of block', start + blockStart(0, tool({})) + blockDelta(0, words('x')) + end],
  [
    'Y5 a text that is none',
    start + blockStart(0, { ...hi, text: '' }) + blockDelta(0, { ...words(''), text: 7 }) + end,
  ],
  ['Y5 a block without a type', start + blockStart(0, { text: '' }) + blockDelta(0, words('Hi')) + end],
  [
    'Y3 a delta after the stop of a broken call',
    start + blockStart(0, tool({})) + blockDelta(0, input('{"a"')) + blockStop(0) + blockDelta(0, input(':1}')) + end,
  ],
  ...['', blockStop(0), textBlock(1, 'Hi')].map((next, at): [string, string] => [
    `Y4 Y5 whole arguments, and a part of them once more (${at})`,
    start + blockStart(0, tool({})) + blockDelta(0, input('{"a":1}')) + blockDelta(0, input('{"a"')) + next + end,
  ]),
  [
    'Y5 a block number that is given again within a call',
    start + blockStart(0, tool({})) + toolBlock(0, 'f', '{}') + end,
  ],
]

/** Deeper than what can be edited. */
const deep = `${'['.repeat(140)}1${']'.repeat(140)}`
const deepen = (frame: string) => frame.replace('"deep"', () => deep)
const deepCall = (index: number) => deepen(blockStart(index, tool({ input: { a: 'deep' } }))) + blockStop(index)
const deepResult = (index: number) =>
  deepen(blockStart(index, { type: 'web_search_tool_result', tool_use_id: 's', content: 'deep' })) + blockStop(index)

failing.push(
  ['Y3 a deep input in a start', start + deepCall(0) + end],
  ['Y3 a deep block under a wrong number', start + deepResult(3) + end],
  ['Y3 a deep block without its type', start + deepResult(0).replace('"type":"content_block_start",', '') + end],
  ['Y3 a deep block in the start of the message', deepen(message([tool({ input: { a: 'deep' } })])) + end],
  ['Y3 a deep member of message_delta', start + textBlock(0, 'Hi') + end.replace('"delta":{', `"x":${deep},"delta":{`)],
  [
    'Y3 a deep member of message_stop that names its service',
    start + textBlock(0, 'Hi') + end.replace('"message_stop"}', `"message_stop","provider":"x","x":${deep}}`),
  ],
)

test('Y3 a deep block that needs no change is passed on unchanged', () => {
  assert.ok(playNatively('messages', start + deepResult(0) + end).includes(deepResult(0)))
})

for (const [what, script] of failing)
  test(`Y3 I1 a messages answer fails on the same wire: ${what}`, () => {
    assert.equal(contentOfMessages(playNatively('messages', script)), undefined)
  })

test('Y3 J3 I1 a second message_start fails the answer for clients of every wire', () => {
  const script = start + textBlock(0, 'Hel') + start + textBlock(0, 'Hello') + end
  for (const client of ['chat', 'responses'] as const) {
    const told = pump(client, 'messages', script)
    assert.match(told.text, /"error"/)
    assert.doesNotMatch(told.text, /\[DONE\]|response\.completed/)
  }
})

for (const [what, blocks, content] of read)
  test(`BUG-7 Y4 the same stream says the same to a chat client: ${what}`, () => {
    const { text } = pump('chat', 'messages', start + blocks + end, { showsReasoning: true })
    const chunks = text.split('\n\n').filter((frame) => frame.startsWith('data: {'))
    const deltas = chunks.map((frame) => JSON.parse(frame.slice(6)).choices[0]?.delta ?? {})
    const ofKind = (kind: string, member: string) =>
      content
        .map((block) => block as Record<string, unknown>)
        .filter(({ type }) => type === kind)
        .map((block) => block[member])
        .join('')
    assert.equal(deltas.map(({ content }) => content ?? '').join(''), ofKind('text', 'text'))
    assert.equal(
      deltas.map(({ reasoning_content }) => reasoning_content ?? '').join(''),
      ofKind('thinking', 'thinking'),
    )
    const calls = deltas.flatMap(({ tool_calls }) => tool_calls ?? [])
    const inputs = content.filter((block) => (block as { type: string }).type === 'tool_use')
    const texts = inputs.map((_, at) =>
      calls
        .filter(({ index }) => index === at)
        .map((one) => one.function.arguments)
        .join(''),
    )
    assert.deepEqual(
      texts.map((one) => JSON.parse(one)),
      inputs.map((block) => (block as { input: unknown }).input),
    )
  })

test('Y3 a delta like the one before is not parsed, whatever its line ends and its block number', () => {
  for (const lineEnd of ['\n', '\r\n', '\r'])
    for (const number of [0, 3]) {
      const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11 }
      const relay = wires.messages.native.openStream({ ...head, model: modelOf('messages') })
      const push = (frames: string) => relay.push(Buffer.from(frames.replaceAll('\n', lineEnd)))
      push(start + blockStart(number, { type: 'text', text: '' }) + blockDelta(number, words('Hi')))
      // An escape that JSON does not have: whoever parses it breaks the answer off.
      const odd = blockDelta(number, words('odd')).replace('odd', String.raw`\x`)
      const shown = push(odd + odd) + push(blockDelta(number, words(' there')))
      assert.equal(relay.state, 'shown', JSON.stringify([lineEnd, number]))
      assert.equal(shown.split(String.raw`\x`).length, 3)
      assert.match(shown, /"index":0/)
      push(odd.replace('data: ', 'data:  ') + blockStop(number))
      assert.equal(relay.state, 'failed')
    }
})

test('Y5 a broken call that is followed by another block fails the answer at once', () => {
  const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11 }
  const relay = wires.messages.native.openStream({ ...head, model: modelOf('messages') })
  relay.push(Buffer.from(start + blockStart(0, tool({})) + blockDelta(0, input('{"a"')) + blockStop(0)))
  assert.equal(relay.state, 'shown')
  relay.push(Buffer.from(blockStart(1, { type: 'text', text: '' })))
  assert.equal(relay.state, 'failed')
})

test('Y3 C10 a late stop of a call adds nothing to the count', () => {
  const usage = (script: string) => {
    const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11 }
    const relay = wires.messages.native.openStream({ ...head, model: modelOf('messages') })
    relay.push(Buffer.from(start + script))
    return relay.estimateOutput()
  }
  const call = blockStart(0, tool({ input: { a: 1 } }))
  const text = blockStart(1, hi)
  assert.equal(usage(call + text + blockStop(0).repeat(2)), usage(call + blockStop(0) + text))
})

const kinds = {
  text: { block: { type: 'text', text: '' }, deltas: [words('a '), words('b '), words('')] },
  'text with content': { block: { type: 'text', text: 'a ' }, deltas: [words('a '), words('b ')] },
  thinking: {
    block: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      { type: 'thinking_delta', thinking: 'c ' },
      { type: 'thinking_delta', thinking: 'd ' },
      { type: 'signature_delta', signature: 'sig' },
    ],
  },
  redacted: { block: { type: 'redacted_thinking', data: 'd' }, deltas: [{ type: 'signature_delta', signature: '' }] },
  call: { block: tool({}), deltas: ['', '{"a"', ':{}}', '{"a":{}}'].map(input) },
  'call with input': { block: tool({ input: { a: {} } }), deltas: ['', '{"a"', ':{}}', '{"a":{}}'].map(input) },
} as const
const kindNames = Object.keys(kinds) as (keyof typeof kinds)[]

/** Events of three blocks at once, most of whose deltas are of the block's kind. */
const disorder = fc
  .array(fc.record({ number: fc.nat(2), what: fc.nat(9), kind: fc.constantFrom(...kindNames), delta: fc.nat(11) }), {
    maxLength: 12,
  })
  .map((draws) => {
    const open = new Map<number, keyof typeof kinds>()
    return draws.map(({ number, what, kind, delta }) => {
      if (what > 7) return { says: `stop ${number}`, frame: blockStop(number) }
      const own = open.get(number)
      if (own !== undefined && what > 1) {
        // A redacted thought has no words: translation reads them, and a client of this wire could not.
        const { deltas } = kinds[what === 7 && own !== 'redacted' ? kind : own]
        const one = deltas[delta % deltas.length]!
        return { says: `delta ${number} ${JSON.stringify(one)}`, frame: blockDelta(number, one) }
      }
      open.set(number, kind)
      return { says: `start ${number} ${kind}`, frame: blockStart(number, kinds[kind].block) }
    })
  })

/** What a chat client has of a translated stream; undefined if it failed, or a call is broken. */
function contentOfChat(text: string): { text: string; thinking: string; calls: unknown[] } | undefined {
  const chunks = text.split('\n\n').filter((frame) => frame.startsWith('data: {'))
  const deltas = chunks.map((frame) => JSON.parse(frame.slice(6)).choices?.[0]?.delta ?? {})
  const texts: string[] = []
  for (const one of deltas.flatMap(({ tool_calls }) => tool_calls ?? []))
    texts[one.index] = (texts[one.index] ?? '') + (one.function.arguments ?? '')
  // Parts of reasoning are put apart by blank lines there.
  const said = (member: string) =>
    deltas
      .map((delta) => delta[member] ?? '')
      .join('')
      .replaceAll('\n', '')
  try {
    if (text.includes('"error"')) return undefined
    const calls = texts.map((one) => JSON.parse(one || '{}'))
    return { text: said('content'), thinking: said('reasoning_content'), calls }
  } catch {
    return undefined
  }
}

test('Y3 Y4 Y5 blocks out of order give the same on the same wire and in translation, or fail in both', () => {
  const counts = { read: 0, failed: 0 }
  fc.assert(
    fc.property(disorder, (events) => {
      const script = start + events.map(({ frame }) => frame).join('') + end
      const says = events.map((event) => event.says).join('; ')
      const translated = contentOfChat(pump('chat', 'messages', script, { showsReasoning: true }).text)
      const told = contentOfMessages(playNatively('messages', script))
      counts[told ? 'read' : 'failed']++
      const ofType = (type: string) => told?.content.filter((block) => block['type'] === type) ?? []
      const joined = (type: string) =>
        ofType(type)
          .map((block) => block[type])
          .join('')
      const native = told && {
        text: joined('text'),
        thinking: joined('thinking'),
        calls: ofType('tool_use').map((block) => block['input']),
      }
      assert.deepEqual(native, translated, says)
    }),
    { numRuns: runsOf(2_000) },
  )
  assert.ok(Math.min(counts.read, counts.failed) > runsUpTo(100), JSON.stringify(counts))
})
