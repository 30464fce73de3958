import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import OpenAI from 'openai'
import { zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import type { TestGateway } from '../support/gateway.ts'
import { isRefusal, refusals } from './openai-refusals.ts'
import {
  callBoth,
  closedEarly,
  imageBase64,
  model,
  modelWires,
  refuseOnce,
  startSdkGateway,
  weatherSchema,
} from './stories.ts'

let gateway: TestGateway
let client: OpenAI
before(async () => {
  gateway = await startSdkGateway()
  client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, maxRetries: 0 })
})
after(() => gateway.close())

type Input = OpenAI.Responses.ResponseInputItem[]
const weather: OpenAI.Responses.FunctionTool = {
  type: 'function',
  name: 'get_weather',
  description: 'Weather of a city',
  parameters: weatherSchema,
  strict: false,
}

for (const wire of modelWires) {
  const ask = (content: string | OpenAI.Responses.ResponseInputMessageContentList, more: object = {}) => ({
    model: model('plain', wire),
    input: [{ role: 'user', content }] as Input,
    ...more,
  })

  test(`spec 2.8 openai reads a whole response of a ${wire} model`, async () => {
    const response = await client.responses.create({ ...ask('What is the capital of France?'), store: true })
    assert.match(response.id, /^resp_/)
    assert.equal(response.model, model('plain', wire))
    assert.equal(response.status, 'completed')
    assert.equal((response as { store?: boolean }).store, false)
    assert.match(response.output_text, /^You said: "What is the capital of France\?"/)
    const { input_tokens, output_tokens, total_tokens } = response.usage!
    assert.equal(input_tokens + output_tokens, total_tokens)
    assert.match(response._request_id!, /^req_/)
  })

  test(`spec 6.3 openai iterates the events of a ${wire} model in the order of their numbers`, async () => {
    const events: OpenAI.Responses.ResponseStreamEvent[] = []
    for await (const event of await client.responses.create({ ...ask('Hello there'), stream: true })) events.push(event)
    assert.deepEqual(
      events.map((event) => event.sequence_number),
      events.map((_, index) => index),
    )
    assert.equal(events[0]?.type, 'response.created')
    const last = events.at(-1)!
    assert.equal(last.type, 'response.completed')
    const text = events.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : [])).join('')
    assert.match(text, /^You said: "Hello there"/)
    assert.ok(last.response.usage!.total_tokens > 0)
  })

  test(`T12 responses.stream().finalResponse() of a ${wire} model is the whole answer`, async () => {
    const whole = await client.responses.create(ask('The same twice'))
    const streamed = await client.responses.stream(ask('The same twice')).finalResponse()
    assert.equal(streamed.output_text, whole.output_text)
    assert.equal(streamed.usage?.total_tokens, whole.usage?.total_tokens)
    assert.equal(streamed.status, 'completed')
  })

  for (const streamed of [false, true]) {
    const how = streamed ? 'streamed' : 'whole'
    test(`spec 2.8 openai completes a round trip of parallel tools on responses, ${how}, with a ${wire} model`, async () => {
      const first = ask(callBoth, { tools: [weather] })
      const response: OpenAI.Responses.Response = await (streamed
        ? client.responses.stream(first).finalResponse()
        : client.responses.create(first))
      const calls = response.output.filter((item) => item.type === 'function_call')
      assert.deepEqual(
        calls.map((call) => ({ name: call.name, arguments: JSON.parse(call.arguments) })),
        [
          { name: 'get_weather', arguments: { city: 'Paris' } },
          { name: 'get_weather', arguments: { city: 'Rome' } },
        ],
      )
      const results = calls.map((call) => ({
        type: 'function_call_output' as const,
        call_id: call.call_id,
        output: `sunny in ${JSON.parse(call.arguments).city}`,
      }))
      const said = response.output as Input
      const second = await client.responses.create({ ...first, input: [...first.input, ...said, ...results] })
      assert.match(second.output_text, /sunny in Paris/)
      assert.match(second.output_text, /sunny in Rome/)
    })
  }

  test(`spec 2.7 with parallel calls switched off, a ${wire} model makes one call on responses`, async () => {
    const response = await client.responses.create(ask(callBoth, { tools: [weather], parallel_tool_calls: false }))
    assert.equal(response.output.filter((item) => item.type === 'function_call').length, 1)
  })

  test(`spec 2.7 responses.parse() of a ${wire} model returns a value that fits its zod schema`, async () => {
    const format = zodTextFormat(z.object({ city: z.string(), rainy: z.boolean() }), 'weather')
    const response = await client.responses.parse({ ...ask('What about Paris?'), text: { format } })
    assert.deepEqual(response.output_parsed, { city: 'sample city', rainy: true })
  })

  test(`spec 2.8 reasoning of a ${wire} model is an item with a summary, and can be sent back`, async () => {
    const include: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content']
    const first = ask('Think about it', { reasoning: { effort: 'high', summary: 'auto' }, include })
    const whole = await client.responses.create(first)
    const streamed = await client.responses.stream(first).finalResponse()
    for (const response of [whole, streamed]) {
      const [item] = response.output
      assert.equal(item?.type, 'reasoning')
      assert.ok(item.summary[0]!.text.length > 0)
      assert.ok(response.usage!.output_tokens_details.reasoning_tokens > 0)
    }
    const said = streamed.output as Input
    const second = await client.responses.create({
      ...first,
      input: [...first.input, ...said, { role: 'user', content: 'And then?' }],
    })
    assert.match(second.output_text, /And then\?/)
  })

  test(`spec 2.1 an image on responses reaches a ${wire} model`, async () => {
    const response = await client.responses.create(
      ask([
        { type: 'input_image', detail: 'auto', image_url: `data:image/png;base64,${imageBase64}` },
        { type: 'input_text', text: 'What is it?' },
      ]),
    )
    assert.match(response.output_text, /1 image/)
  })

  test(`spec 6.3 a cut stream of a ${wire} model ends with response.failed for openai`, async () => {
    const stream = await client.responses.create({ ...ask('Hello', { model: model('broken', wire) }), stream: true })
    let last: OpenAI.Responses.ResponseStreamEvent | undefined
    for await (const event of stream) last = event
    assert.equal(last?.type, 'response.failed')
    assert.equal(last.response.error?.code, 'server_error')
  })

  test(`C4 abort mid-stream on responses reaches a ${wire} model, and the output so far is billed`, async () => {
    const body = { ...ask('Go on', { model: model('slow', wire) }), stream: true as const }
    const { data: stream, request_id } = await client.responses.create(body).withResponse()
    for await (const event of stream) if (event.type === 'response.output_text.delta') stream.controller.abort()
    assert.equal(await closedEarly(gateway), true)
    assert.equal((await gateway.logOf(request_id!))['outcome'], 'client_abort')
    assert.ok(gateway.store.findEntry(request_id!)!.amountNanos > 0n)
  })

  test(`R6 openai waits for retry-after of a busy ${wire} model on responses, then gets its answer`, async () => {
    const patient = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, fetch: refuseOnce(gateway) })
    const started = performance.now()
    const response = await patient.responses.create(ask('Room?', { model: model('once-busy', wire) }))
    assert.equal(response.output_text, 'Now there is room.')
    // Without the header the SDK would have been back after half a second.
    assert.ok(performance.now() - started > 2_900)
  })

  const stored = { type: 'invalid_request_error', code: 'unsupported_parameter' }
  const stateless = [
    { param: 'previous_response_id', body: { previous_response_id: 'resp_1' } },
    { param: 'conversation', body: { conversation: 'conv_1' } },
    { param: 'background', body: { background: true } },
    { param: 'input', body: { input: [{ type: 'item_reference', id: 'msg_1' }] } },
  ].map(({ param, body }) => ({
    name: `of ${JSON.stringify(body)}`,
    rule: 'spec 4.4',
    error: OpenAI.BadRequestError,
    says: { status: 400, ...stored, param },
    body,
  }))
  for (const { name, rule, error, says, body } of [...refusals(wire), ...stateless]) {
    for (const stream of [false, true]) {
      const how = stream ? 'a stream' : 'an answer'
      test(`${rule} the refusal ${name} is openai's own error on responses, for ${how} of a ${wire} model`, async () => {
        await assert.rejects(
          client.responses.create({ ...ask('Hello'), ...body, stream } as never),
          isRefusal(error, says),
        )
      })
    }
  }
}

test('spec 5 a wrong key is an AuthenticationError of openai on responses', async () => {
  await assert.rejects(
    client.withOptions({ apiKey: 'sk-wrong' }).responses.create({ model: 'plain-responses', input: 'Hello' }),
    isRefusal(OpenAI.AuthenticationError, {
      status: 401,
      type: 'invalid_request_error',
      code: 'invalid_api_key',
      param: null,
    }),
  )
})
