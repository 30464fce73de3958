import type { Program } from '../program.ts'

export const cline: Program = {
  wires: ['chat'],
  assumes: 'a window of its own',
  settings: ({ origin, key, model }) => ({
    commands: [['cline', 'auth', '-p', 'openai-compatible', '-b', `${origin}/v1`, '-k', key, '-m', model], ['cline']],
  }),
}
