import type { Program } from '../program.ts'
import { litellmEnv, litellmModel } from './litellm.ts'

export const gptme: Program = {
  wires: ['responses', 'messages'],
  settings: (access, wire) => ({
    env: litellmEnv(access, wire),
    run: `gptme -m ${litellmModel(access, wire)}`,
  }),
}
