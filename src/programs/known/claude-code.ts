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
            // The models that `--model opus`, `/model` and the user's agents mean by these names.
            ANTHROPIC_DEFAULT_OPUS_MODEL: model,
            ANTHROPIC_DEFAULT_SONNET_MODEL: model,
            ANTHROPIC_DEFAULT_FABLE_MODEL: model,
            // Also for titles and other small work.
            ANTHROPIC_DEFAULT_HAIKU_MODEL: small.model,
            // Agents that name no model.
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
