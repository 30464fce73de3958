import { type Program, promptOf } from '../program.ts'
import { json, keyVariable } from '../settings.ts'

/** The id for `-m`. Without an id, a model is named by its index among the user's models. */
const id = 'custom:triwire-0'

/**
 * Droid shortens a session by `compactionTokenLimitPerModel` only. It ignores `maxContextLimit`, although its makers document it
 * (0.215.0).
 */
export const droid: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '250,000 tokens',
  settings: (access, wire) => {
    const { origin, key, model, contextWindow, outputTokensMax } = access
    return {
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
            compactionTokenLimitPerModel: contextWindow === undefined ? undefined : { [id]: promptOf(access) },
          }),
          lists: { customModels: 'displayName' },
        },
      ],
      env: { [keyVariable]: key },
      commands: [['droid', 'exec', '-m', id, '…']],
    }
  },
}
