import { type Figures, type Program, sessionHeader } from '../program.ts'
import { json, keyVariable } from '../settings.ts'

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
        // Its own session id would be sent only with a setting that affects all of the user's providers.
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

/** Limits reasoning. By default its budget is the whole output, which this wire refuses. */
function thinkingOf({ outputTokensMax }: Figures) {
  if (outputTokensMax === undefined) return { reasoning: { effort: 'medium', budget_tokens: 4_096 } }
  const budget = Math.max(1_024, Math.floor(outputTokensMax / 4))
  return { samplingParams: { max_tokens: outputTokensMax }, reasoning: { effort: 'medium', budget_tokens: budget } }
}
