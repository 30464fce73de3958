import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import OpenAI from 'openai'
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts'

let simulator: Simulator
let client: OpenAI
before(async () => {
  simulator = await startSimulator()
  client = new OpenAI({ apiKey: 'k', baseURL: `${simulator.url}/v1`, maxRetries: 0 })
})
after(() => simulator.close())

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const weather: OpenAI.ChatCompletionTool = { type: 'function', function: { name: 'get_weather', parameters } }
const clock: OpenAI.ChatCompletionTool = { type: 'function', function: { name: 'get_time' } }
const ask = (text: string) => ({ model: 'sim', messages: [{ role: 'user' as const, content: text }] })

test('spec 2.6 a whole answer counts the tokens that it received', async () => {
  const image = { type: 'image_url' as const, image_url: { url: 'data:image/png;base64,AAAA' } }
  const completion = await client.chat.completions.create({
    model: 'sim',
    messages: [
      { role: 'system', content: 'Be brief' },
      { role: 'user', content: [image, { type: 'text', text: 'What is this?' }] },
    ],
    tools: [weather, clock],
  })
  assert.match(completion.id, /^chatcmpl-/)
  assert.equal(
    completion.choices[0]!.message.content,
    'You said: "What is this?" I am a simulated model and saw 2 messages, 2 tools (get_weather, get_time), 1 image.',
  )
  assert.equal(completion.choices[0]!.finish_reason, 'stop')
  const usage = completion.usage!
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)
  assert.equal(usage.prompt_tokens_details!.cached_tokens, 0)
})

test('spec 6.2 the stream adds up to the whole answer, with a usage chunk only if asked', async () => {
  const whole = await client.chat.completions.create(ask('Hello'))
  const request = { ...ask('Hello'), stream_options: { include_usage: true } }
  const streamed = await client.chat.completions.stream(request).finalChatCompletion()
  assert.equal(streamed.choices[0]!.message.content, whole.choices[0]!.message.content)
  assert.deepEqual(streamed.usage, whole.usage)
  const frames = await framesOf({ ...ask('Hello'), stream: true })
  assert.equal(frames.at(-1), '[DONE]')
  assert.equal(
    frames.some((frame) => frame.includes('"usage"')),
    false,
  )
  assert.deepEqual(JSON.parse(frames.at(-2)!).choices[0], {
    index: 0,
    delta: {},
    logprobs: null,
    finish_reason: 'stop',
  })
  const withUsage = await framesOf({ ...request, stream: true })
  assert.deepEqual(JSON.parse(withUsage.at(-2)!).choices, [])
})

test('wires/chat-wire 8.3 parallel calls stream by index, the first fragment with id, type and name', async () => {
  const request = { ...ask('call get_weather {"city":"Paris"} and get_time'), tools: [weather, clock] }
  const streamed = await client.chat.completions.stream(request).finalChatCompletion()
  const choice = streamed.choices[0]!
  assert.equal(choice.finish_reason, 'tool_calls')
  assert.equal(choice.message.content, null)
  const calls = choice.message.tool_calls!.map((call) => call.type === 'function' && call.function)
  assert.deepEqual(
    calls.map((call) => call && [call.name, call.arguments]),
    [
      ['get_weather', '{"city":"Paris"}'],
      ['get_time', '{}'],
    ],
  )
  const single = await client.chat.completions.create({ ...request, parallel_tool_calls: false })
  assert.equal(single.choices[0]!.message.tool_calls!.length, 1)
})

test('wires/chat-wire 4 tool_choice required, named, none and allowed_tools are obeyed', async () => {
  const tools = [weather, clock]
  const called = async (tool_choice: OpenAI.ChatCompletionToolChoiceOption) => {
    const completion = await client.chat.completions.create({ ...ask('Hi'), tools, tool_choice })
    return completion.choices[0]!.message.tool_calls?.map((call) => call.type === 'function' && call.function.name)
  }
  assert.deepEqual(await called('required'), ['get_weather'])
  assert.deepEqual(await called({ type: 'function', function: { name: 'get_time' } }), ['get_time'])
  assert.equal(await called('none'), undefined)
  const allowed = { mode: 'required' as const, tools: [{ type: 'function', function: { name: 'get_time' } }] }
  assert.deepEqual(await called({ type: 'allowed_tools', allowed_tools: allowed }), ['get_time'])
})

test('the result of a tool is quoted in the answer', async () => {
  const first = await client.chat.completions.create({ ...ask('use get_time'), tools: [clock] })
  const message = first.choices[0]!.message
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'user', content: 'use get_time' },
    message,
    { role: 'tool', tool_call_id: message.tool_calls![0]!.id, content: '12:30' },
  ]
  const second = await client.chat.completions.create({ model: 'sim', messages, tools: [clock] })
  assert.equal(second.choices[0]!.message.content, 'The tool get_time returned "12:30".')
})

test('the results of parallel calls are all quoted in one answer', async () => {
  const tools = [weather, clock]
  const user = { role: 'user' as const, content: 'use get_time and get_weather' }
  const first = await client.chat.completions.create({ model: 'sim', messages: [user], tools })
  const message = first.choices[0]!.message
  const results = message.tool_calls!.map((call, index) => ({
    role: 'tool' as const,
    tool_call_id: call.id,
    content: ['noon', 'fog'][index]!,
  }))
  const second = await client.chat.completions.create({ model: 'sim', messages: [user, message, ...results], tools })
  const text = 'The tool get_time returned "noon", the tool get_weather returned "fog".'
  assert.equal(second.choices[0]!.message.content, text)
})

test('wires/chat-wire 6 reasoning comes when an effort is asked for and counts as output', async () => {
  const asked = await client.chat.completions.create({ ...ask('Hi'), reasoning_effort: 'low' })
  const message = asked.choices[0]!.message as { reasoning_content?: string }
  assert.equal(message.reasoning_content, 'The user says: "Hi" I can answer this at once.')
  assert.equal(asked.usage!.completion_tokens_details!.reasoning_tokens, 14)
  const not = await client.chat.completions.create({ ...ask('Hi'), reasoning_effort: 'none' })
  assert.equal('reasoning_content' in not.choices[0]!.message, false)
  assert.equal(asked.usage!.completion_tokens - 14, not.usage!.completion_tokens)
})

test('wires/chat-wire 5 structured output, stop and both caps', async () => {
  const schema = { type: 'object', properties: { n: { type: 'integer', minimum: 3 } }, required: ['n'] }
  const shaped = await client.chat.completions.create({
    ...ask('Hi'),
    response_format: { type: 'json_schema', json_schema: { name: 'out', schema } },
  })
  assert.equal(shaped.choices[0]!.message.content, '{"n":3}')
  const free = await client.chat.completions.create({ ...ask('Hi'), response_format: { type: 'json_object' } })
  assert.deepEqual(JSON.parse(free.choices[0]!.message.content!), { answer: 'sample answer' })
  const stopped = await client.chat.completions.create({ ...ask('Hi'), stop: 'am' })
  assert.equal(stopped.choices[0]!.message.content, 'You said: "Hi" I ')
  assert.equal(stopped.choices[0]!.finish_reason, 'stop')
  const capped = await client.chat.completions.create({ ...ask('Hi'), max_completion_tokens: 3 })
  assert.equal(capped.choices[0]!.finish_reason, 'length')
  assert.equal(capped.usage!.completion_tokens, 3)
})

test('wires/chat-wire 7 a conversation’s prefix is cached from the second turn on, for each cache key', async () => {
  const system = { role: 'system' as const, content: 'You are careful. '.repeat(40) }
  const turn = async (text: string, prompt_cache_key: string) => {
    const messages = [system, { role: 'user' as const, content: text }]
    const completion = await client.chat.completions.create({ model: 'sim', messages, prompt_cache_key })
    return completion.usage!.prompt_tokens_details!.cached_tokens!
  }
  assert.equal(await turn('One', 'a'), 0)
  assert.ok((await turn('Two', 'a')) > 64)
  assert.equal(await turn('Three', 'b'), 0)
})

test('n choices cost n times the output', async () => {
  const one = await client.chat.completions.create(ask('Hi'))
  const two = await client.chat.completions.create({ ...ask('Hi'), n: 2 })
  assert.equal(two.choices.length, 2)
  assert.equal(two.usage!.completion_tokens, 2 * one.usage!.completion_tokens)
})

async function framesOf(body: object): Promise<string[]> {
  const response = await fetch(`${simulator.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer k' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  return text
    .split('\n\n')
    .filter((frame) => frame !== '')
    .map((frame) => frame.slice('data: '.length))
}
