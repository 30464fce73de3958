import type { Program } from '../program.ts'
import { json } from '../settings.ts'

export const claudeCode: Program = {
  wires: ['messages'],
  settings: ({ origin, key, model, smallModel }) => ({
    file: {
      path: '~/.claude/settings.json',
      text: json({
        env: {
          // Without /v1: this client adds it.
          ANTHROPIC_BASE_URL: origin,
          ANTHROPIC_MODEL: model,
          // For titles and other small work.
          ANTHROPIC_DEFAULT_HAIKU_MODEL: smallModel,
          CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
        },
      }),
    },
    env: { ANTHROPIC_AUTH_TOKEN: key },
    run: 'claude',
  }),
}
