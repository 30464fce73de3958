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
const weather: OpenAI.Responses.FunctionTool = { type: 'function', name: 'get_weather', parameters, strict: false }

test('spec 2.8 a whole answer has the vendor’s members and exact usage', async () => {
  const response = await client.responses.create({ model: 'sim', input: 'Hello', store: false })
  assert.match(response.id, /^resp_/)
  assert.equal(response.output_text, 'You said: "Hello" I am a simulated model and saw 1 message.')
  assert.equal(response.status, 'completed')
  assert.equal((response as { store?: boolean }).store, false)
  const usage = response.usage!
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens)
  assert.deepEqual(usage.output_tokens_details, { reasoning_tokens: 0 })
})

test('spec 6.3 the official event order, numbered from 0, without [DONE]', async () => {
  const stream = await client.responses.create({ model: 'sim', input: 'Hello', stream: true })
  const types: string[] = []
  const numbers: number[] = []
  for await (const event of stream) {
    if (types.at(-1) !== event.type) types.push(event.type)
    numbers.push(event.sequence_number)
  }
  assert.deepEqual(types, [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  assert.deepEqual(numbers, [...numbers.keys()])
})

test('wires/responses-wire 8.6 the strict helper accepts reasoning and parallel calls', async () => {
  const time: OpenAI.Responses.FunctionTool = { type: 'function', name: 'get_time', parameters: null, strict: false }
  const response = await client.responses
    .stream({
      model: 'sim',
      input: 'call get_weather {"city":"Oslo"} and get_time',
      tools: [weather, time],
      reasoning: { effort: 'low', summary: 'auto' },
      include: ['reasoning.encrypted_content'],
    })
    .finalResponse()
  assert.deepEqual(
    response.output.map((item) => item.type),
    ['reasoning', 'function_call', 'function_call'],
  )
  const [reasoning, first, second] = response.output
  assert.ok(reasoning?.type === 'reasoning' && reasoning.encrypted_content && reasoning.summary[0]!.text !== '')
  assert.ok(first?.type === 'function_call' && first.arguments === '{"city":"Oslo"}' && first.id!.startsWith('fc_'))
  assert.ok(second?.type === 'function_call' && second.call_id.startsWith('call_'))
  assert.ok(response.usage!.output_tokens_details.reasoning_tokens > 0)
})

test('a whole loop with encrypted reasoning is accepted and answered', async () => {
  const shared = {
    model: 'sim',
    store: false,
    tools: [weather],
    reasoning: { summary: 'auto' as const },
    include: ['reasoning.encrypted_content' as const],
  }
  const first = await client.responses.create({ ...shared, input: 'use the tool' })
  const call = first.output.find((item) => item.type === 'function_call')!
  const input: OpenAI.Responses.ResponseInput = [
    { role: 'user', content: 'use the tool' },
    ...(first.output as OpenAI.Responses.ResponseInput),
    { type: 'function_call_output', call_id: call.call_id, output: 'Rain' },
  ]
  const second = await client.responses.create({ ...shared, input })
  assert.equal(second.output_text, 'The tool get_weather returned "Rain".')
})

test('spec 2.7 without a summary no reasoning text is sent, and it is still counted', async () => {
  const response = await client.responses.create({ model: 'sim', input: 'Hi', reasoning: { effort: 'high' } })
  const item = response.output[0]!
  assert.ok(item.type === 'reasoning')
  assert.deepEqual(item.summary, [])
  assert.ok(response.usage!.output_tokens_details.reasoning_tokens > 0)
})

test('a refusal of an earlier turn counts as text, and only images and files count as such', async () => {
  const countOf = async (part: object) => {
    const input = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [part] },
      { role: 'user', content: 'Go' },
    ]
    const response = await client.responses.create({ model: 'sim', input } as never)
    return response.usage!.input_tokens
  }
  const [refusal, text] = [
    await countOf({ type: 'refusal', refusal: 'No' }),
    await countOf({ type: 'output_text', text: 'No' }),
  ]
  assert.ok(Math.abs(refusal - text) < 5, `${refusal} and ${text}`)
})

test('T2 a member of a namespace is called by its bare name beside the namespace', async () => {
  const tools = [{ type: 'namespace', name: 'mcp__calc', description: '', tools: [{ ...weather, name: 'add' }] }]
  const response = await client.responses.create({ model: 'sim', input: 'use add', tools } as never)
  const call = response.output[0] as unknown as { name: string; namespace: string }
  assert.equal(call.name, 'add')
  assert.equal(call.namespace, 'mcp__calc')
})

test('spec 3 the output cap makes the response incomplete', async () => {
  const response = await client.responses
    .stream({ model: 'sim?tokens=100', input: 'Hi', max_output_tokens: 16 })
    .finalResponse()
  assert.equal(response.status, 'incomplete')
  assert.deepEqual(response.incomplete_details, { reason: 'max_output_tokens' })
  assert.equal(response.usage!.output_tokens, 16)
  assert.equal(response.output[0]!.type === 'message' && response.output[0].status, 'incomplete')
})

test('wires/responses-wire 5 a flat format gives JSON that fits its schema', async () => {
  const schema = {
    type: 'object',
    properties: { ok: { type: 'boolean' }, when: { type: 'string', format: 'date' } },
    required: ['ok', 'when'],
    additionalProperties: false,
  }
  const response = await client.responses.create({
    model: 'sim',
    input: 'Hi',
    text: { format: { type: 'json_schema', name: 'out', schema, strict: true } },
  })
  assert.equal(response.output_text, '{"ok":true,"when":"2026-01-31"}')
})

test('cached tokens are reported when a conversation continues', async () => {
  const instructions = 'You are careful. '.repeat(40)
  const first = await client.responses.create({ model: 'sim', instructions, input: 'One' })
  const second = await client.responses.create({ model: 'sim', instructions, input: 'Two' })
  assert.equal(first.usage!.input_tokens_details.cached_tokens, 0)
  assert.ok(second.usage!.input_tokens_details.cached_tokens > 64)
  assert.ok(second.usage!.input_tokens_details.cached_tokens < second.usage!.input_tokens)
})

test('issue 51, point 7: a function is repeated with all of its members, and other tools unchanged', async () => {
  const search = { type: 'web_search' }
  const tools = [{ type: 'function', name: 'now' }, weather, search]
  const response = await client.responses.create({ model: 'sim', input: 'Hello', tools } as never)
  const now = { type: 'function', name: 'now', description: null, parameters: null, strict: true }
  assert.deepEqual((response as unknown as OpenAI.Responses.Response).tools, [
    now,
    { ...weather, description: null },
    search,
  ])
})
