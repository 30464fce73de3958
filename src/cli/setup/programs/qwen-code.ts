import type { Program } from '../program.ts'
import { json, keyVariable, sessionHeader } from '../settings.ts'

export const qwenCode: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: ({ origin, key, model, outputTokensMax }, wire) => {
    const protocol = wire === 'messages' ? 'anthropic' : 'openai'
    const entry = {
      id: model,
      envKey: keyVariable,
      // The vendor's SDK for the messages wire adds /v1 itself.
      baseUrl: wire === 'messages' ? origin : `${origin}/v1`,
      ...(wire === 'responses' ? { wireApi: 'responses' } : {}),
      generationConfig: {
        // Its own session id would go out only after a switch that holds for every provider of the user.
        customHeaders: { [sessionHeader]: 'qwen-code' },
        // By itself it would think as much as it may say in all, which this wire refuses.
        ...(wire === 'messages'
          ? {
              samplingParams: { max_tokens: outputTokensMax },
              reasoning: { effort: 'medium', budget_tokens: Math.max(1_024, Math.floor(outputTokensMax / 4)) },
            }
          : {}),
      },
    }
    return {
      file: {
        path: '~/.qwen/settings.json',
        text: json({
          modelProviders: { [protocol]: [entry] },
          security: { auth: { selectedType: protocol } },
          model: { name: model },
        }),
      },
      env: { [keyVariable]: key },
      run: 'qwen',
    }
  },
}
