import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { vendorChunks } from '../../bench/answers.ts'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { runsOf } from '../support/runs.ts'
import { modelOf } from './models.ts'

/*
 * A chat chunk that begins as those before it is not parsed (src/wires/chat/native-stream.ts). That is a matter of speed
 * and nothing else: these laws say so. The same chunks with another number of blanks in front of each share no beginning,
 * so every one of them is read.
 */

const runs = { numRuns: runsOf(400) }

const words = fc.oneof(
  fc.string({ maxLength: 6, unit: fc.constantFrom(...'ab "\\\n:{}é漢😀') }),
  fc.constantFrom(
    '"model":"up-chat"',
    '"},"finish_reason":"stop"}]}',
    'data: [DONE]\n\n',
    '\ud83d',
    '"error":{}',
    ' fox',
  ),
)
const json = words.map((text) => JSON.stringify(text))

/** What a chunk may have as its delta. */
const anyDelta = fc.oneof(
  { weight: 6, arbitrary: json.map((text) => `{"content":${text}}`) },
  { weight: 2, arbitrary: json.map((text) => `{"reasoning_content":${text}}`) },
  json.map((text) => `{"content":"","reasoning":${text},"reasoning_details":[{"text":${text}}]}`),
  json.map((text) => `{"content":null,"refusal":${text}}`),
  json.map((text) => `{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":${text}}}]}`),
  { weight: 2, arbitrary: json.map((text) => `{"tool_calls":[{"index":0,"function":{"arguments":${text}}}]}`) },
  fc.tuple(json, json).map(([a, b]) => `{"content":${a},"tool_calls":[{"index":1,"function":{"arguments":${b}}}]}`),
  fc.tuple(json, json).map(([a, b]) => `{"content":${a},"reasoning":${b}}`),
  fc.tuple(json, json).map(([a, b]) => `{"reasoning_content":${a},"reasoning":${b}}`),
  fc.constantFrom('{}', '{"role":"assistant","content":""}', '{"content":null}', 'null'),
)

/** What may stand behind the choices. */
const anyTail = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('', ',"usage":null', ',"usage": null') },
  json.map((text) => `,"obfuscation":${text}`),
  fc.constantFrom(
    ',"model":"up-chat"',
    ',"mod\\u0065l":"up-chat"',
    ', "model" : "up-chat-2"',
    ',"id":"chatcmpl-other"',
    ',"id":"gen-other"',
    ',"err\\u006fr":null',
    ',"usage":{"prompt_tokens":9,"completion_tokens":4}',
    ',"provider":{"model":"theirs"}',
  ),
)
const anyChoice = fc
  .tuple(anyDelta, fc.constantFrom('null', 'null', 'null', 'null', '"stop"'), fc.nat(1))
  .map(([delta, reason, index]) => `{"index":${index},"delta":${delta},"finish_reason":${reason}}`)
const anyChunk = fc
  .tuple(
    fc.array(anyChoice, { minLength: 0, maxLength: 2 }).map((list) => list.join(',')),
    anyTail,
    fc.constantFrom('chatcmpl-1', 'chatcmpl-1', 'chatcmpl-1', 'chatcmpl-2', 'gen-1'),
  )
  .map(
    ([choices, tail, id]) =>
      `{"id":"${id}","object":"chat.completion.chunk","model":"up-chat","choices":[${choices}]${tail}}`,
  )
/** A run of one shape, as streams have it, or anything. */
const anyRun = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.array(json, { minLength: 2, maxLength: 8 }).map((list) => list.map((text) => plainChunk(text))),
  },
  { weight: 3, arbitrary: fc.array(fc.tuple(json, anyTail), { minLength: 2, maxLength: 4 }).map(tailed) },
  { weight: 2, arbitrary: fc.array(anyChunk, { minLength: 1, maxLength: 3 }) },
)
const anyStream = fc.record({
  chunks: fc.array(anyRun, { minLength: 1, maxLength: 5 }).map((list) => list.flat()),
  lineEnd: fc.constantFrom('\n', '\n', '\r\n'),
  sizes: fc.array(fc.integer({ min: 1, max: 700 }), { minLength: 1, maxLength: 5 }),
  isRenamed: fc.boolean(),
})

function tailed(list: [string, string][]): string[] {
  return list.map(([text, tail]) => plainChunk(text, tail))
}

function plainChunk(text: string, tail = '', behindText = ''): string {
  const choice = `{"index":0,"delta":{"content":${text}${behindText}},"finish_reason":null}`
  return `{"id":"chatcmpl-1","object":"chat.completion.chunk","model":"up-chat","choices":[${choice}]${tail}}`
}

/* Chunks of vendors, whose members stand in any order before and behind the choices, and are edited (BRK-9). */

const anyValue = fc.oneof(
  json,
  fc.constantFrom('null', '0', '-1.5e3', 'true', '[]', '{}', '[{"model":"up-chat"},"]}"]'),
  json.map((text) => `{"system_fingerprint":${text},"model":"up-chat","usage":{"a":[1,{"b":"}"}]}}`),
)
const count = fc.oneof(
  { weight: 6, arbitrary: fc.nat(50).map(String) },
  fc.constantFrom('0', '-1', '1e99', '"7"', 'null'),
)
const anyUsage = fc.oneof(
  {
    weight: 8,
    arbitrary: fc
      .tuple(count, count, count)
      .map(
        ([a, b, c]) => `{"prompt_tokens":${a},"completion_tokens":${b},"prompt_tokens_details":{"cached_tokens":${c}}}`,
      ),
  },
  fc.tuple(count, json).map(([a, text]) => `{"completion_tokens":${a},"service_tier":${text},"cost":0.1}`),
  fc.constantFrom('null', '{}', '[]', '7', '{"x_requests":1,"server_tool_use":{"web_search_requests":2}}'),
)
/** Each member: its key as it is written, and the values that it has in the chunks of one run. */
const anyMember = fc.oneof(
  fc.tuple(
    fc.constantFrom('"system_fingerprint"', '"system_fingerprin\\u0074"', '"x_groq"', '"timings"', '"provider"'),
    anyValue,
  ),
  fc.tuple(fc.constantFrom('"obfuscation"', '"obfuscati\\u006fn"', '"p"', '"extra"'), anyValue),
  fc.tuple(fc.constantFrom('"usage"', '"usage"', '"us\\u0061ge"'), anyUsage),
  fc.tuple(fc.constant('"service_tier"'), fc.constantFrom('"default"', '"priority"', 'null')),
  fc.tuple(fc.constant('"error"'), fc.constantFrom('null', 'null', 'null', '{"message":"over"}')),
  fc.tuple(fc.constant('"model"'), fc.constantFrom('"up-chat"', '"up-chat-2"')),
)
const anyDeltaOf = fc.constantFrom<(text: string) => string>(
  (text) => `{"content":${text}}`,
  (text) => `{"role":"assistant","content": ${text},"reasoning_content":null}`,
  (text) => `{"reasoning_content":${text}}`,
  (text) => `{"content":${text},"system_fingerprint":"of the delta"}`,
  (text) => `{"token_id":${text.length},"content":${text},"token_ids":[${text.length},{"token_id":${text}}]}`,
  () => '{}',
  () => '{"role":"assistant","content":""}',
  (text) => `{"tool_calls":[{"index":0,"function":{"arguments":${text}}}]}`,
)
/** Chunks of one spelling, whose values differ: with the same key, order and white space in each. */
const anyVendorRun = fc
  .record({
    extra: fc.uniqueArray(anyMember, { maxLength: 4, selector: ([key]) => key }),
    id: fc.constantFrom('chatcmpl-1', 'gen-1', 'gen-'),
    deltaOf: anyDeltaOf,
    colon: fc.constantFrom(':', ':', ': '),
    comma: fc.constantFrom(',', ',', ' , '),
    order: fc.array(fc.nat(9), { minLength: 9, maxLength: 9 }),
    isVaried: fc.boolean(),
    // A second choice in each chunk, and counters inside of choices, where Moonshot has them.
    secondOf: fc.option(anyDeltaOf),
    counted: fc.constantFrom<number[]>([], [], [0], [1], [0, 1]),
  })
  .chain(({ extra, id, deltaOf, colon, comma, order, isVaried, secondOf, counted }) => {
    const values = extra.map(([key, value]) => [key, isVaried ? valueLike(key) : fc.constant(value)] as const)
    const usages = fc.tuple(anyUsage, anyUsage)
    const one = fc.tuple(json, fc.nat(9), fc.tuple(...values.map(([, value]) => value)), json, usages)
    return fc.array(one, { minLength: 3, maxLength: 8 }).map((list) =>
      list.map(([text, number, own, second, inside]) => {
        const deltas = [deltaOf(text), ...(secondOf ? [secondOf(second)] : [])]
        const list = deltas.map((delta, i) => {
          const usage = counted.includes(i) ? `,"usage"${colon}${inside[i]}` : ''
          return `{"index":${i},"delta":${delta},"finish_reason":null${usage}}`
        })
        const choices = `[${list.join(comma)}]`
        const members = [
          ...[`"id"${colon}"${id}${id === 'gen-' ? number : ''}"`, `"object"${colon}"chat.completion.chunk"`],
          ...[
            `"created"${colon}${isVaried ? `7${number}` : 7}`,
            `"model"${colon}"up-chat"`,
            `"choices"${colon}${choices}`,
          ],
          ...values.map(([key], i) => `${key}${colon}${own[i]}`),
        ]
        const ranked = members.map((member, i) => [order[i]!, member] as const).sort(([a], [b]) => a - b)
        return `{${ranked.map(([, member]) => member).join(comma)}}`
      }),
    )
  })

function valueLike(key: string): fc.Arbitrary<string> {
  if (/us/.test(key) && !/fusc/.test(key)) return anyUsage
  if (key === '"service_tier"') return fc.constantFrom('"default"', '"default"', '"priority"')
  if (key === '"error"') return fc.constantFrom('null', 'null', 'null', 'null', '{"message":"over"}')
  return key === '"model"' ? fc.constantFrom('"up-chat"', '"up-chat"', '"up-chat-2"') : anyValue
}

type Seen = { frames: unknown[]; estimate: number; state: string; events: number; report: object }

function play(bytes: Buffer, sizes: readonly number[], isRenamed: boolean): Seen & { text: string } {
  const model = modelOf('chat', isRenamed ? {} : { id: 'up-chat', upstreamModel: 'up-chat' })
  const relay = wires.chat.native.openStream({ requestId: 'req_1', model, createdSeconds: 1, inputTokensEstimate: 11 })
  let text = ''
  for (let at = 0, turn = 0; at < bytes.length; turn++) {
    const size = sizes[turn % sizes.length]!
    text += relay.push(bytes.subarray(at, at + size))
    at += size
  }
  const { state, events, report } = relay
  const lines = Buffer.from(text, 'latin1').toString('utf8').split(/\r?\n/)
  const frames = lines
    .filter((line) => line.startsWith('data:'))
    .map((line) => JSON.parse(line.replace(/^data: */, '')))
  return { text, frames, estimate: relay.estimateOutput(), state, events, report }
}

test('P2 C10 the shortcut for the common beginning of chat chunks changes nothing, wherever pieces are cut', () => {
  fc.assert(
    fc.property(anyStream, ({ chunks, lineEnd, sizes, isRenamed }) => {
      const frame = (chunk: string, blanks: number) => `data: ${' '.repeat(blanks)}${chunk}${lineEnd}${lineEnd}`
      const shared = Buffer.from(chunks.map((chunk) => frame(chunk, 0)).join(''))
      const apart = chunks.map((chunk, i) => Buffer.from(frame(chunk, i + 1)))
      const { text: _, ...seen } = play(shared, sizes, isRenamed)
      const { text: __, ...expected } = play(
        Buffer.concat(apart),
        apart.map(({ length }) => length),
        isRenamed,
      )
      assert.deepEqual(seen, expected)
    }),
    runs,
  )
})

test('BRK-9 P9 a chunk whose members are cut by comparison equals its parsed form, to the byte, in every piece', () => {
  const stream = fc.record({
    chunks: fc.array(anyVendorRun, { minLength: 1, maxLength: 3 }).map((list) => list.flat()),
    lead: fc.constantFrom('data: ', 'data: ', 'data:', 'event: message\ndata: '),
    end: fc.constantFrom('\n\n', '\n\n', '\r\n\r\n'),
    sizes: fc.oneof(fc.constant([0]), fc.array(fc.integer({ min: 1, max: 1_500 }), { minLength: 1, maxLength: 5 })),
    isRenamed: fc.boolean(),
  })
  fc.assert(
    fc.property(stream, ({ chunks, lead, end, sizes, isRenamed }) => {
      // Blanks in front keep a chunk from being like another, so that it is parsed.
      const frame = (chunk: string, blanks: number) => Buffer.from(`${lead}${' '.repeat(blanks)}${chunk}${end}`)
      const alike = chunks.map((chunk) => frame(chunk, 0))
      const apart = chunks.map((chunk, i) => frame(chunk, i + 1))
      const lengths = (frames: Buffer[]) => frames.map(({ length }) => length)
      const { text, ...seen } = play(Buffer.concat(alike), sizes[0] === 0 ? lengths(alike) : sizes, isRenamed)
      const { text: parsed, ...expected } = play(Buffer.concat(apart), lengths(apart), isRenamed)
      assert.deepEqual(seen, expected)
      assert.equal(text.replaceAll(/data: */g, 'data:'), parsed.replaceAll(/data: */g, 'data:'))
    }),
    runs,
  )
})

test('BRK-9 chunks as three vendors send them are not parsed; otherwise the law above proves nothing', () => {
  for (const [vendor, chunk] of Object.entries(vendorChunks)) {
    const relay = wires.chat.native.openStream({
      ...{ requestId: 'req_1', model: modelOf('chat'), createdSeconds: 1, inputTokensEstimate: 11 },
    })
    const frame = (word: string, i: number) => `data: ${JSON.stringify(chunk(word, i))}\n\n`
    for (const i of [1, 2, 3]) relay.push(Buffer.from(frame(`w${i}`, i)))
    // An escape that JSON does not have: whoever parses it breaks the answer off.
    const odd = frame('odd', 4).replace('odd', String.raw`\x`)
    const shown =
      relay.push(Buffer.from(odd + odd)) +
      relay.push(Buffer.from(odd.slice(0, 99))) +
      relay.push(Buffer.from(odd.slice(99)))
    assert.equal(relay.state, 'shown', vendor)
    assert.equal(shown.split(String.raw`\x`).length, 4)
    assert.doesNotMatch(shown, /system_fingerprint|upstream-model|tokens/)
    relay.push(Buffer.from(odd.replace('data: ', 'data:  ')))
    assert.equal(relay.state, 'failed', vendor)
  }
})

/* Members of single vendors that differ from chunk to chunk, and chunks that say nothing. */
test('BRK-9 no chunk of a long stream is parsed because it is empty or differs in a time, an id or a number', () => {
  const head = (more: object) => ({ id: 'gen-1', object: 'chat.completion.chunk', created: 7, model: 'up', ...more })
  const chunk = (delta: object, more: object = {}, inChoice: object = {}) =>
    head({ choices: [{ index: 0, delta, finish_reason: null, ...inChoice }], p: 'odd', ...more })
  const kinds: Record<string, (i: number) => object> = {
    'a time that goes on': (i) => chunk({ content: 'a' }, { created: 1_795_000_000 + i }),
    'an id each': (i) => chunk({ content: 'a' }, { id: `chatcmpl-${i}` }),
    'the number of a token': (i) => chunk({ token_id: i, role: 'assistant', content: 'a', tool_calls: null }),
    'numbers of tokens': (i) => chunk({ content: 'a' }, {}, { token_ids: [i, i * 7], logprobs: null }),
    'places of a filter': (i) => chunk({ content: 'a' }, {}, { content_filter_offsets: { start_offset: i } }),
    'no delta': () => chunk({}),
    'an empty text': () => chunk({ role: 'assistant', content: '' }),
    'no text': () => chunk({ content: null, reasoning_content: null }),
  }
  for (const [what, make] of Object.entries(kinds))
    for (const isBegun of [false, true]) {
      const relay = wires.chat.native.openStream({
        ...{ requestId: 'req_1', model: modelOf('chat'), createdSeconds: 1, inputTokensEstimate: 11 },
      })
      const push = (value: object, more = '') =>
        relay.push(Buffer.from(`data: ${JSON.stringify(value).replace('odd', more)}\n\n`))
      push(chunk({ role: 'assistant', content: isBegun ? 'a' : '' }))
      // Chunks of no known kind in between, as many as may be learned and more.
      for (let i = 1; i < 400; i++) push(i % 20 === 0 ? chunk({ content: 'a' }, { [`x${i}`]: 1 }) : make(i))
      // An escape that JSON does not have: whoever parses it breaks the answer off.
      assert.match(push(make(400), String.raw`\x`), /\\x/, what)
      assert.equal(relay.state, 'shown', what)
    }
})

test('BRK-9 alternating kinds of chunks are not parsed: choices, reasoning and texts, a text that is written twice', () => {
  const probed = (word: string) => ({ content: [{ token: word, logprob: -word.length, bytes: [1] }], refusal: null })
  const chunk = (delta: object, index = 0, logprobs: object | null = null) =>
    `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"up","choices":${JSON.stringify([{ index, delta, logprobs, finish_reason: null }])}}\n\n`
  const twice = (text: string) => ({ content: '', reasoning: text, reasoning_details: [{ type: 't', text }] })
  const kinds: ((word: string) => string)[][] = [
    [(word) => chunk({ content: word }), (word) => chunk({ content: word }, 1), (word) => chunk({ content: word }, 2)],
    [(word) => chunk({ content: word }), (word) => chunk({ reasoning_content: word })],
    [(word) => chunk(twice(word)), (word) => chunk({ content: word })],
    [
      (word) => chunk({ content: word }, 0, probed(`${word}${word}`)),
      (word) => chunk({ content: word }, 0, probed(word)),
    ],
  ]
  for (const [row, makers] of kinds.entries()) {
    const open = () =>
      wires.chat.native.openStream({
        ...{ requestId: 'req_1', model: modelOf('chat'), createdSeconds: 1, inputTokensEstimate: 11 },
      })
    const [relay, parsed] = [open(), open()]
    const words = ['a ', 'b ', 'c ', 'd '].flatMap((word) => makers.map((make) => make(word)))
    for (const one of words) {
      relay.push(Buffer.from(one))
      parsed.push(Buffer.from(one.replace('data: ', 'data:  ').replace('"id"', `${' '.repeat(row + one.length)}"id"`)))
    }
    assert.deepEqual([relay.spoken(), relay.stage], [parsed.spoken(), parsed.stage])
    // An escape that JSON does not have: whoever parses it breaks the answer off.
    const odd = makers.map((make) => make('odd').replaceAll('odd', String.raw`\x`)).join('')
    assert.equal(relay.push(Buffer.from(odd + odd)).split('data: ').length, 1 + 2 * makers.length)
    assert.equal(relay.state, 'shown')
    const other = chunk(twice('odd')).replace('odd', String.raw`\x`)
    if (row === 2) relay.push(Buffer.from(other))
    assert.equal(relay.state, row === 2 ? 'failed' : 'shown', 'two texts that differ are read')
  }
})

test('BRK-9 chunks of several choices, with the counters of each inside, are not parsed, and none is shown', () => {
  const deltas: Record<string, (word: string) => object> = {
    text: (word) => ({ content: word }),
    thought: (word) => ({ content: null, reasoning_content: word }),
    arguments: (word) => ({ tool_calls: [{ index: 0, function: { arguments: word } }] }),
    nothing: () => ({}),
  }
  const begin = [0, 1, 2].map((index) => {
    const call = { index: 0, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }
    return { index, delta: { role: 'assistant', content: '', tool_calls: [call] }, finish_reason: null }
  })
  for (const kinds of ['text', 'text text', 'text nothing', 'thought thought', 'arguments arguments text'])
    for (const counted of [[], [0], [0, 1], [0, 1, 2]]) {
      const frame = (choices: object[]) =>
        `data: ${JSON.stringify({ id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'up', choices })}\n\n`
      const chunk = (word: string, i: number) =>
        frame(
          kinds.split(' ').map((kind, index) => ({
            ...{ index, delta: deltas[kind]!(`${word}${index}`), finish_reason: null },
            ...(counted.includes(index) && { usage: { prompt_tokens: 9, completion_tokens: i + index } }),
          })),
        )
      const relay = wires.chat.native.openStream({
        ...{ requestId: 'req_1', model: modelOf('chat'), createdSeconds: 1, inputTokensEstimate: 11 },
      })
      relay.push(Buffer.from(frame(begin)))
      for (const i of [11, 12, 13]) relay.push(Buffer.from(chunk(`w${i}`, i)))
      // An escape that JSON does not have: whoever parses it breaks the answer off.
      const odd = [14, 15, 16].map((i) => chunk('odd', i).replaceAll('odd', String.raw`\x`)).join('')
      const shown = relay.push(Buffer.from(odd))
      assert.equal(relay.state, 'shown', `${kinds} ${counted}`)
      assert.doesNotMatch(shown, /_tokens/)
      const inside = kinds.split(' ').flatMap((_, index) => (counted.includes(index) ? [16 + index] : []))
      assert.equal(
        relay.report.outputTokens ?? 0,
        inside.reduce((sum, count) => sum + count, 0),
        `${kinds} ${counted}`,
      )
    }
})

test('C7 P10 counters inside of choices are those of each choice: the output is their sum, and no choice shows them', () => {
  const usageOf = (completion_tokens: number, rest = {}) => ({
    prompt_tokens: 9,
    completion_tokens,
    cost: 0.5,
    ...rest,
  })
  const choice = (index: number, usage?: object, reason: string | null = null) => ({
    index,
    delta: { content: 'a' },
    finish_reason: reason,
    ...(usage && { usage }),
  })
  const rows: [name: string, chunks: object[][], output: number][] = [
    ['one choice', [[choice(0, usageOf(5), 'stop')]], 5],
    ['one chunk', [[choice(0, usageOf(5), 'stop'), choice(1, usageOf(7), 'stop')]], 12],
    ['a chunk each', [[choice(1, usageOf(7), 'stop')], [choice(0, usageOf(5), 'stop')]], 12],
    [
      'growing',
      [
        [choice(0, usageOf(2)), choice(1, usageOf(3))],
        [choice(1, usageOf(7), 'stop')],
        [choice(0, usageOf(5), 'stop')],
      ],
      12,
    ],
    [
      'zeros at last',
      [
        [choice(0, usageOf(5)), choice(1, usageOf(7))],
        [choice(0, { prompt_tokens: 0, completion_tokens: 0 }, 'stop'), choice(1, undefined, 'stop')],
      ],
      12,
    ],
    ['in one only', [[choice(0, usageOf(5), 'stop'), choice(1, undefined, 'stop')]], 5],
  ]
  const head = { id: 'chatcmpl-1', object: 'chat.completion.chunk', created: 1, model: 'up' }
  const openHead = { requestId: 'req_1', model: modelOf('chat'), createdSeconds: 1, inputTokensEstimate: 11 }
  for (const [name, chunks, output] of rows) {
    const relay = wires.chat.native.openStream(openHead)
    const shown = chunks.map((choices) => relay.push(Buffer.from(`data: ${JSON.stringify({ ...head, choices })}\n\n`)))
    assert.deepEqual([relay.report.outputTokens, relay.report.inputTokens], [output, 9], name)
    assert.doesNotMatch(shown.join(''), /_tokens|cost/, name)
    const bodied = chunks.flat().findLast(({ index }: { index?: number }) => index === 1) ? [0, 1] : [0]
    const choices = bodied.map((index) => {
      const { usage } =
        (chunks.flat() as ReturnType<typeof choice>[]).findLast((one) => one.index === index && one.usage) ?? {}
      return { index, message: { role: 'assistant', content: 'a' }, finish_reason: 'stop', ...(usage && { usage }) }
    })
    if (name === 'zeros at last') continue
    const whole = wires.chat.native.readAnswer(
      Buffer.from(JSON.stringify({ ...head, object: 'chat.completion', choices })),
      openHead,
    )
    assert.equal(whole.state, 'finished')
    if (whole.state !== 'finished') return
    assert.deepEqual([whole.report.outputTokens, whole.report.inputTokens], [output, 9], name)
    const billed = { ...noUsage, inputTokens: 9, outputTokens: output }
    const body = JSON.parse(`${whole.encode(billed)}`)
    assert.deepEqual(
      [body.usage.completion_tokens, body.choices.some((one: object) => 'usage' in one)],
      [output, false],
      name,
    )
  }
})

test('BRK-9 I9 if every chunk of a piece has counters, the same ones count as if each chunk were parsed', () => {
  const rows = [
    ['{"prompt_tokens":9,"completion_tokens":8}', '{"prompt_tokens":9,"completion_tokens":9}'],
    ['{"prompt_tokens":9,"completion_tokens":9}', '{"prompt_tokens":9,"completion_tokens":10}'],
    ['{"prompt_tokens":9,"completion_tokens":8}', '{"prompt_tokens":0,"completion_tokens":0}'],
    ['{"prompt_tokens":5}', '{"prompt_tokens":9}', '{"prompt_tokens":8}', '{"prompt_tokens":0}'],
    ['{"completion_tokens":8,"prompt_tokens":9}', '{"prompt_tokens":7,"completion_tokens":6}'],
    ['{"prompt_tokens":9,"x1":"a","completion_tokens":8}', '{"prompt_tokens":7,"x2":"a","completion_tokens":6}'],
    ['{"prompt_tokens":9,"completion_tokens":8,"a":"1"}', '{"prompt_tokens":9,"completion_tokens":8,"a":"2"}'],
    ['{"prompt_tokens":9,"completion_tokens":8}', '{"prompt_tokens":9,"completion_tokens":-}'],
    ['{"prompt_tokens":5,"service_tier":"default"}', '{"prompt_tokens":6,"service_tier":"flex123"}'],
  ]
  const chunk = (usage: string, i: number) =>
    `data: ${JSON.stringify({ ...vendorChunks.gemini(`w${i}`, i), usage: 0 }).replace('"usage":0', `"usage":${usage}`)}\n\n`
  for (const row of rows) {
    const usages = [row[0]!, row[0]!, ...row]
    const frames = usages.map(chunk)
    // With other blanks each of them is parsed.
    const parsed = frames.map((frame, i) => frame.replace('data:', `data:${' '.repeat(i + 1)}`))
    const apart = play(
      Buffer.from(parsed.join('')),
      parsed.map(({ length }) => length),
      false,
    )
    for (const first of [1, 2, 3]) {
      const shared = play(Buffer.from(frames.join('')), [frames.slice(0, first).join('').length, 9_999], false)
      assert.deepEqual([shared.report, shared.state], [apart.report, apart.state], row.join())
    }
  }
})

test("U3 no member of a chat chunk reveals the upstream's model to the client, before the choices or after them", () => {
  fc.assert(
    fc.property(anyStream, ({ chunks, lineEnd, sizes }) => {
      const { frames } = play(
        Buffer.from(chunks.map((chunk) => `data: ${chunk}${lineEnd}${lineEnd}`).join('')),
        sizes,
        true,
      )
      for (const frame of frames) assert.equal((frame as { model: string }).model, 'm')
    }),
    runs,
  )
})

test('U3 P2 a common beginning hides nothing that follows it, once or in every chunk', () => {
  const tails = [
    ',"model":"up-chat-2026"',
    ',"mod\\u0065l":"up-chat-2026"',
    ',"id":"chatcmpl-2"',
    ',"id":"gen-2"',
    ',"error":{"message":"over"}',
    ',"usage":{"prompt_tokens":9,"completion_tokens":4}',
    ',"usage" : {"prompt_tokens":9,"completion_tokens":4}',
  ]
  const behindTexts = [
    ',"refusal":"no"',
    ',"reasoning":"hm"',
    ',"reasoning_details":[{"text":"hm"}]',
    ',"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{}"}}]',
  ]
  const odd = [...tails.map((tail) => [tail, ''] as const), ...behindTexts.map((behind) => ['', behind] as const)]
  for (const [tail, behind] of odd) {
    const plain = ['"a "', '"b "', '"c "'].map((text) => plainChunk(text))
    for (const chunks of [
      [...plain, plainChunk('"d "', tail, behind), ...plain],
      ['"d "', '"e "', '"f "'].map((text) => plainChunk(text, tail, behind)),
    ]) {
      const frames = (blanks: number) =>
        chunks.map((chunk, i) => Buffer.from(`data: ${' '.repeat(i * blanks)}${chunk}\n\n`))
      const { text: _, ...expected } = play(
        Buffer.concat(frames(1)),
        frames(1).map(({ length }) => length),
        true,
      )
      for (const sizes of [[50], frames(0).map(({ length }) => length), [4_000]]) {
        const { text, ...seen } = play(Buffer.concat(frames(0)), sizes, true)
        assert.deepEqual(seen, expected, tail + behind)
        assert.doesNotMatch(text, /up-chat/)
      }
    }
  }
})

test('P2 the shortcut is used: an ordinary delta is not parsed; otherwise the laws above prove nothing', () => {
  const script = (text: string) => `data: ${plainChunk(text)}\n\n`
  const relay = wires.chat.native.openStream({
    requestId: 'req_1',
    model: modelOf('chat'),
    createdSeconds: 1,
    inputTokensEstimate: 11,
  })
  for (const text of ['"a"', '"b"', '"c"']) relay.push(Buffer.from(script(text)))
  // An escape that JSON does not have: whoever parses it breaks the answer off.
  for (const size of [20, 1_000]) {
    const bytes = Buffer.from(script('"\\x"'))
    for (let at = 0; at < bytes.length; at += size) relay.push(bytes.subarray(at, at + size))
    assert.equal(relay.state, 'shown')
  }
  relay.push(Buffer.from(`data:  ${plainChunk('"\\x"')}\n\n`))
  assert.equal(relay.state, 'failed')
})
