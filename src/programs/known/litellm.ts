import type { ClientWire } from '../../catalog/wire-names.ts'
import { type Access, type Figures, json, type Program } from '../program.ts'

/** The variables that litellm and the vendors' Python SDKs read. The URL has /v1 for OpenAI, not for Anthropic. */
function litellmEnv({ origin, key }: Access, wire: ClientWire): Record<string, string> {
  return wire === 'messages'
    ? { ANTHROPIC_API_KEY: key, ANTHROPIC_BASE_URL: origin, ANTHROPIC_API_BASE: origin }
    : { OPENAI_API_KEY: key, OPENAI_BASE_URL: `${origin}/v1`, OPENAI_API_BASE: `${origin}/v1` }
}

/** The name of a model for litellm, with a prefix that selects the vendor's API. */
function litellmModel({ model }: Pick<Access, 'model'>, wire: ClientWire): string {
  return `${wire === 'messages' ? 'anthropic' : 'openai'}/${model}`
}

export const aider: Program = {
  wires: ['chat', 'messages'],
  assumes: 'no limit',
  settings: (access, wire) => {
    const entryOf = ({ contextWindow, outputTokensMax }: Figures) => ({
      litellm_provider: litellmModel(access, wire).split('/')[0],
      mode: 'chat',
      max_tokens: outputTokensMax,
      max_input_tokens: contextWindow,
      max_output_tokens: outputTokensMax,
    })
    const entries = access.models.map((choice) => [litellmModel(choice, wire), entryOf(choice)])
    return {
      files: [
        {
          path: '~/.aider.model.metadata.json',
          format: 'json',
          text: json(Object.fromEntries(entries)),
        },
      ],
      env: { ...litellmEnv(access, wire), AIDER_MODEL: litellmModel(access, wire) },
      commands: [['aider', '--no-show-model-warnings']],
    }
  },
}

export const gptme: Program = {
  wires: ['responses', 'messages'],
  settings: (access, wire) => ({
    env: litellmEnv(access, wire),
    commands: [['gptme', '-m', litellmModel(access, wire)]],
  }),
}

const responsesModel = ['-c', 'mini.yaml', '-c', 'model.model_class=litellm_response']

/** mini-swe-agent. It always sends its whole history, so it needs no context window. */
export const miniSweAgent: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: (access, wire) => ({
    env: {
      ...litellmEnv(access, wire),
      MSWEA_CONFIGURED: 'true',
      MSWEA_MODEL_NAME: litellmModel(access, wire),
      // The agent looks up the price of each model, and knows no price of our models.
      MSWEA_COST_TRACKING: 'ignore_errors',
    },
    commands: [['mini', ...(wire === 'responses' ? responsesModel : [])]],
  }),
}
