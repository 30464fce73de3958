import type { Program } from '../program.ts'
import { json, keyVariable } from '../settings.ts'

/** What `-m` names; without it a model is named by its place among the user's. */
const id = 'custom:triwire-0'

export const droid: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: 'a window of its own',
  settings: ({ origin, key, model, contextWindow, outputTokensMax }, wire) => ({
    files: [
      {
        path: '~/.factory/settings.json',
        format: 'json',
        text: json({
          customModels: [
            {
              id,
              model,
              displayName: 'triwire',
              baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
              apiKey: `\${${keyVariable}}`,
              provider: { messages: 'anthropic', chat: 'generic-chat-completion-api', responses: 'openai' }[wire],
              maxContextLimit: contextWindow,
              maxOutputTokens: outputTokensMax,
            },
          ],
        }),
        lists: { customModels: 'displayName' },
      },
    ],
    env: { [keyVariable]: key },
    commands: [['droid', 'exec', '-m', id, '…']],
  }),
}
