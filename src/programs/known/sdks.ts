import type { Program } from '../program.ts'

export const openaiNode: Program = {
  wires: ['chat', 'responses'],
  settings: ({ origin, key, model }, wire) => ({
    code: {
      language: 'javascript',
      text: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' })
${
  wire === 'chat'
    ? `const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.choices[0]?.message.content)`
    : `const answer = await client.responses.create({ model: '${model}', input: 'Hello' })
console.log(answer.output_text)`
}`,
    },
  }),
}

export const openaiPython: Program = {
  wires: ['chat', 'responses'],
  settings: ({ origin, key, model }, wire) => ({
    code: {
      language: 'python',
      text: `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")
${
  wire === 'chat'
    ? `answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`
    : `answer = client.responses.create(model="${model}", input="Hello")
print(answer.output_text)`
}`,
    },
  }),
}

export const openaiAgents: Program = {
  wires: ['responses', 'chat'],
  settings: ({ origin, key, model }, wire) => ({
    code: {
      language: 'javascript',
      text: `import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents'
import OpenAI from 'openai'

setDefaultOpenAIClient(new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' }))
setOpenAIAPI('${wire === 'chat' ? 'chat_completions' : 'responses'}')
// Traces would go to the vendor.
setTracingDisabled(true)

const agent = new Agent({ name: 'Greeter', instructions: 'Be brief.', model: '${model}' })
console.log((await run(agent, 'Hello')).finalOutput)`,
    },
  }),
}

export const anthropicNode: Program = {
  wires: ['messages'],
  settings: ({ origin, key, model }) => ({
    code: {
      language: 'javascript',
      text: `import Anthropic from '@anthropic-ai/sdk'

// Without /v1: this client adds it.
const client = new Anthropic({ baseURL: '${origin}', apiKey: '${key}' })
const answer = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.content)`,
    },
  }),
}

export const anthropicPython: Program = {
  wires: ['messages'],
  settings: ({ origin, key, model }) => ({
    code: {
      language: 'python',
      text: `from anthropic import Anthropic

# Without /v1: this client adds it.
client = Anthropic(base_url="${origin}", api_key="${key}")
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content)`,
    },
  }),
}

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
      code: {
        language: 'javascript',
        text: `${provider}
const { text } = await generateText({
  model: triwire('${model}'),
  prompt: 'Hello',${wire === 'responses' ? stateless : ''}
})
console.log(text)`,
      },
    }
  },
}

export const langchain: Program = {
  wires: ['chat', 'responses', 'messages'],
  settings: ({ origin, key, model }, wire) => ({
    code: {
      language: 'javascript',
      text:
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
    },
  }),
}
