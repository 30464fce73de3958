import assert from 'node:assert/strict'
import test from 'node:test'
import { dataOf } from '../../src/bytes/frame-cutter.ts'
import type { Model } from '../../src/catalog/model.ts'
import { type ClientWire, clientWireNames } from '../../src/catalog/wire-names.ts'
import { estimateTextTokens } from '../../src/inference/estimate.ts'
import { noUsage, weighUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { answers, chunk, frames, named } from '../support/native.ts'
import { checkChatStream, checkMessagesStream, checkResponsesStream } from '../translation/grammar.ts'
import { modelOf } from './models.ts'

const grammar = { messages: checkMessagesStream, chat: checkChatStream, responses: checkResponsesStream }
const utf8 = (text: string) => Buffer.from(text)

function open(wire: ClientWire, more: Partial<Model> = {}) {
  return wires[wire].native.openStream({
    requestId: 'req_1',
    model: modelOf(wire, more),
    createdSeconds: 1_795_000_000,
    inputTokensEstimate: 11,
  })
}

type Played = {
  text: string
  fault: string | undefined
  input: number | undefined
  output: number | undefined
  ends: number
}

/** What a client gets of these bytes, the end included once the answer is complete. */
function play(wire: ClientWire, pieces: readonly Uint8Array[], more: Partial<Model> = {}): Played {
  const relay = open(wire, more)
  let text = ''
  const isOver = () => relay.state === 'finished' || relay.state === 'failed'
  for (const piece of pieces) if (!isOver()) text += relay.push(piece)
  if (!isOver()) text += relay.end()
  const { report } = relay
  if (relay.state === 'finished') {
    const { usage } = weighUsage({
      report,
      isComplete: true,
      estimateInput: () => 9,
      estimateOutput: () => relay.estimateOutput(),
      outputTokensCap: 8192,
      bounds: { inputTokensMax: 2 ** 40, isOutputCapped: true },
    })
    text += relay.finish(usage)
  }
  const shown = Buffer.from(text, relay.encoding).toString()
  const ends = shown.match(/data: \[DONE\]|event: message_stop|event: response\.completed/g)?.length ?? 0
  return { text: shown, fault: relay.fault?.kind, input: report.inputTokens, output: report.outputTokens, ends }
}

function played(wire: ClientWire, text: string, more: Partial<Model> = {}): Played {
  return play(wire, [utf8(text)], more)
}

/** The data of each event, as a client reads it. */
function eventsOf(text: string): unknown[] {
  const events = text.split('\n\n').map((event) => event.match(/(?<=^data: ).*$/gm)?.join('\n'))
  return events.filter((data) => data !== undefined).map((data) => (data === '[DONE]' ? data : JSON.parse(data)))
}

for (const wire of clientWireNames) {
  const all = frames[wire].join('')
  const own: Partial<Model> = { id: `up-${wire}`, upstreamModel: `up-${wire}` }

  test(`P2 a whole ${wire} stream passes byte for byte if nothing has to change`, () => {
    const { text, fault, input, output } = played(wire, all, own)
    assert.equal(text, all)
    assert.deepEqual([fault, input, output], [undefined, 5, 3])
    assert.deepEqual(grammar[wire](text), [])
  })

  test(`P2 translation 4.1 the data of a ${wire} event may have several lines, also if it is edited`, () => {
    const spread = all.replace(
      /^data: (\{.*)$/gm,
      (_, json: string) => `${JSON.stringify(JSON.parse(json), null, 1).replace(/^/gm, 'data: ')}\nid: {1}`,
    )
    assert.notEqual(spread, all)
    for (const more of [own, {}]) {
      const { text, fault, output } = played(wire, spread, more)
      assert.deepEqual([fault, output], [undefined, 3])
      assert.deepEqual(eventsOf(text), eventsOf(played(wire, all, more).text))
    }
  })

  test(`P2 a ${wire} stream changes in the model's name and in nothing else`, () => {
    const { text } = played(wire, all)
    assert.equal(text, all.replaceAll(`"model":"up-${wire}"`, '"model":"m"'))
    assert.doesNotMatch(text, /up-(messages|chat|responses)/)
    assert.deepEqual(grammar[wire](text), [])
  })

  test(`F-U35 a ${wire} stream is the same wherever the network cuts it`, () => {
    const bytes = utf8(all)
    const expected = played(wire, all)
    for (let at = 1; at < bytes.length; at++) {
      assert.deepEqual(play(wire, [bytes.subarray(0, at), bytes.subarray(at)]), expected, `cut at ${at}`)
    }
    assert.deepEqual(
      play(
        wire,
        [...bytes].map((byte) => Uint8Array.of(byte)),
      ),
      expected,
    )
  })

  test(`F-U35 a ${wire} stream with CRLF, CR, mixed line ends or a byte order mark has the same content`, () => {
    const expected = played(wire, all)
    const plain = (text: string) => text.replace(/\r\n|\r/g, '\n')
    const mixed = all.replace(/\n\n/g, (_, at: number) => ['\r\n\n', '\n\r\n', '\r\r', '\n\r'][at % 4]!)
    for (const spelled of [all.replaceAll('\n', '\r\n'), all.replaceAll('\n', '\r'), mixed, `\ufeff${all}`]) {
      const bytes = utf8(spelled)
      for (let at = 0; at < bytes.length; at += 7) {
        const { text, ...rest } = play(wire, [bytes.subarray(0, at), bytes.subarray(at)])
        assert.deepEqual({ ...rest, text: plain(text) }, expected, `cut at ${at}`)
      }
    }
  })

  test(`F-U46 comments of a ${wire} upstream are not relayed, alone or inside an event`, () => {
    const noisy = frames[wire]
      .map((frame) => `: host-7.example\n\n: x\n${frame.trimEnd()}\n: host-7\n:\n: host-8\n\n`)
      .join('')
    assert.deepEqual(played(wire, noisy), played(wire, all))
  })

  test(`F-U10 F-U11 a ${wire} stream cut anywhere before its stop reason is not a complete answer`, () => {
    const endsAt = { messages: -2, chat: -3, responses: -1 }[wire]
    const bytes = utf8(frames[wire].slice(0, endsAt).join(''))
    for (let at = 0; at <= bytes.length; at++) {
      const { fault, ends } = play(wire, [bytes.subarray(0, at)])
      assert.deepEqual([fault, ends], ['truncated', 0], `cut at ${at}`)
    }
  })

  test(`F-U12 a ${wire} stream whose last event has no blank line is complete`, () => {
    assert.deepEqual(played(wire, all.trimEnd()), played(wire, all))
  })

  test(`F-U14 a second terminator and data after the end of a ${wire} stream are not shown`, () => {
    assert.deepEqual(played(wire, all + frames[wire].slice(-2).join('') + all), played(wire, all))
  })

  test(`F-U24 an event of a ${wire} stream that is not a JSON object is a broken answer`, () => {
    const name = frames[wire][0]!.split('\n')[0]!
    for (const data of ['{broken', '[]', '7', 'null', '"x"', '']) {
      const lines = wire === 'chat' ? `data: ${data}\n\n` : `${name}\ndata: ${data}\n\n`
      const { fault, ends } = played(wire, lines)
      assert.ok(fault === 'broken' || (data === '' && fault === 'truncated'), `${data}: ${fault}`)
      assert.equal(ends, 0)
    }
  })

  test(`F-U32 an event of a ${wire} stream above 8 MiB makes the answer fail`, () => {
    const relay = open(wire)
    const piece = Buffer.alloc(1_048_576, 0x61)
    for (let i = 0; i < 8; i++) relay.push(piece)
    const before = relay.fault
    relay.push(piece)
    assert.deepEqual([before, relay.fault?.kind], [undefined, 'broken'])
  })
}

test('P3 an id without its prefix is replaced through the whole answer', () => {
  const prefix = { messages: 'msg_', chat: 'chatcmpl-', responses: 'resp_' }
  for (const wire of clientWireNames) {
    const foreign = frames[wire].join('').replaceAll(`"${answers[wire]['id']}"`, '"gen-7"')
    const { text } = played(wire, foreign)
    assert.doesNotMatch(text.replaceAll('"item_id":"gen-7"', ''), wire === 'messages' ? /gen-7/ : /"id":"gen-7"/)
    const ids = new Set([...text.matchAll(/"id":"((?:chatcmpl-|resp_|msg_)[^"]*)"/g)].map((match) => match[1]!))
    const minted = [...ids].filter((id) => id.startsWith(prefix[wire]) && id.length > 20)
    assert.equal(minted.length, 1, [...ids].join())
  }
})

test('P3 a placeholder without an id does not lead to a second id', () => {
  const placeholder = chunk({ id: '', choices: [], prompt_filter_results: [{ prompt_index: 0 }] })
  const { text } = played('chat', placeholder + frames.chat.join(''))
  assert.equal(new Set([...text.matchAll(/"id":"([^"]*)"/g)].map((match) => match[1])).size, 1)
})

const done = 'data: [DONE]\n\n'
const [role, first, second, reason] = frames.chat as [string, string, string, string, string, string]
const usage = answers.chat['usage']
const usageCases: [string, string[], number | undefined, number | undefined][] = [
  ['in the finish chunk', [chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }), done], 5, 3],
  [
    'in every chunk, cumulative',
    [
      chunk({
        choices: [{ index: 0, delta: { content: 'a' }, finish_reason: null }],
        usage: { prompt_tokens: 9, completion_tokens: 1 },
      }),
      chunk({ choices: [{ index: 0, delta: { content: 'b' }, finish_reason: 'stop' }], usage }),
      done,
    ],
    5,
    3,
  ],
  ['behind the finish', [reason, chunk({ choices: [], usage }), done], 5, 3],
  [
    'in a choice, beside a null of its own',
    [chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage }] }), done],
    5,
    3,
  ],
  [
    'beside a null in the choice',
    [
      chunk({ choices: [{ index: 0, delta: { content: 'c' }, finish_reason: null, usage: null }], usage }),
      reason,
      done,
    ],
    5,
    3,
  ],
  ['missing', [reason, done], undefined, undefined],
  [
    'null',
    [chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: null }), done],
    undefined,
    undefined,
  ],
  ['without [DONE]', [reason, chunk({ choices: [], usage })], 5, 3],
]

for (const [where, tail, input, output] of usageCases) {
  test(`spec 6.2 P2 usage ${where}: the last data chunk has no choices and all counters`, () => {
    const result = played('chat', [role, first, second, ...tail].join(''))
    assert.deepEqual([result.fault, result.input, result.output, result.ends], [undefined, input, output, 1])
    assert.deepEqual(checkChatStream(result.text), [])
    const last = JSON.parse(result.text.split('\n\n').at(-3)!.slice(6))
    assert.deepEqual(last.choices, [])
    assert.equal(last.model, 'm')
    assert.deepEqual(Object.keys(last.usage.prompt_tokens_details), ['cached_tokens'])
    assert.equal(last.usage.total_tokens, last.usage.prompt_tokens + last.usage.completion_tokens)
    const telling = chunksOf(result.text).filter(({ usage, choices }) => usage || choices[0]?.usage)
    assert.deepEqual(telling, [last], 'E1 P10: in exactly one chunk')
  })
}

function chunksOf(text: string) {
  const data = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json]) => JSON.parse(json!))
  return data as { usage?: unknown; choices: { usage?: unknown }[] }[]
}

/** What vendors tell beside the counters of the wire, and what of it is shown (recorded of DeepSeek, OpenRouter, Groq). */
const vendorUsage = {
  prompt_tokens: 9,
  completion_tokens: 3,
  total_tokens: 12,
  prompt_cache_hit_tokens: 4,
  cost: 0.0031,
  is_byok: false,
  queue_time: 0.02,
  provider: 'somebody',
  num_search_queries: 2,
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 0, audio_tokens: 1, note: 'x' },
  cost_details: { upstream_inference_cost: 0.001 },
  completion_tokens_details: null,
}
const shownUsage = {
  prompt_tokens: 9,
  completion_tokens: 3,
  total_tokens: 12,
  prompt_cache_hit_tokens: 4,
  prompt_tokens_details: { cached_tokens: 4, cache_write_tokens: 0, audio_tokens: 1 },
}

test("E1 P10 the last chunk has the vendor's own counters of tokens, and no price, time or name", () => {
  const places = [
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage: vendorUsage }),
    reason + chunk({ choices: [], usage: vendorUsage }),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: vendorUsage }] }),
  ]
  for (const tail of places) {
    const chunks = chunksOf(played('chat', role + first + tail + done).text)
    assert.deepEqual(chunks.at(-1)!.usage, shownUsage)
  }
  const whole = readWhole({ ...answers.chat, usage: vendorUsage })
  assert.deepEqual(JSON.parse(whole.toString()).usage, shownUsage)
})

test('P10 C6 implausible counters are replaced by the billed ones, beside those that only the vendor has', () => {
  const absurd = { ...vendorUsage, completion_tokens: 2 ** 40, total_tokens: 2 ** 40 + 9 }
  const chunks = chunksOf(played('chat', role + first + chunk({ choices: [], usage: absurd }) + reason + done).text)
  const { usage } = chunks.at(-1) as { usage: Record<string, number> }
  assert.ok(usage['completion_tokens']! < 100)
  assert.equal(usage['prompt_cache_hit_tokens'], 4)
  assert.equal(usage['total_tokens'], usage['prompt_tokens']! + usage['completion_tokens']!)
})

function readWhole(body: unknown): Buffer {
  const head = { requestId: 'r', model: modelOf('chat'), createdSeconds: 1, inputTokensEstimate: 11 }
  const answer = wires.chat.native.readAnswer(utf8(JSON.stringify(body)), head)
  assert.equal(answer.state, 'finished')
  const weighing = {
    isComplete: true,
    estimateInput: () => 9,
    estimateOutput: () => 3,
    outputTokensCap: 8192,
    bounds: { inputTokensMax: 2 ** 40, isOutputCapped: true },
  }
  const { usage } = weighUsage({ report: answer.report, ...weighing })
  return Buffer.from(answer.encode(usage))
}

test('spec 2.6 cached_tokens is shown at the place of the specification, wherever the upstream counts it', () => {
  const own = { prompt_tokens: 9, completion_tokens: 3, total_tokens: 12, prompt_cache_hit_tokens: 4 }
  const { text, input } = played('chat', [role, first, reason, chunk({ choices: [], usage: own }), done].join(''))
  assert.equal(input, 5)
  assert.match(text, /"prompt_cache_hit_tokens":4,"prompt_tokens_details":\{"cached_tokens":4\}/)
})

test('F-U13 A48 [DONE] without a reason ends an answer; without any chunk it does not', () => {
  assert.equal(played('chat', role + first + done).ends, 1)
  assert.deepEqual([played('chat', done).fault, played('chat', done).ends], ['broken', 0])
})

test('spec 6.1 the four counters are in every message_delta and at the start', () => {
  const bare = [
    named({ type: 'message_start', message: { ...answers.messages, content: [], usage: undefined } }),
    named({ type: 'message_delta', delta: { stop_reason: 'end_turn' } }),
    named({ type: 'message_stop' }),
  ]
  const { text } = played('messages', bare.join(''))
  const [start, delta] = text.split('\n\n').map((frame) => (frame ? JSON.parse(frame.split('data: ')[1]!) : {}))
  const names = ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'output_tokens']
  assert.deepEqual(Object.keys(start.message.usage), names)
  assert.deepEqual(Object.keys(delta.usage), names)
  assert.equal(delta.usage.input_tokens, 9, 'C3: as it is billed')
})

test('U3 P2 an error that a chat server sends without an envelope is an error, and not content', () => {
  const told = { message: 'CUDA error at 10.0.0.7', code: 500 }
  const named = `event: error\ndata: ${JSON.stringify(told)}\n\n`
  for (const error of [named, `data: ${JSON.stringify({ object: 'error', ...told })}\n\n`]) {
    const { text, fault, ends } = played('chat', role + first + error + done)
    assert.deepEqual([fault, ends], ['broken', 0])
    assert.doesNotMatch(text, /CUDA|10\.0/)
  }
})

test('P2 an event of responses without its event line is named by its own type, wherever the type is', () => {
  const late = frames.responses.map((frame) => {
    const { type, ...rest } = JSON.parse(frame.split('data: ')[1]!)
    return `data: ${JSON.stringify({ ...rest, type })}\n\n`
  })
  const namesOf = (text: string) => Array.from(text.matchAll(/^event: (.*)$/gm), ([, name]) => name)
  const { text, ...rest } = played('responses', late.join(''))
  const { text: usual, ...expected } = played('responses', frames.responses.join(''))
  assert.deepEqual([namesOf(text), rest], [namesOf(usual), expected])
  assert.doesNotMatch(text, /up-responses/)
})

test('spec 6.1 6.3 frames without their event line get it', () => {
  for (const wire of ['messages', 'responses'] as const) {
    const all = frames[wire].join('')
    assert.equal(played(wire, all.replaceAll(/^event: .*\n/gm, '')).text, played(wire, all).text)
    // Such a frame may follow more than one empty line.
    for (const lines of ['\n\n\n', '\n\n\r\n'])
      assert.equal(played(wire, all.replaceAll(/\n\nevent: .*\n/g, lines)).text, played(wire, all).text)
  }
})

test('spec 2.8 the last event of a responses stream gets counters and store:false', () => {
  const { usage: _, store: __, ...response } = answers.responses
  const completed = named({ type: 'response.completed', sequence_number: 8, response })
  const { text } = played('responses', [...frames.responses.slice(0, -1), completed].join(''))
  const last = JSON.parse(text.split('data: ').at(-1)!)
  assert.equal(last.response.store, false)
  assert.equal(last.response.usage.input_tokens_details.cached_tokens, 0)
  assert.ok(last.response.usage.output_tokens > 0)
})

test('P2 an answer of an unusual shape is passed on: log probabilities of half a million JSON tokens', () => {
  const logprobs = Array.from({ length: 60_000 }, (_, i) => ({ token: 'a', logprob: -1, bytes: [i % 256, 1] }))
  const body = {
    ...answers.chat,
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, logprobs, finish_reason: 'stop' }],
  }
  const answer = wires.chat.native.readAnswer(utf8(JSON.stringify(body)), {
    requestId: 'r',
    model: modelOf('chat'),
    createdSeconds: 1,
    inputTokensEstimate: 11,
  })
  assert.equal(answer.state, 'finished')
})

test('B5 the last event of a responses stream is shown, whatever its number of tokens and members', () => {
  const logprobs = Array.from({ length: 60_000 }, (_, i) => ({ token: 'a', logprob: -1, bytes: [i % 256, 1] }))
  const members = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`m${i}`, i]))
  const { store: _, ...response } = answers.responses
  for (const more of [{ logprobs }, members]) {
    const completed = named({ type: 'response.completed', sequence_number: 8, response: { ...response, ...more } })
    const { text, fault, ends } = played('responses', [...frames.responses.slice(0, -1), completed].join(''))
    assert.deepEqual([fault, ends], [undefined, 1])
    assert.equal(JSON.parse(text.split('data: ').at(-1)!).response.store, false)
  }
})

const ofOther = (frame: string) => frame.replaceAll('"index":0', '"index":1')

const broken: [what: string, wire: ClientWire, text: string, isWhole: boolean][] = [
  ['chat, behind the reason', 'chat', role + first + reason, true],
  ['chat, within the usage', 'chat', `${role}${first}${reason}data: {"usa`, true],
  ['chat, before the reason', 'chat', role + first, false],
  ['chat, behind the reason of one choice of two', 'chat', role + ofOther(first) + reason, false],
  ['chat, behind the reason of either', 'chat', role + ofOther(first) + reason + first + ofOther(reason), true],
  ['messages, behind the reason', 'messages', frames.messages.slice(0, -1).join(''), true],
  ['messages, before the reason', 'messages', frames.messages.slice(0, -2).join(''), false],
  ['responses, before the terminal event', 'responses', frames.responses.slice(0, -1).join(''), false],
]

for (const [what, wire, text, isWhole] of broken) {
  test(`T19 a same-wire stream whose connection breaks is whole or cut: ${what}`, () => {
    const relay = open(wire)
    relay.push(utf8(text))
    assert.equal(relay.breakOff(), '')
    assert.equal(relay.state, isWhole ? 'finished' : 'shown')
  })
}

test('C3 C10 output is counted from the deltas, however short they are', () => {
  const pieces = ['Hel', 'lo ', 'wor', 'ld,', ' \\"', 'yes']
  for (const wire of clientWireNames) {
    const at = { messages: 2, chat: 1, responses: 3 }[wire]
    const relay = open(wire)
    relay.push(utf8(frames[wire].slice(0, at).join('')))
    for (let i = 0; i < 100; i++) {
      for (const piece of pieces) relay.push(utf8(frames[wire][at]!.replace('Hé ', piece)))
    }
    assert.equal(relay.estimateOutput(), estimateTextTokens('Hello world, "yes'.repeat(100)), wire)
  }
})

test('C4 output after the client is shown nothing more is not counted, in whichever event it is', () => {
  const more = 'much more than that '.repeat(100)
  for (const wire of clientWireNames) {
    const relay = open(wire)
    const at = { messages: 3, chat: 2, responses: 4 }[wire]
    relay.push(utf8(frames[wire].slice(0, at).join('')))
    const shown = relay.estimateOutput()
    relay.hush()
    relay.push(utf8(frames[wire][at - 1]!.replace('Hé ', more)))
    assert.equal(relay.estimateOutput(), shown, wire)
  }
  const relay = open('responses')
  relay.push(utf8(frames.responses.slice(0, 4).join('')))
  const shown = relay.estimateOutput()
  relay.hush()
  const output = [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: more }] }]
  relay.push(utf8(named({ type: 'response.completed', response: { output } })))
  assert.deepEqual([relay.state, relay.estimateOutput()], ['finished', shown])
})

test('C7 a stream of as many choices as may be asked for is whole when each has its reason', () => {
  for (const count of [127, 128]) {
    const relay = open('chat')
    for (let index = 0; index < count; index++) relay.push(utf8(first.replaceAll('"index":0', `"index":${index}`)))
    for (let index = 0; index < count; index++) relay.push(utf8(reason.replaceAll('"index":0', `"index":${index}`)))
    relay.end()
    assert.equal(relay.state, 'finished', `${count}`)
  }
})

test('P10 the figures after the reason of a messages stream are the billed ones, in however many events they come', () => {
  const start = named({ type: 'message_start', message: startOf({ input_tokens: 10, output_tokens: 1 }) })
  const events = [
    named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'x'.repeat(9_000) } }),
    named({ type: 'content_block_stop', index: 0 }),
    named({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } }),
    named({ type: 'message_delta', delta: {}, usage: { output_tokens: 4 } }),
    named({ type: 'message_stop' }),
  ]
  const relay = open('messages')
  const before = relay.push(utf8(start + events.join('')))
  const shown = eventsOf(before + relay.finish({ ...noUsage, inputTokens: 10, outputTokens: 1_806, estimated: true }))
  const deltas = shown.filter((event) => (event as { type: string }).type === 'message_delta')
  assert.deepEqual(
    deltas.map((event) => (event as { usage: { output_tokens: number } }).usage.output_tokens),
    [2, 1_806],
  )
})

test('translation 4.2 an end without a beginning is not a messages answer', () => {
  const reason = named({ type: 'message_delta', delta: { stop_reason: 'end_turn' } })
  for (const wire of ['messages', 'chat'] as const)
    for (const text of [
      reason,
      reason + named({ type: 'message_stop' }),
      `${named({ type: 'ping' })}${named({ type: 'message_stop' })}`,
    ]) {
      if (wire === 'messages') assert.notEqual(played('messages', text).fault, undefined, text)
      else {
        const decoder = wires.messages.model.createDecoder(modelOf('messages').profile)
        const frames = text
          .trim()
          .split('\n\n')
          .map((frame) => ({ event: undefined, data: dataOf(frame)! }))
        const told = [...frames.flatMap((frame) => [...decoder.push(frame)]), ...decoder.end()]
        assert.equal(told.at(-1)?.type, 'fail', text)
      }
    }
})

test('P2 U3 a failed responses answer keeps its content, and a cancelled one fails', () => {
  const output = [{ type: 'message', id: 'msg_1', role: 'assistant', status: 'completed', content: [] }]
  for (const type of ['response.failed', 'response.cancelled']) {
    const end = named({ type, response: { output, error: { code: 'server_error', message: 'secret' } } })
    const relay = open('responses')
    relay.push(utf8(frames.responses.slice(0, -1).join('') + end))
    assert.equal(relay.state, 'failed')
    const facts = { status: 502, code: 'upstream_error', message: 'It failed.', param: null } as const
    const last = JSON.parse(relay.failure(facts, { ...noUsage, outputTokens: 1 }).split('data: ')[1]!)
    assert.deepEqual([last.response.output, last.response.error.message], [output, 'It failed.'])
  }
})

test('reliability §3 a messages stream of more blocks than an answer can have fails', () => {
  const start = (index: number) =>
    named({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } })
  const relay = open('messages')
  relay.push(utf8(frames.messages[0]!))
  for (let i = 0; i < 9_000; i++) relay.push(utf8(start(i)))
  assert.deepEqual([relay.state, relay.fault?.unread], ['failed', 'oversize'])
})

test('C6 the output count of message_start is not final if message_delta has no plausible one', () => {
  for (const usage of ['{"output_tokens":1000000000000}', '{"output_tokens":-1}', 'null']) {
    const relay = open('messages')
    relay.push(utf8(named({ type: 'message_start', message: startOf({ input_tokens: 10, output_tokens: 1 }) })))
    relay.push(utf8(named({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })))
    const delta = { type: 'text_delta', text: 'These are seven tokens of text.' }
    relay.push(utf8(named({ type: 'content_block_delta', index: 0, delta })))
    const last = `event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":${usage}}\n\n`
    relay.push(utf8(last + named({ type: 'message_stop' })))
    const { usage: billed, source } = weighUsage({
      report: relay.report,
      isComplete: relay.state === 'finished',
      estimateInput: () => 9,
      estimateOutput: () => relay.estimateOutput(),
      outputTokensCap: 8192,
      bounds: { inputTokensMax: 2 ** 40, isOutputCapped: true },
    })
    assert.deepEqual([billed.inputTokens, billed.outputTokens, source], [10, 7, 'estimated'], usage)
    assert.match(relay.finish(billed), /"output_tokens":7\b/)
  }
})

/** Figures of each wire, as its model tells them, that are corrected before they are billed. */
const corrected: [wire: ClientWire, usage: object, billed: object][] = [
  ['messages', { input_tokens: 5, output_tokens: 1e6 }, { input_tokens: 5, output_tokens: 4 }],
  ['messages', { input_tokens: 0, output_tokens: 0 }, { input_tokens: 5, output_tokens: 4 }],
  [
    'chat',
    { prompt_tokens: 100, completion_tokens: 20, total_tokens: 150 },
    { prompt_tokens: 100, completion_tokens: 50, total_tokens: 150 },
  ],
  [
    'chat',
    { prompt_tokens: 100, completion_tokens: 20, total_tokens: 90 },
    { prompt_tokens: 100, completion_tokens: 20, total_tokens: 120 },
  ],
  [
    'responses',
    { input_tokens: 100, output_tokens: 20, total_tokens: 150 },
    { input_tokens: 100, output_tokens: 50, total_tokens: 150 },
  ],
]

for (const [wire, usage, billed] of corrected)
  test(`C6 P10 a ${wire} client is shown the billed figures: ${JSON.stringify(usage)}`, () => {
    const told = frames[wire].map((frame) => {
      if (!/message_delta|"usage":\{.*\}|response\.completed/.test(frame) || /message_start/.test(frame)) return frame
      const event = JSON.parse(dataOf(frame)!)
      if (event.response) event.response.usage = usage
      else event.usage = usage
      return frame.replace(/data: .*/, () => `data: ${JSON.stringify(event)}`)
    })
    const { text } = played(wire, told.join(''))
    const last = eventsOf(text).findLast((event) => /"usage":\{/.test(JSON.stringify(event))) as {
      usage?: object
      response?: { usage: object }
    }
    const shown = last.response?.usage ?? last.usage
    assert.deepEqual({ ...shown, ...billed }, shown)
  })

function startOf(usage: object) {
  return { id: 'msg_1', type: 'message', role: 'assistant', model: 'x', content: [], stop_reason: null, usage }
}
