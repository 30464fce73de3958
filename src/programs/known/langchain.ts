import type { Program } from '../program.ts'

export const langchain: Program = {
  wires: ['chat', 'responses', 'messages'],
  settings: ({ origin, key, model }, wire) => ({
    code:
      wire === 'messages'
        ? `import { ChatAnthropic } from '@langchain/anthropic'

// Without /v1: this client adds it.
const chat = new ChatAnthropic({ model: '${model}', apiKey: '${key}', anthropicApiUrl: '${origin}' })
console.log((await chat.invoke('Hello')).text)`
        : `import { ChatOpenAI } from '@langchain/openai'

const chat = new ChatOpenAI({
  model: '${model}',
  apiKey: '${key}',
  configuration: { baseURL: '${origin}/v1' },${
    wire === 'responses'
      ? `
  useResponsesApi: true,
  // The gateway keeps nothing between requests: without this earlier items are referred to by id.
  zdrEnabled: true,`
      : ''
  }
})
console.log((await chat.invoke('Hello')).text)`,
  }),
}
