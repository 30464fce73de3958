import type { Program } from '../program.ts'

export const cline: Program = {
  wires: ['chat'],
  settings: ({ origin, key, model }) => ({
    run: `cline auth -p openai-compatible -b '${origin}/v1' -k '${key}' -m '${model}' && cline`,
  }),
}
