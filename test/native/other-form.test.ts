import assert from 'node:assert/strict'
import test from 'node:test'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { noUsage } from '../../src/inference/usage.ts'
import { wires } from '../../src/wires/wires.ts'
import { checkResponsesStream, framesOf } from '../translation/grammar.ts'
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
  reason,
  reasoning,
  summary,
  summaryDelta,
  terminal,
  text,
  textBlock,
  textDelta,
  thinkingBlock,
  toolBlock,
  usage,
} from '../translation/upstreams.ts'
import { modelOf } from './models.ts'
import { contentOfMessages, playNatively } from './same-wire.ts'

/*
 * Y1: on the same wire an upstream may answer in the other form than it was asked for. A stream becomes one JSON answer, and one
 * JSON answer a stream, with all that the wire's own answers may hold, and with the same evidence.
 */

// biome-ignore lint/suspicious/noExplicitAny: a test reads JSON as a client does.
type Json = Record<string, any>

const billed = { ...noUsage, inputTokens: 9, outputTokens: 7 }
const headOf = (wire: ClientWire) => ({
  requestId: 'req_1',
  createdSeconds: 1_795_000_000,
  inputTokensEstimate: 11,
  model: modelOf(wire, {
    prices: { ...modelOf(wire).prices, calls: { web_search: 1n } } as never,
  }),
})

/** The one answer that a client who wants JSON gets of a stream; undefined if the answer fails. @param size of its pieces */
function folded(wire: ClientWire, script: string, size = script.length * 4, isRepeated = false): Json | undefined {
  const fold = wires[wire].native.openStream(headOf(wire)).folding()
  const bytes = Buffer.from(script)
  for (let at = 0; at < bytes.length && !isOver(fold); at += size) fold.push(bytes.subarray(at, at + size))
  if (!isOver(fold)) fold.end()
  const whole = fold.whole()
  if (whole.state !== 'finished') return undefined
  const shown = wires[wire].native.openStream(headOf(wire))
  shown.push(bytes)
  if (!isRepeated) assert.deepEqual(whole.report, shown.report)
  if (!isRepeated) assert.equal(whole.estimateOutput(), shown.estimateOutput())
  return JSON.parse(Buffer.from(whole.encode(billed)).toString())
}

const isOver = ({ state }: { state: string }) => state === 'finished' || state === 'failed'

/** The stream that a client gets of one JSON answer; undefined if the answer fails. */
function unfolded(wire: ClientWire, body: string, isPlain = true): string | undefined {
  const relay = wires[wire].native.openStream(headOf(wire))
  const shown = relay.pushWhole(Buffer.from(body))
  if (relay.state === 'failed') return undefined
  assert.equal(relay.state, 'finished')
  const read = wires[wire].native.readAnswer(Buffer.from(body), headOf(wire))
  assert.ok(read.state === 'finished')
  assert.deepEqual(relay.report, read.report)
  if (isPlain) assert.equal(relay.estimateOutput(), read.estimateOutput())
  return Buffer.from(shown + relay.finish(billed), 'latin1').toString()
}

const digits = '{"n":12345678901234567890,"z":1,"a":2}'
const citation = { type: 'web_search_result_location', url: 'u', cited_text: 'Hé' }
const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'é' } }
const found = { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ url: 'u' }] }
const logprobs = (...tokens: string[]) => ({ logprobs: { content: tokens.map((token) => ({ token })), refusal: null } })
const audio = { id: 'ig_hosted', type: 'image_generation_call', status: 'completed', result: 'aGk=' }
const searched = {
  id: 'ws_hosted',
  type: 'web_search_call',
  status: 'completed',
  action: { type: 'search', query: 'é' },
}
const custom = {
  id: 'ctc_hosted',
  type: 'custom_tool_call',
  status: 'completed',
  call_id: 'c',
  name: 'f',
  input: 'ls é',
}
const refusal = { ...message(5), content: [{ type: 'refusal', refusal: 'Nön' }] }
const items = [
  summary(0, 'Hm é'),
  searched,
  message(2, 'Hé ', 'there'),
  functionCall(3, 'f', digits),
  custom,
  refusal,
  audio,
]

const streams: Record<ClientWire, { script: string; told: Json }> = {
  messages: {
    script:
      messageStart({ input_tokens: 9, output_tokens: 1, service_tier: 'standard' } as never) +
      thinkingBlock(0, 'Hm é', 'sig') +
      blockStart(1, { ...search, input: {} }) +
      blockDelta(1, { type: 'input_json_delta', partial_json: '{"query":"é"}' }) +
      blockStop(1) +
      blockStart(2, found) +
      blockStop(2) +
      blockStart(3, { type: 'text', text: '' }) +
      blockDelta(3, { type: 'text_delta', text: 'Hé ' }) +
      blockDelta(3, { type: 'citations_delta', citation }) +
      blockDelta(3, { type: 'text_delta', text: 'there' }) +
      blockStop(3) +
      toolBlock(4, 'f', digits.slice(0, 9), digits.slice(9)) +
      toolBlock(5, 'g') +
      messageDelta('tool_use') +
      messageStop,
    told: {
      model: 'm',
      stop_reason: 'tool_use',
      content: [
        { type: 'thinking', thinking: 'Hm é', signature: 'sig' },
        search,
        found,
        { type: 'text', text: 'Hé there', citations: [citation] },
        { type: 'tool_use', id: 'toolu_hosted_4', name: 'f', input: JSON.parse(digits) },
        { type: 'tool_use', id: 'toolu_hosted_5', name: 'g', input: {} },
      ],
    },
  },
  chat: {
    script:
      delta({ role: 'assistant', content: null }) +
      reasoning('Hm ') +
      reasoning('é') +
      delta({ content: 'Hé ' }, logprobs('Hé')) +
      delta({ content: 'there' }, logprobs('there')) +
      delta({ content: 'Two' }, { index: 1 }) +
      call([0, 'call_1', 'f', digits.slice(0, 9)], [1, 'call_2', 'g', '{}']) +
      call([0, undefined, undefined, digits.slice(9)]) +
      reason('tool_calls') +
      reason('stop', { index: 1 }) +
      usage(counts(9, 7)) +
      done,
    told: {
      object: 'chat.completion',
      model: 'm',
      choices: [
        {
          index: 0,
          finish_reason: 'tool_calls',
          ...logprobs('Hé', 'there'),
          message: {
            role: 'assistant',
            content: 'Hé there',
            refusal: null,
            reasoning_content: 'Hm é',
            tool_calls: [
              { id: 'call_1', type: 'function', function: { name: 'f', arguments: digits } },
              { id: 'call_2', type: 'function', function: { name: 'g', arguments: '{}' } },
            ],
          },
        },
        {
          ...{ index: 1, finish_reason: 'stop', logprobs: null },
          message: { role: 'assistant', content: 'Two', refusal: null },
        },
      ],
    },
  },
  responses: {
    script: events(
      created,
      ...items.flatMap((item, at) => [added(at, { ...item, status: 'in_progress' }), itemDone(at, item)]),
      terminal('completed', items),
    ),
    told: { model: 'm', status: 'completed', output: items },
  },
}

for (const wire of ['messages', 'chat', 'responses'] as const) {
  const { script, told } = streams[wire]
  test(`Y1 a ${wire} stream becomes one answer for a client that asked for JSON, wherever it is cut`, () => {
    for (const size of [script.length * 4, 1, 7, 300]) {
      const answer = folded(wire, script, size)!
      for (const [name, value] of Object.entries(told)) assert.deepEqual(answer[name], value, name)
      assert.doesNotMatch(JSON.stringify(answer), /hosted-model|fp_hosted|"provider"/)
      const { input_tokens = 0, prompt_tokens = input_tokens } = answer['usage']
      assert.equal(prompt_tokens, 9)
    }
  })

  test(`Y1 a ${wire} stream that is cut, fails or is too large does not become a JSON answer`, () => {
    const frames = script.split(/(?<=\n\n)/)
    for (const end of [1, frames.length >> 1]) assert.equal(folded(wire, frames.slice(0, end).join('')), undefined)
    const error = `event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n`
    assert.equal(folded(wire, frames.slice(0, 2).join('') + error), undefined)
    const fold = wires[wire].native.openStream(headOf(wire)).folding()
    const long = 'a'.repeat(1_048_576)
    const piece = { messages: blockDelta(0, { type: 'text_delta', text: long }), chat: text(long), responses: '' }[wire]
    fold.push(
      Buffer.from(wire === 'messages' ? messageStart() + blockStart(0, { type: 'text', text: '' }) : frames[0]!),
    )
    for (let i = 0; i < 40 && !isOver(fold); i++)
      fold.push(Buffer.from(piece || events(textDelta(0, long), argumentsDelta(1, ''))))
    const answer = fold.whole()
    assert.ok(answer.state === 'failed' && answer.fault.unread === 'oversize')
  })

  test(`Y1 one ${wire} answer becomes a stream with all its content, and back into the same answer`, () => {
    const body = JSON.stringify(folded(wire, script)).replace(/1234567890123456\d+/, '12345678901234567890')
    const shown = unfolded(wire, body)!
    assert.ok(unfolded(wire, `\r\n${JSON.stringify(JSON.parse(body), null, 1).replaceAll('\n', '\r\n')}`, false))
    if (wire === 'messages') assert.equal(contentOfMessages(shown)?.content.length, 6)
    if (wire === 'responses') {
      const plain = [summary(0, 'Hm é'), message(1, 'Hé there'), functionCall(2, 'f', digits), refusal]
      assert.deepEqual(
        checkResponsesStream(unfolded(wire, JSON.stringify({ ...JSON.parse(body), output: plain }))!),
        [],
      )
    }
    const again = folded(wire, shown)!
    assert.deepEqual({ ...again, usage: 0 }, { ...JSON.parse(body), usage: 0 })
    if (wire === 'messages') assert.ok(shown.includes('12345678901234567890'))
    // Clients that show the answer as it comes read its deltas alone.
    for (const words of ['Hé ', 'there', 'Hm é']) assert.match(shown, new RegExp(`_delta|delta"[^\\n]*${words}`))
    assert.match(shown, /delta"[^\n]*12345678901234567890/)
  })

  test(`Y1 JSON that is not a ${wire} answer does not become a stream`, () => {
    for (const body of [
      '{}',
      '[]',
      '7',
      '{"type":"message"}',
      '{"choices":[]}',
      '{"output":7}',
      '{"status":"queued","output":[]}',
    ])
      assert.equal(unfolded(wire, body), undefined, body)
    const relay = wires[wire].native.openStream(headOf(wire))
    relay.pushWhole(Buffer.from('{"error":{"type":"invalid_request_error","message":"Bad field"}}'))
    assert.equal(relay.fault?.text, 'Bad field')
  })
}

test('Y1 spec 6.1 6.3 a stream made from JSON begins with nothing of its end', () => {
  const firstOf = (wire: ClientWire, body: Json): Json =>
    JSON.parse(/^data: (.*)$/m.exec(unfolded(wire, JSON.stringify(body))!)![1]!)
  const { response } = firstOf('responses', {
    ...{ id: 'resp_1', object: 'response', created_at: 7, completed_at: 8, status: 'incomplete' },
    ...{ incomplete_details: { reason: 'max_output_tokens' }, output: [message(0, 'Hi')] },
    usage: { input_tokens: 9, output_tokens: 7, total_tokens: 16 },
  })
  const { status, incomplete_details, completed_at, output } = response
  assert.deepEqual([status, incomplete_details, completed_at, output], ['in_progress', null, null, []])
  const ending = { stop_reason: 'refusal', stop_sequence: null, stop_details: { type: 'refusal', explanation: 'Nö' } }
  const body = {
    ...{ id: 'msg_1', type: 'message', role: 'assistant', ...ending },
    ...{ content: [{ type: 'text', text: 'Hi' }], usage: { input_tokens: 9, output_tokens: 7 } },
  }
  const { usage, stop_reason, stop_details } = firstOf('messages', body).message
  assert.deepEqual([usage.input_tokens, usage.output_tokens, stop_reason, stop_details], [9, 0, null, null])
  // SDKs take all of the end from the last event.
  const told = framesOf(unfolded('messages', JSON.stringify(body))!).map(({ data }) => JSON.parse(data) as Json)
  assert.deepEqual(told.find(({ type }) => type === 'message_delta')?.['delta'], ending)
})

test('Y1 Y5 blocks of no type are left out of the stream that is made of a messages answer', () => {
  const answer = { id: 'msg_1', type: 'message', role: 'assistant', stop_reason: 'end_turn' }
  const shown = (...content: unknown[]) =>
    unfolded('messages', JSON.stringify({ ...answer, content, usage: { input_tokens: 9, output_tokens: 7 } }))
  assert.deepEqual(contentOfMessages(shown({}, { type: 'text', text: 'Hi' }, {})!)?.content, [
    { type: 'text', text: 'Hi' },
  ])
  assert.equal(shown({}), undefined)
})

test('Y1 members that only a later chunk of a chat stream has are in the one answer', () => {
  const script =
    delta({ content: 'Hi' }, {}).replace('"choices"', '"citations":null,"service_tier":null,"choices"') +
    reason('stop').replace('"choices"', '"citations":["a"],"service_tier":"default","choices"') +
    done
  const answer = folded('chat', script)
  assert.deepEqual(
    [answer?.['citations'], answer?.['service_tier'], answer?.['object']],
    [['a'], 'default', 'chat.completion'],
  )
})

test('Y1 a responses stream whose last event omits its items gets them from their end events', () => {
  const script = events(created, ...items.map((item, at) => itemDone(at, item)), terminal('completed'))
  assert.deepEqual(folded('responses', script)?.['output'], items)
})

test('Y1 R-ARGS a call that a cap has cut keeps its text in one answer', () => {
  const script =
    messageStart() +
    textBlock(0, 'Hi') +
    toolBlock(1, 'f', '{"a":').replace(blockStop(1), '') +
    messageDelta('max_tokens') +
    messageStop
  assert.deepEqual(folded('messages', script)?.['content'][1].input, { _raw_arguments: '{"a":' })
})

test('Y1 pieces of a chat call without an index belong to the last call', () => {
  const script =
    call([undefined, 'call_1', 'f', '{"a"']) +
    call([undefined, undefined, undefined, ':1}']) +
    reason('tool_calls') +
    done
  assert.deepEqual(
    folded('chat', script)?.['choices'][0].message.tool_calls.map((one: Json) => one['function'].arguments),
    ['{"a":1}'],
  )
})

test('Y1 BUG-7 the name of a chat call that comes in pieces, or again with each piece, is whole in one answer', () => {
  for (const names of [
    ['get_', 'weather', undefined],
    ['get_', 'get_weather', 'get_weather'],
    ['get_weather', 'get_weather', 'get_weather'],
    ['get_weather', '', null],
  ] as string[][]) {
    const calls = names.map((name, at) => call([0, at === 0 ? 'c' : undefined, name, ['', '{"a":', '1}'][at]]))
    const answer = folded('chat', calls.join('') + reason('tool_calls') + done)
    assert.deepEqual(answer?.['choices'][0].message.tool_calls[0].function, {
      name: 'get_weather',
      arguments: '{"a":1}',
    })
  }
})

test('Y1 the choices of a folded chat answer are in the order of their numbers', () => {
  const script =
    delta({ content: 'Two' }, { index: 1 }) +
    delta({ content: 'One' }) +
    reason('stop', { index: 1 }) +
    reason('stop') +
    done
  assert.deepEqual(
    folded('chat', script)?.['choices'].map((one: Json) => [one['index'], one['message'].content]),
    [
      [0, 'One'],
      [1, 'Two'],
    ],
  )
})

const chatChunk = (choice: Json) => `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, ...choice }] })}\n\n`

test('Y1 Y4 cumulative arguments of a folded chat call: the last piece counts; other pieces are joined', () => {
  const read = (...pieces: string[]) => {
    const script = pieces.map((piece, at) => call([0, at === 0 ? 'c' : undefined, at === 0 ? 'f' : undefined, piece]))
    const answer = folded('chat', script.join('') + reason('tool_calls') + done, undefined, true)
    return answer?.['choices'][0].message.tool_calls[0]['function'].arguments
  }
  assert.equal(read('', '{"q', '{"q":1', '{"q":1}'), '{"q":1}')
  assert.equal(read('{"q', '{"q":1}'), '{"q":1}')
  assert.equal(read('{"q"', ':1}'), '{"q":1}')
  assert.equal(read('{"q', '{"p":1}'), '{"q{"p":1}')
  assert.equal(read('{"q', '{"q":'), '{"q{"q":')
})

test('Y1 Y4 cumulative arguments of a folded responses call: the last piece counts; other pieces are joined', () => {
  const read = (pieces: string[], said: string) => {
    const open = added(0, functionCall(0, 'f', ''))
    const deltas = pieces.map((piece) => argumentsDelta(0, piece))
    const script = events(created, open, ...deltas, itemDone(0, functionCall(0, 'f', said)), terminal('completed'))
    return folded('responses', script, undefined, true)?.['output'].map((item: Json) => item['arguments'])
  }
  for (const said of ['', '{"q{"q":1}']) assert.deepEqual(read(['{"q', '{"q":1}'], said), ['{"q":1}'])
  assert.deepEqual(read(['{"q"', ':1}'], ''), ['{"q":1}'])
  assert.deepEqual(read(['{"q', '{"p":1}'], ''), ['{"q{"p":1}'])
})

test('Y4 pieces of a messages stream that repeat are shown once to messages clients, by the setting of the profile', () => {
  const model = modelOf('messages', {}, { cumulative: ['arguments', 'reasoning'] })
  const thought = (index: number, ...pieces: string[]) =>
    blockStart(index, { type: 'thinking', thinking: '', signature: '' }) +
    pieces.map((thinking) => blockDelta(index, { type: 'thinking_delta', thinking })).join('')
  const signed = blockDelta(0, { type: 'signature_delta', signature: 'c2ln' })
  const script =
    messageStart() +
    thought(0, 'Hm', 'Hm, I', 'Hm, I', 'Hm, I see', 'Hm, I see it') +
    signed +
    blockStop(0) +
    textBlock(1, 'a', 'ab') +
    toolBlock(2, 'f', '{"q', '{"q":"é', '{"q":"é","r":1', '{"q":"é","r":1}', '{"q":"é","r":1}') +
    toolBlock(3, 'g', '', '{}') +
    messageDelta('tool_use') +
    messageStop
  const content = [
    { type: 'thinking', thinking: 'Hm, I see it', signature: 'c2ln' },
    { type: 'text', text: 'aab' },
    { type: 'tool_use', input: { q: 'é', r: 1 } },
    { type: 'tool_use', input: {} },
  ]
  const read = contentOfMessages(playNatively('messages', script, [], model))
  assert.deepEqual(read, { content, reason: 'tool_use' })
  const fold = wires.messages.native.openStream({ ...headOf('messages'), model }).folding()
  fold.push(Buffer.from(script))
  const whole = fold.whole()
  assert.ok(whole.state === 'finished')
  const { content: blocks } = JSON.parse(Buffer.from(whole.encode(billed)).toString())
  assert.deepEqual(
    blocks.map(({ id: _, name: __, ...block }: Json) => block),
    content,
  )
  // A later piece for a thought that has ended for the client is a thought of its own, with the new words only.
  const late = messageStart() + thought(0, 'Hm') + textBlock(1, 'a')
  const rest = blockDelta(0, { type: 'thinking_delta', thinking: 'Hm, so' }) + messageDelta('end_turn') + messageStop
  assert.deepEqual(
    contentOfMessages(playNatively('messages', late + rest, [], model))?.content.map(({ thinking }) => thinking),
    ['Hm', undefined, ', so'],
  )
  // Nothing is guessed without the setting.
  assert.equal(contentOfMessages(playNatively('messages', script)), undefined)
})

test('Y4 the setting cumulative also holds for chat and responses clients of a model of their wire', () => {
  const what: Json = { cumulative: ['arguments', 'reasoning'] }
  const eventsOf = (wire: ClientWire, script: string, profile: Json): Json[] =>
    framesOf(playNatively(wire, script, [9, 900], modelOf(wire, {}, profile)))
      .filter(({ data }) => data !== '[DONE]')
      .map(({ data }) => JSON.parse(data))

  const pieces = ['{"q', '{"q":"é', '{"q":"é","r":1', '{"q":"é","r":1}', '{"q":"é","r":1}']
  const thoughts = ['Hm', 'Hm, Ï', 'Hm, Ï', 'Hm, Ï see']
  const detail = (one: string) => ({ reasoning: one, reasoning_details: [{ type: 'reasoning.text', text: one }] })
  const chat =
    thoughts.map((one) => reasoning(one)).join('') +
    thoughts.map((one) => delta(detail(one), { index: 1 })).join('') +
    text('a') +
    text('ab') +
    pieces.map((piece, at) => call([0, at === 0 ? 'c' : undefined, at === 0 ? 'f' : undefined, piece])).join('') +
    call([1, 'd', 'g', '']) +
    call([1, undefined, undefined, '{"a":2']) +
    call([1, undefined, undefined, '{"a":2}']) +
    reason('tool_calls') +
    done
  const readChat = (profile: Json) => {
    const read: Record<string, string> = {}
    const add = (name: string, one: unknown) => {
      if (one) read[name] = `${read[name] ?? ''}${one}`
    }
    for (const { choices } of eventsOf('chat', chat, profile))
      for (const { index, delta } of choices) {
        for (const name of ['content', 'reasoning', 'reasoning_content']) add(`${index} ${name}`, delta[name])
        for (const { text } of delta.reasoning_details ?? []) add(`${index} details`, text)
        for (const one of delta.tool_calls ?? []) add(`call ${one.index}`, one.function.arguments)
      }
    return read
  }
  assert.deepEqual(readChat(what), {
    '0 reasoning_content': 'Hm, Ï see',
    '1 reasoning': 'Hm, Ï see',
    '1 details': 'Hm, Ï see',
    '0 content': 'aab',
    'call 0': '{"q":"é","r":1}',
    'call 1': '{"a":2}',
  })
  // Nothing is guessed without the setting.
  const plain = readChat({})
  assert.deepEqual([plain['0 reasoning_content'], plain['call 1']], [thoughts.join(''), '{"a":2{"a":2}'])

  const whole = functionCall(1, 'f', pieces.at(-1)!)
  const responses = events(
    created,
    added(0, summary(0)),
    ...thoughts.map((one) => summaryDelta(0, 0, one)),
    ...thoughts.map((one) => summaryDelta(0, 1, one)),
    itemDone(0, summary(0, thoughts.at(-1)!, thoughts.at(-1)!)),
    added(1, functionCall(1, 'f', '')),
    ...pieces.map((piece) => argumentsDelta(1, piece)),
    argumentsDone(1, ''),
    itemDone(1, whole),
    terminal('completed', [whole]),
  )
  const readResponses = (profile: Json) => {
    const shown = eventsOf('responses', responses, profile)
    const joined = (type: string, part?: number) =>
      shown.map((event) => (event['type'] === type && event['summary_index'] === part ? event['delta'] : '')).join('')
    return [
      joined('response.reasoning_summary_text.delta', 0),
      joined('response.reasoning_summary_text.delta', 1),
      joined('response.function_call_arguments.delta'),
      shown.find(({ type }) => type === 'response.function_call_arguments.done')?.['arguments'],
    ]
  }
  assert.deepEqual(readResponses(what), ['Hm, Ï see', 'Hm, Ï see', pieces.at(-1), pieces.at(-1)])
  const repeated = [thoughts.join(''), thoughts.join(''), pieces.join(''), pieces.join('')]
  assert.deepEqual(readResponses({}), repeated)
})

test('Y1 Y4 Y5 cumulative arguments of a folded messages call: the last piece counts, or all stay a text', () => {
  const read = (...pieces: string[]) => {
    const calls = toolBlock(0, 'f', ...pieces) + toolBlock(1, 'g', '{"b":2}')
    const answer = folded('messages', messageStart() + calls + messageDelta('tool_use') + messageStop, undefined, true)
    return answer?.['content'].map(({ input }: Json) => input)
  }
  for (const pieces of [
    ['', '{"q', '{"q":1', '{"q":1}'],
    ['{"q', '{"q":1}'],
    ['{"q"', ':1}'],
  ])
    assert.deepEqual(read(...pieces), [{ q: 1 }, { b: 2 }])
  for (const pieces of [
    ['{"q', '{"p":1}'],
    ['{"q', '{"q":'],
  ])
    assert.deepEqual(read(...pieces), [{ _raw_arguments: pieces.join('') }, { b: 2 }])
})

test('Y4 C14 arguments that come again in each piece are estimated once in one answer', () => {
  const whole = JSON.stringify({ text: 'The quick brown fox jumps over the lazy dog. '.repeat(40) })
  const pieces = Array.from({ length: 200 }, (_, at) => whole.slice(0, Math.ceil((whole.length * (at + 1)) / 200)))
  const open = added(0, functionCall(0, 'f', ''))
  const scripts: Record<ClientWire, (pieces: string[]) => string> = {
    chat: (list) =>
      list.map((piece, at) => call([0, at === 0 ? 'c' : undefined, at === 0 ? 'f' : undefined, piece])).join('') +
      reason('tool_calls') +
      done,
    messages: (list) => messageStart() + toolBlock(0, 'f', ...list) + messageDelta('tool_use') + messageStop,
    responses: (list) =>
      events(
        created,
        open,
        ...list.map((piece) => argumentsDelta(0, piece)),
        itemDone(0, functionCall(0, 'f', '')),
        terminal('completed'),
      ),
  }
  for (const wire of ['chat', 'messages', 'responses'] as const)
    for (const cumulative of [[], ['arguments']]) {
      const model = modelOf(wire, {}, { cumulative } as never)
      const estimateOf = (list: string[]) => {
        const fold = wires[wire].native.openStream({ ...headOf(wire), model }).folding()
        fold.push(Buffer.from(scripts[wire](list)))
        const answer = fold.whole()
        assert.ok(answer.state === 'finished')
        return answer.estimateOutput()
      }
      const [once, again] = [estimateOf([whole]), estimateOf(pieces)]
      assert.ok(Math.abs(once - again) <= once / 20, `${wire} ${cumulative}: ${once} and ${again}`)
    }
})

test('Y1 a folded chat answer has each text once, and only texts are joined', () => {
  const detail = { index: 0, type: 'reasoning.text', format: 'vendor-v1' }
  const script =
    delta({ reasoning_details: [{ ...detail, text: 'Hm ' }] }) +
    delta({ reasoning_details: [{ ...detail, text: 'é', signature: 's' }] }) +
    chatChunk({ delta: { content: 'Hé' }, native_finish_reason: 'end_turn' }) +
    chatChunk({ delta: {}, finish_reason: 'stop', native_finish_reason: 'end_turn' }) +
    done
  const [choice] = folded('chat', script)!['choices']
  assert.equal(choice.native_finish_reason, 'end_turn')
  assert.equal(choice.message.content, 'Hé')
  assert.deepEqual(choice.message.reasoning_details, [{ ...detail, text: 'Hm é', signature: 's' }])
})

test('Y1 the parts and texts of a chat content that changes its form are all in the folded answer', () => {
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: 'Hm' }] }
  const part = (words: string) => ({ type: 'text', text: words })
  const rows: [pieces: unknown[], content: unknown][] = [
    [
      ['', [thinking], 'H', 'é'],
      [thinking, part('H'), part('é')],
    ],
    [
      ['H', [part('é')], ' you'],
      [part('H'), part('é'), part(' you')],
    ],
    [
      [[part('H')], '', [part('é')]],
      [part('H'), part('é')],
    ],
    [
      ['H', part('é')],
      [part('H'), part('é')],
    ],
  ]
  for (const [pieces, content] of rows) {
    const script = pieces.map((piece) => delta({ content: piece })).join('') + reason('stop') + done
    assert.deepEqual(folded('chat', script)?.['choices'][0].message.content, content)
  }
})

test('Y1 no member of a folded stream changes the prototype of all objects', () => {
  const hidden = (rest: string) => `{"__proto__":{"polluted":"yes"}${rest}}`
  for (const at of ['delta', 'choice', 'call']) {
    const own = (name: string, rest: string) => (name === at ? hidden(`,${rest}`) : `{${rest}}`)
    const fn = own('call', '"name":"f","arguments":"{}"')
    const said = own('delta', `"content":"Hi","tool_calls":[{"index":0,"id":"c","function":${fn}}]`)
    const chunk = `data: {"id":"x","choices":[${own('choice', `"index":0,"delta":${said}`)}]}\n\n`
    assert.ok(folded('chat', chunk + chunk + reason('tool_calls') + done))
  }
  for (const type of ['text_delta', '__proto__', 'constructor', 'toString']) {
    const script = messageStart() + textBlock(0, 'Hi') + messageDelta('end_turn') + messageStop
    folded('messages', script.replace('{"type":"text_delta"', `{"__proto__":{"polluted":"yes"},"type":"${type}"`))
  }
  assert.equal(({} as { polluted?: string }).polluted, undefined)
})
