import type { Program } from '../program.ts'
import { sessionHeader } from '../settings.ts'

const path = '.continue/triwire.yaml'

/** Continue's agent for the terminal. It reads one file of ours, so that the user's own stays as it is. */
export const cn: Program = {
  wires: ['chat', 'messages'],
  assumes: '200,000 tokens',
  settings: ({ origin, key, model, contextWindow, outputTokensMax }, wire) => ({
    files: [
      {
        path: `~/${path}`,
        format: 'own',
        text: `name: triwire
version: 1.0.0
schema: v1
models:
  - name: ${JSON.stringify(model)}
    provider: ${wire === 'messages' ? 'anthropic' : 'openai'}
    model: ${JSON.stringify(model)}
    apiBase: ${JSON.stringify(`${origin}/v1${wire === 'messages' ? '/' : ''}`)}
    apiKey: ${JSON.stringify(key)}
    roles: [chat, edit, apply]
    capabilities: [tool_use]
    requestOptions:
      headers:
        ${sessionHeader}: cn
${completionOptions(contextWindow, outputTokensMax)}`,
      },
    ],
    commands: [['cn', '--config', { home: path }]],
  }),
}

function completionOptions(contextWindow: number | undefined, outputTokensMax: number | undefined): string {
  const lines = [
    ...(contextWindow === undefined ? [] : [`      contextLength: ${contextWindow}\n`]),
    ...(outputTokensMax === undefined ? [] : [`      maxTokens: ${outputTokensMax}\n`]),
  ]
  return lines.length === 0 ? '' : `    defaultCompletionOptions:\n${lines.join('')}`
}
