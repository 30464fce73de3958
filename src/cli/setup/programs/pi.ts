import type { Program } from '../program.ts'
import { contextTokens, json, keyVariable, sessionHeader } from '../settings.ts'

export const pi: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: ({ origin, key, model, outputTokensMax }, wire) => ({
    file: {
      path: '~/.pi/agent/models.json',
      text: json({
        providers: {
          triwire: {
            baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
            api: { messages: 'anthropic-messages', chat: 'openai-completions', responses: 'openai-responses' }[wire],
            apiKey: keyVariable,
            headers: { [sessionHeader]: 'pi' },
            models: [{ id: model, reasoning: true, contextWindow: contextTokens, maxTokens: outputTokensMax }],
          },
        },
      }),
    },
    env: { [keyVariable]: key },
    run: `pi --provider triwire --model ${model}`,
  }),
}
