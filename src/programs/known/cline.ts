import type { Program } from '../program.ts'
import { json } from '../settings.ts'

/** Its provider for any OpenAI-compatible base. */
const provider = 'openai-compatible'

/**
 * The file that `cline auth` writes: that command takes no figures of a model, the file does. Where they stand is its
 * provider's settings; an entry in its own `models.json` is not taken for them.
 */
export const cline: Program = {
  wires: ['chat'],
  assumes: '128,000 tokens',
  settings: ({ origin, key, model, contextWindow, outputTokensMax }) => ({
    files: [
      {
        path: '~/.cline/data/settings/providers.json',
        format: 'json',
        text: json({
          version: 1,
          lastUsedProvider: provider,
          providers: {
            [provider]: {
              settings: {
                provider,
                apiKey: key,
                model,
                baseUrl: `${origin}/v1`,
                contextWindow,
                maxTokens: outputTokensMax,
              },
              // Cline refuses the file without a time. The time is fixed, so that a second setup changes nothing.
              updatedAt: '2026-01-01T00:00:00.000Z',
              tokenSource: 'manual',
            },
          },
        }),
      },
    ],
    commands: [['cline']],
  }),
}
