import { contextTokens, json, keyVariable, outputTokens, type Program, promptOf } from '../program.ts'

/** The editor Cursor. It reads no settings file, and its vendor's servers call the gateway. We could not test it. */
export const cursor: Program = {
  wires: ['chat'],
  assumes: 'a window of its own',
  settings: ({ origin, key, models }) => ({
    steps: [
      'Cursor Settings > Models > API Keys:',
      `  OpenAI API Key: ${key}`,
      `  Override OpenAI Base URL: ${origin}/v1`,
      `Cursor Settings > Models > Add model: ${models.map(({ model }) => model).join(', ')}`,
      "Its makers' servers ask the gateway, not this machine: the address must be one that the internet reaches.",
    ],
  }),
}

const codeFolders: Partial<Record<NodeJS.Platform, string>> = {
  darwin: '~/Library/Application Support/Code/User',
  win32: '~/AppData/Roaming/Code/User',
}

const codePaths = { chat: 'chat/completions', messages: 'messages', responses: 'responses' }
const codeTypes = { chat: 'chat-completions', messages: 'messages', responses: 'responses' }

/**
 * The chat of VS Code, with a custom endpoint (1.122 and later). The names of its settings come from its vendor's test
 * plan (microsoft/vscode#316916). We could not test it.
 */
export const vscode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: `${contextTokens / 1_000},000 tokens, which the settings then name`,
  settings: (access, wire) => {
    const { origin, key } = access
    const models = access.models.map(({ model, contextWindow, outputTokensMax = outputTokens }) => ({
      id: model,
      name: model,
      url: `${origin}/v1/${codePaths[wire]}`,
      toolCalling: true,
      vision: true,
      maxInputTokens: promptOf({ contextWindow, outputTokensMax }) ?? contextTokens - outputTokensMax,
      maxOutputTokens: outputTokensMax,
    }))
    return {
      files: [
        {
          path: `${codeFolders[process.platform] ?? '~/.config/Code/User'}/chatLanguageModels.json`,
          format: 'json',
          text: json([{ name: 'triwire', vendor: 'customendpoint', apiKey: key, apiType: codeTypes[wire], models }]),
          lists: { '': 'name' },
        },
      ],
      steps: ['In VS Code: the model picker of the chat, then the model of triwire.'],
    }
  },
}

/** Our name in Zed's settings. Zed reads the key from its own store, or from the variable `TRIWIRE_API_KEY`. */
const zedProvider = 'triwire'

/** The editor Zed. Its settings come from Zed's own types (crates/settings_content). We could not test it. */
export const zed: Program = {
  wires: ['chat', 'responses'],
  assumes: `${contextTokens / 1_000},000 tokens, which the settings then name`,
  settings: ({ origin, key, model: chosen, models }, wire) => ({
    files: [
      {
        path: '~/.config/zed/settings.json',
        format: 'json',
        text: json({
          agent: { default_model: { provider: zedProvider, model: chosen } },
          language_models: {
            openai_compatible: {
              [zedProvider]: {
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
                    // Without this setting, Zed would use the responses wire.
                    chat_completions: wire === 'chat',
                  },
                })),
              },
            },
          },
        }),
        lists: { [`language_models.openai_compatible.${zedProvider}.available_models`]: 'name' },
      },
    ],
    env: { [keyVariable]: key },
    commands: [['zed']],
  }),
}
