import { json, type Program } from '../program.ts'

/** Cline's provider for any base URL that is compatible with OpenAI's. */
const provider = 'openai-compatible'

/**
 * The settings are in the file that `cline auth` writes, because that command accepts no context window and no output
 * limit. Both are set for the provider, because Cline ignores them in an entry of its `models.json`.
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
