import type { Program } from '../program.ts'
import { contextTokens, json, keyVariable } from '../settings.ts'

/** The provider's name. Zed reads the key from a variable with this name in capitals and `_API_KEY`, or from its own store. */
const provider = 'triwire'

/** The editor. Its keys come from Zed's own types (crates/settings_content). We could not run it. */
export const zed: Program = {
  wires: ['chat', 'responses'],
  assumes: `what the settings must say: ${contextTokens.toLocaleString('en')} tokens are written`,
  settings: ({ origin, key, model: chosen, models }, wire) => ({
    files: [
      {
        path: '~/.config/zed/settings.json',
        format: 'json',
        text: json({
          agent: { default_model: { provider, model: chosen } },
          language_models: {
            openai_compatible: {
              [provider]: {
                api_url: `${origin}/v1`,
                available_models: models.map(({ model, contextWindow, outputTokensMax }) => ({
                  name: model,
                  display_name: model,
                  max_tokens: contextWindow ?? contextTokens,
                  max_output_tokens: outputTokensMax,
                  max_completion_tokens: outputTokensMax,
                  capabilities: {
                    tools: true,
                    images: true,
                    parallel_tool_calls: true,
                    prompt_cache_key: true,
                    // Without this, Zed uses the responses wire.
                    chat_completions: wire === 'chat',
                  },
                })),
              },
            },
          },
        }),
        lists: { [`language_models.openai_compatible.${provider}.available_models`]: 'name' },
      },
    ],
    env: { [keyVariable]: key },
    commands: [['zed']],
  }),
}
