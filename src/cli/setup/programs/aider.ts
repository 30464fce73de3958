import type { Program } from '../program.ts'
import { litellmEnv, litellmModel } from './litellm.ts'

export const aider: Program = {
  wires: ['chat', 'messages'],
  settings: (access, wire) => ({
    env: { ...litellmEnv(access, wire), AIDER_MODEL: litellmModel(access, wire) },
    run: 'aider --no-show-model-warnings',
  }),
}
