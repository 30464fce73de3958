import type { Program } from '../program.ts'

export const aiSdk: Program = {
  wires: ['responses', 'chat', 'messages'],
  settings: ({ origin, key, model }, wire) => {
    const base = `baseURL: '${origin}/v1', apiKey: '${key}'`
    const provider = {
      messages: `import { createAnthropic } from '@ai-sdk/anthropic'
import { generateText } from 'ai'

const triwire = createAnthropic({ ${base} })`,
      chat: `import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import { generateText } from 'ai'

const triwire = createOpenAICompatible({ name: 'triwire', ${base} })`,
      responses: `import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'

const triwire = createOpenAI({ ${base} })`,
    }[wire]
    const stateless = `
  // The gateway keeps nothing between requests: without this the SDK refers to earlier items by id.
  providerOptions: { openai: { store: false } },`
    return {
      code: `${provider}
const { text } = await generateText({
  model: triwire('${model}'),
  prompt: 'Hello',${wire === 'responses' ? stateless : ''}
})
console.log(text)`,
    }
  },
}
