import { type Program, sessionHeader } from '../program.ts'
import { json, keyVariable } from '../settings.ts'

export const pi: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '128,000 tokens',
  settings: (access, wire) => ({
    files: [
      {
        path: '~/.pi/agent/models.json',
        format: 'json',
        text: json({
          providers: {
            triwire: {
              baseUrl: wire === 'messages' ? access.origin : `${access.origin}/v1`,
              api: { messages: 'anthropic-messages', chat: 'openai-completions', responses: 'openai-responses' }[wire],
              apiKey: keyVariable,
              headers: sessionHeader('pi', access),
              models: access.models.map(({ model, contextWindow, outputTokensMax }) => ({
                ...{ id: model, reasoning: true, contextWindow, maxTokens: outputTokensMax },
              })),
            },
          },
        }),
        lists: { 'providers.triwire.models': 'id' },
      },
    ],
    env: { [keyVariable]: access.key },
    commands: [['pi', '--provider', 'triwire', '--model', access.model]],
  }),
}
