import { type Program, promptOf } from '../program.ts'
import { json, keyVariable } from '../settings.ts'

/** The id of the chosen model for `-m`. Without an id, a model is named by its index among the user's models. */
const id = 'custom:triwire-0'

/**
 * Droid shortens a session by `compactionTokenLimitPerModel` only. It ignores `maxContextLimit`, although its makers document it
 * (0.215.0).
 */
export const droid: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '250,000 tokens',
  settings: (access, wire) => {
    const { origin, key, models } = access
    const [, ...others] = models.map(({ model }) => `custom:triwire-${model}`)
    const limits = [id, ...others].map((one, index) => [one, promptOf(models[index]!)])
    return {
      files: [
        {
          path: '~/.factory/settings.json',
          format: 'json',
          text: json({
            customModels: models.map(({ model, contextWindow, outputTokensMax }, index) => ({
              ...{ id: index === 0 ? id : others[index - 1], model },
              // The name by which an earlier setup's entry of the chosen model is found.
              displayName: index === 0 ? 'triwire' : `triwire ${model}`,
              baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
              apiKey: `\${${keyVariable}}`,
              provider: { messages: 'anthropic', chat: 'generic-chat-completion-api', responses: 'openai' }[wire],
              maxContextLimit: contextWindow,
              maxOutputTokens: outputTokensMax,
            })),
            compactionTokenLimitPerModel: limits.some(([, limit]) => limit !== undefined)
              ? Object.fromEntries(limits)
              : undefined,
          }),
          lists: { customModels: 'displayName' },
        },
      ],
      env: { [keyVariable]: key },
      commands: [['droid', 'exec', '-m', id, '…']],
    }
  },
}
