import { litellmEnv, litellmModel } from '../litellm.ts'
import type { Program } from '../program.ts'

export const gptme: Program = {
  wires: ['responses', 'messages'],
  settings: (access, wire) => ({
    env: litellmEnv(access, wire),
    run: `gptme -m ${litellmModel(access, wire)}`,
  }),
}
