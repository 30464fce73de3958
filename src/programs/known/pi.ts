import type { Program } from '../program.ts'
import { json, keyVariable, sessionHeader } from '../settings.ts'

export const pi: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '128,000 tokens',
  settings: ({ origin, key, model, contextWindow, outputTokensMax }, wire) => ({
    files: [
      {
        path: '~/.pi/agent/models.json',
        format: 'json',
        text: json({
          providers: {
            triwire: {
              baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
              api: { messages: 'anthropic-messages', chat: 'openai-completions', responses: 'openai-responses' }[wire],
              apiKey: keyVariable,
              headers: { [sessionHeader]: 'pi' },
              models: [{ id: model, reasoning: true, contextWindow, maxTokens: outputTokensMax }],
            },
          },
        }),
        lists: { 'providers.triwire.models': 'id' },
      },
    ],
    env: { [keyVariable]: key },
    commands: [['pi', '--provider', 'triwire', '--model', model]],
  }),
}
