import assert from 'node:assert/strict'
import test, { after, before } from 'node:test'
import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { z } from 'zod'
import type { TestGateway } from '../support/gateway.ts'
import {
  callBoth,
  closedEarly,
  imageBase64,
  longKey,
  longText,
  model,
  modelWires,
  refuseOnce,
  startSdkGateway,
  weatherSchema,
} from './stories.ts'

let gateway: TestGateway
let client: Anthropic
before(async () => {
  gateway = await startSdkGateway()
  client = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, maxRetries: 0 })
})
after(() => gateway.close())

const weather: Anthropic.Tool = { name: 'get_weather', description: 'Weather of a city', input_schema: weatherSchema }

for (const wire of modelWires) {
  const ask = (content: Anthropic.MessageParam['content'], more: object = {}) => ({
    model: model('plain', wire),
    max_tokens: 2_000,
    messages: [{ role: 'user' as const, content }],
    ...more,
  })

  test(`spec 2.3 @anthropic-ai/sdk reads a whole answer of a ${wire} model`, async () => {
    const message = await client.messages.create(ask('What is the capital of France?'))
    assert.match(message.id, /^msg_/)
    assert.equal(message.model, model('plain', wire))
    assert.equal(message.stop_reason, 'end_turn')
    assert.match(textOf(message), /^You said: "What is the capital of France\?"/)
    assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0)
    assert.equal(message.usage.cache_read_input_tokens, 0)
    assert.match(message._request_id!, /^req_/)
  })

  test(`spec 6.1 @anthropic-ai/sdk iterates the events of a ${wire} model from message_start to message_stop`, async () => {
    const types: string[] = []
    let text = ''
    for await (const event of await client.messages.create({ ...ask('Hello there'), stream: true })) {
      if (types.at(-1) !== event.type) types.push(event.type)
      if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
    }
    assert.deepEqual(types, [
      'message_start',
      'content_block_start',
      'content_block_delta',
      'content_block_stop',
      'message_delta',
      'message_stop',
    ])
    assert.match(text, /^You said: "Hello there"/)
  })

  test(`spec 6.1 messages.stream().finalMessage() of a ${wire} model is the whole answer`, async () => {
    const whole = await client.messages.create(ask('The same twice'))
    const streamed = await client.messages.stream(ask('The same twice')).finalMessage()
    assert.deepEqual(streamed.content, whole.content)
    assert.equal(streamed.usage.output_tokens, whole.usage.output_tokens)
    assert.equal(streamed.stop_reason, 'end_turn')
  })

  for (const streamed of [false, true]) {
    const how = streamed ? 'streamed' : 'whole'
    test(`spec 2.3 @anthropic-ai/sdk completes a round trip of parallel tools, ${how}, with a ${wire} model`, async () => {
      const first = ask(callBoth, { tools: [weather] })
      const message = await (streamed ? client.messages.stream(first).finalMessage() : client.messages.create(first))
      const uses = message.content.filter((block) => block.type === 'tool_use')
      assert.equal(message.stop_reason, 'tool_use')
      assert.deepEqual(
        uses.map(({ name, input }) => ({ name, input })),
        [
          { name: 'get_weather', input: { city: 'Paris' } },
          { name: 'get_weather', input: { city: 'Rome' } },
        ],
      )
      const results = uses.map(({ id, input }) => ({
        type: 'tool_result' as const,
        tool_use_id: id,
        content: `sunny in ${(input as { city: string }).city}`,
      }))
      const second = await client.messages.create({
        ...first,
        messages: [
          ...first.messages,
          { role: 'assistant', content: message.content },
          { role: 'user', content: results },
        ],
      })
      assert.equal(second.stop_reason, 'end_turn')
      assert.match(textOf(second), /sunny in Paris/)
      assert.match(textOf(second), /sunny in Rome/)
    })
  }

  test(`A1, T22: the unmodified tool runner of @anthropic-ai/sdk completes its task with a ${wire} model`, async () => {
    const run = ({ city }: { city: string }) => `sunny in ${city}`
    const tool = betaZodTool({ name: 'get_weather', inputSchema: z.object({ city: z.string() }), run, description: '' })
    for (const stream of [false, true]) {
      const runner = client.beta.messages.toolRunner({ ...ask(callBoth), tools: [tool], stream })
      const text = textOf((await runner.runUntilDone()) as Anthropic.Message)
      assert.match(text, /sunny in Paris/)
      assert.match(text, /sunny in Rome/)
    }
  })

  test(`spec 2.2 with parallel calls switched off, a ${wire} model makes one call`, async () => {
    const tool_choice = { type: 'auto' as const, disable_parallel_tool_use: true }
    const message = await client.messages.create(ask(callBoth, { tools: [weather], tool_choice }))
    assert.equal(message.content.filter((block) => block.type === 'tool_use').length, 1)
  })

  test(`spec 2.2 messages.parse() of a ${wire} model returns a value that fits its zod schema`, async () => {
    const format = zodOutputFormat(z.object({ city: z.string(), rainy: z.boolean() }))
    const message = await client.messages.parse({ ...ask('What about Paris?'), output_config: { format } })
    assert.deepEqual(message.parsed_output, { city: 'sample city', rainy: true })
  })

  test(`T10 thinking of a ${wire} model has text and a signature key, and can be sent back`, async () => {
    const thinking = { type: 'enabled' as const, budget_tokens: 1_024 }
    const first = ask('Think about it', { thinking })
    const whole = await client.messages.create(first)
    const streamed = await client.messages.stream(first).finalMessage()
    for (const message of [whole, streamed]) {
      const [block] = message.content
      assert.equal(block?.type, 'thinking')
      assert.ok(block.thinking.length > 0)
      assert.equal(typeof block.signature, 'string')
    }
    const second = await client.messages.create({
      ...first,
      messages: [
        ...first.messages,
        { role: 'assistant', content: streamed.content },
        { role: 'user', content: 'And then?' },
      ],
    })
    assert.match(textOf(second), /And then\?/)
  })

  test(`spec 2.1 an image reaches a ${wire} model`, async () => {
    const message = await client.messages.create(
      ask([
        { type: 'image', source: { type: 'base64', media_type: 'image/png', data: imageBase64 } },
        { type: 'text', text: 'What is it?' },
      ]),
    )
    assert.match(textOf(message), /1 image/)
  })

  test(`spec 6.1 messages.stream() notices that the stream of a ${wire} model was cut`, async () => {
    const stream = client.messages.stream(ask('Hello', { model: model('broken', wire) }))
    await assert.rejects(stream.finalMessage(), Anthropic.AnthropicError)
  })

  test(`C4 abort mid-stream reaches a ${wire} model, and the output so far is billed`, async () => {
    const stream = client.messages.stream(ask('Go on', { model: model('slow', wire) }))
    stream.once('text', () => stream.abort())
    await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError)
    assert.equal(await closedEarly(gateway), true)
    assert.equal((await gateway.logOf(stream.request_id!))['outcome'], 'client_abort')
    assert.ok(gateway.store.findEntry(stream.request_id!)!.amountNanos > 0n)
  })

  test(`R6 @anthropic-ai/sdk waits for retry-after of a busy ${wire} model, then gets its answer`, async () => {
    const patient = new Anthropic({ baseURL: gateway.url, apiKey: gateway.key, fetch: refuseOnce(gateway) })
    const started = performance.now()
    const message = await patient.messages.create(ask('Room?', { model: model('once-busy', wire) }))
    assert.equal(textOf(message), 'Now there is room.')
    // Without the header the SDK would have been back after half a second.
    assert.ok(performance.now() - started > 2_900)
  })

  const refusals: { name: string; rule: string; error: new (...a: never[]) => unknown; says: object; body: object }[] =
    [
      {
        name: 'of an unknown model',
        rule: 'spec 7.3',
        error: Anthropic.NotFoundError,
        says: { status: 404, type: 'not_found_error' },
        body: { model: 'nobody' },
      },
      {
        name: 'of max_tokens 0',
        rule: 'spec 7.3',
        error: Anthropic.BadRequestError,
        says: { status: 400, type: 'invalid_request_error' },
        body: { max_tokens: 0 },
      },
      {
        name: 'of the model itself',
        rule: 'spec 7.4',
        error: Anthropic.BadRequestError,
        says: { status: 400, type: 'invalid_request_error' },
        body: { model: model('fussy', wire) },
      },
      {
        name: 'of a body that is too large',
        rule: 'R2',
        error: Anthropic.ContentTooLargeError,
        says: { status: 413, type: 'request_too_large' },
        body: { system: longText },
      },
      {
        name: 'of a busy model',
        rule: 'U2',
        error: Anthropic.RateLimitError,
        says: { status: 429, type: 'rate_limit_error' },
        body: { model: model('busy', wire) },
      },
      {
        name: 'of a model that is down',
        rule: 'U2',
        error: Anthropic.InternalServerError,
        says: { status: 502, type: 'api_error' },
        body: { model: model('down', wire) },
      },
    ]
  for (const { name, rule, error, says, body } of refusals) {
    for (const stream of [false, true]) {
      const how = stream ? 'a stream' : 'an answer'
      test(`${rule} the refusal ${name} is @anthropic-ai/sdk's own error, for ${how} of a ${wire} model`, async () => {
        await assert.rejects(client.messages.create({ ...ask('Hello'), ...body, stream } as never), (thrown) => {
          assert.ok(thrown instanceof error, String(thrown))
          assertRefusal(thrown as unknown as InstanceType<typeof Anthropic.APIError>, says)
          return true
        })
      })
    }
  }
}

const hello = {
  model: model('plain', 'messages'),
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hello' }],
}

test('R7 a wrong key is an AuthenticationError of @anthropic-ai/sdk, as Bearer and as x-api-key', async () => {
  const bearer = new Anthropic({ baseURL: gateway.url, apiKey: 'sk-wrong', maxRetries: 0 })
  const header = client.withOptions({ apiKey: null, authToken: null, defaultHeaders: { 'x-api-key': 'sk-wrong' } })
  for (const stranger of [bearer, header]) {
    await assert.rejects(stranger.messages.create(hello), (thrown) => {
      assert.ok(thrown instanceof Anthropic.AuthenticationError)
      assertRefusal(thrown, { status: 401, type: 'authentication_error' })
      return true
    })
  }
})

test('R7 x-api-key alone is a valid credential for @anthropic-ai/sdk', async () => {
  const header = client.withOptions({ apiKey: null, authToken: null, defaultHeaders: { 'x-api-key': gateway.key } })
  assert.equal((await header.messages.create(hello)).stop_reason, 'end_turn')
})

test('spec 5 without credit @anthropic-ai/sdk throws a PaymentRequiredError and does not retry', async () => {
  const poor = await startSdkGateway({ credit: '0' })
  try {
    await assert.rejects(new Anthropic({ baseURL: poor.url, apiKey: poor.key }).messages.create(hello), (thrown) => {
      assert.ok(thrown instanceof Anthropic.PaymentRequiredError)
      assertRefusal(thrown, { status: 402, type: 'billing_error' })
      return true
    })
    assert.equal((await poor.logLines()).filter((line) => line['status'] === 402).length, 1)
  } finally {
    await poor.close()
  }
})

test('P6 a conversation key that is too long is a BadRequestError of @anthropic-ai/sdk', async () => {
  const options = { headers: { 'x-session-id': longKey } }
  await assert.rejects(client.messages.create(hello, options), (thrown) => {
    assert.ok(thrown instanceof Anthropic.BadRequestError)
    assert.match(thrown.message, /x-session-id/)
    return true
  })
})

test('spec 4.5 models.list() of @anthropic-ai/sdk reads the list', async () => {
  const ids: string[] = []
  for await (const { id } of client.models.list({ limit: 2 })) ids.push(id)
  assert.deepEqual(ids.slice(0, 2), ['plain-messages', 'slow-messages'])
})

test('spec 4.2 messages.countTokens() gives a number, for every model', async () => {
  for (const wire of ['messages', 'chat', 'responses'] as const) {
    const { input_tokens } = await client.messages.countTokens({ ...hello, model: model('plain', wire) })
    assert.ok(input_tokens > 0 && input_tokens < 20)
  }
})

function textOf(message: Anthropic.Message): string {
  return message.content.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('')
}

function assertRefusal(thrown: InstanceType<typeof Anthropic.APIError>, says: object): void {
  const { status, type, requestID, headers } = thrown
  assert.deepEqual({ status, type }, says)
  assert.match(requestID!, /^req_/)
  assert.equal(headers?.get('retry-after'), status === 429 ? '7' : null)
}
