import type { ClientWire } from '../../catalog/wire-names.ts'
import { type Access, type Figures, type OfferedModel, type Program, sessionHeader } from '../program.ts'

const path = '.continue/triwire.yaml'

/** Continue's agent for the terminal. It reads a file that only we write, so the user's own file stays unchanged. */
export const cn: Program = {
  wires: ['chat', 'messages'],
  assumes: '200,000 tokens',
  settings: (access, wire) => ({
    files: [
      {
        path: `~/${path}`,
        format: 'own',
        text: `name: triwire
version: 1.0.0
schema: v1
models:
${access.models.map((choice) => entryOf(choice, access, wire)).join('')}`,
      },
    ],
    commands: [['cn', '--config', { home: path }]],
  }),
}

function entryOf({ model, ...figures }: OfferedModel, access: Access, wire: ClientWire): string {
  const { origin, key } = access
  return `  - name: ${JSON.stringify(model)}
    provider: ${wire === 'messages' ? 'anthropic' : 'openai'}
    model: ${JSON.stringify(model)}
    apiBase: ${JSON.stringify(`${origin}/v1${wire === 'messages' ? '/' : ''}`)}
    apiKey: ${JSON.stringify(key)}
    roles: [chat, edit, apply]
    capabilities: [tool_use]
    requestOptions:
      headers: ${JSON.stringify(sessionHeader('cn', access))}
${completionOptions(figures)}`
}

function completionOptions({ contextWindow, outputTokensMax }: Figures): string {
  const lines = [
    ...(contextWindow === undefined ? [] : [`      contextLength: ${contextWindow}\n`]),
    ...(outputTokensMax === undefined ? [] : [`      maxTokens: ${outputTokensMax}\n`]),
  ]
  return lines.length === 0 ? '' : `    defaultCompletionOptions:\n${lines.join('')}`
}
