import type { Access, Program } from '../program.ts'
import { json, keyVariable, sessionHeader } from '../settings.ts'

export const qwenCode: Program = {
  wires: ['chat', 'messages', 'responses'],
  assumes: '200,000 tokens',
  settings: (access, wire) => {
    const { origin, key, model, contextWindow } = access
    const protocol = wire === 'messages' ? 'anthropic' : 'openai'
    const entry = {
      id: model,
      envKey: keyVariable,
      // The vendor's SDK for the messages wire adds /v1 itself.
      baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
      ...(wire === 'responses' ? { wireApi: 'responses' } : {}),
      generationConfig: {
        contextWindowSize: contextWindow,
        // Its own session id would be sent only with a setting that affects all of the user's providers.
        customHeaders: { [sessionHeader]: 'qwen-code' },
        ...(wire === 'messages' ? thinkingOf(access) : {}),
      },
    }
    return {
      files: [
        {
          path: '~/.qwen/settings.json',
          format: 'json',
          text: json({
            modelProviders: { [protocol]: [entry] },
            security: { auth: { selectedType: protocol } },
            model: { name: model },
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
function thinkingOf({ outputTokensMax }: Access) {
  if (outputTokensMax === undefined) return { reasoning: { effort: 'medium', budget_tokens: 4_096 } }
  const budget = Math.max(1_024, Math.floor(outputTokensMax / 4))
  return { samplingParams: { max_tokens: outputTokensMax }, reasoning: { effort: 'medium', budget_tokens: budget } }
}
