import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import fc from 'fast-check'
import type { ClientWire } from '../../src/catalog/wire-names.ts'
import { bound } from '../support/account-refusals.ts'
import { testModel } from '../support/gateway.ts'
import { runsUpTo } from '../support/runs.ts'
import type { Json } from './cases.ts'
import { accumulate } from './clients.ts'
import {
  directions,
  errorOf,
  json,
  paths,
  plainModels,
  type ScriptedGateway,
  say,
  sse,
  startScriptedGateway,
  wires,
  wishes,
} from './support/scripted.ts'
import {
  blockStart,
  blockStop,
  call,
  completion,
  counts,
  created,
  done,
  events,
  message,
  messageDelta,
  messageStart,
  messageStop,
  reason,
  terminal,
  textBlock,
  thinkingBlock,
  toolBlock,
  usage,
  wholeMessage,
} from './upstreams.ts'

/** What the upstream of every pair is asked through the gateway, and what is refused before it is asked. */

let gateway: ScriptedGateway
before(async () => {
  const keyed = testModel('keyed-chat', 'chat', {
    upstream_model: 'hosted-model',
    profile: { accepts: ['prompt_cache_key'] },
  })
  const twin = { ...plainModels()[0]!, id: 'twin-messages' }
  const claude = { ...plainModels()[0]!, id: 'claude-messages', profile: 'anthropic-always-thinking' }
  const kimi = testModel('kimi-chat', 'chat', { upstream_model: 'hosted-model', profile: 'moonshot' })
  gateway = await startScriptedGateway({ models: [...plainModels(), keyed, twin, claude, kimi] })
})
after(() => gateway.close())

const plainAnswers: Record<ClientWire, string> = {
  messages: messageStart() + textBlock(0, 'Hi') + messageDelta('end_turn') + messageStop,
  chat: completion({ content: 'Hi' }),
  responses: events(created, ...wholeMessage(0, 'Hi'), terminal('completed', [message(0, 'Hi')])),
}

function playPlain(wire: ClientWire): void {
  gateway.play(wire === 'chat' ? json(plainAnswers.chat) : sse(plainAnswers[wire]))
}

const tool: Record<ClientWire, Json> = {
  messages: { name: 'f', input_schema: { type: 'object' } },
  chat: { type: 'function', function: { name: 'f', parameters: { type: 'object' } } },
  responses: { type: 'function', name: 'f', parameters: { type: 'object' } },
}

/** A field that is refused on each client's wire, and the field that is named. */
const refused: Record<ClientWire, { body: Json; param: string }[]> = {
  messages: [
    { body: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, param: 'tools' },
    { body: { mcp_servers: [{ url: 'x' }] }, param: 'mcp_servers' },
    { body: { messages: [remoteImage('source', { type: 'url', url: 'https://x.example/a.png' })] }, param: 'messages' },
  ],
  chat: [
    { body: { n: 2 }, param: 'n' },
    { body: { tool_choice: { type: 'function', function: { name: 'g' } }, tools: [tool.chat] }, param: 'tool_choice' },
    { body: { messages: [remoteImage('image_url', { url: 'https://x.example/a.png' })] }, param: 'messages' },
  ],
  responses: [
    { body: { tools: [{ type: 'web_search' }] }, param: 'tools' },
    { body: { tools: [tool.responses, { type: 'custom', name: 'c' }] }, param: 'tools' },
    { body: { input: [{ type: 'compaction', encrypted_content: 'x' }] }, param: 'input' },
    { body: { input: [remoteImage('image_url', 'https://x.example/a.png')] }, param: 'input' },
  ],
}

function remoteImage(key: string, value: unknown): Json {
  const type = key === 'source' ? 'image' : key === 'image_url' && typeof value === 'string' ? 'input_image' : key
  return { role: 'user', content: [{ type, [key]: value }] }
}

for (const { client, wire } of directions) {
  const pair = `${client} client, ${wire} model`

  test(`Q111 T8 the same request twice leads to the same upstream bytes (${pair})`, async () => {
    playPlain(wire)
    const body = say(client, wire, { ...wishes[client], tools: [tool[client]] })
    for (let i = 0; i < 2; i++) assert.equal((await gateway.post(paths[client], body)).status, 200)
    assert.equal(gateway.asked[0]!.text, gateway.asked[1]!.text)
    assert.equal(gateway.asked[0]!.path, paths[wire])
    assert.equal(gateway.asked[0]!.body['model'], 'hosted-model')
  })

  for (const { body, param } of refused[client]) {
    test(`R9 T3 T6 T18 a request that cannot be translated gets 400 ${param}, is not billed, and no upstream is asked (${pair})`, async () => {
      playPlain(wire)
      for (const stream of [true, false]) {
        const response = await gateway.post(paths[client], say(client, wire, { ...body, stream }))
        const told = await response.text()
        assert.equal(response.status, 400, told)
        assert.equal(errorOf(told)['type'], 'invalid_request_error')
        if (client === 'messages') assert.match(errorOf(told)['message'], /remove|send/)
        else assert.deepEqual([errorOf(told)['param'], errorOf(told)['code']], [param, 'invalid_body'])
        assert.equal(response.headers.get('x-should-retry'), 'false')
        const id = response.headers.get('x-request-id')!
        await gateway.logOf(id)
        assert.equal(gateway.store.findEntry(id), undefined)
      }
      assert.deepEqual(gateway.asked, [])
    })
  }
}

const lossy: Record<ClientWire, { body: Json; losses: Partial<Record<ClientWire, string[]>> }> = {
  messages: {
    body: { top_k: 3, service_tier: 'auto', 'canary-own-field': 'canary-value' },
    losses: { chat: ['service_tier', '(unknown)', 'top_k'], responses: ['service_tier', '(unknown)', 'top_k'] },
  },
  chat: {
    body: { seed: 1, logit_bias: {}, temperature: 1.7, verbosity: 'low' },
    losses: { messages: ['seed', 'logit_bias', 'temperature', 'verbosity'], responses: ['seed', 'logit_bias'] },
  },
  responses: {
    body: { truncation: 'auto', metadata: { a: 'canary-meta' }, max_output_tokens: 99_999 },
    losses: { messages: ['truncation', 'metadata', 'max_output'], chat: ['truncation', 'metadata', 'max_output'] },
  },
}

for (const { client, wire } of directions) {
  test(`T9 U5 losses are in the access log, by name only (${client} client, ${wire} model)`, async () => {
    playPlain(wire)
    const response = await gateway.post(paths[client], say(client, wire, lossy[client].body))
    assert.equal(response.status, 200, await response.text())
    const line = await gateway.logOf(response.headers.get('x-request-id')!)
    assert.deepEqual([...(line['losses'] as string[])].sort(), [...lossy[client].losses[wire]!].sort())
    assert.doesNotMatch(JSON.stringify(line), /canary/)
  })
}

test('Q112 P6 the same conversation key of two accounts becomes two upstream keys, which stay the same', async () => {
  playPlain('chat')
  gateway.store.createAccount('other', 10_000_000_000n)
  const { key: otherKey } = gateway.store.createKey('other')
  await gateway.untilKnown(otherKey)
  playPlain('chat')
  const asking: [ClientWire, Json, Record<string, string>][] = [
    ['responses', say('responses', 'chat', { prompt_cache_key: 'k' }), {}],
    ['messages', say('messages', 'chat'), { 'x-session-id': 'k' }],
  ]
  const sent = new Map<string, unknown[]>()
  for (const key of [gateway.key, otherKey]) {
    for (const [client, body, headers] of asking) {
      const more = { ...headers, authorization: `Bearer ${key}` }
      const response = await gateway.post(paths[client], { ...body, model: 'keyed-chat' }, more)
      assert.equal(response.status, 200, await response.text())
      sent.set(key, [...(sent.get(key) ?? []), gateway.asked.at(-1)!.body['prompt_cache_key']])
    }
  }
  const [mine, others] = [...sent.values()] as [string[], string[]]
  assert.match(mine[0]!, /^[0-9a-f]{63}$/)
  assert.equal(mine[0], mine[1])
  assert.equal(others[0], others[1])
  assert.notEqual(mine[0], others[0])
})

for (const client of ['chat', 'responses'] as const) {
  test(`T5 A2 a ${client} client's conversation gets cache marks for a messages model, with or without a key; a single request does not`, async () => {
    playPlain('messages')
    const system = { role: 'system', content: 'Be brief.' }
    const turns = [
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Hi' },
      { role: 'user', content: 'Two' },
    ]
    const list = { [client === 'chat' ? 'messages' : 'input']: [system, ...turns] }
    const body = say(client, 'messages', { ...list, tools: [tool[client]] })
    await gateway.post(paths[client], { ...body, prompt_cache_key: 'k' })
    await gateway.post(paths[client], body)
    await gateway.post(paths[client], say(client, 'messages', {}))
    const [marked, unnamed, shot] = gateway.asked.map(({ body: asked }) => asked)
    const mark = { type: 'ephemeral' }
    assert.deepEqual(marked!['tools'].at(-1).cache_control, mark)
    assert.deepEqual(marked!['system'].at(-1).cache_control, mark)
    assert.deepEqual(
      marked!['messages'].map((turn: Json) => turn['content'].at(-1).cache_control),
      [mark, undefined, mark],
    )
    assert.deepEqual(unnamed, marked)
    assert.doesNotMatch(JSON.stringify(shot), /cache_control/)
  })
}

for (const stream of [true, false]) {
  test(`R-NAME a name that begins with a digit is another one for Kimi, and the client's own in the call (${stream ? 'stream' : 'JSON'})`, async () => {
    const tools = [{ name: '21st_magic', input_schema: { type: 'object' } }]
    const body = { ...say('messages', 'chat', { tools, stream }), model: 'kimi-chat' }
    gateway.play((response) => {
      const { name } = gateway.asked.at(-1)!.body['tools'][0].function
      assert.match(name, /^t_21st_magic_/)
      const tool_calls = [{ id: 'c1', type: 'function', function: { name, arguments: '{}' } }]
      const streamed = call([0, 'c1', name, '{}']) + reason('tool_calls') + usage(counts(5, 3)) + done
      const whole = completion({ content: null, tool_calls }, 'tool_calls')
      return (stream ? sse(streamed) : json(whole))(response)
    })
    const response = await gateway.post(paths.messages, body)
    const told = await response.text()
    assert.equal(response.status, 200, told)
    const { content } = stream ? accumulate('messages', told) : JSON.parse(told)
    assert.equal(content[0].name, '21st_magic')
  })
}

const thoughtful =
  messageStart() +
  thinkingBlock(0, 'hm', 'canary-signature') +
  textBlock(1, 'Hi') +
  messageDelta('end_turn') +
  messageStop
const sealing = { include: ['reasoning.encrypted_content'], ...wishes.responses }
const nextTurn = (output: Json[]) => [{ role: 'user', content: 'Hello' }, ...output, { role: 'user', content: 'And?' }]

/** The reasoning item of an answer to a responses client, and all its items. */
async function firstTurn(stream: boolean, more: Json): Promise<{ sealed: Json; output: Json[] }> {
  gateway.play(sse(thoughtful))
  const response = await gateway.post(paths.responses, say('responses', 'messages', { ...more, stream }))
  const told = await response.text()
  assert.equal(response.status, 200, told)
  assert.doesNotMatch(told, /canary-signature/)
  const { output } = stream ? accumulate('responses', told) : JSON.parse(told)
  return { sealed: output[0], output }
}

/** The assistant's blocks as the upstream gets them in the next turn. */
async function givenBack(output: Json[], model = 'plain-messages', headers = {}): Promise<Json[]> {
  const body = { ...say('responses', 'messages', sealing), model, input: nextTurn(output) }
  const response = await gateway.post(paths.responses, body, headers)
  assert.equal(response.status, 200, await response.text())
  return gateway.asked.at(-1)!.body['messages'][1].content
}

for (const stream of [true, false]) {
  test(`T7 a signature is sent sealed and restored on the next turn (${stream ? 'stream' : 'JSON'})`, async () => {
    const { sealed, output } = await firstTurn(stream, sealing)
    assert.equal(sealed['type'], 'reasoning')
    assert.match(sealed['encrypted_content'], /^tw1\.[\w-]+$/)
    const blocks = await givenBack(output)
    assert.deepEqual(blocks, [
      { type: 'thinking', thinking: 'hm', signature: 'canary-signature' },
      { type: 'text', text: 'Hi' },
    ])
  })
}

for (const stream of [true, false]) {
  test(`U13 T7 thinking that Claude refuses after a change before it is left out, and the request sent again (${stream ? 'stream' : 'JSON'})`, async () => {
    const model = 'claude-messages'
    const redacted = { type: 'redacted_thinking', data: 'canary-redacted' }
    const thought = thinkingBlock(0, 'hm', 'canary-signature') + blockStart(1, redacted) + blockStop(1)
    const answer = messageStart() + thought + textBlock(2, 'Hi') + messageDelta('end_turn') + messageStop
    gateway.play(sse(answer))
    const first = await gateway.post(paths.responses, { ...say('responses', 'messages', sealing), model })
    const { output } = (await first.json()) as { output: Json[] }
    const refusal = { type: 'error', error: { type: 'invalid_request_error', message: bound } }
    const body = { ...say('responses', 'messages', { ...sealing, stream }), model, input: nextTurn(output) }
    gateway.play(json(JSON.stringify(refusal), 400), sse(answer))
    const second = await gateway.post(paths.responses, body)
    assert.equal(second.status, 200, await second.text())
    const [refused, again, ...rest] = gateway.asked.map(({ body: asked }) => asked)
    assert.deepEqual(
      refused!['messages'][1].content.map(({ type }: Json) => type),
      ['thinking', 'redacted_thinking', 'text'],
    )
    const messages = refused!['messages'].with(1, { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] })
    assert.deepEqual([again, rest], [{ ...refused, messages }, []])
    gateway.play(json(JSON.stringify(refusal), 400), json(JSON.stringify(refusal), 400))
    const third = await gateway.post(paths.responses, body)
    assert.equal(third.status, 400)
    assert.match(await third.text(), /bound to a different conversation/)
  })
}

test('T7 redacted thinking is sent as an item with an empty summary and restored', async () => {
  const redacted = { type: 'redacted_thinking', data: 'canary-redacted' }
  const answer = messageStart() + blockStart(0, redacted) + blockStop(0) + textBlock(1, 'Hi')
  gateway.play(sse(answer + messageDelta('end_turn') + messageStop))
  const response = await gateway.post(paths.responses, say('responses', 'messages', sealing))
  const { output } = (await response.json()) as { output: Json[] }
  assert.deepEqual(output[0]!['summary'], [])
  assert.match(output[0]!['encrypted_content'], /^tw1\./)
  assert.deepEqual(await givenBack(output), [redacted, { type: 'text', text: 'Hi' }])
})

/** The blocks of an answer in any order, but none that ends in thinking, which no model sends; texts stand apart (I7). */
const orders = fc
  .array(fc.constantFrom('thinking', 'redacted', 'text', 'call', 'call'), { minLength: 1, maxLength: 7 })
  .map((kinds) => kinds.filter((kind, place) => kind !== 'text' || kinds[place - 1] !== 'text'))
  .filter((kinds) => kinds.at(-1) === 'text' || kinds.at(-1) === 'call')

/** The places of the outputs among the items that a client sends back. */
const placings = fc.constantFrom<string>('at the end', 'reversed', 'after thoughts', 'after the first thought')

/** @returns the stream of one block, and the block that its model gets back */
function blockOf(kind: string, place: number): [stream: string, block: Json] {
  const data = `canary-data-${place}`
  switch (kind) {
    case 'thinking':
      return [thinkingBlock(place, `hm ${place}`, data), { type: kind, thinking: `hm ${place}`, signature: data }]
    case 'redacted': {
      const block = { type: 'redacted_thinking', data }
      return [blockStart(place, block) + blockStop(place), block]
    }
    case 'text':
      return [textBlock(place, `said ${place}`), { type: 'text', text: `said ${place}` }]
    default:
      return [toolBlock(place, 'f', `{"n":${place}}`), { type: 'tool_use', name: 'f', input: { n: place } }]
  }
}

test('BUG-2 Y2 the blocks of a turn return to a messages model in their original order', async () => {
  await fc.assert(
    fc.asyncProperty(orders, fc.boolean(), placings, async (kinds, stream, placing) => {
      const blocks = kinds.map(blockOf)
      const streams = blocks.map(([part]) => part).join('')
      gateway.play(sse(messageStart() + streams + messageDelta('end_turn') + messageStop))
      const more = { ...sealing, tools: [tool.responses], stream }
      const answered = await gateway.post(paths.responses, say('responses', 'messages', more))
      const told = await answered.text()
      assert.equal(answered.status, 200, told)
      const { output }: { output: Json[] } = stream ? accumulate('responses', told) : JSON.parse(told)
      const outputs = output
        .filter(({ type }) => type === 'function_call')
        .map(({ call_id }) => ({ type: 'function_call_output', call_id, output: 'r' }))
      if (placing === 'reversed') outputs.reverse()
      // A client that runs a call at once has its output before the next call, and so between a thought and its call.
      const isEarly = ({ call_id }: Json, place: number) =>
        placing === 'after the first thought' || output.slice(0, place).some((item) => item['call_id'] === call_id)
      const first = output.findIndex(({ type }) => type === 'reasoning')
      const items = output.flatMap((item, place) => {
        const isThere = placing === 'after thoughts' ? item['type'] === 'reasoning' : place === first && first === 0
        if (!isThere || !placing.startsWith('after')) return [item]
        const early = outputs.filter((one) => isEarly(one, place))
        for (const one of early) outputs.splice(outputs.indexOf(one), 1)
        return [item, ...early]
      })
      const returned = await givenBack([...items, ...outputs])
      assert.deepEqual(
        returned.map(({ id: _, ...block }) => block),
        blocks.map(([, block]) => block),
      )
      const results: Json[] = gateway.asked.at(-1)!.body['messages'][2].content
      assert.deepEqual(
        results.flatMap(({ tool_use_id }) => tool_use_id ?? []),
        returned.flatMap(({ type, id }) => (type === 'tool_use' ? id : [])),
      )
    }),
    {
      numRuns: runsUpTo(40),
      examples: ['after thoughts', 'after the first thought'].map((placing) => [
        ['thinking', 'call', 'thinking', 'call', 'redacted', 'thinking', 'call', 'text'],
        true,
        placing,
      ]),
    },
  )
})

test('T7 an envelope that was changed, or is of another model or account, is ignored', async () => {
  const { sealed, output } = await firstTurn(false, sealing)
  const onlyText = [{ type: 'text', text: 'Hi' }]
  assert.deepEqual(await givenBack(output, 'twin-messages'), onlyText)
  const text: string = sealed['encrypted_content']
  const changed = text.slice(0, 40) + (text[40] === 'A' ? 'B' : 'A') + text.slice(41)
  assert.deepEqual(await givenBack([{ ...sealed, encrypted_content: changed }, output[1]!]), onlyText)
  gateway.store.createAccount('stranger', 10_000_000_000n)
  const { key } = gateway.store.createKey('stranger')
  await gateway.untilKnown(key)
  gateway.play(sse(thoughtful))
  assert.deepEqual(await givenBack(output, 'plain-messages', { authorization: `Bearer ${key}` }), onlyText)
})

test('T7 reasoning that was not asked for is not sent: without include, and without summary', async () => {
  const { sealed } = await firstTurn(false, wishes.responses)
  assert.equal(sealed['encrypted_content'], undefined)
  const { output } = await firstTurn(false, { include: sealing.include, reasoning: { effort: 'high' } })
  assert.deepEqual(
    output.map((item) => item['type']),
    ['message'],
  )
})

test('P1 T7 native models get neither our envelopes nor unsigned thinking when a conversation changes models', async () => {
  const { output } = await firstTurn(false, sealing)
  playPlain('responses')
  gateway.play(json(JSON.stringify(terminal('completed', [message(0, 'Hi')])['response'])))
  await gateway.post(paths.responses, say('responses', 'responses', { input: nextTurn(output) }))
  const items: Json[] = gateway.asked[0]!.body['input']
  assert.deepEqual(
    items.map((item) => item['type'] ?? item['role']),
    ['user', 'message', 'user'],
  )
  const content = [
    { type: 'thinking', thinking: 'hm', signature: '' },
    { type: 'text', text: 'Hi' },
  ]
  const messages = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content },
    { role: 'user', content: 'And?' },
  ]
  await gateway.post(paths.messages, say('messages', 'messages', { messages }))
  assert.deepEqual(gateway.asked[1]!.body['messages'][1].content, [{ type: 'text', text: 'Hi' }])
})

test('TS1 every model answers on every wire', async () => {
  for (const client of wires) {
    for (const wire of wires.filter((name) => name !== client)) {
      playPlain(wire)
      assert.equal((await gateway.post(paths[client], say(client, wire))).status, 200)
      assert.equal(gateway.asked[0]!.path, paths[wire])
    }
  }
})
