import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import OpenAI from 'openai'
import { zodResponseFormat } from 'openai/helpers/zod'
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

type Message = OpenAI.ChatCompletionMessageParam
const weather: OpenAI.ChatCompletionTool = {
  type: 'function',
  function: { name: 'get_weather', description: 'Weather of a city', parameters: weatherSchema },
}

for (const wire of modelWires) {
  const ask = (content: OpenAI.ChatCompletionUserMessageParam['content'], more: object = {}) => ({
    model: model('plain', wire),
    messages: [{ role: 'user', content }] as Message[],
    ...more,
  })

  test(`spec 2.6 openai reads a whole chat completion of a ${wire} model`, async () => {
    const completion = await client.chat.completions.create(ask('What is the capital of France?'))
    assert.equal(completion.object, 'chat.completion')
    assert.equal(completion.model, model('plain', wire))
    assert.equal(completion.choices[0]?.finish_reason, 'stop')
    assert.match(textOf(completion), /^You said: "What is the capital of France\?"/)
    const { prompt_tokens, completion_tokens, total_tokens } = completion.usage!
    assert.equal(prompt_tokens + completion_tokens, total_tokens)
    assert.match(completion._request_id!, /^req_/)
  })

  test(`spec 6.2 openai iterates the chunks of a ${wire} model, usage last with empty choices`, async () => {
    let text = ''
    const chunks: OpenAI.ChatCompletionChunk[] = []
    for await (const chunk of await client.chat.completions.create({ ...ask('Hello there'), stream: true })) {
      chunks.push(chunk)
      text += chunk.choices[0]?.delta.content ?? ''
    }
    assert.match(text, /^You said: "Hello there"/)
    assert.deepEqual(chunks.at(-1)?.choices, [])
    assert.ok(chunks.at(-1)!.usage!.total_tokens > 0)
    assert.equal(chunks.at(-2)?.choices[0]?.finish_reason, 'stop')
    assert.equal(new Set(chunks.map(({ id }) => id)).size, 1)
  })

  test(`spec 6.2 chat.completions.stream().finalChatCompletion() of a ${wire} model is the whole answer`, async () => {
    const whole = await client.chat.completions.create(ask('The same twice'))
    const streamed = await client.chat.completions.stream(ask('The same twice')).finalChatCompletion()
    assert.equal(streamed.choices[0]?.message.content, whole.choices[0]?.message.content)
    assert.equal(streamed.usage?.total_tokens, whole.usage?.total_tokens)
  })

  for (const streamed of [false, true]) {
    const how = streamed ? 'streamed' : 'whole'
    test(`spec 2.6 openai makes a round trip of parallel tools on chat, ${how}, with a ${wire} model`, async () => {
      const first = ask(callBoth, { tools: [weather] })
      const completion = await (streamed
        ? client.chat.completions.stream(first).finalChatCompletion()
        : client.chat.completions.create(first))
      const { message, finish_reason } = completion.choices[0]!
      assert.equal(finish_reason, 'tool_calls')
      const calls = (message.tool_calls ?? []).map((call) => (call.type === 'function' ? call : assert.fail()))
      assert.deepEqual(
        calls.map((call) => ({ name: call.function.name, arguments: JSON.parse(call.function.arguments) })),
        [
          { name: 'get_weather', arguments: { city: 'Paris' } },
          { name: 'get_weather', arguments: { city: 'Rome' } },
        ],
      )
      const results = calls.map((call) => ({
        role: 'tool' as const,
        tool_call_id: call.id,
        content: `sunny in ${JSON.parse(call.function.arguments).city}`,
      }))
      const second = await client.chat.completions.create({
        ...first,
        messages: [...first.messages, message, ...results],
      })
      assert.equal(second.choices[0]?.finish_reason, 'stop')
      assert.match(textOf(second), /sunny in Paris/)
      assert.match(textOf(second), /sunny in Rome/)
    })
  }

  test(`spec 2.5 with parallel calls switched off, a ${wire} model makes one call on chat`, async () => {
    const completion = await client.chat.completions.create(
      ask(callBoth, { tools: [weather], parallel_tool_calls: false }),
    )
    assert.equal(completion.choices[0]?.message.tool_calls?.length, 1)
  })

  test(`spec 2.5 chat.completions.parse() of a ${wire} model returns a value that fits its zod schema`, async () => {
    const response_format = zodResponseFormat(z.object({ city: z.string(), rainy: z.boolean() }), 'weather')
    const completion = await client.chat.completions.parse({ ...ask('What about Paris?'), response_format })
    assert.deepEqual(completion.choices[0]?.message.parsed, { city: 'sample city', rainy: true })
  })

  test(`spec 2.6 reasoning of a ${wire} model is sent beside the content, and can be sent back`, async () => {
    const first = ask('Think about it', { reasoning_effort: 'high' })
    const whole = await client.chat.completions.create(first)
    const streamed = await client.chat.completions.stream(first).finalChatCompletion()
    for (const completion of [whole, streamed]) {
      assert.match(textOf(completion), /^You said: "Think about it"/)
      assert.ok(completion.usage!.completion_tokens_details!.reasoning_tokens! > 0)
    }
    const said = whole.choices[0]!.message
    // A responses model shows its reasoning in a summary only, which this wire cannot ask for.
    const isShown = wire !== 'responses'
    assert.equal(((said as { reasoning_content?: string }).reasoning_content ?? '').length > 0, isShown)
    const second = await client.chat.completions.create({
      ...first,
      messages: [...first.messages, said, { role: 'user', content: 'And then?' }],
    })
    assert.match(textOf(second), /And then\?/)
  })

  test(`spec 2.1 an image on chat reaches a ${wire} model`, async () => {
    const completion = await client.chat.completions.create(
      ask([
        { type: 'image_url', image_url: { url: `data:image/png;base64,${imageBase64}` } },
        { type: 'text', text: 'What is it?' },
      ]),
    )
    assert.match(textOf(completion), /1 image/)
  })

  test(`spec 6.2 chat.completions.stream() notices that the stream of a ${wire} model was cut`, async () => {
    const stream = client.chat.completions.stream(ask('Hello', { model: model('broken', wire) }))
    await assert.rejects(stream.finalChatCompletion(), OpenAI.OpenAIError)
  })

  test(`C4 abort mid-stream on chat reaches a ${wire} model, and the output so far is billed`, async () => {
    const body = { ...ask('Go on', { model: model('slow', wire) }), stream: true as const }
    const { data: stream, request_id } = await client.chat.completions.create(body).withResponse()
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content) stream.controller.abort()
    assert.equal(await closedEarly(gateway), true)
    assert.equal((await gateway.logOf(request_id!))['outcome'], 'client_abort')
    assert.ok(gateway.store.findEntry(request_id!)!.amountNanos > 0n)
  })

  test(`R6 openai waits for retry-after of a busy ${wire} model on chat, then gets its answer`, async () => {
    const patient = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.key, fetch: refuseOnce(gateway) })
    const started = performance.now()
    const completion = await patient.chat.completions.create(ask('Room?', { model: model('once-busy', wire) }))
    assert.equal(textOf(completion), 'Now there is room.')
    // Without the header the SDK would have been back after half a second.
    assert.ok(performance.now() - started > 2_900)
  })

  for (const { name, rule, error, says, body } of refusals(wire)) {
    for (const stream of [false, true]) {
      const how = stream ? 'a stream' : 'an answer'
      test(`${rule} the refusal ${name} is openai's own error on chat, for ${how} of a ${wire} model`, async () => {
        await assert.rejects(
          client.chat.completions.create({ ...ask('Hello'), ...body, stream } as never),
          isRefusal(error, says),
        )
      })
    }
  }
}

const hello = { model: model('plain', 'chat'), messages: [{ role: 'user', content: 'Hello' }] as Message[] }

test('spec 5 a wrong key is an AuthenticationError of openai on chat', async () => {
  await assert.rejects(
    client.withOptions({ apiKey: 'sk-wrong' }).chat.completions.create(hello),
    isRefusal(OpenAI.AuthenticationError, {
      status: 401,
      type: 'invalid_request_error',
      code: 'invalid_api_key',
      param: null,
    }),
  )
})

test('spec 5 without credit openai throws an APIError and does not retry', async () => {
  const poor = await startSdkGateway({ credit: '0' })
  try {
    await assert.rejects(
      new OpenAI({ baseURL: `${poor.url}/v1`, apiKey: poor.key }).chat.completions.create(hello),
      isRefusal(OpenAI.APIError, {
        status: 402,
        type: 'insufficient_quota',
        code: 'insufficient_credits',
        param: null,
      }),
    )
    assert.equal((await poor.logLines()).filter((line) => line['status'] === 402).length, 1)
  } finally {
    await poor.close()
  }
})

test('spec 4.5 models.list() of openai reads the list', async () => {
  const ids: string[] = []
  for await (const { id } of client.models.list()) ids.push(id)
  assert.deepEqual(ids.slice(0, 2), ['plain-messages', 'slow-messages'])
})

test('spec 4.6 embeddings are a NotFoundError of openai', async () => {
  await assert.rejects(
    client.embeddings.create({ model: hello.model, input: 'Hello' }),
    isRefusal(OpenAI.NotFoundError, {
      status: 404,
      type: 'invalid_request_error',
      code: 'unknown_url',
      param: null,
    }),
  )
})

function textOf(completion: OpenAI.ChatCompletion): string {
  return completion.choices[0]?.message.content ?? ''
}
