import type { Program } from '../program.ts'
import { json } from '../settings.ts'

export const droid: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: ({ origin, key, model, outputTokensMax }, wire) => ({
    file: {
      path: '~/.factory/settings.json',
      text: json({
        customModels: [
          {
            model,
            displayName: 'triwire',
            baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
            apiKey: key,
            provider: { messages: 'anthropic', chat: 'generic-chat-completion-api', responses: 'openai' }[wire],
            maxOutputTokens: outputTokensMax,
          },
        ],
      }),
    },
    run: 'droid exec -m custom:triwire-0 "…"',
  }),
}
