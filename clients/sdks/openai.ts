import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { zodResponseFormat, zodTextFormat } from 'openai/helpers/zod'
import { z } from 'zod'
import {
  answer,
  assertWeather,
  bothCities,
  imageBase64,
  longReply,
  question,
  type Sdk,
  sampled,
  type Target,
} from './sdk.ts'

const schema = z.object({ city: z.string(), rainy: z.boolean() })
const image_url = `data:image/png;base64,${imageBase64}`
const parameters = {
  type: 'object',
  properties: { city: { type: 'string' } },
  required: ['city'],
  additionalProperties: false,
}
const sunny = (argumentsText: string) => `sunny in ${JSON.parse(argumentsText).city}`

export const openai: Sdk = {
  client: 'openai-node',
  packages: ['openai'],
  wires: ['chat', 'responses'],
  cases: (target) => (target.wire === 'chat' ? chatCases(target) : responsesCases(target)),
}

function chatCases({ origin, key, model, script }: Target): ReturnType<Sdk['cases']> {
  const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 })
  const { completions } = client.chat
  type Message = OpenAI.ChatCompletionMessageParam
  const ask = (content: OpenAI.ChatCompletionUserMessageParam['content'], more: object = {}) => ({
    model,
    messages: [{ role: 'user', content }] as Message[],
    ...more,
  })
  const textOf = (completion: OpenAI.ChatCompletion) => completion.choices[0]?.message.content ?? ''
  return {
    async text() {
      assert.match(textOf(await completions.create(ask(question))), answer)
    },
    async stream() {
      assert.match(textOf(await completions.stream(ask(question)).finalChatCompletion()), answer)
    },
    async tools() {
      const weather = {
        type: 'function' as const,
        function: {
          name: 'get_weather',
          description: 'Weather of a city',
          parameters,
          parse: JSON.parse,
          function: ({ city }: { city: string }) => `sunny in ${city}`,
        },
      }
      for (const stream of [false, true]) {
        const runner = completions.runTools({ ...ask(bothCities), tools: [weather], stream } as never)
        assertWeather((await (runner as { finalContent(): Promise<string | null> }).finalContent()) ?? '')
      }
    },
    async structured() {
      const response_format = zodResponseFormat(schema, 'weather')
      const completion = await completions.parse({ ...ask(question), response_format })
      assert.deepEqual(completion.choices[0]?.message.parsed, sampled)
    },
    async image() {
      const content = [
        { type: 'image_url' as const, image_url: { url: image_url } },
        { type: 'text' as const, text: 'What is it?' },
      ]
      assert.match(textOf(await completions.create(ask(content))), /1 image/)
    },
    async reasoning() {
      const first = await completions.stream(ask(question, { reasoning_effort: 'high' })).finalChatCompletion()
      assert.ok(first.usage!.completion_tokens_details!.reasoning_tokens! > 0)
    },
    async error() {
      await assert.rejects(completions.create(ask(question, { model: 'nobody' })), OpenAI.NotFoundError)
    },
    async abort() {
      script(longReply)
      const stream = completions.stream(ask(question))
      stream.once('content', () => stream.abort())
      await assert.rejects(stream.finalChatCompletion(), OpenAI.APIUserAbortError)
    },
  }
}

function responsesCases({ origin, key, model, script }: Target): ReturnType<Sdk['cases']> {
  const { responses } = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 })
  type Input = OpenAI.Responses.ResponseInputItem[]
  const ask = (content: string | OpenAI.Responses.ResponseInputMessageContentList, more: object = {}) => ({
    model,
    input: [{ role: 'user', content }] as Input,
    ...more,
  })
  return {
    async text() {
      assert.match((await responses.create(ask(question))).output_text, answer)
    },
    async stream() {
      assert.match((await responses.stream(ask(question)).finalResponse()).output_text, answer)
    },
    async tools() {
      const tools = [{ type: 'function' as const, name: 'get_weather', parameters, strict: true }]
      const asked = ask(bothCities, { tools })
      const { output } = await responses.stream(asked).finalResponse()
      const results = output.flatMap((item) =>
        item.type === 'function_call'
          ? [{ type: 'function_call_output' as const, call_id: item.call_id, output: sunny(item.arguments) }]
          : [],
      )
      assert.equal(results.length, 2)
      const said = output as Input
      assertWeather((await responses.create({ ...asked, input: [...asked.input, ...said, ...results] })).output_text)
    },
    async structured() {
      const format = zodTextFormat(schema, 'weather')
      assert.deepEqual((await responses.parse({ ...ask(question), text: { format } })).output_parsed, sampled)
    },
    async image() {
      const asked = ask([
        { type: 'input_image', detail: 'auto', image_url },
        { type: 'input_text', text: 'What is it?' },
      ])
      assert.match((await responses.create(asked)).output_text, /1 image/)
    },
    async reasoning() {
      const asked = ask(question, {
        reasoning: { effort: 'high', summary: 'auto' },
        include: ['reasoning.encrypted_content'],
      })
      const first = await responses.stream(asked).finalResponse()
      assert.equal(first.output[0]?.type, 'reasoning')
      const said = first.output as Input
      const input: Input = [...asked.input, ...said, { role: 'user', content: 'And then?' }]
      assert.match((await responses.create({ ...asked, input })).output_text, /And then\?/)
    },
    async error() {
      await assert.rejects(responses.create(ask(question, { model: 'nobody' })), OpenAI.NotFoundError)
    },
    async abort() {
      script(longReply)
      const stream = responses.stream(ask(question))
      stream.once('response.output_text.delta', () => stream.abort())
      await assert.rejects(stream.finalResponse(), OpenAI.APIUserAbortError)
    },
  }
}
