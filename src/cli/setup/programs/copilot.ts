import type { Program } from '../program.ts'
import { contextTokens, sessionHeader } from '../settings.ts'

export const copilot: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: ({ origin, key, model, outputTokensMax }, wire) => ({
    env: {
      COPILOT_PROVIDER_BASE_URL: wire === 'messages' ? origin : `${origin}/v1`,
      COPILOT_PROVIDER_TYPE: wire === 'messages' ? 'anthropic' : 'openai',
      ...(wire === 'messages' ? {} : { COPILOT_PROVIDER_WIRE_API: wire === 'chat' ? 'completions' : 'responses' }),
      COPILOT_PROVIDER_API_KEY: key,
      COPILOT_PROVIDER_HEADERS: `${sessionHeader}: copilot`,
      COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(contextTokens),
      COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(outputTokensMax),
      COPILOT_MODEL: model,
      COPILOT_OFFLINE: 'true',
    },
    run: 'copilot',
  }),
}
