import assert from 'node:assert/strict'
import { Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, run, setTracingDisabled, tool } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'
import { answer, assertWeather, bothCities, imageBase64, longReply, question, type Sdk, sampled } from './sdk.ts'

setTracingDisabled(true)

/** The agents SDK of OpenAI, on both of its APIs. */
export const openaiAgents: Sdk = {
  client: 'openai-agents',
  packages: ['@openai/agents', 'openai'],
  wires: ['chat', 'responses'],
  cases({ origin, key, model: id, wire, script }) {
    const client = new OpenAI({ baseURL: `${origin}/v1`, apiKey: key, maxRetries: 0 })
    const modelOf = (name: string) =>
      wire === 'chat' ? new OpenAIChatCompletionsModel(client, name) : new OpenAIResponsesModel(client, name)
    const create = (more: object = {}) =>
      new Agent({ name: 'Guide', instructions: 'Be brief.', model: modelOf(id), ...more })
    const weather = tool({
      name: 'get_weather',
      description: 'Weather of a city',
      parameters: z.object({ city: z.string() }),
      execute: async ({ city }) => `sunny in ${city}`,
    })
    return {
      async text() {
        assert.match((await run(create(), question)).finalOutput as string, answer)
      },
      async stream() {
        const result = await run(create(), question, { stream: true })
        let text = ''
        for await (const part of result.toTextStream()) text += part
        await result.completed
        assert.match(text, answer)
      },
      async tools() {
        const agent = create({ tools: [weather] })
        const whole = await run(agent, bothCities)
        assertWeather(whole.finalOutput as string)
        assert.equal(whole.newItems.filter((item) => item.type === 'tool_call_item').length, 2)
        const streamed = await run(agent, bothCities, { stream: true })
        await streamed.completed
        assertWeather(streamed.finalOutput as string)
      },
      async structured() {
        const agent = create({ outputType: z.object({ city: z.string(), rainy: z.boolean() }) })
        assert.deepEqual((await run(agent, question)).finalOutput, sampled)
      },
      async image() {
        const content = [
          { type: 'input_image' as const, image: `data:image/png;base64,${imageBase64}` },
          { type: 'input_text' as const, text: 'What is it?' },
        ]
        assert.match((await run(create(), [{ role: 'user', content }])).finalOutput as string, /1 image/)
      },
      reasoning:
        wire === 'chat'
          ? 'on chat the SDK reads the field `reasoning`, but models of this wire send `reasoning_content`'
          : async () => {
              const agent = create({ modelSettings: { reasoning: { effort: 'high', summary: 'auto' } } })
              const first = await run(agent, question)
              assert.ok(first.newItems.some((item) => item.type === 'reasoning_item'))
              const second = await run(agent, [...first.history, { role: 'user', content: 'And then?' }])
              assert.match(second.finalOutput as string, /And then\?/)
            },
      async error() {
        await assert.rejects(run(create({ model: modelOf('nobody') }), question), (thrown) => {
          assert.ok(thrown instanceof OpenAI.NotFoundError, String(thrown))
          assert.equal(thrown.code, 'model_not_found')
          return true
        })
      },
      async abort() {
        script(longReply)
        const stop = new AbortController()
        const result = await run(create(), question, { stream: true, signal: stop.signal })
        for await (const part of result.toTextStream()) if (part) stop.abort()
        await result.completed.catch(() => {})
        assert.ok(result.cancelled)
      },
    }
  },
}
