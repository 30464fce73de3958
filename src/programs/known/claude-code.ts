import { findFamily } from '../figures.ts'
import { json, type Program, tokensText } from '../program.ts'
import { commandLine } from '../shells.ts'

const windowVariable = 'CLAUDE_CODE_MAX_CONTEXT_TOKENS'
const outputVariable = 'CLAUDE_CODE_MAX_OUTPUT_TOKENS'

export const claudeCode: Program = {
  wires: ['messages'],
  assumes: '1,000,000 tokens, and compacts too late',
  families: ['sonnet', 'opus', 'fable'],
  small: { family: 'haiku' },
  signsIn: true,
  runsTokenCommand: true,
  settings: ({ origin, key, model, small, models, contextWindow, outputTokensMax, tokenCommand, isSignIn }) => ({
    files: [
      {
        path: '~/.claude/settings.json',
        format: 'json',
        text: json({
          // Claude Code's own sign-in at a gateway. It works in user settings as well as in managed ones (2.1.332).
          forceLoginMethod: isSignIn ? 'gateway' : undefined,
          forceLoginGatewayUrl: isSignIn ? origin : undefined,
          apiKeyHelper: tokenCommand && commandLine('posix', tokenCommand),
          env: {
            // Claude Code adds /v1 itself. With a sign-in the variable is not set, because Claude Code would then want
            // a key.
            ANTHROPIC_BASE_URL: isSignIn ? undefined : origin,
            ANTHROPIC_MODEL: model,
            // The models for the names opus, sonnet and so on, in `--model`, in `/model`, and in the user's agents.
            ANTHROPIC_DEFAULT_OPUS_MODEL: findFamily('opus', models, model)?.model ?? model,
            ANTHROPIC_DEFAULT_SONNET_MODEL: findFamily('sonnet', models, model)?.model ?? model,
            ANTHROPIC_DEFAULT_FABLE_MODEL: findFamily('fable', models, model)?.model ?? model,
            // This model is also used for titles and other small work.
            ANTHROPIC_DEFAULT_HAIKU_MODEL: small.model,
            // Subagents that name no model use this model.
            CLAUDE_CODE_SUBAGENT_MODEL: model,
            [windowVariable]: tokensText(contextWindow),
            [outputVariable]: tokensText(outputTokensMax),
            // Adds models of the gateway's list to `/model`, if their ids begin with `claude` or `anthropic` (2.1.330).
            CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: '1',
            CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
          },
        }),
        without: [
          ['env', windowVariable],
          ['env', outputVariable],
          ['env', 'ANTHROPIC_BASE_URL'],
          ...['forceLoginMethod', 'forceLoginGatewayUrl', 'apiKeyHelper'].map((name) => [name]),
          // If the file had a key, Claude Code would send the key instead of a token.
          ...(tokenCommand || isSignIn
            ? ['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_API_KEY'].map((name) => ['env', name])
            : []),
        ],
      },
    ],
    env: { ANTHROPIC_AUTH_TOKEN: tokenCommand || isSignIn ? undefined : key },
    commands: [['claude']],
  }),
}
