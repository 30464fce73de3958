import type { Program } from '../program.ts'
import { json } from '../settings.ts'
import { litellmEnv, litellmModel } from './litellm.ts'

export const aider: Program = {
  wires: ['chat', 'messages'],
  assumes: 'no limit',
  settings: (access, wire) => {
    const { contextWindow, outputTokensMax } = access
    const [provider] = litellmModel(access, wire).split('/')
    const entry = {
      litellm_provider: provider,
      mode: 'chat',
      max_tokens: outputTokensMax,
      max_input_tokens: contextWindow,
      max_output_tokens: outputTokensMax,
    }
    return {
      files: [
        {
          path: '~/.aider.model.metadata.json',
          format: 'json',
          text: json({ [litellmModel(access, wire)]: entry }),
        },
      ],
      env: { ...litellmEnv(access, wire), AIDER_MODEL: litellmModel(access, wire) },
      commands: [['aider', '--no-show-model-warnings']],
    }
  },
}
