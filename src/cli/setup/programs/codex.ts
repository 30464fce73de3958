import type { Program } from '../program.ts'
import { keyVariable } from '../settings.ts'

export const codex: Program = {
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
}
