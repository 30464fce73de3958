import { type Program, promptOf, sessionHeader } from '../program.ts'

export const copilot: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '128,000 tokens for the prompt',
  settings: (access, wire) => {
    const { origin, key, model, outputTokensMax } = access
    const promptTokensMax = promptOf(access)
    return {
      env: {
        COPILOT_PROVIDER_BASE_URL: wire === 'messages' ? origin : `${origin}/v1`,
        COPILOT_PROVIDER_TYPE: wire === 'messages' ? 'anthropic' : 'openai',
        ...(wire === 'messages' ? {} : { COPILOT_PROVIDER_WIRE_API: wire === 'chat' ? 'completions' : 'responses' }),
        COPILOT_PROVIDER_API_KEY: key,
        COPILOT_PROVIDER_HEADERS: `x-session-id: ${sessionHeader('copilot', access)['x-session-id']}`,
        ...(promptTokensMax === undefined ? {} : { COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(promptTokensMax) }),
        ...(outputTokensMax === undefined ? {} : { COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(outputTokensMax) }),
        COPILOT_MODEL: model,
        COPILOT_OFFLINE: 'true',
      },
      commands: [['copilot']],
    }
  },
}
