import type { Program } from '../program.ts'

export const kimiCode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '262,144 tokens',
  settings: ({ origin, key, model, contextWindow, outputTokensMax }, wire) => ({
    env: {
      KIMI_MODEL_NAME: model,
      KIMI_MODEL_PROVIDER_TYPE: { messages: 'anthropic', chat: 'openai', responses: 'openai_responses' }[wire],
      KIMI_MODEL_BASE_URL: wire === 'messages' ? origin : `${origin}/v1`,
      KIMI_MODEL_API_KEY: key,
      ...(contextWindow === undefined ? {} : { KIMI_MODEL_MAX_CONTEXT_SIZE: String(contextWindow) }),
      ...(outputTokensMax === undefined ? {} : { KIMI_MODEL_MAX_OUTPUT_SIZE: String(outputTokensMax) }),
    },
    commands: [['kimi']],
  }),
}
