import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { wires } from '../../src/wires/wires.ts'
import { modelOf } from './models.ts'

/*
 * A chat chunk that begins as those before it is not parsed (src/wires/chat/native-stream.ts). That is a matter of speed
 * and nothing else: these laws say so. The same chunks with another number of blanks in front of each share no beginning,
 * so every one of them is read.
 */

const runs = { numRuns: Number(process.env['TRIWIRE_RUNS'] ?? 400) }

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
  const frames = lines.filter((line) => line !== '').map((line) => JSON.parse(line.replace(/^data: */, '')))
  return { text, frames, estimate: relay.estimateOutput(), state, events, report }
}

test('P2 C10 what the shared beginning of chat chunks spares changes nothing, wherever pieces are cut', () => {
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

test("U3 no member of a chat chunk names the upstream's model to the client, before the choices or behind them", () => {
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

test('U3 P2 an ordinary beginning hides nothing that stands behind it, once or in every chunk', () => {
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

test('P2 the shared beginning is used: an ordinary delta is not parsed, or the laws above say nothing', () => {
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
