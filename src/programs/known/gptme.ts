import type { Program } from '../program.ts'
import { litellmEnv, litellmModel } from './litellm.ts'

export const gptme: Program = {
  wires: ['responses', 'messages'],
  settings: (access, wire) => ({
    env: litellmEnv(access, wire),
    commands: [['gptme', '-m', litellmModel(access, wire)]],
  }),
}
