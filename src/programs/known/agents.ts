import { type Figures, json, keyVariable, type Program, promptOf, sessionHeader, tokensText } from '../program.ts'
import { commandLine } from '../shells.ts'

export const copilot: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '128,000 tokens for the prompt',
  runsTokenCommand: true,
  settings: (access, wire) => {
    const { origin, key, model, outputTokensMax, tokenCommand } = access
    return {
      env: {
        COPILOT_PROVIDER_BASE_URL: wire === 'messages' ? origin : `${origin}/v1`,
        COPILOT_PROVIDER_TYPE: wire === 'messages' ? 'anthropic' : 'openai',
        COPILOT_PROVIDER_WIRE_API: { messages: undefined, chat: 'completions', responses: 'responses' }[wire],
        COPILOT_PROVIDER_API_KEY: tokenCommand ? undefined : key,
        COPILOT_PROVIDER_API_KEY_COMMAND: tokenCommand && commandLine('posix', tokenCommand),
        COPILOT_PROVIDER_HEADERS: `x-session-id: ${sessionHeader('copilot', access)['x-session-id']}`,
        COPILOT_PROVIDER_MAX_PROMPT_TOKENS: tokensText(promptOf(access)),
        COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: tokensText(outputTokensMax),
        COPILOT_MODEL: model,
        COPILOT_OFFLINE: 'true',
      },
      commands: [['copilot']],
    }
  },
}

/**
 * The id of the chosen model, for `-m`. Without an id, Droid would name the model by its position in the user's list.
 */
const droidId = 'custom:triwire-0'

/**
 * Droid compacts a session at the limit in `compactionTokenLimitPerModel`. It ignores `maxContextLimit`, although that
 * is documented (0.215.0).
 */
export const droid: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '250,000 tokens',
  settings: (access, wire) => {
    const { origin, key, models } = access
    const [, ...others] = models.map(({ model }) => `custom:triwire-${model}`)
    const limits = [droidId, ...others].map((one, index) => [one, promptOf(models[index]!)])
    return {
      files: [
        {
          path: '~/.factory/settings.json',
          format: 'json',
          text: json({
            customModels: models.map(({ model, contextWindow, outputTokensMax }, index) => ({
              ...{ id: index === 0 ? droidId : others[index - 1], model },
              // A later setup finds the entry of the chosen model by this name.
              displayName: index === 0 ? 'triwire' : `triwire ${model}`,
              baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
              apiKey: `\${${keyVariable}}`,
              provider: { messages: 'anthropic', chat: 'generic-chat-completion-api', responses: 'openai' }[wire],
              maxContextLimit: contextWindow,
              maxOutputTokens: outputTokensMax,
            })),
            compactionTokenLimitPerModel: limits.some(([, limit]) => limit !== undefined)
              ? Object.fromEntries(limits)
              : undefined,
          }),
          lists: { customModels: 'displayName' },
        },
      ],
      env: { [keyVariable]: key },
      commands: [['droid', 'exec', '-m', droidId, '…']],
    }
  },
}

export const kimiCode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '262,144 tokens',
  settings: ({ origin, key, model, contextWindow, outputTokensMax }, wire) => ({
    env: {
      KIMI_MODEL_NAME: model,
      KIMI_MODEL_PROVIDER_TYPE: { messages: 'anthropic', chat: 'openai', responses: 'openai_responses' }[wire],
      KIMI_MODEL_BASE_URL: wire === 'messages' ? origin : `${origin}/v1`,
      KIMI_MODEL_API_KEY: key,
      KIMI_MODEL_MAX_CONTEXT_SIZE: tokensText(contextWindow),
      KIMI_MODEL_MAX_OUTPUT_SIZE: tokensText(outputTokensMax),
    },
    commands: [['kimi']],
  }),
}

export const pi: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '128,000 tokens',
  settings: (access, wire) => ({
    files: [
      {
        path: '~/.pi/agent/models.json',
        format: 'json',
        text: json({
          providers: {
            triwire: {
              baseUrl: wire === 'messages' ? access.origin : `${access.origin}/v1`,
              api: { messages: 'anthropic-messages', chat: 'openai-completions', responses: 'openai-responses' }[wire],
              apiKey: keyVariable,
              headers: sessionHeader('pi', access),
              models: access.models.map(({ model, contextWindow, outputTokensMax }) => ({
                ...{ id: model, reasoning: true, contextWindow, maxTokens: outputTokensMax },
              })),
            },
          },
        }),
        lists: { 'providers.triwire.models': 'id' },
      },
    ],
    env: { [keyVariable]: access.key },
    commands: [['pi', '--provider', 'triwire', '--model', access.model]],
  }),
}

export const qwenCode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '200,000 tokens',
  settings: (access, wire) => {
    const { origin, key } = access
    const protocol = wire === 'messages' ? 'anthropic' : 'openai'
    const entries = access.models.map((choice) => ({
      id: choice.model,
      envKey: keyVariable,
      // The vendor's SDK for the messages wire adds /v1 itself.
      baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
      ...(wire === 'responses' ? { wireApi: 'responses' } : {}),
      generationConfig: {
        contextWindowSize: choice.contextWindow,
        // Qwen Code's own session id would need a setting that changes all of the user's providers.
        customHeaders: sessionHeader('qwen-code', access),
        ...(wire === 'messages' ? thinkingOf(choice) : {}),
      },
    }))
    return {
      files: [
        {
          path: '~/.qwen/settings.json',
          format: 'json',
          text: json({
            modelProviders: { [protocol]: entries },
            security: { auth: { selectedType: protocol } },
            model: { name: access.model },
          }),
          lists: { [`modelProviders.${protocol}`]: 'id' },
        },
      ],
      env: { [keyVariable]: key },
      commands: [['qwen']],
    }
  },
}

/** Limits reasoning. By default Qwen Code would allow it the whole output limit, which the messages wire refuses. */
function thinkingOf({ outputTokensMax }: Figures) {
  if (outputTokensMax === undefined) return { reasoning: { effort: 'medium', budget_tokens: 4_096 } }
  const budget = Math.max(1_024, Math.floor(outputTokensMax / 4))
  return { samplingParams: { max_tokens: outputTokensMax }, reasoning: { effort: 'medium', budget_tokens: budget } }
}
