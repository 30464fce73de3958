import type { Figures, Program } from '../program.ts'
import { json, keyVariable } from '../settings.ts'

export const opencode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: 'no limit',
  settings: ({ origin, key, model, small, ...figures }, wire) => ({
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
              models: { [small.model]: modelEntry(small.model, small), [model]: modelEntry(model, figures) },
            },
          },
        }),
        without: [model, small.model].map((id) => ['provider', 'triwire', 'models', id, 'limit']),
      },
    ],
    env: { [keyVariable]: key },
    commands: [['opencode']],
  }),
}

function modelEntry(id: string, { contextWindow, outputTokensMax }: Figures) {
  const limit = contextWindow && outputTokensMax ? { context: contextWindow, output: outputTokensMax } : undefined
  return { name: id, reasoning: true, limit }
}

/** A relative of opencode that reads the same settings from another path. */
export const kilo: Program = {
  wires: opencode.wires,
  assumes: opencode.assumes!,
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
