import type { WireName } from '../../catalog/model.ts'

/** @param origin without a path. Who adds `/v1` itself and who does not is what people get wrong. */
export type Place = { origin: string; key: string; model: string; smallModel: string; outputTokensMax: number }

/** What a client has to be told, in the forms that it reads. */
export type Settings = {
  /** A file of its own. `~/` is the home folder; keys stay out of it where the client can read them elsewhere. */
  file?: { path: string; text: string }
  /** Variables of the shell. */
  env?: Readonly<Record<string, string>>
  /** How it is started then. */
  run?: string
  /** A program that uses it. */
  code?: string
}

export type Client = {
  /** The wires it can use, the one it prefers first. */
  wires: readonly WireName[]
  settings(place: Place, wire: WireName): Settings
}

const keyVariable = 'TRIWIRE_API_KEY'

/**
 * Names the conversation (spec 4.1). Without a name a model of the messages wire is not asked to cache (ruling T5), and a
 * long conversation costs three times as much. For an agent that names none, a fixed word does: what is cached is
 * told by the text.
 */
const sessionHeader = 'x-session-id'

/** The exact settings of each client, as the clients suite has run them (docs/clients.md). */
export const clients: Readonly<Record<string, Client>> = {
  'openai-node': {
    wires: ['chat', 'responses'],
    settings: ({ origin, key, model }, wire) => ({
      code: `import OpenAI from 'openai'

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
    }),
  },

  'openai-python': {
    wires: ['chat', 'responses'],
    settings: ({ origin, key, model }, wire) => ({
      code: `from openai import OpenAI

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
    }),
  },

  'anthropic-node': {
    wires: ['messages'],
    settings: ({ origin, key, model }) => ({
      code: `import Anthropic from '@anthropic-ai/sdk'

// Without /v1: this client adds it. Its tool runner needs thread: false, since nothing is stored between requests.
const client = new Anthropic({ baseURL: '${origin}', apiKey: '${key}' })
const answer = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.content)`,
    }),
  },

  'anthropic-python': {
    wires: ['messages'],
    settings: ({ origin, key, model }) => ({
      code: `from anthropic import Anthropic

# Without /v1: this client adds it.
client = Anthropic(base_url="${origin}", api_key="${key}")
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content)`,
    }),
  },

  'claude-code': {
    wires: ['messages'],
    settings: ({ origin, key, model, smallModel }) => ({
      file: {
        path: '~/.claude/settings.json',
        text: json({
          env: {
            // Without /v1: this client adds it.
            ANTHROPIC_BASE_URL: origin,
            ANTHROPIC_MODEL: model,
            // For titles and other small work.
            ANTHROPIC_DEFAULT_HAIKU_MODEL: smallModel,
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          },
        }),
      },
      env: { ANTHROPIC_AUTH_TOKEN: key },
      run: 'claude',
    }),
  },

  codex: {
    wires: ['responses'],
    settings: ({ origin, key, model }) => ({
      file: {
        path: '~/.codex/config.toml',
        text: `model = "${model}"
model_provider = "triwire"
# Hosted web search runs at the model's provider: a model that is translated for cannot have it.
web_search = "disabled"

[model_providers.triwire]
name = "triwire"
base_url = "${origin}/v1"
env_key = "${keyVariable}"
wire_api = "responses"
`,
      },
      env: { [keyVariable]: key },
      run: 'codex',
    }),
  },

  opencode: {
    wires: ['chat', 'messages', 'responses'],
    settings: ({ origin, key, model, smallModel, outputTokensMax }, wire) => ({
      file: {
        path: '~/.config/opencode/opencode.json',
        text: json({
          $schema: 'https://opencode.ai/config.json',
          model: `triwire/${model}`,
          small_model: `triwire/${smallModel}`,
          provider: {
            triwire: {
              npm: { messages: '@ai-sdk/anthropic', chat: '@ai-sdk/openai-compatible', responses: '@ai-sdk/openai' }[
                wire
              ],
              name: 'triwire',
              options: { baseURL: `${origin}/v1`, apiKey: `{env:${keyVariable}}` },
              models: Object.fromEntries(
                [...new Set([model, smallModel])].map((id) => [
                  id,
                  { name: id, reasoning: true, limit: { context: contextTokens, output: outputTokensMax } },
                ]),
              ),
            },
          },
        }),
      },
      env: { [keyVariable]: key },
      run: 'opencode',
    }),
  },

  'qwen-code': {
    wires: ['chat', 'messages', 'responses'],
    settings: ({ origin, key, model, outputTokensMax }, wire) => {
      const protocol = wire === 'messages' ? 'anthropic' : 'openai'
      const entry = {
        id: model,
        envKey: keyVariable,
        // The vendor's SDK for the messages wire adds /v1 itself.
        baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
        ...(wire === 'responses' ? { wireApi: 'responses' } : {}),
        generationConfig: {
          // Its own session id would go out only after a switch that holds for every provider of the user.
          customHeaders: { [sessionHeader]: 'qwen-code' },
          // By itself it would think as much as it may say in all, which this wire refuses.
          ...(wire === 'messages'
            ? {
                samplingParams: { max_tokens: outputTokensMax },
                reasoning: { effort: 'medium', budget_tokens: Math.max(1_024, Math.floor(outputTokensMax / 4)) },
              }
            : {}),
        },
      }
      return {
        file: {
          path: '~/.qwen/settings.json',
          text: json({
            modelProviders: { [protocol]: [entry] },
            security: { auth: { selectedType: protocol } },
            model: { name: model },
          }),
        },
        env: { [keyVariable]: key },
        run: 'qwen',
      }
    },
  },

  pi: {
    wires: ['chat', 'messages', 'responses'],
    settings: ({ origin, key, model, outputTokensMax }, wire) => ({
      file: {
        path: '~/.pi/agent/models.json',
        text: json({
          providers: {
            triwire: {
              baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
              api: { messages: 'anthropic-messages', chat: 'openai-completions', responses: 'openai-responses' }[wire],
              apiKey: keyVariable,
              headers: { [sessionHeader]: 'pi' },
              models: [{ id: model, reasoning: true, contextWindow: contextTokens, maxTokens: outputTokensMax }],
            },
          },
        }),
      },
      env: { [keyVariable]: key },
      run: `pi --provider triwire --model ${model}`,
    }),
  },

  copilot: {
    wires: ['chat', 'messages', 'responses'],
    settings: ({ origin, key, model, outputTokensMax }, wire) => ({
      env: {
        COPILOT_PROVIDER_BASE_URL: wire === 'messages' ? origin : `${origin}/v1`,
        COPILOT_PROVIDER_TYPE: wire === 'messages' ? 'anthropic' : 'openai',
        ...(wire === 'messages' ? {} : { COPILOT_PROVIDER_WIRE_API: wire === 'chat' ? 'completions' : 'responses' }),
        COPILOT_PROVIDER_API_KEY: key,
        COPILOT_PROVIDER_HEADERS: `${sessionHeader}: copilot`,
        COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(contextTokens),
        COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(outputTokensMax),
        COPILOT_MODEL: model,
        COPILOT_OFFLINE: 'true',
      },
      run: 'copilot',
    }),
  },

  'ai-sdk': {
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
  },

  langchain: {
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
  },

  'openai-agents': {
    wires: ['responses', 'chat'],
    settings: ({ origin, key, model }, wire) => ({
      code: `import { Agent, run, setDefaultOpenAIClient, setOpenAIAPI, setTracingDisabled } from '@openai/agents'
import OpenAI from 'openai'

setDefaultOpenAIClient(new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' }))
setOpenAIAPI('${wire === 'chat' ? 'chat_completions' : 'responses'}')
// Traces would go to the vendor.
setTracingDisabled(true)

const agent = new Agent({ name: 'Greeter', instructions: 'Be brief.', model: '${model}' })
console.log((await run(agent, 'Hello')).finalOutput)`,
    }),
  },
}

/** Agents want to know when to compact. The catalog has no context windows (spec 2.9): this many nearly all have. */
const contextTokens = 128_000

function json(value: object): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
