import { json, keyVariable, type OfferedModel, type Program } from '../program.ts'

export const opencode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: 'no limit',
  small: {},
  settings: ({ origin, key, model, small, models }, wire) => ({
    files: [
      {
        path: '~/.config/opencode/opencode.json',
        elsewhere: ['~/.config/opencode/opencode.jsonc'],
        format: 'json',
        text: json({
          $schema: 'https://opencode.ai/config.json',
          model: `triwire/${model}`,
          small_model: `triwire/${small.model}`,
          provider: {
            triwire: {
              npm: { messages: '@ai-sdk/anthropic', chat: '@ai-sdk/openai-compatible', responses: '@ai-sdk/openai' }[
                wire
              ],
              name: 'triwire',
              options: { baseURL: `${origin}/v1`, apiKey: `{env:${keyVariable}}` },
              models: Object.fromEntries(models.map((one) => [one.model, modelEntry(one)])),
            },
          },
        }),
        without: models.map((one) => ['provider', 'triwire', 'models', one.model, 'limit']),
      },
    ],
    env: { [keyVariable]: key },
    commands: [['opencode']],
  }),
}

function modelEntry({ model, contextWindow, outputTokensMax }: OfferedModel) {
  const limit = contextWindow && outputTokensMax ? { context: contextWindow, output: outputTokensMax } : undefined
  return { name: model, reasoning: true, limit }
}

/** Kilo, an agent derived from opencode. It reads the same settings from another path. */
export const kilo: Program = {
  wires: opencode.wires,
  assumes: opencode.assumes!,
  small: opencode.small!,
  settings(access, wire) {
    const { files, ...settings } = opencode.settings(access, wire)
    const path = '~/.config/kilo/kilo.json'
    return {
      ...settings,
      files: [{ ...files![0]!, path, elsewhere: ['~/.config/kilo/kilo.jsonc'] }],
      commands: [['kilo']],
    }
  },
}
