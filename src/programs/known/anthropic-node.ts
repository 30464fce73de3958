import type { Program } from '../program.ts'

export const anthropicNode: Program = {
  wires: ['messages'],
  settings: ({ origin, key, model }) => ({
    code: `import Anthropic from '@anthropic-ai/sdk'

// Without /v1: this client adds it.
const client = new Anthropic({ baseURL: '${origin}', apiKey: '${key}' })
const answer = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.content)`,
  }),
}
