import assert from 'node:assert/strict'
import test from 'node:test'
import { ResponseStream } from 'openai/lib/responses/ResponseStream'
import { type Usage, type UsageReport, weighUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { checkAnswer } from '../schemas/check-answer.ts'
import { answers, chunk, frames, named } from '../support/native.ts'
import { liteLlm, llamaCpp } from '../support/recorded.ts'
import { accumulate } from '../translation/clients.ts'
import { checkMessagesStream, framesOf } from '../translation/grammar.ts'
import { modelOf } from './models.ts'

type Json = Record<string, unknown>

const head = (wire: 'messages' | 'chat' | 'responses') => ({
  requestId: 'req_1',
  model: modelOf(wire),
  createdSeconds: 1_795_000_000,
  inputTokensEstimate: 11,
})

/** What a client of the same wire is sent of a stream. */
function stream(wire: 'messages' | 'chat' | 'responses', text: string, size = text.length): string {
  const relay = wires[wire].native.openStream(head(wire))
  const bytes = Buffer.from(text)
  let told = ''
  for (let at = 0; at < bytes.length; at += size) told += relay.push(bytes.subarray(at, at + size))
  if (relay.state !== 'finished') told += relay.end()
  assert.equal(relay.state, 'finished')
  const usage = usageOf(relay.report, true, () => relay.estimateOutput())
  return Buffer.from(told + relay.finish(usage), relay.encoding).toString()
}

/** What is billed of a report. */
function usageOf(report: UsageReport, isComplete: boolean, estimateOutput = () => 1): Usage {
  const bounds = { inputTokensMax: 2 ** 40, isOutputCapped: true }
  return weighUsage({ report, isComplete, estimateInput: () => 9, estimateOutput, outputTokensCap: 8192, bounds }).usage
}

const eventsOf = (text: string) => framesOf(text).map(({ data }) => JSON.parse(data) as Json)
const inPart = /output_text|content_part|reasoning_text/

for (const file of ['text', 'reasoning', 'reasoning-call', 'two-calls']) {
  test(`P2 llama.cpp’s responses-${file} gets its missing numbers, and the required members of a response`, () => {
    const text = stream('responses', llamaCpp(`responses-${file}.sse`))
    assert.deepEqual(checkAnswer('responses', 'native', 'text/event-stream', text), [])
    const events = eventsOf(text)
    assert.deepEqual(
      events.map((event) => event['sequence_number']),
      events.map((_, index) => index),
    )
    const output = ((events.at(-1)!['response'] as Json)['output'] as Json[]).map((item) => item['id'])
    for (const event of events) {
      const id = event['item_id'] ?? (event['item'] as Json | undefined)?.['id']
      assert.equal(event['output_index'], id === undefined ? undefined : output.indexOf(id))
      assert.equal(event['content_index'], inPart.test(`${event['type']}`) ? 0 : undefined)
    }
    assert.equal(stream('responses', llamaCpp(`responses-${file}.sse`), 7), text)
  })
}

test('P2 reasoning of llama.cpp’s responses gets a part, as the vendor’s SDK requires', async () => {
  const { body } = new Response(stream('responses', llamaCpp('responses-reasoning.sse')))
  const lines = await new Response(body).text()
  const objects = eventsOf(lines).map((event) => `${JSON.stringify(event)}\n`)
  const response = await ResponseStream.fromReadableStream(new Response(objects.join('')).body!).finalResponse()
  assert.deepEqual(
    response.output.map((item) => item.type),
    ['reasoning', 'message'],
  )
  assert.equal(response.output_text, 'The answer is 42')
  assert.deepEqual(
    eventsOf(lines)
      .map((event) => event['type'])
      .filter((type, index, all) => type !== all[index - 1])
      .slice(2, 6),
    [
      'response.output_item.added',
      'response.content_part.added',
      'response.reasoning_text.delta',
      'response.output_item.added',
    ],
  )
})

for (const [file, kinds] of [
  ['reasoning', ['reasoning', 'message']],
  ['reasoning-call', ['reasoning', 'function_call']],
  ['two-calls', ['function_call', 'function_call']],
] as const) {
  test(`P2 LiteLLM’s responses-${file}, which numbers only some events, is numbered completely and read by the vendor’s SDK`, async () => {
    const text = stream('responses', liteLlm(`responses-${file}.sse`))
    assert.deepEqual(checkAnswer('responses', 'native', 'text/event-stream', text), [])
    const events = eventsOf(text)
    assert.deepEqual(
      events.map((event) => event['sequence_number']),
      events.map((_, index) => index),
    )
    const objects = events.map((event) => `${JSON.stringify(event)}\n`).join('')
    const { output } = await ResponseStream.fromReadableStream(new Response(objects).body!).finalResponse()
    assert.deepEqual(
      output.map(({ type }) => type),
      kinds,
    )
    assert.equal(stream('responses', liteLlm(`responses-${file}.sse`), 7), text)
  })
}

test('P2 LiteLLM’s whole response gets the summary that an item of reasoning must have', () => {
  const answer = wires.responses.native.readAnswer(Buffer.from(liteLlm('responses-reasoning.json')), head('responses'))
  assert.equal(answer.state, 'finished')
  if (answer.state !== 'finished') return
  const text = answer.encode(usageOf(answer.report, true)).toString()
  assert.deepEqual(checkAnswer('responses', 'native', 'application/json', text), [])
  const [{ summary, content }] = (JSON.parse(text) as { output: [Json] }).output
  assert.deepEqual(
    [summary, content],
    [[], [{ type: 'reasoning_text', text: 'I should think first\nok', annotations: [] }]],
  )
})

test('P2 a responses stream that we number continues its numbers when it fails', () => {
  const relay = wires.responses.native.openStream(head('responses'))
  relay.push(Buffer.from(`${llamaCpp('responses-text.sse').split('\n\n').slice(0, 6).join('\n\n')}\n\n`))
  const facts = { status: 502, code: 'upstream_error', message: 'Gone.', param: null } as const
  assert.match(relay.failure(facts, usageOf({}, false)), /"sequence_number":6,/)
})

const telling = /system_fingerprint|timings|b11669|provider|tiny\.gguf|prompt_ms|"service"/

test('P9 llama.cpp’s chat stream does not reveal the model’s server', () => {
  const text = stream('chat', llamaCpp('chat-reasoning.sse'))
  assert.doesNotMatch(text, telling)
  assert.deepEqual(checkAnswer('chat', 'native', 'text/event-stream', text), [])
  assert.match(text, /"reasoning_content":" should"/)
  assert.match(text, /"cached_tokens":22/)
  assert.equal(stream('chat', llamaCpp('chat-reasoning.sse'), 7), text)
})

test('P9 the chunks of consecutive deltas stay byte for byte the same, except for dropped members', () => {
  const more = { system_fingerprint: 'b11669', provider: 'Somebody', timings: { prompt_ms: 1 } }
  const frames = ['Hé ', '😀', ' x'].map((content) => ({
    choices: [{ index: 0, delta: { content }, finish_reason: null }],
  }))
  const end = { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }
  const whole = (extra: Json) =>
    `${[...frames, end].map((frame) => chunk({ ...extra, ...frame })).join('')}data: [DONE]\n\n`
  assert.equal(stream('chat', whole(more)), stream('chat', whole({})))
  // Behind the choices, where no shared beginning holds it.
  const behind = `${[...frames, end].map((frame) => chunk({ ...frame, ...more })).join('')}data: [DONE]\n\n`
  assert.equal(stream('chat', behind), stream('chat', whole({})))
  assert.equal(stream('chat', behind, 5), stream('chat', whole({})))
})

test('P9 llama.cpp’s whole chat answer does not reveal the model’s server', () => {
  const answer = wires.chat.native.readAnswer(Buffer.from(llamaCpp('chat-text.json')), head('chat'))
  assert.equal(answer.state, 'finished')
  if (answer.state !== 'finished') return
  const text = answer.encode(usageOf(answer.report, true)).toString()
  assert.doesNotMatch(text, telling)
  assert.deepEqual(checkAnswer('chat', 'native', 'application/json', text), [])
})

test('P9 timings beside a responses model’s last event, or in an event of a messages model, are dropped', () => {
  assert.doesNotMatch(stream('responses', llamaCpp('responses-text.sse')), telling)
  const event = named({ type: 'message_stop', timings: { prompt_ms: 3 } })
  const text = llamaCpp('messages-reasoning.sse').replace(/event: message_stop[\s\S]*/, event)
  assert.doesNotMatch(stream('messages', text), telling)
})

/**
 * Members of answers in which servers and gateways reveal the model's provider, routes or costs. They are of Vercel,
 * LiteLLM with Vertex AI, Azure, SGLang, Groq, OpenRouter, NanoGPT, the AI/ML API and OpenCode Zen.
 */
const gateways = {
  provider_metadata: { gateway: { routing: { finalProvider: 'novita' }, cost: '0.0042', generationId: 'gen_01K' } },
  providerMetadata: { gateway: { marketCost: '0.0042' } },
  generationId: 'gen_01K',
  vertex_ai_grounding_metadata: [],
  vertex_ai_url_context_metadata: [],
  vertex_ai_safety_results: [],
  vertex_ai_citation_metadata: [],
  content_filters: [{ blocked: false, source_type: 'prompt', content_filter_results: { hate: { filtered: false } } }],
  content_filter_raw: [],
  content_filter_offsets: { check_offset: 44 },
  content_filter_result: { error: { code: 'content_filter_error', message: 'The contents are not filtered' } },
  sglext: { cached_tokens_details: { device: 0, host: 0 } },
  usage_breakdown: { models: [{ model: 'openai/gpt-oss-120b' }] },
  openrouter_metadata: { endpoints: { available: [{ provider: 'novita', selected: true }] } },
  x_nanogpt_pricing: { amount: 0.0042, currency: 'USD' },
  meta: { usage: { credits_used: 84, usd_spent: 0.0042 } },
  cost: '0.0042',
}
const told = /novita|0\.0042|gen_01K|vertex|metadata|filter|gpt-oss|nanogpt|credits|cost|opencode|sglext/i

test('P9 X14 providers and costs that a gateway tells of are dropped, also inside a message', () => {
  const answer = (wire: 'messages' | 'chat' | 'responses', more: Json) => {
    const read = wires[wire].native.readAnswer(Buffer.from(JSON.stringify({ ...answers[wire], ...more })), head(wire))
    assert.equal(read.state, 'finished')
    return read.state === 'finished' ? read.encode(usageOf(read.report, true)).toString() : ''
  }
  const choice = { index: 0, message: { role: 'assistant', content: 'Hé', ...gateways }, finish_reason: 'stop' }
  assert.doesNotMatch(answer('chat', { ...gateways, choices: [choice] }), told)
  const usage = { ...(answers.messages['usage'] as Json), market_cost: 0.0042 }
  for (const wire of ['messages', 'responses'] as const)
    assert.doesNotMatch(answer(wire, { ...gateways, ...(wire === 'messages' && { usage }) }), told)
  const said = (content: string, i: number) =>
    chunk({
      choices: [{ index: 0, delta: { content }, finish_reason: null, content_filter_offsets: { check_offset: i } }],
    })
  const last = { choices: [{ index: 0, delta: { ...gateways }, finish_reason: 'stop' }], usage: answers.chat['usage'] }
  const zen = `data: {"choices":[],"x-opencode-type":"inference-cost","cost":"0.0042","normalizedUsage":{}}\n\n`
  const text = `${['a', 'b', 'c'].map(said).join('')}${chunk({ ...last, ...gateways })}${zen}data: [DONE]\n\n`
  assert.doesNotMatch(stream('chat', text), told)
  assert.match(stream('chat', text, 7), /"delta":\{\},"finish_reason":"stop"/)
  assert.equal(stream('chat', text), stream('chat', text.replace(zen, '')), 'a chunk only about the cost is left out')
  const end = frames.messages.map((frame) => frame.replace('"usage":', `"generationId":"gen_01K","usage":`))
  assert.doesNotMatch(stream('messages', end.join('')), told)
  const own = `"object":"response","content_filters":[{"blocked":false}]`
  const responses = frames.responses.map((frame) => frame.replace('"object":"response"', own))
  assert.doesNotMatch(stream('responses', responses.join('')), told)
})

test('P3 P9 the id of a response from LiteLLM, which has its provider in base64, is replaced throughout', () => {
  const told = 'litellm:custom_llm_provider:azure;model_id:prod-eu;response_id:resp_1'
  const id = `resp_${Buffer.from(told).toString('base64')}`
  const body = { ...answers.responses, id }
  const read = wires.responses.native.readAnswer(Buffer.from(JSON.stringify(body)), head('responses'))
  assert.ok(read.state === 'finished')
  const shown = `${read.encode(usageOf(read.report, true))}`
  const streamed = frames.responses.map((frame) => frame.replace(/"id":"resp_[^"]*"/, `"id":"${id}"`)).join('')
  assert.ok(streamed.includes(id))
  const ids = `${shown}${stream('responses', streamed)}`.match(/resp_[A-Za-z0-9+/=]+/g)
  assert.match(ids![0]!, /^resp_[A-Za-z0-9]{24}$/)
  assert.equal(new Set(ids).size, 1)
})

const blocksOf = (text: string) =>
  (accumulate('messages', text)['content'] as Json[]).map(
    ({ type, text: words, thinking, input }) => `${type} ${words ?? thinking ?? JSON.stringify(input)}`,
  )
const start = (index: number, content_block: Json) => named({ type: 'content_block_start', index, content_block })
const delta = (index: number, piece: Json) => named({ type: 'content_block_delta', index, delta: piece })
const stop = (index: number) => named({ type: 'content_block_stop', index })
const thinks = (index: number, thinking: string) => delta(index, { type: 'thinking_delta', thinking })
const says = (index: number, words: string) => delta(index, { type: 'text_delta', text: words })
const begin = llamaCpp('messages-reasoning.sse').split('event: content_block_start')[0]!
const end = llamaCpp('messages-reasoning.sse').slice(llamaCpp('messages-reasoning.sse').indexOf('event: message_delta'))
const call = { type: 'tool_use', id: 'toolu_1', name: 'f' }

const overlapping: [what: string, stream: string, blocks: string[]][] = [
  [
    'llama.cpp’s text while its thinking is open',
    llamaCpp('messages-reasoning.sse'),
    ['thinking I should think first\nok', 'text The answer is 42'],
  ],
  [
    'llama.cpp’s call while its thinking is open',
    llamaCpp('messages-reasoning-call.sse'),
    ['thinking I should think first\nok', 'tool_use {"city":"Paris"}'],
  ],
  [
    'a number that is given again (Ollama)',
    [
      begin,
      start(0, { type: 'thinking', thinking: '' }),
      thinks(0, 'hm'),
      start(0, call),
      delta(0, { type: 'input_json_delta', partial_json: '{"x":1}' }),
      stop(0),
      end,
    ].join(''),
    ['thinking hm', 'tool_use {"x":1}'],
  ],
  [
    'thinking that goes on behind a text',
    [
      begin,
      start(0, { type: 'thinking', thinking: '' }),
      thinks(0, 'hm'),
      start(1, { type: 'text', text: '' }),
      says(1, 'a'),
      thinks(0, 'oh'),
      says(1, 'b'),
      stop(0),
      stop(1),
      end,
    ].join(''),
    ['thinking hm', 'text a', 'thinking oh', 'text b'],
  ],
]

for (const [what, streamed, blocks] of overlapping) {
  test(`U7 P2 overlapping messages blocks are sent one after the other: ${what}`, () => {
    const text = stream('messages', streamed)
    assert.deepEqual(checkAnswer('messages', 'native', 'text/event-stream', text), [])
    assert.deepEqual(checkMessagesStream(text), [])
    assert.deepEqual(blocksOf(text), blocks)
    assert.equal(stream('messages', streamed, 7), text)
  })
}
