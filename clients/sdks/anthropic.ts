import assert from 'node:assert/strict'
import Anthropic from '@anthropic-ai/sdk'
import { betaZodTool } from '@anthropic-ai/sdk/helpers/beta/zod'
import { zodOutputFormat } from '@anthropic-ai/sdk/helpers/zod'
import { z } from 'zod'
import { answer, assertWeather, bothCities, imageBase64, longReply, question, type Sdk, sampled } from './sdk.ts'

export const anthropic: Sdk = {
  client: 'anthropic-node',
  packages: ['@anthropic-ai/sdk'],
  wires: ['messages'],
  cases({ origin, key, model, script }) {
    const client = new Anthropic({ baseURL: origin, apiKey: key, maxRetries: 0 })
    const ask = (content: Anthropic.MessageParam['content'], more: object = {}) => ({
      model,
      max_tokens: 2_000,
      messages: [{ role: 'user' as const, content }],
      ...more,
    })
    return {
      async text() {
        assert.match(textOf(await client.messages.create(ask(question))), answer)
      },
      async stream() {
        assert.match(textOf(await client.messages.stream(ask(question)).finalMessage()), answer)
      },
      async tools() {
        const weather = betaZodTool({
          name: 'get_weather',
          description: 'Weather of a city',
          inputSchema: z.object({ city: z.string() }),
          run: ({ city }) => `sunny in ${city}`,
        })
        const asked = { ...ask(bothCities), tools: [weather] }
        assertWeather(textOf(await client.beta.messages.toolRunner(asked)))
        const runner = client.beta.messages.toolRunner({ ...asked, stream: true })
        assertWeather(textOf(await runner.runUntilDone()))
      },
      async structured() {
        const format = zodOutputFormat(z.object({ city: z.string(), rainy: z.boolean() }))
        const message = await client.messages.parse({ ...ask(question), output_config: { format } })
        assert.deepEqual(message.parsed_output, sampled)
      },
      async image() {
        const source = { type: 'base64' as const, media_type: 'image/png' as const, data: imageBase64 }
        const message = await client.messages.create(
          ask([
            { type: 'image', source },
            { type: 'text', text: 'What is it?' },
          ]),
        )
        assert.match(textOf(message), /1 image/)
      },
      async reasoning() {
        const asked = ask(question, { thinking: { type: 'enabled', budget_tokens: 1_024 } })
        const first = await client.messages.stream(asked).finalMessage()
        assert.equal(first.content[0]?.type, 'thinking')
        const more = [
          { role: 'assistant' as const, content: first.content },
          { role: 'user' as const, content: 'And then?' },
        ]
        const second = await client.messages.create({ ...asked, messages: [...asked.messages, ...more] })
        assert.match(textOf(second), /And then\?/)
      },
      async error() {
        const nobody = client.messages.create(ask(question, { model: 'nobody' }))
        await assert.rejects(nobody, Anthropic.NotFoundError)
      },
      async abort() {
        script(longReply)
        const stream = client.messages.stream(ask(question))
        stream.once('text', () => stream.abort())
        await assert.rejects(stream.finalMessage(), Anthropic.APIUserAbortError)
      },
    }
  },
}

function textOf({ content }: { content: readonly { type: string }[] }): string {
  return content.map((block) => ('text' in block ? block.text : '')).join('')
}
