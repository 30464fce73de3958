import type { Program } from '../program.ts'
import { contextTokens, sessionHeader } from '../settings.ts'

/** Continue's agent for the terminal. */
export const cn: Program = {
  wires: ['chat', 'messages'],
  settings: ({ origin, key, model, outputTokensMax }, wire) => ({
    file: {
      path: '~/.continue/config.yaml',
      text: `name: triwire
version: 1.0.0
schema: v1
models:
  - name: ${model}
    provider: ${wire === 'messages' ? 'anthropic' : 'openai'}
    model: ${model}
    apiBase: ${origin}/v1${wire === 'messages' ? '/' : ''}
    apiKey: ${key}
    roles: [chat, edit, apply]
    capabilities: [tool_use]
    requestOptions:
      headers:
        ${sessionHeader}: cn
    defaultCompletionOptions:
      contextLength: ${contextTokens}
      maxTokens: ${outputTokensMax}
`,
    },
    run: 'cn --config ~/.continue/config.yaml',
  }),
}
