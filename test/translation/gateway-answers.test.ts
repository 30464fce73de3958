import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { testModel } from '../support/gateway.ts'
import { untilRead } from '../support/peer.ts'
import { patienceMs, until } from '../support/waiting.ts'
import type { Json } from './cases.ts'
import { accumulate } from './clients.ts'
import { framesOf } from './grammar.ts'
import { streamSeeds } from './seeds.ts'
import {
  checkStream,
  directions,
  json,
  paths,
  plainModels,
  type ScriptedGateway,
  say,
  sse,
  startScriptedGateway,
  wishes,
} from './support/scripted.ts'
import {
  blockStart,
  blockStop,
  call,
  completion,
  counts,
  created,
  delta,
  done,
  events,
  message,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  reasoning,
  summary,
  terminal,
  text,
  textBlock,
  thinkingBlock,
  usage,
  wholeMessage,
} from './upstreams.ts'

/** Whole answers of every pair through the gateway: what the client reads, what is billed, when the upstream is let go. */

let gateway: ScriptedGateway
before(async () => {
  const models = [
    ...plainModels(),
    testModel('few-stops', 'chat', { upstream_model: 'hosted-model', profile: { max_stops: 4 } }),
    // Nothing of its bill waits for the end: no cached share is cheaper, and nothing of reasoning was asked for.
    testModel('flat-stops', 'chat', {
      ...{ upstream_model: 'hosted-model', profile: { max_stops: 4 } },
      prices: { input: '3', output: '15' },
    }),
    testModel('streaming', 'chat', { upstream_model: 'hosted-model', profile: { prefer_stream: true } }),
  ]
  gateway = await startScriptedGateway({ models })
})
after(() => gateway.close())

type Entry = NonNullable<ReturnType<ScriptedGateway['store']['findEntry']>>

async function ask(client: ClientWire, body: Json): Promise<{ response: Response; told: string }> {
  const response = await gateway.post(paths[client], body)
  const told = await response.text()
  assert.equal(response.status, 200, told)
  return { response, told }
}

async function entryOf(response: Response): Promise<Entry> {
  const id = response.headers.get('x-request-id')!
  await gateway.logOf(id)
  return gateway.store.findEntry(id)!
}

/** Ids and times of an answer are its own, an estimate is of its own request; the rest is to be compared. */
function withoutIds(answer: unknown): unknown {
  return JSON.parse(JSON.stringify(answer), (key, value: unknown) =>
    ['id', 'call_id', 'created', 'created_at', 'completed_at', 'usage'].includes(key) ? undefined : value,
  )
}

/** The counters of an answer: prompt and output, in any wire's words. */
function countersOf(answer: Json): { input: number; output: number } {
  const told = answer['usage']
  if ('prompt_tokens' in told) return { input: told.prompt_tokens, output: told.completion_tokens }
  return {
    input: told.input_tokens + (told.cache_read_input_tokens ?? 0) + (told.cache_creation_input_tokens ?? 0),
    output: told.output_tokens,
  }
}

for (const { client, wire } of directions) {
  const pair = `${client} client, ${wire} model`

  test(`A119 A120 a JSON answer equals the fold of the stream, without the upstream's own ids and names (${pair})`, async () => {
    for (const script of streamSeeds[wire]) {
      gateway.play(sse(`: hosted comment\n\n${script}`))
      const body = say(client, wire, wishes[client])
      const streamed = await ask(client, { ...body, stream: true })
      const whole = await ask(client, body)
      assert.deepEqual(checkStream[client](streamed.told), [])
      assert.deepEqual(withoutIds(accumulate(client, streamed.told)), withoutIds(JSON.parse(whole.told)))
      for (const { told } of [streamed, whole]) {
        assert.doesNotMatch(told, /hosted/)
        assert.equal(JSON.parse(whole.told)['model'], `plain-${wire}`)
      }
      const { usage: billed } = (await entryOf(whole.response)).bill!
      const shown = countersOf(JSON.parse(whole.told))
      assert.equal(billed.inputTokens + billed.cacheReadTokens + billed.cacheWriteTokens, shown.input)
      assert.equal(billed.outputTokens, shown.output)
    }
  })

  test(`A60 a JSON answer to a stream request becomes a well-formed stream (${pair})`, async () => {
    gateway.play(json(wholes[wire]))
    const { told } = await ask(client, say(client, wire, { stream: true }))
    assert.deepEqual(checkStream[client](told), [])
    assert.equal(wordsOf(client, accumulate(client, told)), 'Hello')
  })

  test(`A08 T1 if the model reports no usage, the figures are estimates, shown and billed alike (${pair})`, async () => {
    gateway.play(sse(silent[wire]))
    for (const stream of [true, false]) {
      const { response, told } = await ask(client, say(client, wire, { stream }))
      const shown = countersOf(stream ? accumulate(client, told) : JSON.parse(told))
      assert.ok(shown.input > 0 && shown.output > 0)
      const { bill } = await entryOf(response)
      assert.equal(bill!.usageSource, 'estimated')
      assert.deepEqual({ input: bill!.usage.inputTokens, output: bill!.usage.outputTokens }, shown)
      const line = await gateway.logOf(response.headers.get('x-request-id')!)
      assert.equal(line['usage_source'], 'estimated')
      assert.deepEqual(line['flags'], ['input_estimated', 'output_estimated'])
    }
  })

  test(`A11 TS3 TS11 reasoning that the client did not ask for is not shown, and is billed as output (${pair})`, async () => {
    gateway.play(sse(thoughtful[wire]))
    const asked = client === 'chat' ? {} : wishes[client]
    for (const [more, isShown] of [
      [{}, client === 'chat'],
      [asked, true],
    ] as const) {
      for (const stream of [true, false]) {
        const { response, told } = await ask(client, say(client, wire, { ...more, stream }))
        assert.equal(/secret plan/.test(told), isShown)
        assert.equal((await entryOf(response)).bill!.usage.outputTokens, 50)
      }
    }
  })

  test(`A121 C12 a client that leaves a stream finally ends the upstream's, and the evidence is billed (${pair})`, async () => {
    gateway.play(sse(openings[wire], 'hold'))
    const leaving = new AbortController()
    const response = await fetch(gateway.url + paths[client], {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.key}` },
      body: JSON.stringify(say(client, wire, { stream: true })),
      signal: leaving.signal,
    })
    await readUntil(response, 'there, ')
    leaving.abort()
    // What was cached is told at the end of two of the wires.
    if (wire !== 'messages') await endReading(10_000)
    assert.equal(await gateway.asked[0]!.left, true)
    const entry = await entryOf(response)
    assert.equal(entry.bill!.outcome, 'client_abort')
    assert.ok(entry.bill!.usage.outputTokens > 0 && entry.bill!.usage.inputTokens > 0)
  })

  test(`A63 U4 pings are sent every ten seconds of silence in a started stream, and none before its start (${pair})`, async () => {
    gateway.play((response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(': still here\n\n')
    })
    const asking = gateway.post(paths[client], say(client, wire, { stream: true }))
    const upstream = await firstAsked()
    // A sign of life alone is no event: nothing may be told yet.
    gateway.advance(9_000)
    upstream.write(openings[wire])
    const response = await asking
    const reader = response.body!.getReader()
    let told = await readOn(reader, 'there, ')
    assert.doesNotMatch(told, pingOf(client))
    gateway.advance(10_000)
    told += await readOn(reader, pingOf(client))
    gateway.advance(15_000)
    told += await readOn(reader, pingOf(client))
    upstream.end(endings[wire])
    for (;;) {
      const { done: isOver, value } = await reader.read()
      if (isOver) break
      told += Buffer.from(value).toString()
    }
    assert.deepEqual(checkStream[client](told), [])
    assert.equal(wordsOf(client, accumulate(client, told)), 'Hello there, friend')
  })

  test(`U4 a stream starts after ten seconds if its model is alive but sends no content (${pair})`, async () => {
    gateway.play(sse(starts[wire], 'hold'))
    const asking = gateway.post(paths[client], say(client, wire, { stream: true }))
    const upstream = await firstAsked()
    await waitForEvents()
    gateway.advance(10_000)
    const response = await asking
    assert.equal(response.status, 200)
    upstream.end(openings[wire].slice(starts[wire].length) + endings[wire])
    const told = await response.text()
    assert.deepEqual(checkStream[client](told), [])
    assert.equal(wordsOf(client, accumulate(client, told)), 'Hello there, friend')
    assert.doesNotMatch(told.slice(0, told.indexOf('\n\n')), /event: ping/)
  })
}

test('A61 T1 message_start has an estimate of the prompt, no output and no stop reason', async () => {
  gateway.play(sse(thoughtful.chat))
  const { told } = await ask('messages', say('messages', 'chat', { stream: true, system: 'x '.repeat(500) }))
  const { message: start } = JSON.parse(framesOf(told)[0]!.data)
  assert.match(start.id, /^msg_[0-9A-Za-z]{24}$/)
  assert.equal(start.stop_reason, null)
  assert.equal(start.usage.output_tokens, 0)
  assert.ok(start.usage.input_tokens > 300)
})

/** The wires whose clients send stops, and models that do not enforce all of them. */
for (const { client, wire } of directions.filter((pair) => pair.wire !== 'messages' && pair.client !== 'responses')) {
  for (const stream of [true, false]) {
    const how = stream ? 'streamed' : 'JSON'
    test(`A45 T15 C12 a stop of ours ends the answer; the upstream is closed after 3 s, the evidence billed (${client} client, ${wire} model, ${how})`, async () => {
      const stops = ['1', '2', '3', '4', '5', 'friend']
      const stopField = client === 'messages' ? 'stop_sequences' : 'stop'
      // The sixth is more than a chat model takes; it comes in two pieces, and the model would go on for ever.
      gateway.play(sse(openings[wire] + goingOn[wire], 'hold'))
      const body = {
        ...say(client, wire, { [stopField]: stops, stream }),
        ...(wire === 'chat' && { model: 'few-stops' }),
      }
      const asking = ask(client, body)
      await endReading(3_000)
      const { response, told } = await asking
      assert.equal(await gateway.asked[0]!.left, true)
      if (stream) assert.deepEqual(checkStream[client](told), [])
      const answer = stream ? accumulate(client, told) : JSON.parse(told)
      assert.equal(wordsOf(client, answer), 'Hello there, ')
      if (client === 'messages')
        assert.deepEqual([answer.stop_reason, answer.stop_sequence], ['stop_sequence', 'friend'])
      else assert.equal(answer.choices[0].finish_reason, 'stop')
      const { bill } = await entryOf(response)
      assert.equal(bill!.outcome, 'ok')
      assert.equal(bill!.usageSource, 'estimated')
      assert.equal(bill!.usage.outputTokens, countersOf(answer).output)
    })
  }
}

for (const stream of [true, false]) {
  test(`T15 C12 at a stop of ours, an upstream with nothing to report is closed at once, before the bill (${stream ? 'streamed' : 'JSON'})`, {
    timeout: patienceMs,
  }, async ({ signal }) => {
    const { ledger } = gateway.server.gateway
    const debit = ledger.debit
    const gate = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => gate.resolve())
    // While the debit waits, nothing else hangs up: the moment that a whole answer's upstream gets comes after it.
    ledger.debit = async (row) => {
      await gate.promise
      return debit.call(ledger, row)
    }
    try {
      gateway.play(sse(openings.chat + goingOn.chat, 'hold'))
      const body = say('messages', 'chat', { stop_sequences: ['1', '2', '3', '4', '5', 'friend'], stream })
      const answer = ask('messages', { ...body, model: 'flat-stops' })
      while (gateway.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
      assert.equal(await Promise.race([gateway.asked[0]!.left, answer.then(() => 'answered first')]), true)
      gate.resolve()
      assert.match((await answer).told, /there, /)
    } finally {
      gate.resolve()
      ledger.debit = debit
    }
  })
}

test('P2 if a model is always asked for a stream, the stream is folded for a JSON client', async () => {
  gateway.play(sse(thoughtful.chat))
  const { told } = await ask('messages', { ...say('messages', 'chat'), model: 'streaming' })
  assert.equal(gateway.asked[0]!.body['stream'], true)
  assert.equal(wordsOf('messages', JSON.parse(told)), 'Hello')
})

test('F-U33 a stream without an end is cancelled for a client that asked for JSON', async () => {
  const piece = text('x'.repeat(4 * 1_048_576))
  gateway.play((response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const more = (error?: Error | null) => {
      if (!error) response.write(piece, (next) => setImmediate(more, next))
    }
    more()
  })
  const response = await gateway.post(paths.messages, say('messages', 'chat'))
  assert.equal(response.status, 502)
  assert.equal(await gateway.asked[0]!.left, true)
})

async function firstAsked() {
  await until(() => gateway.asked[0], 'the upstream is asked')
  return gateway.asked[0]!.response
}

/** Waits until an upstream is read on for its figures, and then until that has lasted its time, and no less. */
async function endReading(ms: number): Promise<void> {
  const { readers } = gateway.server.gateway
  await until(() => readers.count > 0, 'the upstream is read on')
  gateway.advance(ms - 1)
  assert.equal(readers.count, 1)
  gateway.advance(1)
}

/** Until the gateway has read what the upstream wrote at once. */
function waitForEvents(): Promise<void> {
  return untilRead(gateway.asked[0]!.response.socket!)
}

function pingOf(client: ClientWire): RegExp {
  return client === 'messages' ? /event: ping\n/ : /^:/m
}

async function readUntil(response: Response, words: string): Promise<string> {
  return readOn(response.body!.getReader(), words)
}

async function readOn(reader: ReadableStreamDefaultReader<Uint8Array>, words: string | RegExp): Promise<string> {
  let told = ''
  while (typeof words === 'string' ? !told.includes(words) : !words.test(told)) {
    const { done: isOver, value } = await reader.read()
    if (isOver) throw new Error(`the stream ended: ${told}`)
    told += Buffer.from(value).toString()
  }
  return told
}

function wordsOf(client: ClientWire, answer: Json): string {
  if (client === 'chat') return answer['choices'][0].message.content
  const parts: Json[] =
    client === 'messages' ? answer['content'] : answer['output'].flatMap((item: Json) => item['content'] ?? [])
  return parts.map((part) => part['text'] ?? '').join('')
}

const helloItems = [created, ...wholeMessage(0, 'Hello')]
const wholes: Record<ClientWire, string> = {
  messages: JSON.stringify({
    id: 'msg_hosted',
    type: 'message',
    role: 'assistant',
    model: 'hosted-model',
    content: [{ type: 'text', text: 'Hello' }],
    stop_reason: 'end_turn',
    usage: { input_tokens: 9, output_tokens: 2 },
  }),
  chat: completion({ content: 'Hello' }),
  responses: JSON.stringify(terminal('completed', [message(0, 'Hello')])['response']),
}
/** Answers without counters. */
const silent: Record<ClientWire, string> = {
  messages: messageStart({}) + textBlock(0, 'Hello') + messageDelta('end_turn', {}) + messageStop,
  chat: text('Hello') + reason('stop') + done,
  responses: events(...helloItems, terminal('completed', [message(0, 'Hello')], { usage: null })),
}
const thoughtful: Record<ClientWire, string> = {
  messages:
    messageStart() +
    thinkingBlock(0, 'secret plan') +
    textBlock(1, 'Hello') +
    messageDelta('end_turn', { output_tokens: 50 }) +
    messageStop,
  chat: reasoning('secret plan') + text('Hello') + reason('stop') + usage(counts(9, 50)) + done,
  responses: events(
    created,
    { type: 'response.output_item.added', output_index: 0, item: { ...summary(0), summary: [] } },
    { type: 'response.output_item.done', output_index: 0, item: summary(0, 'secret plan') },
    ...wholeMessage(1, 'Hello'),
    terminal('completed', [summary(0, 'secret plan'), message(1, 'Hello')], {
      usage: { input_tokens: 9, output_tokens: 50, total_tokens: 59 },
    }),
  ),
}

/** `Hello there, friend` in three parts: signs of life, the words up to `friend`, and the rest. */
const spoken = wholeMessage(0, 'Hello ', 'there, ', 'fri', 'end')
const starts: Record<ClientWire, string> = {
  messages: messageStart(),
  chat: text(''),
  responses: events(created),
}
const openings: Record<ClientWire, string> = {
  messages: messageStart() + textBlock(0, 'Hello ', 'there, ').split('event: content_block_stop')[0]!,
  chat: text('') + text('Hello ') + text('there, '),
  responses: events(created, ...spoken.slice(0, 4)),
}
const goingOn: Record<ClientWire, string> = {
  messages: '',
  chat: text('fri') + text('end and so on'),
  responses: events(...spoken.slice(4, 6)),
}
const endings: Record<ClientWire, string> = {
  messages: textBlock(0, 'friend').slice(textBlock(0).indexOf('\n\n') + 2) + messageDelta('end_turn') + messageStop,
  chat: text('friend') + reason('stop') + usage(counts(9, 2)) + done,
  responses: events(...spoken.slice(4), terminal('completed', [message(0, 'Hello there, friend')])),
}

test("BUG-7 a call's name that arrives in two pieces is joined by means of the tools of the request", async () => {
  const pieces = call([0, 'c', 'get_']) + call([0, undefined, 'weather']) + call([0, undefined, undefined, '{"q":1}'])
  gateway.play(sse(pieces + reason('tool_calls') + usage(counts(9, 2)) + done))
  for (const stream of [true, false]) {
    const tools = [{ name: 'get_weather', input_schema: { type: 'object' } }]
    const { told } = await ask('messages', say('messages', 'chat', { tools, stream }))
    const { content } = stream ? accumulate('messages', told) : JSON.parse(told)
    assert.deepEqual([content.length, content[0].name, content[0].input], [1, 'get_weather', { q: 1 }])
  }
})

/** An answer whose one part cannot be read, and one whose call cannot, after text. */
const unread: Record<ClientWire, [part: string, call: string]> = {
  messages: [
    messageStart() + blockStart(0, { type: 'unheard_of' }) + blockStop(0) + messageDelta('end_turn') + messageStop,
    messageStart() +
      textBlock(0, 'Look.') +
      blockStart(1, { type: 'tool_use', id: 'c' }) +
      blockStop(1) +
      messageDelta('tool_use') +
      messageStop,
  ],
  chat: [
    delta({ content: [{ type: 'unheard_of' }] }) + reason('stop') + usage(counts(9, 2)) + done,
    text('Look.') + delta({ tool_calls: ['f'] }) + reason('tool_calls') + usage(counts(9, 2)) + done,
  ],
  responses: [
    events(created, terminal('completed', [{ type: 'unheard_of' }])),
    events(
      created,
      ...wholeMessage(0, 'Look.'),
      terminal('completed', [message(0, 'Look.'), { type: 'function_call' }]),
    ),
  ],
}

test('FID-2 FID-3 Y5 an unreadable answer is 502, or a stream that fails, and never a success', async () => {
  for (const { client, wire } of directions) {
    for (const [place, script] of unread[wire].entries()) {
      gateway.play(sse(script))
      for (const stream of [true, false]) {
        const response = await gateway.post(paths[client], say(client, wire, { stream }))
        const told = await response.text()
        const isCut = stream && place === 1
        assert.equal(response.status, isCut ? 200 : 502, told)
        if (isCut) assert.match(told, /"error"/)
        if (isCut) assert.doesNotMatch(told, /message_stop|\[DONE\]|response\.completed/)
      }
    }
  }
})
