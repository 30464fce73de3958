import type { Program } from '../program.ts'

export const cline: Program = {
  wires: ['chat'],
  assumes: '128,000 tokens',
  settings: ({ origin, key, model }) => ({
    commands: [['cline', 'auth', '-p', 'openai-compatible', '-b', `${origin}/v1`, '-k', key, '-m', model], ['cline']],
  }),
}
