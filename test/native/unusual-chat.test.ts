import assert from 'node:assert/strict'
import test from 'node:test'
import OpenAI from 'openai'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { framesOf } from '../translation/grammar.ts'
import { call, counts, delta, done, raw, reason, text, usage } from '../translation/upstreams.ts'
import { modelOf } from './models.ts'
import { playNatively } from './same-wire.ts'

/*
 * On the same wire a chat model's answer in an unusual form is read as the hub reads it, or it fails (Y5). The members
 * without which the vendor's helper throws are there (Y3).
 */

// biome-ignore lint/suspicious/noExplicitAny: a test reads JSON as a client does.
type Json = Record<string, any>

const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }
const flat = { id: 'c', type: 'function', name: 'f', arguments: '{"a":1}' }
const chunk = (choice: Json, rest: Json = {}) =>
  raw(JSON.stringify({ id: 'x', object: 'chat.completion.chunk', model: 'up', choices: [choice], ...rest }))
const ofCall = (one: Json) => chunk({ index: 0, delta: { role: 'assistant', tool_calls: [{ index: 0, ...one }] } })
const hi = { content: 'Hi', calls: [] }
const f = (args = '{"a":1}', id = 'c') => ({ content: null, calls: [[id, 'f', args]] })

/** Chunks before the reason, and what the helper reads; undefined if the answer fails. */
const streams: [what: string, chunks: string, said: Json | undefined][] = [
  ['no role', text('H') + text('i'), hi],
  ['a role that is null', delta({ role: null, content: 'Hi' }), hi],
  ['no role, and the text comes later', delta({ content: '' }) + text('Hi'), hi],
  ['the text beside an empty delta', chunk({ index: 0, delta: { role: 'assistant' }, text: 'Hi' }), hi],
  ['texts instead of deltas', chunk({ index: 0, text: 'H' }) + chunk({ index: 0, text: 'i' }), hi],
  ['a text as the delta', chunk({ index: 0, delta: 'Hi' }), hi],
  ['a message instead of deltas', chunk({ index: 0, message: { role: 'assistant', content: 'Hi' } }), hi],
  ['a message after deltas', text('Hi') + chunk({ index: 0, message: { role: 'assistant', content: 'Hi' } }), hi],
  ['a chunk without a delta', text('Hi') + chunk({ index: 0 }), hi],
  ['a message with calls', chunk({ index: 0, message: { content: null, tool_calls: [called] } }), f()],
  ['a call without a role', call([0, 'c', 'f', '{"a":1}']), f()],
  ['a name outside its function', ofCall(flat), f()],
  ['a function that is a name', ofCall({ id: 'c', function: 'f', arguments: '{"a":1}' }), f()],
  ['arguments as an object', ofCall({ id: 'c', function: { name: 'f', arguments: { a: 1 } } }), f()],
  [
    'arguments with a number beyond 2^53',
    ofCall({ id: 'c', function: { name: 'f', arguments: { a: 7 } } }).replace('"a":7', '"a":12345678901234567891'),
    f('{"a":12345678901234567891}'),
  ],
  ['arguments under another name', ofCall({ id: 'c', function: { name: 'f', parameters: { a: 1 } } }), f()],
  ['a call that is in no list', chunk({ index: 0, delta: { tool_calls: called } }), f()],
  ['a call beside the delta', chunk({ index: 0, delta: {}, tool_calls: [{ index: 0, ...called }] }), f()],
  ['a call without a type', ofCall({ id: 'c', function: called.function }), f()],
  [
    'a call without arguments at first',
    ofCall({ id: 'c', function: { name: 'f' } }) + call([0, undefined, undefined, '{"a":1}']),
    f(),
  ],
  ['a name in the second chunk', call([0, 'c', undefined, '']) + call([0, undefined, 'f', '{"a":1}']), f()],
  ['a call without a name', call([0, 'c', undefined, '{"a":1}']), undefined],
  ['a call whose name is blank', call([0, 'c', ' ', '{"a":1}']), undefined],
  ['a second call without a name', call([0, 'c', 'f', '{"a":1}']) + call([1, 'd', undefined, '{}']), undefined],
  ['a call that is no object', chunk({ index: 0, delta: { tool_calls: ['f'] } }), undefined],
  ['a call that is null', chunk({ index: 0, delta: { tool_calls: [null] } }), undefined],
]

const sdkOf = (body: string, type: string) =>
  new OpenAI({
    ...{ apiKey: 'k', maxRetries: 0, logLevel: 'off' },
    fetch: async () => new Response(body, { headers: { 'content-type': type } }),
  })

for (const [what, chunks, said] of streams)
  test(`Y3 Y5 the helper of the vendor reads a chat stream of the same wire with ${what}, or it fails`, async () => {
    for (const end of [
      reason(said?.['calls'].length === 0 ? 'stop' : 'tool_calls') + usage(counts(9, 7)) + done,
      done,
    ]) {
      const shown = playNatively('chat', chunks + end)
      const stream = sdkOf(shown, 'text/event-stream').chat.completions.stream({ model: 'm', messages: [] })
      const final: Promise<Json> = stream.finalChatCompletion()
      if (said === undefined) {
        assert.ok(!shown.includes('"finish_reason":"tool_calls"'), 'no client runs the call')
        await assert.rejects(final, /failed/)
        continue
      }
      const { message } = (await final)['choices'][0]
      const calls = (message.tool_calls ?? []).map((one: Json) => [
        one['id'],
        one['function'].name,
        one['function'].arguments,
      ])
      assert.deepEqual({ content: message.content, calls }, said)
      assert.equal(shown.match(/"role":"assistant"/g)?.length, 1, 'a role is said once')
    }
  })

const bare = (...calls: Json[]) => chunk({ index: 0, delta: { tool_calls: calls } })

/** Calls without numbers, and what the helper reads. */
const unnumbered: [what: string, chunks: string, said: string[]][] = [
  ['whole calls in a chunk each', bare(called) + bare({ ...called, id: 'd' }), ['c f {"a":1}', 'd f {"a":1}']],
  ['two calls in one chunk', bare(called, { ...called, id: 'd' }), ['c f {"a":1}', 'd f {"a":1}']],
  [
    'pieces without ids',
    bare({ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } }) +
      bare({ function: { arguments: '1' } }) +
      bare({ function: { arguments: '}' } }) +
      bare({ ...called, id: 'd' }),
    ['c f {"a":1}', 'd f {"a":1}'],
  ],
  [
    'pieces of two calls in turn, by their ids',
    bare(
      { id: 'c', function: { name: 'f', arguments: '{"a":' } },
      { id: 'd', function: { name: 'g', arguments: '' } },
    ) + bare({ id: 'd', function: { arguments: '{}' } }, { id: 'c', function: { arguments: '1}' } }),
    ['c f {"a":1}', 'd g {}'],
  ],
  [
    'a call after one with a number',
    bare({ index: 0, ...called }) +
      bare({ id: 'd', function: { name: 'g', arguments: '{' } }) +
      bare({ function: { arguments: '}' } }),
    ['c f {"a":1}', 'd g {}'],
  ],
  [
    'pieces of calls whose beginnings have numbers',
    bare({ index: 0, ...called }) +
      bare({ index: 1, id: 'd', function: { name: 'g', arguments: '{' } }) +
      bare({ function: { arguments: '}' } }) +
      bare({ id: 'd', function: { arguments: ' ' } }),
    ['c f {"a":1}', 'd g {} '],
  ],
]

for (const [what, chunks, said] of unnumbered)
  test(`Y3 U7 calls of a chat stream of the same wire that have no numbers get them: ${what}`, async () => {
    const shown = playNatively('chat', chunks + reason('tool_calls') + done)
    const stream = sdkOf(shown, 'text/event-stream').chat.completions.stream({ model: 'm', messages: [] })
    const told: Json[] = ((await stream.finalChatCompletion()) as Json)['choices'][0].message.tool_calls
    assert.deepEqual(
      told.map(({ id, function: { name, arguments: text } }) => `${id} ${name} ${text}`),
      said,
    )
  })

const long = ['{', '"', 'a', '"', ':', '1', '2', '3', '4', '5', '6', '}']
const inPieces = (index: number | undefined, id: string, name: string, pieces = long) =>
  call([index, id, name, '']) + pieces.map((piece) => call([index, undefined, undefined, piece])).join('')
const f123 = 'f {"a":123456}'

/** Calls with unusual numbers, and what the helper reads. */
const misnumbered: [what: string, chunks: string, said: string[]][] = [
  [
    'from -1 (AWS’s gateway for Bedrock)',
    inPieces(-1, 'c', 'f') + inPieces(0, 'd', 'f') + inPieces(1, 'e', 'g', []),
    [`c ${f123}`, `d ${f123}`, 'e g '],
  ],
  ['from 1', inPieces(1, 'c', 'f') + inPieces(2, 'd', 'f'), [`c ${f123}`, `d ${f123}`]],
  ['with a gap', inPieces(0, 'c', 'f') + inPieces(2, 'd', 'f'), [`c ${f123}`, `d ${f123}`]],
  [
    '0 for each call',
    inPieces(0, 'c', 'f') + inPieces(0, 'd', 'f') + inPieces(0, 'e', 'g', []) + inPieces(0, 'h', 'f'),
    [`c ${f123}`, `d ${f123}`, 'e g ', `h ${f123}`],
  ],
  ['0 for each whole call', call([0, 'c', 'f', '{}']) + call([0, 'd', 'f', '{}']), ['c f {}', 'd f {}']],
  [
    'in turn from 1',
    call([1, 'c', 'f', '{"a"'], [2, 'd', 'g', '{"b"']) +
      call([2, undefined, undefined, ':2}']) +
      call([1, undefined, undefined, ':1}']),
    ['c f {"a":1}', 'd g {"b":2}'],
  ],
  [
    'only in later pieces',
    call([undefined, 'c', 'f', '{"a"']) + call([0, undefined, undefined, ':1}']),
    ['c f {"a":1}'],
  ],
  ['and a new id in each piece', call([0, 'c', 'f', '{"a"']) + call([0, 'd', undefined, ':1}']), ['d f {"a":1}']],
]

for (const [what, chunks, said] of misnumbered)
  test(`Y3 U7 calls of a chat stream of the same wire are numbered from 0 without gaps: numbers ${what}`, async () => {
    for (const size of [7, 100_000]) {
      const shown = playNatively('chat', chunks + reason('tool_calls') + done, Array<number>(999).fill(size))
      const stream = sdkOf(shown, 'text/event-stream').chat.completions.stream({ model: 'm', messages: [] })
      const told: Json[] = ((await stream.finalChatCompletion()) as Json)['choices'][0].message.tool_calls
      assert.deepEqual(
        told.map(({ id, function: { name, arguments: text } }) => `${id} ${name} ${text}`),
        said,
      )
    }
  })

test('Y3 a call of a chat stream without an id gets one, and each call its own', async () => {
  const calls = call([0, undefined, 'f', '{"a":']) + call([0, undefined, undefined, '1}'], [1, undefined, 'g', '{}'])
  const shown = playNatively('chat', calls + reason('tool_calls') + done)
  const stream = sdkOf(shown, 'text/event-stream').chat.completions.stream({ model: 'm', messages: [] })
  const told: Json[] = ((await stream.finalChatCompletion()) as Json)['choices'][0].message.tool_calls
  assert.deepEqual(
    told.map((one) => [one['type'], one['function'].name, one['function'].arguments]),
    [
      ['function', 'f', '{"a":1}'],
      ['function', 'g', '{}'],
    ],
  )
  const ids = told.map(({ id }) => id)
  assert.equal(new Set(ids).size, 2)
  for (const id of ids) assert.match(id, /^call_[A-Za-z0-9]{24}$/)
})

/** Whole calls that all have the number 0 and no ids, and what the helper reads. */
const alike: [what: string, chunks: string, said: string[]][] = [
  ['of two tools', call([0, '', 'f', '{"a":1}']) + call([0, '', 'g', '{"b":2}']), ['f {"a":1}', 'g {"b":2}']],
  ['of one tool', call([0, '', 'f', '{"a":1}']) + call([0, '', 'f', '{"a":2}']), ['f {"a":1}', 'f {"a":2}']],
  ['in one chunk', call([0, '', 'f', '{"a":1}'], [0, '', 'f', '{"a":2}']), ['f {"a":1}', 'f {"a":2}']],
  ['in one chunk, with ids', call([0, 'c', 'f', '{"a":1}'], [0, 'd', 'g', '{}']), ['f {"a":1}', 'g {}']],
  [
    'and no arguments',
    call([0, undefined, 'f', '{}']) + call([0, undefined, 'g', '{}']) + call([0, undefined, 'h', '{}']),
    ['f {}', 'g {}', 'h {}'],
  ],
  [
    'in pieces with their name',
    call([0, '', 'f', '{"a":']) + call([0, '', 'f', '1}']) + call([0, '', 'f', '']) + call([0, '', 'f', '{"a":1}']),
    ['f {"a":1}'],
  ],
]

for (const [what, chunks, said] of alike)
  test(`Y3 U7 whole calls of a chat stream of the same wire with one number stay apart: ${what}`, async () => {
    for (const size of [7, 100_000]) {
      const shown = playNatively('chat', chunks + reason('tool_calls') + done, Array<number>(999).fill(size))
      const stream = sdkOf(shown, 'text/event-stream').chat.completions.stream({ model: 'm', messages: [] })
      const told: Json[] = ((await stream.finalChatCompletion()) as Json)['choices'][0].message.tool_calls
      assert.deepEqual(
        told.map(({ function: { name, arguments: text } }) => `${name} ${text}`),
        said,
      )
      assert.equal(new Set(told.map(({ id }) => id)).size, said.length)
    }
  })

const head = { requestId: 'req_1', createdSeconds: 1_795_000_000, inputTokensEstimate: 11, model: modelOf('chat') }
const billed = { ...noUsage, inputTokens: 9, outputTokens: 7 }
const readWhole = (answer: Json) => wires.chat.native.readAnswer(Buffer.from(JSON.stringify(answer)), head)

test('Y3 spec 2.6 6.2 a chat answer of the same wire has whole times (SambaNova) and no empty reasons (SGLang)', () => {
  const timed = (at: number, choice: Json) =>
    chunk({ index: 0, finish_reason: '', ...choice }, { created: 1_748_000_000 + at })
  const pieces = Array.from({ length: 9 }, (_, at) => timed(at / 8 + 0.25, { delta: { content: `${at}` } }))
  const script = pieces.join('') + timed(2.5, { delta: {}, finish_reason: 'stop' }) + done
  for (const size of [7, 100_000]) {
    const shown = playNatively('chat', script, Array<number>(999).fill(size))
    const told: Json[] = framesOf(shown.replace('data: [DONE]\n\n', '')).map(({ data }) => JSON.parse(data))
    assert.deepEqual(new Set(told.map(({ created }) => created)), new Set([1_795_000_000]))
    const choices = told.flatMap((one) => one['choices'])
    assert.deepEqual(choices.map(({ delta }) => delta.content ?? '').join(''), '012345678')
    assert.deepEqual(new Set(choices.slice(0, -1).map(({ finish_reason }) => finish_reason)), new Set([null]))
  }
  const answer = readWhole({ id: 'x', created: 1_748_000_000.5, choices: [{ message: { content: 'Hi' } }] })
  assert.ok(answer.state === 'finished')
  assert.equal(JSON.parse(`${answer.encode(billed)}`).created, 1_795_000_000)
})

/** Whole answers with status 200 that are errors, and their faults. */
const errors: [what: string, answer: Json, fault: Json][] = [
  [
    'in its choice (OpenRouter)',
    { choices: [{ message: { content: 'H' }, finish_reason: 'error', error: { code: 502, message: 'Acme failed' } }] },
    { kind: 'broken', status: 502, text: 'Acme failed' },
  ],
  [
    'in its second choice',
    {
      choices: [
        { index: 0, message: { content: 'H' }, finish_reason: 'stop' },
        { index: 1, message: { content: '' }, finish_reason: 'error', error: { code: 502, message: 'Acme failed' } },
      ],
    },
    { kind: 'broken', status: 502, text: 'Acme failed' },
  ],
  ['instead of it', { object: 'error', code: 400, message: 'Bad' }, { kind: 'rejected', status: 400, text: 'Bad' }],
]

for (const [what, answer, fault] of errors)
  test(`U1 U2 a chat answer of the same wire with an error ${what} fails, also if it is to become a stream`, () => {
    assert.deepEqual(readWhole({ id: 'x', ...answer }), { state: 'failed', fault })
    const relay = wires.chat.native.openStream(head)
    assert.equal(relay.pushWhole(Buffer.from(JSON.stringify({ id: 'x', ...answer }))), '')
    assert.deepEqual(relay.fault, fault)
  })

/** The one choice of a whole answer, and what the helper reads of it. */
const wholes: [what: string, choice: Json, said: Json | undefined][] = [
  ['no role', { message: { content: 'Hi' }, finish_reason: 'stop' }, hi],
  ['no reason', { message: { role: 'assistant', content: 'Hi' } }, hi],
  ['a text instead of a message', { text: 'Hi', finish_reason: 'stop' }, hi],
  ['a text as the message', { message: 'Hi', finish_reason: 'stop' }, hi],
  ['a delta instead of a message', { delta: { content: 'Hi' }, finish_reason: 'stop' }, hi],
  ['no content', { message: { role: 'assistant', tool_calls: [called] }, finish_reason: 'tool_calls' }, f()],
  ['a call without a reason', { message: { content: null, tool_calls: [called] } }, f()],
  ['a flat call', { message: { content: null, tool_calls: [flat] }, finish_reason: 'tool_calls' }, f()],
  ['a call in no list', { message: { content: null, tool_calls: called }, finish_reason: 'tool_calls' }, f()],
  ['a call beside the message', { message: { content: null }, tool_calls: [called], finish_reason: 'tool_calls' }, f()],
  ['a call without a type', { message: { tool_calls: [{ ...called, type: undefined }] }, finish_reason: 'stop' }, f()],
  ['a nameless call', { message: { tool_calls: [{ id: 'c', function: { arguments: '{}' } }] } }, undefined],
  ['a call that is no object', { message: { tool_calls: ['f'] } }, undefined],
  ['nothing', { finish_reason: 'stop' }, undefined],
  ['only a refusal', { finish_reason: 'content_filter: PROHIBITED_CONTENT' }, { content: null, calls: [] }],
  ['only a cut', { message: null, finish_reason: 'length' }, { content: null, calls: [] }],
  ['a number as the message', { message: 7, finish_reason: 'length' }, undefined],
  ['only a broken call', { finish_reason: 'function_call_filter: MALFORMED_FUNCTION_CALL' }, undefined],
]

for (const [what, choice, said] of wholes)
  test(`Y3 Y5 the SDK of the vendor reads a whole chat answer of the same wire with ${what}, or it fails`, async () => {
    const answer = readWhole({ id: 'x', choices: [choice] })
    assert.equal(answer.state, said ? 'finished' : 'failed')
    if (answer.state !== 'finished') return
    const shown = `${answer.encode(billed)}`
    const told: Json = await sdkOf(shown, 'application/json').chat.completions.create({ model: 'm', messages: [] })
    const [{ message, finish_reason, index }] = told['choices']
    const calls = (message.tool_calls ?? []).map((one: Json) => [
      one['id'],
      one['function'].name,
      one['function'].arguments,
    ])
    assert.deepEqual({ content: message.content, calls }, said)
    assert.deepEqual([message.role, index, typeof finish_reason], ['assistant', 0, 'string'])
    assert.deepEqual([told['object'], told['created']], ['chat.completion', 1_795_000_000])
    for (const one of message.tool_calls ?? []) assert.equal(one.type, 'function')
  })

for (const [what, choice, said] of wholes)
  test(`Y1 Y5 a whole chat answer of the same wire that becomes a stream is read like the answer: ${what}`, async () => {
    const relay = wires.chat.native.openStream(head)
    const begun = relay.pushWhole(Buffer.from(JSON.stringify({ id: 'x', choices: [choice] })))
    assert.equal(relay.state, said ? 'finished' : 'failed')
    if (said === undefined) return
    const shown = Buffer.from(begun + relay.finish(billed), relay.encoding).toString()
    const stream = sdkOf(shown, 'text/event-stream').chat.completions.stream({ model: 'm', messages: [] })
    const { message }: Json = ((await stream.finalChatCompletion()) as Json)['choices'][0]
    const calls = (message['tool_calls'] ?? []).map(({ id, function: { name, arguments: text } }: Json) => [
      id,
      name,
      text,
    ])
    assert.deepEqual({ content: message['content'], calls }, said)
  })

test('Y1 T16 the arguments of a chat call that are an object keep their digits in a stream made from JSON', () => {
  const choice = { message: { tool_calls: [{ id: 'c', function: { name: 'f', arguments: { a: 7 } } }] } }
  const body = JSON.stringify({ id: 'x', choices: [choice] }).replace('"a":7', '"a":12345678901234567891')
  const shown = wires.chat.native.openStream(head).pushWhole(Buffer.from(body))
  assert.match(shown, /"arguments":"\{\\"a\\":12345678901234567891\}"/)
})
