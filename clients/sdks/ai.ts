import assert from 'node:assert/strict'
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'
import {
  answer,
  assertWeather,
  bothCities,
  imageBase64,
  longReply,
  noSummary,
  question,
  type Sdk,
  sampled,
} from './sdk.ts'

/** The Vercel AI SDK. Each wire has its own provider package. */
export const ai: Sdk = {
  client: 'ai-sdk',
  packages: ['ai', '@ai-sdk/anthropic', '@ai-sdk/openai', '@ai-sdk/openai-compatible'],
  wires: ['messages', 'chat', 'responses'],
  cases({ origin, key, model: id, wire, modelWire, script }) {
    const place = { baseURL: `${origin}/v1`, apiKey: key }
    const provider = {
      messages: () => createAnthropic(place),
      chat: () => createOpenAICompatible({ name: 'triwire', supportsStructuredOutputs: true, ...place }),
      responses: () => createOpenAI(place),
    }[wire]()
    const providerOptions = { openai: { store: false } }
    const base = { model: provider(id), providerOptions, maxRetries: 0, maxOutputTokens: 4_000 }
    const tools = {
      get_weather: tool({
        description: 'Weather of a city',
        inputSchema: z.object({ city: z.string() }),
        execute: async ({ city }) => `sunny in ${city}`,
      }),
    }
    return {
      async text() {
        const { text, usage } = await generateText({ ...base, prompt: question })
        assert.match(text, answer)
        assert.ok(usage.inputTokens! > 0 && usage.outputTokens! > 0)
      },
      async stream() {
        const result = streamText({ ...base, prompt: question })
        let text = ''
        for await (const part of result.textStream) text += part
        assert.match(text, answer)
        assert.equal(await result.finishReason, 'stop')
      },
      async tools() {
        for (const streamed of [false, true]) {
          const asked = { ...base, prompt: bothCities, tools, stopWhen: stepCountIs(3) }
          const result = streamed ? streamText(asked) : await generateText(asked)
          assert.equal((await result.steps)[0]?.toolCalls.length, 2)
          assertWeather(await result.text)
        }
      },
      async structured() {
        const output = Output.object({ schema: z.object({ city: z.string(), rainy: z.boolean() }) })
        const result = await generateText({ ...base, prompt: question, output })
        assert.deepEqual(result.output, sampled)
      },
      async image() {
        const image = { type: 'image' as const, image: `data:image/png;base64,${imageBase64}` }
        const content = [image, { type: 'text' as const, text: 'What is it?' }]
        const { text } = await generateText({ ...base, messages: [{ role: 'user', content }] })
        assert.match(text, /1 image/)
      },
      reasoning:
        wire === 'chat' && modelWire === 'responses'
          ? noSummary
          : async () => {
              const thinking = {
                anthropic: { thinking: { type: 'enabled' as const, budgetTokens: 1_024 } },
                triwire: { reasoningEffort: 'high' },
                openai: { store: false, forceReasoning: true, reasoningEffort: 'high', reasoningSummary: 'auto' },
              }
              const asked = { ...base, prompt: question, providerOptions: thinking }
              const first = await generateText(asked)
              assert.ok(first.reasoningText!.length > 0)
              assert.ok((await streamText(asked).reasoningText)!.length > 0)
              const messages = [
                { role: 'user' as const, content: question },
                ...first.response.messages,
                { role: 'user' as const, content: 'And then?' },
              ]
              const second = await generateText({ ...base, messages, providerOptions: thinking })
              assert.match(second.text, /And then\?/)
            },
      async error() {
        const nobody = { ...base, model: provider('nobody'), prompt: question }
        await assert.rejects(generateText(nobody), (thrown) => {
          assert.ok(APICallError.isInstance(thrown), String(thrown))
          assert.equal(thrown.statusCode, 404)
          assert.match(thrown.message, /No such model/)
          return true
        })
      },
      async abort() {
        script(longReply)
        const stop = new AbortController()
        const result = streamText({ ...base, prompt: question, abortSignal: stop.signal })
        let isAborted = false
        for await (const part of result.fullStream) {
          if (part.type === 'text-delta') stop.abort()
          isAborted ||= part.type === 'abort'
        }
        assert.ok(isAborted)
      },
    }
  },
}
