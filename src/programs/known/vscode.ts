import { type Program, promptOf } from '../program.ts'
import { contextTokens, json, outputTokens } from '../settings.ts'

const folders: Partial<Record<NodeJS.Platform, string>> = {
  darwin: '~/Library/Application Support/Code/User',
  win32: '~/AppData/Roaming/Code/User',
}

const paths = { chat: 'chat/completions', messages: 'messages', responses: 'responses' }
const types = { chat: 'chat-completions', messages: 'messages', responses: 'responses' }

/**
 * The chat of VS Code, with a custom endpoint (1.122 and later). Its keys come from the makers' own test plan
 * (microsoft/vscode#316916). We could not run it.
 */
export const vscode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: `what the settings must say: ${contextTokens.toLocaleString('en')} tokens are written`,
  settings: (access, wire) => {
    const { origin, key } = access
    const models = access.models.map(({ model, contextWindow, outputTokensMax = outputTokens }) => ({
      id: model,
      name: model,
      url: `${origin}/v1/${paths[wire]}`,
      toolCalling: true,
      vision: true,
      maxInputTokens: promptOf({ contextWindow, outputTokensMax }) ?? contextTokens - outputTokensMax,
      maxOutputTokens: outputTokensMax,
    }))
    return {
      files: [
        {
          path: `${folders[process.platform] ?? '~/.config/Code/User'}/chatLanguageModels.json`,
          format: 'json',
          text: json([{ name: 'triwire', vendor: 'customendpoint', apiKey: key, apiType: types[wire], models }]),
          lists: { '': 'name' },
        },
      ],
      steps: ['In VS Code: the model picker of the chat, then the model of triwire.'],
    }
  },
}
