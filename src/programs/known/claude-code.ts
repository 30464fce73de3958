import type { Program } from '../program.ts'
import { json } from '../settings.ts'

const windowVariable = 'CLAUDE_CODE_MAX_CONTEXT_TOKENS'
const outputVariable = 'CLAUDE_CODE_MAX_OUTPUT_TOKENS'

export const claudeCode: Program = {
  wires: ['messages'],
  assumes: '1,000,000 tokens, and compacts too late',
  settings: ({ origin, key, model, small, contextWindow, outputTokensMax }) => ({
    files: [
      {
        path: '~/.claude/settings.json',
        format: 'json',
        text: json({
          env: {
            // Without /v1: this client adds it.
            ANTHROPIC_BASE_URL: origin,
            ANTHROPIC_MODEL: model,
            // The models for these names in `--model opus`, in `/model` and in the user's agents.
            ANTHROPIC_DEFAULT_OPUS_MODEL: model,
            ANTHROPIC_DEFAULT_SONNET_MODEL: model,
            ANTHROPIC_DEFAULT_FABLE_MODEL: model,
            // This model is also used for titles and other small work.
            ANTHROPIC_DEFAULT_HAIKU_MODEL: small.model,
            // This model is used by agents that name none.
            CLAUDE_CODE_SUBAGENT_MODEL: model,
            [windowVariable]: textOf(contextWindow),
            [outputVariable]: textOf(outputTokensMax),
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          },
        }),
        without: [
          ['env', windowVariable],
          ['env', outputVariable],
        ],
      },
    ],
    env: { ANTHROPIC_AUTH_TOKEN: key },
    commands: [['claude']],
  }),
}

function textOf(tokens: number | undefined): string | undefined {
  return tokens === undefined ? undefined : String(tokens)
}
