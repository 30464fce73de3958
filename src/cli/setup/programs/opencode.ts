import type { Program } from '../program.ts'
import { contextTokens, json, keyVariable } from '../settings.ts'

export const opencode: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: ({ origin, key, model, smallModel, outputTokensMax }, wire) => ({
    file: {
      path: '~/.config/opencode/opencode.json',
      text: json({
        $schema: 'https://opencode.ai/config.json',
        model: `triwire/${model}`,
        small_model: `triwire/${smallModel}`,
        provider: {
          triwire: {
            npm: { messages: '@ai-sdk/anthropic', chat: '@ai-sdk/openai-compatible', responses: '@ai-sdk/openai' }[
              wire
            ],
            name: 'triwire',
            options: { baseURL: `${origin}/v1`, apiKey: `{env:${keyVariable}}` },
            models: Object.fromEntries(
              [...new Set([model, smallModel])].map((id) => [
                id,
                { name: id, reasoning: true, limit: { context: contextTokens, output: outputTokensMax } },
              ]),
            ),
          },
        },
      }),
    },
    env: { [keyVariable]: key },
    run: 'opencode',
  }),
}
