import assert from 'node:assert/strict'
import { ChatAnthropic } from '@langchain/anthropic'
import { type AIMessageChunk, HumanMessage, ToolMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import { z } from 'zod'
import { answer, assertWeather, bothCities, imageBase64, longReply, question, type Sdk, sampled } from './sdk.ts'

/** LangChain: ChatAnthropic on messages, ChatOpenAI on the other two. */
export const langchain: Sdk = {
  client: 'langchain',
  packages: ['@langchain/openai', '@langchain/anthropic', '@langchain/core'],
  wires: ['messages', 'chat', 'responses'],
  cases({ origin, key, model: id, wire, script }) {
    const create = (more: object = {}) => {
      const base = { model: id, apiKey: key, maxRetries: 0, ...more }
      if (wire === 'messages') return new ChatAnthropic({ ...base, anthropicApiUrl: origin })
      const onResponses = wire === 'responses' ? { useResponsesApi: true, zdrEnabled: true } : {}
      return new ChatOpenAI({ ...base, configuration: { baseURL: `${origin}/v1` }, ...onResponses })
    }
    const chat = create()
    const weather = tool(async ({ city }: { city: string }) => `sunny in ${city}`, {
      name: 'get_weather',
      description: 'Weather of a city',
      schema: z.object({ city: z.string() }),
    })
    return {
      async text() {
        const message = await chat.invoke(question)
        assert.match(message.text, answer)
        assert.ok(message.usage_metadata!.input_tokens > 0)
      },
      async stream() {
        let text = ''
        for await (const chunk of await chat.stream(question)) text += chunk.text
        assert.match(text, answer)
      },
      async tools() {
        const bound = chat.bindTools([weather])
        for (const streamed of [false, true]) {
          const asked = new HumanMessage(bothCities)
          let said: AIMessageChunk | undefined
          if (streamed) for await (const chunk of await bound.stream([asked])) said = said ? said.concat(chunk) : chunk
          else said = await bound.invoke([asked])
          const calls = said?.tool_calls ?? []
          assert.deepEqual(
            calls.map(({ args }) => args),
            [{ city: 'Paris' }, { city: 'Rome' }],
          )
          const results = await Promise.all(calls.map((call) => weather.invoke({ ...call, type: 'tool_call' })))
          assert.ok(results.every((result) => ToolMessage.isInstance(result)))
          assertWeather((await bound.invoke([asked, said!, ...(results as ToolMessage[])])).text)
        }
      },
      async structured() {
        const schema = z.object({ city: z.string(), rainy: z.boolean() })
        assert.deepEqual(await chat.withStructuredOutput(schema).invoke(question), sampled)
      },
      async image() {
        const content = [
          { type: 'image_url' as const, image_url: { url: `data:image/png;base64,${imageBase64}` } },
          { type: 'text' as const, text: 'What is it?' },
        ]
        assert.match((await chat.invoke([new HumanMessage({ content })])).text, /1 image/)
      },
      reasoning:
        wire === 'chat'
          ? 'the class ChatOpenAI does not read reasoning text on chat'
          : async () => {
              const thinker = create(
                wire === 'messages'
                  ? { thinking: { type: 'enabled', budget_tokens: 1_024 }, maxTokens: 4_096 }
                  : // LangChain sends its own option only for model names that look like reasoning models.
                    { modelKwargs: { reasoning: { effort: 'high', summary: 'auto' } } },
              )
              const asked = new HumanMessage(question)
              const said = await thinker.invoke([asked])
              assert.match(JSON.stringify(said), /"type":"(thinking|reasoning)"/)
              assert.match((await thinker.invoke([asked, said, new HumanMessage('And then?')])).text, /And then\?/)
            },
      async error() {
        await assert.rejects(create({ model: 'nobody' }).invoke(question), (thrown) => {
          assert.equal((thrown as { status?: number }).status, 404)
          assert.match(String(thrown), /No such model/)
          return true
        })
      },
      async abort() {
        script(longReply)
        const stop = new AbortController()
        const reading = async () => {
          for await (const chunk of await chat.stream(question, { signal: stop.signal })) if (chunk.text) stop.abort()
        }
        await assert.rejects(reading(), /abort/i)
      },
    }
  },
}
