import { type Command, CommanderError } from 'commander'
import { print } from './print.ts'

/** @param origin without a path. Who adds `/v1` itself and who does not is what people get wrong. */
type Setting = { origin: string; key: string; model: string }

/** The exact settings of each client that was tried against the gateway. */
const clients: Record<string, (setting: Setting) => string> = {
  'openai-node': ({ origin, key, model }) => `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' })
const answer = await client.chat.completions.create({
  model: '${model}',
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.choices[0]?.message.content)`,

  'openai-python': ({ origin, key, model }) => `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)`,

  'anthropic-node': ({ origin, key, model }) => `import Anthropic from '@anthropic-ai/sdk'

// Without /v1: this client adds it.
const client = new Anthropic({ baseURL: '${origin}', apiKey: '${key}' })
const answer = await client.messages.create({
  model: '${model}',
  max_tokens: 1024,
  messages: [{ role: 'user', content: 'Hello' }],
})
console.log(answer.content)`,

  'anthropic-python': ({ origin, key, model }) => `from anthropic import Anthropic

# Without /v1: this client adds it.
client = Anthropic(base_url="${origin}", api_key="${key}")
answer = client.messages.create(
    model="${model}",
    max_tokens=1024,
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.content)`,

  'claude-code': ({
    origin,
    key,
    model,
  }) => `# Without /v1: this client adds it. The second model is the one for titles and other small work.
export ANTHROPIC_BASE_URL='${origin}'
export ANTHROPIC_AUTH_TOKEN='${key}'
export ANTHROPIC_MODEL='${model}'
export ANTHROPIC_DEFAULT_HAIKU_MODEL='${model}'
export CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
claude`,

  codex: ({ origin, key, model }) => `# ~/.codex/config.toml
model = "${model}"
model_provider = "triwire"
# Hosted web search runs at the model's provider: a model that is translated for cannot have it.
web_search = "disabled"

[model_providers.triwire]
name = "triwire"
base_url = "${origin}/v1"
env_key = "TRIWIRE_API_KEY"
wire_api = "responses"

# and in the shell
export TRIWIRE_API_KEY='${key}'`,

  opencode: ({ origin, key, model }) => `// opencode.json
${JSON.stringify(
  {
    $schema: 'https://opencode.ai/config.json',
    model: `triwire/${model}`,
    provider: {
      triwire: {
        npm: '@ai-sdk/openai-compatible',
        name: 'triwire',
        options: { baseURL: `${origin}/v1`, apiKey: key },
        models: { [model]: { name: model } },
      },
    },
  },
  null,
  2,
)}`,

  'ai-sdk': ({ origin, key, model }) => `import { createOpenAI } from '@ai-sdk/openai'
import { generateText } from 'ai'

const triwire = createOpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' })
const { text } = await generateText({
  model: triwire('${model}'),
  prompt: 'Hello',
  // The gateway keeps nothing between requests: without this the SDK refers to earlier items by id.
  providerOptions: { openai: { store: false } },
})
console.log(text)`,

  langchain: ({ origin, key, model }) => `import { ChatOpenAI } from '@langchain/openai'

const chat = new ChatOpenAI({
  model: '${model}',
  apiKey: '${key}',
  configuration: { baseURL: '${origin}/v1' },
})
console.log((await chat.invoke('Hello')).content)`,
}

export function addSetupCommand(program: Command): void {
  program
    .command('setup <client>')
    .description(`print what to set in a client: ${Object.keys(clients).join(', ')}`)
    .option('--url <origin>', 'where clients reach the gateway (default: the address it listens on)')
    .option('--key <key>', 'API key, from triwire key create', 'sk-tri-YOUR-KEY')
    .option('--model <id>', 'default: the first of the catalog')
    .action(async (client: string, options: { url?: string; key: string; model?: string }, command: Command) => {
      const write = new Map(Object.entries(clients)).get(client)
      if (!write) {
        const message = `error: there is no client '${client}': name one of ${Object.keys(clients).join(', ')}`
        console.error(message)
        throw new CommanderError(2, 'triwire.unknownClient', message)
      }
      const setting = await readSetting(options, command)
      const text = write(setting)
      print(command, { client, base_url: setting.origin, key: setting.key, model: setting.model, text }, () => text)
    })
}

async function readSetting(
  { url, key, model }: { url?: string; key: string; model?: string },
  command: Command,
): Promise<Setting> {
  const { loadConfig } = await import('../config/load.ts')
  const { listen, catalog } = loadConfig(command.optsWithGlobals())
  const first = model ?? catalog.models.keys().next().value
  if (first === undefined) throw new Error('The catalog has no model: name one in the configuration')
  if (!catalog.models.has(first)) throw new Error(`There is no model "${first}" in the catalog: see triwire models`)
  return { origin: url ? url.replace(/\/+(v1\/*)?$/, '') : originOf(listen), key, model: first }
}

/** A listener on every address is reached on this machine by its own. */
function originOf({ host, port }: { host: string; port: number }): string {
  const reachable = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  return `http://${reachable.includes(':') ? `[${reachable}]` : reachable}:${port}`
}
