import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

let simulator: Simulator
let client: Anthropic
before(async () => {
  simulator = await startSimulator()
  client = new Anthropic({ apiKey: 'k', baseURL: simulator.url, maxRetries: 0 })
})
after(() => simulator.close())

const weather: Anthropic.Tool = {
  name: 'get_weather',
  description: 'Weather of a city',
  input_schema: {
    type: 'object',
    properties: { city: { type: 'string' }, unit: { enum: ['celsius', 'fahrenheit'] }, days: { type: 'integer' } },
    required: ['city', 'unit'],
  },
}
const ask = (text: string) => ({ model: 'sim', max_tokens: 500, messages: [{ role: 'user' as const, content: text }] })

test('spec 2.3 a whole answer repeats the question and has exact counts', async () => {
  const message = await client.messages.create(ask('What is the capital of France?'))
  assert.match(message.id, /^msg_/)
  assert.deepEqual(message.content, [
    {
      type: 'text',
      text: 'You said: "What is the capital of France?" I am a simulated model and saw 1 message.',
    },
  ])
  assert.equal(message.stop_reason, 'end_turn')
  assert.equal(message.usage.input_tokens, 12)
  assert.equal(message.usage.output_tokens, 23)
  assert.equal(message.usage.cache_read_input_tokens, 0)
})

test('spec 6.1 the stream has the vendor’s events in order and adds up to the whole answer', async () => {
  const whole = await client.messages.create(ask('Hello there'))
  const stream = client.messages.stream(ask('Hello there'))
  const types: string[] = []
  stream.on('streamEvent', (event) => {
    if (types.at(-1) !== event.type) types.push(event.type)
  })
  const message = await stream.finalMessage()
  assert.deepEqual(message.content, whole.content)
  assert.deepEqual(types, [
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ])
  assert.equal(message.usage.output_tokens, whole.usage.output_tokens)
})

test('spec 6.1 a ping follows message_start, and the start counts one output token', async () => {
  const response = await fetch(`${simulator.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': 'k' },
    body: JSON.stringify({ ...ask('Hi'), stream: true }),
  })
  const text = await response.text()
  const events = text.split('\n').filter((line) => line.startsWith('event: '))
  assert.deepEqual(events.slice(0, 3), ['event: message_start', 'event: ping', 'event: content_block_start'])
  assert.match(text, /"output_tokens":1,/)
  assert.ok(response.headers.get('request-id')?.startsWith('req_'))
})

test('wires/message-wire 4 tools are called on request, with arguments that are given or made from the schema', async () => {
  const made = await client.messages.create({ ...ask('Please call get_weather now'), tools: [weather] })
  assert.equal(made.stop_reason, 'tool_use')
  assert.deepEqual(toolUses(made), [{ name: 'get_weather', input: { city: 'sample city', unit: 'celsius' } }])
  const given = await client.messages
    .stream({
      ...ask('call get_weather {"city":"Paris","unit":"celsius"} and get_weather {"city":"Rome","unit":"celsius"}'),
      tools: [weather],
    })
    .finalMessage()
  assert.deepEqual(toolUses(given), [
    { name: 'get_weather', input: { city: 'Paris', unit: 'celsius' } },
    { name: 'get_weather', input: { city: 'Rome', unit: 'celsius' } },
  ])
})

test('wires/message-wire 4.2 tool_choice and disable_parallel_tool_use are obeyed', async () => {
  const other: Anthropic.Tool = { ...weather, name: 'other' }
  const tools = [weather, other]
  const forced = await client.messages.create({ ...ask('Hi'), tools, tool_choice: { type: 'tool', name: 'other' } })
  assert.deepEqual(
    toolUses(forced).map((use) => use.name),
    ['other'],
  )
  const any = await client.messages.create({ ...ask('Hi'), tools, tool_choice: { type: 'any' } })
  assert.deepEqual(
    toolUses(any).map((use) => use.name),
    ['get_weather'],
  )
  const both = 'use other and get_weather'
  const none = await client.messages.create({ ...ask(both), tools, tool_choice: { type: 'none' } })
  assert.equal(none.stop_reason, 'end_turn')
  const parallel = await client.messages.create({ ...ask(both), tools })
  assert.deepEqual(
    toolUses(parallel).map((use) => use.name),
    ['other', 'get_weather'],
  )
  const single = await client.messages.create({
    ...ask(both),
    tools,
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
  })
  assert.deepEqual(
    toolUses(single).map((use) => use.name),
    ['other'],
  )
})

test('an agent loop with thinking ends in a text that quotes the result', async () => {
  const thinking = { type: 'adaptive' as const, display: 'summarized' as const }
  const messages: Anthropic.MessageParam[] = [{ role: 'user', content: 'Use the tool, please' }]
  const first = await client.messages.create({ model: 'sim', max_tokens: 900, messages, tools: [weather], thinking })
  assert.deepEqual(
    first.content.map((block) => block.type),
    ['thinking', 'tool_use'],
  )
  const use = first.content.find((block) => block.type === 'tool_use')!
  messages.push({ role: 'assistant', content: first.content })
  messages.push({ role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'Sunny, 21°' }] })
  const second = await client.messages.create({ model: 'sim', max_tokens: 900, messages, tools: [weather], thinking })
  assert.equal(second.stop_reason, 'end_turn')
  assert.equal(textOf(second), 'The tool get_weather returned "Sunny, 21°".')
})

test('an image or a file in a tool result counts as one beside it', async () => {
  const use = { type: 'tool_use', id: 'toolu_1', name: 'get_weather', input: {} }
  const source = { type: 'text', media_type: 'text/plain', data: 'Sunny' }
  const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }
  const countOf = async (...content: object[]) => {
    const result = { type: 'tool_result', tool_use_id: use.id, content }
    const messages = [
      { role: 'user', content: 'Go' },
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result, { type: 'text', text: 'What is it?' }] },
    ]
    const message = await client.messages.create({ model: 'sim', max_tokens: 900, messages, tools: [weather] } as never)
    return [message.usage.input_tokens, textOf(message)] as const
  }
  const [without] = await countOf({ type: 'text', text: 'Sunny' })
  for (const [block, noun] of [
    [{ type: 'document', source }, /1 file\./],
    [image, /1 image\./],
  ] as const) {
    const [tokens, text] = await countOf(block)
    assert.ok(tokens >= without + 100, `${block.type}: ${tokens} beside ${without}`)
    assert.match(text, noun)
  }
})

test('wires/message-wire 5.1 omitted thinking has a signature and no text, and is billed', async () => {
  const thinking = { type: 'adaptive' as const, display: 'omitted' as const }
  const message = await client.messages.stream({ ...ask('Hi'), thinking }).finalMessage()
  const block = message.content[0]!
  assert.ok(block.type === 'thinking' && block.thinking === '' && block.signature.length > 20)
  const plain = await client.messages.create(ask('Hi'))
  assert.ok(message.usage.output_tokens > plain.usage.output_tokens)
})

test('wires/message-wire 3.4 a signature that the simulator did not make is refused', async () => {
  const messages: Anthropic.MessageParam[] = [
    { role: 'user', content: 'Hi' },
    { role: 'assistant', content: [{ type: 'thinking', thinking: 'Hm', signature: '' }] },
    { role: 'user', content: 'Go on' },
  ]
  await assert.rejects(client.messages.create({ model: 'sim', max_tokens: 50, messages }), (error) => {
    assert.ok(error instanceof Anthropic.BadRequestError)
    assert.match(error.message, /messages\.1\.content\.0\.signature/)
    return true
  })
})

test('stop sequences and the output cap end the text at their place', async () => {
  const stopped = await client.messages.create({ ...ask('Hi'), stop_sequences: ['simulated'] })
  assert.equal(textOf(stopped), 'You said: "Hi" I am a ')
  assert.equal(stopped.stop_reason, 'stop_sequence')
  assert.equal(stopped.stop_sequence, 'simulated')
  const capped = await client.messages.create({ ...ask('Hi'), max_tokens: 4 })
  assert.equal(textOf(capped), 'You said: "')
  assert.equal(capped.stop_reason, 'max_tokens')
  assert.equal(capped.usage.output_tokens, 4)
})

test('wires/message-wire 5.3 structured output is JSON that fits the schema', async () => {
  const schema = {
    type: 'object',
    properties: { title: { type: 'string' }, tags: { type: 'array', items: { type: 'string' } } },
  }
  const message = await client.messages.create({
    ...ask('Hi'),
    output_config: { format: { type: 'json_schema', schema } },
  })
  assert.deepEqual(JSON.parse(textOf(message)), { title: 'sample title', tags: ['sample tags'] })
})

test('wires/message-wire 6 a marked prefix is written once and then read, and no token is in two counters', async () => {
  const system: Anthropic.TextBlockParam[] = [
    { type: 'text', text: 'You are careful. '.repeat(40), cache_control: { type: 'ephemeral' } },
  ]
  const first = await client.messages.create({ ...ask('One'), system })
  const second = await client.messages.create({ ...ask('Two'), system })
  const written = first.usage.cache_creation_input_tokens!
  assert.ok(written > 64)
  assert.equal(first.usage.cache_read_input_tokens, 0)
  assert.equal(second.usage.cache_creation_input_tokens, 0)
  assert.equal(second.usage.cache_read_input_tokens, written)
  assert.equal(second.usage.input_tokens, first.usage.input_tokens)
})

test('the same request has the same answer, and another id', async () => {
  const [one, two] = await Promise.all([client.messages.create(ask('Same')), client.messages.create(ask('Same'))])
  assert.notEqual(one.id, two.id)
  assert.deepEqual(one.content, two.content)
  assert.deepEqual(one.usage, two.usage)
})

test('a request without a key gets the vendor’s 401', async () => {
  const response = await fetch(`${simulator.url}/v1/messages`, { method: 'POST', body: JSON.stringify(ask('Hi')) })
  assert.equal(response.status, 401)
  const body = (await response.json()) as { type: string; error: { type: string } }
  assert.equal(body.type, 'error')
  assert.equal(body.error.type, 'authentication_error')
})

function textOf(message: Anthropic.Message): string {
  return message.content.map((block) => (block.type === 'text' ? block.text : '')).join('')
}

function toolUses(message: Anthropic.Message): { name: string; input: unknown }[] {
  return message.content.flatMap((block) =>
    block.type === 'tool_use' ? [{ name: block.name, input: block.input }] : [],
  )
}
