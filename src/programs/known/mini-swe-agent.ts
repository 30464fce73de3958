import type { Program } from '../program.ts'
import { litellmEnv, litellmModel } from './litellm.ts'

const responsesModel = ['-c', 'mini.yaml', '-c', 'model.model_class=litellm_response']

/** It sends its whole history each time, and asks for no window. */
export const miniSweAgent: Program = {
  wires: ['chat', 'messages', 'responses'],
  settings: (access, wire) => ({
    env: {
      ...litellmEnv(access, wire),
      MSWEA_CONFIGURED: 'true',
      MSWEA_MODEL_NAME: litellmModel(access, wire),
      // It asks what a model costs, and knows none of ours.
      MSWEA_COST_TRACKING: 'ignore_errors',
    },
    commands: [['mini', ...(wire === 'responses' ? responsesModel : [])]],
  }),
}
