// The AI SDK of Vercel, with a tool that runs between two requests.
//   npm install ai @ai-sdk/openai zod
//   TRIWIRE_KEY=sk-tri-… node examples/ai-sdk.mjs
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, stepCountIs, tool } from 'ai'
import { z } from 'zod'

const triwire = createOpenAI({
  baseURL: `${process.env.TRIWIRE_URL ?? 'http://127.0.0.1:8080'}/v1`,
  apiKey: process.env.TRIWIRE_KEY,
})

const { text, usage } = await generateText({
  model: triwire(process.env.TRIWIRE_MODEL ?? 'sim-messages'),
  prompt: 'call get_weather {"city":"Paris"}',
  tools: {
    get_weather: tool({
      description: 'The weather of a city',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => `It is sunny in ${city}.`,
    }),
  },
  stopWhen: stepCountIs(3),
  // The gateway keeps nothing between requests: without this the SDK refers to earlier items by id.
  providerOptions: { openai: { store: false } },
})
console.log(text, usage)
